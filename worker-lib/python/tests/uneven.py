"""Environments of test_policy.py whose spaces are uneven: numbers of actions, bounds of actions, and observations."""

import gymnasium
import numpy as np
from gymnasium import spaces

EPISODE_STEPS = 20


class Pictures(gymnasium.Env):
    """Colour images that are brighter towards one side; the action names the brightest colour, from -1."""

    observation_space = spaces.Box(0, 255, (36, 40, 3), np.uint8)
    action_space = spaces.Discrete(3, start=-1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observe(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        reward = float(action + 1 == self.levels.argmax())
        return self._observe(), reward, False, False, {}

    def _observe(self):
        height, width, _ = self.observation_space.shape
        self.levels = self.np_random.uniform(0.0, 255.0, 3)
        shade = np.linspace(0.0, 1.0, height)[:, np.newaxis] * np.linspace(0.5, 1.0, width)
        return (shade[:, :, np.newaxis] * self.levels).astype(np.uint8)


class Bounds(gymnasium.Env):
    """Observations with very different means and deviations; actions with different bounds, one dimension without."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = spaces.Box(
        np.array([-3.0, 0.0, -np.inf], dtype=np.float32), np.array([1.0, 5.0, np.inf], dtype=np.float32)
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observe(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        return self._observe(), -float(np.square(action).sum()), False, False, {}

    def _observe(self):
        return np.array([1000.0, 0.0, -5.0]) + self.np_random.normal(0.0, [0.01, 1.0, 100.0])


for kind in (Pictures, Bounds):
    gymnasium.register(f"{kind.__name__}-v0", f"uneven:{kind.__name__}", max_episode_steps=EPISODE_STEPS)
