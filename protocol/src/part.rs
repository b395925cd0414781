//! Division of a vector into parts, one for each thread of a switch (requirements T-3 and T-4).

use core::net::SocketAddrV4;
use core::ops::Range;

use crate::limits::{MAX_PARTS, MIN_PART_SEGMENTS};

/// Returns the number of parts into which the members of a job divide a vector if the switch announces `announced`
/// parts. The result is at least 1, and it is the same for all members.
///
/// The result is lower than `announced` if the parts would otherwise have too few segments. A small part takes more
/// than its proportional share of the time needed for the whole vector, because each part requires its own system
/// calls at both ends.
#[inline]
pub fn count(announced: usize, gradient_len: u32, segment_floats: u16) -> usize {
    let segments = gradient_len.div_ceil(u32::from(segment_floats).max(1));
    let most = (segments / MIN_PART_SEGMENTS) as usize;
    announced.min(MAX_PARTS).min(most).max(1)
}

/// Returns the range of floats that form part `at` of `count` parts. Each part consists of whole segments, and the
/// segment counts of any two parts differ by at most one. A part is empty only if there are fewer segments than parts.
#[inline]
pub fn range(gradient_len: u32, segment_floats: u16, count: usize, at: usize) -> Range<usize> {
    let (len, size) = (gradient_len as usize, usize::from(segment_floats.max(1)));
    let segments = len.div_ceil(size);
    let bound = |at: usize| (segments * at / count.max(1) * size).min(len);
    bound(at)..bound(at + 1)
}

/// Returns the number of parts into which the vector must be divided for the first part to have `first_len` floats, or
/// `None` if no number of parts gives that length. One part means that the vector is not divided.
#[inline]
pub fn count_of_first(gradient_len: u32, segment_floats: u16, first_len: u32) -> Option<usize> {
    let most = count(MAX_PARTS, gradient_len, segment_floats);
    (1..=most).find(|count| range(gradient_len, segment_floats, *count, 0).len() == first_len as usize)
}

/// Returns the address of thread `at` of a switch whose first thread is at `first`: the same IP address, with the UDP
/// port number increased by `at`. Returns `None` if that port number would exceed 65,535.
#[inline]
pub fn address(first: SocketAddrV4, at: usize) -> Option<SocketAddrV4> {
    let port = u16::try_from(at).ok().and_then(|at| first.port().checked_add(at))?;
    Some(SocketAddrV4::new(*first.ip(), port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FLOATS: u16 = 366;

    #[test]
    fn short_vectors_have_fewer_parts() {
        let of_segments = |segments: u32| count(4, segments * u32::from(FLOATS), FLOATS);
        assert_eq!([0, 1, 127, 128, 191, 192, 256, 5000].map(of_segments), [1, 1, 1, 2, 2, 3, 4, 4]);
        assert_eq!(count(1000, u32::MAX, 1), MAX_PARTS);
        assert_eq!(count(0, u32::MAX, 0), 1);
    }

    #[test]
    fn the_length_of_the_first_part_determines_the_number_of_parts() {
        for segments in 1..10_000 {
            let len = segments * u32::from(FLOATS) - 5;
            for parts in 1..=count(MAX_PARTS, len, FLOATS) {
                let first = range(len, FLOATS, parts, 0).len() as u32;
                assert_eq!(count_of_first(len, FLOATS, first), Some(parts), "{segments} segments");
            }
        }
        assert_eq!(count_of_first(1_000_000, FLOATS, 999), None);
    }

    #[test]
    fn threads_serve_consecutive_ports() {
        let first: SocketAddrV4 = "10.0.0.1:65533".parse().unwrap();
        let ports = [0, 2, 3, 65_536].map(|at| address(first, at).map(|address| address.port()));
        assert_eq!(ports, [Some(65_533), Some(65_535), None, None]);
        assert_eq!(address(first, 1).map(|address| *address.ip()), Some(*first.ip()));
    }

    proptest! {
        #[test]
        fn parts_consist_of_consecutive_whole_segments(
            len in 1u32..100_000, size in 1u16..400, count in 1usize..20,
        ) {
            let parts = (0..count).map(|at| range(len, size, count, at));
            let (mut end, mut fewest, mut most) = (0, usize::MAX, 0);
            for part in parts {
                prop_assert_eq!(part.start, end);
                prop_assert!(part.is_empty() || part.start.is_multiple_of(usize::from(size)));
                let segments = part.len().div_ceil(usize::from(size));
                (end, fewest, most) = (part.end, fewest.min(segments), most.max(segments));
            }
            prop_assert_eq!(end, len as usize);
            prop_assert!(most - fewest <= 1);
        }
    }
}
