//! Rounds of synchronous jobs, and the state that they share with the aggregates of asynchronous jobs.

use core::time::Duration;

use iswitch_protocol::limits::ROUND_BITS;
use iswitch_protocol::wire::{Kind, Mode, Standing};
use iswitch_protocol::{Instant, Round};

use super::aggregates::Aggregates;
use super::members::Member;
use super::order::MemberOrder;
use crate::flight::Incident;
use crate::ids::{MemberId, MemberSet};
use crate::origin::Position;
use crate::round_times::RoundTimes;

/// Maximum distance, in rounds, of the base from the newest round. If the distance grows beyond this limit, the base
/// and the starts of members are moved to later rounds, because two round numbers can be compared only if they are less
/// than half of the number range apart.
const OLDEST_BASE_ROUNDS: u32 = 1 << (ROUND_BITS - 2);

/// State of the rounds of a job.
#[expect(clippy::large_enum_variant, reason = "jobs are stored in a table that is allocated at start-up")]
#[derive(Debug)]
pub(crate) enum Rounds {
    /// Each member contributes once to each round.
    Synchronous(Synchronous),
    /// Members contribute whole vectors to aggregates, each at its own pace.
    Asynchronous(Aggregates),
}

impl Rounds {
    pub(crate) fn mode(&self) -> Mode {
        match self {
            Self::Synchronous(_) => Mode::Synchronous,
            Self::Asynchronous(_) => Mode::Asynchronous,
        }
    }

    pub(crate) fn synchronous(&self) -> Option<&Synchronous> {
        match self {
            Self::Synchronous(rounds) => Some(rounds),
            Self::Asynchronous(_) => None,
        }
    }

    /// Returns whether a card sums the rounds. The core then neither sums contributions nor closes segments.
    pub(crate) fn is_on_card(&self) -> bool {
        self.synchronous().is_some_and(|rounds| rounds.on_card)
    }

    /// Takes the rounds back from the card, if it sums them. The core lacks the contributions to unfinished segments;
    /// the senders repeat them when an Ack names them as missing.
    pub(super) fn take_from_card(&mut self) {
        if let Self::Synchronous(rounds) = self {
            rounds.on_card = false;
        }
    }

    pub(super) fn synchronous_mut(&mut self) -> Option<&mut Synchronous> {
        match self {
            Self::Synchronous(rounds) => Some(rounds),
            Self::Asynchronous(_) => None,
        }
    }

    pub(crate) fn asynchronous(&self) -> Option<&Aggregates> {
        match self {
            Self::Asynchronous(aggregates) => Some(aggregates),
            Self::Synchronous(_) => None,
        }
    }

    pub(super) fn asynchronous_mut(&mut self) -> Option<&mut Aggregates> {
        match self {
            Self::Asynchronous(aggregates) => Some(aggregates),
            Self::Synchronous(_) => None,
        }
    }

    pub(crate) fn numbers(&self) -> &Numbers {
        match self {
            Self::Synchronous(rounds) => &rounds.numbers,
            Self::Asynchronous(aggregates) => aggregates.numbers(),
        }
    }

    pub(super) fn numbers_mut(&mut self) -> &mut Numbers {
        match self {
            Self::Synchronous(rounds) => &mut rounds.numbers,
            Self::Asynchronous(aggregates) => aggregates.numbers_mut(),
        }
    }

    /// Returns the state of a round that was opened and is still kept. Always `None` in an asynchronous job.
    pub(crate) fn open_round(&self, round: Round) -> Option<&OpenRound> {
        self.synchronous()?.open_round(round)
    }

    /// Returns the rounds that are open, the older one first. Always empty in an asynchronous job.
    pub(crate) fn open_rounds(&self) -> impl Iterator<Item = &OpenRound> {
        self.synchronous().into_iter().flat_map(Synchronous::open_rounds)
    }

    /// Restarts at round `base`, as if there had been no rounds before it.
    pub(super) fn restart_at(&mut self, base: Round) {
        self.numbers_mut().restart_at(base);
        match self {
            Self::Synchronous(rounds) => rounds.alive = [OpenRound::default(); 2],
            Self::Asynchronous(aggregates) => aggregates.restart_at(base),
        }
    }
}

/// Round numbers of a synchronous job, or aggregate numbers of an asynchronous job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    /// First round since the job was created or resumed.
    base: Round,
    /// Latest round that a contribution has opened.
    newest: Option<Round>,
    /// Latest round that was opened, or the first round of the job, counted without wrapping.
    position: Position,
}

