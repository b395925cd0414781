"""Tests of the PyTorch backend when operations time out, are aborted, or wait for ranks that never take part."""

import threading
import time
from datetime import timedelta

import pytest
from conftest import PATIENCE_S, Ranks, on_each

import iswitch

# Timeout of a single operation that is expected to pass, in seconds.
SHORT_S = 0.3


def groups(count, timeout_s=PATIENCE_S):
    """Returns process groups that belong together, one for each rank, in this process."""
    import torch.distributed as dist

    from iswitch.torch import ProcessGroupISwitch

    store = dist.HashStore()
    return on_each(count, lambda rank: ProcessGroupISwitch(store, rank, count, timedelta(seconds=timeout_s)))


def reduce_options(timeout_s=None, is_async=False):
    import torch.distributed as dist

    options = dist.AllreduceOptions()
    options.asyncOp = is_async
    if timeout_s:
        options.timeout = timedelta(seconds=timeout_s)
    return options


@pytest.fixture
def pair(switch, monkeypatch):
    """Two process groups that belong together."""
    monkeypatch.setenv("ISWITCH_SWITCH", switch.address)
    both = groups(2)
    yield both
    for group in both:
        group.shutdown()


@pytest.fixture
def error_types():
    from torch._C._distributed_c10d import ErrorType

    return ErrorType


def reducers(switch, count=2):
    from iswitch.torch import Reducer

    return on_each(count, lambda rank: Reducer(iswitch.Worker(switch.address, rank, count)))


def test_every_error_names_its_reason():
    classes = [getattr(iswitch, name) for name in iswitch.__all__ if name.endswith("Error")]
    reasons = {error.reason for error in classes}
    assert len(reasons) == len(classes) and all(issubclass(error, RuntimeError) for error in classes)
    assert iswitch.AbortedError.reason == "aborted"
    assert issubclass(iswitch.WorkersMissingError, iswitch.TimedOutError)
    assert issubclass(iswitch.TimedOutError, TimeoutError)


