//! The two doors to the switch: one started inside this process, and joining one as a worker.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use iswitch::{JoinOptions, Key, key_file};
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch, random_secret};
use iswitch_switch::Keys;

/// Workers of one parent start together; one that is not there after so long has failed.
pub const SIBLINGS_TIMEOUT: Duration = Duration::from_secs(60);

/// Authentication of a worker: none without a key.
#[derive(Args, Clone, Debug)]
pub struct KeyArgs {
    /// File with the job's key, made by `iswitchctl keygen`. Without it a switch that has a key for the job does not
    /// listen.
    #[arg(long, value_name = "PATH", env = "ISWITCH_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// Tag data packets with the key as well; all workers of the job do, or none.
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

/// Starts a switch on a free port of the loop-back interface; with a key all its jobs have that one.
pub fn start_embedded_switch(key: &KeyArgs) -> anyhow::Result<EmbeddedSwitch> {
    let any_port = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let mut keys = Keys::new(random_secret()?);
    if let Some(key) = key.key()? {
        keys.insert(None, key);
    }
    Ok(EmbeddedSwitch::start_with_keys(any_port, &EmbeddedOptions::default(), keys)?)
}

/// How worker `rank` of `workers` joins `job` at `switch`, to sum vectors of `gradient_len` floats.
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
