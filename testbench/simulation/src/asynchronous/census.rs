//! The members of the switch, the threshold H that follows from them, and the aggregates that the switch has sent.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use iswitch_protocol::Round;
use iswitch_switch::Instant;

use crate::checker::{Rule, Violation, violated};

/// The members, as the switch has reported them.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// When each was last heard. Packets that may not count are left out, so that it may have been heard later.
    pub(super) heard: BTreeMap<SocketAddrV4, Instant>,
    /// H if it is set.
    pub(super) pinned: Option<u16>,
    /// H of the aggregate that is being filled, if members or H have changed since it was begun.
    pub(super) open: Option<u16>,
    /// The incarnation of the job.
    pub(super) epoch: u64,
    /// The latest aggregate that was sent, in this incarnation and in the one before of the same run of the switch.
    pub(super) latest: Option<Round>,
    pub(super) latest_before: Option<Round>,
    /// What the last result told: its aggregate, and the contributions.
    pub(super) last: Option<(Round, u16)>,
}

/// An aggregate of which the first results are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub(super) number: Round,
    pub(super) contributions: u16,
}

impl Census {
    /// The switch has begun anew.
    pub(super) fn restart(&mut self) {
        *self = Self { epoch: self.epoch, ..Self::default() };
    }

    /// The switch has taken in a packet that renews the lease of its sender, if that is a member.
    pub(super) fn hear(&mut self, from: SocketAddrV4, now: Instant) {
        if let Some(heard) = self.heard.get_mut(&from) {
            *heard = now;
        }
    }

    /// Members of the job.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &SocketAddrV4> {
        self.heard.keys()
    }

    /// The incarnation of the job that the switch sends results of.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The threshold H of an aggregate that is begun now (requirement V-4).
    pub(super) fn threshold(&self) -> u16 {
        self.pinned.unwrap_or(self.heard.len() as u16).max(1)
    }

    pub(super) fn enter(&mut self, epoch: u64) {
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            self.latest_before = self.latest.take().or(self.latest_before);
            (self.open, self.last) = (None, None);
        }
    }

    /// Applies a change of the members or of H. `is_open`: a vector is in the aggregate that is being filled, so that
    /// its H is fixed.
    pub(super) fn change(&mut self, is_open: bool, change: impl FnOnce(&mut Self)) {
        if is_open {
            self.open = self.open.or(Some(self.threshold()));
        }
        change(self);
    }

    pub(super) fn join(&mut self, address: SocketAddrV4, is_open: bool, now: Instant) {
        self.change(is_open, |census| {
            census.heard.insert(address, now);
        });
    }

    /// H of an aggregate that is being filled falls to the number of members, unless it was set.
    pub(super) fn leave(&mut self, address: SocketAddrV4, is_open: bool) {
        self.change(is_open, |census| {
            census.heard.remove(&address);
            let left = census.threshold();
            if census.pinned.is_none() {
                census.open = census.open.map(|threshold| threshold.min(left));
            }
        });
    }

    /// An aggregate is finished. It has as many vectors as H says; if members have left just now, it may have had more
    /// than H is since.
    pub(super) fn finish(&mut self, finished: Finished, begun_with: Option<u16>) -> Result<(), Violation> {
        let Finished { number, contributions } = finished;
        let threshold = self.open.take().unwrap_or_else(|| self.threshold());
        let most = begun_with.unwrap_or(threshold).max(threshold);
        if !(threshold..=most).contains(&contributions) {
            let detail = format!("aggregate {number} counts {contributions} vectors, and H was {threshold}");
            return violated(Rule::Threshold, detail);
        }
        if self.latest_before.is_some_and(|before| !before.is_before(number)) {
            let detail =
                format!("aggregate {number} is sent, and was so in an earlier incarnation of the job");
            return violated(Rule::Resume, detail);
        }
        self.latest = Some(number);
        Ok(())
    }
}
