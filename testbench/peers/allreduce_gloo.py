"""One rank of a Gloo job (PyTorch) that only sums vectors. Its output has the format of reduce_times.

Arguments: rank, number of workers, ADDRESS:PORT of rank 0, floats, measured rounds, rounds before the measured ones,
element type (f32, bf16 or f16).
"""

import json
import resource
import sys
import time

import torch
import torch.distributed as dist


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    rank, workers = int(sys.argv[1]), int(sys.argv[2])
    floats, rounds, warm_up = (int(word) for word in sys.argv[4:7])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://{sys.argv[3]}", rank=rank, world_size=workers)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[sys.argv[7]]

    def vector_of(other):
        """The vector of a worker: integers, so that sums are exact. With 16 bits, sums have eight bits."""
        place = torch.arange(floats, dtype=torch.int64)
        if dtype == torch.float32:
            return place.remainder(1024).add(other + 1).to(dtype)
        return place.remainder(8).add(other % 4 + 1).to(dtype)

    own = vector_of(rank)
    # Gloo sums in place, so the vector is filled before each round, outside the measured time.
    vector = own.clone()
    times = []
    for round_number in range(warm_up + rounds):
        if round_number == warm_up:
            cpu = cpu_seconds()
        vector.copy_(own)
        begin = time.perf_counter()
        dist.all_reduce(vector)
        times.append((time.perf_counter() - begin) * 1e6)
    cpu = cpu_seconds() - cpu
    expected = sum(vector_of(other) for other in range(workers))
    if not torch.equal(vector, expected):
        sys.exit("the sum is wrong")
    times = sorted(times[warm_up:])
    print(
        json.dumps(
            {
                "rank": rank,
                "rounds": rounds,
                "us_p50": times[rounds // 2],
                "us_p99": times[min(rounds * 99 // 100, rounds - 1)],
                "us_min": times[0],
                "cpu_seconds": cpu,
                "peak_rss_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            }
        ),
        flush=True,
    )
    # No rank may end while other ranks need it, and no thread of PyTorch may outlive the interpreter.
    dist.barrier()
    dist.destroy_process_group()


main()
