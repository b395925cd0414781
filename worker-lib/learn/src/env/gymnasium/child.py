"""Child process that makes environments and steps them on request. message.rs defines the message format.

The process runs this file, then envpool.py, then main().
"""

import ctypes.util
import faulthandler
import importlib
import math
import os
import re
import signal
import struct
import sys
import time
import traceback

VERSION = 3
MAKE, RESET, STEP, REPLAY, RENDER = 1, 2, 3, 4, 5
MADE, OBSERVED, REPLAYED, ALIVE, REFUSED, RAISED, RENDERED = 1, 2, 3, 4, 5, 6, 7
MISSING, UNSUPPORTED, UNKNOWN = 1, 2, 3
TERMINATED, TRUNCATED, LIFE_LOST = 1, 2, 4
FLOATS, IMAGE = 0, 1
DISCRETE, CONTINUOUS = 0, 1

# As in Mnih et al. (2015): each action is repeated for four frames, and the agent sees the last four of the frames that
# remain after skipping.
FRAME_SKIP = 4
FRAME_STACK = 4
SCREEN_SIZE = 84
NOOPS_MAX = 30
# Images per second of an environment that does not specify a frame rate.
DEFAULT_FPS = 30.0
# Interval between the messages that report that a long request is still being processed, in seconds.
ALIVE_INTERVAL_S = 1.0
PACKAGES = "'gymnasium[atari]' ale-py opencv-python-headless"


class Refusal(Exception):
    """The environments cannot be made; the message gives the reason and says what to install."""

    def __init__(self, kind, text):
        super().__init__(" ".join(str(text).split()))
        self.kind = kind


def install(packages=PACKAGES):
    return f"install: {sys.executable} -m pip install {packages}"


class Pipe:
    """Pipe for messages to and from the parent process. Each message is its length, followed by that many bytes."""

    def __init__(self):
        self.requests = os.fdopen(os.dup(0), "rb", 1 << 16)
        self.answers = os.fdopen(os.dup(1), "wb", 1 << 16)
        self.last_sent_s = time.monotonic()
        # Output printed by an environment must not mix with the messages.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)

    def receive(self):
        head = self.requests.read(4)
        if len(head) < 4:
            return None
        (length,) = struct.unpack("<I", head)
        body = self.requests.read(length)
        return body if len(body) == length else None

    def send(self, kind, *parts):
        body = b"".join(parts)
        self.answers.write(struct.pack("<IB", 1 + len(body), kind))
        self.answers.write(body)
        self.answers.flush()
        self.last_sent_s = time.monotonic()

    def keep_alive(self):
        if time.monotonic() - self.last_sent_s > ALIVE_INTERVAL_S:
            self.send(ALIVE)


def find(gym, name):
    """Returns the specification of a registered environment."""
    module, _, name = name.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise Refusal(MISSING, f"{sys.executable} cannot import {module} ({error}); install its package") from error
    try:
        return gym.spec(name)
    except gym.error.Error as unknown:
        problem = unknown
    try:
        import ale_py
    except ImportError as error:
        if name.startswith("ALE/") or re.search("(NoFrameskip|Deterministic)-v", name):
            raise Refusal(MISSING, f"the Atari games require ale-py ({error}); {install()}") from error
        raise Refusal(UNKNOWN, f"{problem} (Atari games require ale-py; {install()})") from error
    getattr(gym, "register_envs", lambda _: None)(ale_py)
    try:
        return gym.spec(name)
    except gym.error.Error as error:
        raise Refusal(UNKNOWN, error) from error


def make_atari(gym, spec, kwargs):
    """Makes an Atari environment: the game advances one frame per step, and the usual preprocessing is applied."""
    try:
        import cv2
    except ImportError as error:
        raise Refusal(MISSING, f"the Atari games require OpenCV ({error}); {install()}") from error
    cv2.setNumThreads(1)
    # The wrapper reads the grey screen from the emulator; computing colours would be wasted work.
    env = gym.make(spec, frameskip=1, obs_type="grayscale", disable_env_checker=True, **kwargs)
    if not spec.kwargs.get("repeat_action_probability", 0.25):
        load_once(env.unwrapped)
    return gym.wrappers.AtariPreprocessing(env, NOOPS_MAX, FRAME_SKIP, SCREEN_SIZE)


def make_plain(gym, spec, kwargs):
    return gym.make(spec, disable_env_checker=True, **kwargs)


def load_once(game):
    """Makes each seeding restore a saved state instead of loading the game's file again, which is 20 times as fast.

    If actions are not repeated at random, the emulator draws no random numbers, so its state after loading is always
    the same.
    """
    loaded = game.ale.cloneSystemState()
    game.load_game = lambda: game.ale.restoreSystemState(loaded)


