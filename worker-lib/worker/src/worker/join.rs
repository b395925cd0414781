//! Options for joining a job, and the reasons why a join can fail.

use std::error::Error;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZero;
use std::time::Duration;

use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, DEFAULT_MTU_BYTES, DEFAULT_SEGMENT_FLOATS, MAX_MEMBERS, MAX_PARTS, PROTOCOL_VERSION,
    SEG_LEN_BYTES, async_generations,
};
use iswitch_protocol::segment::LayoutError;
use iswitch_protocol::wire::{Classifier, Exceeded, JoinRepr, Mode, NameRepr, Status};
use iswitch_protocol::{ElementTypes, Key, Label};

use super::state::StateError;

/// Default of [`JoinOptions::spin`].
pub(crate) const DEFAULT_SPIN: Duration = Duration::from_micros(100);

/// Default of [`JoinOptions::failover_timeout`]. A worker repeats an unanswered request about ten times within this
/// time, so packet loss alone hardly ever makes it move. After a switch failure, training continues at another switch
/// within about a second.
const DEFAULT_FAILOVER_TIMEOUT: Duration = Duration::from_millis(750);

/// Number of cores per thread of a worker, if the caller does not set the number of threads. The ratio leaves cores for
/// the switch and for other workers.
const CORES_PER_THREAD: usize = 4;

/// Timeouts of [`JoinOptions`] that are overridden by the time limit of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub(super) connect: Duration,
    pub(super) workers: Option<Duration>,
    pub(super) round: Option<Duration>,
}

/// Options with which a worker joins a job. Start from [`JoinOptions::new`].
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// Address of the switch.
    pub switch: SocketAddrV4,
    /// Addresses of further switches, in the order in which the worker tries them if [`Self::switch`] is silent or the
    /// job does not become complete there; at most 15. All workers of the job must have the same switches in the same
    /// order, and [`Self::workers`] must not be zero. The job then waits for all of its workers: it does not continue
    /// without a worker that is lost.
    pub standbys: Vec<SocketAddrV4>,
    /// Time for which a switch may be silent before the worker moves to the next one, if there are [`Self::standbys`].
    /// It should be at least half a second: in a round that waits for other workers, the worker asks the switch for
    /// results only every quarter of a second.
    pub failover_timeout: Duration,
    /// Local address to send from; the unspecified address lets the kernel choose.
    pub local: SocketAddrV4,
    /// Number of the job. It distinguishes the jobs on one switch.
    pub job: u32,
    /// Number of workers with which the job starts: no sum is delivered before this number of workers has joined. Zero
    /// means any number, for a job in which workers may join and leave at any time.
    pub workers: u16,
    /// Rank of this worker, which determines the order of addition if the switch adds in a fixed order (`iswitchd
    /// --ordered`). Runs are then bit-identical if each worker has the same rank in all runs and no two workers share a
    /// rank.
    pub rank: u16,
    /// Names of the job and of this worker, which the switch shows to operators in its status, its log and its
    /// metrics. They have no effect on sums. By default, only the host name of this machine is set. If
    /// [`NameRepr::rank`] is `None`, the switch shows [`Self::rank`], unless it is 0.
    pub name: NameRepr,
    /// Number of floats in the vector, the same on all workers.
    pub gradient_len: u32,
    /// Number of floats in a packet, the same on all workers; 366 fill an MTU of 1500 bytes, or 732 if elements have 16
    /// bits.
    pub segment_floats: u16,
    /// Element types of data packets, the same on all workers. See [`Self::with_elements`].
    pub elements: ElementTypes,
    /// ToS of control packets; the low two bits are zero.
    pub control_tos: u8,
    /// ToS of data packets; the low two bits are zero.
    pub data_tos: u8,
    /// Size of the receive buffer to request from the kernel, in bytes. Without `CAP_NET_ADMIN`, the size is limited by
    /// `net.core.rmem_max`.
    pub recv_buffer_bytes: usize,
    /// Whether to transfer several packets per system call if the kernel supports it.
    pub offload: bool,
    /// Time for which the worker polls for packets before it sleeps until one arrives. It polls only as long as
    /// packets arrive within about this time. Polling avoids a wake-up, which takes tens of microseconds; sleeping
    /// lets other threads use the core.
    pub spin: Duration,
    /// Number of threads that send and receive during a call, if the vector is divided among the threads of the switch
    /// (`iswitchd --threads`); zero means one thread for every four cores of this machine. More threads are worthwhile
    /// only if there are cores that neither the switch nor other workers use.
    pub threads: usize,
    /// Whether to share the learner's state with workers that join late; see
    /// [`Worker::publish_state`](super::Worker::publish_state).
    pub shares_state: bool,
    /// Worker from which to fetch the learner's state; `None` selects the one that the switch names.
    pub peer: Option<SocketAddrV4>,
    /// Time to wait for the switch to answer.
    pub connect_timeout: Duration,
    /// Time to wait for the other workers to join; `None` waits forever.
    pub workers_timeout: Option<Duration>,
    /// Time that the switch may be silent in a round before the call fails.
    pub switch_timeout: Duration,
    /// Time that a round may take, even if the switch answers; `None` waits forever.
    pub round_timeout: Option<Duration>,
    /// Key of the job, or `None` if the job has no key. If a job has a key, the switch ignores workers without it. See
    /// [`Self::with_key`].
    pub key: Option<Key>,
    /// Whether data packets are also tagged with the key; must be the same on all workers.
    pub tag_data: bool,
    /// Whether the switch may send results to this worker through a multicast group, as one copy for several workers.
    /// The worker receives results by unicast until it has received packets of the group.
    pub group_delivery: bool,
    /// Whether to send vectors that contain NaN or infinities. Requires a switch that sums them (`iswitchd --non-finite
    /// sum`).
    pub sends_non_finite: bool,
}

