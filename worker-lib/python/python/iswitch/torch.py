"""Aggregation of PyTorch gradients through the switch: a backend for `torch.distributed`, and a communication hook.

The backend sums and averages floats through the switch, and delegates most other collectives to Gloo:

>>> import iswitch.torch
>>> dist.init_process_group("iswitch")    # ISWITCH_SWITCH=10.9.0.254:7711

The hook sums the buckets of one DistributedDataParallel model and works with any backend:

>>> reducer = iswitch.torch.Reducer(iswitch.Worker())
>>> model.register_comm_hook(reducer, iswitch.torch.all_reduce_hook)

Both sum a bucket while the backward pass computes the next one.
"""

import contextlib
import functools
import logging
import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import AllreduceCoalescedOptions

from iswitch import TimedOutError, Worker, _collectives, _contiguous
from iswitch._faults import BlockingCall, Delegate, ErrorType, error_type, seconds_of
from iswitch._reducer import Job, Reducer
from iswitch._staging import Staged

__all__ = ["ProcessGroupISwitch", "Reducer", "all_reduce_hook"]

_SUMMED_DTYPES = (torch.float32, torch.float16, torch.bfloat16)

_log = logging.getLogger(__name__)

# Types that the switch does not sum and that have already been logged.
_reported_dtypes: set[torch.dtype] = set()


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
                f"{self._job.operation}: the switch did not deliver the sum of all workers within {seconds} s; the "
                "operation continues, and its result can be awaited again"
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
        return self._job.result


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


