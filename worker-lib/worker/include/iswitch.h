#ifndef ISWITCH_H
#define ISWITCH_H

/* Generated from worker-lib/worker/src/capi.rs by cbindgen. Do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Outcome of a call. `iswitch_last_error` has the details.
typedef enum iswitch_status {
  // Done.
  ISWITCH_STATUS_OK = 0,
  // An argument is wrong: a null pointer, a bad address, a vector of the wrong length.
  ISWITCH_STATUS_INVALID_ARGUMENT = 1,
  // The switch did not answer.
  ISWITCH_STATUS_SWITCH_LOST = 2,
  // The switch refused to let the worker join, or a contribution.
  ISWITCH_STATUS_REFUSED = 3,
  // The other workers did not come in time.
  ISWITCH_STATUS_STALLED = 4,
  // The vector holds NaN or an infinity; nothing was sent.
  ISWITCH_STATUS_NON_FINITE = 5,
  // The switch no longer counts this worker as a member and does not take it back.
  ISWITCH_STATUS_EXPELLED = 6,
  // The job is halted.
  ISWITCH_STATUS_HALTED = 7,
  // The round is over: the job was reset or went on without this worker. The next call takes part again.
  ISWITCH_STATUS_STALE_ROUND = 8,
  // The socket failed.
  ISWITCH_STATUS_IO = 9,
  // A defect of the library.
  ISWITCH_STATUS_INTERNAL = 10,
  // The others went on without this worker, which is a member again but lacks the sums in between.
  ISWITCH_STATUS_MISSED_ROUNDS = 11,
  // The weights of this worker and of another differ, although they have applied the same sums.
  ISWITCH_STATUS_DIVERGED = 12,
  // The worker was closed while the call waited.
  ISWITCH_STATUS_CLOSED = 13,
} iswitch_status;

// A worker of an asynchronous job. Several threads may use it: one submits vectors, another takes sums.
typedef struct iswitch_async_worker iswitch_async_worker;

// A worker that has joined a job. To be used by one thread at a time.
typedef struct iswitch_worker iswitch_worker;

// What a worker declares when it joins. Fill it with `iswitch_join_options_init` first.
typedef struct iswitch_join_options {
  // "ADDRESS:PORT" of the switch, IPv4.
  const char *switch_address;
  // The job; jobs on one switch are told apart by this number.
  uint32_t job;
  // Workers that the job starts with; 0: as many as there are.
  uint16_t workers;
  // Floats in a packet: 366 for an MTU of 1500 bytes, 364 with `tag_data`.
  uint16_t segment_floats;
  // Floats in the vector.
  uint32_t gradient_len;
  // Place of this worker where the switch adds in a fixed order (iswitchd --ordered).
  uint16_t rank;
  // How long to wait for the switch to answer a Join, in milliseconds.
  uint32_t connect_timeout_ms;
  // How long to wait for the other workers to join, in milliseconds; 0: for ever.
  uint32_t workers_timeout_ms;
  // How long a round may take, in milliseconds; 0: for ever.
  uint32_t round_timeout_ms;
  // File with the job's key, made by `iswitchctl keygen`; null: the job has none.
  const char *key_file;
  // Whether data packets are tagged with the key as well, the same on all workers; two floats less fit in each.
  bool tag_data;
} iswitch_join_options;

// What one aggregation was.
typedef struct iswitch_round {
  // Number of the round.
  uint32_t number;
  // Gradients inside the sum; where segments differ, the smallest count.
  uint16_t contributors;
  // Whether all segments hold the same number of gradients.
  bool uniform;
} iswitch_round;

// What one sum of an asynchronous job is.
typedef struct iswitch_aggregate {
  // Its number; they come in order and without a gap.
  uint32_t number;
  // Worker gradients inside it.
  uint16_t contributions;
} iswitch_aggregate;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Fills in the defaults; the caller then sets `switch_address`, `workers` and `gradient_len`.
//
// # Safety
// `options` is null or points to writable memory for the struct.
void iswitch_join_options_init(struct iswitch_join_options *options);

// Joins a job and waits until all its workers have. On success `*worker` must be given to `iswitch_leave`.
//
// # Safety
// `options` is null or points to a struct whose `switch_address` and `key_file` are null or end with a zero byte;
// `worker` is null or points to writable memory for a pointer.
enum iswitch_status iswitch_join(const struct iswitch_join_options *options,
                                 struct iswitch_worker **worker);

// Replaces `vector` by its sum over all workers; blocks until it is there. `round` may be null.
//
// # Safety
// `worker` is null or comes from `iswitch_join`; `vector` is null or points to `len` floats; `round` is null or
// points to writable memory for the struct.
enum iswitch_status iswitch_all_reduce(struct iswitch_worker *worker,
                                       float *vector,
                                       size_t len,
                                       struct iswitch_round *round);

// Like `iswitch_all_reduce`, divided by the number of gradients that were really summed.
//
// # Safety
// As for `iswitch_all_reduce`.
enum iswitch_status iswitch_all_reduce_mean(struct iswitch_worker *worker,
                                            float *vector,
                                            size_t len,
                                            struct iswitch_round *round);

// Leaves the job and frees the worker, whatever the outcome. A null pointer is ignored.
//
// # Safety
// `worker` is null or comes from `iswitch_join` and is not used again.
enum iswitch_status iswitch_leave(struct iswitch_worker *worker);

// What went wrong in this thread's last call that failed; valid until its next one. Never null.
const char *iswitch_last_error(void);

// Joins a job in asynchronous mode and waits until all its workers have; `round_timeout_ms` means nothing there. On
// success `*worker` must be given to `iswitch_async_leave`.
//
// # Safety
// As for `iswitch_join`.
enum iswitch_status iswitch_async_join(const struct iswitch_join_options *options,
                                       struct iswitch_async_worker **worker);

// Hands a vector over to be sent. Waits until the one before is part of an aggregate and the sums are taken as they
// come, but not until this one is sent.
//
// # Safety
// `worker` is null or comes from `iswitch_async_join`; `vector` is null or points to `len` floats.
enum iswitch_status iswitch_async_submit(const struct iswitch_async_worker *worker,
                                         const float *vector,
                                         size_t len);

// Takes the next sum; waits until there is one. `aggregate` may be null. After `ISWITCH_STATUS_MISSED_ROUNDS` sums are
// missing, and the state of another worker is needed before the next one.
//
// # Safety
// `worker` is null or comes from `iswitch_async_join`; `sum` is null or points to `len` floats; `aggregate` is null or
// points to writable memory for the struct.
enum iswitch_status iswitch_async_recv_sum(const struct iswitch_async_worker *worker,
                                           float *sum,
                                           size_t len,
                                           struct iswitch_aggregate *aggregate);

// Ends all calls that wait, and those to come, with `ISWITCH_STATUS_CLOSED`. A null pointer is ignored.
//
// # Safety
// `worker` is null or comes from `iswitch_async_join`.
void iswitch_async_close(const struct iswitch_async_worker *worker);

// Leaves the job and frees the worker, which no other thread may use any more. A null pointer is ignored.
//
// # Safety
// `worker` is null or comes from `iswitch_async_join` and is not used again.
void iswitch_async_leave(struct iswitch_async_worker *worker);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ISWITCH_H */
