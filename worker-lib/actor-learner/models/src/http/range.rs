//! Parser of the Range header (RFC 9110 section 14) for a single range of bytes.

use std::ops::Range;

/// Requested part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestedRange {
    /// The whole object. This variant is used if there is no range, if there are several ranges, or if the header is
    /// invalid or uses another unit. In these cases, the RFC requires that the header be ignored.
    Whole,
    /// A non-empty part of the object.
    Part(Range<u64>),
    /// A range that contains no byte of the object.
    Nothing,
}

/// Parses the header for an object of `len_bytes` bytes.
pub(crate) fn parse(field: &str, len_bytes: u64) -> RequestedRange {
    let Some((unit, range)) = field.split_once('=') else { return RequestedRange::Whole };
    let Some((first, last)) = range.trim().split_once('-') else { return RequestedRange::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return RequestedRange::Whole;
    }
    match (position(first), position(last)) {
        (Some(Position::None), Some(Position::At(suffix_len))) => {
            part(len_bytes.saturating_sub(suffix_len), len_bytes, len_bytes)
        }
        (Some(Position::At(first)), Some(Position::None)) => part(first, len_bytes, len_bytes),
        (Some(Position::At(first)), Some(Position::At(last))) if first <= last => {
            part(first, last.saturating_add(1), len_bytes)
        }
        _ => RequestedRange::Whole,
    }
}

fn part(start: u64, end: u64, len_bytes: u64) -> RequestedRange {
    if start < len_bytes { RequestedRange::Part(start..end.min(len_bytes)) } else { RequestedRange::Nothing }
}

enum Position {
    None,
    At(u64),
}

/// Parses a position. A number that does not fit into 64 bits lies after the end of any object.
fn position(text: &str) -> Option<Position> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Position::None);
    }
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| Position::At(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn byte_ranges_follow_the_rfc() {
        let part = |start, end| RequestedRange::Part(start..end);
        for (field, asked) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=0-99", part(0, 100)),
            ("bytes=0-1000", part(0, 100)),
            ("bytes=10-", part(10, 100)),
            ("bytes=-1", part(99, 100)),
            ("bytes=-1000", part(0, 100)),
            ("Bytes = 5-6", part(5, 7)),
            ("bytes=0-99999999999999999999", part(0, 100)),
            ("bytes=100-", RequestedRange::Nothing),
            ("bytes=100-200", RequestedRange::Nothing),
            ("bytes=-0", RequestedRange::Nothing),
            ("bytes=99999999999999999999-", RequestedRange::Nothing),
            ("bytes=6-5", RequestedRange::Whole),
            ("bytes=-", RequestedRange::Whole),
            ("bytes=0-1,5-6", RequestedRange::Whole),
            ("bytes=a-b", RequestedRange::Whole),
            ("bytes=+1-2", RequestedRange::Whole),
            ("items=0-1", RequestedRange::Whole),
            ("bytes", RequestedRange::Whole),
            ("", RequestedRange::Whole),
        ] {
            assert_eq!(parse(field, 100), asked, "{field:?}");
        }
    }

    proptest! {
        #[test]
        fn any_range_header_yields_a_range_within_the_object(
            field in "(bytes=)?[0-9]{0,20}-?[0-9]{0,20}.{0,3}", len in 1_u64..1000
        ) {
            if let RequestedRange::Part(part) = parse(&field, len) {
                prop_assert!(part.start < part.end && part.end <= len, "{part:?}");
            }
        }
    }
}
