//! HTTP responses that carry model objects.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
};
use hyper::{HeaderMap, Method, Response, StatusCode};

use super::body::Body;
use super::conditional::{self, Verdict};
use super::range::RequestedRange;
use super::refusal::Refusal;
use super::{CRC32C_HEADER, PUBLISHED_HEADER, VERSION_HEADER};
use crate::Manifest;
use crate::arriving::Arriving;
use crate::manifest::Sha256Digest;

/// Cache policy for a version. It has the conventional maximum lifetime of one year, because a version never changes.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// Bytes of an object.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// All bytes are available.
    Ready(Bytes),
    /// Some bytes may still be arriving.
    Arriving(Arc<Arriving>),
}

impl Content {
    fn part(self, range: std::ops::Range<u64>) -> Body {
        match self {
            Self::Ready(bytes) => Body::Ready(bytes.slice(range.start as usize..range.end as usize)),
            Self::Arriving(arriving) => Body::Following(arriving.follow(range)),
        }
    }
}

/// Returns the response to a GET or HEAD request for an object. Supports ranges and conditions.
pub(crate) fn answer(
    method: &Method,
    headers: &HeaderMap,
    manifest: &Manifest,
    content: Content,
) -> Result<Response<Body>, Refusal> {
    let etag = manifest.etag();
    let mut response = Response::new(Body::empty());
    describe(response.headers_mut(), manifest);
    match conditional::judge(headers, &etag) {
        Verdict::PreconditionFailed => return Err(Refusal::PreconditionFailed { etag }),
        Verdict::NotModified => {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return Ok(response);
        }
        Verdict::Send => {}
    }
    let len_bytes = manifest.len_bytes;
    // HTTP defines ranges only for GET.
    let asked = if *method == Method::GET {
        conditional::asked(headers, &etag, len_bytes)
    } else {
        RequestedRange::Whole
    };
    let part = match asked {
        RequestedRange::Nothing => return Err(Refusal::RangeNotSatisfiable { len_bytes }),
        RequestedRange::Whole => 0..len_bytes,
        RequestedRange::Part(part) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let range = format!("bytes {}-{}/{len_bytes}", part.start, part.end - 1);
            insert(response.headers_mut(), CONTENT_RANGE, &range);
            part
        }
    };
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(part.end - part.start));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if *method == Method::GET {
        *response.body_mut() = content.part(part);
    }
    Ok(response)
}

fn describe(headers: &mut HeaderMap, manifest: &Manifest) {
    insert(headers, ETAG, &manifest.etag());
    headers.insert(CACHE_CONTROL, IMMUTABLE);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(VERSION_HEADER, HeaderValue::from(manifest.version));
    insert(headers, HeaderName::from_static(CRC32C_HEADER), &format!("{:08x}", manifest.crc32c));
    headers.insert(PUBLISHED_HEADER, HeaderValue::from(manifest.published_unix_ms));
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    headers.insert(name, HeaderValue::from_str(text).expect("digits and punctuation are valid in a header"));
}

/// Extracts the manifest of a whole object from the headers that [`answer`] sets.
///
/// # Errors
/// Returns the name of the header that is missing or invalid.
pub(crate) fn manifest(headers: &HeaderMap, len_bytes: u64) -> Result<Manifest, &'static str> {
    let text = |name: &'static str| headers.get(name).and_then(|value| value.to_str().ok()).ok_or(name);
    let number = |name: &'static str| text(name)?.parse::<u64>().map_err(|_| name);
    Ok(Manifest {
        version: number(VERSION_HEADER)?,
        len_bytes,
        sha256: Sha256Digest::from_etag(text("etag")?).ok_or("etag")?,
        crc32c: u32::from_str_radix(text(CRC32C_HEADER)?, 16).map_err(|_| CRC32C_HEADER)?,
        published_unix_ms: number(PUBLISHED_HEADER)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_headers_carry_the_manifest() {
        let bytes = Bytes::from_static(b"weights");
        let whole = Manifest::of(u64::MAX, &bytes);
        let response = answer(&Method::GET, &HeaderMap::new(), &whole, Content::Ready(bytes)).unwrap();
        assert_eq!(manifest(response.headers(), 7), Ok(whole));
        let mut headers = response.headers().clone();
        headers.insert(CRC32C_HEADER, HeaderValue::from_static("nothing"));
        assert_eq!(manifest(&headers, 7), Err(CRC32C_HEADER));
        headers.remove(ETAG);
        assert_eq!(manifest(&headers, 7), Err("etag"));
    }
}
