//! What must hold after every event.
//!
//! Each life of a worker process contributes a witness from which one can read off a sum what is in it. A
//! segment starts with lanes of digits: life i adds 4^(i mod 12) to lane i div 12, so that digit i of a sum
//! says how often that life was counted. The floats after them hold a tag that depends on the life, the number
//! of its gradient, the segment and the position: in a sum it is the sum of the right tags, unless something of
//! another round, segment or run of the switch is in it. All are integers, and exact.

use std::collections::HashMap;
use std::fmt;

use iswitch_protocol::wire::DataPacket;
use iswitch_protocol::{Round, Seg, VectorLayout};
use serde::{Deserialize, Serialize};

/// Digits of one lane: an f32 holds integers of 24 bits.
const DIGITS_PER_LANE: usize = 12;
const BITS_PER_DIGIT: usize = 2;
/// Lives that one simulation can tell apart: bits of its set of lives.
pub const MAX_LIVES: usize = 128;
/// Tags have so many bits that those of [`MAX_LIVES`] lives add up exactly.
const TAG_BITS: u32 = f32::MANTISSA_DIGITS - MAX_LIVES.trailing_zeros();

const _: () = assert!(DIGITS_PER_LANE * BITS_PER_DIGIT == f32::MANTISSA_DIGITS as usize);

/// Floats of a segment that hold digits when so many lives have to be told apart.
pub const fn digit_lanes(lives: usize) -> usize {
    lives.div_ceil(DIGITS_PER_LANE)
}

/// A set of lives, one bit each.
type Lives = u128;

/// The rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A sum is that of the contributions that it claims, each counted once, of its round and segment.
    Sum,
    /// All that is sent and delivered for a segment of a round has the same bits.
    Agreement,
    /// Only members contribute, and a departed one not to rounds that opened later.
    Membership,
    /// A member's own contribution is in the sums that it is given.
    OwnContribution,
    /// Who has always been a member misses no sum.
    Missed,
    /// Nobody is given a round twice, or an older one after a newer one.
    RoundOrder,
    /// What is received is either used or counted under a drop reason; what is sent is counted.
    Counters,
    /// An aggregate takes as many vectors as H says.
    Threshold,
    /// A vector is not given up while its sender is a member, and is in the aggregate that its sender is told.
    Lost,
    /// No gradient is committed that is staler than the bound.
    Staleness,
    /// A deadline lies in the future once it has been handled.
    Timer,
    /// A correct worker is not refused.
    Refusal,
    /// A new incarnation of a job sums no round that packets of an earlier one may name.
    Resume,
    /// When the faults have ended, everything that is alive goes on.
    Liveness,
    /// Nothing panics.
    Panic,
}

/// A rule that was broken, and how.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// What was found, and what was expected.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.detail)
    }
}

/// Ends the simulation with the rule that was broken.
pub(crate) fn violated<T>(rule: Rule, detail: String) -> Result<T, Violation> {
    Err(Violation { rule, detail })
}

/// What lives contribute, and how to read sums of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Witness {
    layout: VectorLayout,
    lanes: usize,
}

impl Witness {
    /// Every segment of the layout is longer than the lanes that `lives` need.
    pub(super) fn new(layout: VectorLayout, lives: usize) -> Self {
        assert!(lives <= MAX_LIVES, "{lives} lives, at most {MAX_LIVES}");
        Self { layout, lanes: digit_lanes(lives) }
    }

    /// Fills in a gradient of a life.
    pub(super) fn fill(&self, life: usize, gradient: u64, vector: &mut [f32]) {
        let segments = vector.chunks_mut(usize::from(self.layout.segment_floats()));
        for (segment, floats) in segments.enumerate() {
            let (digits, tags) = floats.split_at_mut(self.lanes);
            digits.fill(0.0);
            digits[life / DIGITS_PER_LANE] = (1 << (life % DIGITS_PER_LANE * BITS_PER_DIGIT)) as f32;
            for (position, tag) in tags.iter_mut().enumerate() {
                *tag = self::tag(life, gradient, segment, position) as f32;
            }
        }
    }

