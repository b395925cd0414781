"""One rank of test_torch.py: trains until the switch has been restarted, or until training fails."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import iswitch.torch  # noqa: F401: registers the backend

torch.set_num_threads(1)
dist.init_process_group("iswitch")
model = DistributedDataParallel(torch.nn.Linear(200, 200))
worker = dist.distributed_c10d._get_default_group()._reducer.worker
steps = 0
# All ranks notice the restart, but not in the same step, so they agree on when to stop.
stop = torch.zeros(1, dtype=torch.int64)
while not stop.item():
    model.zero_grad()
    model(torch.ones(8, 200)).sum().backward()
    steps += 1
    if steps == 10:
        print("trains", flush=True)
    stop.fill_(worker.stats()["rejoins"] > 0)
    dist.all_reduce(stop)
assert model.module.weight.grad.eq(8.0).all()
print("continued", flush=True)
dist.destroy_process_group()
sys.exit(0)
