"""Training from Python, with the same names as in Stable-Baselines3. The `iswitch` command performs the training.

>>> model = iswitch.train.PPO("Pendulum-v1", workers=4)
>>> model.learn(total_timesteps=200_000)
>>> action, _ = model.predict(observation)
"""

import csv
import json
import os
import shutil
import signal
import subprocess
import tempfile
import tomllib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from iswitch.errors import Error
from iswitch.switch import find_iswitchd

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from iswitch.policy import Policy

__all__ = ["A2C", "DDPG", "DQN", "PPO", "SAC", "TD3", "Algorithm", "TrainingError", "find_iswitch", "load"]

# Files of a run directory.
_CONFIG = "config.toml"
_PROGRESS = "progress.csv"


class TrainingError(Error):
    """The `iswitch` command failed; the message is the one that the command printed."""

    reason = "training_failed"


def find_iswitch() -> str:
    """Returns the path of iswitch: the value of ISWITCH, else the one on the PATH, else the one beside iswitchd.

    Raises:
        FileNotFoundError: There is no iswitch.
    """
    if named := os.environ.get("ISWITCH"):
        return named
    if found := shutil.which("iswitch"):
        return found
    try:
        beside = Path(find_iswitchd()).with_name("iswitch")
    except FileNotFoundError:
        beside = Path()
    if beside.is_file():
        return str(beside)
    raise FileNotFoundError(
        "iswitch is neither on the PATH nor beside iswitchd; install the Debian package, run cargo install --path "
        "worker-lib/cli, or set ISWITCH to the path of iswitch"
    )


