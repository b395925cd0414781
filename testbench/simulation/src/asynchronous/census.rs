//! The members of the switch, the threshold H that follows from them, and the aggregates that the switch has sent.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch_protocol::{Round, Seg};
use iswitch_switch::{Departure, Event, Instant, JobStatus};

use super::Simulation;
use super::member::address;
use crate::JOB;
use crate::checker::{Rule, Violation, violated};

/// The members, as the switch has reported them.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// When each was last heard. Packets that may not count are left out, so that it may have been heard later.
    heard: BTreeMap<SocketAddrV4, Instant>,
    /// H if it is set.
    pinned: Option<u16>,
    /// H of the aggregate that is being filled, if members or H have changed since it was begun.
    open: Option<u16>,
    /// The incarnation of the job.
    epoch: u64,
    /// The latest aggregate that was sent, in this incarnation and in the one before of the same run of the switch.
    latest: Option<Round>,
    latest_before: Option<Round>,
    /// What the last result told: its aggregate, and the contributions.
    last: Option<(Round, u16)>,
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
    fn threshold(&self) -> u16 {
        self.pinned.unwrap_or(self.heard.len() as u16).max(1)
    }

    fn enter(&mut self, epoch: u64) {
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            self.latest_before = self.latest.take().or(self.latest_before);
            (self.open, self.last) = (None, None);
        }
    }

    /// Applies a change of the members or of H. `is_open`: a vector is in the aggregate that is being filled, so that
    /// its H is fixed.
    fn change(&mut self, is_open: bool, change: impl FnOnce(&mut Self)) {
        if is_open {
            self.open = self.open.or(Some(self.threshold()));
        }
        change(self);
    }

    fn join(&mut self, address: SocketAddrV4, is_open: bool, now: Instant) {
        self.change(is_open, |census| {
            census.heard.insert(address, now);
        });
    }

    /// H of an aggregate that is being filled falls to the number of members, unless it was set.
    fn leave(&mut self, address: SocketAddrV4, is_open: bool) {
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
    fn finish(&mut self, finished: Finished, begun_with: Option<u16>) -> Result<(), Violation> {
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

impl Simulation<'_> {
    /// Looks at what the switch reports, and at the aggregates that it sends for the first time.
    pub(super) fn follow_switch(&mut self, finished: Option<Finished>) -> Result<(), Violation> {
        let mut events = Vec::new();
        while let Some(event) = self.switch.poll_event() {
            events.push(event);
        }
        let open_before = self.census.open;
        let mut begun_with = None;
        if !events.is_empty() {
            let job = self.switch.jobs().find(|job| job.job == JOB);
            let is_filled =
                |job: &JobStatus| job.round.is_some() && job.round != self.census.latest.map(Round::get);
            let is_open = finished.is_some() || job.as_ref().is_some_and(is_filled);
            if is_open {
                begun_with = open_before.or(Some(self.census.threshold()));
            }
            for event in events {
                self.hear_event(event, is_open)?;
            }
            // Members that resume a job may not know whether H was set.
            self.census.pinned = job.filter(|job| job.threshold_pinned).map(|job| job.threshold);
        }
        finished.map_or(Ok(()), |finished| self.census.finish(finished, begun_with))
    }

    fn hear_event(&mut self, event: Event, is_open: bool) -> Result<(), Violation> {
        self.note(|| format!("switch: {event}"));
        match event {
            Event::Diverged { .. } => return violated(Rule::Agreement, event.to_string()),
            Event::EventsLost { .. } => return violated(Rule::Counters, event.to_string()),
            Event::Joined { address, .. } => self.census.join(address, is_open, self.now),
            Event::ThresholdSet { .. } => self.census.change(is_open, |_| ()),
            Event::Left { address, why, .. } => {
                self.check_departure(address, why, &event)?;
                self.census.leave(address, is_open);
            }
            _ => {}
        }
        Ok(())
    }

    fn check_departure(
        &mut self,
        gone: SocketAddrV4,
        why: Departure,
        event: &Event,
    ) -> Result<(), Violation> {
        let is_excused = match why {
            Departure::Silent => {
                self.departures.expelled += 1;
                let lease = Duration::from_millis(u64::from(self.scenario.lease_ms));
                self.census.heard.get(&gone).is_none_or(|heard| self.now.since(*heard) > lease)
            }
            // A late answer made the member join again, or another process has its address.
            Departure::Forgotten | Departure::Restarted => self.is_disturbed(),
            Departure::Leave => false,
        };
        if is_excused { Ok(()) } else { violated(Rule::Membership, event.to_string()) }
    }

    /// The switch sends a result. Gives the aggregate if this is its first.
    pub(super) fn note_result(&mut self, seg: Seg) -> Result<Option<Finished>, Violation> {
        let Seg { round: number, contributions, .. } = seg;
        if self.census.last.replace((number, contributions)) == Some((number, contributions)) {
            return Ok(None);
        }
        let known = self.aggregates.entry((self.census.epoch(), number.get())).or_default();
        match known.sent.replace(contributions) {
            None => Ok(Some(Finished { number, contributions })),
            Some(before) if before == contributions => Ok(None),
            Some(before) => {
                let detail =
                    format!("aggregate {number} is sent with {contributions} vectors, and had {before}");
                violated(Rule::Agreement, detail)
            }
        }
    }

    /// The incarnation of the job that the switch has now; the last one if it has none.
    pub(super) fn follow_epoch(&mut self) {
        if let Some(epoch) = self.switch.epoch_of(JOB) {
            self.census.enter(epoch);
        }
    }

    /// Whether the members are exactly the workers that are alive.
    pub(super) fn is_census_right(&self) -> bool {
        let running = self.workers.iter().enumerate().filter(|(_, worker)| worker.is_running);
        let mut alive: Vec<_> = running.map(|(at, worker)| address(at, worker.udp_port)).collect();
        alive.sort();
        alive.iter().eq(self.census.addresses())
    }
}
