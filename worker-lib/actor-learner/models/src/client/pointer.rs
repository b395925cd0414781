//! Requests for the latest version of a model.

use std::time::Duration;

use hyper::StatusCode;
use tokio::time::Instant;

use super::ModelError;
use super::sources::Sources;
use crate::http::pointer::{age, held_for};
use crate::manifest::millis;
use crate::{Manifest, ModelName};

/// A source's response to a request for the latest version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Manifest of the version; `None` if no version newer than the requested one appeared during the wait.
    pub manifest: Option<Manifest>,
    /// Time at which the response was known to be correct: the time of the request, plus the time for which the server
    /// held it, minus the age of the pointer.
    pub as_of: Instant,
}

/// Conditions of a request for the latest version.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// Version number that the returned version must exceed. If it is `None`, any version is returned.
    pub(crate) after: Option<u64>,
    /// Time to wait for a version that is newer than `after`.
    pub(crate) wait: Option<Duration>,
}

impl Sources {
    /// Asks the sources in order until one answers.
    pub(crate) async fn latest(&self, name: &ModelName, wanted: Wanted) -> Result<Pointer, ModelError> {
        let mut first_error = None;
        for at in self.order() {
            match self.latest_at(at, name, wanted).await {
                Ok(pointer) => return Ok(pointer),
                Err(error) => {
                    self.judge(at, &error);
                    // If all sources fail, report the error of the preferred one.
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or(ModelError::NoSources))
    }

    async fn latest_at(&self, at: usize, name: &ModelName, wanted: Wanted) -> Result<Pointer, ModelError> {
        let mut path = format!("/models/{name}/latest");
        if let Some(wait) = wanted.wait {
            let after = wanted.after.map(|after| format!("after={after}&")).unwrap_or_default();
            path = format!("{path}?{after}wait={}", millis(wait));
        }
        // Take the time before the request is sent, because the response may be in flight for a long time.
        let asked = Instant::now();
        let answer = self.ask(at, &path, &[], wanted.wait.unwrap_or_default()).await?;
        let reported =
            (asked + held_for(&answer.headers).min(wanted.wait.unwrap_or_default())).min(Instant::now());
        let as_of = reported.checked_sub(age(&answer.headers)).unwrap_or(asked);
        let status = answer.status;
        let text = self.read_small(answer).await?;
        if status == StatusCode::NO_CONTENT {
            return Ok(Pointer { manifest: None, as_of });
        }
        let manifest = serde_json::from_slice(&text).map_err(|error| ModelError::BadAnswer {
            source_name: self.name(at),
            what: format!("invalid pointer: {error}"),
        })?;
        Ok(Pointer { manifest: Some(manifest), as_of })
    }
}
