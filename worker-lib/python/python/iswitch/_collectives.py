"""Collectives that the switch performs as one sum, besides the plain all-reduce.

The switch only sums. Each class therefore describes one collective by the vector that a rank contributes (`host`) and by
what the rank does with the sum (`finish`). All tensors are in CPU memory.

A broadcast and an all-gather could be sums too, in which the other ranks contribute zeros. The switch was not faster than
Gloo at either, for any size (docs/results/python.md).
"""

from collections.abc import Sequence

import torch

from iswitch._staging import Staged

# Largest sums, in floats, for which the switch was measured to be faster than Gloo (docs/results/python.md).
MAX_REDUCE_FLOATS = 10_000
MAX_REDUCE_SCATTER_FLOATS = 40_000


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

    A barrier of Gloo would not wait for the sums that the switch has not completed.

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


def may_reduce(tensor: torch.Tensor) -> bool:
    """Returns whether the switch performs a reduce of tensors like this one."""
    return are_alike([tensor]) and tensor.numel() <= MAX_REDUCE_FLOATS


def may_reduce_scatter(output: torch.Tensor, inputs: Sequence[torch.Tensor], world_size: int) -> bool:
    """Returns whether the switch performs a reduce-scatter of tensors like these."""
    if len(inputs) != world_size or output.numel() * world_size > MAX_REDUCE_SCATTER_FLOATS:
        return False
    return are_alike([output, *inputs]) and all(tensor.numel() == output.numel() for tensor in inputs)


def are_alike(tensors: Sequence[torch.Tensor]) -> bool:
    """Returns whether all tensors are dense, in CPU memory, not empty and of one type."""
    return len({tensor.dtype for tensor in tensors}) == 1 and all(
        tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.numel() > 0 for tensor in tensors
    )
