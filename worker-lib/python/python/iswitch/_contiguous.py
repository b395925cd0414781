"""Calls to Gloo with non-contiguous tensors, for which some of its collectives return wrong results."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from iswitch._work import ForwardedWork


def call(method: Callable[..., Any], *arguments: Any, writes: bool = True, **options: Any) -> Any:
    """Calls a Gloo collective with contiguous copies in place of all non-contiguous tensors.

    Args:
        method: Method of a process group.
        arguments: Arguments of the method: tensors, nested lists of tensors, and others.
        writes: Whether the method writes to the tensors of the first argument; it only reads all other tensors.
        options: Keyword arguments of the method.
    """
    copies: list[list[tuple[torch.Tensor, torch.Tensor]]] = [[] for _ in arguments]
    contiguous = [_contiguous(argument, pairs) for argument, pairs in zip(arguments, copies, strict=True)]
    work = method(*contiguous, **options)
    return _CopiesBack(work, copies[0], _tensors(arguments[0])) if writes and copies and copies[0] else work


class _CopiesBack(ForwardedWork):
    """Handle of a collective that, once awaited, copies its results into the non-contiguous tensors."""

    def __init__(
        self, work: dist.Work, copies: list[tuple[torch.Tensor, torch.Tensor]], results: list[torch.Tensor]
    ) -> None:
        super().__init__(work)
        # The Gloo thread that completes the future and a thread that waits may try to copy at the same time.
        self._lock = threading.Lock()
        self._copies = copies
        self._results = results

    def wait(self, timeout: timedelta | None = None) -> bool:
        done = self._work.wait() if timeout is None else self._work.wait(timeout)
        self._copy_back()
        return done

    def get_future(self) -> torch.futures.Future:
        return self._work.get_future().then(self._outcome)

    def result(self) -> list[torch.Tensor]:
        return self._results

    def _outcome(self, future: torch.futures.Future) -> list[torch.Tensor]:
        future.value()
        self._copy_back()
        return self._results

    def _copy_back(self) -> None:
        with self._lock:
            # A second call must not overwrite what the program has written since the first one.
            copies, self._copies = self._copies, []
            for tensor, copy in copies:
                tensor.detach().copy_(copy)


def _contiguous(argument: Any, copies: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    """Replaces non-contiguous tensors, including those in nested lists, and adds each with its copy to `copies`."""
    if isinstance(argument, (list, tuple)):
        return [_contiguous(element, copies) for element in argument]
    if not isinstance(argument, torch.Tensor) or argument.layout != torch.strided or argument.is_contiguous():
        return argument
    copy = argument.detach().contiguous()
    copies.append((argument, copy))
    return copy


def _tensors(argument: Any) -> list[torch.Tensor]:
    """Returns the tensors of nested lists in order."""
    if isinstance(argument, torch.Tensor):
        return [argument]
    return [tensor for element in argument for tensor in _tensors(element)]
