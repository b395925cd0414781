//! The C interface, declared in `include/iswitch.h`: so that any training binary can link it.
//!
//! The header is generated from this file by cbindgen; `tests/c_interface.rs` keeps them equal.

// Pointers from C can only be trusted, not checked.
#![allow(unsafe_code)]

pub mod asynchronous;

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use iswitch_protocol::key_file;

use crate::aggregate::{AggregateError, GradientAggregator};
use crate::worker::{JoinError, JoinOptions, Worker};

/// Outcome of a call. `iswitch_last_error` has the details.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IswitchStatus {
    /// Done.
    Ok = 0,
    /// An argument is wrong: a null pointer, a bad address, a vector of the wrong length.
    InvalidArgument = 1,
    /// The switch did not answer.
    SwitchLost = 2,
    /// The switch refused to let the worker join, or a contribution.
    Refused = 3,
    /// The other workers did not come in time.
    Stalled = 4,
    /// The vector holds NaN or an infinity; nothing was sent.
    NonFinite = 5,
    /// The switch no longer counts this worker as a member and does not take it back.
    Expelled = 6,
    /// The job is halted.
    Halted = 7,
    /// The round is over: the job was reset or went on without this worker. The next call takes part again.
    StaleRound = 8,
    /// The socket failed.
    Io = 9,
    /// A defect of the library.
    Internal = 10,
    /// The others went on without this worker, which is a member again but lacks the sums in between.
    MissedRounds = 11,
    /// The weights of this worker and of another differ, although they have applied the same sums.
    Diverged = 12,
    /// The worker was closed while the call waited.
    Closed = 13,
}

/// What a worker declares when it joins. Fill it with `iswitch_join_options_init` first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IswitchJoinOptions {
    /// "ADDRESS:PORT" of the switch, IPv4.
    pub switch_address: *const c_char,
    /// The job; jobs on one switch are told apart by this number.
    pub job: u32,
    /// Workers that the job starts with; 0: as many as there are.
    pub workers: u16,
    /// Floats in a packet: 366 for an MTU of 1500 bytes, 364 with `tag_data`.
    pub segment_floats: u16,
    /// Floats in the vector.
    pub gradient_len: u32,
    /// Place of this worker where the switch adds in a fixed order (iswitchd --ordered).
    pub rank: u16,
    /// How long to wait for the switch to answer a Join, in milliseconds.
    pub connect_timeout_ms: u32,
    /// How long to wait for the other workers to join, in milliseconds; 0: for ever.
    pub workers_timeout_ms: u32,
    /// How long a round may take, in milliseconds; 0: for ever.
    pub round_timeout_ms: u32,
    /// File with the job's key, made by `iswitchctl keygen`; null: the job has none.
    pub key_file: *const c_char,
    /// Whether data packets are tagged with the key as well, the same on all workers; two floats less fit in each.
    pub tag_data: bool,
}

/// What one aggregation was.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct IswitchRound {
    /// Number of the round.
    pub number: u32,
    /// Gradients inside the sum; where segments differ, the smallest count.
    pub contributors: u16,
    /// Whether all segments hold the same number of gradients.
    pub uniform: bool,
}

/// A worker that has joined a job. To be used by one thread at a time.
pub struct IswitchWorker(Worker);

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

fn fail(status: IswitchStatus, message: &str) -> IswitchStatus {
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    LAST_ERROR.with(|last| *last.borrow_mut() = message);
    status
}

/// No panic crosses into C, where unwinding is undefined.
fn guarded(call: impl FnOnce() -> IswitchStatus) -> IswitchStatus {
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|_| fail(IswitchStatus::Internal, "the library panicked"))
}

fn join_status(error: &JoinError) -> IswitchStatus {
    match error {
        JoinError::Layout(_)
        | JoinError::PathMtu { .. }
        | JoinError::NoSwitch
        | JoinError::TagsWithoutKey => IswitchStatus::InvalidArgument,
        JoinError::NoAnswer { .. } => IswitchStatus::SwitchLost,
        JoinError::Refused { .. } | JoinError::KeyRefused { .. } => IswitchStatus::Refused,
        JoinError::WorkersMissing { .. } | JoinError::State(_) => IswitchStatus::Stalled,
        JoinError::Io(_) => IswitchStatus::Io,
        JoinError::Interrupted => IswitchStatus::Internal,
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
        // Of rings, parameter servers and callers that give up, which C does not know.
        AggregateError::PeerLost { .. } | AggregateError::Interrupted => IswitchStatus::Internal,
    }
}

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
        segment_floats: defaults.segment_floats,
        gradient_len: 0,
        rank: defaults.rank,
        connect_timeout_ms: defaults.connect_timeout.as_millis() as u32,
        workers_timeout_ms: 0,
        round_timeout_ms: 0,
        key_file: std::ptr::null(),
        tag_data: false,
    };
    if !options.is_null() {
        // SAFETY: not null, and the caller vouches for the memory.
        unsafe { options.write(filled) };
    }
}

