"""Tests of `iswitch.train`: the `iswitch` command trains, and Python gets its results."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from policies import program
from test_documentation import python_blocks

from iswitch import train


@pytest.fixture(autouse=True)
def iswitch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISWITCH", program())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> train.PPO:
    os.environ.setdefault("ISWITCH", program())
    model = train.PPO("CartPole-v1", seed=3, directory=tmp_path_factory.mktemp("run"), epochs=4)
    return model.learn(total_timesteps=30_000)


def test_a_trained_agent_acts_and_is_evaluated(trained: train.PPO):
    assert trained.steps == trained.result["steps"] >= 30_000
    action, state = trained.predict(np.zeros(4))
    assert action in (0, 1) and state is None
    actions, _ = trained.predict(np.zeros((5, 4)))
    assert actions.shape == (5,)
    result = trained.evaluate(episodes=3)
    assert result["episodes"] == 3
    assert result["mean_return"] > 50, "an agent that has learned nothing has a return of about 20"
    assert repr(trained) == f"PPO('CartPole-v1', steps={trained.steps})"


def test_the_progress_has_the_metrics_of_each_report(trained: train.PPO):
    rows = trained.progress()
    assert rows[-1]["step"] == trained.steps
    assert rows[0]["charts/learning_rate"] > rows[-1]["charts/learning_rate"]


def test_hyper_parameters_reach_the_run(trained: train.PPO):
    config = (trained.directory / "config.toml").read_text()
    assert "epochs = 4\n" in config and "seed = 3\n" in config


def test_a_saved_agent_continues(trained: train.PPO, tmp_path: Path):
    trained.save(tmp_path / "saved")
    model = train.load(tmp_path / "saved")
    assert isinstance(model, train.PPO) and model.steps == trained.steps
    assert (model.predict(np.ones(4))[0] == trained.predict(np.ones(4))[0]).all()
    model.learn(total_timesteps=5000)
    assert model.steps >= trained.steps + 5000


def test_a_temporary_run_is_removed_with_the_agent():
    model = train.A2C("CartPole-v1", workers=2).learn(total_timesteps=2000)
    directory = model.directory
    assert (directory / "model.safetensors").exists() and model.result["replicas_identical"]
    del model
    assert not directory.exists()


def test_the_error_of_the_command_is_raised():
    with pytest.raises(train.TrainingError, match=r"iswitch train: --set gama: no such hyper-parameter"):
        train.DQN("CartPole-v1", gama=0.9).learn(total_timesteps=1000)
    with pytest.raises(train.TrainingError, match="not been trained yet"):
        train.DQN("CartPole-v1").predict(np.zeros(4))
    with pytest.raises(TypeError, match=r"env is 5, expected the id"):
        train.SAC(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="deterministic is False, expected True"):
        train.TD3("Pendulum-v1").predict(np.zeros(3), deterministic=False)


def test_an_interrupt_saves_a_checkpoint(tmp_path: Path):
    model = train.PPO("CartPole-v1", directory=tmp_path)

    def interrupt() -> None:
        while not (tmp_path / "progress.csv").exists():
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        model.learn(total_timesteps=100_000_000)
    interrupted = train.load(tmp_path)
    assert interrupted.steps > 0
    assert interrupted.learn(total_timesteps=1024).steps > interrupted.progress()[0]["step"]


def test_other_directories_are_refused(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        train.load(tmp_path)
    (tmp_path / "config.toml").write_text('algorithm = "reinforce"\n')
    with pytest.raises(ValueError, match=r"is not the configuration of a run: 'reinforce' is missing or unknown"):
        train.load(tmp_path)


def test_the_code_of_the_guide_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    (block,) = python_blocks("docs/guide/runs.md")
    exec(block, {})  # noqa: S102
    assert float(capsys.readouterr().out) > 100, "the agent of the guide should learn"
    assert (tmp_path / "policy.onnx").exists()
