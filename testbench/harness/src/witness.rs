//! Vectors whose sum reveals, for each segment, which workers it contains and how often.
//!
//! Each segment begins with a census: worker i adds its own power of four, so that digit i of the sum, in base 4,
//! counts the contributions of worker i. All other elements are integers that depend on the rank, the round and the
//! element, so that they reveal a missing, duplicate, stale or misplaced contribution. With 32-bit elements, sums are
//! exact in any order; with 16-bit elements, the sums of these integers are rounded once.

use std::collections::HashMap;
use std::fmt;

use iswitch_protocol::limits::MAX_MEMBERS;
use iswitch_protocol::{ElementType, ElementTypes};

/// Bits of a census digit; a worker can be counted three times before its digit overflows into the next.
const BASE_BITS: u32 = 2;
/// Number of bits of the integers that an f32 represents exactly. The next constant is the number for both 16-bit
/// types.
const WIDE_BITS: u32 = f32::MANTISSA_DIGITS;
const SHORT_BITS: u32 = 8;
const ELEMENT_SALT: u32 = 0x9e37_79b9;
const ROUND_SALT: u32 = 0x7f4a_7c15;

/// Returns the number of workers that one float of a census can count.
fn workers_per_float(elements: ElementTypes) -> usize {
    let bits = if elements.contributions() == ElementType::F32 { WIDE_BITS } else { SHORT_BITS };
    (bits / BASE_BITS) as usize
}

/// Returns a pseudo-random 16-bit integer, or a 7-bit one if elements have 16 bits. A contribution is the sum of two
/// such integers, one for the element and one for the round, and is exact. With 32-bit elements, the sum over
/// [`MAX_MEMBERS`] workers needs 23 of the 24 bits that an f32 represents exactly.
fn integer(elements: ElementTypes, rank: usize, place: u32) -> f32 {
    // This is the finaliser of MurmurHash3.
    let mut x = place.wrapping_add((rank as u32).wrapping_mul(0x85eb_ca77));
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    let mask = if elements.contributions() == ElementType::F32 { 0xffff } else { 0x7f };
    ((x ^ (x >> 16)) & mask) as f32
}

const _: () = assert!(MAX_MEMBERS * 2 * 0xffff < 1 << WIDE_BITS && 2 * 0x7f < 1 << SHORT_BITS);

/// A set of ranks: bit i stands for rank i.
type Ranks = u64;

fn ranks(set: Ranks) -> impl Iterator<Item = usize> {
    (0..MAX_MEMBERS).filter(move |rank| set & 1 << rank != 0)
}

/// Generates the contributions of one worker and checks the sums.
#[derive(Debug)]
pub struct Witness {
    rank: usize,
    workers: usize,
    segment_floats: usize,
    elements: ElementTypes,
    /// The part of this worker's contribution to each element that is the same in all rounds.
    own: Vec<f32>,
    /// Cached sums of the parts that are the same in all rounds, for each set of workers that was found in a segment.
    sums: HashMap<Ranks, Vec<f32>>,
}

/// Numbers of workers in the segments of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Census {
    /// Number of workers in the segment that contains the fewest.
    pub fewest: u16,
    /// Number of workers in the segment that contains the most.
    pub most: u16,
}

/// Error in a sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wrong {
    /// A segment contains a worker an unexpected number of times.
    Count {
        /// Number of the segment.
        segment: usize,
        /// The worker.
        rank: usize,
        /// Number of times that the sum contains the worker's contribution.
        times: u32,
    },
    /// A segment contains a contribution from outside the job, or its census is not an integer.
    Census {
        /// Number of the segment.
        segment: usize,
        /// The float that counts workers.
        got: f32,
    },
    /// An element is not the sum over the workers in its segment.
    Element {
        /// Index of the element in the vector.
        element: usize,
        /// The element.
        got: f32,
        /// Sum over the workers in the segment.
        expected: f32,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { segment, rank, times } => {
                write!(f, "segment {segment} contains the contribution of rank {rank} {times} times")
            }
            Self::Census { segment, got } => write!(f, "segment {segment} has an invalid census: {got}"),
            Self::Element { element, got, expected } => {
                write!(f, "element {element} is {got}, expected {expected}")
            }
        }
    }
}

