//! Serves a shard until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use super::address::Listener;
use super::connections::Connections;
use super::housekeeping;
use super::shard::Shard;

/// What is under way when the shard stops has so long to end.
const GRACE: Duration = Duration::from_secs(3);
/// After a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` is done; then ends what waits, lets the rest end, and writes a snapshot if there is a directory.
///
/// # Errors
/// The last snapshot could not be written.
pub async fn serve(
    shard: Arc<Shard>,
    listeners: Vec<Listener>,
    stop: impl Future<Output = ()>,
) -> Result<(), super::ShardError> {
    let connections = Arc::new(Connections::new(&shard));
    let mut tasks = tokio::task::JoinSet::new();
    for listener in listeners {
        tasks.spawn(accept(listener, Arc::clone(&connections)));
    }
    tasks.spawn(housekeeping::write_snapshots(Arc::clone(&shard)));
    stop.await;
    shard.stop();
    // Drops the listeners.
    tasks.shutdown().await;
    if tokio::time::timeout(GRACE, connections.close()).await.is_err() {
        tracing::warn!("some connections did not end within {GRACE:?}");
    }
    if shard.store.is_some() {
        let snapshot = shard.snapshot().await?;
        tracing::info!("{} items in {}", snapshot.items, snapshot.path.display());
    }
    Ok(())
}

async fn accept(listener: Listener, connections: Arc<Connections>) {
    loop {
        // Who finds no place waits in the kernel's queue.
        let Some(place) = connections.place().await else { return };
        let accepted = match &listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!("no TCP_NODELAY: {error}");
                }
                connections.start_tcp(stream, place);
            }),
            Listener::Unix(listener, _) => {
                listener.accept().await.map(|(stream, _)| connections.start(stream, place))
            }
        };
        if let Err(error) = accepted {
            // Descriptors are counted at the start: this is the limit of the whole machine, as a rule.
            tracing::warn!("no connection accepted: {error}");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}
