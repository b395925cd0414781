"""Errors of a worker. The message of a timeout error states what the worker was waiting for, and for how long.

The `reason` attribute of each class names the reason, for logs and metrics.
"""


class Error(RuntimeError):
    """Base class of all errors of a worker. It is a RuntimeError, like the errors of PyTorch's own backends."""

    reason = "error"


class TimedOutError(Error, TimeoutError):
    """An operation timed out; the subclass shows what it was waiting for. The same operation may be repeated."""

    reason = "timed_out"


class SwitchLostError(TimedOutError):
    """The switch has not answered for `switch_timeout` seconds. The same call may be retried."""

    reason = "switch_lost"


class WorkersMissingError(TimedOutError):
    """Other workers have not joined or contributed for `timeout` seconds. The same call may be retried."""

    reason = "workers_missing"


class WorkersLostError(Error):
    """A sum is incomplete because workers have left the job or were expelled, or a rank has ended."""

    reason = "workers_lost"


class RefusedError(Error):
    """The switch refused this worker or one of its contributions; the message names the reason."""

    reason = "refused"


class ExpelledError(Error):
    """The other workers continued without this one. It has missed the sums of some rounds and must rejoin."""

    reason = "expelled"


class HaltedError(Error):
    """The job is halted until an operator resets it."""

    reason = "halted"


class NonFiniteError(Error, ValueError):
    """The array contains NaN or an infinity, so none of it was sent (see `non_finite`)."""

    reason = "non_finite"


class UnfinishedError(Error, ValueError):
    """An earlier call failed before its sum was complete; repeat it with the same array before any other call."""

    reason = "unfinished"


class ClosedError(Error):
    """The worker was closed, or an earlier call failed permanently."""

    reason = "closed"


class AbortedError(ClosedError):
    """The process group was aborted on this rank."""

    reason = "aborted"