def _untraced(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method that torch.compile must call without tracing, because it cannot trace access to the group."""
    return torch.compiler.disable(method)


def _or_gloo(options: type) -> Callable[[Callable[..., dist.Work | None]], Callable[..., dist.Work]]:
    """Decorates a collective that runs through the switch unless it returns None, in which case Gloo performs it.

    The choice must be the same on all ranks, so it may depend only on the sizes, types and devices of the tensors. Calls in
    PyTorch's older forms, with a root or an operation instead of an object of the type `options`, go to Gloo.
    """

    def decorate(collective: Callable[..., dist.Work | None]) -> Callable[..., dist.Work]:
        name, expected = collective.__name__, collective.__code__.co_argcount - 2

        @functools.wraps(collective)
        def method(self: "ProcessGroupISwitch", *arguments: Any, **named: Any) -> dist.Work:
            tensors, opts = arguments, named.get("opts")
            if opts is None:
                has_options = len(arguments) > expected and isinstance(arguments[-1], options)
                tensors, opts = (arguments[:-1], arguments[-1]) if has_options else (arguments, options())
            if self._reducer is not None and len(tensors) == expected and named.keys() <= {"opts"}:
                work = collective(self, *tensors, opts)
                if work is not None:
                    return work
            return self._by_gloo(name, *arguments, **named)

        return _untraced(method)

    return decorate


class ProcessGroupISwitch(dist.ProcessGroup):
    """Process group that all-reduces floats through the switch and delegates most other collectives to Gloo.

    The switch computes SUM and AVG of dense tensors of float32, float16 and bfloat16. It also performs barriers, and small
    reduces and reduce-scatters of tensors in CPU memory (see `iswitch._collectives`). Settings come from the environment, as
    for `iswitch.Worker`, except for the job number: rank 0 draws it at random, so that several groups and training jobs can
    share a switch. A group of one process needs no switch.
    """

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        store = _fresh(store, rank)
        gloo = dist.ProcessGroupGloo(dist.PrefixStore("gloo", store), rank, size, timeout=timeout)
        self._others = dist.ProcessGroup(store, rank, size)
        # The base class derives the devices and the name of this group from its backends.
        for group in (self, self._others):
            _register(gloo, group)
        self._gloo = gloo
        self._delegate = Delegate(gloo)
        self._is_aborted = False
        self._rank, self._size = rank, size
        # Futures of Gloo collectives that may not have completed.
        self._pending: list[torch.futures.Future] = []
        self._reducer: Reducer | None = None
        if size > 1:
            worker = Worker(
                rank=rank, world_size=size, job=_common_job(store, rank), timeout=timeout.total_seconds()
            )
            self._reducer = Reducer(worker)

    def getBackendName(self) -> str:  # noqa: N802: PyTorch's name
        return "iswitch"

    @_or_gloo(dist.AllreduceOptions)
    def allreduce(self, tensors: Any, opts: Any) -> dist.Work | None:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        if len(tensors) == 1 and _is_summed(tensors, opts):
            return self._sum(self._switch.stage(tensors[0]), tensors, opts)
        self._report_type(tensors)
        return None

    @_or_gloo(AllreduceCoalescedOptions)
    def allreduce_coalesced(self, tensors: Any, opts: Any) -> dist.Work | None:
        if _is_summed(tensors, opts) and _collectives.are_alike(tensors):
            return self._sum(_collectives.Flattened(tensors), tensors, opts)
        self._report_type(tensors)
        return None

    @_or_gloo(dist.ReduceOptions)
    def reduce(self, tensors: Any, opts: Any) -> dist.Work | None:
        # Gloo reports an error if there are several tensors or if the root is not in the group.
        is_valid = len(tensors) == 1 and 0 <= opts.rootRank < self._size
        if not is_valid or not _is_summed(tensors, opts) or not _collectives.may_reduce(tensors[0]):
            return None
        return self._sum(_collectives.Reduce(tensors[0], opts.rootRank == self._rank), tensors, opts)

    @_or_gloo(dist.ReduceScatterOptions)
    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any) -> dist.Work | None:
        return self._reduce_scatter(outputs[0], inputs[0], opts)

    @_or_gloo(dist.ReduceScatterOptions)
    def _reduce_scatter_base(self, output: torch.Tensor, joined: torch.Tensor, opts: Any) -> dist.Work | None:
        return self._reduce_scatter(output, self._parts(joined), opts)

    reduce_scatter_single = _reduce_scatter_base

    @_or_gloo(dist.BarrierOptions)
    def barrier(self, opts: Any) -> dist.Work | None:
        # The group keeps its list for the next barrier, in case this one fails.
        staged = _collectives.Barrier(tuple(self._pending), lambda: self._delegate.check("barrier"))
        return self._sum(staged, [], opts)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Blocks until all ranks have entered the call. If the timeout expires, the error on rank 0 names the ranks that have not.

        Raises:
            iswitch.TimedOutError: On rank 0; the message names the missing ranks.
            iswitch.WorkersLostError: On the other ranks, if rank 0 has raised an error.
        """
        name, arguments = "monitored_barrier", (timeout or timedelta(0), wait_all_ranks)
        self._delegate.check(name)
        # The stubs of PyTorch lack this method of Gloo.
        gloo: Any = self._gloo
        self._delegate.await_call(name, BlockingCall(lambda: gloo.monitored_barrier(*arguments)))

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the timeout of all operations that begin after this call."""
        self._others.set_timeout(timeout)
        if self._reducer is not None:
            self._reducer.timeout = seconds_of(timeout)

    @property
    def error(self) -> BaseException | None:
        """Last error of this rank. An error of the switch is cleared (None) once the operation has been repeated
        successfully; an error of Gloo is permanent, because Gloo closes its connections."""
        return (self._reducer and self._reducer.error) or self._delegate.error

    def get_error(self) -> ErrorType:
        """Returns the kind of `error`: TIMEOUT; REMOTE_ERROR if other workers were lost; COMM_ERROR for any other error
        and after `abort`; SUCCESS if there is no error."""
        return ErrorType.COMM_ERROR if self._is_aborted else error_type(self.error)

    def abort(self) -> None:
        """Ends all pending and later operations of this rank with `iswitch.AbortedError`, within half a second.

        The switch removes this rank from the group's job, so the operations of the other ranks fail as well.
        """
        self._is_aborted = True
        self._delegate.abort()
        if self._reducer is not None:
            self._reducer.abort()

    def shutdown(self) -> None:
        """Leaves the group, regardless of the state of the switch and the other ranks. Pending operations fail."""
        # The delegate comes first, because a barrier in the reducer's thread may wait for a collective of Gloo.
        self._delegate.close()
        if self._reducer is not None:
            self._reducer.close()

    def _reduce_scatter(self, output: torch.Tensor, inputs: Sequence[torch.Tensor], opts: Any) -> dist.Work | None:
        if not _is_summed([output, *inputs], opts) or not _collectives.may_reduce_scatter(output, inputs, self._size):
            return None
        return self._sum(_collectives.ReduceScatter(output, inputs, self._rank), [output], opts)

    @property
    def _switch(self) -> Reducer:
        """The reducer of a group of several processes; collectives of a single process do not use it."""
        assert self._reducer is not None
        return self._reducer

    def _sum(self, staged: Staged, result: Any, opts: Any) -> dist.Work:
        """Performs a collective through the switch."""
        mean = getattr(opts, "reduceOp", dist.ReduceOp.SUM) == dist.ReduceOp.AVG
        seconds = seconds_of(opts.timeout)
        # Older versions of PyTorch do not have the option for all collectives.
        if getattr(opts, "asyncOp", True):
            return _Work(self._switch.begin(staged, mean, result, seconds))
        self._switch.complete(staged, mean, seconds)
        return _Done(result)

    def _by_gloo(self, name: str, *arguments: Any, **named: Any) -> Any:
        work = self._delegated(name, *arguments, **named)
        opts = named.get("opts", arguments[-1] if arguments else None)
        if isinstance(work, dist.Work) and getattr(opts, "asyncOp", True):
            self._await_in_barrier(work)
        return work

    def _delegated(self, name: str, *arguments: Any, **named: Any) -> Any:
        call = functools.partial(_contiguous.call, getattr(self._others, name), writes=name != "send")
        return self._delegate.call(name, call, *arguments, **named)

    def _await_in_barrier(self, work: dist.Work) -> None:
        self._pending = [future for future in self._pending if not future.done()]
        # Gloo's reduce-scatter has no future. It writes its result when it is awaited, so a barrier need not wait for it.
        with contextlib.suppress(RuntimeError):
            self._pending.append(work.get_future())

    def _parts(self, joined: torch.Tensor) -> Sequence[torch.Tensor]:
        """Returns one part of a tensor for each rank, or none if its first dimension cannot be divided."""
        if joined.dim() == 0 or joined.numel() == 0 or joined.shape[0] % self._size:
            return []
        return list(joined.detach().unflatten(0, (self._size, -1)))

    def _report_type(self, tensors: Sequence[torch.Tensor]) -> None:
        """Logs a type that the switch does not sum, once and only on rank 0."""
        if self._rank != 0:
            return
        for dtype in {tensor.dtype for tensor in tensors}.difference(_SUMMED_DTYPES, _reported_dtypes):
            _reported_dtypes.add(dtype)
            # Tensors of floats may be gradients, for which the user expects the speed of the switch.
            level = logging.WARNING if dtype.is_floating_point else logging.INFO
            _log.log(level, "all_reduce of %s goes to Gloo: the switch sums only float32, float16 and bfloat16", dtype)


def _is_summed(tensors: Sequence[torch.Tensor], opts: Any) -> bool:
    # `in` does not work here, because the comparison requires the operation on the left side.
    has_operation = opts.reduceOp == dist.ReduceOp.SUM or opts.reduceOp == dist.ReduceOp.AVG
    return has_operation and all(
        tensor.dtype in _SUMMED_DTYPES and tensor.layout == torch.strided and tensor.device.type in ("cpu", "cuda")
        for tensor in tensors
    )


def _register(gloo: dist.ProcessGroupGloo, group: dist.ProcessGroup) -> None:
    for device in ("cpu", "cuda"):
        group._register_backend(torch.device(device), dist.ProcessGroup.BackendType.GLOO, gloo)
    group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)


def _to_others(name: str) -> Callable[..., Any]:
    def method(self: ProcessGroupISwitch, *arguments: Any, **named: Any) -> Any:
        return getattr(self._others, name)(*arguments, **named)

    return method


def _collective_of_gloo(name: str) -> Callable[..., Any]:
    def method(self: ProcessGroupISwitch, *arguments: Any, **named: Any) -> Any:
        return self._by_gloo(name, *arguments, **named)

    return method


def _point_to_point_of_gloo(name: str) -> Callable[..., Any]:
    def method(self: ProcessGroupISwitch, *arguments: Any, **named: Any) -> Any:
        return self._delegated(name, *arguments, **named)

    return method


# A separate process group implements these methods, not the base class. A call to the base class through this class
# holds the interpreter's lock while it waits for Gloo's lock, which another thread may hold while it waits for the
# interpreter's lock: a deadlock.
_DELEGATED = {
    _to_others: (
        "_end_coalescing", "_get_backend", "_get_sequence_number_for_group", "_set_sequence_number_for_group",
        "_start_coalescing", "_wait_for_pending_works", "get_backend",
    ),
    _point_to_point_of_gloo: ("recv", "recv_anysource", "send"),
    _collective_of_gloo: (
        "_allgather_base", "all_gather_single", "all_gather_single_coalesced", "all_to_all_single", "allgather",
        "allgather_coalesced", "allgather_into_tensor_coalesced", "alltoall", "alltoall_base", "broadcast", "gather",
        "gather_into_tensor", "gather_single", "reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced",
        "scatter",
    ),
}  # fmt: skip

for _method_of, _names in _DELEGATED.items():
    for _name in _names:
        # Some of them exist only in newer versions of PyTorch.
        if hasattr(dist.ProcessGroup, _name):
            _method = _method_of(_name)
            _method.__name__ = _name
            setattr(ProcessGroupISwitch, _name, _untraced(_method))


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
