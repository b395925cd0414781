"""One rank of test_gpu.py: trains and sums on a GPU, with Gloo and through the switch. Rank 0 prints the results as JSON.

All ranks share the GPUs of the machine.
"""

import json
import os

import torch
import torch.distributed as dist
from training import train

import iswitch.torch

# Clock cycles of a kernel that delays the following kernels of its stream by tens of milliseconds.
DELAY_CYCLES = 100_000_000


def sums(device, group):
    rank, seen = dist.get_rank(), {}
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        tensor = torch.full((300, 70), rank + 1.0, dtype=dtype, device=device)
        dist.all_reduce(tensor, group=group)
        seen[str(dtype)] = tensor.double().unique().tolist()
    matrix = torch.ones(400, 600, device=device)
    dist.all_reduce(matrix[:, ::2], op=dist.ReduceOp.AVG, group=group)
    matrix[:, ::2] *= 2.0
    seen["not contiguous"] = [matrix[:, ::2].unique().tolist(), matrix[:, 1::2].unique().tolist()]
    seen["empty"] = reduced(torch.empty(0, device=device), group)
    return seen


def reduced(tensor, group):
    dist.all_reduce(tensor, group=group)
    return tensor.tolist()


def ordered_with_kernels(device, group):
    """Sums tensors whose elements are computed late, and uses the sums at once, without waiting for the GPU."""
    rank, totals = dist.get_rank(), []
    for asynchronous in (False, True):
        tensors = [torch.zeros(100_000, device=device) for _ in range(4)]
        torch.cuda._sleep(DELAY_CYCLES)
        works = []
        for number, tensor in enumerate(tensors):
            tensor += rank + number
            works.append(dist.all_reduce(tensor, group=group, async_op=asynchronous))
        if asynchronous:
            for work in works:
                work.wait()
        totals += [(tensor * 2.0).unique() for tensor in tensors]
    return [total.tolist() for total in totals]


def many_pending(device, group):
    """Sums many tensors of different lengths at once, each dropped by its owner before its sum is complete."""
    rank, works = dist.get_rank(), []
    for number in range(60):
        tensor = torch.full((1 + 977 * number,), float(rank + number), device=device)
        works.append((number, dist.all_reduce(tensor, group=group, async_op=True)))
        del tensor
    size = dist.get_world_size()
    for number, work in works:
        (tensor,) = work.get_future().wait()
        expected = size * number + sum(range(size))
        assert tensor.unique().tolist() == [expected], (number, expected)
    return len(works)


def main():
    torch.set_num_threads(1)
    device = torch.device("cuda", int(os.environ["RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("gloo")
    group = dist.new_group(backend="iswitch")
    results = {"gloo": train(device=device)["losses"]}
    with iswitch.Worker(job=1000) as worker:
        reducer = iswitch.torch.Reducer(worker)
        results["hook"] = train((reducer, iswitch.torch.all_reduce_hook), device)["losses"]
        reducer.close()
    results["backend"] = train(device=device, group=group)["losses"]
    results["sums"] = sums(device, group)
    results["ordered"] = ordered_with_kernels(device, group)
    results["pending"] = many_pending(device, group)
    if dist.get_rank() == 0:
        print(json.dumps(results))
    dist.destroy_process_group()


main()