impl JoinOptions {
    /// Creates options to join job 0 of the switch at `switch` with vectors of `gradient_len` floats, as one of
    /// `workers` workers.
    pub fn new(switch: SocketAddrV4, workers: u16, gradient_len: u32) -> Self {
        let Classifier { control_tos, data_tos, .. } = Classifier::default();
        Self {
            switch,
            standbys: Vec::new(),
            failover_timeout: DEFAULT_FAILOVER_TIMEOUT,
            local: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
            job: 0,
            workers,
            rank: 0,
            name: NameRepr {
                host: Label::lossy(&iswitch_socket::host_name().unwrap_or_default()),
                ..NameRepr::UNKNOWN
            },
            gradient_len,
            segment_floats: DEFAULT_SEGMENT_FLOATS,
            elements: ElementTypes::F32,
            control_tos,
            data_tos,
            recv_buffer_bytes: 8 << 20,
            offload: true,
            spin: DEFAULT_SPIN,
            threads: 0,
            shares_state: false,
            peer: None,
            connect_timeout: Duration::from_secs(10),
            workers_timeout: None,
            switch_timeout: Duration::from_secs(10),
            round_timeout: None,
            key: None,
            tag_data: false,
            group_delivery: true,
            sends_non_finite: false,
        }
    }

    /// Sets the job's key, with which control packets are authenticated. If `tag_data` is set, data packets are
    /// authenticated as well, and each of them has room for two fewer floats, or four fewer 16-bit elements.
    #[must_use]
    pub fn with_key(mut self, key: Key, tag_data: bool) -> Self {
        if tag_data && !self.tag_data {
            let tag_floats = DATA_TAG_LEN_BYTES / self.elements.longest_len_bytes();
            self.segment_floats = self.segment_floats.saturating_sub(tag_floats as u16);
        }
        self.key = Some(key);
        self.tag_data = tag_data;
        self
    }

    /// Sets the element types of data packets, and sets the number of floats in a packet to the maximum for an MTU of
    /// 1500 bytes. With 16-bit elements, vectors take half as many bytes. The switch sums in 32 bits and rounds each
    /// sum once.
    #[must_use]
    pub fn with_elements(mut self, elements: ElementTypes) -> Self {
        self.elements = elements;
        self.segment_floats = self.default_segment_floats();
        self
    }

    /// Returns the options with these element types and with packets of unchanged length.
    pub(super) fn in_elements(&self, elements: ElementTypes) -> Self {
        Self { segment_floats: self.segment_floats_in(elements), elements, ..self.clone() }
    }

    /// Returns the number of elements of these types that fit in packets of unchanged length.
    pub(super) fn segment_floats_in(&self, elements: ElementTypes) -> u16 {
        let len_bytes = usize::from(self.segment_floats) * self.elements.longest_len_bytes();
        (len_bytes / elements.longest_len_bytes()).min(usize::from(u16::MAX)) as u16
    }

    fn default_segment_floats(&self) -> u16 {
        self.elements.segment_floats_for_mtu(DEFAULT_MTU_BYTES, self.tag_data)
    }

    /// Returns the options with the segment size that a switch with a parent expects, if `error` shows that it refused
    /// the default segment size for 16-bit elements (requirement H-10).
    pub(super) fn with_partial_segments(&self, error: &JoinError) -> Option<Self> {
        let JoinError::Refused { status: Status::SegmentSizeMismatch, expected, .. } = error else {
            return None;
        };
        let fits = ElementTypes::F32.segment_floats_for_mtu(DEFAULT_MTU_BYTES, self.tag_data);
        let is_default = self.segment_floats == self.default_segment_floats();
        let adapts = is_default && *expected == u32::from(fits) && self.segment_floats > fits;
        adapts.then(|| Self { segment_floats: fits, ..self.clone() })
    }

