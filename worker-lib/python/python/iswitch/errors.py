"""What can go wrong between a worker and its switch. Each message says what was waited for, and how long."""


class Error(Exception):
    """Any failure of a worker."""


class SwitchLostError(Error, TimeoutError):
    """The switch has not answered for `switch_timeout` seconds. The same call may be tried again."""


class WorkersMissingError(Error, TimeoutError):
    """Other workers have not joined, or not contributed, for `timeout` seconds. The same call may be tried again."""


class WorkersLostError(Error):
    """A sum lacks the gradients of workers that are gone."""


class RefusedError(Error):
    """The switch refused this worker, and named the field; or it refused a contribution."""


class ExpelledError(Error):
    """The others have gone on without this worker, which lacks the sums in between: it has to join anew."""


class HaltedError(Error):
    """The job is halted, until somebody resets it."""


class NonFiniteError(Error, ValueError):
    """The array holds NaN or an infinity, and nothing of it was sent (see `non_finite`)."""


class UnfinishedError(Error, ValueError):
    """The last call failed half way and has to be repeated with the same array before any other."""


class ClosedError(Error):
    """The worker was closed, or an earlier call has failed for good."""
