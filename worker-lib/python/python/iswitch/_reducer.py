"""The thread that sums tensors through a worker, in the order in which they are submitted."""

import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any, cast

import torch

from iswitch import AbortedError, ClosedError, Error, HaltedError, TimedOutError, UnfinishedError, Worker, WorkersLostError
from iswitch._staging import Staged, Stager

# Time that `close` waits for the thread, which abandons its call within half a second.
_CLOSE_TIMEOUT_S = 5.0


class _Operation:
    """Sum of one staged tensor, with the options that the caller requested."""

    def __init__(self, staged: Staged, mean: bool, timeout: float | None, failures: int) -> None:
        self.staged = staged
        self.mean = mean
        self.timeout = timeout
        # Number of operations that had failed when this one was submitted.
        self.failures = failures
        # PyTorch counts changes to a tensor's elements, but not the changes that a worker makes.
        self._identity = (staged.name, mean, *map(_identity, staged.inputs))

    def __str__(self) -> str:
        name, inputs = self.staged.name, self.staged.inputs
        if not inputs:
            return name
        kind = "mean" if self.mean else "sum"
        elements = sum(tensor.numel() for tensor in inputs)
        return f"{name} ({kind}) of {elements} elements of {str(inputs[0].dtype).removeprefix('torch.')}"

    def repeats(self, failed: "_Operation") -> bool:
        """Returns whether this operation is the failed one, with the same elements in the same memory."""
        return self._identity == failed._identity


def _identity(tensor: torch.Tensor) -> tuple[object, ...]:
    version = 0 if tensor.is_inference() else tensor._version
    return (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride(), version)