    /// Returns the options without group delivery, if `error` may have been caused by a switch that does not support
    /// it.
    pub(super) fn without_groups(&self, error: &JoinError) -> Option<Self> {
        let is_malformed = matches!(error, JoinError::Refused { status: Status::Malformed, .. });
        (is_malformed && self.group_delivery).then(|| Self { group_delivery: false, ..self.clone() })
    }

    /// Returns the Join, padded to the length of a data packet, so that it arrives only if the path also carries data
    /// packets.
    pub(super) fn repr(&self, instance: u32) -> JoinRepr {
        let packet_len = SEG_LEN_BYTES + usize::from(self.segment_floats) * self.elements.longest_len_bytes();
        JoinRepr {
            instance,
            rank: self.rank,
            elements: self.elements,
            tagged: self.tag_data,
            groups: self.group_delivery,
            roams: !self.standbys.is_empty(),
            padding_len: JoinRepr::padding_to(packet_len, self.tag_data, self.key.is_some()),
            ..JoinRepr::worker(self.gradient_len, self.segment_floats, self.workers)
        }
    }

    /// Returns the names that the worker sends to the switch.
    pub(super) fn stated_name(&self) -> NameRepr {
        let rank = self.name.rank.or((self.rank != 0).then_some(self.rank));
        NameRepr { rank, ..self.name }
    }

    /// Returns the number of threads that drive the parts of a vector.
    pub(super) fn thread_count(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        if self.threads == 0 { cores() / CORES_PER_THREAD } else { self.threads }.clamp(1, MAX_PARTS)
    }

    pub(super) fn timeouts(&self) -> Timeouts {
        Timeouts { connect: self.connect_timeout, workers: self.workers_timeout, round: self.round_timeout }
    }

    pub(super) fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.connect_timeout = timeouts.connect;
        self.workers_timeout = timeouts.workers;
        self.round_timeout = timeouts.round;
    }

    /// Returns the maximum number of members of the job.
    fn max_members(&self) -> usize {
        if self.workers == 0 { MAX_MEMBERS } else { usize::from(self.workers) }
    }

    /// Returns the reason for a refusal as text. The text names either the field, its value and the expected value, or
    /// the limit of the switch.
    pub(super) fn refusal(
        &self,
        mode: Mode,
        status: Status,
        expected: u32,
        exceeded: Option<Exceeded>,
    ) -> String {
        let name = status.name();
        let differs = |declared: u32| format!("{name} is {declared}, expected {expected}");
        match status {
            Status::GradientLenMismatch => differs(self.gradient_len),
            Status::SegmentSizeMismatch => differs(u32::from(self.segment_floats)),
            Status::ElementTypeMismatch => {
                let [contributions, results, ..] = expected.to_le_bytes();
                let theirs = ElementTypes::from_codes(contributions, results);
                let theirs = theirs.map_or_else(|| expected.to_string(), |theirs| theirs.to_string());
                format!("{name}: {}, expected {theirs}", self.elements)
            }
            Status::ModeMismatch => differs(mode as u32),
            Status::WorkersMismatch => differs(u32::from(self.workers)),
            Status::WrongVersion => differs(u32::from(PROTOCOL_VERSION)),
            Status::JobFull => format!("job {} already has all its {expected} members", self.job),
            Status::TagMismatch => format!("{name}: {}, expected {}", self.tag_data, expected != 0),
            Status::NotAuthentic => format!("job {} has a key, but this worker has none", self.job),
            Status::Malformed if !self.standbys.is_empty() => {
                format!("{name}; the switch may not support workers with several switches")
            }
            Status::TooManyLevels if !self.standbys.is_empty() => {
                "the switch has a parent, but a worker with several switches must join a switch without a parent"
                    .to_owned()
            }
            Status::ForeignJob => format!("{} is a member of job {expected}", self.local),
            Status::NoCapacity if expected == 0 => {
                let limit = exceeded.map_or(String::new(), |exceeded| format!(": {exceeded}"));
                format!("the switch has no capacity for another job{limit}")
            }
            Status::NoCapacity => {
                let vectors = match mode {
                    Mode::Synchronous => 2,
                    Mode::Asynchronous => async_generations(self.gradient_len) + self.max_members(),
                };
                let needed_kib = u64::from(self.gradient_len) * (vectors * size_of::<f32>()) as u64 / 1024;
                let more = if mode == Mode::Synchronous { " (more with ordered sums)" } else { "" };
                let limit = exceeded.map_or(String::new(), |exceeded| format!("; {exceeded}"));
                format!("the job needs {needed_kib} KiB{more}, but the switch has {expected} KiB left{limit}")
            }
            _ => status.reason(expected).to_owned(),
        }
    }
}

