"""Runs the example that trains with Stable-Baselines3, and MaskablePPO of its contributions."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE_S

pytest.importorskip("stable_baselines3", reason="python tests/install_torch.py, or pip install stable-baselines3")

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "studies.py"


def compare(study: str, steps: int, draws: int) -> dict[str, float]:
    """Trains the example briefly; returns the mean metric of each policy."""
    command = [sys.executable, EXAMPLE, study, "--steps", str(steps), "--draws", str(draws)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.endswith(" of ppo")]
    return {row[0]: float(row[1]) for row in rows}


def test_the_example_learns_to_route():
    figures = compare("routing", 32_768, 5)
    assert len(figures) == 7
    assert figures["ppo"] < figures["rand"] - 0.5 * (figures["rand"] - figures["colouring"])


@pytest.mark.parametrize(("study", "rules"), [("coflow", 7), ("placement", 7)])
def test_the_example_trains_in_the_other_environments(study: str, rules: int):
    figures = compare(study, 8192, 2)
    assert len(figures) == rules + 1 and all(figure > 0.0 for figure in figures.values())


def test_maskable_ppo_takes_only_valid_actions():
    contributions = pytest.importorskip("sb3_contrib", reason="python tests/install_torch.py, or pip install sb3-contrib")
    import gymnasium

    import iswitch.studies

    env = gymnasium.make("iswitch/Placement-v0", gpus=8, widest=8, batch=10, invalid="error")
    model = contributions.MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, seed=1, device="cpu")
    model.learn(128)
    assert isinstance(env.unwrapped, iswitch.studies.StudyEnv)
