"""Tests of iswitch.Worker: arrays, settings and errors."""

import array
import ctypes
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import PATIENCE_S, on_each

import iswitch

FLOATS = 10_119


@pytest.fixture
def alone(switch, monkeypatch):
    """A job with a single worker, whose sums equal its arrays."""
    with iswitch.Worker(switch.address, rank=0, world_size=1) as worker:
        yield worker


@pytest.mark.parametrize("floats", [0, 1, 366, 367, FLOATS, (1 << 20) + 5])
def test_sums_are_made_in_place(switch, floats):
    def run(rank):
        own = np.arange(floats, dtype=np.float32) % 1000 + rank
        place = own.ctypes.data
        with iswitch.Worker(switch.address, rank, 3) as worker:
            assert worker.all_reduce_(own) == 3
        assert own.ctypes.data == place
        return own

    expected = 3 * (np.arange(floats, dtype=np.float32) % 1000) + 3
    for own in on_each(3, run):
        np.testing.assert_array_equal(own, expected)


def test_one_worker_sums_many_lengths(switch):
    def run(rank):
        with iswitch.Worker(switch.address, rank, 2) as worker:
            for floats in [5, 5000, 70_000, 5, 5000, 1]:
                own = np.full(floats, rank + 1, dtype=np.float32)
                worker.all_reduce_(own)
                assert (own == 3).all()
            return worker.stats()

    for stats in on_each(2, run):
        assert stats["rounds"] == 6
        assert stats["rejoins"] == 0


def test_the_mean_is_divided(switch):
    def run(rank):
        own = np.array([rank, 2.0], dtype=np.float32)
        with iswitch.Worker(switch.address, rank, 4) as worker:
            assert worker.all_reduce_mean_(own) == 4
        return own.tolist()

    assert on_each(4, run) == [[1.5, 2.0]] * 4


def test_all_kinds_of_buffers(alone):
    matrix = np.ones((3, 4), dtype=np.float32)
    for own in [
        array.array("f", [1, 2]),
        memoryview(bytearray(16)).cast("f"),
        matrix,
        matrix[1:],
        np.array(1, dtype=np.float32),
    ]:
        assert alone.all_reduce_(own) == 1


class OnlyDLPack:
    """An array that supports DLPack but not the buffer protocol, with or without the arguments of DLPack 1.0."""

    def __init__(self, array, knows_versions):
        self.array = array
        self.knows_versions = knows_versions

    def __dlpack__(self, **options):
        if options and not self.knows_versions:
            raise TypeError("unexpected keyword argument")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("knows_versions", [False, True])
def test_dlpack_of_both_versions(switch, knows_versions):
    def run(rank):
        own = np.full((2, 3), rank + 1, dtype=np.float32)
        with iswitch.Worker(switch.address, rank, 2) as worker:
            worker.all_reduce_(OnlyDLPack(own, knows_versions))
            with pytest.raises(TypeError, match="expected float32"):
                worker.all_reduce_(OnlyDLPack(own.astype(np.float64), knows_versions))
            with pytest.raises(ValueError, match="not contiguous"):
                worker.all_reduce_(OnlyDLPack(own[:, 1:], knows_versions))
            with pytest.raises(ValueError, match="not contiguous"):
                worker.all_reduce_(OnlyDLPack(own.T, knows_versions))
        return own

    assert all((own == 3).all() for own in on_each(2, run))