impl Witness {
    /// Creates the witness for the worker `rank` of `workers` (at most 64) and for vectors of `floats` elements, of
    /// which each packet carries `segment_floats`.
    pub fn new(
        rank: usize,
        workers: usize,
        floats: usize,
        segment_floats: usize,
        elements: ElementTypes,
    ) -> Self {
        let own = (0..floats as u32).map(|element| integer(elements, rank, ELEMENT_SALT ^ element)).collect();
        Self { rank, workers, segment_floats, elements, own, sums: HashMap::new() }
    }

    /// Returns the number of floats at the start of each segment that count workers.
    pub fn census_floats(workers: usize, elements: ElementTypes) -> usize {
        workers.div_ceil(workers_per_float(elements))
    }

    fn own_census_floats(&self) -> usize {
        Self::census_floats(self.workers, self.elements)
    }

    /// Returns the value that a worker adds to its float of a census.
    fn digit_of(&self, rank: usize) -> u32 {
        1 << ((rank % workers_per_float(self.elements)) as u32 * BASE_BITS)
    }

    /// Writes the contribution for a round.
    pub fn fill(&self, vector: &mut [f32], round: u32) {
        let share = integer(self.elements, self.rank, ROUND_SALT ^ round);
        vector.iter_mut().zip(&self.own).for_each(|(to, own)| *to = own + share);
        let census = self.own_census_floats();
        for segment in vector.chunks_mut(self.segment_floats) {
            let end = census.min(segment.len());
            segment[..end].fill(0.0);
            segment[self.rank / workers_per_float(self.elements)] = self.digit_of(self.rank) as f32;
        }
    }

    /// Checks each segment of a sum, which may be shorter than the vector. Each segment must contain this worker's
    /// contribution and no contribution twice, and each of its elements must be the sum over the workers that it
    /// contains.
    ///
    /// # Errors
    /// Returns the first error found.
    pub fn check(&mut self, sum: &[f32], round: u32) -> Result<Census, Wrong> {
        let mut census = Census { fewest: u16::MAX, most: 0 };
        for (number, segment) in sum.chunks(self.segment_floats).enumerate() {
            let present = self.present(segment, number)?;
            self.check_elements(segment, number, present, round)?;
            let count = present.count_ones() as u16;
            census.fewest = census.fewest.min(count);
            census.most = census.most.max(count);
        }
        Ok(census)
    }

    /// Returns the workers that a segment contains.
    fn present(&self, segment: &[f32], number: usize) -> Result<Ranks, Wrong> {
        let mut present = 0;
        let per_float = workers_per_float(self.elements);
        for (at, &got) in segment[..self.own_census_floats()].iter().enumerate() {
            let first = at * per_float;
            let last = self.workers.min(first + per_float);
            let limit = 1 << ((last - first) as u32 * BASE_BITS);
            if got.fract() != 0.0 || !(0.0..limit as f32).contains(&got) {
                return Err(Wrong::Census { segment: number, got });
            }
            for rank in first..last {
                let times = (got as u32 / self.digit_of(rank)) & ((1 << BASE_BITS) - 1);
                if times > 1 || (rank == self.rank && times == 0) {
                    return Err(Wrong::Count { segment: number, rank, times });
                }
                present |= u64::from(times) << rank;
            }
        }
        Ok(present)
    }