class Algorithm:
    """An agent and the algorithm that trains it. Use one of the subclasses, such as `PPO`.

    Args:
        env: Id of the environment, as for `iswitch train --env`: built in, from Gymnasium, or `module:Id-v0`.
        workers: Number of workers. With more than one, a switch on this machine sums their gradients.
        seed: Seed of all random numbers.
        directory: Directory of the run. By default, a temporary directory that is deleted together with this object.
        options: Additional options of `iswitch train`, such as `["--async"]`.
        hyper_parameters: Hyper-parameters by name, as `iswitch train ALGORITHM --list-parameters` prints them. Those
            that are absent take their values from the environment's preset.

    Raises:
        TypeError: `env` is not a string.
        FileNotFoundError: There is no iswitch.
    """

    name: ClassVar[str]
    """Name of the algorithm, as for `iswitch train`."""

    def __init__(
        self,
        env: str,
        *,
        workers: int = 1,
        seed: int = 1,
        directory: str | PathLike[str] | None = None,
        options: Sequence[str] = (),
        **hyper_parameters: Any,
    ) -> None:
        if not isinstance(env, str):
            raise TypeError(
                f"env is {env!r}, expected the id of an environment, such as 'Pendulum-v1' or 'my_module:MyEnv-v0'"
            )
        self._program = find_iswitch()
        if directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="iswitch-")
            directory = self._temporary.name
        self._directory = Path(directory).absolute()
        settings = [f"--set={name}={json.dumps(value)}" for name, value in hyper_parameters.items()]
        self._arguments = [f"--env={env}", f"--workers={workers}", f"--seed={seed}", *settings, *options]
        self._env = env
        self._steps = 0
        self._result: dict[str, Any] = {}
        self._policy: Policy | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._env!r}, steps={self._steps})"

    @property
    def directory(self) -> Path:
        """Directory of the run; it contains the checkpoints, `config.toml`, `progress.csv` and the TensorBoard event files."""
        return self._directory

    @property
    def steps(self) -> int:
        """Number of environment steps for which the agent was trained."""
        return self._steps

    @property
    def result(self) -> dict[str, Any]:
        """Result of the last call of `learn`, as `iswitch train --json` prints it. Empty before the first call."""
        return self._result

    def learn(self, total_timesteps: int | None = None, *, progress_bar: bool = False) -> Self:
        """Trains the agent. Another call continues the training.

        An interrupt, such as Ctrl-C, saves a checkpoint before KeyboardInterrupt is raised.

        Args:
            total_timesteps: Number of environment steps of all workers together, rounded up to whole rollouts. By
                default, the number in the environment's preset.
            progress_bar: Whether the command reports its progress on stderr.

        Returns:
            This object.

        Raises:
            TrainingError: The command refused an argument or failed.
        """
        if self._steps == 0:
            arguments = [*self._arguments, *self._step_option(total_timesteps)]
        else:
            arguments = ["--resume", *self._step_option(total_timesteps)]
        quiet = [] if progress_bar else ["--quiet"]
        out = f"--out={self._directory}"
        self._policy = None
        self._result = self._run("train", self.name, *arguments, out, "--json", *quiet, is_shown=progress_bar)
        self._steps = self._result["steps"]
        return self

    def _step_option(self, steps: int | None) -> list[str]:
        return [] if steps is None else [f"--steps={self._steps + steps}"]

    @property
    def policy(self) -> "Policy":
        """Trained policy, which runs with NumPy.

        Raises:
            TrainingError: The agent has not been trained yet.
        """
        if self._policy is None:
            from iswitch.policy import load_policy

            file = self._directory / "policy.safetensors"
            self.export(file)
            self._policy = load_policy(file)
        return self._policy

    def predict(
        self,
        observation: "ArrayLike",
        state: None = None,
        episode_start: None = None,
        deterministic: bool = True,
    ) -> "tuple[NDArray[Any], None]":
        """Returns the most probable actions for one observation or a batch of observations.

        Args:
            observation: Observations, as for `iswitch.policy.Policy.act`.
            state: Not used; the policies have no state.
            episode_start: Not used.
            deterministic: Must be True: actions are not sampled.

        Returns:
            The actions as the environment takes them, and None in place of a state.

        Raises:
            ValueError: The observations have the wrong shape, or `deterministic` is False.
            TrainingError: The agent has not been trained yet.
        """
        if not deterministic:
            raise ValueError("deterministic is False, expected True: actions are not sampled")
        return self.policy.act(observation), None

    def evaluate(self, episodes: int = 10, *, seed: int = 1) -> dict[str, Any]:
        """Runs episodes with the most probable actions.

        Args:
            episodes: Number of episodes.
            seed: Seed of the start states.

        Returns:
            The result of `iswitch eval --json`: `mean_return`, `std_return`, `min_return`, `max_return`, `mean_length`
            and others.

        Raises:
            TrainingError: The agent has not been trained yet, or the command has failed.
        """
        self._require_training()
        return self._run("eval", str(self._directory), f"--episodes={episodes}", f"--seed={seed}", "--json")

    def progress(self) -> list[dict[str, float]]:
        """Returns the metrics of the training over time.

        Returns:
            One dictionary for each report, which maps TensorBoard names to values; `step` is the number of environment
            steps. Metrics without a value are absent.

        Raises:
            TrainingError: The agent has not been trained yet.
        """
        self._require_training()
        with (self._directory / _PROGRESS).open(newline="") as file:
            return [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(file)]

    def export(self, path: str | PathLike[str], *, format: str | None = None) -> None:
        """Writes the policy to a file, replacing an existing one.

        Args:
            path: The file, or the folder for the format hub.
            format: onnx, safetensors, json or hub. By default, the extension determines the format.

        Raises:
            TrainingError: The agent has not been trained yet, or the file cannot be written.
        """
        self._require_training()
        formats = [] if format is None else [f"--format={format}"]
        self._run("export", str(self._directory), f"--out={os.fspath(path)}", "--force", "--json", *formats)

    def save(self, directory: str | PathLike[str]) -> None:
        """Copies the run directory; `load` continues the run from the copy.

        Args:
            directory: Directory that does not exist yet.

        Raises:
            TrainingError: The agent has not been trained yet.
            FileExistsError: The directory exists.
        """
        self._require_training()
        shutil.copytree(self._directory, directory)

    def _require_training(self) -> None:
        if self._steps == 0:
            raise TrainingError("the agent has not been trained yet; call learn first")

    def _run(self, *arguments: str, is_shown: bool = False) -> dict[str, Any]:
        """Runs a command of iswitch, and returns the JSON object that it prints last."""
        # The command has a separate process group, so it receives only the interrupt that is forwarded to it.
        process = subprocess.Popen(
            [self._program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if is_shown else subprocess.PIPE,
            text=True,
            process_group=0,
        )
        try:
            output, errors = process.communicate()
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise
        if process.returncode != 0:
            lines = (errors or "").strip().splitlines()
            message = lines[-1].removeprefix("iswitch: ") if lines else f"exit status {process.returncode}"
            raise TrainingError(f"iswitch {arguments[0]}: {message}")
        return json.loads(output.splitlines()[-1])


class PPO(Algorithm):
    """Proximal policy optimisation."""

    name = "ppo"


class A2C(Algorithm):
    """Advantage actor-critic."""

    name = "a2c"


class DQN(Algorithm):
    """Deep Q-learning, for discrete actions."""

    name = "dqn"


class DDPG(Algorithm):
    """Deep deterministic policy gradient, for continuous actions."""

    name = "ddpg"


class TD3(Algorithm):
    """Twin delayed DDPG, for continuous actions."""

    name = "td3"


class SAC(Algorithm):
    """Soft actor-critic with an automatic temperature, for continuous actions."""

    name = "sac"


_ALGORITHMS: dict[str, type[Algorithm]] = {kind.name: kind for kind in (PPO, A2C, DQN, DDPG, TD3, SAC)}


def load(directory: str | PathLike[str]) -> Algorithm:
    """Opens a run directory that `iswitch train` or `Algorithm.save` has written. Further training continues that run.

    Args:
        directory: Directory of the run.

    Returns:
        The agent.

    Raises:
        OSError: The configuration of the run cannot be read.
        ValueError: The directory does not contain a run.
    """
    path = Path(directory) / _CONFIG
    config = tomllib.loads(path.read_text())
    try:
        model = _ALGORITHMS[config["algorithm"]](config["env"], workers=config["workers"], directory=directory)
    except KeyError as error:
        raise ValueError(f"{path} is not the configuration of a run: {error} is missing or unknown") from error
    with (model.directory / _PROGRESS).open(newline="") as file:
        model._steps = max((int(row["step"]) for row in csv.DictReader(file)), default=0)
    return model
