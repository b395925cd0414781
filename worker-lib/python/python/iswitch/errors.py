"""Errors of a worker. The message of a timeout says what the worker waited for, and for how long."""


class Error(Exception):
    """Base class of all errors of a worker."""


class SwitchLostError(Error, TimeoutError):
    """The switch has not answered for `switch_timeout` seconds. The same call may be retried."""


class WorkersMissingError(Error, TimeoutError):
    """Other workers have not joined or contributed for `timeout` seconds. The same call may be retried."""


class WorkersLostError(Error):
    """A sum lacks the gradients of workers that have left the job or were expelled."""


class RefusedError(Error):
    """The switch refused this worker or one of its contributions; the message names the reason."""


class ExpelledError(Error):
    """The other workers continued without this one, which lacks the sums of these rounds and must rejoin."""


class HaltedError(Error):
    """The job is halted until an operator resets it."""


class NonFiniteError(Error, ValueError):
    """The array contains NaN or an infinity, so none of it was sent (see `non_finite`)."""


class UnfinishedError(Error, ValueError):
    """The last call failed before its sum was complete; it must be repeated with the same array before any other."""


class ClosedError(Error):
    """The worker was closed, or an earlier call failed permanently."""
