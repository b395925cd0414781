//! Inserts of one actor.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;
use tonic::{Code, Status};

use super::error::{ClientError, is_certificate_rejected, is_failure_of_shard, with_causes};
use super::flight::{Flight, RequestSlot};
use super::{Inner, ItemKey, ReplayClient, affinity};
use crate::limits::SEQ_WINDOW;
use crate::proto::{InsertRequest, InsertResponse, NewItem as NewItemMessage};
use crate::table::NewItem;

/// Writer that inserts items of one actor into one table. A later writer for the same actor fences this one off.
pub struct Writer {
    inner: Arc<Inner>,
    table: String,
    actor: u64,
    session: u64,
    flight: Arc<Flight>,
    /// Shards in the actor's order of preference.
    preference: Arc<[usize]>,
}

/// Handle for awaiting the completion of an insert in flight.
pub struct Ticket(oneshot::Receiver<Result<Vec<ItemKey>, ClientError>>);

impl Ticket {
    /// Waits until the items are stored with the shard's durability, and returns their keys. If an item was stored by
    /// an attempt whose response was lost, its key is 0.
    ///
    /// # Errors
    /// Fails if any of the items could not be stored.
    pub async fn stored(self) -> Result<Vec<ItemKey>, ClientError> {
        self.0.await.unwrap_or_else(|_| Err(ClientError::Runtime("its task has ended".to_owned())))
    }
}

impl ReplayClient {
    /// Creates a writer for an actor. Each actor must have a unique number. A restarted actor keeps its number, and its
    /// writer starts a new session.
    pub fn writer(&self, table: &str, actor: u64) -> Writer {
        let hashes: Vec<u64> = self.inner.shards.iter().map(|shard| shard.hash).collect();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Writer {
            inner: Arc::clone(&self.inner),
            table: table.to_owned(),
            actor,
            session: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
            flight: Arc::new(Flight::new(self.inner.config.in_flight_max)),
            preference: affinity::preference(actor, &hashes).into(),
        }
    }
}

impl Writer {
    /// Inserts an item. Waits for as long as the shard holds the insert back.
    ///
    /// # Errors
    /// Fails if the item could not be stored; see [`ClientError`].
    pub async fn insert(&self, item: NewItem) -> Result<ItemKey, ClientError> {
        let keys = self.submit(vec![item]).await.stored().await?;
        Ok(keys.first().copied().unwrap_or(ItemKey { shard: self.preference[0], key: 0 }))
    }

    /// Inserts up to 512 items with one request.
    ///
    /// # Errors
    /// Fails if any of the items could not be stored.
    pub async fn insert_batch(&self, items: Vec<NewItem>) -> Result<Vec<ItemKey>, ClientError> {
        self.submit(items).await.stored().await
    }

    /// Submits items. First waits until fewer than `in_flight_max` requests are in flight, which applies backpressure
    /// to the actor. Items of concurrent requests may be stored in a different order than they were submitted.
    pub async fn submit(&self, items: Vec<NewItem>) -> Ticket {
        let (answer, ticket) = oneshot::channel();
        if let Err(error) = check_batch(&items) {
            // Sending cannot fail: the receiver is the ticket below.
            let _ = answer.send(Err(error));
            return Ticket(ticket);
        }
        let slot = Flight::enter(&self.flight, items.len() as u64).await;
        let request = InsertRequest {
            table: self.table.clone(),
            actor: self.actor,
            session: self.session,
            first_seq: slot.first_seq,
            items: items.into_iter().map(message).collect(),
            wait_ms: self.inner.wait_ms(),
        };
        let attempt = Attempt::new(Arc::clone(&self.inner), Arc::clone(&self.preference), slot);
        tokio::spawn(async move {
            let stored = attempt.run(request).await;
            // The caller may have dropped the ticket.
            let _ = answer.send(stored);
        });
        Ticket(ticket)
    }
}

const BATCH_MAX: usize = 512;
const _: () = assert!(BATCH_MAX as u64 <= SEQ_WINDOW);

fn check_batch(items: &[NewItem]) -> Result<(), ClientError> {
    if (1..=BATCH_MAX).contains(&items.len()) {
        return Ok(());
    }
    Err(ClientError::Option { field: "items", value: items.len().to_string(), expected: "1 to 512 items" })
}

fn message(item: NewItem) -> NewItemMessage {
    NewItemMessage { priority: item.priority, version: item.version, payload: item.payload }
}

