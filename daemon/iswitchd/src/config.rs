//! Configuration from the command line and a TOML file. Both accept the same settings; the command line takes
//! precedence.

mod card;
mod choices;
mod live;
mod loaded;

use std::fmt::Display;
use std::net::{SocketAddr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use clap::{Args, Parser};
use iswitch_card::CardSpec;
use iswitch_protocol::Key;
use iswitch_protocol::key_file::KeyFileError;
use iswitch_protocol::limits::{
    DEFAULT_CONTROL_TOS, DEFAULT_DATA_TOS, DEFAULT_PORT, MAX_JOBS, MAX_PARENTS, MAX_PARTS, TOS_MASK,
};
use iswitch_protocol::wire::Classifier;
use serde::{Deserialize, Serialize};

use crate::port::{PacketOptions, PortSpec};
use choices::{GroupDelivery, NonFinite};
pub use choices::{LogFormat, LogLevel};
use iswitch_control::default_control_socket;
use iswitch_runtime::runtime::DEFAULT_SPIN;
use iswitch_switch::StrangerLimits;
pub use live::Change;
pub(crate) use loaded::Loaded;
use loaded::{Origin, Origins};

const DEFAULT_LEASE_MS: u32 = 10_000;
const DEFAULT_SLOW_MS: u32 = 1000;
const DEFAULT_MEMORY_MIB: u32 = 256;
const DEFAULT_RECV_BUFFER_BYTES: usize = 16 << 20;
const DEFAULT_UPLINK_PORT: u16 = 7721;
const DEFAULT_UPLINK_JOBS: u8 = 8;
/// Maximum number of ports; a port id has 8 bits.
const MAX_PORTS: usize = 256;

const LEASE_MS: RangeInclusive<u64> = 100..=3_600_000;
const SLOW_MS: RangeInclusive<u64> = 100..=3_600_000;
const MEMORY_MIB: RangeInclusive<u64> = 1..=1 << 20;
const JOIN_RATE: RangeInclusive<u64> = 1..=10_000_000;
const JOBS_PER_SOURCE: RangeInclusive<u64> = 1..=MAX_JOBS as u64;
const RECV_BUFFER_BYTES: RangeInclusive<u64> = 4096..=1 << 30;
const SPIN_US: RangeInclusive<u64> = 0..=1_000_000;
const UDP_PORT: RangeInclusive<u64> = 1..=65_535;
const THREADS: RangeInclusive<u64> = 1..=MAX_PARTS as u64;
/// Default number of CPU cores per thread. A thread uses only one of these cores; the others are left to other
/// processes on the machine.
const CORES_PER_THREAD: usize = 2;
const UPLINK_JOBS: RangeInclusive<u64> = 1..=MAX_JOBS as u64;

const EXAMPLES: &str = "\
Examples:
  iswitchd --udp 127.0.0.1:7711                      Serve workers on this machine
  iswitchd --port eth1 --port eth2 --metrics 10.9.0.254:7790
  iswitchd --port xdp:eth1 --key-file job.key        Use AF_XDP and a key
  iswitchd --config /etc/iswitchd.toml --check";

/// Switch that sums the gradients of distributed training jobs
///
/// The switch sums the gradients while their packets pass through it. At least one --udp or --port is required.
///
/// All options except --config, --check, --stop-on-stdin-eof and the --no-... flags can also be set in the
/// configuration file, under the same name with underscores instead of dashes (--key-file is `key_files` there). In the
/// file, --no-offload is `offload = false`, --no-ingress-rule is `ingress_rule = false` and --no-sandbox is
/// `sandbox = false`. The command line takes precedence over the file.
#[derive(Debug, Parser)]
#[command(name = "iswitchd", version, max_term_width = 79, after_help = EXAMPLES)]
pub struct Cli {
    /// Configuration file in TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the configuration and exit
    #[arg(long)]
    pub check: bool,
    /// Disable super-frames and checksum offload
    ///
    /// The switch then sends one datagram per system call and computes checksums in software.
    #[arg(long)]
    no_offload: bool,
    /// Do not install the netfilter ingress rule on raw ports
    ///
    /// The rule keeps tagged frames from the bridge and the IP stack, which would otherwise handle them too.
    #[arg(long)]
    no_ingress_rule: bool,
    /// Run without the sandbox
    ///
    /// The process keeps all its privileges and installs no system-call filter.
    #[arg(long)]
    no_sandbox: bool,
    /// Serve no control socket
    ///
    /// iswitchctl then cannot reach the switch.
    #[arg(long, conflicts_with = "control_socket")]
    no_control_socket: bool,
    /// Stop once standard input has ended and no job is left
    ///
    /// This option is for a program that starts a private switch. If standard input is a pipe whose other end the
    /// program holds, the switch stops after the program has ended for any reason.
    #[arg(long)]
    stop_on_stdin_eof: bool,
    #[command(flatten)]
    settings: Settings,
}

/// Settings that can be given both on the command line and in the configuration file.
#[derive(Args, Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    /// UDP address at which to serve workers
    ///
    /// This option requires no privileges. The option may be repeated.
    #[arg(long, value_name = "ADDR:PORT")]
    udp: Vec<SocketAddrV4>,
    /// Network interface to serve with raw frames
    ///
    /// Raw frames require root. The option may be repeated. With the prefix `xdp:`, the interface is served through
    /// AF_XDP in the fastest mode that its driver supports. To select the mode yourself, append `,driver` or
    /// `,generic` (attach mode), `,zerocopy` or `,copy` (copy mode), or one of each.
    #[arg(long, value_name = "[xdp:]IFACE[,MODE]")]
    port: Vec<String>,
    /// Card that sums the rounds of one job, while the daemon manages the membership
    ///
    /// PROGRAM simulates the card; build it with `hdl card`. Frames reach the card through the raw ports, of which
    /// there may be at most four. Append `,slots256` if the card has 256 slots instead of 128. The card sums one
    /// synchronous job with at most 8 members, 366 floats per segment, 32-bit elements and no key. The daemon sums all
    /// other jobs.
    #[arg(long, value_name = "sim:PROGRAM[,slots256]")]
    card: Option<String>,
    /// Parent switch, which sums the partial sums of this switch
    ///
    /// This option requires no privileges. If the option is repeated, the parent is the switch with the lowest address
    /// among those that answer.
    #[arg(long, value_name = "ADDR:PORT")]
    parent: Vec<SocketAddrV4>,
    /// First local UDP port for packets to the parent
    ///
    /// The switch uses one port per thread and job. Each thread has `--uplink-jobs` consecutive ports, which follow
    /// those of the previous thread. The ports must be the same after a restart. The default is 7721.
    #[arg(long, value_name = "PORT")]
    uplink_port: Option<u16>,
    /// Maximum number of jobs of a switch that has a parent
    ///
    /// The default is 8.
    #[arg(long, value_name = "JOBS")]
    uplink_jobs: Option<u8>,
    /// Number of threads, each of which sums one part of every long vector
    ///
    /// Thread I, counted from 0, serves the UDP ports of --udp and --udp-port plus I. Workers divide long vectors among
    /// the threads automatically. The memory limits and --total-join-rate are divided among the threads. The default is
    /// one thread per raw port, but at most one per two CPU cores; it is 1 without raw ports, with a parent or with
    /// AF_XDP.
    #[arg(long, value_name = "N")]
    threads: Option<u8>,
    /// UDP destination port of iSwitch frames on raw ports
    ///
    /// With several threads, the first thread uses this port, and the others use the ports that follow. The default is
    /// 7711.
    #[arg(long, value_name = "PORT")]
    udp_port: Option<u16>,
    /// ToS of control packets
    ///
    /// The value must be a multiple of 4, because the two low-order bits belong to ECN. The default is 0x0C.
    #[arg(long, value_name = "TOS", value_parser = parse_byte)]
    control_tos: Option<u8>,
    /// ToS of data packets
    ///
    /// The value must be a multiple of 4, because the two low-order bits belong to ECN, and must differ from
    /// --control-tos. The default is 0x1C.
    #[arg(long, value_name = "TOS", value_parser = parse_byte)]
    data_tos: Option<u8>,
    /// Lease of a member, in milliseconds
    ///
    /// The switch expels a member that has been silent for longer than this. The default is 10000.
    #[arg(long, value_name = "MS")]
    lease_ms: Option<u32>,
    /// Time after which a worker is logged as slow, in milliseconds
    ///
    /// If a worker has not contributed to a round when this time has passed since the round's first contribution, the
    /// switch logs a warning that names the worker. The default is 1000.
    #[arg(long, value_name = "MS")]
    slow_ms: Option<u32>,
    /// Memory for the sums of all jobs, in MiB
    ///
    /// A synchronous job takes two vectors and, with --ordered, one more per worker. An asynchronous job takes at least
    /// eight vectors, plus one per worker. A job that does not declare its number of workers counts as one with 64
    /// workers. The default is 256.
    #[arg(long, value_name = "MIB")]
    memory_mib: Option<u32>,
    /// Maximum memory for the sums of one job, in MiB
    ///
    /// The value must not exceed --memory-mib, which is also the default.
    #[arg(long, value_name = "MIB")]
    job_memory_mib: Option<u32>,
    /// Maximum number of concurrent jobs per IPv4 address
    ///
    /// The limit counts the jobs created by the address that are still waiting for workers, and the jobs whose
    /// members all have this address. Jobs with a key and jobs without one are counted separately. The default is 32.
    #[arg(long, value_name = "JOBS")]
    max_jobs_per_source: Option<u32>,
    /// Maximum rate of packets from one non-member address, in packets per second
    ///
    /// The limit applies to Joins, for example. A burst may contain as many packets as the limit allows in 4 seconds.
    /// Packets above the limit are dropped without an answer. The default is 256.
    #[arg(long, value_name = "RATE")]
    join_rate: Option<u32>,
    /// Maximum total rate of packets from all non-members, in packets per second
    ///
    /// A burst may contain as many packets as the limit allows in 4 seconds. Packets above the limit are dropped
    /// without an answer. The default is 4096.
    #[arg(long, value_name = "RATE")]
    total_join_rate: Option<u32>,
    /// Size of the receive and send buffers of each port, in bytes
    ///
    /// Without root, the kernel limits the buffers to net.core.rmem_max and net.core.wmem_max. The default is 16777216
    /// (16 MiB).
    #[arg(long, value_name = "BYTES")]
    recv_buffer_bytes: Option<usize>,
    /// Handling of contributions that contain NaN or infinities
    ///
    /// The default is refuse.
    #[arg(long, value_name = "WHAT")]
    non_finite: Option<NonFinite>,
    /// Add gradients in the order of the workers' ranks, for reproducible sums
    ///
    /// The same gradients then always give bit-identical sums, regardless of their order of arrival.
    #[arg(long, num_args = 0, default_missing_value = "true")]
    ordered: Option<bool>,
    /// Use of multicast groups for results
    ///
    /// With auto, the switch sends one multicast copy of each result to those workers that have proved that they
    /// receive multicast packets of their job. The other workers receive unicast copies. AF_XDP ports always use
    /// unicast. The default is off.
    #[arg(long, value_name = "WHEN")]
    group_delivery: Option<GroupDelivery>,
    /// Time to poll for packets before blocking, in microseconds
    ///
    /// The time is measured from the last packet. Polling avoids the cost of a wake-up; with 0, the daemon blocks
    /// immediately. The default is 50.
    #[arg(long, value_name = "US")]
    spin_us: Option<u32>,
    /// Key file for one job, or for all jobs without a key file of their own
    ///
    /// Create the file with `iswitchctl keygen`. Senders without the key can neither join nor change the job. Without
    /// `JOB=`, the key applies to all jobs that have no key of their own. A `=` after a slash is part of the path. The
    /// option may be repeated.
    #[arg(long = "key-file", value_name = "[JOB=]PATH")]
    key_files: Vec<KeyFile>,
    /// Control socket for iswitchctl
    ///
    /// The default is /run/iswitchd.sock for root, and iswitchd.sock in XDG_RUNTIME_DIR for other users. If that
    /// variable is not set, there is no control socket.
    #[arg(long, value_name = "PATH")]
    control_socket: Option<PathBuf>,
    /// Address at which to serve Prometheus metrics over HTTP
    ///
    /// Access is not restricted: anyone who can reach the address can read the metrics. Without this option, the switch
    /// serves no metrics.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// File for flight recorder dumps
    ///
    /// The flight recorder keeps the latest events of each job. When a job stalls, the switch appends the events of
    /// that job to this file as lines of JSON; on SIGUSR1, it appends the events of all jobs. Without this option, it
    /// writes events only on SIGUSR1, to standard error.
    #[arg(long, value_name = "FILE")]
    flight_recorder: Option<PathBuf>,
    /// User to switch to if started as root
    ///
    /// The daemon changes to this user once all resources are open. The default is iswitchd if that user exists,
    /// otherwise nobody.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Format of the log on standard error
    ///
    /// The default is text.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// Least severe level of messages to log
    ///
    /// The default is info.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LogLevel>,
    #[arg(skip)]
    offload: Option<bool>,
    #[arg(skip)]
    ingress_rule: Option<bool>,
    #[arg(skip)]
    sandbox: Option<bool>,
}

