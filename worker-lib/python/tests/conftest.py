"""Fixtures: a switch for each test, and workers in separate processes.

`iswitchd` is the one that `iswitch.switch.find_iswitchd` finds.
"""

import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from iswitch.switch import find_iswitchd

# If this variable is set, a test that would be skipped fails instead, except for those that need a GPU.
REQUIRE_VARIABLE = "ISWITCH_REQUIRE_ALL_TESTS"
MAY_SKIP = "test_gpu.py"
# Time limit of each operation, with a margin for a busy machine.
PATIENCE_S = 300


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Returns a port of the loopback interface that no socket of this kind uses at the moment."""
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Switch:
    """An iswitchd on a loopback port, which it keeps across restarts."""

    def __init__(self, *options: str) -> None:
        self._options = options
        self.address = f"127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
        self._directory = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        control = Path(self._directory.name, "control.sock")
        self._process = subprocess.Popen(
            [find_iswitchd(), "--udp", self.address, "--control-socket", control, "--log-level", "warn", *self._options],
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self._process.stdout.readline()
        assert " ready: " in line, f"iswitchd has not started: {line!r}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture
def start_switch() -> Iterator[Callable[..., Switch]]:
    started: list[Switch] = []

    def start(*options: str) -> Switch:
        started.append(Switch(*options))
        return started[-1]

    yield start
    for switch in started:
        switch.kill()


@pytest.fixture
def switch(start_switch: Callable[..., Switch]) -> Switch:
    return start_switch()


@pytest.fixture(scope="module")
def module_switch() -> Iterator[Switch]:
    """A switch for all tests of a module."""
    switch = Switch()
    yield switch
    switch.kill()


def on_each(count: int, run: Callable[[int], Any]) -> list[Any]:
    """Calls `run(rank)` for each rank in a separate thread; a waiting worker releases the interpreter's lock."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count), timeout=PATIENCE_S))


class Ranks:
    """Processes that run a script with the environment variables that torchrun would set."""

    def __init__(self, count: int, script: Path, *arguments: str, **variables: str) -> None:
        common = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), **variables}
        self.processes = [
            subprocess.Popen(
                [sys.executable, str(script), *arguments],
                env={**os.environ, **common, "RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(count)
        ]

    def wait_for(self, line: str) -> None:
        """Reads the output of each process up to the given line."""
        for process in self.processes:
            for seen in process.stdout:
                if seen.strip() == line:
                    break
            else:
                pytest.fail(f"a rank ended before it printed {line!r}: {process.stderr.read()}")

    def kill(self) -> None:
        """Kills all processes, if they are still running."""
        for process in self.processes:
            process.kill()
            process.communicate()

    def finish(self) -> list[tuple[int, str, str]]:
        """Waits for all processes; returns the status, standard output and standard error of each."""
        deadline = time.monotonic() + PATIENCE_S
        try:
            with ThreadPoolExecutor(len(self.processes)) as pool:
                wait = lambda process: process.communicate(timeout=deadline - time.monotonic())  # noqa: E731
                outputs = list(pool.map(wait, self.processes))
        except subprocess.TimeoutExpired:
            pytest.fail("a rank hangs")
        finally:
            for process in self.processes:
                process.kill()
        return [(process.returncode, *output) for process, output in zip(self.processes, outputs, strict=True)]

    def succeed(self) -> list[str]:
        """Waits for all processes; returns the standard output of each, and fails if one has failed."""
        results = self.finish()
        for rank, (status, _, errors) in enumerate(results):
            assert status == 0, f"rank {rank}: {errors}"
        return [output for _, output, _ in results]


@contextmanager
def lighthouse() -> Iterator[str]:
    """A lighthouse of torchft; its address is `http://HOST:PORT`."""
    from torchft.coordination import LighthouseServer

    server = LighthouseServer(bind="127.0.0.1:0", min_replicas=1, join_timeout_ms=100)
    try:
        # The server names its machine, which may have no address.
        yield f"http://127.0.0.1:{server.address().rsplit(':', 1)[1]}"
    finally:
        server.shutdown()


def has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-pytorch-cases", action="store_true", help="run PyTorch's slow test cases for a backend too")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if has_torch():
        return
    skip = pytest.mark.skip(reason="PyTorch is missing: python tests/install_torch.py, or pip install torch")
    for item in items:
        if "torch" in item.path.stem:
            item.add_marker(skip)


def require(report: Any, path: Path) -> Any:
    """Turns a skip into a failure if all tests are required."""
    if report.skipped and os.environ.get(REQUIRE_VARIABLE) and path.name != MAY_SKIP:
        report.outcome = "failed"
        report.longrepr = f"{REQUIRE_VARIABLE} is set, but the test was skipped: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return require((yield), item.path)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Does the same for a module that is skipped entirely because a package is missing."""
    return require((yield), collector.path)
