"""Tests of the top module through its streams and registers: ordinary traffic, registers, sums, refusals."""

import random
from itertools import cycle

import cocotb
from bench import (
    CONTROL_TOS, IDENTITY, OFFSETS, RESULT_PORTS, Host, contribution, payload, port_bit, power_up, result, single,
    stream, sums, tuser,
)
from cocotb.triggers import ClockCycles, with_timeout
from cocotbext.axi import AxiStreamFrame, AxiStreamSink, AxiStreamSource

BASE = 7
PAUSES = [None, (1, 1, 1, 0)]
LENGTHS = [60, 61, 64, 65, 95, 96, 97, 1514]


class Board:
    """The accelerator with a source at its input and a sink at its output."""

    def __init__(self, dut):
        self.dut = dut
        self.host = Host(dut)
        self.source = stream(AxiStreamSource, dut, "s_axis")
        self.sink = stream(AxiStreamSink, dut, "m_axis")

    def pause(self, source, sink):
        """Makes the source and the sink pause in these patterns from now on."""
        for end, pattern in ((self.source, source), (self.sink, sink)):
            if pattern:
                end.set_pause_generator(cycle(pattern))

    async def send(self, frame, port=0):
        """Sends a frame from a network port."""
        await self.source.send(AxiStreamFrame(frame, tuser=tuser(frame, port_bit(port))))

    async def receive(self):
        """Returns the bytes and the sideband value of the next frame."""
        frame = await with_timeout(self.sink.recv(compact=False), 100, "us")
        assert len(set(frame.tuser)) == 1, "all beats of a frame have the same sideband value"
        kept = bytes(byte for byte, keep in zip(frame.tdata, frame.tkeep) if keep)
        return kept, frame.tuser[0]

    async def nothing_more(self):
        """Waits until all frames have passed, and checks that none is left."""
        await ClockCycles(self.dut.axis_aclk, 150)
        assert self.sink.empty()


async def board(dut, source=None, sink=None):
    """Returns a board after power-up."""
    made = Board(dut)
    await power_up(dut)
    made.pause(source, sink)
    return made


def vectors(count, floats, seed):
    """Returns a vector of floats of many magnitudes for each of `count` workers."""
    rng = random.Random(seed)
    return [[single(rng.uniform(-1, 1) * 2.0 ** rng.randint(-20, 20)) for _ in range(floats)] for _ in range(count)]


@cocotb.test()
@cocotb.parametrize(source=PAUSES, sink=PAUSES)
async def ordinary_traffic_is_untouched(dut, source, sink):
    """Frames of all edge lengths pass in order and with their sideband values, even while a job is configured."""
    there = await board(dut, source, sink)
    await there.host.configure(members=4, floats=3, threshold=4)
    rng = random.Random(1)
    frames = [rng.randbytes(length) for length in LENGTHS + LENGTHS[::-1]]
    # These frames differ from contributions only in the ToS or in the port.
    frames += [contribution(0, b"x" * 40, tos=0), contribution(0, b"x" * 40).replace(b"\x1e\x1f", b"\x1e\x1e", 1)]
    for frame in frames:
        await there.send(frame, port=2)
    for frame in frames:
        assert await there.receive() == (frame, tuser(frame, port_bit(2)))
    assert await there.host.counter("ORDINARY") == len(frames)
    await there.nothing_more()


@cocotb.test()
async def registers_follow_the_convention(dut):
    """ID, VERSION, RESET, FLIP, DEBUG, PKTIN and PKTOUT behave as in all NetFPGA cores."""
    there = await board(dut)
    read = lambda name: there.host.read(OFFSETS[name])
    assert await read("ID") == IDENTITY["ID"]
    assert await read("VERSION") == IDENTITY["VERSION"]
    assert await read("STATUS") == 0x100, "the accelerator is halted after reset"
    for value in (0x12345678, 0xFFFF0000):
        await there.host.write(OFFSETS["FLIP"], value)
        await there.host.write(OFFSETS["DEBUG"], value)
        assert await read("FLIP") == value ^ 0xFFFFFFFF
        assert await read("DEBUG") == value
    for _ in range(3):
        await there.send(bytes(70))
        await there.receive()
    assert (await read("PKTIN"), await read("PKTOUT")) == (3, 3)
    assert await there.host.counter("ORDINARY") == 3
    await there.host.write(OFFSETS["RESET"], 1)
    assert (await read("PKTIN"), await read("PKTOUT")) == (0, 0)
    assert await there.host.counter("ORDINARY") == 0
    assert await read("DEBUG") == 0xFFFF0000, "RESET zeroes only the counters"


