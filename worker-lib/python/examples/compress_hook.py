"""DistributedDataParallel with gradients that are sent as bfloat16: PyTorch's compression hook on top of the switch.

    iswitchd --udp 127.0.0.1:7711 &
    ISWITCH_SWITCH=127.0.0.1:7711 torchrun --nproc-per-node 4 compress_hook.py

The hook rounds each bucket to bfloat16, which halves the number of bytes. The switch sums such buckets in 32 bits and rounds
each sum once, so the error does not grow with the number of workers, as it would if the backend added in bfloat16.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.nn.parallel import DistributedDataParallel

import iswitch.torch  # noqa: F401: registers the backend


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300, help="number of training steps")
    steps = parser.parse_args().steps

    torch.set_num_threads(1)
    dist.init_process_group("iswitch")
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 128), nn.Tanh(), nn.Linear(128, 1)))
    model.register_comm_hook(None, bf16_compress_hook)  # the only line that differs from training without compression
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    points = torch.Generator().manual_seed(dist.get_rank())
    for step in range(1, steps + 1):
        inputs = torch.randn(256, 8, generator=points)
        loss = nn.functional.mse_loss(model(inputs), inputs.sin().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 or step in (1, steps):
            mean = loss.detach()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
            if dist.get_rank() == 0:
                print(f"step {step}: loss {mean.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
