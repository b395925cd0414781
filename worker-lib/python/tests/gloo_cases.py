"""One rank of test_torch_conformance.py: cases modelled on PyTorch's test_c10d_gloo.py and test_c10d_common.py, which
its package does not contain. Prints the outcome of each case as JSON."""

import datetime
import json
import re
import sys
import traceback

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import iswitch.torch  # noqa: F401: registers the backend

TIMEOUT = datetime.timedelta(seconds=60)


def raises(function, *arguments, text="", **options):
    """Checks that a call raises an error whose message matches a regular expression."""
    try:
        function(*arguments, **options)
    except Exception as error:
        assert re.search(text, str(error)), f"{error} does not match {text}"
    else:
        raise AssertionError("the call did not raise an error")


def root_checks():
    group = dist.group.WORLD
    for collective, options in ((group.broadcast, dist.BroadcastOptions()), (group.reduce, dist.ReduceOptions())):
        for root in (-1, dist.get_world_size()):
            options.rootRank = root
            raises(collective, [torch.zeros(1)], options, text="invalid root rank")
        raises(collective, [], options)


def all_reduce_checks():
    group = dist.group.WORLD
    raises(group.allreduce, [])
    raises(group.allreduce, [torch.zeros(1), torch.zeros(1, dtype=torch.float64)])
    sparse = torch.sparse_coo_tensor([[0]], [1.0], (2,))
    raises(dist.all_reduce, sparse, op=dist.ReduceOp.MAX, text="unsupported")


def all_gather_checks():
    outputs = [torch.zeros(1) for _ in range(dist.get_world_size())]
    raises(dist.all_gather, outputs[1:], torch.zeros(1))
    raises(dist.all_gather, [torch.zeros(2)] * len(outputs), torch.zeros(1))
    raises(dist.all_gather, [output.double() for output in outputs], torch.zeros(1))


def empty_tensors():
    empty = torch.empty(0)
    for work in (dist.all_reduce(empty, async_op=True), dist.broadcast(empty, 0, async_op=True)):
        work.wait()
    assert empty.numel() == 0


def scalars():
    value = torch.tensor(dist.get_rank() + 1.0)
    dist.all_reduce(value)
    assert value.item() == sum(range(1, dist.get_world_size() + 1))
    dist.broadcast(value.fill_(dist.get_rank()), 1)
    assert value.item() == 1


def barrier_implies_wait():
    for dtype in (torch.float32, torch.int64):
        # Large, so that the barrier alone would end before the sums.
        tensors = [torch.full((500, 1000), number, dtype=dtype) for number in range(8)]
        for tensor in tensors:
            dist.group.WORLD.allreduce([tensor])
        dist.group.WORLD.barrier().wait()
        for number, tensor in enumerate(tensors):
            assert tensor.eq(number * dist.get_world_size()).all()


def stress():
    """Many pending collectives, of which some go over the switch and some to Gloo, complete with the right results."""
    rank, size = dist.get_rank(), dist.get_world_size()
    pending = []
    for number in range(200):
        summed = torch.tensor([number + rank], dtype=(torch.float32, torch.int32)[number % 2])
        received = torch.full(((5, 3000)[number % 2],), number + rank)
        works = [dist.all_reduce(summed, async_op=True), dist.broadcast(received, number % size, async_op=True)]
        pending.append((number, works, summed, received))
    for number, works, summed, received in pending:
        for work in works:
            work.wait()
        assert summed.item() == number * size + sum(range(size))
        assert received.eq(number + number % size).all()


def futures():
    tensor = torch.ones(3)
    work = dist.all_reduce(tensor, async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2).wait()
    assert doubled.eq(2 * dist.get_world_size()).all()
    # Gloo's result reaches a tensor that is not contiguous before its future is complete.
    columns = torch.ones(4, 4, dtype=torch.int64)[:, 0]
    (result,) = dist.all_reduce(columns, async_op=True).get_future().wait()
    assert result.eq(dist.get_world_size()).all() and result.data_ptr() == columns.data_ptr()


def barrier_timeout():
    """A barrier ends with an error if a rank does not take part."""
    group = dist.new_group(timeout=datetime.timedelta(seconds=1))
    if dist.get_rank() != 0:
        raises(dist.barrier, group=group, text="waiting for (other workers|rank)")
    dist.barrier()


def unused_and_sparse_parameters():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(10, 4, sparse=True)
            self.used, self.unused = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)

        def forward(self, indices):
            return self.used(self.embedding(indices))

    torch.manual_seed(0)
    model = DistributedDataParallel(Model(), find_unused_parameters=True)
    model(torch.tensor([dist.get_rank()])).sum().backward()
    assert model.module.embedding.weight.grad.is_sparse
    assert model.module.embedding.weight.grad.coalesce().indices().numel() == dist.get_world_size()
    assert model.module.unused.weight.grad is None
    assert model.module.used.bias.grad.eq(1).all()


def groups_of_devices():
    """A configuration that names devices creates the same process group."""
    group = dist.new_group(backend="cpu:iswitch")
    tensor = torch.ones(2)
    dist.all_reduce(tensor, group=group)
    assert tensor.eq(dist.get_world_size()).all()
    dist.destroy_process_group(group)


CASES = (
    root_checks, all_reduce_checks, all_gather_checks, empty_tensors, scalars, barrier_implies_wait, stress, futures,
    barrier_timeout, unused_and_sparse_parameters, groups_of_devices,
)  # fmt: skip


def main():
    torch.set_num_threads(1)
    dist.init_process_group("iswitch", timeout=TIMEOUT)
    outcomes = {}
    for case in CASES:
        try:
            case()
            outcomes[case.__name__] = "passed"
        except Exception:
            outcomes[case.__name__] = f"{case.__name__}: {traceback.format_exc()}"
    print(json.dumps(outcomes))
    dist.destroy_process_group()
    sys.stdout.flush()


main()
