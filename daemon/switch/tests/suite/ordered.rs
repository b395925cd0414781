//! Ordered sums: the bits of a sum do not depend on the order in which the contributions arrive.

use std::collections::BTreeMap;

use crate::common::{Harness, JOB, Sent, control, join, range};
use iswitch_protocol::wire::{Class, ControlBody, JoinRepr, Status};
use iswitch_switch::Config;
use proptest::prelude::*;

/// Number of floats in each segment of the vector of [`join`].
const SEGMENTS: [usize; 3] = [2, 2, 1];
const ROUNDS: u32 = 3;
const MAX_WORKERS: usize = 5;

fn ordered() -> Harness {
    Harness::with(Config { memory_bytes: 1 << 20, ordered: true, ..Config::default() })
}

/// Makes hosts join in this order and with these ranks.
fn join_ranked(switch: &mut Harness, hosts: &[(u8, u16)]) {
    for (host, rank) in hosts {
        let sent = switch.join(*host, JoinRepr { rank: *rank, ..join(hosts.len() as u16) });
        assert!(matches!(sent, Sent::Ack { status: Status::Success, .. }), "{sent:?}");
    }
}

/// Returns the bits of the result of the last segment for host 1.
fn last_sum(sent: &[Sent]) -> Option<u32> {
    sent.iter().find_map(|sent| match sent {
        Sent::Result { to: 1, index: 2, floats, .. } => Some(floats[0].to_bits()),
        _ => None,
    })
}

/// Three numbers whose sum is 0 if they are added in the order of the hosts, and 0 or 1 in any other order.
const LOSSY: [f32; 3] = [1e8, 1.0, -1e8];

const ARRIVALS: [[u8; 3]; 6] = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]];

fn sums_of_all_arrivals(mut switch: Harness) -> Vec<f32> {
    let mut sums = Vec::new();
    for (round, hosts) in ARRIVALS.iter().enumerate() {
        let mut sent = Vec::new();
        for host in hosts {
            switch.data(*host, 0, round as u32, &[0.0, 0.0]);
            switch.data(*host, 1, round as u32, &[0.0, 0.0]);
            sent = switch.data(*host, 2, round as u32, &[LOSSY[usize::from(*host) - 1]]);
        }
        sums.push(f32::from_bits(last_sum(&sent).unwrap()));
    }
    sums
}

