"""Kills random ranks and the switch at random moments, and checks what the remaining processes do.

    ISWITCHD=target/release/iswitchd python kills.py --times 100

Each time, a switch and 3 ranks start, and a rank, the switch or both receive SIGKILL at a random moment between the
start of the training and --latest seconds later.

In mode `group`, the ranks train with DistributedDataParallel over the backend `iswitch`. Every remaining rank must end
within the limit, with an error that names what was lost.

In mode `elastic`, the ranks are replicas of torchft. The killed processes are restarted. The remaining replicas must
continue to train, all replicas must train together again within the limit, every mean must be the mean of as many gradients
as torchft counts, and replicas that have completed the same step must have the same weights, bit for bit.

The seed of a run is printed; --seed repeats the choices.
"""

import argparse
import collections
import dataclasses
import faulthandler
import importlib
import multiprocessing
import os
import queue
import random
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import iswitch.torch  # noqa: F401: registers the backend
from iswitch.switch import find_iswitchd

RANKS = 3
VICTIMS = ("rank", "switch", "both")
LEASE_S = 1.0
# Time that a rank waits for a silent switch, and for other ranks.
SWITCH_TIMEOUT_S, TIMEOUT_S = 1.0, 10.0
# Elements of the parameters: several packets, and several buckets of DistributedDataParallel.
SIZES = (20_000, 3_000, 60_000)
BUCKET_MB = 0.05
# Maximum error of a mean of small numbers in float32.
TOLERANCE = 1e-6

# Patterns of the errors that report the loss of the switch and of a rank, respectively.
SWITCH_LOST = re.compile(r"no answer from the switch \S+")
RANK_LOST = re.compile(
    r"workers have left or were expelled|segments are waiting for|workers joined|continued without this one"
    r"|closed by peer|reset by peer|Connection refused|Broken pipe|timed out|failed to recv|recvValue|remote process"
    r"|wait timeout|Timed out",
    re.IGNORECASE,
)

# Ranks are forked, because importing PyTorch takes seconds. This process must have no group and no worker itself.
FORK = multiprocessing.get_context("fork")