class Tensor(ctypes.Structure):
    """The struct DLTensor of dlpack.h; by default it describes a float32 tensor on the CPU."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class ForgedDLPack:
    """An array whose DLPack capsule may describe its memory wrongly."""

    def __init__(self, sizes, steps=None, dimensions=None, **fields):
        self.memory = (ctypes.c_float * 64)()
        self.shape = (ctypes.c_int64 * len(sizes))(*sizes)
        self.strides = steps and (ctypes.c_int64 * len(steps))(*steps)
        fields.setdefault("shape", ctypes.addressof(self.shape))
        fields.setdefault("strides", self.strides and ctypes.addressof(self.strides))
        fields.setdefault("data", ctypes.addressof(self.memory))
        count = len(sizes) if dimensions is None else dimensions
        self.tensor = Tensor(device_type=1, dimensions=count, type_code=2, type_bits=32, type_lanes=1, **fields)

    def __dlpack__(self, **options):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def test_dlpack_with_absurd_shapes_is_refused(alone):
    assert alone.all_reduce_(ForgedDLPack([4, 16])) == 1
    assert alone.all_reduce_(ForgedDLPack([4, 16], steps=[16, 1])) == 1
    assert alone.all_reduce_(ForgedDLPack([])) == 1
    assert alone.all_reduce_(ForgedDLPack([1, 4], steps=[-9, 1])) == 1
    cases = [
        (ForgedDLPack([1 << 32, 1 << 32]), "expected at most"),
        (ForgedDLPack([1 << 62, 4]), "expected at most"),
        (ForgedDLPack([1 << 31, 1 << 31, 1 << 31]), "expected at most"),
        (ForgedDLPack([-1, -1]), "size -1 in dimension 0"),
        (ForgedDLPack([4, -4]), "size -4 in dimension 1"),
        (ForgedDLPack([0, -4]), "size -4 in dimension 1"),
        (ForgedDLPack([4], dimensions=-1), "-1 dimensions"),
        (ForgedDLPack([4], dimensions=1 << 30), "1073741824 dimensions"),
        (ForgedDLPack([4], shape=None), "no shape"),
        (ForgedDLPack([4], shape=12345), "multiples of 8 bytes"),
        (ForgedDLPack([4], data=None), "null data pointer"),
        (ForgedDLPack([4], data=None, byte_offset=64), "null data pointer"),
        (ForgedDLPack([4], byte_offset=1), "multiple of 4 bytes"),
        (ForgedDLPack([4], byte_offset=(1 << 64) - 4), "within the address space"),
        (ForgedDLPack([4, 4], steps=[1, 4]), "not contiguous"),
        (ForgedDLPack([4], steps=[-1]), "not contiguous"),
        (ForgedDLPack([2, 4], steps=[(1 << 63) - 1, 1]), "not contiguous"),
    ]
    for bad, words in cases:
        with pytest.raises(ValueError, match=words):
            alone.all_reduce_(bad)


def test_arrays_that_cannot_be_summed_are_named(alone):
    cases = [
        (np.zeros(3), TypeError, "format \"d\", expected \"f\""),
        (array.array("i", [1]), TypeError, "format \"i\""),
        (bytearray(8), TypeError, "format \"B\""),
        (np.zeros((4, 4), dtype=np.float32)[:, 1], ValueError, "not contiguous"),
        (np.zeros((4, 4), dtype=np.float32).T, ValueError, "not contiguous"),
        (memoryview(bytes(8)).cast("f"), ValueError, "read-only"),
        (np.frombuffer(bytearray(9), dtype=np.float32, offset=1, count=2), ValueError, "multiple of 4 bytes"),
        (np.frombuffer(bytearray(9), dtype=np.float16, offset=1, count=4), ValueError, "multiple of 2 bytes"),
        ([1.0, 2.0], TypeError, "array is a list"),
        (1.0, TypeError, "array is a float"),
    ]
    for bad, kind, words in cases:
        with pytest.raises(kind, match=words):
            alone.all_reduce_(bad)
    read_only = np.zeros(3, dtype=np.float32)
    read_only.flags.writeable = False
    with pytest.raises((ValueError, BufferError), match="read-?only"):
        alone.all_reduce_(read_only)


def test_arrays_of_sixteen_bits_take_half_the_packets(switch):
    def run(rank, wire):
        own = (np.arange(732 * 4) % 100 + rank).astype(np.float16)
        with iswitch.Worker(switch.address, rank, 2, wire=wire) as worker:
            assert worker.all_reduce_(own) == 2
            return own, worker.stats()["segments"]

    for wire, segments in [(None, 4), ("f16-f32", 8), ("f32", 8)]:
        for own, sent in on_each(2, lambda rank, wire=wire: run(rank, wire)):
            np.testing.assert_array_equal(own, 2 * (np.arange(732 * 4) % 100) + 1)
            assert sent == segments


def test_nan_is_refused_before_anything_is_sent(alone):
    with pytest.raises(iswitch.NonFiniteError, match=r"vector\[1\] is NaN"):
        alone.all_reduce_(np.array([1, np.nan], dtype=np.float32))
    assert alone.stats()["rounds"] == 0


def test_infinities_are_summed_where_both_sides_say_so(start_switch):
    switch = start_switch("--non-finite", "sum")

    def run(rank):
        own = np.array([1, np.inf if rank else 1], dtype=np.float32)
        with iswitch.Worker(switch.address, rank, 2, non_finite="sum") as worker:
            worker.all_reduce_(own)
        return own.tolist()

    assert on_each(2, run) == [[2, np.inf]] * 2


def test_settings_come_from_the_environment(switch, monkeypatch):
    monkeypatch.setenv("ISWITCH_SWITCH", switch.address)
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    with iswitch.Worker() as worker:
        assert (worker.switch, worker.rank, worker.world_size) == (switch.address, 0, 1)
        assert repr(worker) == f"iswitch.Worker(switch='{switch.address}', rank=0, world_size=1)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "neither switch nor ISWITCH_SWITCH is set"),
        ({"switch": "nowhere.invalid:1"}, "switch is \"nowhere.invalid:1\""),
        ({"switch": "127.0.0.1:port"}, "expected HOST or HOST:PORT"),
        ({"rank": 2}, "rank is 2 and world_size is 2"),
        ({"timeout": 0.0}, "timeout is 0, expected a number of seconds above 0"),
        ({"switch_timeout": float("nan")}, "switch_timeout is NaN"),
        ({"non_finite": "ignore"}, "non_finite is \"ignore\", expected \"refuse\" or \"sum\""),
        ({"key_file": "/nonexistent"}, "key_file /nonexistent"),
        ({"tag_data": True}, "tag_data is true, which requires a key"),
    ],
)
def test_wrong_settings_are_named(arguments, words, monkeypatch):
    monkeypatch.delenv("ISWITCH_SWITCH", raising=False)
    settings = {"switch": "127.0.0.1:9", "rank": 0, "world_size": 2} if arguments else {"rank": 0, "world_size": 2}
    with pytest.raises(ValueError) as raised:
        iswitch.Worker(**{**settings, **arguments})
    assert words in str(raised.value)


def test_a_bad_variable_is_named(monkeypatch):
    monkeypatch.setenv("ISWITCH_TIMEOUT", "soon")
    with pytest.raises(ValueError, match="ISWITCH_TIMEOUT is \"soon\", expected a number of seconds above 0"):
        iswitch.Worker("127.0.0.1:9", 0, 1)


def test_nobody_at_the_address_is_an_error():
    with pytest.raises(iswitch.SwitchLostError, match="no answer from the switch 127.0.0.1:9"):
        iswitch.Worker("127.0.0.1:9", 0, 1, switch_timeout=0.3)


def test_workers_that_do_not_come_are_counted(switch):
    with pytest.raises(iswitch.WorkersMissingError, match="1 of 2 workers joined"):
        iswitch.Worker(switch.address, 0, 2, timeout=0.3)


def test_a_refusal_has_the_reason_of_the_switch(switch):
    with iswitch.Worker(switch.address, 0, 1), pytest.raises(iswitch.RefusedError, match="workers is 2, expected 1"):
        iswitch.Worker(switch.address, 0, 2)


def test_a_closed_worker_says_so(switch):
    worker = iswitch.Worker(switch.address, 0, 1)
    worker.close()
    worker.close()
    with pytest.raises(iswitch.ClosedError, match="closed"):
        worker.all_reduce_(np.zeros(1, dtype=np.float32))


def test_closing_ends_a_call_that_waits(switch):
    workers = on_each(2, lambda rank: iswitch.Worker(switch.address, rank, 2))
    failures = []

    def wait():
        try:
            workers[0].all_reduce_(np.zeros(4, dtype=np.float32))
        except iswitch.Error as error:
            failures.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.2)
    with pytest.raises(RuntimeError, match="another thread"):
        workers[0].all_reduce_(np.zeros(4, dtype=np.float32))
    workers[0].close()
    waiting.join(PATIENCE_S)
    assert [type(error) for error in failures] == [iswitch.ClosedError]


def test_a_killed_switch_is_an_error_and_a_new_one_is_found(switch):
    def run(rank):
        with iswitch.Worker(switch.address, rank, 2, switch_timeout=0.5) as worker:
            own = np.ones(FLOATS, dtype=np.float32)
            worker.all_reduce_(own)
            meeting.wait(PATIENCE_S)
            meeting.wait(PATIENCE_S)
            with pytest.raises(iswitch.SwitchLostError, match="no answer from the switch"):
                worker.all_reduce_(own)
            with pytest.raises(iswitch.UnfinishedError, match="expected 10119: the previous vector"):
                worker.all_reduce_(np.ones(3, dtype=np.float32))
            meeting.wait(PATIENCE_S)
            meeting.wait(PATIENCE_S)
            assert worker.all_reduce_(own) == 2
            return own, worker.stats()["rejoins"]

    meeting = threading.Barrier(3)

    def operate():
        meeting.wait(PATIENCE_S)
        switch.kill()
        meeting.wait(PATIENCE_S)
        meeting.wait(PATIENCE_S)
        switch.start()
        meeting.wait(PATIENCE_S)

    operator = threading.Thread(target=operate)
    operator.start()
    for own, rejoins in on_each(2, run):
        assert (own == 4).all()
        assert rejoins > 0
    operator.join(PATIENCE_S)


WAITS_FOR_EVER = """
import signal, sys, iswitch
# Python does not install its handler if SIGINT is ignored, as it is in a shell's background jobs.
signal.signal(signal.SIGINT, signal.default_int_handler)
print("waiting", flush=True)
try:
    iswitch.Worker(sys.argv[1], 0, 2)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_the_workers_move_to_the_standby_switch(start_switch):
    first, standby = start_switch(), start_switch()
    addresses = [first.address, standby.address]
    started = threading.Barrier(3)

    def run(rank):
        # The list may be given as one text or as a sequence.
        switches = ",".join(addresses) if rank == 0 else addresses
        with iswitch.Worker(switches, rank, 2) as worker:
            assert worker.switch == ",".join(addresses)
            for step in range(40):
                own = np.full(FLOATS, rank + step, dtype=np.float32)
                assert worker.all_reduce_(own) == 2
                assert (own == 1 + 2 * step).all()
                if step == 9:
                    started.wait(PATIENCE_S)
            return worker.stats()["rejoins"]

    def kill_first(_rank):
        started.wait(PATIENCE_S)
        first.kill()
        return 1

    rejoins = on_each(3, lambda rank: run(rank) if rank < 2 else kill_first(rank))
    assert min(rejoins) >= 1


