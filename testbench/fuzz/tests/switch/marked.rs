//! Marked vectors, whose sums show which contributions they contain, and a ledger of the sums of each job.
//!
//! The first float of a segment is a power of 4 that identifies the host, so that the base-4 digits of a sum show how
//! many times the sum includes each host's contribution. The second float is the weight that the packet claims; the
//! third is a hash of the host, job, round and segment. All floats are integers that are small enough for their sums
//! to be exact.

use std::collections::{HashMap, HashSet};

use iswitch_protocol::Seg;

use crate::operation::HOSTS;

/// Exclusive upper bound of the hash in the third float. With this bound, sums of hashes stay below 2^24, up to which
/// f32 represents every integer exactly.
const MARKS: u32 = 1 << 14;

/// Subject of a packet from a host: in a synchronous job, the segment and the round; in an asynchronous job, the number
/// of the vector, which is the same for all its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Topic {
    pub(crate) job: u32,
    pub(crate) is_asynchronous: bool,
    pub(crate) round: u32,
    pub(crate) index: u32,
}

impl Topic {
    pub(crate) fn of(job: u32, is_asynchronous: bool, seg: Seg) -> Self {
        let index = if is_asynchronous { 0 } else { seg.index.get() };
        Self { job, is_asynchronous, round: seg.round.get(), index }
    }
}

fn mark(host: u8, topic: Topic) -> u32 {
    let mixed = [u32::from(host), topic.job, topic.round, topic.index]
        .into_iter()
        .fold(0x811c_9dc5_u32, |hash, word| (hash ^ word).wrapping_mul(0x0100_0193).rotate_left(13));
    mixed % MARKS
}

/// Returns the floats of a segment that a host contributes.
pub(crate) fn floats(host: u8, topic: Topic, weight: u16, count: usize) -> Vec<f32> {
    let lead = if topic.is_asynchronous { 1 } else { 4u32.pow(u32::from(host)) };
    let marks = std::iter::repeat(mark(host, topic) as f32);
    [lead as f32, f32::from(weight)].into_iter().chain(marks).take(count).collect()
}

/// Known sums of a job since the job started or last moved to a new range of rounds.
#[derive(Debug, Default)]
struct Known {
    /// Whether unmarked floats may have been summed.
    is_spoilt: bool,
    /// Bits of each sum that was sent to members.
    results: HashMap<(u32, u32), Vec<u32>>,
    /// Bits of each sum that was sent to the parent.
    partials: HashMap<(u32, u32), Vec<u32>>,
    /// For each asynchronous aggregate, the number of contributions in its first segment and the bits of that segment's
    /// floats.
    vectors: HashMap<u32, (u16, Vec<u32>)>,
    /// Results that the parent sent.
    from_parent: HashSet<(u32, u32, Vec<u32>)>,
}

/// Known sums of all jobs.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    jobs: HashMap<u32, Known>,
}

impl Ledger {
    /// Discards the sums of a job that starts or moves to a new range of rounds.
    pub(crate) fn begin_anew(&mut self, job: u32) {
        self.jobs.remove(&job);
    }

    pub(crate) fn forget_all(&mut self) {
        self.jobs.clear();
    }

    pub(crate) fn spoil(&mut self, job: u32) {
        self.jobs.entry(job).or_default().is_spoilt = true;
    }

    pub(crate) fn note_from_parent(&mut self, job: u32, seg: Seg, floats: &[f32]) {
        let sent = (seg.round.get(), seg.index.get(), canonical(floats));
        self.jobs.entry(job).or_default().from_parent.insert(sent);
    }

    /// Checks a sum that the switch sends to members or to the parent.
    pub(crate) fn check_sum(
        &mut self,
        job: u32,
        is_asynchronous: bool,
        goes_up: bool,
        seg: Seg,
        floats: &[f32],
    ) {
        let known = self.jobs.entry(job).or_default();
        let place = (seg.round.get(), seg.index.get());
        let mut content = bits(floats);
        let is_parents = !goes_up && known.from_parent.contains(&(place.0, place.1, content.clone()));
        if !is_parents && !known.is_spoilt {
            if is_asynchronous {
                check_aggregate(known, seg, floats);
            } else {
                check_round(Topic::of(job, false, seg), goes_up, seg, floats);
            }
        }
        content.push(u32::from(seg.contributions));
        let sent = if goes_up { &mut known.partials } else { &mut known.results };
        let first = sent.entry(place).or_insert_with(|| content.clone());
        assert_eq!(*first, content, "job {job}: the sum of {seg:?} has changed");
    }
}

fn bits(floats: &[f32]) -> Vec<u32> {
    floats.iter().map(|x| x.to_bits()).collect()
}

/// Returns the bits of floats in the canonical form in which the switch stores them.
fn canonical(floats: &[f32]) -> Vec<u32> {
    let canonical = |x: &f32| if x.is_nan() { 0x7FC0_0000 } else { (0.0 + x).to_bits() };
    floats.iter().map(canonical).collect()
}

/// Checks that a sum of a round includes each host's contribution at most once and reports the right number of
/// contributions. A partial sum for the parent may include no contributions at all, if all members have left the round
/// (H-8).
fn check_round(topic: Topic, goes_up: bool, seg: Seg, floats: &[f32]) {
    let digits = floats[0] as u32;
    assert!(f32::from(u16::MAX) * 4.0 > floats[0] && digits as f32 == floats[0], "{topic:?}: {floats:?}");
    let hosts: Vec<u8> = (0..HOSTS).filter(|host| digits >> (2 * host) & 3 != 0).collect();
    let once: u32 = hosts.iter().map(|host| 4u32.pow(u32::from(*host))).sum();
    assert_eq!(digits, once, "{topic:?}: a host appears twice in {floats:?}");
    let is_nothing = goes_up && seg.contributions == 0 && floats.iter().all(|x| x.to_bits() == 0);
    assert!(!hosts.is_empty() || is_nothing, "{topic:?}: the sum contains no contribution");
    if let Some(weight) = floats.get(1) {
        assert_eq!(*weight, f32::from(seg.contributions), "{topic:?}: weight of {floats:?}");
    } else {
        assert!(usize::from(seg.contributions) >= hosts.len(), "{topic:?}: {seg:?}");
    }
    let marks: u32 = hosts.iter().map(|host| mark(*host, topic)).sum();
    let is_marked = floats.iter().skip(2).all(|x| *x == marks as f32);
    assert!(is_marked, "{topic:?}: hosts {hosts:?} with {marks}, but {floats:?}");
}

/// Checks that all segments of an aggregate are sums of the same vectors.
fn check_aggregate(known: &mut Known, seg: Seg, floats: &[f32]) {
    let content = bits(floats);
    let (contributions, first) =
        known.vectors.entry(seg.round.get()).or_insert_with(|| (seg.contributions, content.clone()));
    assert_eq!(*contributions, seg.contributions, "{seg:?}: another segment has a different count");
    let common = first.len().min(content.len());
    assert_eq!(first[..common], content[..common], "{seg:?}: another segment sums different vectors");
    if content.len() > first.len() {
        *first = content;
    }
    assert!(floats[0] >= 1.0 && floats[0] <= f32::from(seg.contributions), "{seg:?}: {floats:?}");
    if let Some(weight) = floats.get(1) {
        assert_eq!(*weight, f32::from(seg.contributions), "{seg:?}: weight of {floats:?}");
    }
    assert!(floats.iter().skip(3).all(|x| x.to_bits() == floats[2].to_bits()), "{seg:?}: {floats:?}");
}