class Model(nn.Module):
    """Parameters whose gradient is the same number in every element."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ParameterList(torch.zeros(size) for size in SIZES)

    def forward(self, gradient: float) -> torch.Tensor:
        return torch.stack([part.sum() for part in self.parts]).sum() * gradient


@dataclasses.dataclass
class Step:
    """Step that a replica has completed."""

    replica: int
    number: int
    # Number of gradients, according to torchft.
    participants: int
    mean: float
    checksum: int


class Switch:
    """An iswitchd on a loopback port, which it keeps across restarts."""

    def __init__(self, directory: str) -> None:
        self.address = f"127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
        self._socket = Path(directory, "control.sock")
        self.start()

    def start(self) -> None:
        program = find_iswitchd()
        options = ["--udp", self.address, "--control-socket", str(self._socket), "--lease-ms", str(int(LEASE_S * 1000))]
        self._process = subprocess.Popen([program, *options, "--log-level", "error"], stdout=subprocess.PIPE, text=True)
        assert " ready: " in self._process.stdout.readline(), "iswitchd has not started"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> "Switch":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self.kill()


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def step_of_ddp(model: nn.Module, optimizer: torch.optim.Optimizer, gradient: float) -> float:
    """Does one training step; returns the mean gradient."""
    optimizer.zero_grad()
    model(gradient).backward()
    least, most = (torch.stack([getattr(part.grad, name)() for part in model.module.parts]) for name in ("amin", "amax"))
    optimizer.step()
    # After an error, the elements are undefined, and torchft does not commit the step.
    is_uniform = (most.max() - least.min()).item() < TOLERANCE
    return most.max().item() if is_uniform else float("nan")


def train_rank(rank: int, reports: Any, address: str, port: int) -> None:
    """Trains in a process group until an error, and reports it."""
    os.environ |= {"ISWITCH_SWITCH": address, "ISWITCH_SWITCH_TIMEOUT": str(SWITCH_TIMEOUT_S)}
    try:
        store = dist.TCPStore("127.0.0.1", port, is_master=rank == 0, timeout=timedelta(seconds=TIMEOUT_S))
        timeout = timedelta(seconds=TIMEOUT_S)
        dist.init_process_group("iswitch", store=store, rank=rank, world_size=RANKS, timeout=timeout)
        model = DistributedDataParallel(Model(), bucket_cap_mb=BUCKET_MB)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        reports.put((rank, "trains"))
        while True:
            mean = step_of_ddp(model, optimizer, 2.0**rank)
            assert abs(mean - (2**RANKS - 1) / RANKS) < TOLERANCE, f"the mean is {mean}"
            # Gloo performs this one.
            dist.all_reduce(torch.ones(1, dtype=torch.int64))
    except Exception as error:  # noqa: BLE001: the parent evaluates it
        reports.put((rank, f"{type(error).__name__}: {error}"))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    reports.put((rank, "ended"))


def train_replica(replica: int, reports: Any, address: str, lighthouse: str) -> None:
    """Trains as a replica of torchft until it is killed, and reports each step."""
    import logging

    import torchft

    import iswitch.torchft

    logging.disable(logging.CRITICAL)
    os.environ |= {"ISWITCH_SWITCH": address, "ISWITCH_SWITCH_TIMEOUT": str(SWITCH_TIMEOUT_S)}
    module = Model()
    optimizer = torch.optim.Adam(module.parameters(), 1e-3)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    def load(state: dict[str, Any]) -> None:
        module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    manager = torchft.Manager(
        pg=iswitch.torchft.ProcessGroup(timeout=timedelta(seconds=TIMEOUT_S)),
        min_replica_size=1,
        # Otherwise, the first mean counts replicas that are receiving the initial weights and contribute nothing.
        use_async_quorum=False,
        load_state_dict=load,
        state_dict=lambda: {"model": module.state_dict(), "optimizer": optimizer.state_dict()},
        replica_id=f"replica{replica}",
        store_addr="127.0.0.1",
        store_port=store.port,
        hostname="127.0.0.1",
        rank=0,
        world_size=1,
        lighthouse_addr=lighthouse,
        timeout=timedelta(seconds=TIMEOUT_S),
        quorum_timeout=timedelta(seconds=TIMEOUT_S),
        # A request to the lighthouse may be lost while other replicas end.
        quorum_retries=3,
    )
    model = iswitch.torchft.DistributedDataParallel(manager, module, bucket_cap_mb=BUCKET_MB)
    managed = torchft.Optimizer(manager, optimizer)
    while True:
        before = manager.current_step()
        mean = step_of_ddp(model, managed, 2.0**replica)
        if manager.current_step() > before:
            weights = b"".join(part.detach().numpy().tobytes() for part in module.parts)
            step = Step(replica, manager.current_step(), manager.num_participants(), mean, zlib.crc32(weights))
            reports.put((replica, step))


def serve_lighthouse(port: int) -> None:
    from torchft.coordination import LighthouseServer

    options = {"join_timeout_ms": 1000, "quorum_tick_ms": 20, "heartbeat_timeout_ms": 1000}
    server = LighthouseServer(bind=f"127.0.0.1:{port}", min_replicas=1, **options)
    signal.pause()
    server.shutdown()


def run_rank(target: Callable[..., None], limit_s: float, *arguments: Any) -> None:
    """Runs a rank. If it is still running shortly before the limit, it prints the stacks of all its threads."""
    faulthandler.dump_traceback_later(0.9 * limit_s, exit=False)
    target(*arguments)
    faulthandler.cancel_dump_traceback_later()


class Ranks:
    """Ranks or replicas, and what they report."""

    def __init__(self, target: Callable[..., None], limit_s: float, *arguments: Any) -> None:
        # A separate queue for each process: a killed writer may leave a shared one locked.
        self._queues: list[Any] = [None] * RANKS
        self._arguments = (target, limit_s, *arguments)
        self.processes: list[BaseProcess] = [None] * RANKS
        for rank in range(RANKS):
            self.start(rank)

    def start(self, rank: int) -> None:
        self._queues[rank] = FORK.SimpleQueue()
        target, limit_s, *arguments = self._arguments
        all_arguments = (target, limit_s, rank, self._queues[rank], *arguments)
        self.processes[rank] = FORK.Process(target=run_rank, args=all_arguments, daemon=True)
        self.processes[rank].start()

    def kill(self, rank: int) -> None:
        os.kill(self.processes[rank].pid, signal.SIGKILL)
        self.processes[rank].join()

    def reports(self) -> Iterator[tuple[int, Any]]:
        """Returns the reports so far that have not been returned yet."""
        for reports in self._queues:
            while not reports.empty():
                try:
                    yield reports.get()
                except (EOFError, queue.Empty, OSError):
                    # The process was killed in the middle of a report.
                    break

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()


def wait_until(condition: Callable[[], bool], limit_s: float, what: str) -> float:
    """Waits for a condition; returns the time in seconds."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > limit_s:
            raise AssertionError(f"{what} takes more than {limit_s} s")
        time.sleep(0.01)
    return time.monotonic() - begin


