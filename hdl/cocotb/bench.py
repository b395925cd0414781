"""The host's and the workers' side of a simulated accelerator: registers, frames, streams."""

import logging
import re
import struct
from pathlib import Path

from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiStreamBus
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

SOURCES = Path(__file__).parents[1] / "src/accelerator"
PORT = 7711
DATA_TOS = 0x1C
CONTROL_TOS = 0x0C
SWITCH_MAC = "02:00:00:00:00:53"
SWITCH_ADDRESS = "10.0.0.1"
BROADCAST_ADDRESS = "10.0.0.255"
BROADCAST_MAC = "ff:ff:ff:ff:ff:ff"
RESULT_PORTS = 0x55
MIN_FRAME_LEN_BYTES = 60


def constants(file, kind):
    """Constants of that type in a source file of the accelerator, by name."""
    text = (SOURCES / file).read_text()
    found = re.findall(rf"pub const (\w+): {kind} = (0x[0-9A-Fa-f_]+|\d+);", text)
    return {name: int(value.replace("_", ""), 0) for name, value in found}


OFFSETS = constants("registers.rs", "u16")
IDENTITY = constants("registers.rs", "u64")
EVENTS = constants("records.rs", "u64")


def swapped(half):
    """A 16-bit number with its bytes exchanged."""
    return (half & 0xFF) << 8 | half >> 8


def port_bit(port):
    """One-hot number of a network port in `tuser`."""
    return 1 << 2 * port


def tuser(frame, source=0, destination=0):
    """The side band of a frame's beats."""
    return len(frame) | source << 16 | destination << 24


def padded(frame):
    """A frame of at least the least length."""
    return bytes(frame).ljust(MIN_FRAME_LEN_BYTES, b"\0")


def worker_mac(number):
    """MAC address of a worker."""
    return f"02:00:00:00:01:{number + 10:02x}"


def worker_address(number):
    """IPv4 address of a worker."""
    return f"10.0.0.{number + 10}"


def payload(index, round_number, contributions, floats):
    """Seg and floats (requirements D-1, D-2)."""
    seg = index | round_number << 24 | contributions << 48
    return struct.pack("<Q", seg) + struct.pack(f"<{len(floats)}f", *floats)


def contribution(number, data, tos=DATA_TOS):
    """A worker's frame."""
    ip = IP(src=worker_address(number), dst=SWITCH_ADDRESS, tos=tos, flags="DF", id=0, ttl=64)
    udp = UDP(sport=4000, dport=PORT)
    return padded(Ether(src=worker_mac(number), dst=SWITCH_MAC) / ip / udp / data)


def result(data):
    """The frame of a result. Scapy fills in lengths and the IPv4 checksum; UDP has none."""
    ip = IP(src=SWITCH_ADDRESS, dst=BROADCAST_ADDRESS, tos=DATA_TOS, flags="DF", id=0, ttl=64)
    udp = UDP(sport=PORT, dport=PORT, chksum=0)
    return padded(Ether(src=SWITCH_MAC, dst=BROADCAST_MAC) / ip / udp / data)


def single(value):
    """Rounded to binary32. After one addition in binary64 that is the same as to have added in binary32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def sums(vectors):
    """The sum of the workers' vectors, in the order in which they come."""
    total = [0.0] * len(vectors[0])
    for vector in vectors:
        total = [single(a + b) for a, b in zip(total, vector)]
    return total


def stream(kind, dut, prefix):
    """A source or a sink at those ports, which does not log each frame."""
    end = kind(AxiStreamBus.from_prefix(dut, prefix), dut.axis_aclk, dut.axis_resetn, reset_active_level=False)
    end.log.setLevel(logging.WARNING)
    return end


class Host:
    """Reads and writes the registers by AXI4-Lite."""

    def __init__(self, dut):
        self.dut = dut
        self.master = AxiLiteMaster(
            AxiLiteBus.from_prefix(dut, "S_AXI"), dut.axis_aclk, dut.axis_resetn, reset_active_level=False
        )
        for half in (self.master.read_if, self.master.write_if):
            half.log.setLevel(logging.WARNING)

    async def read(self, offset):
        """A register's value."""
        return int.from_bytes((await self.master.read(offset, 4)).data, "little")

    async def write(self, offset, value):
        """Writes a register."""
        await self.master.write(offset, value.to_bytes(4, "little"))

    async def counter(self, event):
        """How often an event was counted; names as in records.rs."""
        return await self.read(OFFSETS["COUNTERS"] + 4 * EVENTS[event])

    async def configure(self, members, floats, threshold, base=7, segments=1, job=3):
        """Begins a job, with the same writes in the same order as `JobSetup::writes`."""
        head = result(b"\0" * 8)
        word = lambda at: struct.unpack_from("<I", head, at)[0]
        half = lambda at: struct.unpack_from("<H", head, at)[0]
        checksum = sum(half(at) for at in range(14, 34, 2) if at not in (16, 24))
        for _ in range(2):
            checksum = (checksum & 0xFFFF) + (checksum >> 16)
        writes = [
            ("CONTROL", 0b10), ("THRESHOLD", threshold), ("BASE_ROUND", base), ("LAST_INDEX", segments - 1),
            ("FLOATS", floats | floats << 16), ("JOB", job),
            ("FILTER", DATA_TOS | CONTROL_TOS << 8 | swapped(PORT) << 16),
            ("TO_MAC", word(0)), ("MACS", word(4)), ("FROM_MAC", word(8)),
            ("FROM_ADDRESS", word(26)), ("TO_ADDRESS", word(30)), ("PORTS", half(34) | half(36) << 16),
            ("RESULT", DATA_TOS | RESULT_PORTS << 8 | checksum << 16),
        ]
        for name, value in writes:
            await self.write(OFFSETS[name], value)
        for row in range(8):
            at = OFFSETS["MEMBERS"] + 8 * row
            if row < members:
                address = bytes(int(part) for part in worker_address(row).split("."))
                await self.write(at, int.from_bytes(address, "little"))
                await self.write(at + 4, swapped(4000) | 1 << 16)
            else:
                await self.write(at + 4, 0)
        await self.write(OFFSETS["RESET"], 1 << 4)
        await self.write(OFFSETS["CONTROL"], 0b01)
        while await self.read(OFFSETS["STATUS"]) & 1 << 9:
            pass


async def power_up(dut):
    """Clock, reset, and the time until all memories are clear."""
    Clock(dut.axis_aclk, 5, "ns").start()
    dut.axis_resetn.value = 0
    await ClockCycles(dut.axis_aclk, 4)
    dut.axis_resetn.value = 1
    await ClockCycles(dut.axis_aclk, 300)
