"""Tests of the top module through its streams and registers: ordinary traffic, registers, sums, refused frames."""

import random
from itertools import cycle

import cocotb
from bench import (
    CONTROL_TOS, DATA_TOS, HOST_PORT, IDENTITY, OFFSETS, Host, contribution, help_for, payload, port_bit, power_up, result,
    result_ports, single, stream, sums, tuser,
)
from cocotb.triggers import ClockCycles, FallingEdge, with_timeout
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
        """Makes the source and the sink pause in the given patterns from now on; `None` means no pauses."""
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
    # These frames differ from contributions only in the ToS, in the port or in the destination address.
    frames += [contribution(0, b"x" * 40, tos=0), contribution(0, b"x" * 40).replace(b"\x1e\x1f", b"\x1e\x1e", 1)]
    frames += [contribution(0, b"x" * 40, tos, to="10.0.0.2") for tos in (DATA_TOS, CONTROL_TOS)]
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
    assert await read("STATUS") == 0xFF000100, "after reset, the accelerator is halted, and all budgets are 0"
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
    assert await there.receive() == (expected, tuser(expected, 0, result_ports(4)))
    await there.nothing_more()
    assert await there.host.counter("SUMMED") == 3
    assert await there.host.counter("COMPLETED") == 1


@cocotb.test()
async def refused_contributions_are_counted_not_summed(dut):
    """Duplicates, unknown members, wrong lengths, late and stale contributions change no sum and leave no frame. The late
    contribution receives the result again."""
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
    assert await there.receive() == (expected, tuser(expected, 0, result_ports(4)))
    assert await there.receive() == (expected, tuser(expected, 0, port_bit(1)))
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
    both = [await there.receive() for _ in range(len(ordinary) + len(expected))]
    received = [frame for frame, _ in both]
    assert (control, tuser(control, port_bit(0), HOST_PORT)) in both, "the host receives a control packet"
    results = [frame for frame in received if frame in expected]
    assert results == expected
    assert [frame for frame in received if frame not in expected] == ordinary
    assert await there.host.counter("CONTROL") == 1


@cocotb.test()
@cocotb.parametrize(sink=PAUSES)
async def frames_that_end_too_early_are_dropped(dut, sink):
    """Every second frame ends before the length in `tuser`, at the end of a beat or within one. None of these frames is
    summed: the only result of each round is that of the whole frame that follows."""
    there = await board(dut, sink=sink)
    await there.host.configure(members=1, floats=366, threshold=1, base=BASE)
    ends = [42, 50, 64, 65, 96, 1024, 1503, 1504, 1505, 1513]
    given = vectors(len(ends), 366, 8)
    for turn, (vector, end) in enumerate(zip(given, ends)):
        frame = contribution(0, payload(0, BASE + turn, 1, vector))
        user = tuser(frame, port_bit(0))
        await there.source.send(AxiStreamFrame(frame[:end], tuser=user))
        await there.source.send(AxiStreamFrame(frame, tuser=user))
    for turn, vector in enumerate(given):
        assert (await there.receive())[0] == result(payload(0, BASE + turn, 1, vector)), f"result {turn}"
    await there.nothing_more()
    assert await there.host.counter("MALFORMED") == len(ends)
    assert await there.host.counter("COMPLETED") == len(ends)


@cocotb.test()
async def results_keep_the_header_of_their_job(dut):
    """A job begins while results of the previous job wait. These leave with the header of their own job."""
    there = await board(dut)
    await there.host.configure(members=1, floats=3, threshold=1, base=BASE)
    there.sink.pause = True
    old = vectors(8, 3, 9)
    for turn, vector in enumerate(old):
        await there.send(contribution(0, payload(0, BASE + turn, 1, vector)))
    await there.source.wait()
    await ClockCycles(dut.axis_aclk, 40)
    assert await there.host.read(OFFSETS["STATUS"]) & 1 << 11, "busy"
    await there.host.configure(members=1, floats=3, threshold=1, base=BASE + 100)
    new_port = 0x2222
    await there.host.write(OFFSETS["PORTS"], new_port | new_port << 16)
    there.sink.pause = False
    new = vectors(3, 3, 10)
    for turn, vector in enumerate(new):
        await there.send(contribution(0, payload(0, BASE + 100 + turn, 1, vector)))
    for turn, vector in enumerate(old):
        assert (await there.receive())[0] == result(payload(0, BASE + turn, 1, vector)), f"old result {turn}"
    for turn, vector in enumerate(new):
        expected = bytearray(result(payload(0, BASE + 100 + turn, 1, vector)))
        expected[34:38] = b"\x22" * 4
        assert (await there.receive())[0] == expected, f"new result {turn}"
    await there.nothing_more()
    assert not await there.host.read(OFFSETS["STATUS"]) & 1 << 11


@cocotb.test()
async def values_out_of_range_are_refused(dut):
    """A value out of its range changes nothing, and a bit of STATUS shows that it was refused."""
    there = await board(dut)
    await there.host.configure(members=4, floats=9, threshold=4, base=BASE)
    wrong = [("THRESHOLD", 0), ("THRESHOLD", 65), ("THRESHOLD", 300), ("BASE_ROUND", 1 << 24), ("LAST_INDEX", 1 << 24),
             ("FLOATS", 0), ("FLOATS", 367 | 1 << 16), ("FLOATS", 3 | 4 << 16), ("FLOATS", 3), ("FINISH_COUNT", 1025)]
    for name, value in wrong:
        before = await there.host.read(OFFSETS[name])
        await there.host.write(OFFSETS[name], value)
        assert await there.host.read(OFFSETS[name]) == before, (name, value)
        assert await there.host.read(OFFSETS["STATUS"]) == 4 | 1 << 12, (name, value)
        await there.host.write(OFFSETS["RESET"], 1)
        assert await there.host.read(OFFSETS["STATUS"]) == 4, "clearing the counters clears the bit"
    for name, value in [("THRESHOLD", 64), ("THRESHOLD", 1 << 31 | 1), ("FLOATS", 366 | 1 << 16)]:
        await there.host.write(OFFSETS[name], value)
        assert not await there.host.read(OFFSETS["STATUS"]) & 1 << 12, (name, value)


