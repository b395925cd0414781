"""Times one step of DistributedDataParallel with the model on a GPU, over the switch and over Gloo, in one run.

    torchrun --nproc-per-node 2 benchmarks/gpu.py [--layers 8] [--width 1024] [--turns 5] [--steps 20]

ISWITCH_SWITCH names the switch. All ranks share the GPUs of the machine. The backends take turns in alternating order;
"one bucket" is the switch with a single bucket for all gradients, so copies cannot overlap with network transfers. The
time of a turn is the median of its steps on rank 0.
"""

import argparse
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import iswitch.torch  # noqa: F401: registers the backend

WARM_UP = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=8, help="number of square layers")
    parser.add_argument("--width", type=int, default=1024, help="rows and columns of a layer")
    parser.add_argument("--batch", type=int, default=256, help="rows of a batch")
    parser.add_argument("--turns", type=int, default=5, help="number of turns per variant")
    parser.add_argument("--steps", type=int, default=20, help="number of steps in a turn")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    switch = dist.new_group(backend="iswitch")
    # Bucket sizes in MB: PyTorch's default, and more than all gradients.
    setups = {"gloo": (dist.group.WORLD, 25), "iswitch": (switch, 4), "one bucket": (switch, 1 << 20)}
    models = {name: model(options, device, *setup) for name, setup in setups.items()}
    floats = sum(parameter.numel() for parameter in models["gloo"].parameters())
    turns: dict[str, list[float]] = {name: [] for name in setups}
    for number in range(options.turns):
        for name in sorted(setups, reverse=number % 2 == 1):
            turns[name].append(turn(options, models[name], device))
    if dist.get_rank() == 0:
        print(f"{floats} floats, {dist.get_world_size()} ranks, {torch.cuda.get_device_name()}")
        for name, times in turns.items():
            print(f"{name}: {statistics.median(times):.2f} ms ({min(times):.2f} to {max(times):.2f}) per step")
    dist.destroy_process_group()


def model(options, device, group, bucket_mb) -> DistributedDataParallel:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(options.width, options.width) for _ in range(options.layers)]
    return DistributedDataParallel(torch.nn.Sequential(*layers).to(device), process_group=group, bucket_cap_mb=bucket_mb)


def turn(options, model, device) -> float:
    """Returns the median time of a step in milliseconds."""
    inputs, times = torch.randn(options.batch, options.width, device=device), []
    for _ in range(WARM_UP + options.steps):
        torch.cuda.synchronize()
        dist.barrier()
        begin = time.perf_counter()
        model.zero_grad()
        model(inputs).square().mean().backward()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[WARM_UP:]) * 1e3


main()
