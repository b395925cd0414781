"""Per-step fault tolerance with torchft: replicas may leave and join while the others continue to train.

Before each step, torchft's lighthouse determines which replicas take part in it. A replica that joins receives the model,
the optimizer and the step number from another one. The switch sums the gradients of these replicas:

>>> group = iswitch.torchft.ProcessGroup()
>>> manager = torchft.Manager(group, load, save, min_replica_size=1, use_async_quorum=False)
>>> model = iswitch.torchft.DistributedDataParallel(manager, module)
>>> optimizer = torchft.Optimizer(manager, torch.optim.Adam(module.parameters()))

With torchft's default, the asynchronous quorum, the first mean is too small, because its divisor counts replicas that are
still receiving the weights. This module requires torchft (`pip install torchft`).
"""

import torch
import torch.distributed as dist
import torchft
from torchft.process_group import ProcessGroupWrapper

import iswitch.torch

__all__ = ["DistributedDataParallel", "ProcessGroup"]


class ProcessGroup(ProcessGroupWrapper):
    """A torchft process group whose sums the switch computes.

    Whenever the set of replicas changes, a new inner `iswitch.torch.ProcessGroupISwitch` replaces the previous one and
    begins a new job on the switch. If the gradient of a replica is missing, the sum fails with an error, so the number
    by which torchft divides is always the number of gradients in the sum.

    Args:
        timeout: Timeout of each operation, and of the replacement (`datetime.timedelta`, 60 s if omitted).
    """

    def getBackendName(self) -> str:  # noqa: N802: PyTorch's name
        return "torchft-iswitch"

    def errored(self) -> Exception | None:
        """Returns the last error of the current group. If there is one, torchft replaces the group."""
        error = getattr(self._pg, "error", None)
        return error if isinstance(error, Exception) else None

    def shutdown(self) -> None:
        if self._pg is not None:
            self._pg.shutdown()
        super().shutdown()

    def _create_pg(self, store: dist.Store, rank: int, world_size: int) -> dist.ProcessGroup:
        return iswitch.torch.ProcessGroupISwitch(store, rank, world_size, self._timeout)


class DistributedDataParallel(torchft.DistributedDataParallel):
    """torchft's DistributedDataParallel, which also survives an error in a model with several buckets.

    After the first error in a step, torchft 0.2 skips the sums of the remaining buckets, but returns futures for these
    buckets that make its own communication hook fail.
    """

    @staticmethod
    def _comm_hook(state: torchft.Manager, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        tensor = bucket.buffer()
        # After an error, the elements are undefined, and the manager does not commit the step.
        state.allreduce(tensor).wait()
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(tensor)
        return future
