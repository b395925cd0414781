//! Histories of a job, each of which identifies the sums that a member has before a given round (requirement M-8).

use iswitch_protocol::Round;
use iswitch_protocol::history::Chain;

/// Length of the range of consecutive rounds that contains the next round of every member of one parent. Two rounds can
/// be open at once, one may be finished for only some of the members, and a Fresh member starts one round after these.
pub(super) const STARTS: usize = 4;

/// The histories before and after the latest round of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History {
    /// Rule by which a history is computed from the preceding one.
    chain: Chain,
    /// Epoch of the topmost switch's incarnation of the job.
    epoch: u64,
    /// Latest round that was opened, or the first round.
    at: Round,
    /// History before `at`, which is the history of the members that take part in this round.
    before: u64,
    /// History before the round that precedes `at`, if there was such a round.
    earlier: Option<u64>,
    /// History after `at`, if that round is replayed instead of summed.
    replayed: Option<u64>,
}

impl History {
    /// Creates the history of a job that begins at the round `base`.
    pub(crate) fn begin(chain: Chain, epoch: u64, job: u32, base: Round) -> Self {
        let before = chain.begin(epoch, job, base);
        Self { chain, epoch, at: base, before, earlier: None, replayed: None }
    }

    pub(super) fn chain(&self) -> Chain {
        self.chain
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Adopts the epoch of the topmost switch.
    pub(super) fn adopt(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// Restarts at the round `at` with the history before it and, if that round is replayed, the history after it.
    pub(super) fn restart_at(&mut self, at: Round, before: u64, replayed: Option<u64>) {
        *self = Self { at, before, earlier: None, replayed, ..*self };
    }

    /// Records that a round opens. The round is either the latest one, which opens again, or the one after it.
    pub(super) fn advance(&mut self, round: Round) {
        if round == self.at.next() {
            let before = self.after();
            *self = Self { at: round, before, earlier: Some(self.before), replayed: None, ..*self };
        }
    }

    fn after(&self) -> u64 {
        self.replayed.unwrap_or_else(|| self.chain.after(self.before, self.epoch, self.at))
    }

    /// Returns the history of the members whose next round is `round`, or zero if that history is no longer known.
    pub(super) fn before(&self, round: Round) -> u64 {
        if round == self.at {
            self.before
        } else if round == self.at.next() {
            self.after()
        } else if round == self.at.previous() {
            self.earlier.unwrap_or(0)
        } else {
            0
        }
    }

    /// Returns the round at which a member with the history `history` continues, or `None` if that history is not
    /// known.
    pub(super) fn round_after(&self, history: u64) -> Option<Round> {
        // Check the latest round first: if a sum was given up, two rounds have the same history.
        [self.at.next(), self.at, self.at.previous()]
            .into_iter()
            .find(|round| history != 0 && self.before(*round) == history)
    }
}

/// Returns a round and the rounds after it, each with the history before it.
pub(super) fn starts_from(round: Round, before: u64, chain: Chain, epoch: u64) -> [(Round, u64); STARTS] {
    let mut starts = [(round, before); STARTS];
    for at in 1..STARTS {
        let (round, before) = starts[at - 1];
        starts[at] = (round.next(), chain.after(before, epoch, round));
    }
    starts
}