impl Numbers {
    pub(super) fn from_position(position: Position) -> Self {
        Self { base: position.round(), newest: None, position }
    }

    /// Returns the first round since the job was created or resumed.
    pub(crate) fn base(&self) -> Round {
        self.base
    }

    /// Returns the latest round that was opened, or `None` if no round has been opened.
    pub(crate) fn newest(&self) -> Option<Round> {
        self.newest
    }

    /// Returns the latest round that was opened, or the first round if none was.
    pub(crate) fn current(&self) -> Round {
        self.newest.unwrap_or(self.base)
    }

    /// Returns the round that opens next.
    pub(crate) fn next(&self) -> Round {
        self.newest.map_or(self.base, Round::next)
    }

    pub(super) fn position(&self) -> Position {
        self.position
    }

    pub(super) fn restart_at(&mut self, base: Round) {
        self.base = base;
        self.position.advance(base);
        self.newest = None;
    }

    /// Makes `base` the first round and discards the rounds before it.
    pub(super) fn begin_at(&mut self, base: Round) {
        self.base = base;
    }

    /// Records the first contribution to a round. If the base had to be moved to a later round, returns the new base.
    pub(super) fn note_opened(&mut self, round: Round) -> Option<Round> {
        self.newest = Some(round);
        self.position.advance(round);
        if round.distance_from(self.base) <= OLDEST_BASE_ROUNDS {
            return None;
        }
        self.base = round.minus(OLDEST_BASE_ROUNDS / 2);
        Some(self.base)
    }
}

/// State of a stored round. It is initialized when the round opens, and updated as members leave and segments finish.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenRound {
    pub(crate) round: Round,
    /// Members that take part in the round.
    pub(crate) participants: MemberSet,
    /// Number of contributions that complete a segment.
    pub(crate) threshold: u16,
    /// Number of segments that do not have a result yet.
    pub(crate) unfinished: u32,
    /// Source of the sum, if the round replays a finished sum for members that lack it.
    pub(crate) replay: Replay,
    /// Arrival time of the first contribution.
    pub(crate) opened: Instant,
}

impl OpenRound {
    /// Returns whether all participants have left although the round is not finished.
    pub(crate) fn is_left(&self) -> bool {
        self.participants.is_empty() && self.unfinished > 0
    }
}

/// Replay mode of a round: whether it replays a sum that some members have and others lack, and the source of that
/// sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Replay {
    /// The round is summed like any other.
    #[default]
    Not,
    /// Members of this switch supply the sum.
    Here,
    /// The sum comes from the parent.
    Above,
}

/// Rounds of a synchronous job, of which two can be stored at once.
#[derive(Debug)]
pub(crate) struct Synchronous {
    numbers: Numbers,
    /// The two rounds that can be stored at once, indexed by parity.
    alive: [OpenRound; 2],
    /// Latest round whose opening was passed to the flight recorder, and latest round whose end was passed to it.
    recorded: Recorded,
    /// Order in which contributions are added, in an ordered job.
    order: Option<MemberOrder>,
    /// Whether a card sums the rounds.
    on_card: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Recorded {
    opened: Option<Round>,
    finished: Option<Round>,
}

impl Synchronous {
    pub(super) fn new(position: Position, is_ordered: bool) -> Self {
        Self {
            numbers: Numbers::from_position(position),
            alive: [OpenRound::default(); 2],
            recorded: Recorded::default(),
            order: is_ordered.then(MemberOrder::new),
            on_card: false,
        }
    }

    /// Hands the rounds over to a card.
    pub(super) fn move_to_card(&mut self) {
        self.on_card = true;
    }

    pub(super) fn order(&self) -> Option<&MemberOrder> {
        self.order.as_ref()
    }

    fn is_open(&self, parity: usize) -> bool {
        self.numbers.newest.is_some_and(|newest| {
            let round = self.alive[parity].round;
            (round == newest || round.next() == newest) && !round.is_before(self.numbers.base)
        })
    }

    pub(super) fn open_round(&self, round: Round) -> Option<&OpenRound> {
        let open = &self.alive[round.parity()];
        (open.round == round && self.is_open(round.parity())).then_some(open)
    }

    fn open_rounds(&self) -> impl Iterator<Item = &OpenRound> {
        let rounds = self.numbers.newest.map(|newest| [newest.previous(), newest]);
        rounds.into_iter().flatten().filter_map(|round| self.open_round(round))
    }

