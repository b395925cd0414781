"""The host and the workers of a simulated accelerator: registers, frames, streams."""

import logging
import re
import struct
from pathlib import Path

from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiStreamBus
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

REPOSITORY = Path(__file__).parents[2]
PORT = 7711
DATA_TOS = 0x1C
CONTROL_TOS = 0x0C
SWITCH_MAC = "02:00:00:00:00:53"
SWITCH_ADDRESS = "10.0.0.1"
BROADCAST_ADDRESS = "10.0.0.255"
BROADCAST_MAC = "ff:ff:ff:ff:ff:ff"
NETWORK_PORTS = 0x55
HOST_PORT = 0x02
PACE_10G = 25
MIN_FRAME_LEN_BYTES = 60


def constants(file, kind):
    """Returns the constants of a type in a source file, by name."""
    text = (REPOSITORY / file).read_text()
    found = re.findall(rf"pub const (\w+): {kind} = (0x[0-9A-Fa-f_]+|\d+);", text)
    assert found, f"{file} has no constants of type {kind}"
    return {name: int(value.replace("_", ""), 0) for name, value in found}


def header_offsets():
    """Returns the byte offsets of the registers in the generated C header, by name."""
    text = (REPOSITORY / "hdl/verilog/iswitch_accel.h").read_text()
    return {name: int(value, 16) for name, value in re.findall(r"#define ISWITCH_ACCEL_(\w+) (0x[0-9A-F]{3})\n", text)}


OFFSETS = header_offsets()
IDENTITY = constants("daemon/card/src/registers.rs", "u32")
EVENTS = constants("hdl/src/accelerator/records.rs", "u64")


def swapped(half):
    """Returns a 16-bit number with its bytes swapped."""
    return (half & 0xFF) << 8 | half >> 8


def port_bit(port):
    """Returns the one-hot bit of a network port in `tuser`."""
    return 1 << 2 * port


def tuser(frame, source=0, destination=0):
    """Returns the sideband value of a frame's beats."""
    return len(frame) | source << 16 | destination << 24


def result_ports(members):
    """Returns the `tuser` destination of results in a job with this number of members: their ports, and the host's."""
    ports = HOST_PORT
    for number in range(members):
        ports |= port_bit(number % 4)
    return ports


def padded(frame):
    """Returns a frame padded to the minimum length."""
    return bytes(frame).ljust(MIN_FRAME_LEN_BYTES, b"\0")


def worker_mac(number):
    """Returns the MAC address of a worker."""
    return f"02:00:00:00:01:{number + 10:02x}"


def worker_address(number):
    """Returns the IPv4 address of a worker."""
    return f"10.0.0.{number + 10}"


def payload(index, round_number, contributions, floats):
    """Returns the Seg field followed by the floats (requirements D-1, D-2)."""
    seg = index | round_number << 24 | contributions << 48
    return struct.pack("<Q", seg) + struct.pack(f"<{len(floats)}f", *floats)


def contribution(number, data, tos=DATA_TOS, to=SWITCH_ADDRESS):
    """Returns the frame of a worker's contribution."""
    ip = IP(src=worker_address(number), dst=to, tos=tos, flags="DF", id=0, ttl=64)
    udp = UDP(sport=4000, dport=PORT)
    return padded(Ether(src=worker_mac(number), dst=SWITCH_MAC) / ip / udp / data)


def result(data):
    """Returns the frame of a result. Scapy fills in the lengths and the IPv4 checksum; UDP has no checksum."""
    ip = IP(src=SWITCH_ADDRESS, dst=BROADCAST_ADDRESS, tos=DATA_TOS, flags="DF", id=0, ttl=64)
    udp = UDP(sport=PORT, dport=PORT, chksum=0)
    return padded(Ether(src=SWITCH_MAC, dst=BROADCAST_MAC) / ip / udp / data)


