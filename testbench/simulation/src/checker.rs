//! Rules that must hold after every event.
//!
//! A *life* is one run of a worker process, from its start to its end. Each life contributes a witness: a vector from
//! which the checker can tell which contributions a sum contains. A segment starts with lanes of digits: life i adds
//! 4^(i mod 12) to lane i div 12, so that digit i of a sum is the number of times that life i was counted. The floats
//! after the lanes hold a tag that depends on the life, the number of its gradient, the segment and the position. In a
//! sum, the tag equals the sum of the expected tags unless the sum contains a contribution from another round, another
//! segment or another run of the switch. All values are integers and exact in binary32.
//!
//! If elements have 16 bits, a lane has four digits and a tag has eight bits, so that contributions and digits are
//! exact. The sum of the tags is rounded once, in the result.

use std::collections::HashMap;
use std::fmt;

use iswitch_element::rounded;
use iswitch_protocol::wire::DataPacket;
use iswitch_protocol::{ElementType, ElementTypes, Round, Seg, VectorLayout};
use serde::{Deserialize, Serialize};

const BITS_PER_DIGIT: usize = 2;
/// Maximum number of lives (runs of worker processes) in one simulation: the number of bits in a set of lives.
pub const MAX_LIVES: usize = 128;
/// Bits of a tag, chosen so that the tags of [`MAX_LIVES`] lives add up exactly.
const TAG_BITS: u32 = f32::MANTISSA_DIGITS - MAX_LIVES.trailing_zeros();
/// Number of bits of the integers that both 16-bit types represent exactly.
const SHORT_BITS: u32 = 8;

const _: () = assert!(MAX_LIVES << SHORT_BITS < iswitch_protocol::element::F16_OVERFLOW as usize);

/// Returns the number of digits per lane: as many as an element represents exactly.
const fn digits_per_lane(elements: ElementTypes) -> usize {
    let bits = match elements.contributions() {
        ElementType::F32 => f32::MANTISSA_DIGITS,
        ElementType::Bf16 | ElementType::F16 => SHORT_BITS,
    };
    bits as usize / BITS_PER_DIGIT
}

const fn tag_bits(elements: ElementTypes) -> u32 {
    match elements.contributions() {
        ElementType::F32 => TAG_BITS,
        ElementType::Bf16 | ElementType::F16 => SHORT_BITS,
    }
}

/// Returns the number of floats at the start of a segment that hold the digits of the given number of lives.
pub const fn digit_lanes(lives: usize, elements: ElementTypes) -> usize {
    lives.div_ceil(digits_per_lane(elements))
}

/// A set of lives, one bit each.
type Lives = u128;

/// The rule that was violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A sum contains exactly the contributions that it claims, each counted once, from its round and segment.
    Sum,
    /// All packets sent and all sums delivered for a segment of a round have the same bits.
    Agreement,
    /// Only members contribute; a departed member does not contribute to rounds that opened later.
    Membership,
    /// The sums delivered to a member contain its own contribution.
    OwnContribution,
    /// A worker that has been a member without interruption misses no sum.
    Missed,
    /// No worker receives the sum of a round twice, or that of an older round after that of a newer one.
    RoundOrder,
    /// Every received packet is either used or counted under a drop reason; every sent packet is counted.
    Counters,
    /// An aggregate contains as many vectors as H requires.
    Threshold,
    /// No vector is abandoned while its sender is a member, and each vector is in the aggregate that the switch names
    /// to its sender.
    Lost,
    /// No gradient staler than the bound is committed.
    Staleness,
    /// After a deadline has been handled, the next one lies in the future.
    Timer,
    /// A correct worker is not refused.
    Refusal,
    /// A new incarnation of a job sums no round that packets of an earlier incarnation may name.
    Resume,
    /// After the faults have ended, every live process makes progress.
    Liveness,
    /// Nothing panics.
    Panic,
}

/// A rule violation and its details.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The violated rule.
    pub rule: Rule,
    /// The observed and the expected behaviour.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.detail)
    }
}

