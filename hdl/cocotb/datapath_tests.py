"""Tests of the accelerator in a small model of the reference switch: four workers, their results, other traffic."""

import random
from itertools import cycle

import cocotb
from bench import (
    BROADCAST_MAC, CONTROL_TOS, NETWORK_PORTS, OFFSETS, PACE_10G, Host, contribution, help_for, payload, port_bit, power_up,
    result, result_ports, single, stream, sums, tuser, worker_mac,
)
from cocotb.triggers import ClockCycles, Timer, with_timeout
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiStreamFrame, AxiStreamSink, AxiStreamSource

BASE = 7
PORTS = range(4)
CYCLE_NS = 5
# With preamble, checksum and gap, a frame of 60 bytes takes 84 bytes on the wire.
SHORT_FRAME_CYCLES = 84 / 1.25 / CYCLE_NS


class Switch:
    """The board with a source and a sink at each network port."""

    def __init__(self, dut):
        self.dut = dut
        self.host = Host(dut)
        self.sources = [stream(AxiStreamSource, dut, f"s_axis_{port}") for port in range(5)]
        self.sinks = [stream(AxiStreamSink, dut, f"m_axis_{port}") for port in PORTS]

    async def send(self, port, frame):
        """Sends a frame into a network port."""
        await self.sources[port].send(AxiStreamFrame(frame, tuser=tuser(frame, port_bit(port))))

    async def receive(self, port):
        """Returns the bytes and the sideband value of the next frame from a network port."""
        frame = await with_timeout(self.sinks[port].recv(compact=False), 100, "us")
        kept = bytes(byte for byte, keep in zip(frame.tdata, frame.tkeep) if keep)
        return kept, frame.tuser[0]

    async def settled(self):
        """Waits until all frames have passed, and checks that none is left at any port."""
        await ClockCycles(self.dut.axis_aclk, 400)
        assert [sink.count() for sink in self.sinks] == [0, 0, 0, 0]

    def dropped(self):
        """Returns the number of packets dropped at each port's queue."""
        value = int(self.dut.dropped.value)
        return [value >> 32 * port & 0xFFFFFFFF for port in PORTS]


def ordinary(to, source, length, rng):
    """Returns an ordinary frame between two MAC addresses."""
    head = bytes.fromhex(to.replace(":", "") + source.replace(":", "")) + b"\x88\xb5"
    return head + rng.randbytes(length - len(head))


def floats_of(count, rng):
    """Returns `count` random floats."""
    return [single(rng.uniform(-4, 4)) for _ in range(count)]


async def switch(dut, floats, members=4, **job):
    """Returns a board with a job and one worker at each of the first ports. The switch has learned all addresses."""
    there = Switch(dut)
    await power_up(dut)
    await there.host.configure(members=members, floats=floats, threshold=members, base=BASE, **job)
    rng = random.Random(0)
    for port in PORTS:
        hello = ordinary(BROADCAST_MAC, worker_mac(port), 60, rng)
        await there.send(port, hello)
        for other in PORTS:
            if other != port:
                assert (await there.receive(other))[0] == hello
    await there.settled()
    return there


async def contribute(there, turn, floats, rng):
    """Sends the contributions of all four workers to one round, in port order, and returns the expected result."""
    given = [floats_of(floats, rng) for _ in PORTS]
    for port in PORTS:
        await there.send(port, contribution(port, payload(0, BASE + turn, 1, given[port])))
        # Wait, because the order of arrival determines the rounding of the sum.
        await there.sources[port].wait()
    return result(payload(0, BASE + turn, 4, sums(given)))


@cocotb.test()
async def ordinary_frames_go_where_they_belong(dut):
    """Frames go to the port of a known address, or to all other ports; the frames of each pair stay in order."""
    there = await switch(dut, floats=3)
    rng = random.Random(1)
    expected = {port: {other: [] for other in PORTS} for port in PORTS}
    for _ in range(40):
        source, to = rng.sample(PORTS, 2)
        frame = ordinary(worker_mac(to), worker_mac(source), rng.choice([60, 64, 95, 96, 97, 300]), rng)
        expected[to][source].append(frame)
        await there.send(source, frame)
    for to in PORTS:
        wanted = expected[to]
        for _ in range(sum(len(frames) for frames in wanted.values())):
            frame, user = await there.receive(to)
            source = next(port for port in PORTS if wanted[port] and wanted[port][0] == frame)
            wanted[source].pop(0)
            assert user == tuser(frame, port_bit(source), port_bit(to))
    unknown = ordinary("02:00:00:00:09:09", worker_mac(2), 70, rng)
    await there.send(2, unknown)
    for port in (0, 1, 3):
        assert await there.receive(port) == (unknown, tuser(unknown, port_bit(2), NETWORK_PORTS & ~port_bit(2)))
    await there.settled()
    assert there.dropped() == [0, 0, 0, 0]


@cocotb.test()
@cocotb.parametrize(floats=[3, 366])
async def four_contributions_go_in_and_each_worker_gets_the_result(dut, floats):
    """Each port receives one result. No port receives a contribution; ordinary frames between them pass."""
    there = await switch(dut, floats)
    rng = random.Random(2)
    for turn in range(3):
        aside = ordinary(worker_mac(1), worker_mac(0), 200, rng)
        await there.send(0, aside)
        assert (await there.receive(1))[0] == aside
        expected = await contribute(there, turn, floats, rng)
        for port in PORTS:
            assert await there.receive(port) == (expected, tuser(expected, 0, result_ports(4)))
        await there.settled()
    assert await there.host.counter("COMPLETED") == 3
    assert there.dropped() == [0, 0, 0, 0]


