"""Tests of exported policies: ONNX Runtime and `iswitch.policy` act as iSwitch does, and the Hub reads the model card."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from policies import CASES, Case, assert_continuous, assert_discrete, run, train
from test_documentation import python_blocks

from iswitch.policy import Policy, load_policy

onnx = pytest.importorskip("onnx", reason="pip install onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
safetensors_numpy = pytest.importorskip("safetensors.numpy", reason="pip install safetensors")


class Exported(NamedTuple):
    """A run with its exported files, and observations with the actions and scores of iSwitch."""

    case: Case
    directory: Path
    result: dict[str, Any]
    tensors: dict[str, np.ndarray]

    @property
    def observations(self) -> np.ndarray:
        return self.tensors["observation"]

    def policy(self) -> Policy:
        return load_policy(self.directory / "policy.safetensors")

    def onnx_outputs(self) -> dict[str, np.ndarray]:
        """Returns the outputs of ONNX Runtime, without the state of a recurrent policy."""
        session = onnxruntime.InferenceSession(self.directory / "policy.onnx")
        names = [output.name for output in session.get_outputs()]
        if "start" not in self.tensors:
            return dict(zip(names, session.run(None, {"observation": self.observations}), strict=True))
        states = {value.name: np.zeros((1, value.shape[1]), np.float32) for value in session.get_inputs()[1:]}
        assert states.keys() == {name.replace("_out", "_in") for name in names if name.endswith("_out")}
        zeros, rows = states, []
        for observation, start in zip(self.observations[:, np.newaxis], self.tensors["start"], strict=True):
            outputs = session.run(None, {"observation": observation, **(zeros if start else states)})
            rows.append(dict(zip(names, outputs, strict=True)))
            states = {name: rows[-1][name.replace("_in", "_out")] for name in states}
        kept = [name for name in names if not name.endswith("_out")]
        return {name: np.concatenate([row[name] for row in rows]) for name in kept}


@pytest.fixture(scope="module", params=CASES, ids=str)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    case, directory = request.param, tmp_path_factory.mktemp("export")
    train(case, directory / "run")
    data = ["--test-data", directory / "test.safetensors", "--test-rows", str(case.rows)]
    result = json.loads(run("export", directory / "run", "--out", directory / "policy.onnx", "--json", *data))
    for extension in ("safetensors", "json"):
        run("export", directory / "run", "--out", directory / f"policy.{extension}")
    tensors = safetensors_numpy.load_file(directory / "test.safetensors")
    assert len(tensors["observation"]) == case.rows
    return Exported(case, directory, result, tensors)


def assert_as_iswitch(exported: Exported, actions: np.ndarray, scores: np.ndarray | None) -> None:
    policy, expected = exported.policy(), exported.tensors["action"]
    if scores is None:
        low, high = (policy._tensors[f"action.{name}"] for name in ("low", "high"))
        assert_continuous(actions, expected, low, high)
    else:
        expected_scores = exported.tensors[scores_name(exported.case)]
        assert_discrete(actions, scores, expected, expected_scores, policy.config["action"]["start"])


def scores_name(case: Case) -> str:
    return {"dqn": "q_values"}.get(case.algorithm, "logits")


def test_onnx_runtime_acts_as_iswitch(exported: Exported):
    outputs = exported.onnx_outputs()
    assert set(outputs) == set(exported.tensors) - {"observation", "start"}
    assert_as_iswitch(exported, outputs["action"], outputs.get(scores_name(exported.case)))


def test_onnx_files_are_valid(exported: Exported):
    model = onnx.load(exported.directory / "policy.onnx")
    onnx.checker.check_model(model, full_check=True)
    # ONNX Runtime 1.16 reads IR version 9 and operator set 19.
    assert model.ir_version <= 9 and [opset.version for opset in model.opset_import] <= [19]
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert (metadata["algorithm"], metadata["env"]) == (exported.case.algorithm, exported.case.env)
    assert int(metadata["steps"]) >= exported.case.steps
    assert json.loads(metadata["hyper_parameters"])["total_steps"] == exported.case.steps
    assert exported.result["files"][0]["bytes"] == (exported.directory / "policy.onnx").stat().st_size
    sizes = {tensor.name: int(np.prod(tensor.dims)) for tensor in model.graph.initializer}
    parameters = sum(size for name, size in sizes.items() if name.endswith((".weight", ".bias", ".weight_ih", ".weight_hh")))
    # A recurrent layer has four biases for each unit; ONNX stores more, some of which are zero.
    parameters += 4 * exported.policy().config.get("memory", {}).get("width", 0)
    assert exported.result["parameters"] == parameters


@pytest.mark.parametrize("extension", ["safetensors", "json"])
def test_loaded_policies_act_as_iswitch(exported: Exported, extension: str):
    policy = load_policy(exported.directory / f"policy.{extension}")
    is_discrete = policy.config["action"]["type"] == "discrete"
    if policy.is_recurrent:
        steps_as_iswitch(exported, policy, is_discrete)
        return
    scores = policy.scores(exported.observations) if is_discrete else None
    actions = policy.act(exported.observations)
    assert_as_iswitch(exported, actions, scores)
    if not is_discrete:
        with pytest.raises(ValueError, match="has continuous actions, which have no scores"):
            policy.scores(exported.observations)
    single = policy.act(exported.observations[0])
    np.testing.assert_allclose(single, actions[0], rtol=1e-4, atol=1e-5)
    assert np.shape(single) == actions.shape[1:]


def steps_as_iswitch(exported: Exported, policy: Policy, is_discrete: bool):
    actions, scores, state = [], [], None
    for observation, start in zip(exported.observations, exported.tensors["start"], strict=True):
        state = None if start else state
        if is_discrete:
            scores.append(policy.scores(observation, state))
        action, state = policy.step(observation, state)
        actions.append(action)
    assert_as_iswitch(exported, np.array(actions), np.array(scores) if is_discrete else None)
    # Batches are rows that do not influence each other; zeros are the state at the start of an episode.
    pair = exported.observations[:2]
    batch, states = policy.step(pair, np.stack([state, np.zeros_like(state)]))
    for row, before in enumerate((state, None)):
        action, after = policy.step(pair[row], before)
        np.testing.assert_allclose(batch[row], action, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(states[row], after, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=re.escape("is recurrent, and its state would be lost; expected step(")):
        policy.act(pair)
    with pytest.raises(ValueError, match=re.escape(f"the state has the shape {state.shape}, expected (2, {state.size})")):
        policy.step(pair, state)


def test_observations_of_another_shape_are_refused(exported: Exported):
    policy = exported.policy()
    for shape in ((1, *exported.observations.shape), (*exported.observations.shape[1:], 2)):
        with pytest.raises(ValueError, match=re.escape(f"the observations have the shape {shape}, expected")):
            policy.step(np.zeros(shape))


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of the run of a short training."""
    directory = tmp_path_factory.mktemp("pendulum") / "run"
    train(Case("ppo", "Pendulum-v1", 4096), directory)
    return directory


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of the run of a short training with the recurrent layers of the guide."""
    directory = tmp_path_factory.mktemp("recurrent") / "run"
    train(Case("ppo", "PendulumNoVel-v1", 4096, ("lstm=null", "gru=32")), directory)
    return directory


def test_the_hub_reads_the_model_card(pendulum: Path, tmp_path: Path):
    hub = pytest.importorskip("huggingface_hub", reason="pip install huggingface-hub")
    printed = json.loads(
        run("export", pendulum, "--format", "hub", "--out", tmp_path, "--episodes", "7", "--seed", "5", "--json")
    )
    evaluated = json.loads(run("eval", pendulum, "--episodes", "7", "--seed", "5", "--json"))
    assert printed["evaluation"].items() <= evaluated.items()
    card = hub.ModelCard.load(tmp_path / "README.md")
    assert card.data.library_name == "iswitch" and {"Pendulum-v1", "ppo", "reinforcement-learning"} <= set(card.data.tags)
    (result,) = card.data.eval_results
    assert (result.task_type, result.dataset_name, result.metric_type) == ("reinforcement-learning", "Pendulum-v1", "mean_reward")
    assert result.metric_value == f"{evaluated['mean_return']:.2f} +/- {evaluated['std_return']:.2f}"
    config = json.loads((tmp_path / "config.json").read_text())
    assert config == load_policy(tmp_path).config and "weight" not in config["layers"][0]
    # The code of the card runs in the folder.
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", card.text, re.MULTILINE | re.DOTALL))
    actions = run_in(tmp_path, code)
    assert actions["actions"].shape == (1, 1)


def test_the_card_of_a_recurrent_policy_runs_it(recurrent: Path, tmp_path: Path):
    run("export", recurrent, "--format", "hub", "--out", tmp_path, "--episodes", "1")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", (tmp_path / "README.md").read_text(), re.MULTILINE | re.DOTALL))
    names = run_in(tmp_path, code)
    assert names["outputs"]["action"].shape == names["actions"].shape == (1, 1)
    # ONNX Runtime and NumPy have taken the same step.
    np.testing.assert_allclose(names["actions"], names["outputs"]["action"], atol=1e-5)
    np.testing.assert_allclose(names["state"], names["outputs"]["h_out"], atol=1e-5)


def test_the_code_of_the_guide_acts(pendulum: Path, recurrent: Path, tmp_path: Path):
    for name in ("policy.onnx", "policy.safetensors"):
        run("export", pendulum, "--out", tmp_path / name)
    for name in ("recurrent.onnx", "recurrent.safetensors"):
        run("export", recurrent, "--out", tmp_path / name)
    for block in python_blocks("docs/guide/export.md"):
        names = run_in(tmp_path, block)
        actions = names.get("actions", names.get("action"))
        assert actions.shape[-1:] == (1,) and np.all(np.abs(actions) <= 2.0)


def run_in(directory: Path, code: str) -> dict[str, Any]:
    """Runs code of the documentation in a directory, and returns its variables."""
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        exec(code, names)  # noqa: S102
    return names


def test_files_that_are_no_exported_policies_are_refused(pendulum: Path, tmp_path: Path):
    with pytest.raises(ValueError, match="it is a checkpoint; export it with"):
        load_policy(pendulum)
    run("export", pendulum, "--out", tmp_path / "policy.safetensors")
    content = (tmp_path / "policy.safetensors").read_bytes()
    damaged = tmp_path / "damaged.safetensors"
    for broken in (b"", b"\xff" * 8, content[:100], content[:-4], b"{}", content.replace(b"policy-1", b"policy-9")):
        damaged.write_bytes(broken)
        with pytest.raises(ValueError, match=r"damaged\.safetensors is not a policy that `iswitch export` has written: "):
            load_policy(damaged)
    with pytest.raises(FileNotFoundError):
        load_policy(tmp_path / "missing.safetensors")
