"""One rank of test_torch_collectives.py: performs every collective of torch.distributed in many variants, and compares each
result with one that the rank computes by itself. Prints the failures, the number of variants, and the number of sums of the
switch for each collective, as JSON."""

import itertools
import json
import sys
import traceback

import torch
import torch.distributed as dist

import iswitch.torch  # noqa: F401: registers the backend

# Types that Gloo supports. The switch sums the first three.
DTYPES = (
    torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64,
)  # fmt: skip
# The switch performs a reduce and a reduce-scatter of the small tensors, but not of the large ones.
SHAPES = ((2, 3), (100, 140))
LAYOUTS = ("contiguous", "strided")


class Variant:
    """Tensors of one type, shape and layout in one group; the elements are small integers that differ between the ranks."""

    def __init__(self, dtype, shape, layout, is_async, group):
        self.dtype, self.shape, self.layout, self.is_async, self.group = dtype, shape, layout, is_async, group
        self.ranks = dist.get_process_group_ranks(group)
        self.me = self.ranks.index(dist.get_rank())
        self.size = len(self.ranks)

    def __str__(self):
        kind = "async" if self.is_async else "sync"
        return f"{self.dtype}, {self.shape}, {self.layout}, {kind}, {self.size} ranks"

    def values(self, rank, salt=0):
        """Returns the elements of a tensor of the given rank in the group."""
        count = self.shape[0] * self.shape[1]
        return (torch.arange(count) * 7 + 3 * rank + salt).remainder(11).to(self.dtype).view(self.shape)

    def like(self, values):
        """Returns a tensor with these elements in the layout of this variant."""
        if self.layout == "strided":
            wide = torch.zeros(values.shape[0], 2 * values.shape[1], dtype=values.dtype)
            wide[:, ::2] = values
            return wide[:, ::2]
        return values.clone()

    def tensor(self, rank=None, salt=0):
        return self.like(self.values(self.me if rank is None else rank, salt))

    def blank(self):
        return self.like(torch.zeros(self.shape, dtype=self.dtype))

    def total(self, salt=0):
        return sum(self.values(rank, salt) for rank in range(self.size)).to(self.dtype)

    def joined(self, rank):
        """Returns the elements of the tensor that a rank contributes to a collective with one part for each rank."""
        return torch.cat([self.values(rank, salt=part) for part in range(self.size)])

    def run(self, collective, *arguments, **options):
        work = collective(*arguments, group=self.group, async_op=self.is_async, **options)
        if self.is_async:
            work.wait()


def check(actual, expected):
    # The bits are compared, not the values.
    same = torch.equal(actual.contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8))
    assert same, f"{actual} instead of {expected}"


def all_reduce(v):
    tensor = v.tensor()
    v.run(dist.all_reduce, tensor)
    check(tensor, v.total())


def all_reduce_mean(v):
    if v.dtype in (torch.float32, torch.float16, torch.bfloat16):
        tensor = v.like(v.values(v.me) * v.size)
        v.run(dist.all_reduce, tensor, op=dist.ReduceOp.AVG)
        check(tensor, v.total())


def all_reduce_others(v):
    everyone = torch.stack([v.values(rank) for rank in range(v.size)])
    least, greatest, product = v.tensor(), v.tensor(), v.tensor(0)
    v.run(dist.all_reduce, least, op=dist.ReduceOp.MIN)
    v.run(dist.all_reduce, greatest, op=dist.ReduceOp.MAX)
    v.run(dist.all_reduce, product, op=dist.ReduceOp.PRODUCT)
    # The checks follow all collectives, so that a failed one does not leave the other ranks waiting.
    check(least, everyone.amin(0))
    check(greatest, everyone.amax(0))
    check(product, everyone[0] ** v.size)


def all_reduce_coalesced(v):
    tensors = [v.tensor(), v.tensor(salt=5)]
    with dist.distributed_c10d._coalescing_manager(v.group, async_ops=v.is_async) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor, group=v.group)
    if v.is_async:
        manager.wait()
    check(tensors[0], v.total())
    check(tensors[1], v.total(salt=5))


def broadcast(v):
    tensors = [v.tensor() for _ in range(v.size)]
    for root, tensor in enumerate(tensors):
        v.run(dist.broadcast, tensor, group_src=root)
    for root, tensor in enumerate(tensors):
        check(tensor, v.values(root))


def reduce(v):
    root = v.size - 1
    tensor = v.tensor()
    v.run(dist.reduce, tensor, group_dst=root)
    if v.me == root:
        check(tensor, v.total())


def all_gather(v):
    outputs = [v.blank() for _ in range(v.size)]
    v.run(dist.all_gather, outputs, v.tensor())
    for rank, output in enumerate(outputs):
        check(output, v.values(rank))


def all_gather_into_tensor(v):
    output = v.like(torch.zeros(v.size * v.shape[0], v.shape[1], dtype=v.dtype))
    v.run(dist.all_gather_into_tensor, output, v.tensor())
    check(output, torch.cat([v.values(rank) for rank in range(v.size)]))


def gather(v):
    outputs = [v.blank() for _ in range(v.size)] if v.me == 0 else None
    v.run(dist.gather, v.tensor(), outputs, group_dst=0)
    for rank, output in enumerate(outputs or []):
        check(output, v.values(rank))


def scatter(v):
    inputs = [v.tensor(rank) for rank in range(v.size)] if v.me == 0 else None
    output = v.blank()
    v.run(dist.scatter, output, inputs, group_src=0)
    check(output, v.values(v.me))