/// Joins a job and waits until all its workers have. On success `*worker` must be given to `iswitch_leave`.
///
/// # Safety
/// `options` is null or points to a struct whose `switch_address` and `key_file` are null or end with a zero byte;
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

/// Joins by `join`, and hands out what that gives.
///
/// # Safety
/// As for `iswitch_join`.
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
        // SAFETY: the caller vouches for the pointers in it.
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

/// The same for Rust, or what is wrong with it.
///
/// # Safety
/// Its pointers are null or point to texts that end with a zero byte.
unsafe fn join_options(options: &IswitchJoinOptions) -> Result<JoinOptions, String> {
    if options.switch_address.is_null() {
        return Err("switch_address is a null pointer".to_owned());
    }
    // SAFETY: not null, and the caller vouches that it ends with a zero byte.
    let text = unsafe { CStr::from_ptr(options.switch_address) }.to_string_lossy();
    let switch =
        text.parse().map_err(|_| format!("switch_address is {text:?}, expected an IPv4 ADDRESS:PORT"))?;
    let mut join = JoinOptions::new(switch, options.workers, options.gradient_len);
    join.job = options.job;
    join.segment_floats = options.segment_floats;
    join.rank = options.rank;
    join.connect_timeout = Duration::from_millis(u64::from(options.connect_timeout_ms));
    join.workers_timeout = milliseconds(options.workers_timeout_ms);
    join.round_timeout = milliseconds(options.round_timeout_ms);
    join.tag_data = options.tag_data;
    if !options.key_file.is_null() {
        // SAFETY: not null, and the caller vouches that it ends with a zero byte.
        let path = unsafe { CStr::from_ptr(options.key_file) };
        let path = Path::new(OsStr::from_bytes(path.to_bytes()));
        let key = key_file::read(path).map_err(|error| format!("key_file {}: {error}", path.display()))?;
        join.key = Some(key);
    }
    Ok(join)
}

/// Replaces `vector` by its sum over all workers; blocks until it is there. `round` may be null.
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

/// Like `iswitch_all_reduce`, divided by the number of gradients that were really summed.
///
/// # Safety
/// As for `iswitch_all_reduce`.
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

type Reduce = fn(&mut Worker, &mut [f32]) -> Result<crate::aggregate::Round, AggregateError>;

/// # Safety
/// As for `iswitch_all_reduce`.
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
        // SAFETY: not null, and the caller vouches that it points to `len` floats.
        let vector = unsafe { std::slice::from_raw_parts_mut(vector, len) };
        match reduce(&mut worker.0, vector) {
            Ok(done) => {
                // SAFETY: the caller vouches for the pointer; null becomes `None`.
                if let Some(out) = unsafe { round.as_mut() } {
                    let crate::aggregate::Round { number, contributors, uniform } = done;
                    *out = IswitchRound { number, contributors, uniform };
                }
                IswitchStatus::Ok
            }
            Err(error) => fail(aggregate_status(&error), &error.to_string()),
        }
    })
}

/// Leaves the job and frees the worker, whatever the outcome. A null pointer is ignored.
///
/// # Safety
/// `worker` is null or comes from `iswitch_join` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_leave(worker: *mut IswitchWorker) -> IswitchStatus {
    guarded(|| {
        if worker.is_null() {
            return IswitchStatus::Ok;
        }
        // SAFETY: not null, made by `Box::into_raw` in `iswitch_join`, and given back once.
        let worker = unsafe { Box::from_raw(worker) };
        match worker.0.leave() {
            Ok(()) => IswitchStatus::Ok,
            Err(error) => fail(aggregate_status(&error), &error.to_string()),
        }
    })
}

/// What went wrong in this thread's last call that failed; valid until its next one. Never null.
#[unsafe(no_mangle)]
pub extern "C" fn iswitch_last_error() -> *const c_char {
    LAST_ERROR.with(|last| last.borrow().as_ptr())
}