    /// Who is in the sum of a segment, given which gradient each life has offered.
    fn read(&self, offers: &[Option<u64>], segment: usize, floats: &[f32]) -> Result<Lives, String> {
        let (digits, tags) = floats.split_at(self.lanes);
        let mut lives = 0;
        for (lane, sum) in digits.iter().enumerate() {
            let Some(mut rest) = integer(*sum) else { return Err(format!("lane {lane} is {sum}")) };
            for digit in 0..DIGITS_PER_LANE {
                let life = lane * DIGITS_PER_LANE + digit;
                match rest & 3 {
                    0 => {}
                    1 if life < MAX_LIVES => lives |= 1 << life,
                    times => return Err(format!("life {life} was counted {times} times")),
                }
                rest >>= BITS_PER_DIGIT;
            }
        }
        for (position, sum) in tags.iter().enumerate() {
            let mut expected = 0;
            for life in each(lives) {
                let Some(gradient) = offers.get(life).copied().flatten() else {
                    return Err(format!("life {life} is in it, and has offered nothing"));
                };
                expected += tag(life, gradient, segment, position);
            }
            if integer(*sum) != Some(expected) {
                return Err(format!("tag {position} is {sum}, expected {expected} from {}", list(lives)));
            }
        }
        Ok(lives)
    }
}

/// The lives in a set.
fn each(mut lives: Lives) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let life = lives.trailing_zeros();
        (lives != 0).then(|| {
            lives &= lives - 1;
            life as usize
        })
    })
}

fn integer(x: f32) -> Option<u32> {
    let is_exact = x >= 0.0 && x < (1 << f32::MANTISSA_DIGITS) as f32 && x.fract() == 0.0;
    is_exact.then_some(x as u32)
}

fn tag(life: usize, gradient: u64, segment: usize, position: usize) -> u32 {
    let place = gradient << 32 ^ (segment as u64) << 16 ^ (position as u64) << 8 ^ life as u64;
    mix(place) as u32 & ((1 << TAG_BITS) - 1)
}

/// The finaliser of SplitMix64: numbers that look random from numbers that do not.
pub(super) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The first result that the switch sent for a segment of a round.
#[derive(Clone, Debug)]
struct SegmentSum {
    contributions: u16,
    lives: Lives,
    bits: Vec<u32>,
}

/// A time as a member: the rounds that it takes part in.
#[derive(Clone, Copy, Debug)]
struct Stay {
    boot: u64,
    start: Round,
    /// The latest round that was open when it departed.
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Present,
    /// The job ended with it: before the next job's first round.
    BeforeNextJob,
    At(Round),
}

/// What was open in a job when a member departed.
#[derive(Clone, Copy, Debug)]
pub(super) enum RoundThen {
    /// This round, and perhaps the one before.
    Open(Round),
    /// None: what follows opens later.
    None,
    JobEnded,
}

impl Stay {
    fn covers(&self, boot: u64, round: Round) -> bool {
        let is_after_end = matches!(self.end, End::At(end) if end.is_before(round));
        self.boot == boot && !round.is_before(self.start) && !is_after_end
    }
}

/// What the checker knows of a life.
#[derive(Clone, Debug, Default)]
struct Record {
    stays: Vec<Stay>,
    /// The last round whose sum it was given.
    delivered: Option<Key>,
    /// The same, or if that one was replayed, the round in which it was summed.
    has: Option<Key>,
    /// Whether it may lack what others were given since: it was told so.
    may_lack: bool,
}

impl Record {
    /// Whether the switch has never let it go.
    fn was_always_member(&self, boot: u64) -> bool {
        let mut stays = self.stays.iter().filter(|stay| stay.boot == boot);
        stays.next().is_some_and(|stay| stay.end == End::Present) && stays.next().is_none()
    }
}

/// Which round of which run of the switch.
type Key = (u64, Round);

/// What became of a round.
#[derive(Clone, Debug, Default)]
struct RoundRecord {
    /// The gradient that each life has offered for it.
    offers: Vec<Option<u64>>,
    /// The round whose sum members supply in this one.
    replayed: Option<Key>,
    /// The round before it, as the first to be given this one had it.
    previous: Option<Key>,
    /// `[segment_count]`
    sums: Vec<Option<SegmentSum>>,
}

/// Compares everything that is sent and delivered with what may be.
#[derive(Debug)]
pub(super) struct Checker {
    witness: Witness,
    /// Off where wrong sums are not excluded: some damage passes the checksums.
    checks_sums: bool,
    rounds: HashMap<Key, RoundRecord>,
    /// The latest round of all results.
    latest: Option<Key>,
    lives: Vec<Record>,
    /// Whether there are switches below the switch. Then who takes part in a round depends on several, and is only
    /// checked as long as nobody has departed.
    is_tree: bool,
    /// Whether a member or a switch has ever departed.
    has_lost_somebody: bool,
}

impl Checker {
    pub(super) fn new(witness: Witness, lives: usize, checks_sums: bool, is_tree: bool) -> Self {
        Self {
            witness,
            checks_sums,
            is_tree,
            has_lost_somebody: false,
            rounds: HashMap::new(),
            latest: None,
            lives: vec![Record::default(); lives],
        }
    }

