//! A parameter server that only sums: workers send it their vectors over TCP, and it sends the sum back to each.
//!
//! The server holds no weights. In the paper, the server applies the update. Here, each worker applies it to a local
//! replica, with bit-identical results. This server therefore does less work than the paper's, so a comparison with it
//! does not favour the switch.

use std::error::Error;
use std::fmt;
use std::net::{SocketAddr, SocketAddrV4, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::yield_now;
use std::time::{Duration, Instant};

use iswitch_protocol::limits::FLOAT_LEN_BYTES;
use iswitch_socket::{PollSet, Spin};

use super::connection::{Connection, Forming, Hello, READ_LEN_BYTES, check_group, deadline, floats, listen};
use super::{
    AggregateError, AggregatorStats, ConnectError, GradientAggregator, Round, Style, check_vector,
    count_round,
};
use crate::worker::DEFAULT_SPIN;

/// Number of sums that may be in progress at the same time: a fast worker may send its vector for the next round while
/// a slow worker is still receiving the sum of the previous round.
const SUMS: usize = 2;
/// Interval at which a server checks whether to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// Options of a group of workers with a parameter server.
#[derive(Clone, Debug)]
pub struct ParameterServerOptions {
    /// Address on which the server listens.
    pub server: SocketAddrV4,
    /// Number of workers in the group.
    pub workers: u16,
    /// Number of floats in each vector.
    pub gradient_len: u32,
    /// Whether the server sends the sum back once it is complete, or in parts as they are summed.
    pub style: Style,
    /// Timeout for establishing a connection and, once connected, for receiving data from the other end.
    pub timeout: Duration,
}

impl ParameterServerOptions {
    fn hello(&self, rank: u16) -> Hello {
        Hello { rank, workers: self.workers, gradient_len: self.gradient_len }
    }
}

/// A parameter server that listens for its workers.
#[derive(Debug)]
pub struct ParameterServer {
    listener: TcpListener,
    options: ParameterServerOptions,
}

/// State of one worker at the server. `summed` and `sent` count bytes from the beginning of the connection.
#[derive(Debug)]
struct Client {
    connection: Connection,
    staging: Vec<u8>,
    /// Number of leading bytes in `staging` that belong to an incomplete float.
    begun: usize,
    /// Number of bytes received and summed.
    summed: usize,
    sent: usize,
    /// Whether the worker closed its connection after it received a complete sum.
    has_left: bool,
}

/// A sum in progress.
#[derive(Clone, Debug)]
struct Sum {
    round: usize,
    floats: Vec<f32>,
    /// Number of leading floats to which any worker has contributed; the remaining floats still hold the sum of an
    /// earlier round.
    begun: usize,
}

impl ParameterServer {
    /// Listens at the address in the options; port 0 selects a free port.
    pub fn bind(options: ParameterServerOptions) -> Result<Self, ConnectError> {
        check_group(usize::from(options.workers), options.gradient_len)?;
        Ok(Self { listener: listen(options.server)?, options })
    }

    /// Returns the address on which the server listens.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for all workers and serves them until `stop` is set, or until one worker has left and all others have
    /// received every sum to which that worker contributed.
    ///
    /// Returns the number of finished rounds. A connection whose greeting is not that of a worker of this group is
    /// closed and logged.
    ///
    /// # Errors
    /// Fails if workers are missing and none connects within the timeout (the error names the missing ranks), or if a
    /// worker fails during a round.
    pub fn run(self, stop: &AtomicBool) -> Result<u64, ServeError> {
        let Some(clients) = self.gather(stop)? else { return Ok(0) };
        let len = self.options.gradient_len as usize;
        let sums = [0, 1].map(|round| Sum { round, floats: vec![0.0; len], begun: 0 });
        let mut service = Service { style: self.options.style, len, clients, sums };
        service.serve(stop)?;
        Ok(service.rounds())
    }

    /// Waits until every rank is present; returns `None` once `stop` is set.
    fn gather(&self, stop: &AtomicBool) -> Result<Option<Vec<Client>>, ConnectError> {
        let workers = usize::from(self.options.workers);
        let mut places: Vec<Option<Client>> = (0..workers).map(|_| None).collect();
        let mut forming = Forming::new(&self.listener)?;
        let (mut most, mut until) = (0, deadline(self.options.timeout));
        while !stop.load(Ordering::Relaxed) {
            let greeted = forming.next(until.min(Instant::now() + STOP_INTERVAL), None)?;
            free_places_of_the_gone(&mut places);
            if let Some((connection, hello)) = greeted {
                let peer = connection.peer();
                if let Err(error) = self.seat(&mut places, connection, hello) {
                    forming.refuse(peer, &error);
                }
            }
            let present = places.iter().flatten().count();
            if present == workers {
                return Ok(Some(places.into_iter().flatten().collect()));
            }
            // Only progress extends the deadline; a member that connects and disconnects repeatedly does not.
            if present > most {
                (most, until) = (present, deadline(self.options.timeout));
            }
            if Instant::now() >= until {
                let is_missing = |rank: &u16| places[usize::from(*rank)].is_none();
                let missing = (0..self.options.workers).filter(is_missing).collect();
                return Err(forming.incomplete(missing, self.options.timeout));
            }
        }
        Ok(None)
    }

    /// Assigns a worker to its rank, or returns the reason why the worker is refused.
    fn seat(
        &self,
        places: &mut [Option<Client>],
        mut connection: Connection,
        hello: Hello,
    ) -> Result<(), ConnectError> {
        // The reply is sent before the check, so that the worker can report the difference as well.
        connection.reply(self.options.hello(hello.rank))?;
        hello.expect(self.options.hello(hello.rank), connection.peer())?;
        let place = places.get_mut(usize::from(hello.rank)).filter(|place| place.is_none());
        let place = place.ok_or(ConnectError::BadOption {
            field: "rank",
            value: usize::from(hello.rank),
            expected: "an unused rank below the number of workers",
        })?;
        connection.begin()?;
        let staging = vec![0; READ_LEN_BYTES];
        *place = Some(Client { connection, staging, begun: 0, summed: 0, sent: 0, has_left: false });
        Ok(())
    }
}

/// Frees the ranks of workers that have closed their connections, so that they can connect again.
fn free_places_of_the_gone(places: &mut [Option<Client>]) {
    for (rank, place) in places.iter_mut().enumerate() {
        if let Some(client) = place.take_if(|client| client.connection.is_closed()) {
            let peer = client.connection.peer();
            tracing::warn!(%peer, rank, "a worker left while the group was forming; its rank is free again");
        }
    }
}

/// Reason why a parameter server ended before its workers did.
#[derive(Debug)]
pub enum ServeError {
    /// The group of workers was not formed.
    Connect(ConnectError),
    /// A connection failed during a round.
    Round(AggregateError),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::Round(error) => error.fmt(f),
        }
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Connect(error) => error.source(),
            Self::Round(error) => error.source(),
        }
    }
}