@contextmanager
def closing(ranks: Ranks) -> Iterator[Ranks]:
    try:
        yield ranks
    finally:
        ranks.close()


def kill(switch: Switch, ranks: Ranks, victim: str, rank: int) -> None:
    if victim in ("switch", "both"):
        switch.kill()
    if victim in ("rank", "both"):
        ranks.kill(rank)


def run_group(switch: Switch, victim: str, rank: int, moment_s: float, limit_s: float) -> float:
    """Kills members of a process group; returns the time until the last of the remaining ranks has ended."""
    heard: dict[int, list[str]] = collections.defaultdict(list)

    def hear() -> None:
        for number, report in ranks.reports():
            heard[number].append(report)

    def has_begun() -> bool:
        hear()
        assert all(reports[0] == "trains" for reports in heard.values()), f"the start has failed: {dict(heard)}"
        return len(heard) == RANKS

    with closing(Ranks(train_rank, limit_s, switch.address, free_port())) as ranks:
        wait_until(has_begun, limit_s, "the start")
        time.sleep(moment_s)
        kill(switch, ranks, victim, rank)
        remaining = [number for number in range(RANKS) if victim == "switch" or number != rank]
        is_over = lambda: all(not ranks.processes[number].is_alive() for number in remaining)  # noqa: E731
        took = wait_until(is_over, limit_s, "the end of the remaining ranks")
        hear()
        for number in remaining:
            assert ranks.processes[number].exitcode == 0, f"rank {number} has exited with {ranks.processes[number].exitcode}"
            _, error, end = heard[number]
            assert end == "ended"
            check_error(victim, number, error)
    return took


def check_error(victim: str, rank: int, error: str) -> None:
    """Checks that an error names the lost switch or rank. A rank that has ended because of the switch is lost as well."""
    named = RANK_LOST.search(error) or (victim != "rank" and SWITCH_LOST.search(error))
    assert named, f"rank {rank}: the error does not name what was lost: {error}"