    pub(super) fn witness(&self) -> Witness {
        self.witness
    }

    pub(super) fn layout(&self) -> VectorLayout {
        self.witness.layout
    }

    pub(super) fn segments(&self) -> u32 {
        self.witness.layout.segment_count()
    }

    /// The switch admitted a life.
    pub(super) fn joined(&mut self, life: usize, boot: u64, start: Round) {
        for stay in self.lives.iter_mut().flat_map(|life| &mut life.stays) {
            if stay.boot == boot && stay.end == End::BeforeNextJob {
                stay.end = End::At(start.previous());
            }
        }
        self.lives[life].stays.push(Stay { boot, start, end: End::Present });
    }

    /// The job goes on at a round that lies beyond all of earlier runs: its members take part from there on.
    pub(super) fn resumed(&mut self, boot: u64, start: Round) {
        let stays = self.lives.iter_mut().flat_map(|life| &mut life.stays);
        stays
            .filter(|stay| stay.boot == boot && stay.end == End::Present)
            .for_each(|stay| stay.start = start);
    }

    /// A switch was killed, or has let another switch go.
    pub(super) fn lost_switch(&mut self) {
        self.has_lost_somebody = true;
    }

    fn was_always_member(&self, life: usize, boot: u64) -> bool {
        if self.is_tree { !self.has_lost_somebody } else { self.lives[life].was_always_member(boot) }
    }

    /// The switch let a life go.
    pub(super) fn departed(&mut self, life: usize, boot: u64, round: RoundThen) {
        self.has_lost_somebody = true;
        let latest = self.latest.filter(|(of, _)| *of == boot).map(|(_, round)| round);
        for stay in &mut self.lives[life].stays {
            if stay.boot == boot && stay.end == End::Present {
                stay.end = match round {
                    RoundThen::Open(newest) => End::At(newest),
                    RoundThen::None => End::At(latest.unwrap_or(stay.start.previous())),
                    RoundThen::JobEnded => End::BeforeNextJob,
                };
            }
        }
    }

    /// A life offers a gradient for a round, or, if it supplies, the last sum that it was given.
    pub(super) fn offered(
        &mut self,
        life: usize,
        key: Key,
        gradient: u64,
        supplies: bool,
    ) -> Result<(), Violation> {
        let record = self.rounds.entry(key).or_default();
        if !supplies {
            record.offers.resize(self.lives.len(), None);
            record.offers[life] = Some(gradient);
            return Ok(());
        }
        let own = self.lives[life].has;
        match (record.replayed, own) {
            (None, Some(own)) => {
                record.replayed = Some(own);
                Ok(())
            }
            (Some(known), Some(own)) if known == own => Ok(()),
            (known, own) if self.checks_sums => {
                violated(Rule::Agreement, format!("life {life} supplies {own:?}, and others {known:?}"))
            }
            _ => Ok(()),
        }
    }

    /// A life was told that others went on without it. `waits_for_all`: no round ends without all members.
    pub(super) fn missed(&mut self, life: usize, boot: u64, waits_for_all: bool) -> Result<(), Violation> {
        let own = &mut self.lives[life];
        // Who has been told already has taken the state of others, whose latest sum may have been given up since.
        let was_told = std::mem::replace(&mut own.may_lack, true);
        // Who has not been given any sum was told where it starts, and that may change.
        let has_sums = own.has.is_some();
        let is_excused = !waits_for_all || was_told || !has_sums;
        if self.checks_sums && !is_excused && self.was_always_member(life, boot) {
            let detail = format!("life {life} has missed a sum, and was always a member of boot {boot:x}");
            return violated(Rule::Missed, detail);
        }
        Ok(())
    }

    /// The switch, or of several the root, sends a result.
    pub(super) fn sent(&mut self, boot: u64, bytes: &[u8]) -> Result<(), Violation> {
        if !self.checks_sums {
            return Ok(());
        }
        let packet = self.parse(bytes)?;
        let seg = packet.seg();
        let (key, index) = ((boot, seg.round), seg.index.get() as usize);
        if let Some(known) = self.known_sum(key, index) {
            if known.is(&packet) {
                return Ok(());
            }
            let what = describe(boot, seg);
            return violated(Rule::Agreement, format!("{what} was sent with other bits before"));
        }
        let sum = self.read_or_replayed(key, &packet)?;
        if self.latest.is_none_or(|(of, latest)| of != boot || latest.is_before(seg.round)) {
            self.latest = Some(key);
        }
        self.sums_mut(key)[index] = Some(sum);
        Ok(())
    }

