"""Run the members of a job in threads of one process, and compare every received sum with the vectors in it."""

import argparse
import json
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from .asynchronous import AsynchronousMember, Sum
from .auth import DATA_TAG_LEN, read_key
from .channel import Channel
from .elements import ElementType
from .fixtures import check_fixtures
from .member import Counts, Job, Member
from .synchronous import SynchronousMember
from .wire import SEG_LEN, Layout

# Number of a worker's vectors at which it waits until the sums of the aggregates that contain them are applied.
STALENESS = 3
# Longest UDP payload of a packet at an MTU of 1,500 bytes.
MAX_PAYLOAD_LEN = 1_500 - 28
# Factors of the elements: some 16-bit contributions and sums are subnormal, and some sums are out of the range of f16.
FACTORS = {ElementType.F32: [1.0], ElementType.BF16: [1.0, 2.0**-133], ElementType.F16: [1.0, 2.0**-24, 4.0]}


def vector(worker: int, step: int, layout: Layout) -> list[float]:
    """Returns multiples of one number that are small enough for sums of 64 of them to be exact in binary32, in any order."""
    begin = (worker + 1) * 1_000_003 + step * 7_919
    factors = FACTORS[layout.contributions]
    return [((begin + at * 31) % 20_001 - 10_000) * factors[at % len(factors)] for at in range(layout.gradient_len)]


def expected_sum(vectors: list[list[float]], layout: Layout) -> list[float]:
    """Returns the sum of contributions as a result carries it: both are rounded to their element types (D-8)."""
    rounded = [layout.contributions.round(one) for one in vectors]
    return layout.results.round([sum(values) for values in zip(*rounded, strict=True)])


