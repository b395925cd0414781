"""Comparison with the golden packets of the repository, which are normative examples, when they are decoded and encoded."""

import json
import math
import socket
import struct
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from .auth import FROM_MEMBER, FROM_SWITCH, TRAILER_LEN, DataTags, data_key, siphash13, trailer_tag
from .elements import ElementType
from .member import PADDED
from .wire import (
    ACK_FORMED,
    ACK_ORPHANED,
    ACK_PARTS_SHIFT,
    ACK_PINNED,
    FLAG_AUTHENTICATED,
    HEADER,
    JOIN_GROUPS,
    JOIN_PART,
    JOIN_QUERY,
    JOIN_ROAMS,
    JOIN_TAGGED,
    JOIN_UPDATES,
    RANGE,
    SEG_LEN,
    UNKNOWN_RANK,
    Ack,
    Action,
    Control,
    Join,
    Name,
    Resume,
    Seg,
    SegmentSet,
)

MODES = {"Synchronous": 0, "Asynchronous": 1}
KINDS = {"Worker": 0, "Switch": 1}
STANDINGS = ["Fresh", "Resumed", "Supplies", "Awaits"]
STATUSES = {"Success": 0, "GradientLenMismatch": 5, "NoCapacity": 11, "Challenge": 23, "ElementTypeMismatch": 26}


def check_fixtures(directory: Path) -> int:
    """Compares all golden packets, and returns their number.

    Raises AssertionError with the name of a packet that differs.
    """
    check_rounding()
    files = sorted(directory.glob("*.json"))
    if not files:
        raise FileNotFoundError(f"{directory}: no golden packets")
    for file in files:
        values = json.loads(file.read_text())
        packet = bytes.fromhex(file.with_suffix(".hex").read_text())
        try:
            check(values, packet)
        except Exception as error:
            raise AssertionError(f"{file.stem}: {error}") from error
    return len(files)


def check(values: dict, packet: bytes) -> None:
    if "headers_len" in values:
        check(values["payload"], packet[values["headers_len"] :])
    elif values["class"] == "data":
        check_data(values, packet)
    else:
        expect(control(values, len(packet)), packet)
        if values["action"] == "Ack":
            check_ack(values["value"], packet)


def check_rounding() -> None:
    """Checks the rounding to 16 bits at all numbers of both types and between each two neighbours (D-8)."""
    types = [(ElementType.BF16, 0x7F80, 0x7FC0, 2.0**128), (ElementType.F16, 0x7C00, 0x7E00, 2.0**16)]
    for element, infinity, nan, limit in types:
        codes = range(infinity)
        # The first power of two out of range takes the place of infinity as a neighbour.
        numbers = [*element.unpack(encode(codes)), limit]
        middles = [(low + high) / 2 for low, high in pairwise(numbers)]
        expect_codes(element, numbers, range(infinity + 1))
        expect_codes(element, [-number for number in numbers], [0x8000 | code for code in range(infinity + 1)])
        expect_codes(element, middles, [code + code % 2 for code in codes])
        expect_codes(element, [math.nextafter(middle, 0) for middle in middles], codes)
        expect_codes(element, [math.nextafter(middle, math.inf) for middle in middles], [code + 1 for code in codes])
        expect_codes(element, [math.nan, -math.nan, math.inf, -math.inf], [nan, nan, infinity, 0x8000 | infinity])


def encode(codes: Iterable[int]) -> bytes:
    return b"".join(code.to_bytes(2, "little") for code in codes)


def expect_codes(element: ElementType, numbers: list[float], codes: Iterable[int]) -> None:
    own = struct.unpack(f"<{len(numbers)}H", element.pack(numbers))
    for number, code, expected in zip(numbers, own, codes, strict=True):
        if code != expected:
            raise AssertionError(f"{number!r} as {element}: {code:#06x}, expected {expected:#06x}")


def expect(own: object, given: object) -> None:
    if own != given:
        raise AssertionError(f"got {own!r}, the example has {given!r}")


def check_data(values: dict, packet: bytes) -> None:
    element = ElementType.of(values.get("element", "f32"))
    bits = values["float_bits" if element == ElementType.F32 else "element_bits"]
    elements = b"".join(int(digits, 16).to_bytes(element.size, "little") for digits in bits)
    own = Seg(values["index"], values["round"], values["contributions"])
    tag = values.get("tag")
    content = packet[:-8] if tag else packet
    expect(own, Seg.parse(content, element))
    expect(elements, content[SEG_LEN:])
    if element != ElementType.F32:
        expect(element.pack(element.unpack(elements)), elements)
    # A packet in the style of the paper states zero contributions, which means one.
    if content[6:8] != b"\0\0":
        expect(own.emit(), content[:SEG_LEN])
    if tag:
        key = bytes.fromhex(tag["key"])
        if "session" in tag:
            expect(DataTags(key, tag["session"], 0, 0).seal(content), packet)
        else:
            result_key = data_key(key, FROM_SWITCH, tag["boot"], tag["job"])
            expect(siphash13(result_key, content).to_bytes(8, "little"), packet[-8:])
            expect(DataTags(key, 0, tag["boot"], tag["job"]).open(packet), content)