    /// A switch sends its parent what its members have summed.
    pub(super) fn sent_up(&self, boot: u64, bytes: &[u8]) -> Result<(), Violation> {
        if !self.checks_sums {
            return Ok(());
        }
        let packet = self.parse(bytes)?;
        self.read_or_replayed((boot, packet.seg().round), &packet).map(|_| ())
    }

    /// A switch sends its members a result: its parent's, or one that some of them have supplied.
    pub(super) fn passed_on(&mut self, boot: u64, bytes: &[u8]) -> Result<(), Violation> {
        if !self.checks_sums {
            return Ok(());
        }
        let packet = self.parse(bytes)?;
        let seg = packet.seg();
        let (key, index) = ((boot, seg.round), seg.index.get() as usize);
        if self.known_sum(key, index).is_some_and(|known| known.is(&packet)) {
            return Ok(());
        }
        match self.replayed_in(key, &packet).cloned() {
            Some(sum) => {
                self.sums_mut(key)[index].get_or_insert(sum);
                Ok(())
            }
            None => {
                violated(Rule::Agreement, format!("{} is not what the root has sent", describe(boot, seg)))
            }
        }
    }

    fn parse<'a>(&self, bytes: &'a [u8]) -> Result<DataPacket<'a>, Violation> {
        let packet = match DataPacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(error) => return violated(Rule::Sum, format!("the switch sent a packet that is {error}")),
        };
        if packet.float_count() != self.witness.layout.range(packet.seg().index).len() {
            return violated(Rule::Sum, format!("{} floats in {:?}", packet.float_count(), packet.seg()));
        }
        Ok(packet)
    }

    fn known_sum(&self, key: Key, index: usize) -> Option<&SegmentSum> {
        self.rounds.get(&key)?.sums.get(index)?.as_ref()
    }

    /// What is in a packet: the sum that is replayed in its round, or else a new one.
    fn read_or_replayed(&self, key: Key, packet: &DataPacket<'_>) -> Result<SegmentSum, Violation> {
        match self.replayed_in(key, packet) {
            Some(sum) => Ok(sum.clone()),
            None => self.read_sum(key, packet.seg().index.get() as usize, packet).or_else(|(rule, error)| {
                violated(rule, format!("{}: {error}", describe(key.0, packet.seg())))
            }),
        }
    }

    /// The sum that is replayed in the packet's round, if it is that which the packet holds.
    fn replayed_in(&self, key: Key, packet: &DataPacket<'_>) -> Option<&SegmentSum> {
        let replayed = self.rounds.get(&key)?.replayed?;
        self.known_sum(replayed, packet.seg().index.get() as usize).filter(|sum| sum.is(packet))
    }

    /// What was sent for each segment of a round: `[segment_count]`.
    fn sums_mut(&mut self, key: Key) -> &mut [Option<SegmentSum>] {
        let segments = self.segments() as usize;
        let sums = &mut self.rounds.entry(key).or_default().sums;
        sums.resize(segments, None);
        sums
    }

    fn read_sum(
        &self,
        key: Key,
        index: usize,
        packet: &DataPacket<'_>,
    ) -> Result<SegmentSum, (Rule, String)> {
        let floats: Vec<f32> = packet.floats().collect();
        let offers = self.rounds.get(&key).map_or(&[][..], |record| &record.offers);
        let lives = self.witness.read(offers, index, &floats).map_err(|error| (Rule::Sum, error))?;
        let contributions = packet.seg().contributions;
        if lives.count_ones() != u32::from(contributions) {
            return Err((Rule::Sum, format!("holds {}", list(lives))));
        }
        self.check_members(key.0, key.1, lives).map_err(|error| (Rule::Membership, error))?;
        let bits = floats.iter().map(|x| x.to_bits()).collect();
        Ok(SegmentSum { contributions, lives, bits })
    }

    fn check_members(&self, boot: u64, round: Round, lives: Lives) -> Result<(), String> {
        for (life, Record { stays, .. }) in self.lives.iter().enumerate().filter(|_| !self.is_tree) {
            if lives >> life & 1 == 1 && !stays.iter().any(|stay| stay.covers(boot, round)) {
                return Err(format!("life {life} is in it, and was a member for {stays:?}"));
            }
        }
        Ok(())
    }

    /// A worker hands a sum to its training loop.
    pub(super) fn delivered(&mut self, life: usize, given: &Delivered<'_>) -> Result<(), Violation> {
        if !self.checks_sums {
            return Ok(());
        }
        let Delivered { boot, round, .. } = *given;
        let what = || format!("life {life} was given round {round} of boot {boot:x}");
        let was_always_member = self.was_always_member(life, boot);
        let Some(record) = self.rounds.get_mut(&(boot, round)) else {
            return violated(Rule::Agreement, format!("{}, of which nothing was sent", what()));
        };
        let own = &mut self.lives[life];
        match own.delivered.replace((boot, round)) {
            Some((before, last)) if before == boot && !last.is_before(round) => {
                return violated(Rule::RoundOrder, format!("{} after round {last}", what()));
            }
            _ => {}
        }
        let had = own.has.replace(record.replayed.unwrap_or((boot, round)));
        let had = had.filter(|_| !std::mem::take(&mut own.may_lack));
        if let Some(had) = had.filter(|_| record.replayed.is_none()) {
            let previous = *record.previous.get_or_insert(had);
            if previous != had {
                let detail = format!("{} after {had:?}, others after {previous:?}", what());
                return violated(Rule::Agreement, detail);
            }
        }
        // A member that was expelled meanwhile may be given what the others made of the round.
        let expects_own = given.waits_for_all && was_always_member && record.replayed.is_none();
        let segments = given.vector.chunks(usize::from(self.witness.layout.segment_floats()));
        for ((index, floats), contributions) in segments.enumerate().zip(given.contributions) {
            let Some(sum) = record.sums.get(index).and_then(Option::as_ref) else {
                return violated(
                    Rule::Agreement,
                    format!("{}, segment {index} of which was not sent", what()),
                );
            };
            let is_same = sum.bits.iter().zip(floats).all(|(bits, x)| *bits == x.to_bits());
            if !is_same || sum.contributions != *contributions {
                let detail = format!("{}, segment {index} of which is not what was sent", what());
                return violated(Rule::Agreement, detail);
            }
            if expects_own && sum.lives >> life & 1 == 0 {
                let detail = format!("{}, segment {index} of which holds {}", what(), list(sum.lives));
                return violated(Rule::OwnContribution, detail);
            }
        }
        Ok(())
    }
}