@cocotb.test()
async def a_burst_of_results_overruns_a_slow_port(dut):
    """Results beyond the capacity of a worker's queue are lost for this worker only, and counted. The worker must
    request them again."""
    there = await switch(dut, floats=366)
    rng = random.Random(3)
    slow = 2
    there.sinks[slow].pause = True
    expected = [await contribute(there, turn, 366, rng) for turn in range(4)]
    for port in PORTS:
        if port != slow:
            assert [(await there.receive(port))[0] for _ in expected] == expected
    # A queue of 4096 bytes holds two results of 1514 bytes; the remaining space is too small for a packet of maximum
    # length. The sink has accepted no result.
    assert there.dropped() == [0, 0, 2, 0]
    there.sinks[slow].pause = False
    assert [(await there.receive(slow))[0] for _ in range(2)] == expected[:2]
    await there.settled()
    assert await there.host.counter("COMPLETED") == 4, "the switch does not retransmit by itself"


@cocotb.test()
async def results_go_to_the_ports_of_members_only(dut):
    """If a job has workers at two of the four ports, its results leave only through these two ports."""
    there = await switch(dut, floats=5, members=2)
    vectors = [floats_of(5, random.Random(number)) for number in range(2)]
    for number, vector in enumerate(vectors):
        await there.send(number, contribution(number, payload(0, BASE, 1, vector)))
        await there.sources[number].wait()
    expected = result(payload(0, BASE, 2, sums(vectors)))
    for port in (0, 1):
        assert await there.receive(port) == (expected, tuser(expected, 0, result_ports(2)))
    await there.settled()


@cocotb.test()
async def a_help_gets_the_result_at_its_own_port(dut):
    """A worker that has lost a result receives it by Help, and no other worker receives a copy of the result."""
    there = await switch(dut, 366)
    expected = await contribute(there, 0, 366, random.Random(11))
    for port in PORTS:
        assert (await there.receive(port))[0] == expected
    asked = help_for(2, BASE, 0, 1, 1)
    await there.send(2, asked)
    assert (await there.receive(2))[0] == expected
    # The lookup floods the Help, because the MAC address of the host is unknown to it.
    for port in (0, 1, 3):
        assert (await there.receive(port))[0] == asked
    await there.settled()


@cocotb.test()
@cocotb.parametrize(pace=[PACE_10G, 0])
async def paced_results_fit_into_the_output_queues(dut, pace):
    """The host finishes eight segments at once. If results are paced, none of them is lost; otherwise, the queues
    overflow."""
    there = await switch(dut, floats=366, segments=8, pace=pace)
    for sink in there.sinks:
        # One beat of 32 bytes in five cycles is 10.24 Gb/s.
        sink.set_pause_generator(cycle((0, 1, 1, 1, 1)))
    vector = floats_of(366, random.Random(4))
    for index in range(8):
        await there.send(0, contribution(0, payload(index, BASE, 1, vector)))
    await there.sources[0].wait()
    await ClockCycles(dut.axis_aclk, 200)
    for name, value in (("FINISH_ROUND", BASE), ("FINISH_FIRST", 0), ("FINISH_COUNT", 8)):
        await there.host.write(OFFSETS[name], value)
    await ClockCycles(dut.axis_aclk, 3000)
    received = [sink.count() for sink in there.sinks]
    assert await there.host.counter("FORCED") == 8
    if pace:
        assert (there.dropped(), received) == ([0] * 4, [8] * 4)
    else:
        assert min(there.dropped()) > 0 and max(received) < 8


@cocotb.test()
@cocotb.parametrize(kind=["stranger", "duplicate", "wrong_length", "late", "control"])
async def a_flood_of_short_frames_does_not_delay_other_traffic(dut, kind):
    """Three ports send tagged frames of minimum length at line rate, the fourth sends ordinary frames. The ordinary
    frames enter and leave at line rate, even while the late contributions receive results."""
    there = await switch(dut, floats=1, members=3)
    frame = flood(kind)
    if kind == "duplicate":
        await there.send(0, frame)
    if kind == "late":
        for number in range(3):
            await there.send(number, contribution(number, payload(0, BASE, 1, [1.0])))
        for port in range(3):
            await there.receive(port)
    await ClockCycles(dut.axis_aclk, 200)
    count = 200
    rng = random.Random(5)
    sent = [ordinary(worker_mac(1), worker_mac(3), 60, rng) for _ in range(count)]
    begin = get_sim_time("ns")
    for port in PORTS:
        cocotb.start_soon(at_line_rate(there, port, sent if port == 3 else [frame] * count))
    for expected in sent:
        while (await there.receive(1))[0] != expected:
            assert kind == "control", "the frames of the flood leave only if they are control packets"
    cycles = (get_sim_time("ns") - begin) / CYCLE_NS
    assert cycles < SHORT_FRAME_CYCLES * count + 100, f"{cycles} cycles"
    assert (await there.host.counter("REPEATED") > 0) == (kind == "late")


def flood(kind):
    """Returns a tagged frame of minimum length."""
    own = payload(0, BASE, 1, [1.0])
    return {
        "stranger": contribution(9, own),
        "duplicate": contribution(0, own),
        "wrong_length": contribution(0, own[:8]),
        "late": contribution(0, own),
        "control": contribution(0, bytes(12), tos=CONTROL_TOS),
    }[kind]


async def at_line_rate(there, port, frames):
    """Puts frames of minimum length into the receive queue of a port at 10 Gb/s."""
    for frame in frames:
        await there.send(port, frame)
        await Timer(round(1000 * SHORT_FRAME_CYCLES * CYCLE_NS), "ps")
