//! Access to a switch. Starts a switch inside this process, or joins one as a worker.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use iswitch::{JoinOptions, Key, key_file};
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch, random_secret};
use iswitch_switch::{Config, Keys};

/// Maximum time that a worker waits for the other workers, which its parent process starts at the same time. After this
/// time, the worker fails.
pub const SIBLINGS_TIMEOUT: Duration = Duration::from_secs(60);

/// Authentication options of a worker. Without a key, packets are not authenticated.
#[derive(Args, Clone, Debug)]
pub struct KeyArgs {
    /// File with the job's key, as created by `iswitchctl keygen`
    ///
    /// Without this option, a switch that has a key for the job ignores the packets from this worker.
    #[arg(long, value_name = "PATH", env = "ISWITCH_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// Authenticate data packets in addition to control packets
    ///
    /// Each data packet then carries a tag that is computed from the key. Use this option on all workers of the job or
    /// on none.
    #[arg(long, requires = "key_file")]
    tag_data: bool,
}

impl KeyArgs {
    fn key(&self) -> anyhow::Result<Option<Key>> {
        let read =
            |path: &PathBuf| key_file::read(path).with_context(|| format!("key file {}", path.display()));
        self.key_file.as_ref().map(read).transpose()
    }
}

/// Starts a switch on a free port of the loopback interface, for a job whose `workers` workers sum vectors of `len`
/// floats. If `key` contains a key, the switch uses it for all jobs.
///
/// The switch adds the contributions in rank order, so that a run is reproducible bit for bit. If the contributions of
/// all workers do not fit into the memory of the switch, they are added in the order of arrival instead, and the sums
/// depend on this order.
pub fn start_embedded_switch(key: &KeyArgs, workers: usize, len: usize) -> anyhow::Result<EmbeddedSwitch> {
    let any_port = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let config = Config { ordered: fits_ordered(workers, len), ..Config::default() };
    let options = EmbeddedOptions { config, ..EmbeddedOptions::default() };
    let mut keys = Keys::new(random_secret()?);
    if let Some(key) = key.key()? {
        keys.insert(None, key);
    }
    Ok(EmbeddedSwitch::start_with_keys(any_port, &options, keys)?)
}

/// Returns whether the contributions of all workers and the sums of two rounds occupy at most half of a switch's
/// memory. The other half is sufficient for the padding of segments.
fn fits_ordered(workers: usize, len: usize) -> bool {
    const ROUNDS: usize = 2;
    (workers + ROUNDS).saturating_mul(len).saturating_mul(size_of::<f32>())
        <= Config::default().memory_bytes / 2
}

/// Returns the options with which worker `rank` of `workers` joins `job` at `switch` to sum vectors of `gradient_len`
/// floats.
pub fn options(
    switch: SocketAddrV4,
    job: u32,
    (rank, workers): (u16, u16),
    gradient_len: u32,
    workers_timeout: Option<Duration>,
    key: &KeyArgs,
) -> anyhow::Result<JoinOptions> {
    let mut options =
        JoinOptions { job, rank, workers_timeout, ..JoinOptions::new(switch, workers, gradient_len) };
    if let Some(secret) = key.key()? {
        options = options.with_key(secret, key.tag_data);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::fits_ordered;

    #[test]
    fn ordered_sums_are_used_where_the_memory_suffices() {
        const DQN: usize = 1_687_206;
        assert!(fits_ordered(4, 10_119) && fits_ordered(16, DQN));
        assert!(!fits_ordered(32, DQN) && !fits_ordered(usize::MAX - 2, usize::MAX));
    }
}