def test_an_invalid_list_of_switches_is_named():
    with pytest.raises(ValueError, match='switch is "", expected HOST or HOST:PORT'):
        iswitch.Worker(["127.0.0.1:1", ""], rank=0, world_size=1)


def test_ctrl_c_ends_the_wait(switch, tmp_path):
    script = Path(tmp_path, "waits.py")
    script.write_text(WAITS_FOR_EVER)
    process = subprocess.Popen(
        [sys.executable, str(script), switch.address], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert output == "interrupted\n"


def test_a_call_with_a_timeout_names_what_it_waited_for(switch):
    workers = on_each(2, lambda rank: iswitch.Worker(switch.address, rank, 2))
    own = np.ones(3, dtype=np.float32)
    with pytest.raises(iswitch.WorkersMissingError, match="1 segments are waiting for (other workers|rank 1 on host)"):
        workers[0].all_reduce_(own, timeout=0.3)
    with pytest.raises(ValueError, match="timeout is 0, expected a number of seconds above 0"):
        workers[0].all_reduce_(own, timeout=0)
    both = [own, np.ones(3, dtype=np.float32)]
    assert on_each(2, lambda rank: workers[rank].all_reduce_(both[rank])) == [2, 2]
    # The workers have to join a job for this length.
    with pytest.raises(iswitch.WorkersMissingError, match="1 of 2 workers joined"):
        workers[0].all_reduce_mean_(np.ones(FLOATS, dtype=np.float32), timeout=0.3)
    switch.kill()
    with pytest.raises(iswitch.SwitchLostError, match=f"no answer from the switch {switch.address}"):
        workers[1].all_reduce_(own, timeout=0.3)
    for worker in workers:
        worker.close()
    switch.start()