class _Sums:
    """Sums tensors through a worker, one at a time, and keeps the state needed to repeat a failed operation."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        # Last error, until the operation has been repeated successfully.
        self.error: BaseException | None = None
        self.failures = 0
        self._failed: _Operation | None = None
        self._is_aborted = False

    def run(self, operation: _Operation) -> None:
        """Sums a tensor; the result is complete once `operation.staged.wait` returns.

        Raises:
            iswitch.Error: See `Reducer.all_reduce`; the message names the operation and the tensor's size.
        """
        self._admit(operation)
        try:
            self._sum(operation)
        except (TimedOutError, HaltedError) as error:
            raise self._note(operation, type(error)(f"{operation}: {error}"), is_repeatable=True) from None
        except ClosedError as error:
            raise self._note(operation, self.closed(operation, error)) from None
        except (Error, OSError) as error:
            raise self._note(operation, error) from None
        except (TypeError, ValueError):
            # Nothing was sent.
            raise
        except BaseException as error:
            # A signal handler, such as that of Ctrl-C, has interrupted the call.
            raise self._note(operation, error, is_repeatable=True) from None
        self._failed = self.error = None

    def abort(self) -> None:
        """Makes every operation that fails from now on report that the group was aborted."""
        self._is_aborted = True

    def closed(self, operation: _Operation, error: object) -> ClosedError:
        """Returns the error of an operation that ends because the worker was closed."""
        if self._is_aborted:
            return AbortedError(f"{operation}: the process group was aborted on this rank")
        return ClosedError(f"{operation}: {error}")

    def _admit(self, operation: _Operation) -> None:
        """Refuses an operation that is not the repetition of the one that failed."""
        failed = self._failed
        if failed is None or self._is_aborted:
            return
        # An operation that was submitted before the failure cannot be a repetition, even if it equals the failed one.
        if operation.failures < self.failures or not operation.repeats(failed):
            raise UnfinishedError(
                f"{operation}: expected the repetition of the operation that failed, {failed}, with the same tensor, "
                f"unchanged (its error was: {self.error})"
            )
        # The beginning of the failed tensor may already hold the sum.
        operation.staged = failed.staged

    def _sum(self, operation: _Operation) -> None:
        host, size = operation.staged.host(), self.worker.world_size
        reduce = self.worker.all_reduce_mean_ if operation.mean else self.worker.all_reduce_
        summed = reduce(host, timeout=operation.timeout)
        if summed < size:
            raise WorkersLostError(
                f"{operation}: the sum contains {summed} of {size} gradients: workers have left or were expelled"
            )
        operation.staged.finish()

    def _note(self, operation: _Operation, error: BaseException, is_repeatable: bool = False) -> BaseException:
        if not isinstance(error, ValueError):
            self.error = error
            self.failures += 1
            self._failed = operation if is_repeatable else None
        return error


class Job:
    """Job that sums one staged tensor in the thread. `result` is the value of its future."""

    def __init__(self, operation: _Operation, result: Any) -> None:
        self.operation = operation
        self.result = result
        self.error: BaseException | None = None
        # A Python event, because Ctrl-C interrupts a thread that waits for it.
        self.done = threading.Event()
        tensor = operation.staged.tensor
        devices: list[int | str | torch.device] | None = [tensor.device] if tensor.is_cuda else None
        self._ended: torch.futures.Future = torch.futures.Future(devices=devices)
        # A PyTorch future, for the reducer of DistributedDataParallel. Only a callback can make it fail.
        self.future = self._ended.then(self._outcome)

    def run(self, sums: Callable[[_Operation], None]) -> None:
        try:
            sums(self.operation)
        except BaseException as error:  # noqa: BLE001: raised again where the result is awaited
            self.error = error
        self.end()

    def end(self) -> None:
        self._ended.set_result(None)
        self.done.set()

    def outcome(self) -> Any:
        """Returns the result of a job that is done, for use on the current stream of its device.

        Raises:
            BaseException: The job's error.
        """
        if self.error is not None:
            raise self.error
        self.operation.staged.wait()
        return self.result

    def _outcome(self, _: torch.futures.Future) -> Any:
        return self.outcome()


def _serve(jobs: "queue.SimpleQueue[Job | None]", sums: _Sums) -> None:
    """Runs the queued jobs in order until it receives None."""
    while (job := jobs.get()) is not None:
        job.run(sums.run)


def _stop(
    jobs: "queue.SimpleQueue[Job | None]", lock: threading.Lock, worker: Worker, thread: threading.Thread
) -> None:
    with lock:
        jobs.put(None)
    worker.close()
    # A callback of a future runs in the thread, and may close the reducer.
    if threading.current_thread() is not thread:
        thread.join(_CLOSE_TIMEOUT_S)


class Reducer:
    """Sums tensors through a worker, in the order in which they are submitted, in a background thread.

    Contiguous tensors on the CPU are summed in place. float16 and bfloat16 tensors are sent in 16 bits; the switch sums
    them in 32 bits and rounds each sum once. Tensors on a GPU are copied through pinned CPU memory, on separate streams.

    If an operation times out, or is interrupted by Ctrl-C, the operations that are queued behind it fail with
    `iswitch.UnfinishedError`. All other operations fail in the same way until the interrupted operation is repeated with
    the same tensor, unchanged.

    Args:
        worker: The worker. The reducer takes ownership of it and closes it.

    Attributes:
        worker: The worker.
        timeout: Time limit of each operation in seconds; None for the timeouts of the worker.
    """

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.timeout: float | None = None
        self._sums = _Sums(worker)
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        # Held while a job or the end marker is queued: the thread would never run a job queued after the end marker.
        self._lock = threading.Lock()
        self._stager = Stager()
        self._last: Job | None = None
        arguments = (self._jobs, self._sums)
        self._thread = threading.Thread(target=_serve, args=arguments, name="iswitch-reducer", daemon=True)
        self._thread.start()
        # Stops the thread before the interpreter shuts down.
        self._stop = weakref.finalize(self, _stop, self._jobs, self._lock, worker, self._thread)

    @property
    def error(self) -> BaseException | None:
        """Error of the last operation that failed; None once it has been repeated successfully."""
        return self._sums.error

    def submit(self, tensor: torch.Tensor, mean: bool = False) -> torch.futures.Future[torch.Tensor]:
        """Begins to replace `tensor` with its sum or mean over all workers; the future's value is the tensor."""
        return cast("torch.futures.Future[torch.Tensor]", self.begin(self.stage(tensor), mean, tensor).future)

    def all_reduce(self, tensor: torch.Tensor, mean: bool = False, timeout: float | None = None) -> None:
        """Replaces `tensor` with its sum or mean over all workers; returns when the result is complete.

        Args:
            tensor: Dense tensor of float32, float16 or bfloat16 on the CPU or a GPU.
            mean: Whether to divide the sum by the number of workers.
            timeout: Time limit in seconds, above 0; None for `self.timeout`.

        Raises:
            iswitch.Error: See `iswitch.Worker.all_reduce_`.
            iswitch.WorkersLostError: The sum is incomplete because workers have left the job or were expelled.
            iswitch.UnfinishedError: An earlier operation has failed and must be repeated first.
        """
        self.complete(self.stage(tensor), mean, timeout)

    def close(self) -> None:
        """Leaves the job. Pending tensors fail with ClosedError."""
        self._stop()

    def abort(self) -> None:
        """Leaves the job. Pending and later tensors fail with AbortedError."""
        self._sums.abort()
        self._stop()

    def stage(self, tensor: torch.Tensor) -> Staged:
        """Begins to copy the tensor to CPU memory, for `complete` or `begin`."""
        return self._stager.stage(tensor)

    def complete(self, staged: Staged, mean: bool = False, timeout: float | None = None) -> None:
        """Like `all_reduce`, for a staged tensor."""
        if self._stop.alive and (self._last is None or self._last.done.is_set()):
            # No job is pending, so this thread can sum the tensor without waking the background thread.
            operation = self._operation(staged, mean, timeout)
            self._sums.run(operation)
            operation.staged.wait()
        else:
            job = self.begin(staged, mean, staged.tensor, timeout)
            job.done.wait()
            job.outcome()

    def begin(self, staged: Staged, mean: bool, result: Any, timeout: float | None = None) -> Job:
        """Begins to sum a staged tensor; `result` is the value of the job's future."""
        job = Job(self._operation(staged, mean, timeout), result)
        if threading.current_thread() is self._thread:
            # A callback of the previous job requests this sum, and may wait for it, as PowerSGD's callback does. This
            # sum comes next on all workers, regardless of what else has been submitted in the meantime.
            job.run(self._sums.run)
        elif not self._queue(job):
            job.error = self._sums.closed(job.operation, "the reducer was closed")
            job.end()
        return job

    def _queue(self, job: Job) -> bool:
        """Queues the job for the thread; returns whether the reducer is still open."""
        with self._lock:
            is_open = self._stop.alive
            if is_open:
                self._last = job
                self._jobs.put(job)
        return is_open

    def _operation(self, staged: Staged, mean: bool, timeout: float | None) -> _Operation:
        limit = self.timeout if timeout is None else timeout
        return _Operation(staged, mean, limit, self._sums.failures)
