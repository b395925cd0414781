"""In-network gradient aggregation: the switch between the workers of a job sums their arrays.

>>> with iswitch.Worker("10.9.0.254:7711", rank=0, world_size=4) as worker:
...     worker.all_reduce_(gradients)    # any contiguous float32 array: NumPy, PyTorch on the CPU, array.array

`iswitch.torch` provides a backend for `torch.distributed` and a communication hook for DistributedDataParallel.
`iswitch.policy` loads policies that `iswitch train` has trained.
"""

from iswitch._iswitch import Worker, __version__
from iswitch.errors import (
    AbortedError,
    ClosedError,
    Error,
    ExpelledError,
    HaltedError,
    NonFiniteError,
    RefusedError,
    SwitchLostError,
    TimedOutError,
    UnfinishedError,
    WorkersLostError,
    WorkersMissingError,
)

__all__ = [
    "AbortedError",
    "ClosedError",
    "Error",
    "ExpelledError",
    "HaltedError",
    "NonFiniteError",
    "RefusedError",
    "SwitchLostError",
    "TimedOutError",
    "UnfinishedError",
    "Worker",
    "WorkersLostError",
    "WorkersMissingError",
    "__version__",
]
