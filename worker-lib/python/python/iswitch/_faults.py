"""Fault handling for a process group: classifies errors, and ends waits for another backend on abort or timeout.

Gloo cannot end a collective that is waiting for another rank: its `abort` leaves the collective running, and its
destructor waits for it. Therefore, only the caller's wait ends; the waiting backend is kept until the process exits.
"""

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import ErrorType

from iswitch._work import ForwardedWork
from iswitch.errors import AbortedError, ExpelledError, TimedOutError, WorkersLostError

# Interval at which a waiting thread checks whether the group was aborted.
_SLICE = timedelta(milliseconds=100)
# Gloo performs these operations while the caller waits, not in a separate thread. If such a wait times out, Gloo closes
# its connections, so the wait cannot be divided into slices.
_POINT_TO_POINT = ("send", "recv", "recv_anysource")
# Substrings of Gloo's error messages.
_GLOO_TIMEOUTS = ("timed out", "failed to pass monitoredBarrier")
_GLOO_LOSSES = ("closed by peer", "reset by peer", "Connection refused", "errors while waiting for send/recv from rank 0")


def seconds_of(timeout: timedelta | None) -> float | None:
    """Converts a PyTorch timeout to seconds. Returns None for values up to zero, which mean that no timeout is set."""
    seconds = timeout.total_seconds() if timeout else 0.0
    return seconds if seconds > 0.0 else None


def error_type(error: BaseException | None) -> ErrorType:
    """Returns the PyTorch type of an error, as `get_error` of a process group reports it."""
    if error is None:
        return ErrorType.SUCCESS
    if isinstance(error, TimedOutError):
        return ErrorType.TIMEOUT
    if isinstance(error, WorkersLostError | ExpelledError):
        return ErrorType.REMOTE_ERROR
    return ErrorType.COMM_ERROR


class BlockingCall:
    """Call of a function in a separate thread. The call may outlive any wait for its result."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.done = threading.Event()
        self.result: Any = None
        self.error: Exception | None = None
        threading.Thread(target=self._run, args=(function,), name="iswitch-delegate", daemon=True).start()

    def _run(self, function: Callable[[], Any]) -> None:
        try:
            self.result = function()
        except Exception as error:  # noqa: BLE001: raised again where the result is awaited
            self.error = error
        finally:
            self.done.set()


class Delegate:
    """Another backend that performs some collectives of a process group.

    Args:
        backend: The backend, which the delegate may keep beyond the lifetime of the group.
    """

    def __init__(self, backend: dist.ProcessGroupGloo) -> None:
        self.error: BaseException | None = None
        self._backend = backend
        self._is_aborted = False
        # Protects the list, because one thread may begin a collective while another one finishes waiting.
        self._lock = threading.Lock()
        self._pending: list[dist.Work] = []

    def call(self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Begins a collective.

        Raises:
            iswitch.AbortedError: The group was aborted.
        """
        self.check(name)
        work = function(*arguments, **options)
        if not isinstance(work, dist.Work):
            return work
        if name not in _POINT_TO_POINT:
            with self._lock:
                self._pending = [*(other for other in self._pending if not other.is_completed()), work]
        return _DelegatedWork(self, name, work)

    def await_call(self, name: str, call: BlockingCall, timeout: float | None = None) -> Any:
        """Waits for the result of a blocking call, unless the group is aborted first.

        Raises:
            iswitch.AbortedError: The group was aborted.
            iswitch.TimedOutError: The call did not return within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout if timeout else float("inf")
        while not call.done.wait(_SLICE.total_seconds()):
            self.check(name)
            self.check_deadline(name, deadline, timeout)
        if isinstance(call.error, RuntimeError):
            raise self.note(name, call.error) from call.error
        if call.error is not None:
            raise call.error
        return call.result

    def check(self, name: str) -> None:
        if self._is_aborted:
            raise AbortedError(f"{name}: the process group was aborted on this rank")

    def check_deadline(self, name: str, deadline: float, timeout: float | None) -> None:
        if time.monotonic() > deadline:
            raise TimedOutError(f"{name}: the other ranks did not take part within {timeout} s; the operation continues")

    def note(self, name: str, error: RuntimeError) -> RuntimeError:
        """Converts the error of a collective to an error of this package, if its message shows the reason."""
        text = f"{name}: {error}"
        if any(words in str(error) for words in _GLOO_TIMEOUTS):
            self.error = TimedOutError(text)
        elif any(words in str(error) for words in _GLOO_LOSSES):
            self.error = WorkersLostError(text)
        else:
            self.error = error
        return self.error

    def finished(self, work: dist.Work) -> None:
        with self._lock:
            self._pending = [other for other in self._pending if other is not work]

    def abort(self) -> None:
        """Ends every wait for a collective, and refuses all later collectives."""
        self._is_aborted = True
        self.close()

    def close(self) -> None:
        """Stops using the backend without waiting for collectives that are still running."""
        with self._lock:
            pending, self._pending = self._pending, []
        if any(not work.is_completed() for work in pending):
            self._is_aborted = True
            # Its destructor would wait for these collectives while holding the interpreter's lock.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._backend))


class _DelegatedWork(ForwardedWork):
    """Handle of a collective of another backend."""

    def __init__(self, delegate: Delegate, name: str, work: dist.Work) -> None:
        super().__init__(work)
        self._delegate = delegate
        self._name = name
        self._call: BlockingCall | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        delegate, seconds = self._delegate, seconds_of(timeout)
        if self._name in _POINT_TO_POINT:
            # Only one wait on Gloo receives the message, so a later wait by the caller joins the one that has begun.
            self._call = self._call or BlockingCall(self._work.wait)
            delegate.await_call(self._name, self._call, seconds)
            return True
        deadline = time.monotonic() + seconds if seconds else float("inf")
        while True:
            delegate.check(self._name)
            delegate.check_deadline(self._name, deadline, seconds)
            # This raises an error if the collective has failed or if the slice has ended.
            with contextlib.suppress(RuntimeError):
                self._work.wait(_SLICE)
                break
            if self._work.is_completed():
                return self._outcome()
        delegate.finished(self._work)
        return True

    def _outcome(self) -> bool:
        """Returns or raises the outcome of the completed collective, which may have succeeded just after a slice."""
        self._delegate.finished(self._work)
        try:
            return self._work.wait()
        except RuntimeError as error:
            raise self._delegate.note(self._name, error) from error

    def synchronize(self) -> None:
        self.wait()
