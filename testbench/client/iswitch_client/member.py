"""Common part of the members of both kinds of jobs: joining, rejoining, requests, heartbeats and names (SPEC.md, sections 4, 9 and 14)."""

import random
import socket
import time
from dataclasses import dataclass, replace

from .auth import DATA_TAG_LEN, TRAILER_LEN, Authenticator, DataTags
from .channel import Channel
from .wire import (
    JOIN_TAGGED,
    MAX_HOST_LEN,
    MAX_RANGE_SEGMENTS,
    MIN_PADDED_LEN,
    SEG_LEN,
    TOS_CONTROL,
    Ack,
    Action,
    Control,
    Join,
    Layout,
    Name,
    Resume,
    Seg,
    SegmentSet,
    Status,
    WireError,
)

# Seconds between repeated Joins (M-12).
JOIN_INTERVAL = (0.02, 0.1)
# Bounds of the retransmission timeout in seconds (F-2).
MIN_TIMEOUT, MAX_TIMEOUT = 0.002, 0.25
# Largest number of attempts to state the names (N-3).
MAX_NAME_TRIES = 8
PADDED = {Action.LEAVE, Action.FBCAST, Action.HELP, Action.CONFIRM, Action.DIGEST, Action.HEARD, Action.NAME, Action.WAITING}


class Refused(Exception):
    """The switch does not let the member continue."""


@dataclass(frozen=True)
class Job:
    """Properties of a job that a member knows before it joins."""

    number: int
    layout: Layout
    workers: int
    key: bytes | None = None
    tagged: bool = False
    # Whether the member may use smaller segments if the switch requests them (H-10).
    may_shrink_segments: bool = False


@dataclass
class Counts:
    """Event counters of a member."""

    joins: int = 0
    challenges: int = 0
    rejoins: int = 0
    supplied: int = 0
    awaited: int = 0
    helps: int = 0
    resent: int = 0
    stale: int = 0
    lost: int = 0
    missed: int = 0


class Timer:
    """Retransmission timeout (F-2, RFC 6298)."""

    def __init__(self) -> None:
        self._smoothed: float | None = None
        self._variation = 0.0
        self.silences = 0
        self._since = time.monotonic()

    def measured(self, round_trip: float) -> None:
        if self._smoothed is None:
            self._smoothed, self._variation = round_trip, round_trip / 2
        else:
            self._variation += (abs(self._smoothed - round_trip) - self._variation) / 4
            self._smoothed += (round_trip - self._smoothed) / 8

    def progress(self, now: float) -> None:
        self._since, self.silences = now, 0

    def silence(self, now: float) -> None:
        self._since = now
        self.silences += 1

    @property
    def deadline(self) -> float:
        base = 0.02 if self._smoothed is None else self._smoothed + 4 * self._variation
        base = max(base, MIN_TIMEOUT) * 2 ** min(self.silences, 10)
        return self._since + min(base, MAX_TIMEOUT)


