"""One all-reduce of one vector per update, as in the multi-GPU training of rsl_rl and Isaac Lab.

    iswitchd --udp 127.0.0.1:7711 &
    ISWITCH_SWITCH=127.0.0.1:7711 torchrun --nproc-per-node 4 flat_gradient.py

rsl_rl does not use DistributedDataParallel. Its runner broadcasts the parameters of rank 0 once, and its PPO joins the
gradients of all parameters in one vector after each backward pass (`broadcast_parameters` and `reduce_parameters`). Both
functions use the default process group, so the switch sums the vector once this group has the backend "iswitch".

The environments here are a stand-in for a simulator: an actor and a critic follow a target in a few dimensions.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn

import iswitch.torch  # noqa: F401: the first changed line

DIMENSIONS = 12
ENVIRONMENTS = 256  # per worker


class ActorCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(DIMENSIONS, 64), nn.ELU(), nn.Linear(64, DIMENSIONS))
        self.critic = nn.Sequential(nn.Linear(DIMENSIONS, 64), nn.ELU(), nn.Linear(64, 1))
        self.log_std = nn.Parameter(torch.zeros(DIMENSIONS))


def broadcast_parameters(policy: nn.Module) -> None:
    """Replaces the parameters of all workers with those of rank 0."""
    parameters = [policy.state_dict()]
    dist.broadcast_object_list(parameters, src=0)
    policy.load_state_dict(parameters[0])


def reduce_parameters(policy: nn.Module) -> None:
    """Replaces the gradients with their mean over all workers, in a single all-reduce."""
    gradients = [parameter.grad for parameter in policy.parameters() if parameter.grad is not None]
    vector = torch.cat([gradient.view(-1) for gradient in gradients])
    dist.all_reduce(vector, op=dist.ReduceOp.SUM)
    vector /= dist.get_world_size()
    for gradient, part in zip(gradients, vector.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def surrogate_loss(policy: ActorCritic) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the loss of one policy-gradient update, and the mean reward per environment and dimension."""
    observations = torch.randn(ENVIRONMENTS, DIMENSIONS)
    distribution = torch.distributions.Normal(policy.actor(observations), policy.log_std.exp())
    actions = distribution.sample()
    rewards = -(actions - observations).square().mean(1)
    values = policy.critic(observations).squeeze(1)
    advantages = (rewards - values).detach()
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    policy_loss = -(distribution.log_prob(actions).sum(1) * advantages).mean()
    return policy_loss + (rewards - values).square().mean(), rewards.mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=500, help="number of updates of the policy")
    updates = parser.parse_args().updates

    torch.set_num_threads(1)
    dist.init_process_group("iswitch")  # the second changed line; rsl_rl has "nccl" here
    torch.manual_seed(dist.get_rank())
    policy = ActorCritic()
    broadcast_parameters(policy)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for update in range(1, updates + 1):
        loss, reward = surrogate_loss(policy)
        optimizer.zero_grad()
        loss.backward()
        reduce_parameters(policy)
        optimizer.step()
        if update % 100 == 0 or update in (1, updates):
            dist.all_reduce(reward, op=dist.ReduceOp.AVG)
            if dist.get_rank() == 0:
                print(f"update {update}: reward {reward.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
