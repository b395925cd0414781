"""Switches on this machine: runs the `iswitchd` that the wheel contains.

`python -m iswitch.switch` runs iswitchd with the given options. If no port is specified, the switch listens on UDP
port 7711 on the loopback interface.

>>> import iswitch.switch
>>> with iswitch.switch.LocalSwitch() as switch:
...     worker = iswitch.Worker(switch.address, rank=0, world_size=1)
"""

import contextlib
import importlib.metadata
import itertools
import os
import re
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Self

__all__ = ["DEFAULT_ADDRESS", "LocalSwitch", "find_iswitchd", "main"]

DEFAULT_ADDRESS = "127.0.0.1:7711"
"""Address ("HOST:PORT") on which `python -m iswitch.switch` listens if its options specify no port."""

# Options that specify the ports that iswitchd serves, or a file that does.
_PORT_OPTIONS = {"--udp", "--port", "--config"}
# Defaults of a private switch. All of its jobs come from one address, and each process group may have 16 jobs.
_DEFAULTS = {"--log-level": "warn", "--max-jobs-per-source": "64"}
# Number of cores per thread of a private switch; the workers on this machine need the other cores.
_CORES_PER_THREAD = 4
_MAX_THREADS = 16
# Time that `close` waits before it kills the switch, in seconds.
_CLOSE_TIMEOUT_S = 5.0

_USAGE = f"""\
Usage: python -m iswitch.switch [OPTIONS]

Runs iswitchd on this machine. If the options contain neither --udp nor --port nor --config, it serves
{DEFAULT_ADDRESS}. The remainder of this text is the help of iswitchd.
"""


def find_iswitchd() -> str:
    """Returns the path of iswitchd: the value of ISWITCHD, else the one in the installed wheel, else the one on the PATH.

    Raises:
        FileNotFoundError: There is no iswitchd.
    """
    if named := os.environ.get("ISWITCHD"):
        return named
    found = _installed_iswitchd() or shutil.which("iswitchd")
    if found is None:
        raise FileNotFoundError(
            "iswitchd is neither in the installed wheel nor on the PATH; install a wheel built by packaging/wheel/build, "
            "or set ISWITCHD to the path of iswitchd"
        )
    return found


def _installed_iswitchd() -> str | None:
    try:
        files = importlib.metadata.files("iswitch-linux") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    # `pip install --target` moves the scripts after it has recorded their paths.
    moved = os.path.join(os.path.dirname(__file__), os.pardir, "bin", "iswitchd")
    paths = [*(os.fspath(file.locate()) for file in files if file.name == "iswitchd"), moved]
    return next((os.path.realpath(path) for path in paths if os.path.exists(path)), None)


class LocalSwitch:
    """Private switch: an iswitchd on a free UDP port of the loopback interface, which needs no privileges.

    It runs one thread for every four cores of the machine, unless `--threads` sets another number.

    The switch stops on `close`. It also stops after this process has ended, even if the process was killed; in this
    case, the switch first waits until the workers of its jobs have left or their leases have expired (10 seconds unless
    `--lease-ms` sets another value). iswitchd's warnings go to this process's standard error.

    Args:
        options: Additional options of iswitchd, for example "--ordered".

    Raises:
        FileNotFoundError: There is no iswitchd; see `find_iswitchd`.
        OSError: iswitchd cannot be executed.
        RuntimeError: iswitchd ended before it was ready; its error is on standard error.
    """

    def __init__(self, *options: str) -> None:
        iswitchd = find_iswitchd()
        # The switch has its own session, because Ctrl-C must not stop it before the workers. Its standard error is a
        # pipe, because the readers of this process's standard error would otherwise wait for the end of the switch.
        self._process = subprocess.Popen(
            [iswitchd, "--udp", "127.0.0.1:0", "--no-control-socket", "--stop-on-stdin-eof", *_with_defaults(options)],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        _switches.add(self)
        self._log = threading.Thread(target=_forward, args=(self._process.stderr,), name="iswitch-switch-log", daemon=True)
        self._log.start()
        line = _first_line(self._process.stdout)
        ready = re.search(r" ready: udp ([\d.:]+)", line)
        if ready is None:
            self.close()
            raise RuntimeError(
                f"{iswitchd} printed {line!r} and ended with status {self._process.returncode}, expected a running "
                "switch; its error is on standard error"
            )
        self._address = ready[1]

    @property
    def address(self) -> str:
        """Address of the switch, as "127.0.0.1:PORT"."""
        return self._address

    def close(self) -> None:
        """Stops the switch. Calls of workers that still use it raise SwitchLostError."""
        self._process.terminate()
        self.detach()
        try:
            self._process.wait(_CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.join()

    def detach(self) -> None:
        """Makes the switch stop as soon as no job is left; returns immediately."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"iswitch.switch.LocalSwitch(address='{self.address}')"


_switches: weakref.WeakSet[LocalSwitch] = weakref.WeakSet()


def _detach_all() -> None:
    for switch in _switches:
        switch.detach()


# A forked process, such as that of a data loader, must not keep the switch of its parent running.
os.register_at_fork(after_in_child=_detach_all)


def _names(options: Sequence[str]) -> set[str]:
    """Returns the names of the options, without their values."""
    return {option.split("=")[0] for option in options if option.startswith("-")}


def _with_defaults(options: Sequence[str]) -> list[str]:
    threads = min(max((os.cpu_count() or 1) // _CORES_PER_THREAD, 1), _MAX_THREADS)
    defaults = {**_DEFAULTS, "--threads": str(threads)}
    missing = [(name, value) for name, value in defaults.items() if name not in _names(options)]
    return [*itertools.chain(*missing), *options]


def _first_line(output: IO[bytes] | None) -> str:
    """Returns the first line, or an empty string if there is none, and closes the stream."""
    assert output is not None
    with output:
        return output.readline().decode().rstrip()


def _forward(errors: IO[bytes]) -> None:
    """Copies lines to the standard error of this process until the switch ends."""
    with errors:
        for line in errors:
            # Not through `sys.stderr`, whose lock this thread could hold while the interpreter shuts down. The switch must
            # be able to write even if this process has closed its standard error.
            with contextlib.suppress(OSError):
                os.write(2, line)


def main(arguments: Sequence[str] | None = None) -> None:
    """Replaces this process with iswitchd.

    Args:
        arguments: Options of iswitchd; by default those of the command line.

    Raises:
        SystemExit: There is no iswitchd, or it cannot be executed.
    """
    options = list(sys.argv[1:] if arguments is None else arguments)
    if {"-h", "--help"} & _names(options):
        print(_USAGE, flush=True)
    if not _PORT_OPTIONS & _names(options):
        options = ["--udp", DEFAULT_ADDRESS, *options]
    try:
        iswitchd = find_iswitchd()
        os.execv(iswitchd, ["iswitchd", *options])
    except OSError as error:
        sys.exit(f"python -m iswitch.switch: {error}")


if __name__ == "__main__":
    main()
