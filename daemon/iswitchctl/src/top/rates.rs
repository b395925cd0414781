//! Differences between two snapshots of a daemon.

use iswitch_protocol::limits::ROUND_BITS;

use crate::view::{Counters, JobView, MemberView, View, value};

/// Two successive snapshots of the same run of a daemon.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval<'a> {
    before: Option<&'a View>,
    now: &'a View,
}

impl<'a> Interval<'a> {
    /// Creates the interval from `before` to `now`. If `before` is `None` or belongs to an earlier run of the daemon,
    /// all rates are zero.
    pub(super) fn new(before: Option<&'a View>, now: &'a View) -> Self {
        let is_same_run = |before: &&View| before.boot == now.boot && before.uptime_ms < now.uptime_ms;
        Self { before: before.filter(is_same_run), now }
    }

    /// Divides the increase of a counter by the time between the two snapshots. The result is per second.
    fn rate(self, count: u64) -> f64 {
        self.before
            .map_or(0.0, |before| count as f64 * 1000.0 / (self.now.uptime_ms - before.uptime_ms) as f64)
    }

    /// Returns the rate at which a quantity increases, per second. `count` reads the quantity from a snapshot.
    pub(super) fn of(self, count: impl Fn(&View) -> u64) -> f64 {
        self.before.map_or(0.0, |before| self.rate(count(self.now).saturating_sub(count(before))))
    }

    /// Returns the rate at which the `name` counter increases, per second. `list` selects the list of counters in a
    /// snapshot.
    pub(super) fn of_counter(self, list: impl Fn(&View) -> &Counters, name: &str) -> f64 {
        self.of(|view| value(list(view), name))
    }

    /// Returns the number of rounds that a job completes per second. Round numbers may wrap.
    pub(super) fn rounds(self, job: &JobView) -> f64 {
        let before = self.before.and_then(|before| before.jobs.iter().find(|other| other.job == job.job));
        let rounds = before.and_then(|before| Some(distance(before.round?, job.round?)));
        self.rate(rounds.unwrap_or(0).into())
    }

    /// Returns the number of segments that a member contributes per second.
    pub(super) fn segments(self, job: &JobView, member: &MemberView) -> f64 {
        let before = self.before.and_then(|before| before.jobs.iter().find(|other| other.job == job.job));
        let is_same = |other: &&MemberView| other.id == member.id && other.address == member.address;
        let before = before.and_then(|job| job.members.iter().find(is_same));
        self.rate(before.map_or(0, |before| member.contributions.saturating_sub(before.contributions)))
    }
}

/// Returns the number of rounds from `from` to `to`, or zero if `to` is earlier than `from`.
pub(super) fn distance(from: u32, to: u32) -> u32 {
    let distance = to.wrapping_sub(from) & ((1 << ROUND_BITS) - 1);
    if distance < 1 << (ROUND_BITS - 1) { distance } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(boot: u64, uptime_ms: u64, results: u64) -> View {
        let traffic = [("results".to_owned(), results)].into();
        View { boot: boot.to_string(), uptime_ms, traffic, ..View::default() }
    }

    #[test]
    fn rates_cover_only_one_run_of_the_daemon() {
        let results = |before: &View, now: &View| {
            Interval::new(Some(before), now).of_counter(|view| &view.traffic, "results")
        };
        assert_eq!(results(&view(1, 1000, 10), &view(1, 1500, 110)), 200.0);
        assert_eq!(results(&view(1, 1000, 10), &view(2, 1500, 110)), 0.0);
        assert_eq!(results(&view(1, 1000, 10), &view(1, 1000, 10)), 0.0);
        assert_eq!(results(&view(1, 1000, 10), &view(1, 1500, 5)), 0.0);
    }

    #[test]
    fn round_distances_wrap_around() {
        assert_eq!(distance(5, 9), 4);
        assert_eq!(distance((1 << 24) - 2, 3), 5);
        assert_eq!(distance(9, 5), 0);
    }
}
