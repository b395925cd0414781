"""Staging in CPU memory, where a worker sums tensors. The tensors may be on any device and in any layout.

A `Staged` tensor passes through three steps. Its creation begins the copy to CPU memory, `host` waits for that copy,
and `finish` begins the copy back. On a GPU, both copies run on separate streams, through pinned memory: while the
network sums one bucket of a backward pass, the next one is being copied to the CPU and the previous one back to the
GPU.
"""

from collections.abc import Sequence

import torch


class Staged:
    """Tensor that a worker sums in place: contiguous, in CPU memory."""

    # Name of the operation, for messages.
    name = "all_reduce"

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    @property
    def inputs(self) -> Sequence[torch.Tensor]:
        """Tensors that the operation reads or writes. A repetition of a failed operation must pass the same tensors."""
        return [self.tensor]

    def host(self) -> torch.Tensor:
        """Waits for the elements of `tensor`, and returns the contiguous tensor in CPU memory that contains them."""
        return self.tensor.detach()

    def finish(self) -> None:
        """Copies the elements of `host` into `tensor`; on a GPU, the copy may still be running on return."""

    def wait(self) -> None:
        """Ensures that all later uses of `tensor` by this thread take effect after the copy that `finish` began."""


class Copied(Staged):
    """Non-contiguous tensor in CPU memory, or another contribution that must be assembled."""

    _copy: torch.Tensor | None = None

    def host(self) -> torch.Tensor:
        # After a failure, the beginning of the copy may already hold the sum.
        if self._copy is None:
            self._copy = self.contribution()
        return self._copy

    def contribution(self) -> torch.Tensor:
        """Returns what this rank contributes: a contiguous tensor in CPU memory."""
        return self.tensor.detach().contiguous()

    def finish(self) -> None:
        self.take(self.host())

    def take(self, total: torch.Tensor) -> None:
        """Copies the part of the sum that this rank needs."""
        self.tensor.detach().copy_(total)


class _OnGpu(Staged):
    """Tensor on a GPU that is staged in a pinned buffer."""

    def __init__(self, tensor: torch.Tensor, copies: "_GpuCopies") -> None:
        super().__init__(tensor)
        self._copies = copies
        self._buffer = copies.take_buffer(tensor)
        self._copied = torch.cuda.Event()
        stream = copies.to_host
        stream.wait_stream(torch.cuda.current_stream(tensor.device))
        with torch.cuda.stream(stream):
            self._buffer.copy_(tensor.detach(), non_blocking=True)
            self._copied.record(stream)
        # The allocator must not reuse the tensor's memory before the copy has ended, even if the caller drops the tensor.
        tensor.record_stream(stream)

    def host(self) -> torch.Tensor:
        self._copied.synchronize()
        return self._buffer

    def finish(self) -> None:
        stream = self._copies.from_host
        with torch.cuda.stream(stream):
            self.tensor.detach().copy_(self._buffer, non_blocking=True)
            self._copied.record(stream)
        self.tensor.record_stream(stream)
        self._copies.return_buffer(self._buffer, self._copied)

    def wait(self) -> None:
        torch.cuda.current_stream(self.tensor.device).wait_event(self._copied)


class _GpuCopies:
    """Streams and pinned buffers of one GPU."""

    def __init__(self, device: torch.device) -> None:
        # Two streams, because the two directions of the bus are independent.
        self.to_host = torch.cuda.Stream(device)
        self.from_host = torch.cuda.Stream(device)
        # Unused one-dimensional buffers, each with the event after which it may be overwritten.
        self._buffers: list[tuple[torch.Tensor, torch.cuda.Event]] = []

    def take_buffer(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns pinned memory with the shape and type of the tensor."""
        size = tensor.numel() * tensor.element_size()
        fitting = [index for index, (buffer, _) in enumerate(self._buffers) if buffer.numel() >= size]
        # The oldest buffer is the most likely to be free, so the wait seldom takes time.
        if fitting:
            memory, copied = self._buffers.pop(fitting[0])
            copied.synchronize()
        else:
            memory = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        return memory[:size].view(tensor.dtype).view(tensor.shape)

    def return_buffer(self, buffer: torch.Tensor, copied: torch.cuda.Event) -> None:
        memory = torch.empty(0, dtype=torch.uint8).set_(buffer.untyped_storage())
        self._buffers.append((memory, copied))


class Stager:
    """Copies tensors on any device and in any layout to CPU memory and back."""

    def __init__(self) -> None:
        self._copies: dict[torch.device, _GpuCopies] = {}

    def stage(self, tensor: torch.Tensor) -> Staged:
        """Begins to copy the tensor to CPU memory, after all work that this thread has queued on the GPU so far."""
        if not tensor.is_cuda:
            return Staged(tensor) if tensor.is_contiguous() else Copied(tensor)
        if tensor.device not in self._copies:
            self._copies[tensor.device] = _GpuCopies(tensor.device)
        return _OnGpu(tensor, self._copies[tensor.device])
