from collections.abc import Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self, final

__all__ = ["Worker", "__version__"]

__version__: str
"""Version of the package and of the `iswitchd` in its wheel."""

@final
class Worker:
    """Worker that sums arrays of any length with the other workers of its job.

    The constructor returns when all `world_size` workers have joined. All workers must call the same methods, with
    arrays of the same lengths, in the same order. Only one thread may use a worker at a time. If an argument is
    omitted, the worker uses the environment variable in parentheses or, if that is not set, the default.

    Args:
        switch: Address of iswitchd, as "HOST:PORT" with an IPv4 address (ISWITCH_SWITCH). If the value is "auto", rank 0
            starts a private switch for the workers of the job, all of which must run on one machine. Several addresses,
            separated by commas or in a sequence, name standby switches: if the first switch fails, the workers move to the
            next one. All workers must name the same switches in the same order.
        rank: Rank of this worker, starting from 0 (RANK).
        world_size: Number of workers of the job, 1 to 64 (WORLD_SIZE).
        job: Number of the job on the switch; each additional array length takes the next number (ISWITCH_JOB, else 0).
        timeout: Timeout for the other workers, in seconds (ISWITCH_TIMEOUT, else 1800).
        switch_timeout: Time in seconds after which a silent switch is considered lost (ISWITCH_SWITCH_TIMEOUT, else 3).
        segment_floats: Number of floats in a packet, the same on all workers (ISWITCH_SEGMENT_FLOATS, else 366, for an
            MTU of 1500).
        key_file: Key file of the job, as created by `iswitchctl keygen` (ISWITCH_KEY_FILE, else none).
        tag_data: Whether data packets also carry tags computed from the key (ISWITCH_TAG_DATA, 0 or 1, else 0).
        non_finite: Whether to "refuse" to send NaN and infinities or to "sum" them, which requires
            `iswitchd --non-finite sum` (ISWITCH_NON_FINITE, else "refuse").
        wire: Element types in the packets, for all arrays, the same on all workers (ISWITCH_WIRE, else the type of each
            array): with "bf16" and "f16", packets carry half as many bytes, and each sum is rounded once; with
            "bf16-f32" and "f16-f32", the sums have 32 bits; "f32" is for switches that support no other type.
        threads: Number of threads that send and receive during a call, 1 to 16, if the switch runs several threads
            (ISWITCH_THREADS, else one for every four cores of the machine).
        name: Name of the job in the status, the log and the metrics of the switch, at most 32 bytes of printable text
            (ISWITCH_JOB_NAME, else the run id of torchrun, TORCHELASTIC_RUN_ID). The switch also shows the rank and the
            host name of each worker.
        owner: Owner of the job, as shown by the switch, at most 32 bytes of printable text (ISWITCH_JOB_OWNER, else
            none).

    Raises:
        ValueError: A setting is missing or invalid; the message names it.
        FileNotFoundError: The value of `switch` is "auto", but iswitchd was not found.
        SwitchLostError: No switch answers at `switch`.
        RefusedError: The switch refused the worker; the message contains the reason.
        WorkersMissingError: The other workers did not join before the timeout.
    """

    def __new__(
        cls,
        switch: str | Sequence[str] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        *,
        job: int | None = None,
        timeout: float | None = None,
        switch_timeout: float | None = None,
        segment_floats: int | None = None,
        key_file: str | PathLike[str] | None = None,
        tag_data: bool | None = None,
        non_finite: Literal["refuse", "sum"] | None = None,
        wire: Literal["f32", "bf16", "f16", "bf16-f32", "f16-f32"] | None = None,
        threads: int | None = None,
        name: str | None = None,
        owner: str | None = None,
    ) -> Self: ...
    def all_reduce_(self, array: Any, *, timeout: float | None = None) -> int:
        """Replaces `array` with its sum over all workers. All workers receive the same bits.

        `array` is any contiguous, writable array of float32, float16 or bfloat16 in CPU memory that supports the buffer
        protocol (NumPy, array.array, memoryview) or DLPack (PyTorch). Its memory is used in place. Arrays of 16-bit
        floats are sent in half the bytes; the switch sums them in 32 bits and rounds each sum once. No other thread may
        write to the array during the call; other Python threads keep running.

        Args:
            array: The array.
            timeout: Time limit in seconds, above 0, for this call, whether it waits for the switch, for the other workers
                or for both. The call ends at most half a second later. If omitted, the timeouts of the worker apply.

        Returns:
            Number of gradients in the sum: `world_size`, or fewer if workers have left the job or were expelled (if
            the segments differ, the smallest number).

        Raises:
            TypeError: The argument is not an array, or its elements are not float32, float16 or bfloat16.
            ValueError: The array is read-only, not contiguous, or not on the CPU.
            NonFiniteError: The array contains NaN or an infinity; nothing was sent.
            SwitchLostError, WorkersMissingError: The call timed out while waiting for the switch or for the other
                workers. Retry the call with the same array, unchanged; its first part may already contain the sum.
            ExpelledError: The other workers continued without this one.
        """

    def all_reduce_mean_(self, array: Any, *, timeout: float | None = None) -> int:
        """Like `all_reduce_`, but divides the sum by the number of gradients that it contains.

        For float16 arrays, the switch sends the sum to the workers in 32 bits, so that it does not overflow.
        """

    def stats(self) -> dict[str, int]:
        """Returns the counters `rounds`, `segments` (sent for the first time), `retransmitted` (segments) and `rejoins`."""

    def close(self) -> None:
        """Leaves the job. A call that is waiting in another thread raises ClosedError."""

    @property
    def switch(self) -> str:
        """Address of the switch, as "HOST:PORT", or the addresses of several switches, separated by commas."""

    @property
    def rank(self) -> int:
        """Rank of this worker, starting from 0."""

    @property
    def world_size(self) -> int:
        """Number of workers of the job, 1 to 64."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
