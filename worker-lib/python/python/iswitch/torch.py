"""Aggregation of PyTorch gradients through the switch: a backend for `torch.distributed`, and a communication hook.

The backend sums and averages floats through the switch and delegates all other collectives to Gloo:

>>> import iswitch.torch
>>> dist.init_process_group("iswitch")    # ISWITCH_SWITCH=10.9.0.254:7711

The hook sums the buckets of one DistributedDataParallel model and works with any backend:

>>> reducer = iswitch.torch.Reducer(iswitch.Worker())
>>> model.register_comm_hook(reducer, iswitch.torch.all_reduce_hook)

Both sum a bucket while the backward pass computes the next one.
"""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from iswitch import TimedOutError, Worker
from iswitch._faults import Delegate, ErrorType, error_type, seconds_of
from iswitch._reducer import Job, Reducer

__all__ = ["ProcessGroupISwitch", "Reducer", "all_reduce_hook"]

_CPU = torch.device("cpu")
_SUMMED_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def all_reduce_hook(state: Reducer, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """DDP communication hook that averages the bucket's gradients over all workers."""
    return state.submit(bucket.buffer(), mean=True)


class _Work(dist._Work):
    """Handle of an asynchronous collective."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job

    def wait(self, timeout: timedelta | None = None) -> bool:
        seconds = seconds_of(timeout)
        if not self._job.done.wait(seconds):
            raise TimedOutError(
                f"{self._job.operation}: the switch has not delivered the sum of all workers within {seconds} s; the "
                "operation continues, and may be waited for again"
            )
        self._job.outcome()
        return True

    def is_completed(self) -> bool:
        return self._job.done.is_set()

    def is_success(self) -> bool:
        return self._job.done.is_set() and self._job.error is None

    def exception(self) -> BaseException | None:
        return self._job.error

    def get_future(self) -> torch.futures.Future:
        return self._job.future

    def result(self) -> list[torch.Tensor]:
        return [self._job.tensor]


class _Done(dist._Work):
    """Handle of a collective that has already completed."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        super().__init__()
        self._tensors = tensors

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def get_future(self) -> torch.futures.Future:
        future: torch.futures.Future = torch.futures.Future()
        future.set_result(self._tensors)
        return future

    def result(self) -> list[torch.Tensor]:
        return self._tensors


class ProcessGroupISwitch(dist.ProcessGroup):
    """Process group that all-reduces floats through the switch and delegates all other collectives to Gloo.

    The switch computes SUM and AVG of single dense tensors of float32, float16 and bfloat16. Settings come from the
    environment, as for `iswitch.Worker`, except for the job number: rank 0 draws it at random, so that several groups
    and training jobs can use one switch. A group of one process needs no switch.
    """

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        store = _fresh(store, rank)
        self._others, backend = _gloo(dist.PrefixStore("gloo", store), rank, size, timeout)
        self._delegate = Delegate(backend)
        self._is_aborted = False
        # PyTorch asks a group for its devices, for example in `monitored_barrier`. No collective takes this path.
        for device in ("cpu", "cuda"):
            self._register_backend(torch.device(device), dist.ProcessGroup.BackendType.GLOO, backend)
        self._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
        self._reducer: Reducer | None = None
        if size > 1:
            worker = Worker(
                rank=rank, world_size=size, job=_common_job(store, rank), timeout=timeout.total_seconds()
            )
            self._reducer = Reducer(worker)

    def getBackendName(self) -> str:  # noqa: N802: PyTorch's name
        return "iswitch"

    def allreduce(self, tensors: Any, opts: Any = None) -> dist.Work:
        opts = opts or dist.AllreduceOptions()
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        if not self._is_summed(tensors, opts.reduceOp):
            return self._delegate.call("allreduce", self._others.allreduce, tensors, opts)
        mean, seconds = opts.reduceOp == dist.ReduceOp.AVG, seconds_of(opts.timeout)
        if opts.asyncOp:
            return _Work(self._reducer.begin(tensors[0], mean, in_list=True, timeout=seconds))
        self._reducer.all_reduce(tensors[0], mean, seconds)
        return _Done(tensors)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Blocks until all ranks have entered the call. Rank 0 names the ranks that have not within the timeout.

        Raises:
            iswitch.TimedOutError: On rank 0, with the missing ranks.
            iswitch.WorkersLostError: On the other ranks, if rank 0 has raised an error.
        """
        name, arguments = "monitored_barrier", (timeout or timedelta(0), wait_all_ranks)
        self._delegate.check(name)
        self._delegate.call_in_thread(name, lambda: self._others._get_backend(_CPU).monitored_barrier(*arguments))

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the timeout of all operations that begin from now on."""
        self._others.set_timeout(timeout)
        if self._reducer is not None:
            self._reducer.timeout = seconds_of(timeout)

    @property
    def error(self) -> BaseException | None:
        """Last error of this rank; None after an operation has been repeated successfully."""
        return (self._reducer and self._reducer.error) or self._delegate.error

    def get_error(self) -> ErrorType:
        """Returns the kind of `error`: TIMEOUT, REMOTE_ERROR if other workers were lost, COMM_ERROR for all others and
        after `abort`, or SUCCESS."""
        return ErrorType.COMM_ERROR if self._is_aborted else error_type(self.error)

    def abort(self) -> None:
        """Ends every pending and later operation of this rank with `iswitch.AbortedError`, within half a second.

        The switch removes this rank from the group's job, so that the operations of the other ranks fail as well.
        """
        self._is_aborted = True
        self._delegate.abort()
        if self._reducer is not None:
            self._reducer.abort()

    def shutdown(self) -> None:
        """Leaves the group, whatever state the switch and the other ranks are in. Pending operations fail."""
        if self._reducer is not None:
            self._reducer.close()
        self._delegate.close()

    def _is_summed(self, tensors: list[torch.Tensor], op: dist.ReduceOp) -> bool:
        return (
            self._reducer is not None
            and len(tensors) == 1
            and tensors[0].dtype in _SUMMED_DTYPES
            and tensors[0].layout == torch.strided
            and tensors[0].device.type in ("cpu", "cuda")
            # `in` does not work here, because the comparison requires the operation on the left side.
            and (op == dist.ReduceOp.SUM or op == dist.ReduceOp.AVG)
        )


def _gloo(store: dist.Store, rank: int, size: int, timeout: timedelta) -> tuple[dist.ProcessGroup, dist.Backend]:
    """Returns a group of Gloo, and its backend."""
    group = dist.ProcessGroup(store, rank, size)
    backend = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
    for device in ("cpu", "cuda"):
        group._register_backend(torch.device(device), dist.ProcessGroup.BackendType.GLOO, backend)
    group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
    return group, backend


def _to_others(name: str) -> Callable[..., Any]:
    def method(self: ProcessGroupISwitch, *arguments: Any, **options: Any) -> Any:
        return self._delegate.call(name, getattr(self._others, name), *arguments, **options)

    return method


def _of_others(name: str) -> Callable[..., Any]:
    def method(self: ProcessGroupISwitch, *arguments: Any, **options: Any) -> Any:
        return getattr(self._others, name)(*arguments, **options)

    return method


def _add_methods(make: Callable[[str], Callable[..., Any]], *names: str) -> None:
    # Some of them exist only in newer versions of PyTorch.
    for name in filter(lambda name: hasattr(dist.ProcessGroup, name), names):
        method = make(name)
        method.__name__ = name
        setattr(ProcessGroupISwitch, name, method)


# A separate process group implements these methods, not the base class. A call of the base class through this class holds
# the interpreter's lock while it waits for Gloo's lock, which another thread may hold while it waits for the interpreter's
# lock: a deadlock.
_add_methods(
    _to_others,
    "_allgather_base", "_reduce_scatter_base", "all_gather_single", "all_gather_single_coalesced", "all_to_all_single",
    "allgather", "allgather_coalesced", "allgather_into_tensor_coalesced", "allreduce_coalesced", "alltoall",
    "alltoall_base", "barrier", "broadcast", "gather", "gather_into_tensor", "gather_single", "recv", "recv_anysource",
    "reduce", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_single_coalesced",
    "reduce_scatter_tensor_coalesced", "scatter", "send",
)  # fmt: skip
_add_methods(
    _of_others,
    "_end_coalescing", "_get_backend", "_get_sequence_number_for_group", "_set_sequence_number_for_group",
    "_start_coalescing", "_wait_for_pending_works", "get_backend",
)  # fmt: skip


def _fresh(store: dist.Store, rank: int) -> dist.Store:
    """Returns a part of the store that no earlier group of these ranks has used, even if it had the same name."""
    return dist.PrefixStore(f"iswitch/{store.add(f'iswitch/groups/{rank}', 1)}", store)


def _common_job(store: dist.Store, rank: int) -> int:
    """Returns the job number that rank 0 draws at random and shares through the store."""
    if rank == 0:
        store.set("job", str(random.SystemRandom().getrandbits(32)))
    return int(store.get("job"))


def _create(store: dist.Store, rank: int, size: int, timeout: timedelta) -> ProcessGroupISwitch:
    return ProcessGroupISwitch(store, rank, size, timeout)


dist.Backend.register_backend("iswitch", _create, devices=["cpu", "cuda"])