/// Key file and the job to which it applies. Without a job, the key applies to all jobs that have no key of their own.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(try_from = "String", into = "String")]
struct KeyFile {
    job: Option<u32>,
    path: PathBuf,
}

impl FromStr for KeyFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (job, path) = match text.split_once('=') {
            // The `=` is part of a path, as in `/etc/keys/a=b`.
            Some((before, _)) if before.contains('/') => (None, text),
            Some((job, path)) => {
                let number = job.parse().map_err(|_| {
                    format!("job is {job:?}, expected a number from 0 to {} in JOB=PATH", u32::MAX)
                })?;
                (Some(number), path)
            }
            None => (None, text),
        };
        if path.is_empty() {
            return Err("path is \"\", expected the path of a key file".to_owned());
        }
        Ok(Self { job, path: path.into() })
    }
}

impl From<KeyFile> for String {
    fn from(file: KeyFile) -> Self {
        let path = file.path.display();
        file.job.map_or(path.to_string(), |job| format!("{job}={path}"))
    }
}

impl TryFrom<String> for KeyFile {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// The complete configuration of the daemon.
#[derive(Clone, Debug)]
pub struct Config {
    /// UDP addresses to serve.
    pub udp: Vec<SocketAddrV4>,
    /// Interfaces to serve with raw frames.
    pub interfaces: Vec<PortSpec>,
    /// Candidates for the parent switch. One of them becomes the parent.
    pub parents: Vec<SocketAddrV4>,
    /// Local UDP ports for packets to the parent: the first port, and the number of ports per thread. Both are zero if
    /// there is no parent.
    pub uplink_ports: (u16, u8),
    /// Number of threads.
    pub threads: Threads,
    /// Card that sums the rounds, if there is one.
    pub card: Option<CardSpec>,
    /// Classifier that recognises iSwitch frames by their ToS values and, on raw ports, also by their UDP port.
    pub classifier: Classifier,
    /// Configuration of the aggregation core. The boot id is zero; the daemon replaces it with a random one.
    pub switch: iswitch_switch::Config,
    /// Size of the receive buffer and of the send buffer to request on each port, in bytes.
    pub buffer_bytes: usize,
    /// Whether to use super-frames and checksum offload.
    pub offload: bool,
    /// Whether to install the ingress rule on raw ports.
    pub ingress_rule: bool,
    /// Maximum time to poll for packets before blocking.
    pub spin: Duration,
    /// Keys of jobs. The key without a job applies to all jobs that have no key of their own.
    job_keys: Vec<(Option<u32>, Key)>,
    /// Path of the control socket for iswitchctl, if any.
    pub control_socket: Option<PathBuf>,
    /// Whether to stop once standard input has ended and no job is left.
    pub stop_on_stdin_eof: bool,
    /// Address at which to serve metrics, if any.
    pub metrics: Option<SocketAddr>,
    /// File to which the flight recorder is dumped, if any.
    pub flight_recorder: Option<PathBuf>,
    /// Whether to drop privileges once all resources are open.
    pub sandbox: bool,
    /// User to switch to, if not the default one.
    pub user: Option<String>,
    /// Format of the log.
    pub log_format: LogFormat,
    /// Log level: the lowest severity that is logged.
    pub log_level: LogLevel,
    /// All settings with the values in force.
    settings: Settings,
    /// Origins of the settings that were given.
    origins: Origins,
}

impl Config {
    /// Returns the options of raw ports.
    pub fn packet_options(&self) -> PacketOptions {
        PacketOptions {
            recv_buffer_bytes: self.buffer_bytes,
            send_buffer_bytes: self.buffer_bytes,
            offload: self.offload,
            ingress_rule: self.ingress_rule,
            threads: self.threads.count as u16,
        }
    }
}

/// Number of threads of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// Number of threads, at least 1.
    pub count: usize,
    /// Whether the operator has chosen the number. If not, and if a UDP port for a further thread is already in use,
    /// the daemon runs a single thread.
    pub is_chosen: bool,
}