def reduce_scatter(v):
    output = v.blank()
    v.run(dist.reduce_scatter, output, [v.tensor(salt=part) for part in range(v.size)])
    check(output, v.total(salt=v.me))


def reduce_scatter_tensor(v):
    output = v.blank()
    v.run(dist.reduce_scatter_tensor, output, v.like(v.joined(v.me)))
    check(output, v.total(salt=v.me))


def all_to_all(v):
    outputs = [v.blank() for _ in range(v.size)]
    v.run(dist.all_to_all, outputs, [v.tensor(salt=part) for part in range(v.size)])
    for rank, output in enumerate(outputs):
        check(output, v.values(rank, salt=v.me))


def all_to_all_single(v):
    output = v.like(torch.zeros(v.size * v.shape[0], v.shape[1], dtype=v.dtype))
    v.run(dist.all_to_all_single, output, v.like(v.joined(v.me)))
    check(output, torch.cat([v.values(rank, salt=v.me) for rank in range(v.size)]))


def send_and_receive(v):
    following, previous = v.ranks[(v.me + 1) % v.size], v.ranks[(v.me - 1) % v.size]
    output = v.blank()
    if v.is_async:
        works = [dist.isend(v.tensor(), following, group=v.group), dist.irecv(output, previous, group=v.group)]
        for work in works:
            work.wait()
    elif v.me % 2:
        assert dist.recv(output, group=v.group) == previous
        dist.send(v.tensor(), following, group=v.group)
    else:
        # Gloo sends a small message without waiting for the receiver, but not a large one.
        sent = dist.isend(v.tensor(), following, group=v.group)
        dist.recv(output, previous, group=v.group)
        sent.wait()
    check(output, v.values((v.me - 1) % v.size))


def barrier(v):
    counter = torch.ones(1, dtype=v.dtype)
    dist.all_reduce(counter, group=v.group, async_op=True)
    v.run(dist.barrier)
    check(counter, torch.full((1,), v.size, dtype=v.dtype))


def objects(v):
    gathered = [None] * v.size
    dist.all_gather_object(gathered, {"rank": v.me}, group=v.group)
    assert gathered == [{"rank": rank} for rank in range(v.size)]
    sent = [v.me, str(v.me) * 1000]
    dist.broadcast_object_list(sent, group_src=1, group=v.group)
    assert sent == [1, "1" * 1000]
    scattered = [None]
    dist.scatter_object_list(scattered, list("abc"[: v.size]) if v.me == 0 else None, group_src=0, group=v.group)
    assert scattered == ["abc"[v.me]]
    collected = [None] * v.size if v.me == 0 else None
    dist.gather_object(v.me, collected, group_dst=0, group=v.group)
    assert collected in (None, list(range(v.size)))


COLLECTIVES = (
    all_reduce, all_reduce_mean, all_reduce_others, all_reduce_coalesced, broadcast, reduce, all_gather,
    all_gather_into_tensor, gather, scatter, reduce_scatter, reduce_scatter_tensor, all_to_all, all_to_all_single,
    send_and_receive, barrier,
)  # fmt: skip


def exact_bits(group):
    """Bytes of all values, and floats with special bit patterns, arrive unchanged from every rank."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    special = torch.tensor([-0.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3.4e38])
    for tensor in (torch.arange(-128, 128, dtype=torch.int8), special, special.double(), torch.tensor([1 + 2j, -0.0j])):
        for root in range(size):
            received = tensor.clone() if rank == root else torch.zeros_like(tensor)
            dist.broadcast(received, group_src=root, group=group)
            check(received, tensor)
        gathered = [torch.ones_like(tensor) for _ in range(size)]
        dist.all_gather(gathered, tensor.roll(rank), group=group)
        for source, received in enumerate(gathered):
            check(received, tensor.roll(source))
    # Bits of a NaN with a payload, which arithmetic would change.
    payload = torch.tensor([0x7FA00001 if rank == 0 else 0], dtype=torch.int32).view(torch.float32)
    dist.broadcast(payload, 0, group=group)
    check(payload.view(torch.int32), torch.tensor([0x7FA00001], dtype=torch.int32))


def over_switch():
    """Returns the number of sums that the switch computes for each collective with small and with large tensors."""
    worker = dist.group.WORLD._reducer.worker
    rounds = {}
    for shape in SHAPES:
        variant = Variant(torch.float32, shape, "contiguous", False, dist.group.WORLD)
        for collective in COLLECTIVES:
            before = worker.stats()["rounds"]
            collective(variant)
            rounds.setdefault(collective.__name__, []).append(worker.stats()["rounds"] - before)
    return rounds


def main():
    torch.set_num_threads(1)
    dist.init_process_group("iswitch")
    # The ranks in the group differ from those in the world.
    pair = dist.new_group([0, 2])
    groups = [dist.group.WORLD] + ([pair] if dist.get_rank() in (0, 2) else [])
    failures, count = [], 0
    for group, is_async, layout, shape, dtype in itertools.product(groups, (False, True), LAYOUTS, SHAPES, DTYPES):
        variant = Variant(dtype, shape, layout, is_async, group)
        for collective in COLLECTIVES:
            count += 1
            try:
                collective(variant)
            except Exception:
                failures.append(f"{collective.__name__} of {variant}: {traceback.format_exc(limit=-1)}")
    for group in groups:
        objects(Variant(torch.float32, SHAPES[0], LAYOUTS[0], False, group))
        exact_bits(group)
    print(json.dumps({"failures": failures, "count": count, "rounds": over_switch()}))
    dist.destroy_process_group()
    sys.stdout.flush()


main()
