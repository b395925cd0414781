"""Member of an asynchronous job (SPEC.md, section 10)."""

import random
from dataclasses import dataclass

from . import history
from .member import Member, Refused, Timer
from .wire import ROUND_MASK, Ack, Action, Resume, Seg, Standing, Status, is_after

# Number of aggregates beyond the next one whose results are kept.
KEPT_AHEAD = 8


@dataclass(frozen=True)
class Sum:
    """Aggregate: its epoch, its number, its sum and the number of vectors in it."""

    epoch: int
    aggregate: int
    vector: list[float]
    contributions: int


class Vector:
    """Vector in flight."""

    def __init__(self, number: int, parts: list[bytes]):
        self.number, self.parts = number, parts
        self.sent = 0
        self.confirmed: set[int] = set()
        self.question: int | None = None
        self.timer = Timer()

    def unconfirmed(self) -> list[int]:
        return [index for index in range(self.sent) if index not in self.confirmed]


class AsynchronousMember(Member):
    """Member that contributes whole vectors, and takes sums in order."""

    MODE = 1

    def __init__(self, *arguments, **options):
        self._next = 0
        self._latest = 0
        self._lacks_state = False
        self._incoming: dict[int, dict[int, tuple[int, bytes]]] = {}
        self._sums: list[Sum] = []
        self._number = 0
        self._vector: Vector | None = None
        # Epoch and aggregate to which the last vector was admitted; None if the member cannot know them.
        self._admission: tuple[int, int] | None = None
        self._timer = Timer()
        super().__init__(*arguments, **options)

    def submit(self, vector: list[float]) -> tuple[int, int] | None:
        """Contributes a vector, and returns the epoch and the aggregate that contain it.

        Returns None if the vector was lost when the switch restarted.
        """
        while self._joining:
            self.turn()
        self._admission = None
        self._vector = Vector(self._number, self.job.layout.cut(vector))
        self._number = (self._number + 1) & ROUND_MASK
        while self._vector:
            self.turn()
        return self._admission

    def take_sums(self) -> list[Sum]:
        """Returns the sums since the last call, in order."""
        sums, self._sums = self._sums, []
        return sums

    def applied(self, epoch: int, aggregate: int) -> bool:
        """Returns whether the sum of an aggregate was taken, or can no longer be taken."""
        return epoch != self.epoch or is_after(self._next, aggregate)

    def _resume(self) -> Resume | None:
        if self.history == 0:
            return None
        known = (self._next, self._members, self._threshold, self.history, 0, self._weight)
        return Resume(*known, fresh=self._lacks_state)

    def _forgotten(self) -> None:
        self._instance = random.getrandbits(32)
        self.counts.lost += self._vector is not None
        self._vector = None

    def _admitted(self, now: float, ack: Ack) -> None:
        self._continue_at(ack.round, ack.history)
        self._number = (self._instance + self.epoch) & ROUND_MASK
        if ack.standing != Standing.RESUMED:
            # The sums of an earlier membership are not part of the history with which the job begins.
            is_first = self.counts.rejoins == 0
            is_beginning = ack.history == history.begin(self.epoch, self.job.number, ack.round)
            self._lacks_state = not (is_first and is_beginning)
            self.counts.missed += self._lacks_state

    def _continue_at(self, aggregate: int, before: int) -> None:
        self._next = self._latest = aggregate
        self.history = before
        self._incoming.clear()
        self._timer = Timer()

    def _act(self, now: float) -> float:
        if self._timer.deadline <= now:
            self._timer.silence(now)
            self._ask_for_next()
        if self._vector is None:
            return self._timer.deadline
        return min(self._timer.deadline, self._send_vector(now))

    def _ask_for_next(self) -> None:
        known = self._incoming.get(self._next, {})
        missing = [index for index in range(self.job.layout.segments) if index not in known]
        self._ask(Action.HELP, self._next, missing)

    def _send_vector(self, now: float) -> float:
        vector = self._vector
        begins = vector.sent
        while vector.sent < len(vector.parts) and vector.sent - len(vector.confirmed) < self._window:
            self._send_part(vector.sent)
            vector.sent += 1
        if begins != vector.sent or vector.timer.deadline <= now:
            vector.timer.silence(now)
            self._confirm()
        return vector.timer.deadline

    def _send_part(self, index: int) -> None:
        self._send_data(index, self._vector.number, 1, self._vector.parts[index])

    def _confirm(self) -> None:
        vector = self._vector
        # If all segments are confirmed, the answer must still name the aggregate.
        asked = vector.unconfirmed() or [vector.sent - 1]
        vector.question = self._ask(Action.CONFIRM, vector.number, asked)

    def _answered(self, now: float, ack: Ack, request: int, round_trip: float | None) -> None:
        if ack.action == Action.CONFIRM:
            self._confirm_answered(now, ack, request, round_trip)
        elif ack.action == Action.HELP and ack.status == Status.SUCCESS:
            if round_trip is not None:
                self._timer.measured(round_trip)
            if self.history == 0 and ack.missing.round == self._next:
                self.history = ack.history
        elif ack.action == Action.HELP and ack.status == Status.STALE_ROUND and is_after(ack.round, self._next):
            self.counts.missed += 1
            self._lacks_state = True
            latest = self._latest if is_after(self._latest, ack.round) else ack.round
            self._continue_at(latest, 0)
            self._ask_for_next()

    def _confirm_answered(self, now: float, ack: Ack, request: int, round_trip: float | None) -> None:
        vector = self._vector
        if vector is None:
            return
        if ack.status == Status.STALE_ROUND:
            # The answer may be to a delayed Confirm of an earlier vector.
            if request == vector.question:
                raise Refused(f"Confirm of vector {vector.number}: the switch expects vector {ack.round}")
            return
        if ack.status != Status.SUCCESS or ack.missing.round != vector.number:
            return
        if round_trip is not None:
            vector.timer.measured(round_trip)
        if ack.expected == 1:
            self._admission, self._vector = (self.epoch, ack.round), None
            return
        vector.timer.progress(now)
        asked = range(ack.missing.first, ack.missing.first + ack.missing.count)
        vector.confirmed.update(index for index in asked if index < vector.sent)
        vector.confirmed.difference_update(ack.missing.segments)
        for index in ack.missing.segments:
            if index < vector.sent:
                self.counts.resent += 1
                self._send_part(index)
        if ack.missing.segments:
            self._confirm()

    def _result(self, now: float, seg: Seg, elements: bytes) -> None:
        if is_after(self._next, seg.round):
            return
        if is_after(seg.round, self._latest):
            self._latest = seg.round
        if (seg.round - self._next) & ROUND_MASK >= KEPT_AHEAD:
            return
        self._incoming.setdefault(seg.round, {})[seg.index] = (seg.contributions, elements)
        if seg.round == self._next:
            self._timer.progress(now)
        while len(self._incoming.get(self._next, {})) == self.job.layout.segments:
            self._take()

    def _take(self) -> None:
        results = self._incoming.pop(self._next)
        parts = [results[index][1] for index in range(self.job.layout.segments)]
        counts = {count for count, _ in results.values()}
        if len(counts) != 1:
            raise Refused(f"aggregate {self._next}: segments count {sorted(counts)} contributions")
        self._sums.append(Sum(self.epoch, self._next, self.job.layout.join(parts), counts.pop()))
        if self.history:
            self.history = history.after(self.history, self.epoch, self._next)
        self._lacks_state = False
        self._next = (self._next + 1) & ROUND_MASK
