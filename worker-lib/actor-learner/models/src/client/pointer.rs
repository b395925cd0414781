//! Asking which version is the latest.

use std::time::Duration;

use hyper::StatusCode;
use tokio::time::Instant;

use super::ModelError;
use super::sources::Sources;
use crate::http::pointer::{age, held_for};
use crate::manifest::millis;
use crate::{Manifest, ModelName};

/// What a source says of the latest version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The version; none if nothing newer than the one named came while we waited.
    pub manifest: Option<Manifest>,
    /// When that was certainly so: before we asked, by what caches have counted.
    pub as_of: Instant,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// Only a newer version than this.
    pub(crate) after: Option<u64>,
    /// How long to wait for it.
    pub(crate) wait: Option<Duration>,
}

impl Sources {
    /// Asks the sources one after the other until one answers.
    pub(crate) async fn latest(&self, name: &ModelName, wanted: Wanted) -> Result<Pointer, ModelError> {
        let mut first_error = None;
        for at in self.order() {
            match self.latest_at(at, name, wanted).await {
                Ok(pointer) => return Ok(pointer),
                Err(error) => {
                    self.judge(at, &error);
                    // The preferred source's own word, unless another one at least has the model.
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
        // Counted from before the question: the answer may have been long under way.
        let asked = Instant::now();
        let answer = self.ask(at, &path, &[], wanted.wait.unwrap_or_default()).await?;
        let told =
            (asked + held_for(&answer.headers).min(wanted.wait.unwrap_or_default())).min(Instant::now());
        let as_of = told.checked_sub(age(&answer.headers)).unwrap_or(asked);
        let status = answer.status;
        let text = self.read_small(answer).await?;
        if status == StatusCode::NO_CONTENT {
            return Ok(Pointer { manifest: None, as_of });
        }
        let manifest = serde_json::from_slice(&text).map_err(|error| ModelError::BadAnswer {
            source_name: self.name(at),
            what: format!("no pointer: {error}"),
        })?;
        Ok(Pointer { manifest: Some(manifest), as_of })
    }
}
