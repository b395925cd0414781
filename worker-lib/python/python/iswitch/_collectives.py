"""Collectives that the switch performs as one sum, besides the plain all-reduce.

The switch only sums. Each class therefore describes one collective by the vector that a rank contributes (`host`) and by
what the rank does with the sum (`finish`). A rank that has no data to contribute sends zeros. All tensors are on the CPU.

Bytes travel as integers below 2^24 in float32, three bytes in each float. Their sum with zeros is exact, so all bit patterns
arrive unchanged, also those of NaN, of -0.0 and of integers, and no element that is sent is NaN or infinite.
"""

from collections.abc import Sequence

import torch

from iswitch._staging import Staged

_BYTES_PER_FLOAT = 3

# Largest sums, in floats, for which the switch was measured to be faster than Gloo (docs/results/python.md).
MAX_REDUCE_FLOATS = 100_000
MAX_REDUCE_SCATTER_FLOATS = 4096
MAX_BROADCAST_FLOATS = 366
MAX_ALL_GATHER_FLOATS = 366


class Flattened(Staged):
    """Sum of several tensors of one type, as one vector."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        super().__init__(tensors[0])
        self._tensors = tensors

    def host(self) -> torch.Tensor:
        self._vector = torch.cat([tensor.detach().reshape(-1) for tensor in self._tensors])
        return self._vector

    def finish(self) -> None:
        parts = self._vector.split([tensor.numel() for tensor in self._tensors])
        for tensor, part in zip(self._tensors, parts, strict=True):
            tensor.detach().copy_(part.view(tensor.shape))


class Reduce(Staged):
    """Sum that only the root rank keeps; on the other ranks, the tensor does not change."""

    def __init__(self, tensor: torch.Tensor, is_root: bool) -> None:
        super().__init__(tensor)
        self._is_root = is_root

    def host(self) -> torch.Tensor:
        self._sum = self.tensor.detach().clone(memory_format=torch.contiguous_format)
        return self._sum

    def finish(self) -> None:
        if self._is_root:
            self.tensor.detach().copy_(self._sum)


class ReduceScatter(Staged):
    """Sum of one tensor for each rank, of which this rank keeps its own.

    Args:
        output: Tensor that receives the sum of the inputs for this rank.
        inputs: One tensor for each rank, each with as many elements as `output`.
        rank: Rank of this process in the group.
    """

    def __init__(self, output: torch.Tensor, inputs: Sequence[torch.Tensor], rank: int) -> None:
        super().__init__(output)
        self._inputs = inputs
        self._rank = rank

    def host(self) -> torch.Tensor:
        self._sum = torch.stack([tensor.detach().reshape(-1) for tensor in self._inputs])
        return self._sum

    def finish(self) -> None:
        self.tensor.detach().copy_(self._sum[self._rank].view(self.tensor.shape))


class Barrier(Staged):
    """Sum of one float, which is complete when all ranks have contributed.

    Args:
        pending: Results that this rank awaits before it contributes.
    """

    def __init__(self, pending: Sequence[torch.futures.Future]) -> None:
        super().__init__(torch.zeros(1))
        self._pending = pending

    def host(self) -> torch.Tensor:
        for future in self._pending:
            future.wait()
        return self.tensor


class Broadcast(Staged):
    """Copy of the root's tensor on all ranks: the sum of its bytes and of zeros."""

    def __init__(self, tensor: torch.Tensor, is_root: bool) -> None:
        super().__init__(tensor)
        self._is_root = is_root

    def host(self) -> torch.Tensor:
        self._vector = _zeros(self.tensor, 1)
        if self._is_root:
            self._vector[0] = _packed(self.tensor)
        return self._vector

    def finish(self) -> None:
        if not self._is_root:
            _unpack(self._vector[0], self.tensor)


class AllGather(Staged):
    """Tensors of all ranks on all ranks: the sum of vectors in which each rank fills its own row.

    Args:
        outputs: One tensor for each rank, each with the size and type of `tensor`.
        tensor: Tensor of this rank.
        rank: Rank of this process in the group.
    """

    def __init__(self, outputs: Sequence[torch.Tensor], tensor: torch.Tensor, rank: int) -> None:
        super().__init__(tensor)
        self._outputs = outputs
        self._rank = rank

    def host(self) -> torch.Tensor:
        self._rows = _zeros(self.tensor, len(self._outputs))
        self._rows[self._rank] = _packed(self.tensor)
        return self._rows

    def finish(self) -> None:
        for row, output in zip(self._rows, self._outputs, strict=True):
            _unpack(row, output)


def may_reduce(tensor: torch.Tensor) -> bool:
    """Returns whether the switch performs a reduce of tensors like this one."""
    return are_alike([tensor]) and tensor.numel() <= MAX_REDUCE_FLOATS


def may_reduce_scatter(output: torch.Tensor, inputs: Sequence[torch.Tensor], world_size: int) -> bool:
    """Returns whether the switch performs a reduce-scatter of tensors like these."""
    has_equal_sizes = all(tensor.numel() == output.numel() for tensor in inputs)
    floats = output.numel() * world_size
    return len(inputs) == world_size and are_alike([output, *inputs]) and has_equal_sizes and floats <= MAX_REDUCE_SCATTER_FLOATS


def may_broadcast(tensor: torch.Tensor) -> bool:
    """Returns whether the switch performs a broadcast of tensors like this one."""
    return are_alike([tensor]) and _packed_floats(tensor) <= MAX_BROADCAST_FLOATS


def may_all_gather(outputs: Sequence[torch.Tensor], tensor: torch.Tensor, world_size: int) -> bool:
    """Returns whether the switch performs an all-gather of tensors like these."""
    has_equal_sizes = all(output.numel() == tensor.numel() for output in outputs)
    floats = _packed_floats(tensor) * world_size
    return len(outputs) == world_size and are_alike([tensor, *outputs]) and has_equal_sizes and floats <= MAX_ALL_GATHER_FLOATS


def are_alike(tensors: Sequence[torch.Tensor]) -> bool:
    """Returns whether all tensors are dense, in CPU memory, not empty and of one type."""
    return len({tensor.dtype for tensor in tensors}) == 1 and all(
        tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.numel() > 0 for tensor in tensors
    )


def _packed_floats(tensor: torch.Tensor) -> int:
    """Returns the number of floats that carry the bytes of a tensor."""
    return -(-tensor.numel() * tensor.element_size() // _BYTES_PER_FLOAT)


def _zeros(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    return torch.zeros(rows, _packed_floats(tensor))


def _packed(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the bytes of a tensor as a vector of floats."""
    data = tensor.detach().contiguous().view(-1).view(torch.uint8)
    data = torch.nn.functional.pad(data, (0, -data.numel() % _BYTES_PER_FLOAT))
    # The fourth byte is the most significant one of an integer: Linux runs PyTorch on little-endian machines.
    integers = torch.zeros(_packed_floats(tensor), 4, dtype=torch.uint8)
    integers[:, :_BYTES_PER_FLOAT] = data.view(-1, _BYTES_PER_FLOAT)
    return integers.view(torch.int32).view(-1).to(torch.float32)


def _unpack(vector: torch.Tensor, tensor: torch.Tensor) -> None:
    """Replaces the bytes of `tensor` with those in `vector`."""
    integers = vector.to(torch.int32).view(torch.uint8).view(-1, 4)
    data = integers[:, :_BYTES_PER_FLOAT].reshape(-1)
    size = tensor.numel() * tensor.element_size()
    tensor.detach().copy_(data[:size].view(tensor.dtype).view(tensor.shape))