def run_elastic(switch: Switch, victim: str, rank: int, moment_s: float, limit_s: float) -> float:
    """Kills and restarts torchft replicas; returns the time until all replicas train together again."""
    port = free_port()
    lighthouse = FORK.Process(target=serve_lighthouse, args=(port,), daemon=True)
    lighthouse.start()
    try:
        with closing(Ranks(train_replica, 10 * limit_s, switch.address, f"http://127.0.0.1:{port}")) as ranks:
            steps = Steps(ranks)
            wait_until(steps.are_together, 2 * limit_s, "the start")
            time.sleep(moment_s)
            kill(switch, ranks, victim, rank)
            if victim == "rank":
                others = set(range(RANKS)) - {rank}
                wait_until(lambda: steps.participants(others) == RANKS - 1, limit_s, "the first step without the rank")
            begin = time.monotonic()
            if victim in ("switch", "both"):
                # Half of the pauses are longer than the replicas wait for the switch.
                time.sleep(moment_s % 0.5 * 4 * SWITCH_TIMEOUT_S)
                switch.start()
            if victim in ("rank", "both"):
                ranks.start(rank)
            steps.forget()
            wait_until(steps.are_together, limit_s, "the first step of all replicas")
            return time.monotonic() - begin
    finally:
        lighthouse.kill()
        lighthouse.join()


class Steps:
    """Steps that the replicas have reported, checked against each other."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._checksums: dict[int, tuple[int, int]] = {}
        self._latest: dict[int, Step] = {}

    def forget(self) -> None:
        """Forgets the latest step of each replica, but keeps the weights after all steps."""
        self._hear()
        self._latest = {}

    def participants(self, replicas: set[int]) -> int | None:
        """Returns the number of gradients in the latest steps of these replicas, if it is the same for all of them."""
        self._hear()
        latest = [self._latest.get(replica) for replica in replicas]
        counts = {step and step.participants for step in latest}
        return counts.pop() if len(counts) == 1 else None

    def are_together(self) -> bool:
        return self.participants(set(range(RANKS))) == RANKS

    def _hear(self) -> None:
        for _, step in self._ranks.reports():
            self._latest[step.replica] = step
            self._check(step)

    def _check(self, step: Step) -> None:
        # The gradients are different powers of two, so the sum shows which of them it contains.
        total = round(step.mean * step.participants)
        is_sum = 0 < total < 2**RANKS and total.bit_count() == step.participants
        assert is_sum and abs(step.mean - total / step.participants) < TOLERANCE, f"{step} is not a mean of {step.participants}"
        other, checksum = self._checksums.setdefault(step.number, (step.replica, step.checksum))
        assert checksum == step.checksum, f"the weights of replicas {other} and {step.replica} differ after step {step.number}"


MODES = {"group": run_group, "elastic": run_elastic}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10, help="number of kills")
    parser.add_argument("--seed", type=int, help="seed of the choices; random if omitted")
    parser.add_argument("--mode", choices=(*MODES, "all"), default="all", help="which training to kill")
    parser.add_argument("--victim", choices=(*VICTIMS, "random", "each"), default="random", help="which to kill")
    parser.add_argument("--latest", type=float, default=1.0, help="latest moment of a kill, in seconds of training")
    parser.add_argument("--limit", type=float, default=60.0, help="limit of each wait, in seconds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.mode != "group":
        # Importing it takes seconds as well.
        importlib.import_module("iswitch.torchft")
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    choices = random.Random(seed)
    times: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
    modes = list(MODES) if options.mode == "all" else [options.mode]
    for number in range(options.times):
        mode = modes[number % len(modes)]
        each = VICTIMS[number // len(modes) % len(VICTIMS)]
        victim = {"random": choices.choice(VICTIMS), "each": each}.get(options.victim, options.victim)
        rank, moment_s = choices.randrange(RANKS), choices.uniform(0, options.latest)
        with tempfile.TemporaryDirectory() as directory, Switch(directory) as switch:
            print(f"{number + 1}. {mode}: {victim}, rank {rank}, {moment_s:.3f} s", end="", flush=True)
            took = MODES[mode](switch, victim, rank, moment_s, options.limit)
        print(f": {took:.2f} s", flush=True)
        times[mode, victim].append(took)
    for (mode, victim), all_times in sorted(times.items()):
        median, least, most = statistics.median(all_times), min(all_times), max(all_times)
        print(f"{mode}, {victim}: {len(all_times)} kills, {median:.1f} s ({least:.1f} to {most:.1f})")


if __name__ == "__main__":
    main()
