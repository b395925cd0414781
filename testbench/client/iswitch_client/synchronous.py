"""Member of a synchronous job (SPEC.md, sections 5, 6 and 9)."""

from . import history
from .member import Member, Refused, Timer
from .wire import ROUND_MASK, Ack, Action, Resume, Seg, Standing, Status, is_after

# Distance to a higher segment whose result means that this segment's result was lost (F-2).
GAP_SEGMENTS = 64


class RoundFailed(Exception):
    """The other members have finished the round without this one."""


class Round:
    """Round in progress: the segments that were sent and the results that have arrived."""

    def __init__(self, number: int, parts: list[bytes] | None, contributions: int):
        """`parts` is None for a member that awaits a sum to which it does not contribute."""
        self.number, self.parts, self.contributions = number, parts, contributions
        # Number of segments that were sent, in ascending order (F-4).
        self.sent = 0
        self.results: dict[int, tuple[int, bytes]] = {}
        self.asked: set[int] = set()
        self.probe: int | None = None

    def in_flight(self, segments: int) -> list[int]:
        """Returns the sent segments without a result, or all segments without one if the member awaits a sum."""
        end = segments if self.parts is None else self.sent
        return [index for index in range(end) if index not in self.results]


class SynchronousMember(Member):
    """Member that sums vectors with those of the other members."""

    MODE = 0

    def __init__(self, *arguments, **options):
        self._number = 0
        self._previous = 0
        self._has_history = False
        self._vector: list[float] | None = None
        self._round: Round | None = None
        self._supplying = False
        self._history_awaited: int | None = None
        # Sum that the member holds: its segments, as they were received and are supplied again (M-10), and the number of contributions in
        # them.
        self._last: tuple[list[bytes], int] | None = None
        self._outcome: tuple[list[float], int] | None = None
        self._timer = Timer()
        super().__init__(*arguments, **options)

    def all_reduce(self, vector: list[float]) -> tuple[list[float], int]:
        """Returns the sum of the members' vectors, and the number of vectors in it."""
        self._vector, self._outcome = vector, None
        if not self._joining and self._round is None:
            self._begin_round()
        while self._outcome is None:
            self.turn()
        return self._outcome

    def _begin_round(self) -> None:
        self._round = Round(self._number, self.job.layout.cut(self._vector), 1) if self._vector is not None else None
        self._timer = Timer()

    def _resume(self) -> Resume | None:
        if self.history == 0:
            return None
        known = (self._number, self._members, self._threshold, self.history, self._previous, self._weight)
        return Resume(*known, fresh=not self._has_history)

    def _forgotten(self) -> None:
        self._round = None
        self._supplying = False

    def _admitted(self, now: float, ack: Ack) -> None:
        self._number, self._history_awaited = ack.round, None
        if ack.standing == Standing.AWAITS:
            self.counts.awaited += 1
            self._history_awaited = ack.history
            self._round, self._timer = Round(ack.round, None, 0), Timer()
            self._ask_for_all()
        elif ack.standing == Standing.SUPPLIES:
            if self._last is None:
                raise Refused("the switch requests a sum that this member does not hold")
            self.counts.supplied += 1
            self.history, self._supplying = ack.history, True
            self._round, self._timer = Round(ack.round, *self._last), Timer()
        else:
            if ack.standing == Standing.FRESH and self.history not in (0, ack.history):
                raise Refused("the switch admits this member without the previous sums, and this client cannot fetch the state from a peer")
            self._adopt(ack.history)
            self._begin_round()

    def _adopt(self, before: int) -> None:
        if before != self.history:
            self.history, self._previous, self._last = before, 0, None
            self._has_history = before == history.begin(self.epoch, self.job.number, self._number)

    # Sending within the window, and requests after a silence.

    def _act(self, now: float) -> float:
        current = self._round
        if current is None:
            return now + 1
        if current.parts is not None:
            done = sum(index < current.sent for index in current.results)
            while current.sent < len(current.parts) and current.sent - done < self._window:
                self._send_part(current.sent)
                current.sent += 1
        if self._timer.deadline <= now:
            self._timer.silence(now)
            self._after_silence()
        return self._timer.deadline

    def _send_part(self, index: int) -> None:
        current = self._round
        self._send_data(index, current.number, current.contributions, current.parts[index])

    def _after_silence(self) -> None:
        current = self._round
        in_flight = current.in_flight(self.job.layout.segments)
        if self._timer.silences == 1 and in_flight:
            current.asked.clear()
            current.probe = self._ask(Action.HELP, current.number, in_flight[:1])
        else:
            self._ask_for_all()

    def _ask_for_all(self) -> None:
        current = self._round
        current.probe = None
        in_flight = current.in_flight(self.job.layout.segments)
        current.asked.update(in_flight)
        self._ask(Action.HELP, current.number, in_flight)

    # Results and answers.

    def _result(self, now: float, seg: Seg, elements: bytes) -> None:
        current = self._round
        if current is None or seg.round != current.number or seg.index in current.results:
            return
        current.results[seg.index] = (seg.contributions, elements)
        current.probe = None
        self._timer.progress(now)
        if len(current.results) == self.job.layout.segments:
            return self._finish()
        overtaken = [at for at in current.in_flight(self.job.layout.segments) if at + GAP_SEGMENTS < seg.index]
        overtaken = [at for at in overtaken if at not in current.asked]
        current.asked.update(overtaken)
        self._ask(Action.HELP, current.number, overtaken)
        return None

    def _finish(self) -> None:
        current, self._round = self._round, None
        self._number = (current.number + 1) & ROUND_MASK
        if self._supplying:
            self._supplying = False
            return self._begin_round()
        results = [current.results[index] for index in range(self.job.layout.segments)]
        parts, contributions = [elements for _, elements in results], results[0][0]
        if any(count != contributions for count, _ in results):
            raise Refused(f"round {current.number}: segments count {sorted({count for count, _ in results})} contributions")
        after = history.after(self.history, self.epoch, current.number)
        self._previous, self.history = self.history, self._history_awaited or after
        self._history_awaited, self._has_history = None, True
        self._last = (parts, contributions)
        self._vector, self._outcome = None, (self.job.layout.join(parts), contributions)
        return None

    def _answered(self, now: float, ack: Ack, request: int, round_trip: float | None) -> None:
        current = self._round
        if current is None:
            return
        if ack.status == Status.STALE_ROUND and ack.formed and ack.action in (Action.HELP, Action.ACK):
            self._stale(ack)
        elif ack.status == Status.SUCCESS and ack.action == Action.HELP and ack.missing.round == current.number:
            if round_trip is not None:
                self._timer.measured(round_trip)
            for index in ack.missing.segments:
                if current.parts is not None and index < current.sent and index not in current.results:
                    self.counts.resent += 1
                    self._send_part(index)
            if request == current.probe:
                self._ask_for_all()

    def _stale(self, ack: Ack) -> None:
        if not is_after(ack.round, self._round.number):
            return
        self.counts.stale += 1
        self._number, self._supplying, self._history_awaited = ack.round, False, None
        is_known = ack.history == self.history
        self._adopt(ack.history)
        self._begin_round()
        if not is_known:
            self._round = None
            raise RoundFailed(f"continues at round {ack.round}")
