"""DistributedDataParallel over the switch: only two lines differ from an ordinary training script.

    iswitchd --udp 127.0.0.1:7711 &
    ISWITCH_SWITCH=127.0.0.1:7711 torchrun --nproc-per-node 4 ddp.py
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import iswitch.torch  # noqa: F401: the first of the two lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500, help="number of training steps")
    steps = parser.parse_args().steps

    torch.set_num_threads(1)
    dist.init_process_group("iswitch")  # the second line
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    # Each rank draws different points; all ranks together learn one surface.
    points = torch.Generator().manual_seed(dist.get_rank())
    for step in range(1, steps + 1):
        inputs = torch.rand(256, 2, generator=points) * 6 - 3
        targets = torch.sin(inputs[:, :1]) * torch.cos(inputs[:, 1:])
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()  # the switch sums the buckets during the backward pass
        optimizer.step()
        if step % 100 == 0 or step == steps:
            mean = loss.detach()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
            if dist.get_rank() == 0:
                print(f"step {step}: loss {mean.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
