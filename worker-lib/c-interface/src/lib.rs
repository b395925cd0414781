//! The C interface of the worker library, declared in `include/iswitch.h`.
//!
//! cbindgen generates the header from this crate; `tests/c_interface.rs` checks that it is up to date.

// Pointers from C cannot be checked, so dereferencing them is unsafe.
#![allow(unsafe_code)]

pub mod asynchronous;

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use iswitch::{
    AggregateError, ElementTypes, GradientAggregator, JoinError, JoinOptions, Label, NameRepr, Round, Worker,
    key_file,
};

/// Version of the package, as a C string.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("the version of the package must not contain a zero byte"),
};

/// Outcome of a call. `iswitch_last_error` returns the details of a failure.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IswitchStatus {
    /// Success.
    Ok = 0,
    /// An argument is invalid, such as a null pointer, a malformed address or a vector of the wrong length.
    InvalidArgument = 1,
    /// The switch did not answer.
    SwitchLost = 2,
    /// The switch refused the worker's Join or a contribution.
    Refused = 3,
    /// Other workers did not join or contribute before the timeout.
    Stalled = 4,
    /// The vector contains NaN or an infinity; nothing was sent.
    NonFinite = 5,
    /// The switch expelled this worker and does not readmit it.
    Expelled = 6,
    /// The job is halted.
    Halted = 7,
    /// The round is over: the job was reset, or it continued without this worker. The next call can take part again.
    StaleRound = 8,
    /// The socket failed.
    Io = 9,
    /// Internal error of the library.
    Internal = 10,
    /// The job continued without this worker. The worker is a member again, but it has missed the sums of some rounds.
    MissedRounds = 11,
    /// The weights of this worker and of another one differ, although both have applied the same sums.
    Diverged = 12,
    /// The worker was closed while the call waited.
    Closed = 13,
}

/// Options with which a worker joins a job. `iswitch_join_options_init` fills in the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IswitchJoinOptions {
    /// IPv4 address and port of the switch, as "ADDRESS:PORT", or those of several switches, separated by commas. If
    /// the first switch fails, the workers move to the next one. All workers must name the same switches in the same
    /// order.
    pub switch_address: *const c_char,
    /// Number that identifies the job on the switch.
    pub job: u32,
    /// Number of workers with which the job starts; 0 means any number.
    pub workers: u16,
    /// Number of floats in a packet; 0 means as many as an MTU of 1500 bytes allows.
    pub segment_floats: u16,
    /// Number of floats in the vector.
    pub gradient_len: u32,
    /// Rank of this worker. If the switch adds in a fixed order (`iswitchd --ordered`), the ranks determine the order.
    pub rank: u16,
    /// Timeout for the switch's answer to a Join, in milliseconds.
    pub connect_timeout_ms: u32,
    /// Timeout for the other workers to join, in milliseconds; 0 means no timeout.
    pub workers_timeout_ms: u32,
    /// Timeout of a round, in milliseconds; 0 means no timeout.
    pub round_timeout_ms: u32,
    /// Path of the job's key file, as created by `iswitchctl keygen`; null if the job has no key.
    pub key_file: *const c_char,
    /// Whether data packets also carry tags computed from the key. The value must be the same on all workers. A tag
    /// takes up the space of two floats in each packet.
    pub tag_data: bool,
    /// Element types in packets, the same on all workers: "f32", "bf16", "f16", or, with results in 32 bits, "bf16-f32"
    /// or "f16-f32". Null means "f32".
    pub wire: *const c_char,
}

/// Result of one aggregation.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct IswitchRound {
    /// Round number.
    pub number: u32,
    /// Number of gradients in the sum; if it differs between segments, the smallest number.
    pub contributors: u16,
    /// Whether all segments sum the same number of gradients.
    pub uniform: bool,
}

/// Worker that has joined a job. Only one thread may use it at a time.
pub struct IswitchWorker(Worker);

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
    /// Names that workers created by this thread send to the switch; `None` stands for the default names.
    static NAME: Cell<Option<NameRepr>> = const { Cell::new(None) };
}

/// Stores the message for `iswitch_last_error`, and returns the status.
fn fail(status: IswitchStatus, message: &str) -> IswitchStatus {
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    LAST_ERROR.with(|last| *last.borrow_mut() = message);
    status
}

/// Calls a function and converts a panic into an error, because unwinding into C is undefined behaviour.
fn guarded(call: impl FnOnce() -> IswitchStatus) -> IswitchStatus {
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|_| fail(IswitchStatus::Internal, "the library panicked"))
}