/// Returns the violated rule as an error, which ends the simulation.
pub(crate) fn violated<T>(rule: Rule, detail: String) -> Result<T, Violation> {
    Err(Violation { rule, detail })
}

/// Generator of the contributions of each life. It also determines which lives contributed to a sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Witness {
    layout: VectorLayout,
    lanes: usize,
}

impl Witness {
    /// Creates a witness. Every segment of the layout must be longer than the lanes that the given number of lives
    /// needs.
    pub(super) fn new(layout: VectorLayout, lives: usize) -> Self {
        assert!(lives <= MAX_LIVES, "the number of lives is {lives}, expected at most {MAX_LIVES}");
        Self { layout, lanes: digit_lanes(lives, layout.elements()) }
    }

    /// Writes a gradient of a life into `vector`.
    pub(super) fn fill(&self, life: usize, gradient: u64, vector: &mut [f32]) {
        let segments = vector.chunks_mut(usize::from(self.layout.segment_floats()));
        for (segment, floats) in segments.enumerate() {
            let (digits, tags) = floats.split_at_mut(self.lanes);
            digits.fill(0.0);
            let per_lane = digits_per_lane(self.layout.elements());
            digits[life / per_lane] = (1 << (life % per_lane * BITS_PER_DIGIT)) as f32;
            for (position, tag) in tags.iter_mut().enumerate() {
                *tag = self.tag(life, gradient, segment, position) as f32;
            }
        }
    }

    fn tag(&self, life: usize, gradient: u64, segment: usize, position: usize) -> u32 {
        let place = gradient << 32 ^ (segment as u64) << 16 ^ (position as u64) << 8 ^ life as u64;
        mix(place) as u32 & ((1 << tag_bits(self.layout.elements())) - 1)
    }

    /// Returns the lives that contributed to the sum of a segment, given the gradient that each life has offered.
    /// `element` is the element type of the packet that carried the sum.
    fn read(
        &self,
        offers: &[Option<u64>],
        segment: usize,
        floats: &[f32],
        element: ElementType,
    ) -> Result<Lives, String> {
        let per_lane = digits_per_lane(self.layout.elements());
        let (digits, tags) = floats.split_at(self.lanes);
        let mut lives = 0;
        for (lane, sum) in digits.iter().enumerate() {
            let Some(mut rest) = integer(*sum) else {
                return Err(format!("lane {lane} is {sum}, not an integer"));
            };
            for digit in 0..per_lane {
                let life = lane * per_lane + digit;
                match rest & 3 {
                    0 => {}
                    1 if life < MAX_LIVES => lives |= 1 << life,
                    times => {
                        return Err(format!("life {life} was counted {times} times, expected at most once"));
                    }
                }
                rest >>= BITS_PER_DIGIT;
            }
            if rest != 0 {
                return Err(format!("lane {lane} is {sum}, which has more digits than a lane can hold"));
            }
        }
        for (position, sum) in tags.iter().enumerate() {
            let mut expected = 0;
            for life in each(lives) {
                let Some(gradient) = offers.get(life).copied().flatten() else {
                    return Err(format!(
                        "it contains a contribution of life {life}, which has submitted no gradient"
                    ));
                };
                expected += self.tag(life, gradient, segment, position);
            }
            let expected = rounded(element, expected as f32);
            if *sum != expected {
                return Err(format!("tag {position} is {sum}, expected {expected} from {}", list(lives)));
            }
        }
        Ok(lives)
    }
}

/// Iterates over the lives in a set.
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

/// Applies the finaliser of SplitMix64, which maps similar inputs to unrelated outputs.
pub(super) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A packet that a switch sent.
struct Segment {
    seg: Seg,
    /// Elements, converted to f32.
    floats: Vec<f32>,
    element: ElementType,
}

/// First result that the switch sent for a segment of a round.
#[derive(Clone, Debug)]
struct SegmentSum {
    contributions: u16,
    lives: Lives,
    bits: Vec<u32>,
}