impl From<ConnectError> for ServeError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}

impl From<AggregateError> for ServeError {
    fn from(error: AggregateError) -> Self {
        Self::Round(error)
    }
}

struct Service {
    style: Style,
    /// Number of floats in a vector.
    len: usize,
    clients: Vec<Client>,
    sums: [Sum; SUMS],
}

impl Service {
    fn serve(&mut self, stop: &AtomicBool) -> Result<(), AggregateError> {
        let mut waiting = PollSet::new();
        let (mut spin, mut heard) = (Spin::new(DEFAULT_SPIN), Instant::now());
        while !stop.load(Ordering::Relaxed) {
            let mut moved = 0;
            for client in 0..self.clients.len() {
                moved += self.receive(client)?;
                moved += self.send(client)?;
            }
            if self.is_over() {
                break;
            }
            if moved > 0 {
                spin.note(heard.elapsed());
                heard = Instant::now();
                continue;
            }
            if spin.goes_on(heard.elapsed()) {
                yield_now();
                continue;
            }
            waiting.clear();
            for client in self.clients.iter().filter(|client| !client.has_left) {
                waiting.push_for(client.connection.as_fd(), true, self.ready_for(client) > client.sent);
            }
            waiting.wait(Some(STOP_INTERVAL))?;
        }
        Ok(())
    }

    fn vector_len_bytes(&self) -> usize {
        self.len * FLOAT_LEN_BYTES
    }

    /// Returns the number of rounds whose sums have been completely sent to all workers.
    fn rounds(&self) -> u64 {
        let sent = self.clients.iter().map(|client| client.sent).min().unwrap_or(0);
        (sent / self.vector_len_bytes().max(1)) as u64
    }

    /// Returns whether a worker has left and all others have received the sums to which that worker contributed.
    fn is_over(&self) -> bool {
        let mut others = self.clients.iter().filter(|client| !client.has_left);
        others.clone().count() < self.clients.len()
            && others.all(|client| self.ready_for(client) <= client.sent)
    }

    fn receive(&mut self, at: usize) -> Result<usize, AggregateError> {
        let vector_len = self.vector_len_bytes();
        let client = &mut self.clients[at];
        if client.has_left {
            return Ok(0);
        }
        let (round, within) = (client.summed / vector_len, client.summed % vector_len);
        let room = client.staging.len().min(vector_len - within);
        let len = match client.connection.read_some(&mut client.staging[client.begun..room]) {
            // A worker may close its connection once it has received every sum to which it contributed.
            Err(AggregateError::PeerLost { .. })
                if within + client.begun == 0 && client.sent == client.summed =>
            {
                client.has_left = true;
                0
            }
            outcome => outcome?,
        };
        let (whole, first) = ((client.begun + len) / FLOAT_LEN_BYTES, within / FLOAT_LEN_BYTES);
        self.sums[round % SUMS].add(round, first, &client.staging[..whole * FLOAT_LEN_BYTES]);
        client.staging.copy_within(whole * FLOAT_LEN_BYTES..client.begun + len, 0);
        client.begun = client.begun + len - whole * FLOAT_LEN_BYTES;
        client.summed += whole * FLOAT_LEN_BYTES;
        Ok(len)
    }

