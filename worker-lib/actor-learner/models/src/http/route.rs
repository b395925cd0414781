//! Routes of HTTP requests.

use std::time::Duration;

use hyper::{Method, Uri};

use super::refusal::Refusal;
use crate::ModelName;
use crate::limits::WAIT_MAX;
use crate::manifest::millis;

/// Resource that a request's path refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Pointer to the latest version.
    Latest { name: ModelName, query: PointerQuery },
    /// One version of a model.
    Object { name: ModelName, version: u64 },
    /// Counters of the server.
    Metrics,
}

/// Query parameters of a pointer request: `?after=VERSION&wait=MS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PointerQuery {
    /// Version number that the returned version must exceed. If it is `None`, any version is returned.
    pub(crate) after: Option<u64>,
    /// Time to wait for a version that is newer than `after`.
    pub(crate) wait: Option<Duration>,
}

impl Route {
    pub(crate) fn parse(uri: &Uri) -> Result<Self, Refusal> {
        let mut parts = uri.path().split('/');
        let first = (parts.next(), parts.next());
        match (first, parts.next(), parts.next(), parts.next()) {
            ((Some(""), Some("metrics")), None, None, None) => Ok(Self::Metrics),
            ((Some(""), Some("models")), Some(name), Some("latest"), None) => {
                Ok(Self::Latest { name: model_name(name)?, query: PointerQuery::parse(uri.query())? })
            }
            ((Some(""), Some("models")), Some(name), Some(version), None) => {
                let expected = "a version number, or latest";
                Ok(Self::Object { name: model_name(name)?, version: number("version", version, expected)? })
            }
            _ => Err(Refusal::UnknownPath),
        }
    }
}

impl PointerQuery {
    fn parse(query: Option<&str>) -> Result<Self, Refusal> {
        let mut parsed = Self::default();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("after", value)) => parsed.after = Some(number("after", value, "a version")?),
                Some(("wait", value)) => {
                    let longest = millis(WAIT_MAX);
                    let expected = format!("0 to {longest} milliseconds");
                    let wait_ms = number("wait", value, &expected)?;
                    if wait_ms > longest {
                        return Err(bad("wait", value, &expected));
                    }
                    parsed.wait = Some(Duration::from_millis(wait_ms));
                }
                _ => return Err(bad("query", pair, "after=VERSION or wait=MS")),
            }
        }
        Ok(parsed)
    }
}

/// Rejects methods other than GET and HEAD.
pub(crate) fn check_method(method: &Method, allowed: &'static str) -> Result<(), Refusal> {
    let is_known = matches!(*method, Method::GET | Method::HEAD);
    is_known.then_some(()).ok_or_else(|| Refusal::MethodNotAllowed { method: method.to_string(), allowed })
}

fn model_name(text: &str) -> Result<ModelName, Refusal> {
    let expected = "1 to 64 letters, digits, '.', '_' and '-', not starting with '.'";
    text.parse().map_err(|_| bad("name", text, expected))
}

fn number(field: &'static str, text: &str, expected: &str) -> Result<u64, Refusal> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text);
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| bad(field, text, expected))
}

fn bad(field: &'static str, value: &str, expected: &str) -> Refusal {
    Refusal::BadRequest { field, value: value.chars().take(80).collect(), expected: expected.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(uri: &str) -> Result<Route, Refusal> {
        Route::parse(&uri.parse().unwrap())
    }

    #[test]
    fn request_paths_are_parsed() {
        let name: ModelName = "ppo".parse().unwrap();
        let latest = |after, wait_ms: Option<u64>| {
            let query = PointerQuery { after, wait: wait_ms.map(Duration::from_millis) };
            Ok(Route::Latest { name: name.clone(), query })
        };
        assert_eq!(parse("/models/ppo/latest"), latest(None, None));
        assert_eq!(parse("/models/ppo/latest?after=7&wait=60000"), latest(Some(7), Some(60_000)));
        assert_eq!(parse("/models/ppo/7"), Ok(Route::Object { name: name.clone(), version: 7 }));
        assert_eq!(parse("/metrics"), Ok(Route::Metrics));
    }

    #[test]
    fn invalid_paths_are_refused_with_the_name_of_the_field() {
        for unknown in ["/", "/models", "/models/ppo", "/models/ppo/1/2", "/metrics/", "/x/ppo/1"] {
            assert_eq!(parse(unknown), Err(Refusal::UnknownPath), "{unknown}");
        }
        for (uri, wrong) in [
            ("/models//1", "name"),
            ("/models/%2e%2e/1", "name"),
            ("/models/ppo/newest", "version"),
            ("/models/ppo/+1", "version"),
            ("/models/ppo/18446744073709551616", "version"),
            ("/models/ppo/latest?after=x", "after"),
            ("/models/ppo/latest?wait=60001", "wait"),
            ("/models/ppo/latest?before=1", "query"),
        ] {
            let Err(Refusal::BadRequest { field, .. }) = parse(uri) else { panic!("{uri}") };
            assert_eq!(field, wrong, "{uri}");
        }
    }
}