/// A period of membership of a life: the rounds in which it takes part.
#[derive(Clone, Copy, Debug)]
struct Stay {
    boot: u64,
    start: Round,
    /// Latest round that was open when the member departed.
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Present,
    /// The membership ended with the job, before the first round of the next job.
    BeforeNextJob,
    At(Round),
}

/// Round that was open in a job when a member departed.
#[derive(Clone, Copy, Debug)]
pub(super) enum RoundThen {
    /// This round was open, and perhaps the previous one too.
    Open(Round),
    /// No round was open; all later rounds opened after the departure.
    None,
    JobEnded,
}

impl Stay {
    fn covers(&self, boot: u64, round: Round) -> bool {
        let is_after_end = matches!(self.end, End::At(end) if end.is_before(round));
        self.boot == boot && !round.is_before(self.start) && !is_after_end
    }
}

/// State that the checker keeps for a life.
#[derive(Clone, Debug, Default)]
struct Record {
    stays: Vec<Stay>,
    /// Last round whose sum was delivered to this life.
    delivered: Option<Key>,
    /// Round in which the sum of `delivered` was computed. It differs from `delivered` if that round replayed an
    /// earlier sum.
    has: Option<Key>,
    /// Whether the life was notified that it missed sums, so that it may lack sums that other lives have received.
    may_lack: bool,
}

impl Record {
    /// Returns whether the life has been a member of this run of the switch without interruption.
    fn was_always_member(&self, boot: u64) -> bool {
        let mut stays = self.stays.iter().filter(|stay| stay.boot == boot);
        stays.next().is_some_and(|stay| stay.end == End::Present) && stays.next().is_none()
    }
}

/// A run of the switch and a round of that run.
type Key = (u64, Round);

/// State that the checker keeps for a round.
#[derive(Clone, Debug, Default)]
struct RoundRecord {
    /// Gradient that each life has offered for the round.
    offers: Vec<Option<u64>>,
    /// Earlier round whose sum members supply in this round.
    replayed: Option<Key>,
    /// Last round delivered before this round, as seen by the first life that received the sum of this round.
    previous: Option<Key>,
    /// First result of each segment: `[segment_count]`.
    sums: Vec<Option<SegmentSum>>,
}

/// Checker that compares all packets sent and all sums delivered with what the protocol allows.
#[derive(Debug)]
pub(super) struct Checker {
    witness: Witness,
    /// Whether sums are checked; false if corruption can pass the checksums.
    checks_sums: bool,
    rounds: HashMap<Key, RoundRecord>,
    /// Latest round for which a result was sent.
    latest: Option<Key>,
    lives: Vec<Record>,
    /// Whether there are switches below the root. If so, several switches determine which members take part in a
    /// round, and participation is checked only until the first departure.
    is_tree: bool,
    /// Whether the workers have a standby switch. If so, no worker with sums may ever miss a sum, and all lives that
    /// have not ended receive the same next sum after any given sum, regardless of the switches that compute them.
    has_standby: bool,
    /// If there is a standby switch: for each sum, the lives that have received a further sum after it, and the next
    /// sum that each of them received.
    successors: HashMap<Key, Vec<(usize, Key)>>,
    /// Lives that have ended, or that leave the job.
    ended: Lives,
    /// Epochs whose sums were delivered, in the order of their first sums, if there is a standby switch.
    incarnations: Vec<u64>,
    /// Whether a member or a switch has ever departed.
    has_lost_somebody: bool,
}

impl Checker {
    pub(super) fn new(witness: Witness, lives: usize, checks_sums: bool, is_tree: bool) -> Self {
        Self {
            witness,
            checks_sums,
            is_tree,
            has_standby: false,
            successors: HashMap::new(),
            incarnations: Vec::new(),
            ended: 0,
            has_lost_somebody: false,
            rounds: HashMap::new(),
            latest: None,
            lives: vec![Record::default(); lives],
        }
    }