class Check:
    """State that the workers of a run share, and the first failure."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.layout = layout_of(options)
        self.failures: list[str] = []
        self.counts: list[Counts] = []
        self.sent = self.dropped = self.checked = 0
        # For asynchronous jobs: the vectors in each aggregate, and the sum that the workers received for it.
        self.vectors: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.sums: dict[tuple[int, int], Sum] = {}
        self.lock = threading.Lock()

    def run(self) -> None:
        threads = [threading.Thread(target=self._work, args=(rank,)) for rank in range(self.options.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.options.mode == "asynchronous" and not self.failures:
            self._check_aggregates()

    def _work(self, rank: int) -> None:
        options = self.options
        channel = Channel(options.switch, options.loss, options.seed * 1_000 + rank)
        try:
            key = read_key(options.key_file) if options.key_file else None
            job = Job(options.job, self.layout, options.workers, key, options.tagged, options.segment_floats is None)
            member: Member
            if options.mode == "synchronous":
                member = SynchronousMember(channel, job, rank)
                self._synchronous(member, rank)
            else:
                member = AsynchronousMember(channel, job, rank)
                self._asynchronous(member, rank)
            member.leave()
            with self.lock:
                self.counts.append(member.counts)
                self.sent += channel.counts.sent
                self.dropped += channel.counts.dropped
        except Exception as error:  # noqa: BLE001: any exception fails the run, and the other workers must stop.
            self.failures.append(f"worker {rank}: {type(error).__name__}: {error}")
        finally:
            channel.close()

    def _progress(self, rank: int, step: int) -> None:
        if self.failures:
            raise RuntimeError("stopped because another worker failed")
        if rank == 0 and step % 10 == 0:
            print(f"step {step}", flush=True)

    def _synchronous(self, member: SynchronousMember, rank: int) -> None:
        options = self.options
        for step in range(options.steps):
            total, count = member.all_reduce(vector(rank, step, self.layout))
            expected = expected_sum([vector(worker, step, self.layout) for worker in range(options.workers)], self.layout)
            if count != options.workers or total != expected:
                raise ValueError(f"step {step}: the sum of {count} vectors is wrong")
            with self.lock:
                self.checked += 1
            self._progress(rank, step + 1)

    def _asynchronous(self, member: AsynchronousMember, rank: int) -> None:
        options = self.options
        # Epochs and aggregates of the worker's own vectors whose sums it has not yet applied.
        waits: list[tuple[int, int]] = []
        for step in range(options.steps):
            place = member.submit(vector(rank, step, self.layout))
            if place is not None:
                waits.append(place)
                with self.lock:
                    self.vectors.setdefault(place, []).append((rank, step))
            while True:
                self._take_sums(member)
                waits = [place for place in waits if not member.applied(*place)]
                is_last = step + 1 == options.steps
                if len(waits) < (1 if is_last and rank == 0 else STALENESS):
                    break
                member.turn()
            self._progress(rank, step + 1)

    def _take_sums(self, member: AsynchronousMember) -> None:
        for sum in member.take_sums():
            with self.lock:
                first = self.sums.setdefault((sum.epoch, sum.aggregate), sum)
            if first != sum:
                raise ValueError(f"aggregate {sum.aggregate} differs from the sum that another worker received")

    def _check_aggregates(self) -> None:
        unknown = 0
        for place, sum in self.sums.items():
            known = self.vectors.get(place, [])
            if len(known) < sum.contributions:
                unknown += 1
                continue
            expected = expected_sum([vector(*origin, self.layout) for origin in known], self.layout)
            if len(known) > sum.contributions or sum.vector != expected:
                self.failures.append(f"aggregate {place[1]}: a wrong sum of {sum.contributions} vectors")
            self.checked += 1
        # The sender of a lost vector does not know which aggregate contains it, if any.
        lost = sum_of(self.counts, "lost")
        if unknown > lost:
            self.failures.append(f"{unknown} aggregates have vectors of unknown origin, and {lost} were lost")


def layout_of(options: argparse.Namespace) -> Layout:
    """Returns the layout of the vectors. Unless the options state the size of a segment, its packets are as long as the MTU permits."""
    contributions = ElementType.of(options.elements)
    results = ElementType.of(options.results or options.elements)
    longest = MAX_PAYLOAD_LEN - SEG_LEN - (DATA_TAG_LEN if options.tagged else 0)
    segment_floats = options.segment_floats or longest // max(contributions.size, results.size)
    return Layout(options.floats, segment_floats, contributions, results)


def sum_of(counts: list[Counts], name: str) -> int:
    return sum(getattr(one, name) for one in counts)


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="iswitch_client", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    fixtures = commands.add_parser("fixtures", help="compare the golden packets with their values, in both directions")
    fixtures.add_argument("directory", type=Path, help="fixtures/wire of the repository")
    run = commands.add_parser("run", help="run all workers of a job and check every sum")
    run.add_argument("--switch", type=address, required=True, metavar="HOST:PORT", help="UDP address of the switch")
    run.add_argument("--mode", choices=["synchronous", "asynchronous"], default="synchronous", help="kind of job (%(default)s)")
    run.add_argument("--job", type=int, default=1, help="identifier of the job (%(default)s)")
    run.add_argument("--workers", type=int, default=3, help="number of workers (%(default)s)")
    run.add_argument("--steps", type=int, default=100, help="number of vectors of each worker (%(default)s)")
    run.add_argument("--floats", type=int, default=5_000, help="floats in a vector (%(default)s)")
    types = [str(element) for element in ElementType]
    run.add_argument("--elements", choices=types, default="f32", help="element type of contributions (%(default)s)")
    run.add_argument("--results", choices=types, help="element type of results: f32, or that of contributions (default)")
    run.add_argument("--segment-floats", type=int, help="floats in a segment (as many as fit into an MTU of 1500 bytes)")
    run.add_argument("--loss", type=float, default=0.0, help="packet loss probability in each direction (%(default)s)")
    run.add_argument("--seed", type=int, default=0, help="seed of the packet loss (%(default)s)")
    run.add_argument("--key-file", help="file with the key of the job in hexadecimal digits")
    run.add_argument("--tagged", action="store_true", help="tag data packets as well; requires --key-file")
    options = parser.parse_args()
    if options.command == "run" and options.tagged and not options.key_file:
        parser.error("--tagged requires --key-file")
    if options.command == "run" and options.results not in (None, "f32", options.elements):
        parser.error(f"--results {options.results} requires --elements {options.results}; expected f32 or {options.elements}")
    return options


def main() -> int:
    options = parse_arguments()
    if options.command == "fixtures":
        print(json.dumps({"fixtures": check_fixtures(options.directory)}))
        return 0
    check = Check(options)
    check.run()
    for failure in check.failures:
        print(failure, file=sys.stderr)
    counts = {name: sum_of(check.counts, name) for name in asdict(Counts())}
    print(json.dumps({"checked": check.checked, "sent": check.sent, "dropped": check.dropped, **counts}))
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
