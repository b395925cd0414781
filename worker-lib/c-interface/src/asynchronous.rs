//! C interface of asynchronous workers, which do not wait for each other.

use iswitch::AsyncWorker;

use super::{IswitchJoinOptions, IswitchStatus, aggregate_status, fail, guarded, join_as};

/// Worker of an asynchronous job. Several threads may use it: for example, one submits vectors and another one receives
/// sums.
pub struct IswitchAsyncWorker(AsyncWorker);

/// Description of one sum of an asynchronous job.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct IswitchAggregate {
    /// Sequence number of the sum; sums are delivered in order and without gaps.
    pub number: u32,
    /// Number of gradients in the sum.
    pub contributions: u16,
}

/// Joins a job in asynchronous mode and waits until all its workers have joined; `round_timeout_ms` is ignored. On
/// success, the caller must later pass `*worker` to `iswitch_async_leave`.
///
/// # Safety
/// The requirements of `iswitch_join` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_async_join(
    options: *const IswitchJoinOptions,
    worker: *mut *mut IswitchAsyncWorker,
) -> IswitchStatus {
    let join = |options| AsyncWorker::join(options).map(IswitchAsyncWorker);
    // SAFETY: the caller vouches for the pointers.
    unsafe { join_as(options, worker, join) }
}

/// Submits a vector to be sent. Waits until the previous vector is part of an aggregate and the received sums have been
/// taken, but does not wait until this vector has been sent.
///
/// # Safety
/// `worker` is null or comes from `iswitch_async_join`; `vector` is null or points to `len` floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_async_submit(
    worker: *const IswitchAsyncWorker,
    vector: *const f32,
    len: usize,
) -> IswitchStatus {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer; null becomes `None`.
        let Some(worker) = (unsafe { worker.as_ref() }) else {
            return fail(IswitchStatus::InvalidArgument, "worker is a null pointer");
        };
        if vector.is_null() {
            return fail(IswitchStatus::InvalidArgument, "vector is a null pointer");
        }
        // SAFETY: the pointer is not null, and the caller vouches that it points to `len` floats.
        let vector = unsafe { std::slice::from_raw_parts(vector, len) };
        match worker.0.submit(vector) {
            Ok(_) => IswitchStatus::Ok,
            Err(error) => fail(aggregate_status(&error), &error.to_string()),
        }
    })
}

/// Waits for the next sum and copies it to `sum`. `aggregate` may be null. If the status is
/// `ISWITCH_STATUS_MISSED_ROUNDS`, this worker lacks sums: obtain the state of another worker before the next call.
///
/// # Safety
/// `worker` is null or comes from `iswitch_async_join`; `sum` is null or points to `len` floats; `aggregate` is null or
/// points to writable memory for the struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_async_recv_sum(
    worker: *const IswitchAsyncWorker,
    sum: *mut f32,
    len: usize,
    aggregate: *mut IswitchAggregate,
) -> IswitchStatus {
    guarded(|| {
        // SAFETY: the caller vouches for the pointer; null becomes `None`.
        let Some(worker) = (unsafe { worker.as_ref() }) else {
            return fail(IswitchStatus::InvalidArgument, "worker is a null pointer");
        };
        if sum.is_null() {
            return fail(IswitchStatus::InvalidArgument, "sum is a null pointer");
        }
        // SAFETY: the pointer is not null, and the caller vouches that it points to `len` floats.
        let sum = unsafe { std::slice::from_raw_parts_mut(sum, len) };
        match worker.0.recv_sum(sum) {
            Ok((number, contributions)) => {
                // SAFETY: the caller vouches for the pointer; null becomes `None`.
                if let Some(out) = unsafe { aggregate.as_mut() } {
                    *out = IswitchAggregate { number, contributions };
                }
                IswitchStatus::Ok
            }
            Err(error) => fail(aggregate_status(&error), &error.to_string()),
        }
    })
}

/// Makes all pending and later calls return `ISWITCH_STATUS_CLOSED`. A null pointer is ignored.
///
/// # Safety
/// `worker` is null or comes from `iswitch_async_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_async_close(worker: *const IswitchAsyncWorker) {
    // SAFETY: the caller vouches for the pointer; null becomes `None`.
    if let Some(worker) = unsafe { worker.as_ref() } {
        worker.0.close();
    }
}

/// Leaves the job and frees the worker. No other thread may still be using the worker. A null pointer is ignored.
///
/// # Safety
/// `worker` is null or comes from `iswitch_async_join` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn iswitch_async_leave(worker: *mut IswitchAsyncWorker) {
    if worker.is_null() {
        return;
    }
    // SAFETY: the pointer is not null, was created by `iswitch_async_join`, and is not used again.
    let worker = unsafe { Box::from_raw(worker) };
    guarded(|| {
        drop(worker);
        IswitchStatus::Ok
    });
}