class Member:
    """Worker at a switch. Subclasses implement rounds or aggregates."""

    MODE: int

    def __init__(self, channel: Channel, job: Job, rank: int):
        self.channel, self.job, self.rank = channel, job, rank
        self.counts = Counts()
        self.epoch = 0
        self.history = 0
        self._past_epochs = [0, 0]
        self._name_request = self._name_tries = 0
        self._instance = random.getrandbits(32)
        self._auth = Authenticator(job.key) if job.key else None
        self._tags: DataTags | None = None
        self._members = self._weight = self._threshold = self._window = 0
        self._lease = 0.0
        self._last_sent = 0.0
        self._request = random.getrandbits(31)
        # Pending requests and the times at which they were sent.
        self._asked: dict[int, float] = {}
        self._leaving: int | None = None
        self._left = False
        self._begin_joining(time.monotonic())

    # Methods of subclasses.

    def _resume(self) -> Resume | None:
        raise NotImplementedError

    def _admitted(self, now: float, ack: Ack) -> None:
        raise NotImplementedError

    def _forgotten(self) -> None:
        raise NotImplementedError

    def _answered(self, now: float, ack: Ack, request: int, round_trip: float | None) -> None:
        raise NotImplementedError

    def _result(self, now: float, seg: Seg, elements: bytes) -> None:
        raise NotImplementedError

    def _act(self, now: float) -> float:
        """Performs the work that is due, and returns the time of the next deadline."""
        raise NotImplementedError

    # Turns.

    def turn(self) -> None:
        """Performs the work that is due, and waits for packets until the next deadline."""
        now = time.monotonic()
        timeout = self._deadline(now) - now
        for _ in range(64):
            packet = self.channel.receive(timeout)
            if packet is None:
                return
            self._handle(time.monotonic(), *packet)
            timeout = 0.0

    def _deadline(self, now: float) -> float:
        if self._joining:
            if self._join_at <= now:
                self._send_join(now)
            return self._join_at
        heartbeat_at = self._last_sent + self._lease / 4
        if heartbeat_at <= now:
            self._heartbeat()
        return min(self._act(now), max(heartbeat_at, now))

    def leave(self) -> None:
        """Leaves the job (C-6: the request is repeated until it is answered)."""
        while not self._left:
            self._leaving = self._send(Action.LEAVE)
            until = time.monotonic() + 0.05
            while not self._left and (now := time.monotonic()) < until:
                packet = self.channel.receive(until - now)
                if packet:
                    self._handle(time.monotonic(), *packet)

    # Sending.

    def _seal_control(self, packet: bytes, is_join: bool) -> bytes:
        self._last_sent = time.monotonic()
        return self._auth.seal(packet, is_join) if self._auth else packet

    def _send(self, action: Action, value: bytes = b"", request: int | None = None) -> int:
        """Sends a request, and returns its number."""
        if request is None:
            self._request = request = (self._request + 1) & 0xFFFFFFFF or 1
        length = MIN_PADDED_LEN if action in PADDED else 0
        packet = Control(action, self.job.number, request, value).emit(length)
        self.channel.send_control(self._seal_control(packet, is_join=False))
        return request

    def _heartbeat(self) -> None:
        """Sends an empty Help that requests no Ack (M-6)."""
        self._send(Action.HELP, SegmentSet(0, 0, 0, ()).emit(), request=0)
        if self._name_tries:
            self._name_tries -= 1
            name = Name(job="independent-client", host=socket.gethostname()[:MAX_HOST_LEN], rank=self.rank)
            self._send(Action.NAME, name.emit(), request=self._name_request)

    def _ask(self, action: Action, round: int, segments: list[int]) -> int:
        """Sends as many requests about segments of a round as their range needs (C-7), and returns the number of the last one."""
        request = 0
        while segments:
            some = [segment for segment in segments if segment < segments[0] + MAX_RANGE_SEGMENTS]
            segments = segments[len(some) :]
            request = self._send(action, SegmentSet.of(round, some).emit())
            self._asked[request] = time.monotonic()
            self.counts.helps += 1
        return request

    def _send_data(self, index: int, round: int, contributions: int, elements: bytes) -> None:
        packet = Seg(index, round, contributions).emit() + elements
        self.channel.send_data(self._tags.seal(packet) if self._tags else packet)
        self._last_sent = time.monotonic()

    # Joining.

    def _begin_joining(self, now: float) -> None:
        self._joining = True
        self._nonce = 0
        self._asked.clear()
        self._request = self._join_request = (self._request + 1) & 0xFFFFFFFF or 1
        self._join_at = now

    def _send_join(self, now: float) -> None:
        """Sends a Join, padded to the length of the longest data packet including trailer and tag (C-4, A-1)."""
        job = self.job
        flags = JOIN_TAGGED if job.tagged else 0
        layout = job.layout
        join = Join(
            layout.gradient_len,
            layout.segment_floats,
            job.workers,
            self.MODE,
            self._instance,
            self.rank,
            flags=flags,
            nonce=self._nonce,
            resume=self._resume(),
            contributions=layout.contributions,
            results=layout.results,
        )
        length = layout.longest_packet_len + (DATA_TAG_LEN if job.tagged else 0)
        length -= TRAILER_LEN if self._auth else 0
        packet = Control(Action.JOIN, job.number, self._join_request, join.emit()).emit(length)
        self.channel.send_control(self._seal_control(packet, is_join=True))
        self.counts.joins += 1
        shortest, longest = JOIN_INTERVAL
        self._join_at = now + (max(shortest, min(longest, self._lease / 8)) if self._lease else longest)

    def _join_answered(self, now: float, ack: Ack) -> None:
        if ack.status == Status.CHALLENGE:
            self.counts.challenges += 1
            self._nonce = ack.history
            self._send_join(now)
        elif ack.status == Status.SEGMENT_SIZE_MISMATCH and self._shrink_segments(ack.expected):
            self._begin_joining(now)
        elif ack.status == Status.ELEMENT_TYPE_MISMATCH:
            contributions, results = ack.element_types
            raise Refused(f"Join: the element types of the job have the codes {contributions} (contributions) and {results} (results)")
        elif ack.status != Status.SUCCESS:
            raise Refused(f"Join: status {ack.status}, expected {ack.expected}")
        else:
            self._lease = ack.lease_ms / 1000
            if ack.formed:
                self._enter(now, ack)

    def _shrink_segments(self, floats: int) -> bool:
        """Takes smaller segments for a job of which the member has no sums yet, and returns whether that was possible (H-10)."""
        layout = self.job.layout
        if not self.job.may_shrink_segments or self.history or not 0 < floats < layout.segment_floats:
            return False
        self.job = replace(self.job, layout=replace(layout, segment_floats=floats))
        return True

    def _enter(self, now: float, ack: Ack) -> None:
        if self.epoch and ack.boot != self.epoch:
            self._past_epochs = [self._past_epochs[1], self.epoch]
        self.counts.rejoins += self.epoch != 0
        self.epoch = ack.boot
        self._window = ack.window
        self._note(ack)
        if self.job.tagged and self.job.key:
            self._tags = DataTags(self.job.key, self._nonce, self.epoch, self.job.number)
        self._joining = False
        # A new number for each admission (N-3).
        self._request = self._name_request = (self._request + 1) & 0xFFFFFFFF or 1
        self._name_tries = MAX_NAME_TRIES
        self._heartbeat()
        self._admitted(now, ack)

    def _note(self, ack: Ack) -> None:
        """Records the values of the job that the Resume part of a Join must repeat (M-8)."""
        self._members, self._weight, self._threshold = ack.members, ack.weight, ack.pinned_threshold

    # Receiving.

    def _handle(self, now: float, tos: int, payload: bytes) -> None:
        try:
            if tos == TOS_CONTROL:
                self._handle_control(now, payload)
            elif not self._joining:
                self._handle_data(now, payload)
        except WireError:
            return

    def _handle_data(self, now: float, payload: bytes) -> None:
        content = self._tags.open(payload) if self._tags else payload
        if content is None:
            return
        layout = self.job.layout
        seg, elements = Seg.parse(content, layout.results), content[SEG_LEN:]
        if seg.index < layout.segments and len(elements) == layout.results.size * layout.floats_of(seg.index):
            self._result(now, seg, elements)

    def _handle_control(self, now: float, payload: bytes) -> None:
        if self._auth:
            opened = self._auth.open(payload, self._nonce if self._joining else 0)
            if opened is None:
                return
            payload = opened
        control = Control.parse(payload)
        if control.flags or control.job not in (0, self.job.number):
            return
        if control.action == Action.HALT:
            raise Refused("the job is halted")
        if control.action != Action.ACK:
            return
        ack = Ack.parse(control.value)
        if self._leaving is not None:
            self._left = ack.action == Action.LEAVE or ack.status == Status.UNKNOWN_MEMBER
        elif self._joining:
            if ack.action == Action.JOIN and control.request == self._join_request:
                self._join_answered(now, ack)
        elif ack.action != Action.JOIN:
            self._handle_ack(now, ack, control.request)

    def _handle_ack(self, now: float, ack: Ack, request: int) -> None:
        is_of_the_past = ack.boot in self._past_epochs
        if ack.status == Status.UNKNOWN_MEMBER or (ack.boot != self.epoch and not is_of_the_past):
            self._forgotten()
            return self._begin_joining(now)
        if is_of_the_past:
            return None
        if ack.status == Status.SUCCESS:
            self._note(ack)
        if ack.status == Status.HALTED:
            raise Refused("the job is halted")
        if request == self._name_request:
            self._name_tries = 0
            return None
        sent = self._asked.pop(request, None)
        return self._answered(now, ack, request, None if sent is None else now - sent)