fn join_status(error: &JoinError) -> IswitchStatus {
    match error {
        JoinError::Layout(_)
        | JoinError::PathMtu { .. }
        | JoinError::NoSwitch
        | JoinError::TooManySwitches { .. }
        | JoinError::StandbysWithoutWorkers
        | JoinError::TagsWithoutKey => IswitchStatus::InvalidArgument,
        JoinError::NoAnswer { .. } => IswitchStatus::SwitchLost,
        JoinError::Refused { .. } | JoinError::KeyRefused { .. } | JoinError::FewerParts { .. } => {
            IswitchStatus::Refused
        }
        JoinError::WorkersMissing { .. } | JoinError::State(_) | JoinError::PartsApart { .. } => {
            IswitchStatus::Stalled
        }
        JoinError::Io(_) => IswitchStatus::Io,
        // The only other error is `Interrupted`, and calls of the C interface cannot be interrupted.
        _ => IswitchStatus::Internal,
    }
}

fn aggregate_status(error: &AggregateError) -> IswitchStatus {
    match error {
        AggregateError::WrongLength { .. } => IswitchStatus::InvalidArgument,
        AggregateError::NonFinite { .. } => IswitchStatus::NonFinite,
        AggregateError::SwitchLost { .. } => IswitchStatus::SwitchLost,
        AggregateError::Stalled { .. } => IswitchStatus::Stalled,
        AggregateError::Expelled { .. } | AggregateError::PeerGone => IswitchStatus::Expelled,
        AggregateError::MissedRounds { .. } => IswitchStatus::MissedRounds,
        AggregateError::Halted => IswitchStatus::Halted,
        AggregateError::StaleRound { .. } => IswitchStatus::StaleRound,
        AggregateError::Refused { .. } => IswitchStatus::Refused,
        AggregateError::Io(_) => IswitchStatus::Io,
        AggregateError::Diverged { .. } => IswitchStatus::Diverged,
        AggregateError::Closed => IswitchStatus::Closed,
        // `PeerLost` and `Interrupted` occur only with rings, parameter servers and interruptible calls, which the C
        // interface lacks.
        _ => IswitchStatus::Internal,
    }
}

/// Returns a timeout, or `None` for 0.
fn milliseconds(ms: u32) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(u64::from(ms)))
}

/// Fills in the defaults; the caller then sets `switch_address`, `workers` and `gradient_len`.
///
/// # Safety
/// `options` is null or points to writable memory for the struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_join_options_init(options: *mut IswitchJoinOptions) {
    let unspecified = std::net::SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, 0);
    let defaults = JoinOptions::new(unspecified, 0, 0);
    let filled = IswitchJoinOptions {
        switch_address: std::ptr::null(),
        job: defaults.job,
        workers: 0,
        segment_floats: 0,
        gradient_len: 0,
        rank: defaults.rank,
        connect_timeout_ms: defaults.connect_timeout.as_millis() as u32,
        workers_timeout_ms: 0,
        round_timeout_ms: 0,
        key_file: std::ptr::null(),
        tag_data: false,
        wire: std::ptr::null(),
    };
    if !options.is_null() {
        // SAFETY: the pointer is not null, and the caller vouches for the memory.
        unsafe { options.write(filled) };
    }
}

/// Sets the names that the switch shows to operators: the name of the job (at most 32 bytes), its owner (at most 32
/// bytes), the host name of this machine (at most 63 bytes) and the rank of the worker, from 0 to 65534. They apply to
/// all workers with which this thread joins jobs from now on. The texts must be printable UTF-8. If `host` is null, the
/// host name of this machine is used. Any other null pointer leaves its text unknown, and a negative rank leaves the
/// rank unknown. The names have no effect on sums.
///
/// # Safety
/// Each pointer is null or points to text that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_set_name(
    job: *const c_char,
    owner: *const c_char,
    host: *const c_char,
    rank: i32,
) -> IswitchStatus {
    guarded(|| {
        let unspecified = std::net::SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, 0);
        let default_host = JoinOptions::new(unspecified, 0, 0).name.host;
        // SAFETY: the caller vouches for the pointers.
        let texts = unsafe { (label(job, "job"), label(owner, "owner"), label(host, "host")) };
        let (job, owner, host) = match texts {
            (Ok(job), Ok(owner), Ok(host)) => (job, owner, host.or(default_host)),
            (Err(problem), _, _) | (_, Err(problem), _) | (_, _, Err(problem)) => {
                return fail(IswitchStatus::InvalidArgument, &problem);
            }
        };
        if rank >= i32::from(u16::MAX) {
            return fail(IswitchStatus::InvalidArgument, &format!("rank is {rank}, expected at most 65534"));
        }
        NAME.set(Some(NameRepr { job, owner, host, rank: u16::try_from(rank).ok() }));
        IswitchStatus::Ok
    })
}