def control(values: dict, length: int) -> bytes:
    """Returns a control packet with these values. The values do not state the padding of requests that may be padded (C-4)."""
    action = Action[{"SetH": "SET_H"}.get(values["action"], values["action"].upper())]
    trailer = values.get("trailer")
    flags = FLAG_AUTHENTICATED if trailer else 0
    value = value_of(action, values["value"]) + bytes(values["value"].get("padding_len", 0))
    padded = length - (TRAILER_LEN if trailer else 0) if action in PADDED else 0
    content = Control(action, values["job"], values["request"], value, flags).emit(padded)
    if not trailer:
        return content
    content += struct.pack("<Q", trailer["counter"])
    direction = {"ToSwitch": FROM_MEMBER, "ToMember": FROM_SWITCH}[trailer["direction"]]
    return content + trailer_tag(bytes.fromhex(trailer["key"]), direction, trailer["context"], content)


def value_of(action: Action, value: dict) -> bytes:
    match action:
        case Action.JOIN:
            return join(value).emit()
        case Action.ACK:
            return ack(value)
        case Action.HELP | Action.CONFIRM:
            return segment_set(value).emit()
        case Action.RESET:
            return struct.pack("<IQ", 0, value["boot"])
        case Action.SET_H:
            return struct.pack("<H", value["threshold"])
        case Action.FBCAST:
            return RANGE.pack(value["round"], value["first"], value["count"])
        case Action.DIGEST:
            return struct.pack("<IIQ", value["round"], 0, value["digest"])
        case Action.GROUP:
            host, port = value["address"].split(":")
            return socket.inet_aton(host) + struct.pack("<HH", int(port), 0)
        case Action.NAME:
            return Name(**value).emit()
        case Action.ABSENT:
            return absent(value)
        case Action.PROBE | Action.HEARD:
            return struct.pack("<Q", value["nonce"])
        case _:
            return b""


def absent(value: dict) -> bytes:
    entries = b""
    for member in value["members"]:
        host = member["host"].encode()
        entries += struct.pack("<HB", UNKNOWN_RANK if member["rank"] is None else member["rank"], len(host)) + host
    return struct.pack("<IHH", value["round"], value["count"], len(entries)) + entries


def segment_set(value: dict) -> SegmentSet:
    return SegmentSet(value["round"], value["first"], value["count"], tuple(value["segments"]))


def join(value: dict) -> Join:
    flags = {
        "query": JOIN_QUERY,
        "tagged": JOIN_TAGGED,
        "roams": JOIN_ROAMS,
        "updates": JOIN_UPDATES,
        "groups": JOIN_GROUPS,
    }
    names = ["gradient_len", "segment_floats", "workers", "instance", "rank", "weight", "height", "nonce"]
    return Join(
        **{name: value[name] for name in names},
        mode=MODES[value["mode"]],
        kind=KINDS[value["kind"]],
        flags=sum(bit for name, bit in flags.items() if value[name]) | (JOIN_PART if value.get("part") else 0),
        resume=Resume(**value["resume"]) if value["resume"] else None,
        contributions=ElementType.of(value["contributions"]),
        results=ElementType.of(value["results"]),
    )


def ack(value: dict) -> bytes:
    flags = {"formed": ACK_FORMED, "orphaned": ACK_ORPHANED, "pinned": ACK_PINNED}
    host, port = value["peer"].split(":") if value["peer"] else ("0.0.0.0", "0")
    own = Ack(
        **{name: value[name] for name in ["member", "members", "threshold", "round", "window", "boot"]},
        **{name: value[name] for name in ["lease_ms", "expected", "history", "weight"]},
        action=Action[value["action"].upper()],
        status=STATUSES[value["status"]],
        standing=STANDINGS.index(value["standing"]),
        flags=sum(bit for name, bit in flags.items() if value[name]) | value.get("other_parts", 0) << ACK_PARTS_SHIFT,
        peer=socket.inet_aton(host),
        peer_port=int(port),
        missing=segment_set(value["missing"]) if value["missing"] else None,
    )
    return own.emit()


def check_ack(value: dict, packet: bytes) -> None:
    """Checks the decoding of an Ack, which this client only receives."""
    end = -TRAILER_LEN if packet[2] & FLAG_AUTHENTICATED else None
    expect(Ack.parse(packet[HEADER.size : end]).emit(), ack(value))