impl SegmentSum {
    fn is(&self, packet: &DataPacket<'_>) -> bool {
        self.contributions == packet.seg().contributions
            && self.bits.len() == packet.float_count()
            && self.bits.iter().zip(packet.floats()).all(|(bits, x)| *bits == x.to_bits())
    }
}

/// A sum as a worker has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered<'a> {
    pub(super) boot: u64,
    pub(super) round: Round,
    pub(super) vector: &'a [f32],
    pub(super) contributions: &'a [u16],
    /// Whether no round ends without all members: no SetH and no FBcast.
    pub(super) waits_for_all: bool,
}

fn describe(boot: u64, seg: Seg) -> String {
    format!("result {}:{} x{} of boot {boot:x}", seg.round, seg.index.get(), seg.contributions)
}

fn list(lives: Lives) -> String {
    let lives: Vec<_> = each(lives).map(|life| life.to_string()).collect();
    format!("lives {{{}}}", lives.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn witness() -> Witness {
        Witness::new(VectorLayout::new(13, 5).unwrap(), 30)
    }

    fn contribution(life: usize, gradient: u64) -> Vec<f32> {
        let mut vector = vec![0.0; 13];
        witness().fill(life, gradient, &mut vector);
        vector
    }

    /// What is in the sum of these, if all lives have offered their gradient 3.
    fn read(vectors: &[Vec<f32>], segment: usize) -> Result<Lives, String> {
        let range = segment * 5..(segment * 5 + 5).min(13);
        let sum: Vec<f32> = range.map(|at| vectors.iter().map(|vector| vector[at]).sum()).collect();
        witness().read(&[Some(3); 30], segment, &sum)
    }

    #[test]
    fn a_sum_tells_who_is_in_it() {
        // The last segment has three floats: digits of 30 lives, and no tag.
        let vectors: Vec<_> = [0, 11, 12, 29].map(|life| contribution(life, 3)).into();
        for segment in 0..3 {
            assert_eq!(read(&vectors, segment), Ok(1 | 1 << 11 | 1 << 12 | 1 << 29));
        }
    }

    #[test]
    fn whatever_does_not_belong_shows() {
        let own = contribution(4, 3);
        read(&[own.clone(), own.clone()], 0).unwrap_err();
        read(&[own.clone(), contribution(5, 2)], 0).unwrap_err();
        let mut shifted = contribution(5, 3);
        shifted.rotate_left(5);
        read(&[own.clone(), shifted], 0).unwrap_err();
        let mut half = contribution(5, 3);
        half[..3].fill(0.0);
        read(&[own, half], 0).unwrap_err();
    }
}