@cocotb.test()
async def a_reset_of_one_cycle_suffices(dut):
    """After one cycle of reset in the middle of frames, no beat from before it leaves, and whole frames pass again."""
    there = await board(dut)
    frame = bytes(range(250))
    for offset in range(16):
        for _ in range(3):
            await there.send(frame, port=1)
        await ClockCycles(dut.axis_aclk, 10 + offset)
        dut.axis_resetn.value = 0
        await ClockCycles(dut.axis_aclk, 1)
        dut.axis_resetn.value = 1
        await FallingEdge(dut.axis_aclk)
        assert not dut.m_axis_tvalid.value, "no beat leaves in the cycle after a reset"
        assert not dut.s_axis_tready.value, "no beat is taken in the cycle after a reset"
        there.source.clear()
        there.sink.clear()
        await ClockCycles(dut.axis_aclk, 350)
        assert there.sink.empty(), "nothing is left from before the reset"
        await there.send(frame, port=2)
        assert await there.receive() == (frame, tuser(frame, port_bit(2)))


@cocotb.test()
@cocotb.parametrize(floats=[1, 11, 366], pauses=PAUSES)
async def results_are_repeated_to_the_member_that_asks(dut, floats, pauses):
    """A late contribution and a Help are answered with the results of this round and the previous one, only at the
    requester's port."""
    there = await board(dut, pauses, pauses)
    await there.host.configure(members=4, floats=floats, threshold=4, base=BASE, segments=3)
    results = {}
    for at in range(BASE, BASE + 2):
        for index in range(3):
            given = vectors(4, floats, 100 * at + index)
            for number, vector in enumerate(given):
                await there.send(contribution(number, payload(index, at, 1, vector)), port=number)
            results[index, at] = result(payload(index, at, 4, sums(given)))
            assert await there.receive() == (results[index, at], tuser(results[index, at], 0, result_ports(4)))
    late = vectors(1, floats, 1)[0]
    for index, at, number in ((1, BASE + 1, 2), (0, BASE, 3)):
        await there.send(contribution(number, payload(index, at, 1, late)), port=number)
        expected = results[index, at]
        assert await there.receive() == (expected, tuser(expected, 0, port_bit(number)))
    # A Help passes to the host, and its results follow in ascending order.
    for at, bitmap in ((BASE, 0b101), (BASE + 1, 0b110)):
        asked = help_for(1, at, 0, 3, bitmap)
        await there.send(asked, port=1)
        assert await there.receive() == (asked, tuser(asked, port_bit(1), HOST_PORT))
        for index in range(3):
            if bitmap >> index & 1:
                expected = results[index, at]
                assert await there.receive() == (expected, tuser(expected, 0, port_bit(1)))
    await there.nothing_more()
    assert await there.host.counter("REPEATED") == 6
    assert await there.host.counter("LATE") == 2


@cocotb.test()
async def a_spent_budget_ends_the_repeats(dut):
    """A member receives no more retransmitted results than its budget allows; further requests are counted."""
    there = await board(dut)
    await there.host.configure(members=2, floats=3, threshold=2, base=BASE, budget=2)
    given = vectors(2, 3, 1)
    for number, vector in enumerate(given):
        await there.send(contribution(number, payload(0, BASE, 1, vector)))
    expected = result(payload(0, BASE, 2, sums(given)))
    assert (await there.receive())[0] == expected
    await ClockCycles(dut.axis_aclk, 50)
    for _ in range(5):
        await there.send(contribution(0, payload(0, BASE, 1, given[0])))
        await ClockCycles(dut.axis_aclk, 100)
    for _ in range(2):
        assert await there.receive() == (expected, tuser(expected, 0, port_bit(0)))
    await there.nothing_more()
    assert await there.host.read(OFFSETS["SKIPPED"]) == 3
    assert await there.host.read(OFFSETS["STATUS"]) >> 24 == 1


@cocotb.test()
async def the_tables_show_slots_and_rounds(dut):
    """The host reads who has contributed to a segment, and the state of the rounds."""
    there = await board(dut)
    await there.host.configure(members=4, floats=3, threshold=4, base=BASE, segments=2)
    given = vectors(4, 3, 1)
    for number in (0, 1, 2, 3):
        await there.send(contribution(number, payload(0, BASE, 1, given[number])))
    await there.receive()
    for number in (1, 3):
        await there.send(contribution(number, payload(1, BASE, 1, given[number])))
    await ClockCycles(dut.axis_aclk, 100)
    read = lambda name: there.host.read(OFFSETS[name])
    await there.host.write(OFFSETS["SLOT"], 1)
    assert await read("SLOT_STATE") & ~8 == 0b1 | 0b1010 << 8 | 2 << 16
    assert (await read("SLOT_ROUND"), await read("SLOT_SEGMENT")) == (BASE, 1)
    await there.host.write(OFFSETS["SLOT"], 0)
    assert await read("SLOT_STATE") & ~8 == 0b10 | 0b1111 << 8 | 4 << 16
    assert await read("ROUND_NEXT") == BASE + 1
    assert await read("ROUND_ODD") == 1, "round 7 is odd, and one of its segments is not finished"
    assert await read("ROUND_RULES") >> 16 == 4 | 0b1111 << 8
