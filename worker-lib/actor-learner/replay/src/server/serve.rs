//! Serves a shard until a stop is requested.

use std::sync::Arc;
use std::time::Duration;

use super::address::Listener;
use super::connections::Connections;
use super::housekeeping;
use super::shard::Shard;

/// Grace period for requests in flight when the shard is stopped.
const GRACE: Duration = Duration::from_secs(3);
/// Pause after a failure to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` completes. Then cancels waiting requests, lets the other requests complete, and writes a
/// snapshot if there is a data directory.
///
/// # Errors
/// Fails if this snapshot cannot be written.
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
    // Close the listening sockets.
    tasks.shutdown().await;
    if tokio::time::timeout(GRACE, connections.close()).await.is_err() {
        tracing::warn!("some connections did not end within {GRACE:?}");
    }
    if shard.store.is_some() {
        let snapshot = shard.snapshot().await?;
        tracing::info!("wrote a snapshot of {} items to {}", snapshot.items, snapshot.path.display());
    }
    Ok(())
}

async fn accept(listener: Listener, connections: Arc<Connections>) {
    loop {
        // While no slot is free, connections wait in the kernel's queue.
        let Some(place) = connections.place().await else { return };
        let accepted = match &listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!("cannot set TCP_NODELAY: {error}");
                }
                connections.start_tcp(stream, place);
            }),
            Listener::Unix(listener, _) => {
                listener.accept().await.map(|(stream, _)| connections.start(stream, place))
            }
        };
        if let Err(error) = accepted {
            // Descriptors are reserved at startup, so the cause is usually the system-wide limit.
            tracing::warn!("cannot accept a connection: {error}");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}
