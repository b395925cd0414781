"""Switch of a job whose ranks run on one machine: `ISWITCH_SWITCH=auto`.

Rank 0 starts a private switch and publishes its address in a file, which it keeps locked; the other ranks read the
file. The kernel releases the lock when rank 0 ends, so no rank mistakes the file of a dead rank 0 for that of its own
job. Unlike a PyTorch store, a file is also available to the communication hook and to programs without PyTorch.
"""

import atexit
import errno
import fcntl
import hashlib
import os
import tempfile
import threading
import time
from pathlib import Path

from iswitch.errors import WorkersMissingError
from iswitch.switch import LocalSwitch

# Interval at which the other ranks look for the file, in seconds.
_POLL_INTERVAL_S = 0.02
# Variables that identify a torchrun job and one run of it.
_JOB_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")

_lock = threading.Lock()


def address(rank: int, timeout: float, options: list[str]) -> str:
    """Returns the address of the job's switch, as "127.0.0.1:PORT"; the first rank of the machine starts the switch.

    The rank of this process in the job is taken from LOCAL_RANK or RANK, because `rank` may be the rank in a smaller
    group.

    Args:
        rank: Rank of the worker, starting from 0, if neither LOCAL_RANK nor RANK is set.
        timeout: Time to wait for rank 0, in seconds.
        options: Additional options of iswitchd, if this process starts it.

    Raises:
        ValueError: The ranks of the job run on several machines.
        WorkersMissingError: Rank 0 did not start a switch before the timeout.
        OSError, RuntimeError: See `LocalSwitch`.
    """
    _check_one_machine()
    path = _path()
    with _lock:
        if (found := _read(path)) is not None:
            return found
        if _is_first(rank):
            return _publish(path, LocalSwitch(*options))
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if (found := _read(path)) is not None:
            return found
        time.sleep(_POLL_INTERVAL_S)
    raise WorkersMissingError(
        f"switch is 'auto', but rank 0 did not start a switch within {timeout:g} s; rank 0 must run on this machine "
        f"with the same {_identity()}"
    )


def _check_one_machine() -> None:
    local, world = (os.environ.get(name) for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    if local and world and local != world:
        raise ValueError(
            f"switch is 'auto', but only {local} of the {world} ranks run on this machine; start iswitchd on a machine "
            "that all ranks can reach, and set ISWITCH_SWITCH to its HOST:PORT"
        )


def _is_first(rank: int) -> bool:
    variables = (os.environ.get(name) for name in ("LOCAL_RANK", "RANK"))
    return next(filter(None, variables), str(rank)) == "0"


def _identity() -> str:
    """Returns a text that is the same on all ranks of this job and differs from those of other jobs on this machine."""
    if "MASTER_PORT" in os.environ:
        return ", ".join(f"{name}={os.environ[name]}" for name in _JOB_VARIABLES if name in os.environ)
    return f"parent process {os.getppid()}"


def _path() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    directory = runtime if os.access(runtime, os.W_OK) else tempfile.gettempdir()
    digest = hashlib.sha256(_identity().encode()).hexdigest()[:16]
    return Path(directory, f"iswitch-{os.geteuid()}-{digest}.switch")


def _read(path: Path) -> str | None:
    """Returns the address in the file, or None if there is no file or the process that wrote it has ended."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.EACCES):
            return None
        raise
    with open(file) as published:
        # In a directory that all users share, the file may belong to another user.
        if os.fstat(file).st_uid != os.geteuid():
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return published.read()
        return None


def _publish(path: Path, switch: LocalSwitch) -> str:
    """Publishes the switch until this process ends; returns its address."""
    # The file is locked and complete before it appears under its final name.
    file = tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False)  # noqa: SIM115
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(switch.address)
    file.flush()
    os.replace(file.name, path)
    # A forked process must not keep the lock of its parent.
    os.register_at_fork(after_in_child=file.close)

    def withdraw() -> None:
        if not file.closed:
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                path.unlink()
            file.close()
            switch.detach()

    atexit.register(withdraw)
    return switch.address
