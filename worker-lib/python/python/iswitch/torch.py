"""Aggregation of PyTorch gradients through the switch: a backend for `torch.distributed`, and a communication hook.

The backend sums and averages floats through the switch and delegates all other collectives to Gloo:

>>> import iswitch.torch
>>> dist.init_process_group("iswitch")    # ISWITCH_SWITCH=10.9.0.254:7711

The hook sums the buckets of one DistributedDataParallel model and works with any backend:

>>> reducer = iswitch.torch.Reducer(iswitch.Worker())
>>> model.register_comm_hook(reducer, iswitch.torch.all_reduce_hook)

Both sum a bucket while the backward pass computes the next one.
"""

import queue
import random
import threading
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from iswitch import ClosedError, Worker, WorkersLostError

__all__ = ["ProcessGroupISwitch", "Reducer", "all_reduce_hook"]

_SUMMED_DTYPES = (torch.float32, torch.float16, torch.bfloat16)

# Time that `close` waits for the thread, which abandons its call within a quarter of a second.
_CLOSE_TIMEOUT_S = 5.0


class _Stager:
    """Sums tensors on all supported devices through a worker, which only sums contiguous tensors in CPU memory."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        # One buffer per device type and dtype; those for CUDA are in pinned memory, so that copies are direct.
        self._buffers: dict[tuple[str, torch.dtype], torch.Tensor] = {}
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    def all_reduce(self, tensor: torch.Tensor, mean: bool, ready: torch.cuda.Event | None = None) -> None:
        """Replaces `tensor` with its sum or mean, once the event `ready` has occurred on its device."""
        if tensor.is_cuda:
            stream = self._streams.get(tensor.device) or torch.cuda.Stream(tensor.device)
            self._streams[tensor.device] = stream
            with torch.cuda.stream(stream):
                stream.wait_event(ready)
                self._all_reduce_copy(tensor, mean)
                stream.synchronize()
        elif tensor.is_contiguous():
            self._all_reduce_here(tensor.detach(), mean)
        else:
            self._all_reduce_copy(tensor, mean)

    def _all_reduce_copy(self, tensor: torch.Tensor, mean: bool) -> None:
        copy = self._buffer(tensor).copy_(tensor.detach())
        self._all_reduce_here(copy, mean)
        tensor.detach().copy_(copy)

    def _all_reduce_here(self, tensor: torch.Tensor, mean: bool) -> None:
        size = self.worker.world_size
        summed = self.worker.all_reduce_mean_(tensor) if mean else self.worker.all_reduce_(tensor)
        if summed < size:
            raise WorkersLostError(f"the sum contains {summed} of {size} gradients: workers have left or were expelled")

    def _buffer(self, tensor: torch.Tensor) -> torch.Tensor:
        kind = tensor.device.type, tensor.dtype
        kept = self._buffers.get(kind)
        if kept is None or kept.numel() < tensor.numel():
            kept = torch.empty(tensor.numel(), dtype=tensor.dtype, pin_memory=tensor.is_cuda)
            self._buffers[kind] = kept
        return kept[: tensor.numel()].view(tensor.shape)


class _Job:
    """Job of summing one tensor in the thread. Its future's value is the tensor, or a list with only the tensor."""

    def __init__(self, tensor: torch.Tensor, mean: bool, in_list: bool) -> None:
        self.tensor = tensor
        self.result = [tensor] if in_list else tensor
        self.mean = mean
        self.ready = torch.cuda.current_stream(tensor.device).record_event() if tensor.is_cuda else None
        self.error: BaseException | None = None
        # A Python event, because Ctrl-C interrupts a thread that waits for it.
        self.done = threading.Event()
        devices = [tensor.device] if tensor.is_cuda else None
        self._ended: torch.futures.Future = torch.futures.Future(devices=devices)
        # A PyTorch future, for the reducer of DistributedDataParallel. Only a callback can make it fail.
        self.future = self._ended.then(self._outcome)

    def run(self, stager: _Stager) -> None:
        try:
            stager.all_reduce(self.tensor, self.mean, self.ready)
        except BaseException as error:  # noqa: BLE001: raised again where the result is awaited
            self.error = error
        self.end()

    def end(self) -> None:
        self._ended.set_result(None)
        self.done.set()

    def _outcome(self, _: torch.futures.Future) -> torch.Tensor | list[torch.Tensor]:
        if self.error is not None:
            raise self.error
        return self.result


def _serve(jobs: "queue.SimpleQueue[_Job | None]", stager: _Stager) -> None:
    """Runs the queued jobs in order until it receives None."""
    while (job := jobs.get()) is not None:
        job.run(stager)


def _stop(jobs: "queue.SimpleQueue[_Job | None]", worker: Worker, thread: threading.Thread) -> None:
    jobs.put(None)
    worker.close()
    thread.join(_CLOSE_TIMEOUT_S)


