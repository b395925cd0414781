"""The thread that sums tensors through a worker, in the order in which they are submitted."""

import queue
import threading
import weakref
from typing import Any

import torch

from iswitch import ClosedError, Worker, WorkersLostError
from iswitch._staging import Staged, Stager

# Time that `close` waits for the thread, which abandons its call within a quarter of a second.
_CLOSE_TIMEOUT_S = 5.0


class Job:
    """Job of summing one staged tensor in the thread. `result` is the value of its future."""

    def __init__(self, staged: Staged, mean: bool, result: Any) -> None:
        self.result = result
        self.mean = mean
        self.error: BaseException | None = None
        # A Python event, because Ctrl-C interrupts a thread that waits for it.
        self.done = threading.Event()
        self._staged = staged
        devices = [staged.tensor.device] if staged.tensor.is_cuda else None
        self._ended: torch.futures.Future = torch.futures.Future(devices=devices)
        # A PyTorch future, for the reducer of DistributedDataParallel. Only a callback can make it fail.
        self.future = self._ended.then(self._outcome)

    def run(self, worker: Worker) -> None:
        try:
            _sum(self._staged, self.mean, worker)
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
        self._staged.wait()
        return self.result

    def _outcome(self, _: torch.futures.Future) -> Any:
        return self.outcome()


def _sum(staged: Staged, mean: bool, worker: Worker) -> None:
    host = staged.host()
    size = worker.world_size
    summed = worker.all_reduce_mean_(host) if mean else worker.all_reduce_(host)
    if summed < size:
        raise WorkersLostError(f"the sum contains {summed} of {size} gradients: workers have left or were expelled")
    staged.finish()


def _serve(jobs: "queue.SimpleQueue[Job | None]", worker: Worker) -> None:
    """Runs the queued jobs in order until it receives None."""
    while (job := jobs.get()) is not None:
        job.run(worker)


def _stop(jobs: "queue.SimpleQueue[Job | None]", worker: Worker, thread: threading.Thread) -> None:
    jobs.put(None)
    worker.close()
    thread.join(_CLOSE_TIMEOUT_S)


class Reducer:
    """Sums tensors through a worker, in the order in which they are submitted, in a background thread.

    Contiguous tensors on the CPU are summed in place. float16 and bfloat16 tensors travel as such; the switch sums them in
    32 bits and rounds each sum once. Tensors on a GPU are copied through pinned CPU memory, on streams of their own.

    Args:
        worker: The worker. The reducer takes ownership of it and closes it.
    """

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stager = Stager()
        self._last: Job | None = None
        self._thread = threading.Thread(target=_serve, args=(self._jobs, worker), name="iswitch-reducer", daemon=True)
        self._thread.start()
        # Stops the thread before the interpreter shuts down.
        self._stop = weakref.finalize(self, _stop, self._jobs, worker, self._thread)

    def submit(self, tensor: torch.Tensor, mean: bool = False) -> torch.futures.Future[torch.Tensor]:
        """Begins to replace `tensor` with its sum or mean over all workers; the future's value is the tensor."""
        return self.begin(self.stage(tensor), mean, tensor).future

    def all_reduce(self, tensor: torch.Tensor, mean: bool = False) -> None:
        """Replaces `tensor` with its sum or mean over all workers; returns when the result is complete.

        Raises:
            iswitch.Error: See `iswitch.Worker.all_reduce_`.
            iswitch.WorkersLostError: The sum lacks the gradients of workers that have left the job or were expelled.
        """
        self.complete(self.stage(tensor), mean)

    def close(self) -> None:
        """Leaves the job. Pending tensors fail with ClosedError."""
        self._stop()

    def stage(self, tensor: torch.Tensor) -> Staged:
        """Begins to bring the tensor into CPU memory, for `complete` or `begin`."""
        return self._stager.stage(tensor)

    def complete(self, staged: Staged, mean: bool = False) -> None:
        """Like `all_reduce`, for a staged tensor."""
        if self._stop.alive and (self._last is None or self._last.done.is_set()):
            # No job is pending, so this thread can sum the tensor without waking the background thread.
            _sum(staged, mean, self.worker)
            staged.wait()
        else:
            job = self.begin(staged, mean, staged.tensor)
            job.done.wait()
            job.outcome()

    def begin(self, staged: Staged, mean: bool, result: Any) -> Job:
        """Begins to sum a staged tensor; `result` is the value of the job's future."""
        job = Job(staged, mean, result)
        if threading.current_thread() is self._thread:
            # A callback of the previous job wants this sum, and may wait for it, as PowerSGD's does. It comes next on all
            # workers, whatever else has been submitted meanwhile.
            job.run(self.worker)
        elif self._stop.alive:
            self._last = job
            self._jobs.put(job)
        else:
            job.error = ClosedError("the reducer was closed")
            job.end()
        return job