    /// Sets whether the workers have a standby switch.
    pub(super) fn with_standby(self, has_standby: bool) -> Self {
        Self { has_standby, ..self }
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

    /// Records that the switch admitted a life.
    pub(super) fn joined(&mut self, life: usize, boot: u64, start: Round) {
        for stay in self.lives.iter_mut().flat_map(|life| &mut life.stays) {
            if stay.boot == boot && stay.end == End::BeforeNextJob {
                stay.end = End::At(start.previous());
            }
        }
        self.lives[life].stays.push(Stay { boot, start, end: End::Present });
    }

    /// Records that the job resumes at a round beyond those of all earlier runs; its members take part from that
    /// round on.
    pub(super) fn resumed(&mut self, boot: u64, start: Round) {
        let stays = self.lives.iter_mut().flat_map(|life| &mut life.stays);
        stays
            .filter(|stay| stay.boot == boot && stay.end == End::Present)
            .for_each(|stay| stay.start = start);
    }

    /// Records that a life has ended or leaves the job. Sums that only such lives have received are lost.
    pub(super) fn ended(&mut self, life: usize) {
        self.ended |= 1 << life;
    }

    /// Records that a switch was killed or that its parent removed it.
    pub(super) fn lost_switch(&mut self) {
        self.has_lost_somebody = true;
    }

    fn was_always_member(&self, life: usize, boot: u64) -> bool {
        if self.is_tree { !self.has_lost_somebody } else { self.lives[life].was_always_member(boot) }
    }

    /// Records that the switch removed a life from the job.
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

    /// Records that a life offers, for a round, either a gradient or, if `supplies` is set, the last sum that it
    /// received.
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
            (known, own) if self.checks_sums => violated(
                Rule::Agreement,
                format!("life {life} supplied the sum of {own:?}, but others supplied the sum of {known:?}"),
            ),
            _ => Ok(()),
        }
    }

    /// Records that a life was notified of missed sums. `waits_for_all` indicates whether every round waits for all its
    /// members.
    pub(super) fn missed(&mut self, life: usize, boot: u64, waits_for_all: bool) -> Result<(), Violation> {
        let own = &mut self.lives[life];
        // A life that was notified earlier has fetched the state of another one, whose latest sum may have been
        // abandoned since.
        let was_reported = std::mem::replace(&mut own.may_lack, true);
        // A life without any sum was only assigned a start round, and that may change.
        let has_sums = own.has.is_some();
        if self.checks_sums && self.has_standby && has_sums {
            return violated(
                Rule::Missed,
                format!("life {life} missed a sum although it has a standby switch"),
            );
        }
        let is_excused = !waits_for_all || was_reported || !has_sums;
        if self.checks_sums && !is_excused && self.was_always_member(life, boot) {
            let detail =
                format!("life {life} missed a sum although it was a member throughout boot {boot:x}");
            return violated(Rule::Missed, detail);
        }
        Ok(())
    }

    /// Checks a result sent by the root switch.
    pub(super) fn sent(&mut self, boot: u64, bytes: &[u8]) -> Result<(), Violation> {
        if !self.checks_sums {
            return Ok(());
        }
        let packet = self.parse(bytes, self.witness.layout.elements().results())?;
        let seg = packet.seg;
        let (key, index) = ((boot, seg.round), seg.index.get() as usize);
        if let Some(known) = self.known_sum(key, index) {
            if known.is(&packet) {
                return Ok(());
            }
            let what = describe(boot, seg);
            return violated(Rule::Agreement, format!("{what} was sent earlier with different bits"));
        }
        let sum = self.read_or_replayed(key, &packet)?;
        if self.latest.is_none_or(|(of, latest)| of != boot || latest.is_before(seg.round)) {
            self.latest = Some(key);
        }
        self.sums_mut(key)[index] = Some(sum);
        Ok(())
    }

    /// Checks the partial sum that a switch sends to its parent.
    pub(super) fn sent_up(&self, boot: u64, bytes: &[u8]) -> Result<(), Violation> {
        if !self.checks_sums {
            return Ok(());
        }
        let packet = self.parse(bytes, ElementType::F32)?;
        self.read_or_replayed((boot, packet.seg.round), &packet).map(|_| ())
    }

    /// Checks a result that a switch sends to its members: either a result from its parent or one that some members
    /// supplied.
    pub(super) fn passed_on(&mut self, boot: u64, bytes: &[u8]) -> Result<(), Violation> {
        if !self.checks_sums {
            return Ok(());
        }
        let packet = self.parse(bytes, self.witness.layout.elements().results())?;
        let seg = packet.seg;
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
                violated(Rule::Agreement, format!("{} differs from what the root sent", describe(boot, seg)))
            }
        }
    }

    fn parse(&self, bytes: &[u8], element: ElementType) -> Result<Segment, Violation> {
        let packet = match DataPacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(error) => return violated(Rule::Sum, format!("the switch sent an invalid packet: {error}")),
        };
        let (seg, elements) = (packet.seg(), packet.element_bytes());
        let expected = self.witness.layout.packet_len(seg.index, element);
        if bytes.len() != expected {
            return violated(
                Rule::Sum,
                format!("the packet has {} bytes, expected {expected} for {seg:?}", bytes.len()),
            );
        }
        let mut floats = vec![0.0; elements.len() / element.len_bytes()];
        iswitch_element::widen(element, elements, &mut floats);
        Ok(Segment { seg, floats, element })
    }

    fn known_sum(&self, key: Key, index: usize) -> Option<&SegmentSum> {
        self.rounds.get(&key)?.sums.get(index)?.as_ref()
    }

    /// Returns the sum in a packet: the one replayed in its round or a new one.
    fn read_or_replayed(&self, key: Key, packet: &Segment) -> Result<SegmentSum, Violation> {
        match self.replayed_in(key, packet) {
            Some(sum) => Ok(sum.clone()),
            None => self
                .read_sum(key, packet.seg.index.get() as usize, packet)
                .or_else(|(rule, error)| violated(rule, format!("{}: {error}", describe(key.0, packet.seg)))),
        }
    }

    /// Returns the sum replayed in the packet's round if the packet holds that sum.
    fn replayed_in(&self, key: Key, packet: &Segment) -> Option<&SegmentSum> {
        let replayed = self.rounds.get(&key)?.replayed?;
        self.known_sum(replayed, packet.seg.index.get() as usize).filter(|sum| sum.is(packet))
    }

    /// Returns the results sent for each segment of a round: `[segment_count]`.
    fn sums_mut(&mut self, key: Key) -> &mut [Option<SegmentSum>] {
        let segments = self.segments() as usize;
        let sums = &mut self.rounds.entry(key).or_default().sums;
        sums.resize(segments, None);
        sums
    }

    fn read_sum(&self, key: Key, index: usize, packet: &Segment) -> Result<SegmentSum, (Rule, String)> {
        let Segment { seg, floats, element } = packet;
        let offers = self.rounds.get(&key).map_or(&[][..], |record| &record.offers);
        let lives = self.witness.read(offers, index, floats, *element).map_err(|error| (Rule::Sum, error))?;
        let contributions = seg.contributions;
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
                return Err(format!(
                    "it contains a contribution of life {life}, which was a member only in {stays:?}"
                ));
            }
        }
        Ok(())
    }

    /// Checks a sum that a worker hands to its training loop.
    pub(super) fn delivered(&mut self, life: usize, given: &Delivered<'_>) -> Result<(), Violation> {
        if !self.checks_sums {
            return Ok(());
        }
        let Delivered { boot, round, .. } = *given;
        if self.has_standby && self.incarnations.last() != Some(&boot) {
            // Two switches must not sum at the same time.
            if self.incarnations.contains(&boot) {
                let earlier = &self.incarnations;
                let detail =
                    format!("life {life} received a sum from boot {boot:x} after sums from {earlier:x?}");
                return violated(Rule::Agreement, detail);
            }
            self.incarnations.push(boot);
        }
        let what = || format!("life {life} received round {round} of boot {boot:x}");
        let was_always_member = self.was_always_member(life, boot);
        let Some(record) = self.rounds.get_mut(&(boot, round)) else {
            return violated(Rule::Agreement, format!("{}, but the switch sent no part of it", what()));
        };
        let own = &mut self.lives[life];
        match own.delivered.replace((boot, round)) {
            Some((before, last)) if before == boot && !last.is_before(round) => {
                return violated(Rule::RoundOrder, format!("{} after round {last}", what()));
            }
            _ => {}
        }
        let sum = record.replayed.unwrap_or((boot, round));
        let had = own.has.replace(sum);
        let had = had.filter(|_| !std::mem::take(&mut own.may_lack));
        if let Some(had) = had.filter(|_| self.has_standby) {
            let successors = self.successors.entry(had).or_default();
            let is_other = |(other, next): &&(usize, Key)| *next != sum && self.ended >> other & 1 == 0;
            if let Some((other, next)) = successors.iter().find(is_other) {
                let detail = format!("{} after {had:?}, but life {other} received {next:?} after it", what());
                return violated(Rule::Agreement, detail);
            }
            successors.push((life, sum));
        }
        if let Some(had) = had.filter(|_| record.replayed.is_none()) {
            let previous = *record.previous.get_or_insert(had);
            if previous != had {
                let detail = format!("{} after {had:?}, but others received it after {previous:?}", what());
                return violated(Rule::Agreement, detail);
            }
        }
        // A member that was expelled in the meantime may receive the sum that the other members completed.
        let expects_own = given.waits_for_all && was_always_member && record.replayed.is_none();
        let segments = given.vector.chunks(usize::from(self.witness.layout.segment_floats()));
        for ((index, floats), contributions) in segments.enumerate().zip(given.contributions) {
            let Some(sum) = record.sums.get(index).and_then(Option::as_ref) else {
                return violated(
                    Rule::Agreement,
                    format!("{}, but segment {index} of it was never sent", what()),
                );
            };
            let is_same = sum.bits.iter().zip(floats).all(|(bits, x)| *bits == x.to_bits());
            if !is_same || sum.contributions != *contributions {
                let detail = format!("{}, but segment {index} of it differs from what was sent", what());
                return violated(Rule::Agreement, detail);
            }
            if expects_own && sum.lives >> life & 1 == 0 {
                let detail = format!("{}, but segment {index} of it contains {}", what(), list(sum.lives));
                return violated(Rule::OwnContribution, detail);
            }
        }
        Ok(())
    }
}