/// Configuration error, which names the option, the value and the expected value.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not valid TOML, or it contains an unknown key or a value of the wrong type.
    #[error("{}: {source}", path.display())]
    Parse {
        /// Path of the file.
        path: PathBuf,
        /// Position and reason.
        source: toml::de::Error,
    },
    /// A value is not allowed.
    #[error("{key} is {value}, expected {expected}")]
    Value {
        /// Name of the faulty setting: the command-line option, or the file and the key in it.
        key: String,
        /// Value that was given.
        value: String,
        /// Description of the allowed values.
        expected: String,
    },
    /// A key file cannot be used.
    #[error("cannot use key file {}: {source}", path.display())]
    KeyFile {
        /// Path of the file.
        path: PathBuf,
        /// Reason why the key file cannot be used.
        source: KeyFileError,
    },
    /// No port is configured.
    #[error("no port is configured; set at least one --udp ADDR:PORT or --port IFACE")]
    NoPorts,
}

impl Cli {
    /// Reads the configuration file and the key files, if any, and validates all settings.
    pub fn resolve(self) -> Result<Config, ConfigError> {
        self.load()?.resolve()
    }

    /// Reads the configuration file and the key files, if any, and checks each value separately.
    pub(crate) fn load(self) -> Result<Loaded, ConfigError> {
        let mut settings = self.settings;
        settings.check(|key| format!("--{}", key.replace('_', "-")))?;
        if self.no_offload {
            settings.offload = Some(false);
        }
        if self.no_ingress_rule {
            settings.ingress_rule = Some(false);
        }
        if self.no_sandbox {
            settings.sandbox = Some(false);
        }
        let (mut origins, mut file) = (Origins::default(), Settings::default());
        if let Some(path) = &self.config {
            file = Settings::read(path)?;
            file.check(|key| format!("{}: {key}", path.display()))?;
            origins.note(&file, &Origin::File(path.clone()));
        }
        origins.note(&settings, &Origin::CommandLine);
        settings = settings.or(file);
        let keys = loaded::read_keys(&settings.key_files)?;
        let Self { no_control_socket, stop_on_stdin_eof, .. } = self;
        Ok(Loaded { settings, origins, keys, no_control_socket, stop_on_stdin_eof })
    }
}

