#ifndef ISWITCH_H
#define ISWITCH_H

/* Generated from worker-lib/c-interface/src by cbindgen. Do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Outcome of a call. `iswitch_last_error` returns the details of a failure.
typedef enum iswitch_status {
  // Success.
  ISWITCH_STATUS_OK = 0,
  // An argument is invalid, such as a null pointer, a malformed address or a vector of the wrong length.
  ISWITCH_STATUS_INVALID_ARGUMENT = 1,
  // The switch did not answer.
  ISWITCH_STATUS_SWITCH_LOST = 2,
  // The switch refused the worker's Join or a contribution.
  ISWITCH_STATUS_REFUSED = 3,
  // Other workers did not join or contribute before the timeout.
  ISWITCH_STATUS_STALLED = 4,
  // The vector contains NaN or an infinity; nothing was sent.
  ISWITCH_STATUS_NON_FINITE = 5,
  // The switch expelled this worker and does not readmit it.
  ISWITCH_STATUS_EXPELLED = 6,
  // The job is halted.
  ISWITCH_STATUS_HALTED = 7,
  // The round is over: the job was reset, or it continued without this worker. The next call can take part again.
  ISWITCH_STATUS_STALE_ROUND = 8,
  // The socket failed.
  ISWITCH_STATUS_IO = 9,
  // Internal error of the library.
  ISWITCH_STATUS_INTERNAL = 10,
  // The job continued without this worker. The worker is a member again, but it has missed the sums of some rounds.
  ISWITCH_STATUS_MISSED_ROUNDS = 11,
  // The weights of this worker and of another one differ, although both have applied the same sums.
  ISWITCH_STATUS_DIVERGED = 12,
  // The worker was closed while the call waited.
  ISWITCH_STATUS_CLOSED = 13,
} iswitch_status;

// Worker of an asynchronous job. Several threads may use it: for example, one submits vectors and another one receives
// sums.
typedef struct iswitch_async_worker iswitch_async_worker;

// Worker that has joined a job. Only one thread may use it at a time.
typedef struct iswitch_worker iswitch_worker;

// Options with which a worker joins a job. `iswitch_join_options_init` fills in the defaults.
typedef struct iswitch_join_options {
  // IPv4 address and port of the switch, as "ADDRESS:PORT", or those of several switches, separated by commas. If
  // the first switch fails, the workers move to the next one. All workers must name the same switches in the same
  // order.
  const char *switch_address;
  // Number that identifies the job on the switch.
  uint32_t job;
  // Number of workers with which the job starts; 0 means any number.
  uint16_t workers;
  // Number of floats in a packet; 0 means as many as an MTU of 1500 bytes allows.
  uint16_t segment_floats;
  // Number of floats in the vector.
  uint32_t gradient_len;
  // Rank of this worker. If the switch adds in a fixed order (`iswitchd --ordered`), the ranks determine the order.
  uint16_t rank;
  // Timeout for the switch's answer to a Join, in milliseconds.
  uint32_t connect_timeout_ms;
  // Timeout for the other workers to join, in milliseconds; 0 means no timeout.
  uint32_t workers_timeout_ms;
  // Timeout of a round, in milliseconds; 0 means no timeout.
  uint32_t round_timeout_ms;
  // Path of the job's key file, as created by `iswitchctl keygen`; null if the job has no key.
  const char *key_file;
  // Whether data packets also carry tags computed from the key. The value must be the same on all workers. A tag
  // takes up the space of two floats in each packet.
  bool tag_data;
  // Element types in packets, the same on all workers: "f32", "bf16", "f16", or, with results in 32 bits, "bf16-f32"
  // or "f16-f32". Null means "f32".
  const char *wire;
} iswitch_join_options;

// Result of one aggregation.
typedef struct iswitch_round {
  // Round number.
  uint32_t number;
  // Number of gradients in the sum; if it differs between segments, the smallest number.
  uint16_t contributors;
  // Whether all segments sum the same number of gradients.
  bool uniform;
} iswitch_round;

// Description of one sum of an asynchronous job.
typedef struct iswitch_aggregate {
  // Sequence number of the sum; sums are delivered in order and without gaps.
  uint32_t number;
  // Number of gradients in the sum.
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

// Sets the names that the switch shows to operators: the name of the job (at most 32 bytes), its owner (at most 32
// bytes), the host name of this machine (at most 63 bytes) and the rank of the worker, from 0 to 65534. They apply to
// all workers with which this thread joins jobs from now on. The texts must be printable UTF-8. If `host` is null, the
// host name of this machine is used. Any other null pointer leaves its text unknown, and a negative rank leaves the
// rank unknown. The names have no effect on sums.
//
// # Safety
// Each pointer is null or points to text that ends with a zero byte.
enum iswitch_status iswitch_set_name(const char *job,
                                     const char *owner,
                                     const char *host,
                                     int32_t rank);

// Joins a job and waits until all its workers have joined. On success, the caller must later pass `*worker` to
// `iswitch_leave`.
//
// # Safety
// `options` is null or points to a struct whose texts are null or end with a zero byte;
// `worker` is null or points to writable memory for a pointer.
enum iswitch_status iswitch_join(const struct iswitch_join_options *options,
                                 struct iswitch_worker **worker);

// Replaces `vector` with its sum over all workers; blocks until the sum is complete. `round` may be null.
//
// # Safety
// `worker` is null or comes from `iswitch_join`; `vector` is null or points to `len` floats; `round` is null or
// points to writable memory for the struct.
enum iswitch_status iswitch_all_reduce(struct iswitch_worker *worker,
                                       float *vector,
                                       size_t len,
                                       struct iswitch_round *round);

// Works like `iswitch_all_reduce`, but divides the sum by the number of gradients that it contains.
//
// # Safety
// The requirements of `iswitch_all_reduce` apply.
enum iswitch_status iswitch_all_reduce_mean(struct iswitch_worker *worker,
                                            float *vector,
                                            size_t len,
                                            struct iswitch_round *round);

// Leaves the job and frees the worker, even if leaving fails. A null pointer is ignored.
//
// # Safety
// `worker` is null or comes from `iswitch_join` and is not used again.
enum iswitch_status iswitch_leave(struct iswitch_worker *worker);

// Returns the version of the loaded library, such as "0.1.0". It may differ from the version of the header with which
// the program was compiled. The pointer is never null and remains valid until the program ends.
const char *iswitch_version(void);

// Returns the error message of this thread's last failed call. The pointer is never null and remains valid until the
// thread's next failed call.
const char *iswitch_last_error(void);

// Joins a job in asynchronous mode and waits until all its workers have joined; `round_timeout_ms` is ignored. On
// success, the caller must later pass `*worker` to `iswitch_async_leave`.
//
// # Safety
// The requirements of `iswitch_join` apply.
enum iswitch_status iswitch_async_join(const struct iswitch_join_options *options,
                                       struct iswitch_async_worker **worker);

// Submits a vector to be sent. Waits until the previous vector is part of an aggregate and the received sums have been
// taken, but does not wait until this vector has been sent.
//
// # Safety
// `worker` is null or comes from `iswitch_async_join`; `vector` is null or points to `len` floats.
enum iswitch_status iswitch_async_submit(const struct iswitch_async_worker *worker,
                                         const float *vector,
                                         size_t len);

// Waits for the next sum and copies it to `sum`. `aggregate` may be null. If the status is
// `ISWITCH_STATUS_MISSED_ROUNDS`, this worker lacks sums: obtain the state of another worker before the next call.
//
// # Safety
// `worker` is null or comes from `iswitch_async_join`; `sum` is null or points to `len` floats; `aggregate` is null or
// points to writable memory for the struct.
enum iswitch_status iswitch_async_recv_sum(const struct iswitch_async_worker *worker,
                                           float *sum,
                                           size_t len,
                                           struct iswitch_aggregate *aggregate);

// Makes all pending and later calls return `ISWITCH_STATUS_CLOSED`. A null pointer is ignored.
//
// # Safety
// `worker` is null or comes from `iswitch_async_join`.
void iswitch_async_close(const struct iswitch_async_worker *worker);

// Leaves the job and frees the worker. No other thread may still be using the worker. A null pointer is ignored.
//
// # Safety
// `worker` is null or comes from `iswitch_async_join` and is not used again.
void iswitch_async_leave(struct iswitch_async_worker *worker);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ISWITCH_H */
