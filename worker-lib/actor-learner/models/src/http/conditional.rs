//! Evaluation of conditional requests (RFC 9110 section 13) with strong ETags.

use hyper::HeaderMap;
use hyper::header::{HeaderName, IF_MATCH, IF_NONE_MATCH, IF_RANGE, RANGE};

use super::range::{RequestedRange, parse};

/// Outcome of a request's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Send the object.
    Send,
    /// 304: the reader already has the object.
    NotModified,
    /// 412: the object does not satisfy the reader's condition.
    PreconditionFailed,
}

/// Evaluates the If-Match and If-None-Match headers.
pub(crate) fn judge(headers: &HeaderMap, etag: &str) -> Verdict {
    if let Some(wanted) = text(headers, IF_MATCH)
        && !list_has(&wanted, etag, false)
    {
        return Verdict::PreconditionFailed;
    }
    if text(headers, IF_NONE_MATCH).is_some_and(|known| list_has(&known, etag, true)) {
        return Verdict::NotModified;
    }
    Verdict::Send
}

/// Returns the requested part of the object. Ignores the range if the If-Range header names a different object.
pub(crate) fn asked(headers: &HeaderMap, etag: &str, len_bytes: u64) -> RequestedRange {
    let is_another = text(headers, IF_RANGE).is_some_and(|wanted| wanted.trim() != etag);
    match text(headers, RANGE) {
        Some(range) if !is_another => parse(&range, len_bytes),
        _ => RequestedRange::Whole,
    }
}

/// Joins all lines of a header field into one list.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let lines: Vec<_> = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or_default()).collect();
    (!lines.is_empty()).then(|| lines.join(","))
}

/// Returns whether a list contains the ETag. If `is_weak` is set, the prefix of weak ETags is ignored.
fn list_has(list: &str, etag: &str, is_weak: bool) -> bool {
    let bare = |tag: &str| if is_weak { tag.strip_prefix("W/").unwrap_or(tag) == etag } else { tag == etag };
    list.split(',').map(str::trim).any(|item| item == "*" || bare(item))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(HeaderName, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn etags_determine_whether_an_object_is_sent() {
        for (fields, verdict) in [
            (vec![], Verdict::Send),
            (vec![(IF_NONE_MATCH, "\"a\"")], Verdict::NotModified),
            (vec![(IF_NONE_MATCH, "\"b\", W/\"a\"")], Verdict::NotModified),
            (vec![(IF_NONE_MATCH, "\"b\""), (IF_NONE_MATCH, "\"a\"")], Verdict::NotModified),
            (vec![(IF_NONE_MATCH, "*")], Verdict::NotModified),
            (vec![(IF_NONE_MATCH, "\"b\"")], Verdict::Send),
            (vec![(IF_MATCH, "\"a\"")], Verdict::Send),
            (vec![(IF_MATCH, "*")], Verdict::Send),
            (vec![(IF_MATCH, "W/\"a\"")], Verdict::PreconditionFailed),
            (vec![(IF_MATCH, "\"b\""), (IF_NONE_MATCH, "\"a\"")], Verdict::PreconditionFailed),
        ] {
            assert_eq!(judge(&headers(&fields), "\"a\""), verdict, "{fields:?}");
        }
    }

    #[test]
    fn a_range_of_another_object_returns_the_whole_object() {
        let asked = |fields: &[_]| asked(&headers(fields), "\"a\"", 10);
        assert_eq!(asked(&[(RANGE, "bytes=4-")]), RequestedRange::Part(4..10));
        assert_eq!(asked(&[(RANGE, "bytes=4-"), (IF_RANGE, "\"a\"")]), RequestedRange::Part(4..10));
        assert_eq!(asked(&[(RANGE, "bytes=4-"), (IF_RANGE, "\"b\"")]), RequestedRange::Whole);
        assert_eq!(asked(&[(RANGE, "bytes=4-"), (IF_RANGE, "W/\"a\"")]), RequestedRange::Whole);
        assert_eq!(
            asked(&[(RANGE, "bytes=4-"), (IF_RANGE, "Sun, 22 Nov 2026 20:00:00 GMT")]),
            RequestedRange::Whole
        );
        assert_eq!(asked(&[(IF_RANGE, "\"a\"")]), RequestedRange::Whole);
    }
}