impl Config {
    /// Returns the keys of the jobs. `secret` is the argument of [`iswitch_switch::Keys::new`].
    pub fn keys(&self, secret: [u8; iswitch_switch::SECRET_LEN_BYTES]) -> iswitch_switch::Keys {
        let mut keys = iswitch_switch::Keys::new(secret);
        for (job, key) in &self.job_keys {
            keys.insert(*job, key.clone());
        }
        keys
    }
}

impl Settings {
    fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        toml::from_str(&text).map_err(|source| ConfigError::Parse { path: path.to_owned(), source })
    }

    /// Checks each value separately. `place` returns the name under which a setting appears in an error.
    fn check(&self, place: impl Fn(&str) -> String) -> Result<(), ConfigError> {
        let range = |key, value: Option<u64>, range: RangeInclusive<u64>| match value {
            Some(value) if !range.contains(&value) => {
                Err(bad(place(key), value, format!("{} to {}", range.start(), range.end())))
            }
            _ => Ok(()),
        };
        range("threads", self.threads.map(u64::from), THREADS)?;
        range("udp_port", self.udp_port.map(u64::from), UDP_PORT)?;
        range("uplink_port", self.uplink_port.map(u64::from), UDP_PORT)?;
        range("uplink_jobs", self.uplink_jobs.map(u64::from), UPLINK_JOBS)?;
        range("lease_ms", self.lease_ms.map(u64::from), LEASE_MS)?;
        range("slow_ms", self.slow_ms.map(u64::from), SLOW_MS)?;
        range("memory_mib", self.memory_mib.map(u64::from), MEMORY_MIB)?;
        range("job_memory_mib", self.job_memory_mib.map(u64::from), MEMORY_MIB)?;
        range("max_jobs_per_source", self.max_jobs_per_source.map(u64::from), JOBS_PER_SOURCE)?;
        range("join_rate", self.join_rate.map(u64::from), JOIN_RATE)?;
        range("total_join_rate", self.total_join_rate.map(u64::from), JOIN_RATE)?;
        range("recv_buffer_bytes", self.recv_buffer_bytes.map(|bytes| bytes as u64), RECV_BUFFER_BYTES)?;
        range("spin_us", self.spin_us.map(u64::from), SPIN_US)?;
        for (key, tos) in [("control_tos", self.control_tos), ("data_tos", self.data_tos)] {
            if let Some(tos) = tos.filter(|tos| *tos == 0 || tos & !TOS_MASK != 0) {
                return Err(bad(place(key), format!("{tos:#04x}"), "a multiple of 4 from 0x04 to 0xfc"));
            }
        }
        self.ports(|text, expected| bad(place("port"), text, expected))?;
        card::parse(self, |text, expected| bad(place("card"), text, expected))?;
        for (position, file) in self.key_files.iter().enumerate() {
            if self.key_files[..position].iter().any(|other| other.job == file.job) {
                let whose = file.job.map_or("all jobs".to_owned(), |job| format!("job {job}"));
                return Err(bad(place("key_file"), format!("given twice for {whose}"), "one key file"));
            }
        }
        Ok(())
    }

    /// Parses the interfaces to serve. `bad` creates an error from a value and a description of the expected values.
    fn ports(&self, bad: impl Fn(String, String) -> ConfigError) -> Result<Vec<PortSpec>, ConfigError> {
        let mut ports: Vec<PortSpec> = Vec::new();
        for text in &self.port {
            let port: PortSpec = text.parse().map_err(|expected| bad(format!("{text:?}"), expected))?;
            if ports.iter().any(|other| other.interface == port.interface) {
                return Err(bad(
                    format!("{:?} (given twice)", port.interface),
                    "each interface at most once".to_owned(),
                ));
            }
            ports.push(port);
        }
        Ok(ports)
    }

    /// Merges two sets of settings. Values of `self` take precedence; lists are replaced, not merged.
    fn or(self, other: Self) -> Self {
        Self {
            udp: if self.udp.is_empty() { other.udp } else { self.udp },
            port: if self.port.is_empty() { other.port } else { self.port },
            card: self.card.or(other.card),
            parent: if self.parent.is_empty() { other.parent } else { self.parent },
            uplink_port: self.uplink_port.or(other.uplink_port),
            uplink_jobs: self.uplink_jobs.or(other.uplink_jobs),
            threads: self.threads.or(other.threads),
            udp_port: self.udp_port.or(other.udp_port),
            control_tos: self.control_tos.or(other.control_tos),
            data_tos: self.data_tos.or(other.data_tos),
            lease_ms: self.lease_ms.or(other.lease_ms),
            slow_ms: self.slow_ms.or(other.slow_ms),
            memory_mib: self.memory_mib.or(other.memory_mib),
            job_memory_mib: self.job_memory_mib.or(other.job_memory_mib),
            max_jobs_per_source: self.max_jobs_per_source.or(other.max_jobs_per_source),
            join_rate: self.join_rate.or(other.join_rate),
            total_join_rate: self.total_join_rate.or(other.total_join_rate),
            recv_buffer_bytes: self.recv_buffer_bytes.or(other.recv_buffer_bytes),
            non_finite: self.non_finite.or(other.non_finite),
            ordered: self.ordered.or(other.ordered),
            group_delivery: self.group_delivery.or(other.group_delivery),
            spin_us: self.spin_us.or(other.spin_us),
            key_files: if self.key_files.is_empty() { other.key_files } else { self.key_files },
            control_socket: self.control_socket.or(other.control_socket),
            metrics: self.metrics.or(other.metrics),
            flight_recorder: self.flight_recorder.or(other.flight_recorder),
            user: self.user.or(other.user),
            log_format: self.log_format.or(other.log_format),
            log_level: self.log_level.or(other.log_level),
            offload: self.offload.or(other.offload),
            ingress_rule: self.ingress_rule.or(other.ingress_rule),
            sandbox: self.sandbox.or(other.sandbox),
        }
    }

    /// Returns the local UDP ports for packets to the parent: the first port, and the number of ports per thread. Both
    /// are zero if there is no parent.
    fn uplink_ports(&self, threads: usize) -> Result<(u16, u8), ConfigError> {
        if self.parent.is_empty() {
            return Ok((0, 0));
        }
        if self.parent.len() > MAX_PARENTS {
            return Err(bad("number of --parent", self.parent.len(), format!("at most {MAX_PARENTS}")));
        }
        let first = self.uplink_port.unwrap_or(DEFAULT_UPLINK_PORT);
        let count = self.uplink_jobs.unwrap_or(DEFAULT_UPLINK_JOBS);
        let all = u32::from(count) * threads as u32;
        if u32::from(first) + all - 1 > u32::from(u16::MAX) {
            let of_threads = if threads > 1 { " per thread" } else { "" };
            let most = u32::from(u16::MAX) + 1 - all;
            let expected = format!(
                "at most {most}, because the switch needs {all} consecutive ports (uplink_jobs{of_threads})"
            );
            return Err(bad("uplink_port", first, expected));
        }
        Ok((first, count))
    }

    /// Returns the number of threads for a machine with `cores` cores.
    fn threads(&self, interfaces: &[PortSpec], cores: usize) -> Result<Threads, ConfigError> {
        let has_xdp = interfaces.iter().any(|spec| spec.xdp.is_some());
        if has_xdp && self.threads.is_some_and(|count| count > 1) {
            // AF_XDP sockets are bound to the queues of a network card, which are not selected by UDP port.
            return Err(bad("threads", self.threads.unwrap_or(1), "1, because a port has the prefix xdp:"));
        }
        let room = self.port_room();
        let threads = match self.threads {
            Some(count) => Threads { count: count.into(), is_chosen: true },
            None if has_xdp || self.card.is_some() || !self.parent.is_empty() => {
                Threads { count: 1, is_chosen: false }
            }
            None => {
                // Firewalls often allow only one UDP port, so a switch without raw ports uses further ports only on
                // request.
                let count = interfaces.len().min(cores / CORES_PER_THREAD);
                Threads { count: count.min(room).clamp(1, MAX_PARTS), is_chosen: false }
            }
        };
        if threads.count > room {
            let expected =
                format!("at most {room}: each thread uses the next consecutive UDP port, up to 65535");
            return Err(bad("threads", threads.count, expected));
        }
        Ok(threads)
    }

    /// Returns the number of UDP ports from the highest configured port to 65535, both included. Port 0, which selects
    /// a free port, does not limit this number.
    fn port_room(&self) -> usize {
        let udp = self.udp.iter().map(SocketAddrV4::port);
        let raw = (!self.port.is_empty()).then(|| self.udp_port.unwrap_or(DEFAULT_PORT));
        let highest = udp.chain(raw).max().unwrap_or(0);
        usize::from(u16::MAX - highest) + 1
    }

    /// Fills in the defaults and checks constraints between settings. `job_keys` are the keys in the key files.
    fn resolve(self, job_keys: Vec<(Option<u32>, Key)>, origins: Origins) -> Result<Config, ConfigError> {
        let given = self.clone();
        let interfaces = self.ports(|text, expected| bad("port", text, expected))?;
        let threads = self.threads(&interfaces, thread::available_parallelism().map_or(1, usize::from))?;
        let uplink_ports = self.uplink_ports(threads.count)?;
        let ports = self.udp.len() + self.port.len();
        if ports == 0 {
            return Err(ConfigError::NoPorts);
        }
        let room = MAX_PORTS - usize::from(uplink_ports.1);
        if ports > room {
            return Err(bad("number of --udp and --port", ports, format!("at most {room}")));
        }
        let classifier = Classifier {
            control_tos: self.control_tos.unwrap_or(DEFAULT_CONTROL_TOS),
            data_tos: self.data_tos.unwrap_or(DEFAULT_DATA_TOS),
            udp_port: self.udp_port.unwrap_or(DEFAULT_PORT),
        };
        if classifier.control_tos == classifier.data_tos {
            let tos = format!("{:#04x}, the same as control_tos", classifier.data_tos);
            return Err(bad("data_tos", tos, "a different value"));
        }
        let mut config = Config {
            switch: self.resolve_switch()?,
            job_keys,
            udp: self.udp,
            parents: self.parent,
            uplink_ports,
            threads,
            card: None,
            interfaces,
            classifier,
            buffer_bytes: self.recv_buffer_bytes.unwrap_or(DEFAULT_RECV_BUFFER_BYTES),
            offload: self.offload.unwrap_or(true),
            ingress_rule: self.ingress_rule.unwrap_or(true),
            spin: self.spin_us.map_or(DEFAULT_SPIN, |us| Duration::from_micros(us.into())),
            control_socket: self.control_socket.or_else(default_control_socket),
            stop_on_stdin_eof: false,
            metrics: self.metrics,
            flight_recorder: self.flight_recorder,
            sandbox: self.sandbox.unwrap_or(true),
            user: self.user,
            log_format: self.log_format.unwrap_or(LogFormat::Text),
            log_level: self.log_level.unwrap_or(LogLevel::Info),
            settings: Self::default(),
            origins,
        };
        card::apply(&given, &mut config)?;
        config.settings = given.filled(&config);
        Ok(config)
    }

    fn resolve_switch(&self) -> Result<iswitch_switch::Config, ConfigError> {
        let default = iswitch_switch::Config::default();
        let memory_mib = self.memory_mib.unwrap_or(DEFAULT_MEMORY_MIB);
        let job_memory_mib = self.job_memory_mib.unwrap_or(memory_mib);
        if job_memory_mib > memory_mib {
            return Err(bad("job_memory_mib", job_memory_mib, format!("at most {memory_mib} (memory_mib)")));
        }
        let mib = |number: u32| (number as usize) << 20;
        let StrangerLimits { source_rate, total_rate, .. } = default.strangers;
        let strangers = StrangerLimits {
            source_rate: self.join_rate.unwrap_or(source_rate),
            total_rate: self.total_join_rate.unwrap_or(total_rate),
            ..default.strangers
        };
        let non_finite = match self.non_finite {
            None | Some(NonFinite::Refuse) => iswitch_switch::NonFinite::Refuse,
            Some(NonFinite::Sum) => iswitch_switch::NonFinite::Sum,
        };
        Ok(iswitch_switch::Config {
            lease_ms: self.lease_ms.unwrap_or(DEFAULT_LEASE_MS),
            slow_ms: self.slow_ms.unwrap_or(DEFAULT_SLOW_MS),
            memory_bytes: mib(memory_mib),
            job_memory_bytes: mib(job_memory_mib),
            max_jobs_per_source: self
                .max_jobs_per_source
                .map_or(default.max_jobs_per_source, |jobs| jobs as usize),
            strangers,
            non_finite,
            ordered: self.ordered.unwrap_or(false),
            group_delivery: self.group_delivery == Some(GroupDelivery::Auto),
            ..default
        })
    }
}

/// Parses a byte in decimal, or in hexadecimal with the prefix 0x.
fn parse_byte(text: &str) -> Result<u8, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "expected a number from 0 to 255, or from 0x00 to 0xff in hexadecimal".to_owned())
}

fn bad(key: impl Into<String>, value: impl Display, expected: impl Into<String>) -> ConfigError {
    ConfigError::Value { key: key.into(), value: value.to_string(), expected: expected.into() }
}

#[cfg(test)]
mod tests;