impl SegmentSum {
    fn is(&self, packet: &Segment) -> bool {
        let bits = packet.floats.iter().map(|x| x.to_bits());
        self.contributions == packet.seg.contributions && bits.eq(self.bits.iter().copied())
    }
}

/// A sum as delivered to a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered<'a> {
    pub(super) boot: u64,
    pub(super) round: Round,
    pub(super) vector: &'a [f32],
    pub(super) contributions: &'a [u16],
    /// Whether every round waits for all its members, which is the case if the scenario contains neither SetH nor
    /// FBcast.
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

    /// Returns the lives in the sum of these vectors if all lives have offered their gradient 3.
    fn read(vectors: &[Vec<f32>], segment: usize) -> Result<Lives, String> {
        let range = segment * 5..(segment * 5 + 5).min(13);
        let sum: Vec<f32> = range.map(|at| vectors.iter().map(|vector| vector[at]).sum()).collect();
        witness().read(&[Some(3); 30], segment, &sum, ElementType::F32)
    }

    #[test]
    fn a_sum_identifies_its_contributors() {
        // The last segment has three floats: the digits of 30 lives and no tag.
        let vectors: Vec<_> = [0, 11, 12, 29].map(|life| contribution(life, 3)).into();
        for segment in 0..3 {
            assert_eq!(read(&vectors, segment), Ok(1 | 1 << 11 | 1 << 12 | 1 << 29));
        }
    }

    #[test]
    fn invalid_contributions_are_detected_in_a_sum() {
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