@pytest.mark.parametrize("over_switch", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
def test_an_abort_ends_what_waits_and_what_follows(pair, error_types, over_switch, is_async):
    import torch

    dtype = torch.float32 if over_switch else torch.int64
    options = reduce_options(is_async=is_async)
    aborter = threading.Timer(SHORT_S, pair[0].abort)
    aborter.start()
    with pytest.raises(iswitch.AbortedError, match="aborted"):
        pair[0].allreduce([torch.ones(9, dtype=dtype)], options).wait()
    aborter.join(PATIENCE_S)
    with pytest.raises(iswitch.AbortedError):
        pair[0].allreduce([torch.ones(9, dtype=dtype)], options).wait()
    with pytest.raises(iswitch.AbortedError):
        pair[0].barrier().wait()
    assert pair[0].get_error() == error_types.COMM_ERROR
    # The other rank learns of it from the switch. The sum to which the aborted rank has contributed is still complete.
    with pytest.raises(iswitch.WorkersLostError, match="1 of 2 gradients"):
        for _ in range(2):
            pair[1].allreduce([torch.ones(9)], options).wait()
    assert pair[1].get_error() == error_types.REMOTE_ERROR


def test_an_operation_with_a_timeout_of_its_own_may_be_repeated(pair, error_types):
    import torch

    own = torch.ones(300)
    assert pair[0].get_error() == error_types.SUCCESS
    with pytest.raises(iswitch.WorkersMissingError, match=r"all_reduce \(sum\) of 300 elements of float32: .*(other workers|rank 1)"):
        pair[0].allreduce([own], reduce_options(SHORT_S))
    assert pair[0].get_error() == error_types.TIMEOUT
    with pytest.raises(iswitch.UnfinishedError, match="of 299 .* expected the repetition of .* 300 elements"):
        pair[0].allreduce([torch.ones(299)], reduce_options())
    both = [own, torch.ones(300)]
    on_each(2, lambda rank: pair[rank].allreduce([both[rank]], reduce_options()))
    assert all(sums.unique().tolist() == [2.0] for sums in both)
    assert pair[0].get_error() == error_types.SUCCESS


def test_the_timeout_of_a_group_can_be_changed(pair):
    import torch

    pair[0].set_timeout(timedelta(seconds=SHORT_S))
    with pytest.raises(iswitch.WorkersMissingError):
        pair[0].allreduce([torch.ones(3)], reduce_options())
    # The length is new, so the worker waits for the other one to join its job.
    pair[0].abort()
    with pytest.raises(iswitch.TimedOutError):
        pair[1].set_timeout(timedelta(seconds=SHORT_S))
        pair[1].allreduce([torch.ones(70_000)], reduce_options())


def test_a_silent_switch_is_named(switch, pair):
    import torch

    switch.kill()
    with pytest.raises(iswitch.SwitchLostError, match=rf"of 3 elements of float32: no answer from the switch {switch.address}"):
        pair[0].allreduce([torch.ones(3)], reduce_options(SHORT_S))
    switch.start()


@pytest.mark.parametrize("over_switch", [True, False])
def test_a_wait_with_a_timeout_does_not_end_the_operation(pair, over_switch):
    import torch

    dtype = torch.float32 if over_switch else torch.int64
    both = [torch.ones(5, dtype=dtype) for _ in range(2)]
    work = pair[0].allreduce([both[0]], reduce_options(is_async=True))
    with pytest.raises(iswitch.TimedOutError, match="the operation continues"):
        work.wait(timedelta(seconds=SHORT_S))
    pair[1].allreduce([both[1]], reduce_options()).wait()
    assert work.wait(timedelta(seconds=PATIENCE_S))
    assert both[0].tolist() == [2] * 5


def test_a_wait_for_a_message_ends_with_its_timeout_and_on_abort(pair):
    import torch

    with pytest.raises(iswitch.TimedOutError, match="recv"):
        pair[0].recv([torch.ones(3)], 1, 0).wait(timedelta(seconds=SHORT_S))
    threading.Timer(SHORT_S, pair[0].abort).start()
    with pytest.raises(iswitch.AbortedError):
        pair[0].recv([torch.ones(3)], 1, 1).wait()


def test_a_message_is_received_by_a_wait_after_one_that_has_timed_out(pair):
    import torch

    received = torch.zeros(3)
    work = pair[0].recv([received], 1, 0)
    with pytest.raises(iswitch.TimedOutError, match="the operation continues"):
        work.wait(timedelta(seconds=SHORT_S))
    pair[1].send([torch.ones(3)], 0, 0).wait()
    assert work.wait(timedelta(seconds=PATIENCE_S))
    assert received.tolist() == [1.0] * 3


def test_a_blocking_call_that_raises_any_error_ends_the_wait(pair):
    with pytest.raises(TypeError):
        pair[0].monitored_barrier("soon")


class CompletesLate:
    """Collective that completes after the wait of a slice has timed out, and before its state is read."""

    def __init__(self):
        self.waits = 0

    def wait(self, timeout=None):
        self.waits += 1
        if self.waits == 1:
            raise RuntimeError("Operation timed out!")
        return True

    def is_completed(self):
        return self.waits > 0


def test_a_collective_that_completes_just_after_a_slice_succeeds():
    from iswitch._faults import Delegate, _DelegatedWork

    delegate = Delegate(None)
    assert _DelegatedWork(delegate, "broadcast", CompletesLate()).wait()
    assert delegate.error is None


class Pending:
    """Collective of Gloo that has not completed."""

    def __init__(self):
        import torch

        self.future = torch.futures.Future()

    def get_future(self):
        return self.future


def test_a_barrier_that_is_refused_awaits_its_collectives_when_it_is_repeated(pair):
    import torch

    own = torch.ones(7)
    pair[0]._await_in_barrier(pending := Pending())
    with pytest.raises(iswitch.WorkersMissingError):
        pair[0].allreduce([own], reduce_options(SHORT_S))
    with pytest.raises(iswitch.UnfinishedError):
        pair[0].barrier().wait()
    both = [own, torch.ones(7)]
    on_each(2, lambda rank: pair[rank].allreduce([both[rank]], reduce_options()))
    works = [group.barrier() for group in pair]
    with pytest.raises(iswitch.TimedOutError):
        works[1].wait(timedelta(seconds=SHORT_S))
    # The barrier awaits the end of a collective, even if it has failed.
    pending.future.set_exception(RuntimeError("failed"))
    assert all(work.wait(timedelta(seconds=PATIENCE_S)) for work in works)


def test_a_monitored_barrier_names_the_missing_rank(switch, monkeypatch):
    monkeypatch.setenv("ISWITCH_SWITCH", switch.address)
    all_three = groups(3)

    def enter(rank):
        if rank == 1:
            return None
        with pytest.raises(iswitch.Error) as raised:
            all_three[rank].monitored_barrier(timedelta(seconds=1), wait_all_ranks=True)
        return raised.value

    errors = on_each(3, enter)
    assert isinstance(errors[0], iswitch.TimedOutError) and "Ranks 1 failed to pass" in str(errors[0])
    assert isinstance(errors[2], iswitch.WorkersLostError)
    for group in all_three:
        group.shutdown()


def test_only_the_same_tensor_repeats_an_operation(switch):
    import torch

    first, second = reducers(switch)
    own = torch.ones(4)
    with pytest.raises(iswitch.WorkersMissingError):
        first.all_reduce(own, timeout=SHORT_S)
    for other in (torch.ones(4), own.view(2, 2)):
        with pytest.raises(iswitch.UnfinishedError):
            first.all_reduce(other)
    with pytest.raises(iswitch.UnfinishedError):
        first.all_reduce(own, mean=True)
    both = [own, torch.ones(4)]
    on_each(2, lambda rank: (first, second)[rank].all_reduce(both[rank]))
    with pytest.raises(iswitch.WorkersMissingError):
        first.all_reduce(own, timeout=SHORT_S)
    own.add_(1)
    with pytest.raises(iswitch.UnfinishedError, match="unchanged"):
        first.all_reduce(own)
    assert own.tolist() == [3.0] * 4
    first.close()
    second.close()


def test_tensors_behind_a_failed_one_fail_and_may_be_submitted_again(switch):
    import torch

    first, second = reducers(switch)
    first.timeout = SHORT_S
    # All have the same length: without an order, the second could be taken for a repetition of the first.
    tensors = [torch.full((4,), float(number)) for number in range(3)]
    jobs = [first.begin(first.stage(tensor), False, tensor) for tensor in tensors]
    assert all(job.done.wait(PATIENCE_S) for job in jobs)
    assert [type(job.error) for job in jobs] == [iswitch.WorkersMissingError, iswitch.UnfinishedError, iswitch.UnfinishedError]
    first.timeout = None
    theirs = [torch.full((4,), float(number)) for number in range(3)]
    jobs = [reducer.begin(reducer.stage(own), False, own) for reducer, all_of in ((first, tensors), (second, theirs)) for own in all_of]
    assert all(job.done.wait(PATIENCE_S) for job in jobs)
    assert [job.outcome().unique().tolist() for job in jobs] == [[0.0], [2.0], [4.0]] * 2
    first.close()
    second.close()


def test_a_long_tensor_with_gaps_keeps_the_sums_that_it_has(switch):
    import torch

    first, second = reducers(switch)
    # The tensor has two pieces. The other worker contributes only to the first piece before the operation times out.
    piece = 1 << 20
    own = torch.ones(piece + 9, 2)[:, 0]
    job = second.submit(torch.ones(piece))
    with pytest.raises(iswitch.TimedOutError):
        first.all_reduce(own, timeout=2)
    assert own.unique().tolist() == [1.0]
    rest = second.submit(torch.ones(9))
    first.all_reduce(own)
    assert own.unique().tolist() == job.wait().unique().tolist() == rest.wait().unique().tolist() == [2.0]
    first.close()
    second.close()


HANGS = """
import time, torch, iswitch.torch, torch.distributed as dist
dist.init_process_group("iswitch")
if dist.get_rank() == 0:
    works = [dist.all_reduce(torch.ones(9, dtype=dtype), async_op=True) for dtype in (torch.float32, torch.int64)]
    group = dist.distributed_c10d._get_default_group()
    begin = time.monotonic()
    dist.destroy_process_group()
    del group
    for work in works:
        try:
            work.wait()
        except iswitch.ClosedError as error:
            print(error.reason)
    print("left", flush=True)
else:
    # Neither takes part nor ends before the other rank has.
    time.sleep(1000)
"""


def test_a_group_is_left_while_collectives_are_pending(switch, tmp_path):
    script = tmp_path / "hangs.py"
    script.write_text(HANGS)
    ranks = Ranks(2, script, ISWITCH_SWITCH=switch.address)
    try:
        output, errors = ranks.processes[0].communicate(timeout=PATIENCE_S)
    finally:
        for process in ranks.processes:
            process.kill()
    assert output.split() == ["closed", "aborted", "left"], errors
    assert ranks.processes[0].returncode == 0, errors


REPEATS = """
import os, torch, iswitch.torch, torch.distributed as dist
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
for time in range(3):
    # With one address for all groups, a rank may find the store of the group that another rank is just destroying.
    where = f"file://{os.environ['STORES']}/{time}"
    dist.init_process_group("iswitch", init_method=where, rank=rank, world_size=size)
    dist.monitored_barrier()
    own = torch.ones(3)
    dist.all_reduce(own)
    assert own.tolist() == [2.0] * 3
    dist.barrier()
    dist.destroy_process_group()
"""


def test_a_process_may_form_its_group_again(switch, tmp_path):
    script = tmp_path / "repeats.py"
    script.write_text(REPEATS)
    Ranks(2, script, ISWITCH_SWITCH=switch.address, STORES=str(tmp_path)).succeed()


RESTARTS = """
import os, signal, torch, iswitch.torch, torch.distributed as dist
dist.init_process_group("iswitch")
own, attempt = torch.ones(1000), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
for step in range(6):
    if (attempt, dist.get_rank(), step) == (0, 1, 3):
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(own.fill_(1))
    assert own.unique().tolist() == [2.0]
print(f"rank {dist.get_rank()} has finished after {attempt} restarts", flush=True)
dist.destroy_process_group()
"""


def test_torchrun_restarts_a_killed_rank(switch, tmp_path):
    from test_torch import torchrun

    script = tmp_path / "restarts.py"
    script.write_text(RESTARTS)
    output = torchrun(2, script, ISWITCH_SWITCH=switch.address, options=["--max-restarts=1"])
    # The lines of the ranks may run into each other.
    assert all(f"rank {rank} has finished after 1 restarts" in output for rank in range(2))
