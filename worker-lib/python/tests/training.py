"""Training that the ranks of several tests run."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 15


def train(hook=None, device="cpu", group=None):
    """Trains a network with several buckets; returns the losses of all steps and the sum of the weights."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(17, 400), torch.nn.ReLU(), torch.nn.Linear(400, 300), torch.nn.ReLU(), torch.nn.Linear(300, 6)]
    module = torch.nn.Sequential(*layers).to(device)
    model = DistributedDataParallel(module, bucket_cap_mb=0.1, process_group=group)
    if hook is not None:
        model.register_comm_hook(*hook)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    batches = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for _ in range(STEPS):
        inputs = torch.randn(64, 17, generator=batches).to(device)
        targets = inputs[:, :6].sin()
        optimizer.zero_grad()
        loss = ((model(inputs) - targets) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "weights": sum(p.double().sum().item() for p in model.parameters())}
