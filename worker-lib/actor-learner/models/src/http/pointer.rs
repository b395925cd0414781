//! HTTP responses that carry a pointer to the latest version.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{AGE, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue};
use hyper::{Method, Response, StatusCode};

use super::body::Body;
use super::conditional::{self, Verdict};
use super::refusal::Refusal;
use super::route::PointerQuery;
use super::{AGE_HEADER, AS_OF_HEADER, HELD_HEADER};
use crate::Manifest;
use crate::manifest::{millis, unix_ms};

/// Periods for which caches may use a pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freshness {
    /// Time for which a cache may use the pointer without revalidating it.
    pub(crate) fresh: Duration,
    /// Additional time for which a cache may use the pointer while it revalidates the pointer, or if revalidation
    /// fails.
    pub(crate) stale: Duration,
}

impl Freshness {
    fn cache_control(self, query: PointerQuery) -> HeaderValue {
        if query.wait.is_some() {
            return HeaderValue::from_static("no-store");
        }
        let (fresh, stale) = (self.fresh.as_secs(), self.stale.as_secs());
        let text = format!("max-age={fresh}, stale-while-revalidate={stale}, stale-if-error={stale}");
        HeaderValue::from_str(&text).expect("digits and punctuation are valid in a header")
    }
}

/// Returns the response that carries a pointer. `age` is the time since the pointer was last known to be the latest.
pub(crate) fn answer(
    (method, headers): (&Method, &HeaderMap),
    query: PointerQuery,
    manifest: &Manifest,
    age: Duration,
    freshness: Freshness,
) -> Result<Response<Body>, Refusal> {
    let etag = format!("\"{}-{:08x}\"", manifest.version, manifest.crc32c);
    let mut response = Response::new(Body::empty());
    describe(response.headers_mut(), age, freshness.cache_control(query));
    let value = HeaderValue::from_str(&etag).expect("digits are valid in a header");
    response.headers_mut().insert(ETAG, value);
    match conditional::judge(headers, &etag) {
        Verdict::PreconditionFailed => return Err(Refusal::PreconditionFailed { etag }),
        Verdict::NotModified => *response.status_mut() = StatusCode::NOT_MODIFIED,
        Verdict::Send => {
            let json = serde_json::to_vec(manifest).expect("strings and numbers can be serialized as JSON");
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(json.len()));
            if *method == Method::GET {
                *response.body_mut() = Body::Ready(Bytes::from(json));
            }
        }
    }
    Ok(response)
}

/// Returns a response with status 204, which means that no newer version appeared during the wait.
pub(crate) fn nothing_newer(age: Duration, query: PointerQuery, freshness: Freshness) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    describe(response.headers_mut(), age, freshness.cache_control(query));
    response
}

fn describe(headers: &mut HeaderMap, age: Duration, cache_control: HeaderValue) {
    headers.insert(CACHE_CONTROL, cache_control);
    headers.insert(AGE, HeaderValue::from(age.as_secs()));
    headers.insert(AGE_HEADER, HeaderValue::from(millis(age)));
    headers.insert(AS_OF_HEADER, HeaderValue::from(unix_ms().saturating_sub(millis(age))));
}

/// Adds a header with the time for which the server held the request. The client needs this time, because the response
/// describes the state of the server at the end of this wait, not at its start.
pub(crate) fn held(mut response: Response<Body>, time: Duration) -> Response<Body> {
    response.headers_mut().insert(HELD_HEADER, HeaderValue::from(millis(time)));
    response
}

/// Returns the time for which the server held the request.
pub(crate) fn held_for(headers: &HeaderMap) -> Duration {
    let text = headers.get(HELD_HEADER).and_then(|value| value.to_str().ok());
    Duration::from_millis(text.and_then(|text| text.parse().ok()).unwrap_or_default())
}

/// Returns the age of a pointer from the headers that [`answer`] sets. If [`AGE_HEADER`] is missing because a cache has
/// removed it, computes the age from the clocks of the server and of this machine.
pub(crate) fn age(headers: &HeaderMap) -> Duration {
    let number = |name| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    let by_clocks = || Some(unix_ms().saturating_sub(number(AS_OF_HEADER)?));
    Duration::from_millis(number(AGE_HEADER).or_else(by_clocks).unwrap_or_default())
}
