"""Encoding and decoding of packets (SPEC.md, sections 2 and 3)."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from .elements import ElementType

TOS_CONTROL = 0x0C
TOS_DATA = 0x1C
VERSION = 1
FLAG_AUTHENTICATED = 1
ROUND_BITS = 24
ROUND_MASK = (1 << ROUND_BITS) - 1
SEG_LEN = 8
MIN_PADDED_LEN = 60
# Value of the field that means no contributions (D-3).
NO_CONTRIBUTIONS = 65_535
MAX_RANGE_SEGMENTS = 1024

HEADER = struct.Struct("<BBHII")
JOIN = struct.Struct("<IHHBBHIHBBIHHQQQHBBQ")
ACK = struct.Struct("<BBHHHIHBBQIIQ4sHH")
RANGE = struct.Struct("<III")
NAME = struct.Struct("<HBBBB")
UNKNOWN_RANK = 65_535
# Longest texts of a Name in bytes, and code points that they do not contain (N-1, N-2).
MAX_JOB_LEN, MAX_OWNER_LEN, MAX_HOST_LEN = 32, 32, 63
FORBIDDEN = [
    (0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x61C, 0x61C), (0x180E, 0x180E), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F),
    (0xFEFF, 0xFEFF), (0xFFF0, 0xFFFB), (0xE0000, 0xE0FFF),
]  # fmt: skip


class WireError(ValueError):
    """The bytes are not a packet of the protocol."""


class Action(IntEnum):
    JOIN = 1
    LEAVE = 2
    RESET = 3
    SET_H = 4
    FBCAST = 5
    HELP = 6
    HALT = 7
    ACK = 8
    CONFIRM = 9
    DIGEST = 10
    GROUP = 11
    PROBE = 12
    HEARD = 13
    NAME = 14
    WAITING = 15
    ABSENT = 16


class Status(IntEnum):
    SUCCESS = 0
    UNKNOWN_MEMBER = 3
    SEGMENT_SIZE_MISMATCH = 6
    NO_CAPACITY = 11
    STALE_ROUND = 12
    HALTED = 15
    CHALLENGE = 23
    ELEMENT_TYPE_MISMATCH = 26


class Standing(IntEnum):
    FRESH = 0
    RESUMED = 1
    SUPPLIES = 2
    AWAITS = 3


JOIN_QUERY, JOIN_RESUME, JOIN_TAGGED, JOIN_ROAMS, JOIN_UPDATES, JOIN_FRESH = 1, 2, 4, 8, 16, 32
JOIN_GROUPS, JOIN_PART = 64, 128
ACK_FORMED, ACK_ORPHANED, ACK_PINNED = 1, 2, 4
ACK_PARTS_SHIFT = 4


def is_after(one: int, other: int) -> bool:
    """Returns whether a round comes after another (D-1, RFC 1982 with 24 bits)."""
    distance = (one - other) & ROUND_MASK
    return 0 < distance < 1 << (ROUND_BITS - 1)


@dataclass(frozen=True)
class Seg:
    """Header of a data packet (D-1)."""

    index: int
    round: int
    contributions: int

    def emit(self) -> bytes:
        contributions = self.contributions or NO_CONTRIBUTIONS
        return struct.pack("<Q", contributions << 48 | self.round << 24 | self.index)

    @classmethod
    def parse(cls, payload: bytes, element: ElementType) -> "Seg":
        elements, rest = divmod(len(payload) - SEG_LEN, element.size)
        if elements < 1 or rest:
            raise WireError(f"a data packet of {len(payload)} bytes, expected {SEG_LEN} and a positive multiple of {element.size}")
        (word,) = struct.unpack_from("<Q", payload)
        contributions = {0: 1, NO_CONTRIBUTIONS: 0}.get(word >> 48, word >> 48)
        return cls(word & 0xFFFFFF, word >> 24 & ROUND_MASK, contributions)


@dataclass(frozen=True)
class Resume:
    """Resume part of a Join, with which a member of an earlier incarnation continues the job (M-8)."""

    round: int
    members: int
    threshold: int
    history: int
    previous: int
    weight: int
    behind: int = 0
    fresh: bool = False


@dataclass(frozen=True)
class Join:
    gradient_len: int
    segment_floats: int
    workers: int
    mode: int
    instance: int
    rank: int
    kind: int = 0
    weight: int = 1
    height: int = 0
    flags: int = 0
    nonce: int = 0
    resume: Resume | None = None
    contributions: ElementType = ElementType.F32
    results: ElementType = ElementType.F32

    def emit(self) -> bytes:
        flags, known = self.flags, self.resume or Resume(0, 0, 0, 0, 0, 0)
        if self.resume:
            flags |= JOIN_RESUME | (JOIN_FRESH if known.fresh else 0)
        own = (self.gradient_len, self.segment_floats, self.workers, self.mode, self.kind, self.weight, self.instance, self.rank)
        before = (known.round, known.members, known.threshold, known.history, known.previous, known.behind, known.weight)
        return JOIN.pack(*own, flags, self.height, *before, self.contributions, self.results, self.nonce)


@dataclass(frozen=True)
class SegmentSet:
    """Set of segments of a round: a range, and a bit for each of its segments (C-7)."""

    round: int
    first: int
    count: int
    segments: tuple[int, ...]

    @classmethod
    def of(cls, round: int, segments: list[int]) -> "SegmentSet":
        """Creates a set of segments in ascending order that lie in one range."""
        first, count = (segments[0], segments[-1] - segments[0] + 1) if segments else (0, 0)
        return cls(round, first, count, tuple(segments))

    def emit(self) -> bytes:
        bits = bytearray((self.count + 7) // 8)
        for segment in self.segments:
            at = segment - self.first
            bits[at // 8] |= 1 << at % 8
        return RANGE.pack(self.round, self.first, self.count) + bits

    @classmethod
    def parse(cls, value: bytes) -> "SegmentSet":
        if len(value) < RANGE.size:
            raise WireError(f"a set of segments in {len(value)} bytes, expected at least {RANGE.size}")
        round, first, count = RANGE.unpack_from(value)
        bits = value[RANGE.size :]
        if count > MAX_RANGE_SEGMENTS or len(bits) < (count + 7) // 8:
            raise WireError(f"{count} segments, and {len(bits)} bytes of bits")
        return cls(round, first, count, tuple(first + at for at in range(count) if bits[at // 8] >> at % 8 & 1))


@dataclass(frozen=True)
class Ack:
    action: int
    status: int
    member: int
    members: int
    threshold: int
    round: int
    window: int
    standing: int
    flags: int
    boot: int
    lease_ms: int
    expected: int
    history: int
    peer: bytes
    peer_port: int
    weight: int
    missing: SegmentSet | None

    @property
    def formed(self) -> bool:
        return bool(self.flags & ACK_FORMED)

    @property
    def pinned_threshold(self) -> int:
        """Returns H if it was set by SetH, and zero otherwise."""
        return self.threshold if self.flags & ACK_PINNED else 0

    @property
    def element_types(self) -> tuple[int, int]:
        """Returns the codes of the job's contributions and results that an ElementTypeMismatch states (C-8)."""
        return self.expected % 256, self.expected // 256

    @classmethod
    def parse(cls, value: bytes) -> "Ack":
        if len(value) < ACK.size:
            raise WireError(f"an Ack with a value of {len(value)} bytes, expected at least {ACK.size}")
        fields = ACK.unpack_from(value)
        names_segments = fields[0] in (Action.HELP, Action.CONFIRM) and fields[1] == Status.SUCCESS
        missing = SegmentSet.parse(value[ACK.size :]) if names_segments else None
        return cls(*fields, missing)

    def emit(self) -> bytes:
        """Encodes the Ack as a switch does, for comparison with the golden packets."""
        begin = (self.action, self.status, self.member, self.members, self.threshold, self.round, self.window, self.standing)
        rest = (self.flags, self.boot, self.lease_ms, self.expected, self.history, self.peer, self.peer_port, self.weight)
        return ACK.pack(*begin, *rest) + (self.missing.emit() if self.missing else b"")


