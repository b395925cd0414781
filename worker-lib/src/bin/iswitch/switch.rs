//! The two doors to the switch: one started inside this process, and joining one as a worker.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::Context as _;
use iswitch::{GradientAggregator, JoinOptions, Worker};
use iswitch_daemon::embedded::{EmbeddedOptions, EmbeddedSwitch};

/// Workers of one parent start together; one that is not there after so long has failed.
pub(crate) const SIBLINGS_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts a switch on a free port of the loop-back interface.
pub(crate) fn start_embedded_switch() -> anyhow::Result<EmbeddedSwitch> {
    let any_port = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    Ok(EmbeddedSwitch::start(any_port, &EmbeddedOptions::default())?)
}

/// Joins `job` at `switch` as worker `rank` of `workers` that aggregate vectors of `gradient_len` floats.
pub(crate) fn join(
    switch: SocketAddrV4,
    job: u32,
    (rank, workers): (usize, usize),
    gradient_len: usize,
    workers_timeout: Option<Duration>,
) -> anyhow::Result<Box<dyn GradientAggregator>> {
    let workers = u16::try_from(workers).context("--workers does not fit in 16 bits")?;
    let gradient_len = u32::try_from(gradient_len).context("the network has more than 2^32 parameters")?;
    let rank = u16::try_from(rank).context("--rank does not fit in 16 bits")?;
    let options =
        JoinOptions { job, rank, workers_timeout, ..JoinOptions::new(switch, workers, gradient_len) };
    Ok(Box::new(Worker::join(options)?))
}
