"""Trains the PPO of Stable-Baselines3 in the environments of the studies.

    pip install stable-baselines3 wheels/iswitch_linux-*.whl
    python studies.py routing          # or coflow, or placement

The policy scores each candidate (link, coflow or GPU) with the same small network, and chooses among the valid ones
with the softmax of the scores. The program trains the policy on random draws. It then runs the policy and the rules of
the study on other draws, which are the same for all of them and were not used in training.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.distributions import CategoricalDistribution
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn

import iswitch.studies

ENVIRONMENTS = 8
HIDDEN = 64
# Logit of invalid candidates, far below the logits of valid ones.
INVALID = -1e8


class Study(NamedTuple):
    """An environment, the metric by which policies are compared (lower is better), and the rules to compare with."""

    environment: str
    options: dict[str, Any]
    figure: str
    unit: float
    rules: tuple[str, ...]
    steps: int
    # Discount factor per decision, and number of steps of each environment between two updates.
    gamma: float
    rollout: int


STUDIES = {
    "routing": Study(
        "iswitch/Routing-v0",
        {"switches": 4, "load": 0.8, "slots": 200},
        "delay_slots",
        1.0,
        ("rand", "jsq", "po2", "central-jsq", "central-jsq-exits", "colouring"),
        300_000,
        0.99,
        512,
    ),
    "coflow": Study(
        "iswitch/Coflow-v0",
        {"jobs": 10, "interarrival_s": 15.0, "ports": 8},
        "mean_jct_s",
        1.0,
        ("fair", "fifo", "sebf", "bssi", "job-srpt", "job-sebf", "job-bssi"),
        200_000,
        0.99,
        256,
    ),
    "placement": Study(
        "iswitch/Placement-v0",
        {"gpus": 32, "batch": 30, "interarrival_s": 7200.0, "rate_factor": 300.0, "spread_slowdown": 2.0},
        "mean_jct_s",
        3600.0,
        ("random", "first-fit", "best-fit", "rested", "match", "reliable", "oracle"),
        100_000,
        0.99,
        256,
    ),
}


def layers(inputs: int, outputs: int, gain: float) -> nn.Sequential:
    network = nn.Sequential(nn.Linear(inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, outputs))
    nn.init.orthogonal_(network[-1].weight, gain)
    nn.init.zeros_(network[-1].bias)
    return network


class CandidatePolicy(ActorCriticPolicy):
    """Policy that uses one network for all candidates; the value depends on the mean and maximum of their encodings."""

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        features = self.observation_space.shape[1]
        self.scorer = layers(features, 1, 0.01)
        self.encoder = layers(features, HIDDEN, 1.0)
        self.critic = nn.Linear(2 * HIDDEN, 1)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)

    def get_distribution(self, obs: torch.Tensor) -> CategoricalDistribution:
        scores = self.scorer(obs).squeeze(-1)
        return self.action_dist.proba_distribution(torch.where(obs[..., 0] > 0, scores, INVALID))

    def predict_values(self, obs: torch.Tensor) -> torch.Tensor:
        valid, codes = obs[..., :1], self.encoder(obs)
        mean = (codes * valid).sum(-2) / valid.sum(-2).clamp(min=1)
        return self.critic(torch.cat([mean, torch.where(valid > 0, codes, -1.0).amax(-2)], -1))

    def forward(self, obs: torch.Tensor, deterministic: bool = False) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        distribution = self.get_distribution(obs)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, self.predict_values(obs), distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        distribution = self.get_distribution(obs)
        return self.predict_values(obs), distribution.log_prob(actions), distribution.entropy()


def train(study: Study, steps: int, seed: int) -> PPO:
    make = lambda: gymnasium.make(study.environment, **study.options)  # noqa: E731
    environments = make_vec_env(make, ENVIRONMENTS, seed=1_000_000 * seed)
    environments = VecNormalize(environments, norm_obs=False, norm_reward=True, gamma=study.gamma)
    model = PPO(
        CandidatePolicy,
        environments,
        learning_rate=lambda left: 1e-3 * left,
        n_steps=study.rollout,
        batch_size=study.rollout,
        n_epochs=4,
        gamma=study.gamma,
        ent_coef=0.001,
        seed=seed,
        device="cpu",
    )
    model.learn(steps)
    return model


def evaluate(study: Study, model: PPO, draws: range) -> dict[str, np.ndarray]:
    """Returns the metric of the trained policy and of each rule on each draw."""
    env = gymnasium.make(study.environment, **study.options)
    simulator = env.unwrapped
    assert isinstance(simulator, iswitch.studies.StudyEnv)
    figures: dict[str, list[float]] = {name: [] for name in ("ppo", *study.rules)}
    for draw in draws:
        observation, info = env.reset(seed=draw)
        is_over = False
        while not is_over:
            action, _ = model.predict(observation, deterministic=True)
            observation, _, terminated, truncated, info = env.step(int(action))
            is_over = terminated or truncated
        figures["ppo"].append(info["results"][study.figure] / study.unit)
        for rule in study.rules:
            figures[rule].append(simulator.run_rule(rule)[study.figure] / study.unit)
    return {name: np.array(values) for name, values in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES, help="study in whose environment to train")
    parser.add_argument("--steps", type=int, help="number of training decisions, in total across all environments")
    parser.add_argument("--draws", type=int, default=20, help="number of draws in the comparison")
    parser.add_argument("--seed", type=int, default=1, help="seed of the training")
    arguments = parser.parse_args()
    if arguments.draws < 2:
        parser.error(f"--draws is {arguments.draws}, expected at least 2")
    study = STUDIES[arguments.study]
    torch.set_num_threads(1)
    model = train(study, arguments.steps or study.steps, arguments.seed)
    figures = evaluate(study, model, range(1, arguments.draws + 1))
    print(f"{study.figure} (hours)" if study.unit > 1.0 else study.figure)
    for name, values in sorted(figures.items(), key=lambda item: item[1].mean()):
        # The mean of the ratios on the same draws, and its 95 % interval.
        ratios = values / figures["ppo"]
        interval = 1.96 * ratios.std(ddof=1) / len(ratios) ** 0.5
        print(f"{name:20} {values.mean():10.3f}   {ratios.mean():6.3f} +- {interval:.3f} of ppo")


if __name__ == "__main__":
    main()