/// Reason why a worker could not join.
#[non_exhaustive]
#[derive(Debug)]
pub enum JoinError {
    /// The vector cannot be divided into segments with these options.
    Layout(LayoutError),
    /// The list of switches is empty.
    NoSwitch,
    /// The list of switches is too long.
    TooManySwitches {
        /// Number of switches.
        count: usize,
    },
    /// The worker has several switches, but the job has no fixed number of workers.
    StandbysWithoutWorkers,
    /// The switch did not answer.
    NoAnswer {
        /// Address of the switch.
        switch: SocketAddrV4,
        /// Time waited.
        waited: Duration,
        /// Last error of the socket; empty if there was none.
        detail: String,
    },
    /// The switch refused the Join.
    Refused {
        /// Status of the refusal, which names the field or resource.
        status: Status,
        /// Value that the switch expected; see [`Status`].
        expected: u32,
        /// The field, the value that this worker declared, and the value that the switch expected.
        reason: String,
    },
    /// Data packets cannot be tagged without a key.
    TagsWithoutKey,
    /// The only answers from the switch's address were refusals of this worker's key, which may be forged.
    KeyRefused {
        /// Address of the switch.
        switch: SocketAddrV4,
        /// Job number.
        job: u32,
        /// Time waited.
        waited: Duration,
        /// Whether the job has a key, according to that unauthenticated answer.
        has_key: bool,
    },
    /// The path does not carry packets that are long enough for a segment.
    PathMtu {
        /// Address of the switch.
        switch: SocketAddrV4,
        /// Length of the UDP payload that was tried, in bytes.
        len: usize,
        /// Number of floats in a segment.
        segment_floats: u16,
    },
    /// The switch, or one of its ancestors, divides the vector into fewer parts than the running job does.
    FewerParts {
        /// Address of the switch.
        switch: SocketAddrV4,
        /// Number of parts that the switch announced.
        announced: u8,
        /// Number of parts of the job.
        parts: usize,
    },
    /// The timeout expired before the switches had admitted this worker to all parts of a running job at the same
    /// vector.
    PartsApart {
        /// Time waited.
        waited: Duration,
    },
    /// The other workers did not join within the timeout.
    WorkersMissing {
        /// Number of workers that have joined.
        present: u16,
        /// Number of workers that must join before the job starts.
        workers: u16,
        /// Time waited.
        waited: Duration,
    },
    /// The caller cancelled the wait.
    Interrupted,
    /// The job is running, but no other worker provided its state.
    State(StateError),
    /// The socket failed.
    Io(std::io::Error),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(error) => error.fmt(f),
            Self::NoSwitch => f.write_str("no switch address was given, expected at least one"),
            Self::TooManySwitches { count } => {
                write!(f, "the number of switches is {count}, expected at most {MAX_PARTS}")
            }
            Self::StandbysWithoutWorkers => f.write_str(
                "workers is 0, but the worker has several switches and must know the number of workers in the job",
            ),
            Self::NoAnswer { switch, waited, detail } => write!(
                f,
                "no answer from the switch {switch} within {waited:?} (is iswitchd running there?){detail}"
            ),
            Self::Refused { reason, .. } => write!(f, "the switch refused the Join: {reason}"),
            Self::TagsWithoutKey => {
                f.write_str("tag_data is true, which requires a key, but no key is given")
            }
            Self::KeyRefused { switch, job, waited, has_key } => {
                let which = match has_key {
                    true => "a different key",
                    false => "no key (give iswitchd the same --key-file)",
                };
                write!(
                    f,
                    "the switch {switch} has not proved within {waited:?} that it has this worker's key for job {job}; \
                     the switch says that the job has {which}"
                )
            }
            Self::PathMtu { switch, len, segment_floats } => write!(
                f,
                "a packet of {len} bytes does not fit the path to {switch}: segment_floats is \
                 {segment_floats}; reduce segment_floats, or raise the MTU"
            ),
            Self::FewerParts { switch, announced, parts } => write!(
                f,
                "the switch {switch} sums vectors in {announced} parts, but the job has {parts} (start all switches of \
                 a tree with the same --threads)"
            ),
            Self::PartsApart { waited } => {
                write!(f, "the parts of the job did not reach the same vector within {waited:?}")
            }
            Self::WorkersMissing { present, workers, waited } => {
                write!(f, "{present} of {workers} workers joined within {waited:?}")
            }
            Self::Interrupted => f.write_str("interrupted while joining"),
            Self::State(error) => error.fmt(f),
            Self::Io(error) => write!(f, "socket: {error}"),
        }
    }
}

impl Error for JoinError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Layout(error) => Some(error),
            Self::State(error) => error.source(),
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LayoutError> for JoinError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

impl From<StateError> for JoinError {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl From<std::io::Error> for JoinError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
