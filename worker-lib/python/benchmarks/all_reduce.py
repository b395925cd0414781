"""Compares a collective of `torch.distributed`, by default `all_reduce`, over the switch and over Gloo in one run. Each of 4
ranks has a network namespace and a veth link to the bridge in the switch's namespace. Run as root, with the path of iswitchd
in ISWITCHD:

    python benchmarks/all_reduce.py [--collective NAME] [--dtype bfloat16] [--port raw|udp] [--turns 7] [--rate 1gbit]

Both backends take turns in the same processes, in alternating order. The time of a turn is the median of its rounds on
rank 0; as in training, there is no barrier between rounds. Every element of the last sum of each turn is checked.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import torch
import torch.distributed as dist

import iswitch.torch  # noqa: F401: registers the backend
from iswitch import _collectives
from iswitch.switch import find_iswitchd

# Vector lengths of the paper's DDPG, PPO (with its critic), A2C and DQN, as in `testbench peers`.
SIZES = (10_119, 40_327, 866_439, 1_687_206)
DTYPES = ("float32", "bfloat16", "float16")
COLLECTIVES = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "barrier")
RANKS = 4
SWITCH = "10.77.0.254"
WARM_UP = 5


class Collective:
    """Collective that a rank performs repeatedly with a vector of `floats` floats for each rank.

    If the collective has a root, each rank is the root in turn. All sums are exact, even in 16 bits.
    """

    def __init__(self, name: str, group: dist.ProcessGroup, rank: int, floats: int, dtype: torch.dtype) -> None:
        self.has_root = name in ("broadcast", "reduce")
        self._name, self._rank, self._root = name, rank, 0
        self._numbers = torch.arange(floats).remainder(32).to(dtype)
        self._vector = torch.empty(floats, dtype=dtype)
        self._vectors = torch.empty(RANKS, floats, dtype=dtype)
        joined = self._vectors.view(-1)
        calls: dict[str, Callable[[], object]] = {
            "all_reduce": lambda: dist.all_reduce(self._vector, group=group),
            "broadcast": lambda: dist.broadcast(self._vector, self._root, group=group),
            "reduce": lambda: dist.reduce(self._vector, self._root, group=group),
            "all_gather": lambda: dist.all_gather_into_tensor(joined, self._vector, group=group),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(self._vector, joined, group=group),
            "barrier": lambda: dist.barrier(group=group),
        }
        self.perform = calls[name]

    def write(self, number: int) -> None:
        """Writes the input of a round in place, as a backward pass writes a gradient."""
        self._root = number % RANKS
        torch.add(self._numbers, self._rank, out=self._vector)
        if self._name == "reduce_scatter":
            self._vectors.copy_(self._vector)

    def is_correct(self) -> bool:
        """Checks every element of the last result."""
        inputs = torch.stack([self._numbers + rank for rank in range(RANKS)])
        match self._name:
            case "all_gather":
                return torch.equal(self._vectors, inputs)
            case "broadcast":
                return torch.equal(self._vector, inputs[self._root])
            case "all_reduce" | "reduce_scatter":
                return torch.equal(self._vector, inputs.sum(0))
            case "reduce":
                return self._rank != self._root or torch.equal(self._vector, inputs.sum(0))
        return True


def turn(collective: Collective, rounds: int) -> tuple[float, float]:
    """Returns the median time and the mean processor time of a round, in microseconds."""
    times = []
    for number in range(WARM_UP + rounds):
        if number == WARM_UP:
            cpu = time.process_time()
        collective.write(number)
        begin = time.perf_counter()
        collective.perform()
        times.append(time.perf_counter() - begin)
    cpu = (time.process_time() - cpu) / rounds
    if not collective.is_correct():
        sys.exit("a result differs from the expected one")
    # A root may return before the others have its data, so the times of all roots are averaged.
    together = RANKS if collective.has_root else 1
    firsts = range(WARM_UP, len(times) - together + 1, together)
    means = [statistics.mean(times[first : first + together]) for first in firsts]
    return statistics.median(means) * 1e6, cpu * 1e6


def rank_main(options: argparse.Namespace) -> None:
    """Runs one rank; rank 0 prints the medians of the turns as JSON."""
    torch.set_num_threads(1)
    if options.no_limits:
        for name in [name for name in vars(_collectives) if name.startswith("MAX_")]:
            setattr(_collectives, name, sys.maxsize)
    dist.init_process_group("gloo")
    groups = {"gloo": dist.group.WORLD, "iswitch": dist.new_group(backend="iswitch")}
    rank = dist.get_rank()
    results = {floats: {name: [] for name in groups} for floats in options.floats}
    for number in range(options.turns):
        for floats in options.floats:
            for name in sorted(groups, reverse=number % 2 == 1):
                dtype = options.gloo_dtype if name == "gloo" and options.gloo_dtype else options.dtype
                collective = Collective(options.collective, groups[name], rank, floats, getattr(torch, dtype))
                dist.barrier()
                results[floats][name].append(turn(collective, options.rounds))
    if rank == 0:
        print(json.dumps(results), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True)


class Star:
    """Network namespaces of RANKS ranks, connected to the bridge in the switch's namespace."""

    def __init__(self, stack: ExitStack, rate: str | None) -> None:
        prefix = f"isw{os.getpid()}"
        self.switch = f"{prefix}s"
        self.ranks = [f"{prefix}r{rank}" for rank in range(RANKS)]
        for name in (self.switch, *self.ranks):
            ip(f"netns add {name}")
            stack.callback(ip, f"netns del {name}")
            ip(f"-n {name} link set lo up")
        ip(f"-n {self.switch} link add br0 type bridge")
        ip(f"-n {self.switch} addr add {SWITCH}/24 dev br0")
        for rank, name in enumerate(self.ranks):
            ip(f"-n {name} link add eth0 type veth peer name port{rank} netns {self.switch}")
            ip(f"-n {self.switch} link set port{rank} master br0 up")
            ip(f"-n {name} addr add 10.77.0.{rank + 1}/24 dev eth0")
            ip(f"-n {name} link set eth0 up")
            if rate:
                # The same shaping as in `testbench peers`: a burst of 72 KB, in both directions.
                for space, device in ((name, "eth0"), (self.switch, f"port{rank}")):
                    shape = f"qdisc add dev {device} root tbf rate {rate} burst 73728 limit 67108864"
                    subprocess.run(["tc", "-n", space, *shape.split()], check=True)
        ip(f"-n {self.switch} link set br0 up")

    def start_switch(self, stack: ExitStack, kind: str) -> subprocess.Popen:
        control = stack.enter_context(tempfile.TemporaryDirectory()) + "/control.sock"
        ports = [word for rank in range(RANKS) for word in ("--port", f"port{rank}")]
        serve = ports if kind == "raw" else ["--udp", f"{SWITCH}:7711"]
        program = find_iswitchd()
        daemon = subprocess.Popen(
            ["ip", "netns", "exec", self.switch, program, *serve, "--control-socket", control, "--log-level", "warn"],
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(daemon.wait)
        stack.callback(daemon.terminate)
        assert " ready: " in daemon.stdout.readline(), "iswitchd has not started"
        return daemon

    def run_ranks(self, arguments: list[str]) -> str:
        common = {"MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29400", "WORLD_SIZE": str(RANKS)}
        common |= {"ISWITCH_SWITCH": f"{SWITCH}:7711", "GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1"}
        processes = [
            subprocess.Popen(
                ["ip", "netns", "exec", name, sys.executable, str(Path(__file__).resolve()), *arguments],
                env={**os.environ, **common, "RANK": str(rank)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank, name in enumerate(self.ranks)
        ]
        outputs = [process.communicate()[0] for process in processes]
        if any(process.returncode for process in processes):
            sys.exit("a rank has failed")
        return outputs[0]


def spread(values: list[float], digits: int = 0) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def table(results: dict[str, dict[str, list[tuple[float, float]]]]) -> str:
    lines = [
        "| floats | iswitch, us | Gloo, us | Gloo / iswitch | CPU time of rank 0, iswitch, us | CPU time of rank 0, Gloo, us |",
        "|---|---|---|---|---|---|",
    ]
    for floats, turns in results.items():
        ours, theirs = turns["iswitch"], turns["gloo"]
        ratios = [theirs_us / ours_us for (ours_us, _), (theirs_us, _) in zip(ours, theirs, strict=True)]
        columns = [int(floats), spread([us for us, _ in ours]), spread([us for us, _ in theirs]), spread(ratios, 2)]
        columns += [spread([cpu for _, cpu in ours]), spread([cpu for _, cpu in theirs])]
        lines.append("| " + " | ".join(map(str, columns)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collective", choices=COLLECTIVES, default=COLLECTIVES[0], help="operation to measure")
    parser.add_argument("--no-limits", action="store_true", help="use the switch for all lengths, to find the limits")
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="type of the vectors")
    parser.add_argument("--gloo-dtype", choices=DTYPES, help="type of the vectors for Gloo [default: that of --dtype]")
    parser.add_argument("--port", choices=("raw", "udp"), default="raw", help="kind of the switch's ports")
    parser.add_argument("--turns", type=int, default=7, help="number of turns per backend")
    parser.add_argument("--rounds", type=int, default=50, help="number of rounds in a turn")
    parser.add_argument("--rate", help="rate of each link in both directions, such as 1gbit")
    parser.add_argument("--floats", type=int, nargs="+", default=SIZES, help="lengths of the vector of one rank")
    options = parser.parse_args()
    if "RANK" in os.environ:
        return rank_main(options)
    with ExitStack() as stack:
        star = Star(stack, options.rate)
        star.start_switch(stack, options.port)
        print(table(json.loads(star.run_ranks(sys.argv[1:]))))


if __name__ == "__main__":
    main()