/// Insert request that is tried on one shard after another until it succeeds.
struct Attempt {
    inner: Arc<Inner>,
    preference: Arc<[usize]>,
    /// Index of the current shard in `preference`.
    at: usize,
    failures: u32,
    began: Instant,
    /// Earliest time at which the current shard may have stored the items without acknowledging them.
    uncertain: Option<Instant>,
    _seat: RequestSlot,
}

impl Attempt {
    fn new(inner: Arc<Inner>, preference: Arc<[usize]>, slot: RequestSlot) -> Self {
        let began = Instant::now();
        Self { inner, preference, at: 0, failures: 0, began, uncertain: None, _seat: slot }
    }

    async fn run(mut self, mut request: InsertRequest) -> Result<Vec<ItemKey>, ClientError> {
        let mut stored = Vec::new();
        self.skip_down();
        loop {
            let shard = &self.inner.shards[self.preference[self.at]];
            match shard.insert(&request).await {
                Ok(answer) => {
                    shard.succeeded();
                    shard.learn(&request.table, answer.extent);
                    if self.at > 0 {
                        self.inner.failovers.fetch_add(1, Relaxed);
                    }
                    self.take(&mut request, &mut stored, answer)?;
                    if request.items.is_empty() {
                        return Ok(stored);
                    }
                }
                Err(status) if is_failure_of_shard(&status) => self.failed(&status).await?,
                Err(status) => return Err(ClientError::refused(&shard.address, &status)),
            }
        }
    }

    /// Records which items the shard has stored, and keeps only the other items in the request.
    fn take(
        &self,
        request: &mut InsertRequest,
        stored: &mut Vec<ItemKey>,
        answer: InsertResponse,
    ) -> Result<(), ClientError> {
        let place = self.preference[self.at];
        let address = &self.inner.shards[place].address;
        let (done, asked) = (answer.keys.len(), request.items.len());
        if done == 0 || done > asked || (done < asked && answer.refused.is_empty()) {
            let found = format!("{done} keys");
            let expected =
                format!("{asked} keys, or at least 1 key and the reason why the other items were refused");
            return Err(ClientError::Answer { shard: address.clone(), found, expected });
        }
        stored.extend(answer.keys.into_iter().map(|key| ItemKey { shard: place, key }));
        request.items.drain(..done);
        request.first_seq += done as u64;
        let code = Code::from_i32(answer.refused_code);
        if request.items.is_empty() || code == Code::Unavailable {
            return Ok(());
        }
        let text = format!("only {done} of {asked} items were stored: {}", answer.refused);
        Err(ClientError::Refused { shard: address.clone(), code, text })
    }

    /// Chooses the shard for the next attempt after a failure. Waits for the backoff time before it retries the same
    /// shard, and before it tries all shards again.
    async fn failed(&mut self, status: &Status) -> Result<(), ClientError> {
        let place = self.preference[self.at];
        let shard = &self.inner.shards[place];
        shard.failed(|failures| self.inner.backoff(failures));
        self.inner.retries.fetch_add(1, Relaxed);
        let config = &self.inner.config;
        let all_were_tried = self.failures as usize + 1 >= self.preference.len();
        if all_were_tried && is_certificate_rejected(status) {
            return Err(ClientError::refused(&shard.address, status));
        }
        if self.began.elapsed() >= config.patience {
            let patience_ms = config.patience.as_millis() as u64;
            let text = with_causes(status);
            return Err(ClientError::Unreachable { patience_ms, shard: shard.address.clone(), text });
        }
        if !was_never_sent(status) {
            self.uncertain.get_or_insert_with(Instant::now);
        }
        let stays = self.uncertain.is_some_and(|since| since.elapsed() < config.failover_after);
        let pause = self.inner.backoff(self.failures);
        self.failures += 1;
        if stays || self.preference.len() == 1 {
            tokio::time::sleep(pause).await;
            return Ok(());
        }
        if self.uncertain.take().is_some() {
            self.inner.possible_duplicates.fetch_add(1, Relaxed);
        }
        self.at = (self.at + 1) % self.preference.len();
        if self.at == 0 {
            // Every shard has been tried once, so wait before the next round.
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Advances to the first shard that is not known to be down.
    fn skip_down(&mut self) {
        let is_up = |place: &usize| !self.inner.shards[*place].is_down();
        self.at = self.preference.iter().position(is_up).unwrap_or(0);
    }
}

/// Returns whether the connection could not be established. In that case, the shard cannot have received the request.
fn was_never_sent(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>()
            && matches!(
                error.kind(),
                std::io::ErrorKind::ConnectionRefused
                    | std::io::ErrorKind::NotFound
                    | std::io::ErrorKind::TimedOut
            )
        {
            return true;
        }
        cause = error.source();
    }
    false
}