/// Converts a text to a label; a null pointer yields the empty label. The error names the argument.
///
/// # Safety
/// `text` is null or points to text that ends with a zero byte.
unsafe fn label<const N: usize>(text: *const c_char, name: &str) -> Result<Label<N>, String> {
    if text.is_null() {
        return Ok(Label::EMPTY);
    }
    // SAFETY: the pointer is not null, and the caller vouches that the text ends with a zero byte.
    let text = unsafe { CStr::from_ptr(text) };
    Label::from_utf8(text.to_bytes()).map_err(|error| format!("{name} is {text:?}: {error}"))
}

/// Joins a job and waits until all its workers have joined. On success, the caller must later pass `*worker` to
/// `iswitch_leave`.
///
/// # Safety
/// `options` is null or points to a struct whose texts are null or end with a zero byte;
/// `worker` is null or points to writable memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_join(
    options: *const IswitchJoinOptions,
    worker: *mut *mut IswitchWorker,
) -> IswitchStatus {
    let join = |options| Worker::join(options).map(IswitchWorker);
    // SAFETY: the caller vouches for the pointers.
    unsafe { join_as(options, worker, join) }
}

/// Joins with `join_worker` and stores the resulting worker in `*worker`.
///
/// # Safety
/// The requirements of `iswitch_join` apply.
unsafe fn join_as<W>(
    options: *const IswitchJoinOptions,
    worker: *mut *mut W,
    join_worker: impl FnOnce(JoinOptions) -> Result<W, JoinError>,
) -> IswitchStatus {
    guarded(|| {
        // SAFETY: the caller vouches for both pointers; null becomes `None`.
        let (options, out) = unsafe { (options.as_ref(), worker.as_mut()) };
        let (Some(options), Some(out)) = (options, out) else {
            return fail(IswitchStatus::InvalidArgument, "options or worker is a null pointer");
        };
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the pointers in `options`.
        let joined = match unsafe { join_options(options) } {
            Ok(options) => join_worker(options),
            Err(message) => return fail(IswitchStatus::InvalidArgument, &message),
        };
        match joined {
            Ok(worker) => {
                *out = Box::into_raw(Box::new(worker));
                IswitchStatus::Ok
            }
            Err(error) => fail(join_status(&error), &error.to_string()),
        }
    })
}

/// Converts the options to Rust, or returns the reason why they are invalid.
///
/// # Safety
/// The pointers in `options` are null or point to text that ends with a zero byte.
unsafe fn join_options(options: &IswitchJoinOptions) -> Result<JoinOptions, String> {
    if options.switch_address.is_null() {
        return Err("switch_address is a null pointer".to_owned());
    }
    // SAFETY: the pointer is not null, and the caller vouches that the text ends with a zero byte.
    let text = unsafe { CStr::from_ptr(options.switch_address) }.to_string_lossy();
    let expected = "expected an IPv4 ADDRESS:PORT, or several separated by commas";
    let mut switches = text
        .split(',')
        .map(|address| address.trim().parse().map_err(|_| format!("switch_address is {text:?}, {expected}")));
    let switch = switches.next().ok_or("switch_address is empty")??;
    let mut join = JoinOptions::new(switch, options.workers, options.gradient_len);
    join.standbys = switches.collect::<Result<_, _>>()?;
    join.job = options.job;
    join.rank = options.rank;
    join.name = NAME.get().unwrap_or(join.name);
    join.connect_timeout = Duration::from_millis(u64::from(options.connect_timeout_ms));
    join.workers_timeout = milliseconds(options.workers_timeout_ms);
    join.round_timeout = milliseconds(options.round_timeout_ms);
    join.tag_data = options.tag_data;
    let mut elements = ElementTypes::F32;
    if !options.wire.is_null() {
        // SAFETY: the pointer is not null, and the caller vouches that the text ends with a zero byte.
        let text = unsafe { CStr::from_ptr(options.wire) }.to_string_lossy();
        elements = text.parse().map_err(|expected| format!("wire is {text:?}, {expected}"))?;
    }
    join = join.with_elements(elements);
    if options.segment_floats != 0 {
        join.segment_floats = options.segment_floats;
    }
    if !options.key_file.is_null() {
        // SAFETY: the pointer is not null, and the caller vouches that the text ends with a zero byte.
        let path = unsafe { CStr::from_ptr(options.key_file) };
        let path = Path::new(OsStr::from_bytes(path.to_bytes()));
        let key = key_file::read(path).map_err(|error| format!("key_file {}: {error}", path.display()))?;
        join.key = Some(key);
    }
    Ok(join)
}

