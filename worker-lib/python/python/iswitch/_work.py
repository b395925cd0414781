"""Handles of collectives that forward to another handle."""

import torch
import torch.distributed as dist


class ForwardedWork(dist._Work):
    """Handle that forwards all calls to another handle; subclasses override some of them.

    Args:
        work: The other handle.
    """

    def __init__(self, work: dist.Work) -> None:
        super().__init__()
        self._work = work

    def is_completed(self) -> bool:
        return self._work.is_completed()

    def is_success(self) -> bool:
        return self._work.is_success()

    def exception(self) -> BaseException | None:
        return self._work.exception()

    def source_rank(self) -> int:
        return self._work._source_rank()

    def _source_rank(self) -> int:
        return self._work._source_rank()

    def get_future(self) -> torch.futures.Future:
        return self._work.get_future()

    def result(self) -> list[torch.Tensor]:
        return self._work.result()