def help_for(number, round_number, first, count, bitmap, job=3):
    """Returns the frame of a worker's Help for the segments whose bits are set in the number `bitmap` (section 3)."""
    action, version, flags, request = 6, 1, 0, 1
    head = struct.pack("<BBHII", action, version, flags, job, request)
    data = head + struct.pack("<III", round_number, first, count) + bitmap.to_bytes((count + 7) // 8, "little")
    return contribution(number, data, tos=CONTROL_TOS)


def single(value):
    """Rounds to binary32. After a single addition in binary64, the result equals that of an addition in binary32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def sums(vectors):
    """Returns the sum of the workers' vectors, added in the order of the list."""
    total = [0.0] * len(vectors[0])
    for vector in vectors:
        total = [single(a + b) for a, b in zip(total, vector)]
    return total


def stream(kind, dut, prefix):
    """Returns a source or a sink at the given ports. It does not log each frame."""
    end = kind(AxiStreamBus.from_prefix(dut, prefix), dut.axis_aclk, dut.axis_resetn, reset_active_level=False)
    end.log.setLevel(logging.WARNING)
    return end


class Host:
    """Host that reads and writes the registers over AXI4-Lite."""

    def __init__(self, dut):
        self.dut = dut
        self.master = AxiLiteMaster(
            AxiLiteBus.from_prefix(dut, "S_AXI"), dut.axis_aclk, dut.axis_resetn, reset_active_level=False
        )
        for half in (self.master.read_if, self.master.write_if):
            half.log.setLevel(logging.WARNING)

    async def read(self, offset):
        """Returns the value of a register."""
        return int.from_bytes((await self.master.read(offset, 4)).data, "little")

    async def write(self, offset, value):
        """Writes a register."""
        await self.master.write(offset, value.to_bytes(4, "little"))

    async def counter(self, event):
        """Returns the counter of an event. The names are those in records.rs."""
        return await self.read(OFFSETS["COUNTERS"] + 4 * EVENTS[event])

    async def configure(self, members, floats, threshold, base=7, segments=1, job=3, pace=PACE_10G, budget=None):
        """Starts a job with the same writes, in the same order, as `JobSetup::writes`. The default budget is also the same."""
        head = result(b"\0" * 8)
        word = lambda at: struct.unpack_from("<I", head, at)[0]
        half = lambda at: struct.unpack_from("<H", head, at)[0]
        checksum = sum(half(at) for at in range(14, 34, 2) if at not in (16, 24))
        for _ in range(2):
            checksum = (checksum & 0xFFFF) + (checksum >> 16)
        writes = [
            ("CONTROL", 0b11), ("THRESHOLD", threshold), ("BASE_ROUND", base), ("LAST_INDEX", segments - 1),
            ("FLOATS", floats | floats << 16), ("JOB", job),
            ("FILTER", DATA_TOS | CONTROL_TOS << 8 | swapped(PORT) << 16),
            ("TO_MAC", word(0)), ("MACS", word(4)), ("FROM_MAC", word(8)),
            ("FROM_ADDRESS", word(26)), ("TO_ADDRESS", word(30)), ("PORTS", half(34) | half(36) << 16),
            ("RESULT", DATA_TOS | HOST_PORT << 8 | checksum << 16),
        ]
        for name, value in writes:
            await self.write(OFFSETS[name], value)
        for row in range(8):
            at = OFFSETS["MEMBERS"] + 8 * row
            if row < members:
                address = bytes(int(part) for part in worker_address(row).split("."))
                await self.write(at, int.from_bytes(address, "little"))
                await self.write(at + 4, swapped(4000) | 1 << 16 | port_bit(row % 4) << 24)
            else:
                await self.write(at + 4, 0)
        await self.write(OFFSETS["REPEATS"], max(256, 8 * segments) if budget is None else budget)
        await self.write(OFFSETS["RESET"], 1 << 4)
        await self.write(OFFSETS["CONTROL"], 0b01 | pace << 8)
        while await self.read(OFFSETS["STATUS"]) & 1 << 9:
            pass


async def power_up(dut):
    """Starts the clock, resets the board, and waits until all memories are clear."""
    Clock(dut.axis_aclk, 5, "ns").start()
    dut.axis_resetn.value = 0
    await ClockCycles(dut.axis_aclk, 4)
    dut.axis_resetn.value = 1
    await ClockCycles(dut.axis_aclk, 300)
