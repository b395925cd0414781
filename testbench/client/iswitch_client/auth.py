"""Keys, trailers of control packets and tags of data packets (SPEC.md, section 8)."""

import hashlib
import hmac
import struct
import time

from .wire import FLAG_AUTHENTICATED, HEADER

FROM_MEMBER, FROM_SWITCH = 1, 2
TRAILER_LEN = 24
DATA_TAG_LEN = 8
MASK = (1 << 64) - 1


def read_key(path: str) -> bytes:
    """Reads a key file: one line of hexadecimal digits."""
    with open(path, encoding="ascii") as file:
        return bytes.fromhex(file.read().strip())


def data_key(key: bytes, direction: int, context: int, job: int) -> bytes:
    """Returns the key of tags (A-9)."""
    content = bytes([direction]) + struct.pack("<QI", context, job) + b"iswitch data"
    return hmac.new(key, content, hashlib.sha256).digest()[:16]


def trailer_tag(key: bytes, direction: int, context: int, content: bytes) -> bytes:
    """Returns the tag of a control packet; `content` is everything before the tag (A-2)."""
    message = bytes([direction]) + struct.pack("<Q", context) + content
    return hmac.new(key, message, hashlib.sha256).digest()[:16]


def _rotate(x: int, bits: int) -> int:
    return (x << bits | x >> 64 - bits) & MASK


def siphash13(key: bytes, data: bytes) -> int:
    """Computes SipHash with one round for each word and three at the end (Aumasson and Bernstein, 2012)."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def sip_round() -> None:
        v[0] = (v[0] + v[1]) & MASK
        v[2] = (v[2] + v[3]) & MASK
        v[1] = _rotate(v[1], 13) ^ v[0]
        v[3] = _rotate(v[3], 16) ^ v[2]
        v[0] = _rotate(v[0], 32)
        v[2] = (v[2] + v[1]) & MASK
        v[0] = (v[0] + v[3]) & MASK
        v[1] = _rotate(v[1], 17) ^ v[2]
        v[3] = _rotate(v[3], 21) ^ v[0]
        v[2] = _rotate(v[2], 32)

    whole = len(data) // 8 * 8
    words = [*struct.unpack(f"<{whole // 8}Q", data[:whole])]
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    for word in words:
        v[3] ^= word
        sip_round()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        sip_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


class DataTags:
    """Tags of contributions and results in one membership."""

    def __init__(self, key: bytes, session: int, epoch: int, job: int):
        self._contributions = data_key(key, FROM_MEMBER, session, 0)
        self._results = data_key(key, FROM_SWITCH, epoch, job)

    def seal(self, packet: bytes) -> bytes:
        return packet + siphash13(self._contributions, packet).to_bytes(8, "little")

    def open(self, packet: bytes) -> bytes | None:
        """Returns the packet without its tag, or None if the tag is wrong."""
        content, tag = packet[:-DATA_TAG_LEN], packet[-DATA_TAG_LEN:]
        return content if tag == siphash13(self._results, content).to_bytes(8, "little") else None


class Authenticator:
    """Creates the trailers of the packets that a member sends, and verifies the trailers of those that it receives."""

    def __init__(self, key: bytes):
        self._key = key
        self._counter = time.time_ns()
        # Counters of packets that an answer with context zero may still repeat.
        self._unanswered: set[int] = set()
        self._session = 0
        self._last_heard = 0

    def _tag(self, direction: int, context: int, content: bytes) -> bytes:
        return trailer_tag(self._key, direction, context, content)

    def seal(self, packet: bytes, is_join: bool) -> bytes:
        """Returns a packet with its trailer. Joins have context zero."""
        self._counter += 1
        self._unanswered.add(self._counter)
        flags = struct.unpack_from("<H", packet, 2)[0] | FLAG_AUTHENTICATED
        content = packet[:2] + struct.pack("<H", flags) + packet[4:] + struct.pack("<Q", self._counter)
        return content + self._tag(FROM_MEMBER, 0 if is_join else self._session, content)

    def open(self, packet: bytes, awaited_session: int) -> bytes | None:
        """Returns the packet without its trailer, or None if it is not authentic.

        `awaited_session` is the nonce of the pending Join, or zero if there is none. The Ack that grants a Join already
        belongs to the new session.
        """
        if len(packet) < HEADER.size + TRAILER_LEN or not packet[2] & FLAG_AUTHENTICATED:
            return None
        content, tag = packet[:-16], packet[-16:]
        (counter,) = struct.unpack("<Q", content[-8:])
        opened = packet[:2] + b"\0\0" + packet[4:-TRAILER_LEN]
        for session in {self._session, awaited_session} - {0}:
            if hmac.compare_digest(tag, self._tag(FROM_SWITCH, session, content)):
                last = self._last_heard if session == self._session else 0
                if counter <= last:
                    return None
                self._session, self._last_heard = session, counter
                return opened
        if hmac.compare_digest(tag, self._tag(FROM_SWITCH, 0, content)) and counter in self._unanswered:
            self._unanswered.remove(counter)
            return opened
        return None