    /// Returns the total number of bytes that the server may send to this worker, based on the sums that are available
    /// so far.
    fn ready_for(&self, client: &Client) -> usize {
        let vector_len = self.vector_len_bytes();
        let begin = client.sent / vector_len * vector_len;
        let summed = self.clients.iter().map(|client| client.summed).min().unwrap_or(0);
        let of_round = summed.saturating_sub(begin).min(vector_len);
        match self.style {
            Style::Paper if of_round < vector_len => begin,
            _ => begin + of_round,
        }
    }

    fn send(&mut self, at: usize) -> Result<usize, AggregateError> {
        let vector_len = self.vector_len_bytes();
        let ready = self.ready_for(&self.clients[at]);
        let client = &mut self.clients[at];
        if ready <= client.sent {
            return Ok(0);
        }
        let (round, within) = (client.sent / vector_len, client.sent % vector_len);
        let bytes: &[u8] = bytemuck::cast_slice(&self.sums[round % SUMS].floats);
        let len = client.connection.write_some(&bytes[within..within + ready - client.sent])?;
        client.sent += len;
        Ok(len)
    }
}

impl Sum {
    /// Adds received floats to the sum of a round, from index `first` onwards. Two sums are enough, because no worker
    /// contributes to round `round` + 2 before all workers have the sum of round `round`.
    fn add(&mut self, round: usize, first: usize, bytes: &[u8]) {
        if self.round != round {
            (self.round, self.begun) = (round, 0);
        }
        let end = first + bytes.len() / FLOAT_LEN_BYTES;
        let old = self.begun.clamp(first, end);
        let (added, written) = bytes.split_at((old - first) * FLOAT_LEN_BYTES);
        for (sum, x) in self.floats[first..old].iter_mut().zip(floats(added)) {
            *sum += x;
        }
        for (sum, x) in self.floats[old..end].iter_mut().zip(floats(written)) {
            *sum = x;
        }
        self.begun = self.begun.max(end);
    }
}

/// A worker of a group with a parameter server.
#[derive(Debug)]
pub struct ParameterServerClient {
    connection: Connection,
    workers: u16,
    timeout: Duration,
    sum: Vec<f32>,
    waiting: PollSet,
    spin: Spin,
    stats: AggregatorStats,
}

impl ParameterServerClient {
    /// Connects to the server.
    pub fn join(options: &ParameterServerOptions, rank: u16) -> Result<Self, ConnectError> {
        check_group(usize::from(options.workers), options.gradient_len)?;
        let hello = options.hello(rank);
        let mut connection = Connection::connect(options.server, hello, options.timeout)?;
        connection.read_hello()?.expect(hello, connection.peer())?;
        connection.begin()?;
        Ok(Self {
            connection,
            workers: options.workers,
            timeout: options.timeout,
            sum: vec![0.0; options.gradient_len as usize],
            waiting: PollSet::new(),
            spin: Spin::new(DEFAULT_SPIN),
            stats: AggregatorStats::default(),
        })
    }

    fn run_round(&mut self, contribution: &[f32]) -> Result<(), AggregateError> {
        let outgoing: &[u8] = bytemuck::cast_slice(contribution);
        let incoming: &mut [u8] = bytemuck::cast_slice_mut(&mut self.sum);
        let (mut sent, mut received) = (0, 0);
        let mut heard = Instant::now();
        while received < incoming.len() {
            let mut moved = 0;
            if sent < outgoing.len() {
                moved = self.connection.write_some(&outgoing[sent..])?;
                sent += moved;
            }
            let len = self.connection.read_some(&mut incoming[received..])?;
            received += len;
            if moved + len > 0 {
                self.spin.note(heard.elapsed());
                heard = Instant::now();
                continue;
            }
            let silent = heard.elapsed();
            if self.spin.goes_on(silent) {
                yield_now();
                continue;
            }
            if silent >= self.timeout {
                return Err(AggregateError::PeerLost { peer: self.connection.peer(), silent });
            }
            self.waiting.clear();
            self.waiting.push_for(self.connection.as_fd(), true, sent < outgoing.len());
            self.waiting.wait(Some(self.timeout.saturating_sub(silent)))?;
        }
        Ok(())
    }
}

impl GradientAggregator for ParameterServerClient {
    fn name(&self) -> &'static str {
        "parameter server"
    }

    fn gradient_len(&self) -> usize {
        self.sum.len()
    }

    fn reduce(&mut self, contribution: &[f32]) -> Result<(Round, &[f32]), AggregateError> {
        check_vector(contribution, self.sum.len())?;
        self.run_round(contribution)?;
        Ok((count_round(&mut self.stats, self.workers), &self.sum))
    }

    fn stats(&self) -> AggregatorStats {
        self.stats
    }
}
