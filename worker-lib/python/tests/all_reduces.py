"""One rank of test_torch.py, started by torchrun: runs the same training with Gloo, with the switch's backend and with
its communication hook, and then single collectives. Rank 0 prints the results as JSON."""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from training import train

import iswitch.torch


def reduced(dtype, op=dist.ReduceOp.SUM, shape=(3, 4), async_op=False):
    tensor = torch.full(shape, 1.5 + dist.get_rank(), dtype=dtype)
    work = dist.all_reduce(tensor, op=op, async_op=async_op)
    if async_op:
        work.wait()
        assert work.is_completed()
        (of_future,) = work.get_future().value()
        assert of_future is tensor
    return tensor.double().unique().tolist()


def collectives():
    rank = dist.get_rank()
    worker = dist.distributed_c10d._get_default_group()._reducer.worker
    seen = {}

    def note(name, value):
        rounds = worker.stats()["rounds"]
        seen[name] = {"value": value, "over_switch": rounds - note.rounds}
        note.rounds = rounds

    note.rounds = worker.stats()["rounds"]
    note("float32", reduced(torch.float32))
    note("float32, in the background", reduced(torch.float32, async_op=True))
    note("float16", reduced(torch.float16))
    note("bfloat16", reduced(torch.bfloat16, async_op=True))
    note("mean", reduced(torch.float32, op=dist.ReduceOp.AVG))
    note("mean of bfloat16", reduced(torch.bfloat16, op=dist.ReduceOp.AVG))
    note("float64", reduced(torch.float64))
    note("int64", reduced(torch.int64))
    note("maximum", reduced(torch.float32, op=dist.ReduceOp.MAX))
    matrix = torch.ones(4, 6)
    dist.all_reduce(matrix[:, ::2])
    note("not contiguous", [matrix[:, ::2].unique().tolist(), matrix[:, 1::2].unique().tolist()])
    half = dist.new_group([0, 1])
    if rank < 2:
        part = torch.ones(5)
        dist.all_reduce(part, group=half)
        note("part of the group", part.tolist())
        assert half._reducer.worker.stats()["rounds"] == 1
    try:
        reduced_nan = torch.full((2,), float("nan"))
        dist.all_reduce(reduced_nan)
        note("nan", "no error")
    except iswitch.NonFiniteError as error:
        note("nan", str(error))
    return seen


def main():
    torch.set_num_threads(1)
    results = {}
    dist.init_process_group("gloo")
    results["gloo"] = train()
    with iswitch.Worker(job=1000) as worker:
        reducer = iswitch.torch.Reducer(worker)
        results["hook"] = train((reducer, iswitch.torch.all_reduce_hook))
        reducer.close()
    dist.destroy_process_group()
    dist.init_process_group("iswitch")
    results["backend"] = train()
    results["bf16"] = train((None, default_hooks.bf16_compress_hook))
    results["fp16"] = train((None, default_hooks.fp16_compress_hook))
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
    results["power_sgd"] = train((state, powerSGD_hook.powerSGD_hook))
    results["collectives"] = collectives()
    dist.destroy_process_group()
    if os.environ["RANK"] == "0":
        print(json.dumps(results))
    sys.stdout.flush()


main()
