"""Tests that the lines of docs/guide/export.md load exported policies into PyTorch."""

import re
from pathlib import Path

import numpy as np
import pytest
from policies import Case, assert_continuous, assert_discrete, run, train
from test_documentation import ROOT

torch = pytest.importorskip("torch", reason="pip install torch")
safetensors_numpy = pytest.importorskip("safetensors.numpy", reason="pip install safetensors")


def load(directory: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    """Runs the lines of the guide in a directory, and returns their variables."""
    page = (ROOT / "docs/guide/export.md").read_text()
    blocks = re.findall(r"^```python torch\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    monkeypatch.chdir(directory)
    names: dict = {}
    exec("\n".join(blocks), names)  # noqa: S102
    return names


def export(case: Case, directory: Path) -> dict[str, np.ndarray]:
    """Exports the policy of a short training, and returns observations with the actions and scores of iSwitch."""
    train(case, directory / "run")
    data = ["--test-data", directory / "test.safetensors", "--test-rows", str(case.rows)]
    run("export", directory / "run", "--out", directory / "policy.safetensors", *data)
    return safetensors_numpy.load_file(directory / "test.safetensors")


def test_the_guide_acts_as_iswitch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tensors = export(Case("ppo", "uneven:Bounds-v0", 4096, rows=2000), tmp_path)
    guide = load(tmp_path, monkeypatch)
    with torch.no_grad():
        found = guide["act"](torch.from_numpy(tensors["observation"])).numpy()
    low, high = (guide["tensors"][f"action.{name}"].numpy() for name in ("low", "high"))
    assert_continuous(found, tensors["action"], low, high)


@pytest.mark.parametrize(
    ("case", "scores"),
    [
        (Case("a2c", "uneven:Pictures-v0", 300, ("hidden=[24]",), 200), "logits"),
        (Case("dqn", "CartPole-v1", 2000, ("learning_starts=200", "hidden=[32,32]")), "q_values"),
    ],
    ids=str,
)
def test_the_guide_loads_images_and_vectors(case: Case, scores: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tensors = export(case, tmp_path)
    guide = load(tmp_path, monkeypatch)
    is_image = tensors["observation"].ndim == 4
    inputs = torch.from_numpy(tensors["observation"]) / (255 if is_image else 1)
    with torch.no_grad():
        found = guide["network"](inputs).numpy()
    start = -1 if is_image else 0
    assert_discrete(found.argmax(axis=1) + start, found, tensors["action"], tensors[scores], start)


def test_the_guide_loads_layer_normalisation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    case = Case("ddpg", "Pendulum-v1", 1200, ("learning_starts=200", "hidden=[32,32]"))
    tensors = export(case, tmp_path)
    guide = load(tmp_path, monkeypatch)
    with torch.no_grad():
        found = guide["network"](torch.from_numpy(tensors["observation"])).numpy() * 2
    assert_continuous(found, tensors["action"], np.float32([-2]), np.float32([2]))