class Described:
    """Spaces and limits of an environment, with the encoding of its observations and actions."""

    def __init__(self):
        # Not imported at the top: NumPy may be missing if Gymnasium is, and the error should then name Gymnasium.
        import numpy

        self.numpy = numpy

    def describe_observations(self, gym, space):
        kind = getattr(getattr(space, "dtype", None), "kind", "")
        if not isinstance(space, gym.spaces.Box) or kind not in "fiub":
            raise Refusal(UNSUPPORTED, f"observation space {space} is not supported, expected a Box of numbers")
        self.is_image = space.dtype == "uint8" and len(space.shape) in (2, 3)
        if self.is_image:
            self.shape = (*space.shape, 1)[:3]
            self.dtype = "u1"
        else:
            self.shape = (1, 1, math.prod(space.shape))
            self.dtype = "<f4"

    def describe_actions(self, gym, space):
        if isinstance(space, gym.spaces.Discrete):
            self.choices, self.start = int(space.n), int(space.start)
            self.action_bytes = 4
        elif isinstance(space, gym.spaces.Box) and space.dtype.kind == "f":
            self.choices = None
            self.low, self.high = (bound.astype("<f4").ravel() for bound in (space.low, space.high))
            self.action_bytes = 4 * len(self.low)
        else:
            raise Refusal(UNSUPPORTED, f"action space {space} is not supported, expected Discrete or a Box of floats")

    def description(self):
        head = struct.pack("<B4I", IMAGE if self.is_image else FLOATS, *self.shape, self.stack)
        if self.choices is not None:
            action = struct.pack("<BIq", DISCRETE, self.choices, self.start)
        else:
            bounds = self.low.tobytes() + self.high.tobytes()
            action = struct.pack("<BI", CONTINUOUS, len(self.low)) + bounds
        return head + action + struct.pack("<Id", self.steps_max, self.solved_return)

    def bytes_of(self, observation):
        return self.numpy.asarray(observation, dtype=self.dtype).tobytes()


class Environment(Described):
    """One Gymnasium environment."""

    def __init__(self, gym, spec, kwargs):
        super().__init__()
        entry = spec.entry_point if isinstance(spec.entry_point, str) else ""
        self.is_atari = entry.startswith("ale_py") and spec.kwargs.get("obs_type", "rgb") != "ram"
        self.is_atari = self.is_atari and not spec.kwargs.get("continuous", False)
        make_env = make_atari if self.is_atari else make_plain
        self.env = make_env(gym, spec, kwargs)
        self.stack = FRAME_STACK if self.is_atari else 1
        self.describe_observations(gym, self.env.observation_space)
        self.describe_actions(gym, self.env.action_space)
        self.steps_max = spec.max_episode_steps or 0
        if self.is_atari and not self.steps_max:
            self.steps_max = (spec.kwargs.get("max_num_frames_per_episode") or 0) // FRAME_SKIP
        self.solved_return = float("nan" if spec.reward_threshold is None else spec.reward_threshold)
        self.fire = self.find_fire()
        self.lives = 0

    def find_fire(self):
        """Returns the FIRE action, which some games require to start, or None."""
        if not self.is_atari:
            return None
        meanings = self.env.unwrapped.get_action_meanings()
        return meanings.index("FIRE") if "FIRE" in meanings else None

    def reset(self, seed):
        observation, _ = self.env.reset(seed=seed)
        if self.fire is not None:
            observation, _, terminated, truncated, _ = self.env.step(self.fire)
            if terminated or truncated:
                observation, _ = self.env.reset(seed=seed)
        if self.is_atari:
            self.lives = self.env.unwrapped.ale.lives()
        return self.bytes_of(observation)

    def action(self, data, offset):
        if self.choices is not None:
            return self.start + struct.unpack_from("<I", data, offset)[0]
        space = self.env.action_space
        flat = self.numpy.frombuffer(data, "<f4", len(self.low), offset)
        return flat.astype(space.dtype).reshape(space.shape)

    def step(self, data, offset):
        """Steps with the action at `offset` in `data`; returns the reward, the flags and the observation."""
        observation, reward, terminated, truncated, _ = self.env.step(self.action(data, offset))
        flags = TERMINATED * bool(terminated) | TRUNCATED * bool(truncated)
        if self.is_atari:
            lives = self.env.unwrapped.ale.lives()
            flags |= LIFE_LOST * (lives < self.lives)
            self.lives = lives
        return float(reward), flags, self.bytes_of(observation)

    def render(self):
        """Returns the number of images per second, and an image of the current state."""
        frame = self.numpy.asarray(self.env.render())
        if frame.dtype != "uint8" or frame.ndim != 3 or frame.shape[2] != 3 or not frame.size:
            raise Refusal(UNSUPPORTED, f"its image is a {frame.shape} array of {frame.dtype}, expected rows of RGB bytes")
        return float(self.env.metadata.get("render_fps") or DEFAULT_FPS), frame