/// Replaces `vector` with its sum over all workers; blocks until the sum is complete. `round` may be null.
///
/// # Safety
/// `worker` is null or comes from `iswitch_join`; `vector` is null or points to `len` floats; `round` is null or
/// points to writable memory for the struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_all_reduce(
    worker: *mut IswitchWorker,
    vector: *mut f32,
    len: usize,
    round: *mut IswitchRound,
) -> IswitchStatus {
    // SAFETY: the caller vouches for the pointers.
    unsafe { reduce(worker, vector, len, round, Worker::all_reduce) }
}

/// Works like `iswitch_all_reduce`, but divides the sum by the number of gradients that it contains.
///
/// # Safety
/// The requirements of `iswitch_all_reduce` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_all_reduce_mean(
    worker: *mut IswitchWorker,
    vector: *mut f32,
    len: usize,
    round: *mut IswitchRound,
) -> IswitchStatus {
    // SAFETY: the caller vouches for the pointers.
    unsafe { reduce(worker, vector, len, round, Worker::all_reduce_mean) }
}

type Reduce = fn(&mut Worker, &mut [f32]) -> Result<Round, AggregateError>;

/// Replaces `vector` with the result of `reduce`, and describes the round in `*round` unless it is null.
///
/// # Safety
/// The requirements of `iswitch_all_reduce` apply.
unsafe fn reduce(
    worker: *mut IswitchWorker,
    vector: *mut f32,
    len: usize,
    round: *mut IswitchRound,
    reduce: Reduce,
) -> IswitchStatus {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer; null becomes `None`.
        let Some(worker) = (unsafe { worker.as_mut() }) else {
            return fail(IswitchStatus::InvalidArgument, "worker is a null pointer");
        };
        if vector.is_null() {
            return fail(IswitchStatus::InvalidArgument, "vector is a null pointer");
        }
        // SAFETY: the pointer is not null, and the caller vouches that it points to `len` floats.
        let vector = unsafe { std::slice::from_raw_parts_mut(vector, len) };
        match reduce(&mut worker.0, vector) {
            Ok(done) => {
                // SAFETY: the caller vouches for the pointer; null becomes `None`.
                if let Some(out) = unsafe { round.as_mut() } {
                    let Round { number, contributors, uniform } = done;
                    *out = IswitchRound { number, contributors, uniform };
                }
                IswitchStatus::Ok
            }
            Err(error) => fail(aggregate_status(&error), &error.to_string()),
        }
    })
}

/// Leaves the job and frees the worker, even if leaving fails. A null pointer is ignored.
///
/// # Safety
/// `worker` is null or comes from `iswitch_join` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_leave(worker: *mut IswitchWorker) -> IswitchStatus {
    guarded(|| {
        if worker.is_null() {
            return IswitchStatus::Ok;
        }
        // SAFETY: the pointer is not null, was created by `iswitch_join`, and is not used again.
        let worker = unsafe { Box::from_raw(worker) };
        match worker.0.leave() {
            Ok(()) => IswitchStatus::Ok,
            Err(error) => fail(aggregate_status(&error), &error.to_string()),
        }
    })
}

/// Returns the version of the loaded library, such as "0.1.0". It may differ from the version of the header with which
/// the program was compiled. The pointer is never null and remains valid until the program ends.
#[unsafe(no_mangle)]
pub extern "C" fn iswitch_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Returns the error message of this thread's last failed call. The pointer is never null and remains valid until the
/// thread's next failed call.
#[unsafe(no_mangle)]
pub extern "C" fn iswitch_last_error() -> *const c_char {
    LAST_ERROR.with(|last| last.borrow().as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_apply_to_the_joins_of_the_thread_and_errors_name_the_argument() {
        let set = |job: &CStr, rank| {
            // SAFETY: the texts are null or end with a zero byte.
            unsafe { iswitch_set_name(job.as_ptr(), std::ptr::null(), c"gpu07".as_ptr(), rank) }
        };
        assert_eq!(set(c"ppo", 2), IswitchStatus::Ok);
        let name = NAME.get().unwrap();
        assert_eq!((name.job.as_str(), name.owner.as_str(), name.host.as_str()), ("ppo", "", "gpu07"));
        assert_eq!(name.rank, Some(2));
        assert_eq!(set(c"ppo", -1), IswitchStatus::Ok);
        assert_eq!(NAME.get().unwrap().rank, None);
        for (job, rank, problem) in
            [(c"a\x1b", 0, "job is \"a\\x1b\""), (c"ppo", 65_535, "rank is 65535, expected")]
        {
            assert_eq!(set(job, rank), IswitchStatus::InvalidArgument);
            let message = LAST_ERROR.with(|last| last.borrow().to_string_lossy().into_owned());
            assert!(message.starts_with(problem), "{message}");
        }
        assert_eq!(NAME.get().unwrap().rank, None, "a refused call changes nothing");
        assert!(std::thread::spawn(|| NAME.get()).join().unwrap().is_none());
    }
}
