"""Trains and exports a policy of each algorithm for test_policy.py and test_torch_policy.py."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import PATIENCE_S

from iswitch.switch import find_iswitchd

# Largest difference between actions, divided by the range of the actions.
TOLERANCE = 1e-5
ROWS = 10_000


class Case(NamedTuple):
    """A short training run."""

    algorithm: str
    env: str
    steps: int
    settings: tuple[str, ...] = ()
    # Gymnasium environments take more time.
    rows: int = ROWS

    def __str__(self) -> str:
        return "-".join([self.algorithm, self.env.removeprefix("uneven:"), *self.settings])


OFF_POLICY = ("learning_starts=200", "hidden=[32,32]")
IMAGES = ("learning_starts=100", "hidden=[24]")
CASES = [
    Case("dqn", "CartPole-v1", 20_000, OFF_POLICY),
    Case("dqn", "CartPole-v1", 20_000, (*OFF_POLICY, "duelling=true")),
    Case("dqn", "uneven:Pictures-v0", 300, IMAGES, 200),
    Case("dqn", "uneven:Pictures-v0", 300, (*IMAGES, "duelling=true"), 200),
    Case("a2c", "CartPole-v1", 2000),
    Case("a2c", "uneven:Pictures-v0", 300, ("hidden=[24]",), 200),
    Case("a2c", "Pendulum-v1", 2000),
    Case("ppo", "CartPole-v1", 4096),
    Case("ppo", "Pendulum-v1", 8192),
    Case("ppo", "uneven:Bounds-v0", 4096, rows=2000),
    Case("ppo", "CartPoleNoVel-v1", 4096, ("lstm=16",)),
    Case("ppo", "CartPoleNoVel-v1", 4096, ("lstm=null", "gru=16")),
    Case("ppo", "PendulumNoVel-v1", 8192, ("lstm=null", "gru=16")),
    Case("ddpg", "Pendulum-v1", 1200, OFF_POLICY),
    Case("td3", "Pendulum-v1", 1200, OFF_POLICY),
    Case("sac", "Pendulum-v1", 1200, OFF_POLICY),
]


def program() -> str:
    """Returns the path of `iswitch`, or skips the test if `iswitch` or `iswitch-export` is missing."""
    beside = Path(find_iswitchd()).with_name("iswitch")
    found = str(beside) if beside.exists() else shutil.which("iswitch")
    if found is None or not Path(found).with_name("iswitch-export").exists():
        pytest.skip("iswitch and iswitch-export are missing: cargo build -p iswitch-cli -p iswitch-export")
    return found


def run(*arguments: str | Path) -> str:
    """Runs `iswitch` and returns its output."""
    variables = {**os.environ, "ISWITCH_PYTHON": sys.executable, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [program(), *arguments], env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


def train(case: Case, out: Path) -> None:
    settings = [word for setting in case.settings for word in ("--set", setting)]
    options = ["--env", case.env, "--workers", "1", "--steps", str(case.steps), "--quiet", "--out", out]
    run("train", case.algorithm, *options, *settings)


def assert_discrete(actual: np.ndarray, scores: np.ndarray, expected: np.ndarray, expected_scores: np.ndarray, start: int) -> None:
    """Asserts that discrete actions and the scores of all actions are those of iSwitch, up to rounding."""
    assert actual.shape == expected.shape and actual.dtype == np.int64
    assert scores.shape == expected_scores.shape and scores.dtype == np.float32
    extent = np.ptp(expected_scores)
    assert np.all(np.ptp(expected_scores, axis=0) > 100 * TOLERANCE * extent), "expected different scores, to compare them"
    assert np.max(np.abs(scores - expected_scores)) <= TOLERANCE * extent
    # Rounding may decide between actions whose scores are almost equal.
    taken = np.take_along_axis(expected_scores, actual[:, np.newaxis] - start, axis=1)[:, 0]
    assert np.max(expected_scores.max(axis=1) - taken) <= TOLERANCE * extent
    np.testing.assert_array_equal(expected, expected_scores.argmax(axis=1) + start)


def assert_continuous(actual: np.ndarray, expected: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Asserts that continuous actions are those that iSwitch takes, up to rounding; `low` and `high` are the bounds."""
    assert actual.shape == expected.shape and actual.dtype == np.float32
    assert np.all(actual >= low) and np.all(actual <= high)
    spread = np.ptp(expected, axis=0)
    extent = np.where(np.isfinite(high - low), high - low, spread)
    assert np.all(spread > 100 * TOLERANCE * extent), "expected different actions, to compare them"
    assert np.max(np.abs(actual - expected) / extent) <= TOLERANCE
