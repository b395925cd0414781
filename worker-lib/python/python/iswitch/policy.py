"""Trained policies: loads the files that `iswitch export` writes, and runs the policies with NumPy alone.

>>> policy = load_policy("policy.safetensors")
>>> action = policy.act(observation)
"""

import json
import math
import struct
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

__all__ = ["Policy", "load_policy"]

Array = NDArray[Any]
# Versions of the policy description; recurrent policies use the second.
_FORMATS = ("iswitch-policy-1", "iswitch-policy-2")
# Prefix of `format` in the metadata of a checkpoint, which lacks the action space of the environment.
_CHECKPOINT = "iswitch-"
# File of a policy in a folder for the Hugging Face Hub.
_HUB_FILE = "model.safetensors"
_DTYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}
# Size of the length field at the start of a safetensors file, in bytes.
_HEADER_START = 8


class Policy:
    """Deterministic policy of a trained agent, as `load_policy` returns it.

    It acts as `iswitch eval` does: observations are normalised as in training, and the most probable action is taken.

    Args:
        config: Description of the policy.
        tensors: Tensors of the policy by name, as in a safetensors file that `iswitch export` has written.
    """

    def __init__(self, config: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> None:
        self._config = config
        self._tensors = tensors
        self._shape = tuple(config["observation"]["shape"])
        self._is_discrete = config["action"]["type"] == "discrete"

    @property
    def config(self) -> dict[str, Any]:
        """Description of the policy.

        Its entries are `algorithm`, `env`, `steps` (environment steps of the training), `mean_return` (of the last 100
        training episodes, or None), `hyper_parameters`, `observation`, `layers`, `action` and, if the policy is
        recurrent, `memory`, as `docs/guide/export.md` describes them.
        """
        return self._config

    def __repr__(self) -> str:
        return f"Policy({self.config['algorithm']} for {self.config['env']}, observations of shape {self._shape})"

    @property
    def is_recurrent(self) -> bool:
        """Whether actions also depend on earlier observations in an episode; `step` then takes and returns a state."""
        return "memory" in self._config

    def step(self, observations: ArrayLike, state: NDArray[Any] | None = None) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Returns the actions for one observation or a batch of observations, and the state for the next ones.

        >>> state = None
        >>> while not done:
        ...     action, state = policy.step(observation, state)

        Args:
            observations: Observations, as for `act`.
            state: State that this method returned for the preceding observations of the same episodes, or None at the
                start of episodes. If only some of the episodes begin with this call, set the rows of these episodes to zero.

        Returns:
            Actions, as `act` returns them, and the state: None if the policy is not recurrent, otherwise float32 values
            of the shape [state] or [batch, state]. The caller may copy and change it.

        Raises:
            ValueError: The observations or the state have the wrong shape.
        """
        batch, is_single = self._batch(observations)
        outputs, after = self._outputs(batch, self._state(state, batch, is_single))
        actions = self._actions(outputs)
        if not is_single:
            return actions, after
        return actions[0], None if after is None else after[0]

    def act(self, observations: ArrayLike) -> NDArray[Any]:
        """Returns the actions for one observation or a batch of observations.

        Args:
            observations: Observations as the environment returns them, with the shape in `config["observation"]` or
                with an additional first dimension for the batch. Images have the shape [channels, height, width] and
                values from 0 to 255.

        Returns:
            Actions as the environment takes them: for discrete actions, int64 action numbers of the shape [] or
            [batch]; for continuous actions, float32 values of the shape [dim] or [batch, dim].

        Raises:
            ValueError: The observations have the wrong shape, or the policy is recurrent: its actions depend on a
                state, which `step` takes and returns.
        """
        if self.is_recurrent:
            raise ValueError(f"{self!r} is recurrent, and its state would be lost; expected step(observations, state)")
        return self.step(observations)[0]

    def scores(self, observations: ArrayLike, state: NDArray[Any] | None = None) -> NDArray[Any]:
        """Returns the scores of all actions: the values of a DQN policy, otherwise the logits.

        Args:
            observations: Observations, as for `act`.
            state: State of a recurrent policy before the observations, as for `step`.

        Returns:
            Float32 scores of the shape [n] or [batch, n] for n actions.

        Raises:
            ValueError: The observations or the state have the wrong shape, or the actions are continuous.
        """
        if not self._is_discrete:
            raise ValueError(f"{self.config['env']} has continuous actions, which have no scores; expected discrete ones")
        batch, is_single = self._batch(observations)
        outputs, _ = self._outputs(batch, self._state(state, batch, is_single))
        return outputs[0] if is_single else outputs

    def _actions(self, outputs: Array) -> Array:
        if self._is_discrete:
            return outputs.argmax(axis=1) + self.config["action"]["start"]
        scale, offset, low, high = (self._tensors[f"action.{name}"] for name in ("scale", "offset", "low", "high"))
        return np.clip(outputs * scale + offset, low, high)

    def _state(self, state: NDArray[Any] | None, batch: Array, is_single: bool) -> Array | None:
        if not self.is_recurrent:
            if state is not None:
                raise ValueError(f"the state is an array, expected None: {self!r} is not recurrent")
            return None
        memory = self.config["memory"]
        size = memory["width"] * (2 if memory["type"] == "lstm" else 1)
        if state is None:
            return np.zeros((len(batch), size), dtype=np.float32)
        array = np.asarray(state, dtype=np.float32)
        expected = (size,) if is_single else (len(batch), size)
        if array.shape != expected:
            raise ValueError(f"the state has the shape {array.shape}, expected {expected}")
        return array.reshape(len(batch), size)

    def _batch(self, observations: ArrayLike) -> tuple[Array, bool]:
        array = np.asarray(observations, dtype=np.float32)
        if array.shape == self._shape:
            return array[np.newaxis], True
        if array.shape[1:] == self._shape and array.ndim == len(self._shape) + 1:
            return array, False
        raise ValueError(f"the observations have the shape {array.shape}, expected {self._shape} or (batch, *{self._shape})")

    def _outputs(self, batch: Array, state: Array | None) -> tuple[Array, Array | None]:
        x = self._preprocess(batch)
        if state is not None:
            state = self._remember(x, state)
            # The output is the first part of the state.
            x = state[:, : self.config["memory"]["width"]]
        features = self._sequence("layers", x)
        if "value" not in self.config:
            return features, state
        value, advantages = (self._sequence(name, features) for name in ("value", "advantage"))
        return value + advantages - advantages.mean(axis=1, keepdims=True), state

    def _remember(self, x: Array, state: Array) -> Array:
        """Returns the state of the recurrent layer after a batch of inputs."""
        weight_ih, weight_hh, bias_ih, bias_hh = (
            self._tensors[f"memory.{name}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        width = self.config["memory"]["width"]
        output = state[:, :width]
        by_input, by_output = x @ weight_ih.T + bias_ih, output @ weight_hh.T + bias_hh
        match self.config["memory"]["type"]:
            case "lstm":
                gate, forget, candidate, out = np.split(by_input + by_output, 4, axis=1)
                cells = _sigmoid(forget) * state[:, width:] + _sigmoid(gate) * np.tanh(candidate)
                return np.concatenate([_sigmoid(out) * np.tanh(cells), cells], axis=1)
            case "gru":
                inputs, outputs = np.split(by_input, 3, axis=1), np.split(by_output, 3, axis=1)
                reset, update = (_sigmoid(inputs[i] + outputs[i]) for i in (0, 1))
                candidate = np.tanh(inputs[2] + reset * outputs[2])
                return candidate + update * (output - candidate)
            case other:
                raise ValueError(f"the policy has a memory of the unknown type {other!r}")

    def _preprocess(self, batch: Array) -> Array:
        steps = self.config["observation"]["preprocessing"]
        if steps["type"] == "divide":
            return batch / np.float32(steps["by"])
        if steps["type"] == "normalise":
            normalised = (batch - self._tensors["observation.mean"]) / self._tensors["observation.std"]
            return normalised.clip(-steps["limit"], steps["limit"]).astype(np.float32)
        return batch

    def _sequence(self, name: str, x: Array) -> Array:
        for i, layer in enumerate(self.config[name]):
            weight, bias = (self._tensors.get(f"{name}.{i}.{kind}") for kind in ("weight", "bias"))
            x = _apply(layer, weight, bias, x)
        return x


def _sigmoid(x: Array) -> Array:
    return np.float32(0.5) + np.float32(0.5) * np.tanh(np.float32(0.5) * x)


def _apply(layer: dict[str, Any], weight: Any, bias: Any, x: Array) -> Array:
    """Returns the outputs of a layer for a batch."""
    match layer["type"]:
        case "linear":
            return x @ weight.T + bias
        case "conv2d":
            kernel, stride = layer["kernel"], layer["stride"]
            # [batch, channels, height, width, kernel, kernel]
            windows = sliding_window_view(x, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
            return np.moveaxis(np.tensordot(windows, weight, axes=((1, 4, 5), (1, 2, 3))) + bias, 3, 1)
        case "layer_norm":
            centred = x - x.mean(axis=1, keepdims=True)
            variance = np.square(centred).mean(axis=1, keepdims=True)
            return centred / np.sqrt(variance + np.float32(layer["epsilon"])) * weight + bias
        case "tanh":
            return np.tanh(x)
        case "relu":
            return np.maximum(x, 0)
        case "flatten":
            return x.reshape(len(x), -1)
        case other:
            raise ValueError(f"the policy has a layer of the unknown type {other!r}")


def load_policy(path: str | PathLike[str]) -> Policy:
    """Loads a policy that `iswitch export` has written.

    Args:
        path: File in the format safetensors or json, or folder in the format hub.

    Returns:
        The policy.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is damaged, or is not an exported policy.
    """
    file = Path(path)
    if file.is_dir():
        file = file / _HUB_FILE
    content = file.read_bytes()
    try:
        config, tensors = _parse_json(content) if content[:1] == b"{" else _parse_safetensors(content)
        if config.get("format") not in _FORMATS:
            raise ValueError(f"its format is {config.get('format')!r}, expected {' or '.join(map(repr, _FORMATS))}")
        policy = Policy(config, tensors)
        # Fails if a tensor is missing or has the wrong shape.
        policy.step(np.zeros(config["observation"]["shape"]))
        return policy
    except (ValueError, KeyError, TypeError, IndexError, struct.error) as error:
        raise ValueError(f"{file} is not a policy that `iswitch export` has written: {error}") from error


def _parse_safetensors(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[_HEADER_START : _HEADER_START + length])
    metadata = header.pop("__metadata__", {})
    if metadata.get("format", "").startswith(_CHECKPOINT):
        raise ValueError("it is a checkpoint; export it with `iswitch export RUN --out policy.safetensors`")
    if "policy" not in metadata:
        raise ValueError("it has no description of a policy")
    tensors = {name: _tensor(content, _HEADER_START + length, entry) for name, entry in header.items()}
    return json.loads(metadata["policy"]), tensors


def _tensor(content: bytes, start: int, entry: dict[str, Any]) -> Array:
    count, offset = math.prod(entry["shape"]), start + entry["data_offsets"][0]
    return np.frombuffer(content, _DTYPES[entry["dtype"]], count, offset).reshape(entry["shape"])


def _parse_json(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    config = json.loads(content)
    return config, dict(_tensors_of_json(config))


def _tensors_of_json(config: dict[str, Any]) -> Iterator[tuple[str, Array]]:
    """Yields the tensors of a description, with the names that they have in safetensors files."""
    for name, values in config.get("memory", {}).items():
        if name.startswith(("weight", "bias")):
            yield f"memory.{name}", np.array(values, dtype=np.float32)
    for sequence in ("layers", "value", "advantage"):
        for i, layer in enumerate(config.get(sequence, [])):
            for kind in ("weight", "bias"):
                if kind in layer:
                    yield f"{sequence}.{i}.{kind}", np.array(layer[kind], dtype=np.float32)
    for name in ("mean", "std"):
        if name in config["observation"]["preprocessing"]:
            yield f"observation.{name}", np.array(config["observation"]["preprocessing"][name], dtype=np.float64)
    # A dimension without bounds has null as both bounds.
    for name, unbounded in (("scale", 1), ("offset", 0), ("low", -math.inf), ("high", math.inf)):
        if name in config["action"]:
            numbers = [unbounded if number is None else number for number in config["action"][name]]
            yield f"action.{name}", np.array(numbers, dtype=np.float32)
