from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self, final

__all__ = ["Worker", "__version__"]

__version__: str

@final
class Worker:
    """A worker that sums arrays of any length with the other workers of its job.

    Returns when all `world_size` workers have joined. All of them call the same methods with arrays of the same lengths
    in the same order. To be used by one thread at a time. What is left out is taken from the variable in parentheses.

    Args:
        switch: "HOST:PORT" of iswitchd, IPv4 (ISWITCH_SWITCH).
        rank: This worker's number, from 0 (RANK).
        world_size: Workers of the job, 1 to 64 (WORLD_SIZE).
        job: Number of the job on the switch; each further length of arrays takes the next number (ISWITCH_JOB, else 0).
        timeout: Seconds to wait for the other workers (ISWITCH_TIMEOUT, else 1800).
        switch_timeout: Seconds that the switch may be silent, such as when it is started again (ISWITCH_SWITCH_TIMEOUT,
            else 3).
        segment_floats: Floats in a packet, the same on all workers (ISWITCH_SEGMENT_FLOATS, else 366: an MTU of 1500).
        key_file: File with the job's key, made by `iswitchctl keygen` (ISWITCH_KEY_FILE, else none).
        tag_data: Whether data packets are tagged with the key as well (ISWITCH_TAG_DATA, 0 or 1, else 0).
        non_finite: "refuse" to send NaN and infinities, or "sum" them, for an `iswitchd --non-finite sum`
            (ISWITCH_NON_FINITE, else "refuse").

    Raises:
        ValueError: A setting is missing or wrong; the message names it.
        SwitchLostError: Nobody answers at `switch`.
        RefusedError: The switch refused; the message has its reason.
        WorkersMissingError: The others have not come in time.
    """

    def __new__(
        cls,
        switch: str | None = None,
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
    ) -> Self: ...
    def all_reduce_(self, array: Any) -> int:
        """Replaces `array` by its sum over all workers, which all get with the same bits.

        `array` is any contiguous, writable array of float32 in the CPU's memory that has the buffer protocol (NumPy,
        array.array, memoryview) or DLPack (PyTorch); its memory is used as it is, without a copy. No other thread may
        write to it meanwhile; Python's other threads go on.

        Returns:
            Gradients in the sum: `world_size`, or fewer where workers are gone (the smallest count of any segment).

        Raises:
            TypeError: Elements are not float32, or it is no array.
            ValueError: It is read-only, not contiguous, or not on the CPU.
            NonFiniteError: It holds NaN or an infinity; nothing was sent.
            SwitchLostError, WorkersMissingError: See `switch_timeout` and `timeout`. Call again with the same array,
                untouched; its beginning may hold the sum already.
            ExpelledError: The others have gone on without this worker.
        """

    def all_reduce_mean_(self, array: Any) -> int:
        """Like `all_reduce_`, divided by the number of gradients that were really summed."""

    def stats(self) -> dict[str, int]:
        """Counters: `rounds`, `segments` sent for the first time, `retransmitted` ones, and `rejoins`."""

    def close(self) -> None:
        """Leaves the job. A call that waits in another thread raises ClosedError."""

    @property
    def switch(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def world_size(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
