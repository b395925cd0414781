"""Base class of the environments."""

from typing import Any, TypeAlias

import gymnasium
import numpy as np
from numpy.typing import NDArray

from iswitch._studies import Simulator

# Number of draws from which a reset without a seed chooses.
DRAWS = 2**31

Rows: TypeAlias = NDArray[np.float32]


class StudyEnv(gymnasium.Env[Rows, np.int64]):
    """Simulator of a study as an environment: base class of the environments in this module.

    An observation has the shape [candidates, features] and the type float32. The first feature of a row is 1 if the row
    is a valid candidate of the current decision; all other rows contain only zeros. An action is the index of a valid
    row. `info` has these keys:

    - `action_mask`: array of int8, 1 for each valid row
    - `draw`: number of the draw for the episode, which determines all random inputs of the simulation
    - `invalid_action`: whether the last action was not valid and was therefore replaced
    - `results`: metrics of the episode, only after its last step

    `reset(seed=N)` begins draw N, the same that the `iswitch` commands call draw N. A reset without a seed begins a
    random draw. `reset(options={"draw": N})` begins draw N without seeding the random choice of later draws. With the
    same draw and the same actions, an episode is reproduced bit for bit.

    Attributes:
        feature_names: Names of the features, in the order of the columns of an observation.
    """

    feature_names: tuple[str, ...]

    def __init__(self, simulator: Simulator, invalid: str) -> None:
        if invalid not in ("replace", "error"):
            raise ValueError(f"invalid is {invalid!r}, expected 'replace' or 'error'")
        self._simulator = simulator
        self._replaces = invalid == "replace"
        self.feature_names = tuple(simulator.features)
        self._shape = (simulator.candidates, len(self.feature_names))
        low, high = simulator.bounds
        self.observation_space = gymnasium.spaces.Box(low, high, self._shape, np.float32)
        self.action_space = gymnasium.spaces.Discrete(simulator.candidates)
        self._mask = np.zeros(simulator.candidates, np.int8)
        self._draw = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Rows, dict[str, Any]]:
        """Begins an episode and returns its first observation and `info`.

        Args:
            seed: Number of the draw, at least 0. It also seeds the random choice of the draws in later resets without a
                seed.
            options: `{"draw": N}` begins draw N, regardless of `seed`.

        Raises:
            ValueError: If an option is not valid, or if the draw involves no decision.
        """
        super().reset(seed=seed)
        draw = int(self.np_random.integers(DRAWS)) if seed is None else seed
        for name, value in (options or {}).items():
            if name != "draw" or not isinstance(value, int | np.integer) or value < 0:
                raise ValueError(f"options[{name!r}] is {value!r}, expected {{'draw': N}} with N >= 0")
            draw = int(value)
        rows, mask = self._simulator.reset(draw)
        self._draw = draw
        return self._observe(rows, mask), self._info(False)

    def step(self, action: np.int64 | int) -> tuple[Rows, float, bool, bool, dict[str, Any]]:
        """Chooses a candidate and simulates until the next decision.

        Returns the observation, the reward, whether all work is done (terminated), whether a time limit ended the
        simulation (truncated), and `info`.

        Raises:
            ValueError: If the action is not valid and the environment was made with `invalid="error"`, or if no episode
                is running.
        """
        if not 0 <= action < self._shape[0]:
            raise ValueError(f"action is {action}, expected 0 to {self._shape[0] - 1}")
        (rows, mask), reward, terminated, truncated, replaced = self._simulator.step(int(action), self._replaces)
        observation, info = self._observe(rows, mask), self._info(replaced)
        if terminated or truncated:
            info["results"] = self._simulator.results()
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns whether each row is a valid candidate, as MaskablePPO of sb3-contrib requires."""
        return self._mask.astype(np.bool_)

    def candidates(self) -> list[dict[str, float] | None]:
        """Returns the exact values of each candidate in their units, or None for a row that is not valid."""
        return self._simulator.details()

    def rule_action(self, rule: str) -> int:
        """Returns the action of a rule of the study in the current state.

        If the actions that it returns are taken at every decision of an episode, the results equal those of `run_rule`.

        Args:
            rule: Name of the rule, as on the command line of the study.

        Raises:
            ValueError: If no rule has this name, if the rule makes a different kind of decision than the environment,
                or if no episode is running.
        """
        return self._simulator.rule_choice(rule)

    def run_rule(self, rule: str) -> dict[str, float]:
        """Runs a rule of the study in the simulator, on the draw of the current episode, and returns its results.

        The episode itself does not change.

        Args:
            rule: Name of any rule of the study, as on its command line.

        Raises:
            ValueError: If no rule has this name, or if no episode has begun.
        """
        return self._simulator.run_rule(rule)

    def _observe(self, rows: bytearray, mask: bytearray) -> Rows:
        self._mask = np.frombuffer(mask, np.int8)
        return np.frombuffer(rows, np.float32).reshape(self._shape)

    def _info(self, replaced: bool) -> dict[str, Any]:
        return {"action_mask": self._mask, "draw": self._draw, "invalid_action": replaced}


def check_counts(**counts: int | None) -> None:
    """Checks that integer arguments are not negative.

    Raises:
        ValueError: If an argument is negative.
    """
    for name, value in counts.items():
        if value is not None and value < 0:
            raise ValueError(f"{name} is {value}, expected at least 0")
