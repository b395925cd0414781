"""Collectives that the switch performs as one sum, in addition to the plain all-reduce.

The switch only sums. Each class therefore describes one collective by the vector that a rank contributes (`contribution`)
and by what the rank does with the sum (`take`). All tensors are in CPU memory.

A broadcast and an all-gather could also be performed as sums to which the other ranks contribute zeros. The switch was
not faster than Gloo at either, for any size (docs/results/python.md).
"""

import time
from collections.abc import Callable, Sequence

import torch

from iswitch._staging import Copied

# Largest sums, in floats, for which the switch was at least as fast as Gloo when measured (docs/results/python.md). The
# sum of a reduce-scatter contains the parts of all ranks.
MAX_REDUCE_FLOATS = 10_000
MAX_REDUCE_SCATTER_FLOATS = 40_000

# Interval at which a barrier checks whether earlier collectives of another backend have completed, in seconds.
_INTERVAL_S = 0.001


class Flattened(Copied):
    """Sum of several tensors of one type, as one vector."""

    name = "allreduce_coalesced"

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        super().__init__(tensors[0])
        self._tensors = tensors

    @property
    def inputs(self) -> Sequence[torch.Tensor]:
        return self._tensors

    def contribution(self) -> torch.Tensor:
        return torch.cat([tensor.detach().reshape(-1) for tensor in self._tensors])

    def take(self, total: torch.Tensor) -> None:
        parts = total.split([tensor.numel() for tensor in self._tensors])
        for tensor, part in zip(self._tensors, parts, strict=True):
            tensor.detach().copy_(part.view(tensor.shape))


class Reduce(Copied):
    """Sum that only the root rank keeps; on the other ranks, the tensor does not change."""

    name = "reduce"

    def __init__(self, tensor: torch.Tensor, is_root: bool) -> None:
        super().__init__(tensor)
        self._is_root = is_root

    def contribution(self) -> torch.Tensor:
        return self.tensor.detach().clone(memory_format=torch.contiguous_format)

    def take(self, total: torch.Tensor) -> None:
        if self._is_root:
            self.tensor.detach().copy_(total)


class ReduceScatter(Copied):
    """Sum of one tensor for each rank; this rank keeps only the part that belongs to it.

    Args:
        output: Tensor that receives the sum of the inputs for this rank.
        inputs: One tensor for each rank, each with as many elements as `output`.
        rank: Rank of this process in the group.
    """

    name = "reduce_scatter"

    def __init__(self, output: torch.Tensor, inputs: Sequence[torch.Tensor], rank: int) -> None:
        super().__init__(output)
        self._inputs = inputs
        self._rank = rank

    @property
    def inputs(self) -> Sequence[torch.Tensor]:
        return [self.tensor, *self._inputs]

    def contribution(self) -> torch.Tensor:
        return torch.stack([tensor.detach().reshape(-1) for tensor in self._inputs])

    def take(self, total: torch.Tensor) -> None:
        self.tensor.detach().copy_(total[self._rank].view(self.tensor.shape))


class Barrier(Copied):
    """Sum of one float, which is complete when all ranks have contributed.

    A Gloo barrier would not wait for the sums that the switch has not completed.

    Args:
        pending: Futures of collectives whose end this rank awaits before it contributes. Their errors are raised where
            their results are awaited, so that the barrier can be repeated after a failure.
        check: Called repeatedly while the rank awaits them; raises an error if the rank must stop waiting.
    """

    name = "barrier"

    def __init__(self, pending: Sequence[torch.futures.Future], check: Callable[[], None]) -> None:
        super().__init__(torch.zeros(1))
        self._pending = pending
        self._check = check

    @property
    def inputs(self) -> Sequence[torch.Tensor]:
        return []

    def contribution(self) -> torch.Tensor:
        for future in self._pending:
            while not future.done():
                self._check()
                time.sleep(_INTERVAL_S)
        return self.tensor

    def take(self, total: torch.Tensor) -> None:
        pass


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