def select_opengl():
    """Selects an off-screen library for MuJoCo, unless there is a display or the user has selected a library."""
    if "MUJOCO_GL" in os.environ or "DISPLAY" in os.environ:
        return
    installed = (name for name in ("EGL", "OSMesa") if ctypes.util.find_library(name))
    if name := next(installed, None):
        os.environ["MUJOCO_GL"] = name.lower()


def make(request):
    """Makes the environments that the first request describes."""
    version, count, renders, envpool_threads = struct.unpack_from("<4I", request, 1)
    if version != VERSION:
        raise Refusal(UNSUPPORTED, f"protocol version is {version}, expected {VERSION}")
    if envpool_threads:
        return make_envpool(request[17:].decode(), count, envpool_threads, renders)
    try:
        import gymnasium as gym
    except ImportError as error:
        text = f"{sys.executable} cannot import gymnasium ({error}); {install()}, or set ISWITCH_PYTHON to another"
        raise Refusal(MISSING, text) from error
    spec = find(gym, request[17:].decode())
    try:
        # The parameter is passed only for rendering, because environments need not accept it.
        kwargs = {"render_mode": "rgb_array"} if renders else {}
        if renders:
            select_opengl()
        return Vector([Environment(gym, spec, kwargs) for _ in range(count)])
    except gym.error.DependencyNotInstalled as error:
        # The message names the package and says how to install it.
        raise Refusal(MISSING, error) from error
    except ImportError as error:
        raise Refusal(MISSING, f"{error}; {install(error.name or PACKAGES)}") from error


class Vector:
    """Gymnasium environments, which are stepped one after the other."""

    def __init__(self, envs):
        self.envs = envs

    def description(self):
        return self.envs[0].description()

    def reset(self, index, seed):
        return self.envs[index].reset(seed)

    def step(self, pipe, request):
        (count,) = struct.unpack_from("<I", request, 1)
        parts, offset = [struct.pack("<I", count)], 5
        for _ in range(count):
            env = self.envs[struct.unpack_from("<I", request, offset)[0]]
            reward, flags, observation = env.step(request, offset + 4)
            parts += (struct.pack("<dB", reward, flags), observation)
            offset += 4 + env.action_bytes
            pipe.keep_alive()
        pipe.send(OBSERVED, *parts)

    def replay(self, pipe, request):
        """Starts an episode and replays its actions; responds with the observations that the current stack contains."""
        index, seed, count = struct.unpack_from("<3I", request, 1)
        env, ended = self.envs[index], False
        frames = [env.reset(seed)]
        for i in range(count):
            _, flags, observation = env.step(request, 13 + i * env.action_bytes)
            frames = [*frames, observation][-env.stack :]
            ended = bool(flags & (TERMINATED | TRUNCATED))
            if ended:
                break
            pipe.keep_alive()
        pipe.send(REPLAYED, struct.pack("<BI", ended, len(frames)), *frames)

    def render(self, pipe, index):
        env = self.envs[index]
        try:
            rate, frame = env.render()
        except Refusal as refusal:
            pipe.send(REFUSED, struct.pack("<B", refusal.kind), str(refusal).encode())
        except Exception as error:
            text = describe(error)
            if "mujoco" in type(env.env.unwrapped).__module__:
                text += "; MuJoCo renders with OpenGL: install libegl1 or libosmesa6 (MUJOCO_GL=egl or osmesa selects one)"
            pipe.send(REFUSED, struct.pack("<B", UNSUPPORTED), text.encode())
        else:
            pipe.send(RENDERED, struct.pack("<dII", rate, *frame.shape[:2]), frame.tobytes())


def serve(pipe, vector):
    while (request := pipe.receive()) is not None:
        kind = request[0]
        if kind == STEP:
            vector.step(pipe, request)
        elif kind == RESET:
            index, seed = struct.unpack_from("<II", request, 1)
            pipe.send(OBSERVED, struct.pack("<IdB", 1, 0.0, 0), vector.reset(index, seed))
        elif kind == REPLAY:
            vector.replay(pipe, request)
        elif kind == RENDER:
            vector.render(pipe, struct.unpack_from("<I", request, 1)[0])
        else:
            raise ValueError(f"request of unknown kind {kind}")


def describe(error):
    """Returns one line that describes an exception and the location at which it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = "".join(traceback.format_exception_only(type(error), error))
    text = f"{text} ({place.filename}, line {place.lineno}, in {place.name})"
    return " ".join(text.split())


def main():
    faulthandler.enable()
    # Ctrl-C reaches the whole process group; this process exits when the parent process closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = Pipe()
    request = pipe.receive()
    if request is None:
        return
    try:
        vector = make(request)
    except Refusal as refusal:
        pipe.send(REFUSED, struct.pack("<B", refusal.kind), str(refusal).encode())
        return
    pipe.send(MADE, struct.pack("<I", VERSION), vector.description())
    try:
        serve(pipe, vector)
    except BrokenPipeError:
        os._exit(0)
    except Exception as error:
        pipe.send(RAISED, describe(error).encode())
