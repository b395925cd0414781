"""One rank of test_torch_frameworks.py: trains the same network with Gloo and with the switch, sharded by FSDP2 and compiled
by torch.compile. Prints the losses as JSON."""

import json
import os
import shutil
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import iswitch.torch  # noqa: F401: registers the backend

STEPS = 4
# PyTorch's default compiler needs a C++ compiler; the collectives are the same with both.
COMPILER = "inductor" if shutil.which("g++") else "aot_eager"


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(17, 64), torch.nn.Tanh(), torch.nn.Linear(64, 6))


def train(model):
    """Returns the losses of all steps."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    batches = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for _ in range(STEPS):
        inputs = torch.randn(32, 17, generator=batches)
        optimizer.zero_grad()
        loss = (model(inputs) - inputs[:, :6].sin()).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def sharded():
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    model = network()
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return train(fully_shard(model, mesh=mesh))


def compiled():
    return train(torch.compile(DistributedDataParallel(network()), backend=COMPILER))


@torch.compile(backend=COMPILER)
def in_graph(tensor):
    dist.all_reduce(tensor)
    return tensor * 2


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    results = {"gloo": {"fsdp": sharded(), "compile": compiled()}}
    dist.destroy_process_group()
    torch._dynamo.reset()
    dist.init_process_group("iswitch")
    worker = dist.group.WORLD._reducer.worker
    results["iswitch"] = {"fsdp": sharded()}
    results["rounds"] = {"fsdp": worker.stats()["rounds"]}
    results["iswitch"]["compile"] = compiled()
    results["rounds"]["compile"] = worker.stats()["rounds"] - results["rounds"]["fsdp"]
    results["graph"] = in_graph(torch.ones(3)).tolist()
    dist.destroy_process_group()
    if os.environ["RANK"] == "0":
        print(json.dumps(results))
    sys.stdout.flush()


main()