    fn check_elements(
        &mut self,
        segment: &[f32],
        number: usize,
        present: Ranks,
        round: u32,
    ) -> Result<(), Wrong> {
        let floats = self.own.len() as u32;
        let elements = self.elements;
        let sum_over = |place| ranks(present).map(|rank| integer(elements, rank, place)).sum::<f32>();
        let sums = self
            .sums
            .entry(present)
            .or_insert_with(|| (0..floats).map(|element| sum_over(ELEMENT_SALT ^ element)).collect());
        let share = sum_over(ROUND_SALT ^ round);
        let start = number * self.segment_floats;
        let expected = &sums[start..start + segment.len()];
        let census = Self::census_floats(self.workers, elements);
        let rounded = |sum: f32| iswitch_element::rounded(elements.results(), sum + share);
        let mut pairs = segment.iter().zip(expected).skip(census);
        match pairs.position(|(got, sum)| *got != rounded(*sum)) {
            None => Ok(()),
            Some(at) => {
                let (got, expected) = (segment[census + at], rounded(expected[census + at]));
                Err(Wrong::Element { element: start + census + at, got, expected })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOATS: usize = 1000;
    const SEGMENT_FLOATS: usize = 366;
    const ROUND: u32 = 5;

    /// Returns what worker 0 finds in the sum of several workers' vectors after a change.
    fn check(workers: usize, change: impl Fn(&mut Vec<Vec<f32>>)) -> Result<Census, Wrong> {
        let fill = |rank| {
            let mut vector = vec![0.0; FLOATS];
            Witness::new(rank, workers, FLOATS, SEGMENT_FLOATS, ElementTypes::F32).fill(&mut vector, ROUND);
            vector
        };
        let mut vectors: Vec<_> = (0..workers).map(fill).collect();
        change(&mut vectors);
        let sum: Vec<f32> = (0..FLOATS).map(|at| vectors.iter().map(|vector| vector[at]).sum()).collect();
        Witness::new(0, workers, FLOATS, SEGMENT_FLOATS, ElementTypes::F32).check(&sum, ROUND)
    }

    #[test]
    fn a_correct_sum_passes() {
        for workers in [1, 3, 12, 13, 64] {
            let census = Census { fewest: workers as u16, most: workers as u16 };
            assert_eq!(check(workers, |_| ()), Ok(census));
        }
    }

    #[test]
    fn a_sum_of_fewer_workers_passes_and_reports_their_number() {
        assert_eq!(check(4, |vectors| vectors.truncate(2)), Ok(Census { fewest: 2, most: 2 }));
        let in_one_segment_only = |vectors: &mut Vec<Vec<f32>>| vectors[20][SEGMENT_FLOATS..].fill(0.0);
        assert_eq!(check(30, in_one_segment_only), Ok(Census { fewest: 29, most: 30 }));
    }

    #[test]
    fn a_worker_counted_twice_or_not_at_all_is_reported() {
        let twice = check(14, |vectors| vectors.push(vectors[13].clone()));
        assert_eq!(twice, Err(Wrong::Count { segment: 0, rank: 13, times: 2 }));
        let four_times = check(3, |vectors| vectors.extend(vec![vectors[1].clone(); 3]));
        assert_eq!(four_times, Err(Wrong::Count { segment: 0, rank: 2, times: 2 }));
        let without_me = check(3, |vectors| vectors[0][2 * SEGMENT_FLOATS..].fill(0.0));
        assert_eq!(without_me, Err(Wrong::Count { segment: 2, rank: 0, times: 0 }));
        let stranger = check(3, |vectors| vectors.push(vec![64.0; FLOATS]));
        assert_eq!(stranger, Err(Wrong::Census { segment: 0, got: 85.0 }));
    }

    #[test]
    fn missing_misplaced_or_stale_elements_are_detected() {
        let missing = check(3, |vectors| vectors[2][700..].fill(0.0));
        assert!(matches!(missing, Err(Wrong::Element { element: 700, .. })), "{missing:?}");
        check(3, |vectors| vectors[0].copy_within(366..732, 0)).unwrap_err();
        check(3, |vectors| {
            Witness::new(0, 3, FLOATS, SEGMENT_FLOATS, ElementTypes::F32).fill(&mut vectors[0], ROUND - 1);
        })
        .unwrap_err();
    }
}