    /// Returns whether a round is open or may be opened. A round reuses the memory of the round two rounds earlier,
    /// which must be finished.
    pub(super) fn has_slot_for(&self, round: Round) -> bool {
        let parity = round.parity();
        let kept = &self.alive[parity];
        kept.round == round || !self.is_open(parity) || kept.unfinished == 0
    }

    /// Returns the earliest round that was opened and is not finished, or the latest round if all are finished.
    pub(super) fn earliest_unfinished(&self) -> Round {
        let unfinished = self.open_rounds().find(|open| open.unfinished > 0).map(|open| open.round);
        unfinished.unwrap_or(self.numbers.current())
    }

    /// Opens a round: fixes its participants, its threshold and the order in which contributions are added.
    pub(super) fn open(&mut self, open: OpenRound) {
        let parity = open.round.parity();
        self.alive[parity] = open;
        self.fix_order(parity);
    }

    fn fix_order(&mut self, parity: usize) {
        if let Some(order) = &mut self.order {
            order.fix(parity);
        }
    }

    /// Records that a segment of a round has its result.
    pub(super) fn finish_segment(&mut self, round: Round) {
        let open = &mut self.alive[round.parity()];
        if open.round == round {
            open.unfinished = open.unfinished.saturating_sub(1);
        }
    }

    /// Assigns a new member its rank in ordered sums.
    pub(super) fn order_member(&mut self, id: MemberId, member: &Member) {
        if let Some(order) = &mut self.order {
            order.insert(id, member);
        }
    }

    /// Adds a new member to the participants of the open rounds: to all of them if the job is not complete; otherwise,
    /// only to the round whose sum the member supplies, if any.
    pub(super) fn add_participant(&mut self, id: MemberId, member: &Member, is_formed: bool) {
        let supplied = (member.start.standing == Standing::Supplies).then_some(member.start.round);
        for parity in 0..2 {
            let takes_part = !is_formed || supplied == Some(self.alive[parity].round);
            if takes_part && self.is_open(parity) {
                let open = &mut self.alive[parity];
                open.participants = open.participants.with(id);
                self.fix_order(parity);
            }
        }
    }

    /// Removes a departed member from the participants, so that rounds no longer wait for it.
    pub(super) fn remove_participant(&mut self, id: MemberId) {
        for round in &mut self.alive {
            round.participants = round.participants.without(id);
        }
    }

    /// Removes a worker that continues at `round` from the participants of earlier rounds, so that they no longer
    /// wait for it. Returns false if no round waited for it.
    pub(super) fn excuse(&mut self, id: MemberId, kind: Kind, round: Round) -> bool {
        let mut is_awaited = false;
        let earlier = |open: &&mut OpenRound| kind == Kind::Worker && open.round.is_before(round);
        for open in self.alive.iter_mut().filter(earlier) {
            if open.replay == Replay::Not && open.unfinished > 0 && open.participants.contains(id) {
                open.participants = open.participants.without(id);
                is_awaited = true;
            }
        }
        is_awaited
    }

    /// Recomputes the thresholds of the rounds that are summed, not replayed, from their participants.
    pub(super) fn refresh_thresholds(&mut self, threshold: impl Fn(MemberSet) -> u16) {
        for round in self.alive.iter_mut().filter(|round| round.replay == Replay::Not) {
            round.threshold = threshold(round.participants);
        }
    }

    /// Shifts the opening times of the open rounds by `slept`, the duration of a pause in which the switch could not
    /// hear the members that the rounds wait for.
    pub(super) fn postpone(&mut self, slept: Duration) {
        for round in &mut self.alive {
            round.opened = round.opened.plus(slept);
        }
    }

    /// Calls `record` for each round that was opened or finished since the last call, and adds the durations of the
    /// finished rounds to `times`. If more than two rounds opened and finished between the two calls, only the last two
    /// are recorded.
    pub(super) fn record(&mut self, now: Instant, times: &mut RoundTimes, mut record: impl FnMut(Incident)) {
        let is_new = |known: Option<Round>, round: Round| known.is_none_or(|known| known.is_before(round));
        let Recorded { mut opened, mut finished } = self.recorded;
        for open in self.open_rounds().copied() {
            let OpenRound { round, participants, threshold, unfinished, .. } = open;
            if is_new(opened, round) {
                opened = Some(round);
                record(Incident::RoundOpened { round, participants: participants.bits(), threshold });
            }
            if unfinished == 0 && is_new(finished, round) {
                finished = Some(round);
                times.record(now.since(open.opened));
                record(Incident::RoundFinished { round });
            }
        }
        self.recorded = Recorded { opened, finished };
    }
}
