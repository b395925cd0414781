//! Members of the switch, the threshold H derived from them, and the aggregates that the switch has sent.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use iswitch_protocol::Round;
use iswitch_switch::Instant;

use crate::checker::{Rule, Violation, violated};

/// The members as reported by the switch.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// Time at which the switch last heard from each member. Packets that may or may not renew the lease are ignored,
    /// so the true time may be later.
    pub(super) heard: BTreeMap<SocketAddrV4, Instant>,
    /// Pinned threshold H; `None` if H is not pinned.
    pub(super) pinned: Option<u16>,
    /// H of the aggregate being filled, if the members or H have changed since it was opened.
    pub(super) open: Option<u16>,
    /// Lowest and highest H that the root of a tree has stated since the aggregate being filled could begin.
    stated: Option<(u16, u16)>,
    /// Current incarnation of the job.
    pub(super) epoch: u64,
    /// Latest aggregate sent in this incarnation. `latest_before` is the latest aggregate of the previous incarnation
    /// in the same run of the switch.
    pub(super) latest: Option<Round>,
    pub(super) latest_before: Option<Round>,
    /// Aggregate and number of contributions of the last result.
    pub(super) last: Option<(Round, u16)>,
}

/// An aggregate whose first results are being sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub(super) number: Round,
    pub(super) contributions: u16,
}

/// Bounds on the number of worker gradients in an aggregate of a tree (requirement V-14).
#[derive(Clone, Copy, Debug)]
pub(super) struct Gradients {
    /// H of the next aggregate, if the job is complete.
    pub(super) threshold: Option<u16>,
    /// Maximum number of gradients in one vector from a member of the root.
    pub(super) largest: u16,
}

impl Census {
    /// Resets the census after a restart of the switch.
    pub(super) fn restart(&mut self) {
        *self = Self { epoch: self.epoch, ..Self::default() };
    }

    /// Records that the switch accepted a packet, which renews the lease if the sender is a member.
    pub(super) fn hear(&mut self, from: SocketAddrV4, now: Instant) {
        if let Some(heard) = self.heard.get_mut(&from) {
            *heard = now;
        }
    }

    /// Returns the members of the job.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &SocketAddrV4> {
        self.heard.keys()
    }

    /// Returns the epoch of the incarnation whose results the switch sends.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the threshold H of an aggregate opened now (requirement V-4).
    pub(super) fn threshold(&self) -> u16 {
        self.pinned.unwrap_or(self.heard.len() as u16).max(1)
    }

    pub(super) fn enter(&mut self, epoch: u64) {
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            self.latest_before = self.latest.take().or(self.latest_before);
            (self.open, self.last, self.stated) = (None, None, None);
        }
    }

    /// Applies a change of the members or of H. If `is_open` is set, the aggregate being filled already contains a
    /// vector, so its H is fixed.
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

    /// Removes a member. Unless H is pinned, the H of an aggregate being filled falls to the number of members.
    pub(super) fn leave(&mut self, address: SocketAddrV4, is_open: bool) {
        self.change(is_open, |census| {
            census.heard.remove(&address);
            let left = census.threshold();
            if census.pinned.is_none() {
                census.open = census.open.map(|threshold| threshold.min(left));
            }
        });
    }

    /// Checks that a finished aggregate contains H vectors, or more if departures have just lowered H below the number
    /// of vectors.
    pub(super) fn finish(&mut self, finished: Finished, begun_with: Option<u16>) -> Result<(), Violation> {
        let Finished { number, contributions } = finished;
        let threshold = self.open.take().unwrap_or_else(|| self.threshold());
        let most = begun_with.unwrap_or(threshold).max(threshold);
        if !(threshold..=most).contains(&contributions) {
            let detail = format!("aggregate {number} has {contributions} vectors, but H was {threshold}");
            return violated(Rule::Threshold, detail);
        }
        self.note_number(number)
    }

    /// Records the threshold H that the root of a tree states for an aggregate opened now.
    pub(super) fn note_threshold(&mut self, threshold: Option<u16>) {
        if let Some(own) = threshold {
            let (lowest, highest) = self.stated.unwrap_or((own, own));
            self.stated = Some((lowest.min(own), highest.max(own)));
        }
    }

    /// Records that a member that represented at most `largest` workers has departed from the root of a tree. The
    /// member may have been replaced at once, before the root could state a lower H.
    pub(super) fn note_departure(&mut self, largest: u16) {
        if let Some((lowest, _)) = &mut self.stated {
            *lowest = lowest.saturating_sub(largest).max(1);
        }
    }

    /// Checks that a finished aggregate of the root of a tree, without its last vector, contains fewer than H
    /// gradients.
    pub(super) fn finish_in_tree(
        &mut self,
        finished: Finished,
        gradients: Gradients,
    ) -> Result<(), Violation> {
        let Finished { number, contributions } = finished;
        let stated = self.stated.take();
        self.note_threshold(gradients.threshold);
        let is_right = stated.is_some_and(|(lowest, highest)| {
            (lowest..highest.saturating_add(gradients.largest)).contains(&contributions)
        });
        if !is_right {
            let detail = format!(
                "aggregate {number} has {contributions} gradients, but H was {stated:?} and a vector has at most {} \
                 gradients",
                gradients.largest
            );
            return violated(Rule::Threshold, detail);
        }
        self.note_number(number)
    }

    /// Checks that no earlier incarnation of the job has sent an aggregate with this number.
    fn note_number(&mut self, number: Round) -> Result<(), Violation> {
        if self.latest_before.is_some_and(|before| !before.is_before(number)) {
            let detail = format!(
                "aggregate {number} was sent, but an earlier incarnation of the job had already sent this aggregate \
                 or a later aggregate"
            );
            return violated(Rule::Resume, detail);
        }
        self.latest = Some(number);
        Ok(())
    }
}