@dataclass(frozen=True)
class Name:
    """Names of a job and of a member (N-1)."""

    job: str = ""
    owner: str = ""
    host: str = ""
    rank: int | None = None

    def emit(self) -> bytes:
        texts = [self._text(*text) for text in ((self.job, MAX_JOB_LEN), (self.owner, MAX_OWNER_LEN), (self.host, MAX_HOST_LEN))]
        rank = UNKNOWN_RANK if self.rank is None else self.rank
        return NAME.pack(rank, *map(len, texts), 0) + b"".join(texts)

    @staticmethod
    def _text(text: str, max_len: int) -> bytes:
        data = text.encode()
        if len(data) > max_len or any(low <= ord(character) <= high for character in text for low, high in FORBIDDEN):
            raise WireError(f"the text {text!r} in a Name, expected at most {max_len} bytes of printable UTF-8")
        return data


@dataclass(frozen=True)
class Control:
    """Control packet without its trailer."""

    action: int
    job: int
    request: int
    value: bytes = b""
    flags: int = 0

    def emit(self, length: int = 0) -> bytes:
        """Encodes the packet, padded to at least this length (C-4)."""
        return (HEADER.pack(self.action, VERSION, self.flags, self.job, self.request) + self.value).ljust(length, b"\0")

    @classmethod
    def parse(cls, payload: bytes) -> "Control":
        if len(payload) < HEADER.size:
            raise WireError(f"a control packet of {len(payload)} bytes, expected at least {HEADER.size}")
        action, version, flags, job, request = HEADER.unpack_from(payload)
        if version != VERSION:
            raise WireError(f"version {version}, expected {VERSION}")
        return cls(action, job, request, payload[HEADER.size :], flags)


@dataclass(frozen=True)
class Layout:
    """Division of a vector into segments (D-4), and the element types of its packets (D-8)."""

    gradient_len: int
    segment_floats: int
    contributions: ElementType = ElementType.F32
    results: ElementType = ElementType.F32

    @property
    def segments(self) -> int:
        return -(-self.gradient_len // self.segment_floats)

    def floats_of(self, index: int) -> int:
        return min(self.segment_floats, self.gradient_len - index * self.segment_floats)

    @property
    def longest_packet_len(self) -> int:
        """Returns the length of the longest data packet that a member sends or receives, without a tag."""
        return SEG_LEN + max(self.contributions.size, self.results.size) * self.floats_of(0)

    def cut(self, vector: list[float]) -> list[bytes]:
        """Returns the contributions of a vector, segment by segment."""
        if len(vector) != self.gradient_len:
            raise ValueError(f"a vector of {len(vector)} floats, expected {self.gradient_len}")
        data, step = self.contributions.pack(vector), self.contributions.size * self.segment_floats
        return [data[at : at + step] for at in range(0, len(data), step)]

    def join(self, parts: list[bytes]) -> list[float]:
        """Returns the vector of the results of all segments."""
        return self.results.unpack(b"".join(parts))