class Reducer:
    """Sums tensors through a worker, in the order in which they are submitted, in a background thread.

    Contiguous tensors on the CPU are summed in place. float16 and bfloat16 tensors travel as such; the switch sums them in
    32 bits and rounds each sum once. Tensors on a GPU are copied through pinned CPU memory.

    Args:
        worker: The worker. The reducer takes ownership of it and closes it.
    """

    def __init__(self, worker: Worker) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._stager = _Stager(worker)
        self._last: _Job | None = None
        self._thread = threading.Thread(
            target=_serve, args=(self._jobs, self._stager), name="iswitch-reducer", daemon=True
        )
        self._thread.start()
        # Stops the thread before the interpreter shuts down.
        self._stop = weakref.finalize(self, _stop, self._jobs, worker, self._thread)

    @property
    def worker(self) -> Worker:
        return self._stager.worker

    def submit(self, tensor: torch.Tensor, mean: bool = False) -> torch.futures.Future[torch.Tensor]:
        """Begins to replace `tensor` with its sum or mean over all workers; the future's value is the tensor."""
        return self.begin(tensor, mean).future

    def all_reduce(self, tensor: torch.Tensor, mean: bool = False) -> None:
        """Replaces `tensor` with its sum or mean over all workers; returns when the result is complete.

        Raises:
            iswitch.Error: See `iswitch.Worker.all_reduce_`.
            iswitch.WorkersLostError: The sum lacks the gradients of workers that have left the job or were expelled.
        """
        if self._last is None or self._last.done.is_set():
            # No job is pending, so this thread can sum the tensor without waking the background thread.
            ready = torch.cuda.current_stream(tensor.device).record_event() if tensor.is_cuda else None
            self._stager.all_reduce(tensor, mean, ready)
        else:
            _Work(self.begin(tensor, mean)).wait()

    def close(self) -> None:
        """Leaves the job. Pending tensors fail with ClosedError."""
        self._stop()

    def begin(self, tensor: torch.Tensor, mean: bool, in_list: bool = False) -> _Job:
        """Like `submit`, but returns the job, which has more state than its future."""
        job = _Job(tensor, mean, in_list)
        if threading.current_thread() is self._thread:
            # A callback of the previous job wants this sum, and may wait for it, as PowerSGD's does. It comes next on all
            # workers, whatever else has been submitted meanwhile.
            job.run(self._stager)
        elif self._stop.alive:
            self._last = job
            self._jobs.put(job)
        else:
            job.error = ClosedError("the reducer was closed")
            job.end()
        return job


def all_reduce_hook(state: Reducer, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """DDP communication hook that averages the bucket's gradients over all workers."""
    return state.submit(bucket.buffer(), mean=True)


class _Work(dist._Work):
    """Handle of an asynchronous collective."""

    def __init__(self, job: _Job) -> None:
        super().__init__()
        self._job = job

    def wait(self, timeout: timedelta | None = None) -> bool:
        seconds = timeout.total_seconds() if timeout else 0.0
        if not self._job.done.wait(seconds if seconds > 0.0 else None):
            raise TimeoutError(f"the sum is not complete after {seconds} s")
        if self._job.error is not None:
            raise self._job.error
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
        self._others = _gloo(dist.PrefixStore("gloo", store), rank, size, timeout)
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
            return self._others.allreduce(tensors, opts)
        mean = opts.reduceOp == dist.ReduceOp.AVG
        if opts.asyncOp:
            return _Work(self._reducer.begin(tensors[0], mean, in_list=True))
        self._reducer.all_reduce(tensors[0], mean)
        return _Done(tensors)

    def shutdown(self) -> None:
        if self._reducer is not None:
            self._reducer.close()
        self._others.shutdown()

    def abort(self) -> None:
        if self._reducer is not None:
            self._reducer.close()
        self._others.abort()

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


def _gloo(store: dist.Store, rank: int, size: int, timeout: timedelta) -> dist.ProcessGroup:
    group = dist.ProcessGroup(store, rank, size)
    backend = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
    for device in ("cpu", "cuda"):
        group._register_backend(torch.device(device), dist.ProcessGroup.BackendType.GLOO, backend)
    group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
    return group


def _to_others(name: str) -> Callable[..., Any]:
    def method(self: ProcessGroupISwitch, *arguments: Any, **options: Any) -> Any:
        return getattr(self._others, name)(*arguments, **options)

    method.__name__ = name
    return method


# A separate process group implements these collectives, not the base class. A call of the base class through this class
# holds the interpreter's lock while it waits for Gloo's lock, which another thread may hold while it waits for the
# interpreter's lock: a deadlock.
for _name in (
    "_allgather_base", "_end_coalescing", "_get_backend", "_reduce_scatter_base", "_set_sequence_number_for_group",
    "_get_sequence_number_for_group", "_start_coalescing", "_wait_for_pending_works", "all_gather_single",
    "all_gather_single_coalesced", "all_to_all_single", "allgather", "allgather_coalesced",
    "allgather_into_tensor_coalesced", "allreduce_coalesced", "alltoall", "alltoall_base", "barrier", "broadcast",
    "gather", "gather_into_tensor", "gather_single", "get_backend", "monitored_barrier", "recv", "recv_anysource", "reduce",
    "reduce_scatter", "reduce_scatter_single", "reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced",
    "scatter", "send", "set_timeout",
):  # fmt: skip
    # Some of them exist only in newer versions of PyTorch.
    if hasattr(dist.ProcessGroup, _name):
        setattr(ProcessGroupISwitch, _name, _to_others(_name))


def _common_job(store: dist.Store, rank: int) -> int:
    """Returns the job number that rank 0 draws at random and shares through the store."""
    if rank == 0:
        store.set("iswitch/job", str(random.SystemRandom().getrandbits(32)))
    return int(store.get("iswitch/job"))


def _create(store: dist.Store, rank: int, size: int, timeout: timedelta) -> ProcessGroupISwitch:
    return ProcessGroupISwitch(store, rank, size, timeout)


dist.Backend.register_backend("iswitch", _create, devices=["cpu", "cuda"])
