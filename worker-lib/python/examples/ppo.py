"""PPO on CartPole in a single file, in the style of CleanRL; the switch sums the gradients of all workers.

    pip install torch gymnasium wheels/iswitch_linux-*.whl
    iswitchd --udp 127.0.0.1:7711 &
    ISWITCH_SWITCH=127.0.0.1:7711 torchrun --nproc-per-node 4 ppo.py

Each worker has separate environments; an update uses the rollouts of all workers. The weights of all workers
start identical and stay identical, because every worker applies the same mean, bit for bit. `torch.distributed` is not
used: torchrun only sets RANK and WORLD_SIZE, which `iswitch.Worker()` reads. The hyper-parameters are those of
CleanRL's ppo.py (Huang et al., JMLR 2022), with a constant learning rate.
"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn

import iswitch

ENVIRONMENTS = 4  # per worker
ROLLOUT = 128  # steps per environment between two updates
EPOCHS = 4
MINIBATCHES = 4
GAMMA, LAMBDA = 0.99, 0.95
CLIP = 0.2
ENTROPY, VALUE = 0.01, 0.5  # weights of the entropy and value losses
MAX_NORM = 0.5
LEARNING_RATE = 2.5e-4


def layer(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
    linear = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(linear.weight, gain)
    nn.init.zeros_(linear.bias)
    return linear


class Agent(nn.Module):
    def __init__(self, observations: int, actions: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(layer(observations, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, actions, 0.01))
        self.critic = nn.Sequential(layer(observations, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, 1, 1.0))

    def policy(self, observations: torch.Tensor) -> torch.distributions.Categorical:
        return torch.distributions.Categorical(logits=self.actor(observations))

    def value(self, observations: torch.Tensor) -> torch.Tensor:
        return self.critic(observations).squeeze(-1)


class Rollouts:
    """Environments of this worker, and the last rollout in them, as tensors of shape [ROLLOUT, ENVIRONMENTS]."""

    def __init__(self, seed: int) -> None:
        self.envs = gym.make_vec("CartPole-v1", ENVIRONMENTS, vectorization_mode="sync")
        self.envs = gym.wrappers.vector.RecordEpisodeStatistics(self.envs)
        self.observation = torch.tensor(self.envs.reset(seed=seed)[0])
        self.returns: list[float] = []  # returns of completed episodes
        # The step after the end of an episode resets the environment and ignores the action.
        self.is_reset = torch.zeros(ENVIRONMENTS, dtype=torch.bool)

    @torch.no_grad()
    def collect(self, agent: Agent) -> dict[str, torch.Tensor]:
        seen: dict[str, list[torch.Tensor]] = {}
        for _ in range(ROLLOUT):
            policy = agent.policy(self.observation)
            action = policy.sample()
            step = {"observation": self.observation, "action": action, "log_prob": policy.log_prob(action)}
            step |= {"value": agent.value(self.observation), "counts": ~self.is_reset}
            observation, reward, terminated, truncated, info = self.envs.step(action.numpy())
            self.observation = torch.tensor(observation)
            self.is_reset = torch.tensor(terminated | truncated)
            step |= {"reward": torch.tensor(reward, dtype=torch.float32)}
            step |= {"next_value": agent.value(self.observation) * ~torch.tensor(terminated), "ends": self.is_reset}
            for name, value in step.items():
                seen.setdefault(name, []).append(value)
            if "episode" in info:
                self.returns.extend(info["episode"]["r"][info["_episode"]].tolist())
        rollout = {name: torch.stack(values) for name, values in seen.items()}
        rollout["advantage"] = advantages(rollout)
        return rollout


def advantages(rollout: dict[str, torch.Tensor]) -> torch.Tensor:
    """Generalised advantage estimation (Schulman et al., 2016)."""
    delta = rollout["reward"] + GAMMA * rollout["next_value"] - rollout["value"]
    result, last = torch.zeros_like(delta), torch.zeros(ENVIRONMENTS)
    for step in reversed(range(ROLLOUT)):
        result[step] = last = delta[step] + GAMMA * LAMBDA * ~rollout["ends"][step] * last
    return result


def loss(agent: Agent, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    policy = agent.policy(batch["observation"])
    ratio = (policy.log_prob(batch["action"]) - batch["log_prob"]).exp()
    advantage = (batch["advantage"] - batch["advantage"].mean()) / (batch["advantage"].std() + 1e-8)
    surrogate = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
    value_loss = 0.5 * (agent.value(batch["observation"]) - batch["advantage"] - batch["value"]).square().mean()
    return VALUE * value_loss - surrogate - ENTROPY * policy.entropy().mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200_000, help="environment steps, over all workers")
    parser.add_argument("--seed", type=int, default=1, help="seed of the environments and the policy")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    worker = iswitch.Worker()
    rollouts = Rollouts(arguments.seed * 1000 + worker.rank)
    torch.manual_seed(arguments.seed)  # identical initial weights on all workers
    agent = Agent(4, 2)
    torch.manual_seed(arguments.seed * 1000 + worker.rank)  # different actions on each worker
    optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
    # All gradients form one vector, so that each update needs a single aggregation.
    gradient = torch.zeros(sum(parameter.numel() for parameter in agent.parameters()))
    sizes = [parameter.numel() for parameter in agent.parameters()]
    for parameter, part in zip(agent.parameters(), gradient.split(sizes), strict=True):
        parameter.grad = part.view_as(parameter)

    steps_per_update = ROLLOUT * ENVIRONMENTS * worker.world_size
    for update in range(1, arguments.steps // steps_per_update + 1):
        rollout = {name: values.flatten(0, 1) for name, values in rollouts.collect(agent).items()}
        counting = rollout.pop("counts").nonzero().squeeze(-1)
        for _ in range(EPOCHS):
            # Every worker divides its batch into the same number of minibatches, so that all workers sum equally often.
            for indices in counting[torch.randperm(len(counting))].tensor_split(MINIBATCHES):
                gradient.zero_()
                loss(agent, {name: values[indices] for name, values in rollout.items()}).backward()
                worker.all_reduce_mean_(gradient)
                nn.utils.clip_grad_norm_(agent.parameters(), MAX_NORM)
                optimizer.step()
        if worker.rank == 0:
            recent = np.mean(rollouts.returns[-20:]) if rollouts.returns else float("nan")
            print(f"steps {update * steps_per_update}: return {recent:.1f}", flush=True)
    worker.close()


if __name__ == "__main__":
    main()