@cocotb.test()
@cocotb.parametrize(floats=[1, 3, 4, 11, 366], pauses=PAUSES)
async def four_workers_make_one_result(dut, floats, pauses):
    """Four contributions produce one result whose bytes, including the IPv4 checksum, equal those from scapy."""
    there = await board(dut, pauses, pauses)
    await there.host.configure(members=4, floats=floats, threshold=4, base=BASE)
    given = vectors(4, floats, floats)
    for number, vector in enumerate(given):
        await there.send(contribution(number, payload(0, BASE, 1, vector)), port=number)
    expected = result(payload(0, BASE, 4, sums(given)))
    assert await there.receive() == (expected, tuser(expected, 0, RESULT_PORTS))
    await there.nothing_more()
    assert await there.host.counter("SUMMED") == 3
    assert await there.host.counter("COMPLETED") == 1


@cocotb.test()
async def refused_contributions_are_counted_not_summed(dut):
    """Duplicates, unknown members, wrong lengths, late and stale contributions change no sum and leave no frame."""
    there = await board(dut)
    await there.host.configure(members=4, floats=9, threshold=4, base=BASE)
    given = vectors(4, 9, 5)
    wrong = [3.0] * 9
    send = lambda number, vector, at=BASE: there.send(contribution(number, payload(0, at, 1, vector)), port=0)
    await send(0, given[0])
    await send(0, wrong)
    await send(5, wrong)
    await send(1, given[1])
    await send(2, wrong + [1.0])
    await send(2, wrong, BASE - 1)
    await send(2, wrong, BASE + 1)
    await send(2, given[2])
    await send(3, given[3])
    await send(1, wrong)
    expected = result(payload(0, BASE, 4, sums(given)))
    assert (await there.receive())[0] == expected
    await there.nothing_more()
    events = {"DUPLICATE": 1, "UNKNOWN_MEMBER": 1, "LENGTH_MISMATCH": 1, "STALE_ROUND": 1, "EARLY_ROUND": 1, "LATE": 1,
              "SUMMED": 3, "COMPLETED": 1, "ORDINARY": 0}
    assert {event: await there.host.counter(event) for event in events} == events


@cocotb.test()
async def control_packets_go_on_and_results_take_turns(dut):
    """A control packet passes; ordinary frames and results leave intact, and each kind keeps its order."""
    there = await board(dut, sink=(1, 1, 1, 0))
    await there.host.configure(members=2, floats=20, threshold=2, base=BASE)
    ordinary, expected = [], []
    for turn in range(6):
        given = vectors(2, 20, turn)
        for number in range(2):
            await there.send(contribution(number, payload(0, BASE + turn, 1, given[number])))
            frame = bytes([turn, number]) * (40 + 9 * turn)
            ordinary.append(frame)
            await there.send(frame)
        expected.append(result(payload(0, BASE + turn, 2, sums(given))))
    control = contribution(0, bytes(20), tos=CONTROL_TOS)
    ordinary.append(control)
    await there.send(control)
    received = [(await there.receive())[0] for _ in range(len(ordinary) + len(expected))]
    results = [frame for frame in received if frame in expected]
    assert results == expected
    assert [frame for frame in received if frame not in expected] == ordinary
    assert await there.host.counter("CONTROL") == 1


@cocotb.test()
async def frames_that_end_too_early_harm_no_other(dut):
    """Every other frame ends too early. The sums of the frames between them are correct, even if the output is slow."""
    there = await board(dut, sink=(1, 1, 1, 0))
    await there.host.configure(members=1, floats=366, threshold=1, base=BASE)
    given = vectors(6, 366, 8)
    for turn, vector in enumerate(given):
        frame = contribution(0, payload(0, BASE + turn, 1, vector))
        sent = frame if turn % 2 == 0 else frame[: 32 * (2 + turn // 2)]
        await there.source.send(AxiStreamFrame(sent, tuser=tuser(frame, port_bit(0))))
    received = [(await there.receive())[0] for _ in given]
    for turn, vector in enumerate(given):
        expected = result(payload(0, BASE + turn, 1, vector))
        assert len(received[turn]) == len(expected)
        assert turn % 2 == 1 or received[turn] == expected, f"result {turn}"
    await there.nothing_more()