#[test]
fn the_arrival_order_affects_only_unordered_sums() {
    assert_eq!(sums_of_all_arrivals(Harness::formed(3)), [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
    let mut switch = ordered();
    join_ranked(&mut switch, &[(3, 2), (1, 0), (2, 1)]);
    assert_eq!(sums_of_all_arrivals(switch), [0.0; 6]);
}

#[test]
fn ranks_determine_the_order_and_addresses_break_ties() {
    let mut switch = ordered();
    join_ranked(&mut switch, &[(1, 0), (3, 1), (2, 2)]);
    assert_eq!(sums_of_all_arrivals(switch), [1.0; 6]);
    let mut switch = ordered();
    join_ranked(&mut switch, &[(3, 0), (2, 0), (1, 0)]);
    assert_eq!(sums_of_all_arrivals(switch), [0.0; 6]);
}

#[test]
fn segments_closed_early_are_summed_in_order() {
    let mut switch = ordered();
    join_ranked(&mut switch, &[(1, 0), (2, 1), (3, 2), (4, 3)]);
    for host in [3, 1, 2] {
        switch.data(host, 2, 0, &[LOSSY[usize::from(host) - 1]]);
    }
    let sent = switch.control(4, 2, ControlBody::FBcast(range(0, 2, 1)));
    assert_eq!(last_sum(&sent), Some(0.0f32.to_bits()));
}

#[test]
fn a_replacement_member_does_not_change_the_order_of_an_open_round() {
    let mut switch = ordered();
    join_ranked(&mut switch, &[(1, 0), (2, 1), (3, 2)]);
    switch.data(3, 2, 0, &[LOSSY[2]]);
    switch.data(2, 2, 0, &[LOSSY[1]]);
    switch.control(2, 2, ControlBody::Leave);
    // Host 4 gets the id of the member that has left, but its rank puts it after the others: 1e8 - 1e8 + 1 would be 1.
    switch.join(4, JoinRepr { rank: 3, ..join(3) });
    assert_eq!(last_sum(&switch.data(1, 2, 0, &[LOSSY[0]])), Some(0.0f32.to_bits()));
    for (host, x) in [(4, LOSSY[1]), (1, LOSSY[0])] {
        switch.data(host, 2, 1, &[x]);
    }
    assert_eq!(last_sum(&switch.data(3, 2, 1, &[LOSSY[2]])), Some(1.0f32.to_bits()));
}

#[test]
fn ordered_jobs_need_memory_for_every_contribution() {
    let config = Config { memory_bytes: 1 << 16, ordered: true, ..Config::default() };
    let outcome = |workers| {
        let mut switch = Harness::with(config);
        let join = JoinRepr { gradient_len: 5_000, segment_floats: 366, ..join(workers) };
        match switch.send(1, Class::Control, &control(JOB, 1, ControlBody::Join(join)))[..] {
            [Sent::Ack { status, expected, .. }] => (status, expected),
            ref sent => panic!("{sent:?}"),
        }
    };
    assert_eq!(outcome(1), (Status::Success, 0), "three vectors of 20 KB should fit in 64 KiB");
    assert_eq!(outcome(2), (Status::NoCapacity, 64));
    assert_eq!(outcome(0), (Status::NoCapacity, 64), "up to 64 workers may join");
}

/// Members that send randomly chosen segments, and the expected sums.
struct Members<'a> {
    switch: Harness,
    workers: usize,
    values: &'a [f32],
    has_left: Option<usize>,
    /// For each segment and round, the members that have contributed, by position in the order.
    given: BTreeMap<(u32, u32), Vec<usize>>,
    /// Bits of each result.
    results: BTreeMap<(u32, u32), Vec<u32>>,
}

impl Members<'_> {
    fn value(&self, member: usize, round: u32, index: u32) -> Vec<f32> {
        let start = (member * ROUNDS as usize + round as usize) * 5 + 2 * index as usize;
        self.values[start..start + SEGMENTS[index as usize]].to_vec()
    }

    /// Returns the open round of a segment: its first round without a result, which is at most one round ahead of the
    /// other segments.
    fn round_of(&self, index: u32) -> Option<u32> {
        let has_result = |round, index| self.results.contains_key(&(round, index));
        let round = (0..ROUNDS).find(|round| !has_result(*round, index))?;
        let is_alive = round < 2 || (0..3).all(|other| has_result(round - 2, other));
        is_alive.then_some(round)
    }

    /// Makes a member contribute to the open round. If the member has already contributed, it sends a different
    /// contribution, which the switch must ignore.
    fn send(&mut self, member: usize, index: u32) -> Result<(), TestCaseError> {
        let Some(round) = self.round_of(index).filter(|_| self.has_left != Some(member)) else {
            return Ok(());
        };
        let given = self.given.entry((round, index)).or_default();
        let is_repeated = given.contains(&member);
        if !is_repeated {
            given.push(member);
        }
        let mut floats = self.value(member, round, index);
        if is_repeated {
            floats.fill(1e30);
        }
        let sent = self.switch.data(member as u8 + 1, index, round, &floats);
        self.take(sent)
    }

    fn leave(&mut self, member: usize) -> Result<(), TestCaseError> {
        self.has_left = Some(member);
        let sent = self.switch.control(member as u8 + 1, 2, ControlBody::Leave);
        self.take(sent)
    }

    fn take(&mut self, sent: Vec<Sent>) -> Result<(), TestCaseError> {
        for sent in sent {
            let Sent::Result { index, round, contributions, floats, .. } = sent else { continue };
            let bits: Vec<_> = floats.iter().map(|x| x.to_bits()).collect();
            let given = &self.given[&(round, index)];
            prop_assert_eq!(usize::from(contributions), given.len());
            prop_assert_eq!(self.results.entry((round, index)).or_insert(bits.clone()), &bits);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..ROUNDS {
            for (member, index) in
                (0..self.workers).flat_map(|member| (0..3).map(move |index| (member, index)))
            {
                self.send(member, index)?;
            }
        }
        prop_assert_eq!(self.results.len(), ROUNDS as usize * SEGMENTS.len());
        for ((round, index), bits) in &self.results {
            let mut given = self.given[&(*round, *index)].clone();
            given.sort_unstable();
            let mut sum = vec![0.0; SEGMENTS[*index as usize]];
            for member in given {
                sum.iter_mut().zip(self.value(member, *round, *index)).for_each(|(sum, x)| *sum += x);
            }
            let canonical = |x: f32| if x.is_nan() { 0x7FC0_0000 } else { x.to_bits() };
            prop_assert_eq!(bits, &sum.into_iter().map(canonical).collect::<Vec<_>>());
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn every_interleaving_gives_the_same_bits_as_the_ordered_fold(
        (workers, joining) in (2..=MAX_WORKERS).prop_flat_map(|workers| {
            (Just(workers), Just((0..workers).collect::<Vec<_>>()).prop_shuffle())
        }),
        values in proptest::collection::vec(
            prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO,
            MAX_WORKERS * ROUNDS as usize * 5,
        ),
        picks in proptest::collection::vec((any::<prop::sample::Index>(), 0u32..3), 0..100),
        leaver in proptest::option::of((any::<prop::sample::Index>(), 0usize..60)),
    ) {
        let mut switch = ordered();
        let hosts: Vec<_> = joining.iter().map(|member| (*member as u8 + 1, 10 * *member as u16)).collect();
        join_ranked(&mut switch, &hosts);
        let (given, results) = (BTreeMap::new(), BTreeMap::new());
        let mut members = Members { switch, workers, values: &values, has_left: None, given, results };
        for (at, (member, index)) in picks.into_iter().enumerate() {
            if let Some((leaver, when)) = leaver && when == at {
                members.leave(leaver.index(workers))?;
            }
            members.send(member.index(workers), index)?;
        }
        members.finish()?;
    }
}
