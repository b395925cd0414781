//! Download of one object from any source that has it. An interrupted download resumes at the first missing byte.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderName, IF_MATCH, IF_RANGE, RANGE};
use hyper::{HeaderMap, StatusCode};

use super::ModelError;
use super::sources::{Answer, Sources};
use crate::http::object;
use crate::limits::RESUMES_MAX;
use crate::manifest::Verifier;
use crate::{Manifest, ModelName, Verification};

/// Object that is being downloaded.
#[derive(Debug)]
pub(crate) struct Download {
    sources: Arc<Sources>,
    name: ModelName,
    manifest: Manifest,
    answer: Option<Answer>,
    verifier: Option<Verifier>,
    received: u64,
    /// Number of interruptions since the last byte arrived.
    failures: u32,
    /// Total number of interruptions.
    pub(crate) resumes: u32,
}

impl Download {
    /// Starts a download from the first source that has the version. If a manifest is given, the download accepts only
    /// the object that the manifest describes.
    pub(crate) async fn begin(
        sources: &Arc<Sources>,
        name: &ModelName,
        version: u64,
        wanted: Option<&Manifest>,
        verification: Verification,
    ) -> Result<Self, ModelError> {
        let mut first_error = None;
        for at in sources.order() {
            match begin_at(sources, at, name, version, wanted).await {
                Ok((answer, manifest)) => {
                    return Ok(Self {
                        sources: Arc::clone(sources),
                        name: name.clone(),
                        manifest,
                        answer: Some(answer),
                        verifier: Some(Verifier::new(verification)),
                        received: 0,
                        failures: 0,
                        resumes: 0,
                    });
                }
                Err(error) => {
                    sources.judge(at, &error);
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or(ModelError::NoSources))
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the next bytes, or `None` once all bytes have arrived and have been verified.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        loop {
            if self.received == self.manifest.len_bytes {
                return self.end();
            }
            let Some(answer) = &mut self.answer else {
                self.resume().await?;
                continue;
            };
            match self.sources.next(answer).await {
                Ok(Some(bytes)) if bytes.len() as u64 <= self.manifest.len_bytes - self.received => {
                    self.received += bytes.len() as u64;
                    self.failures = 0;
                    if let Some(verifier) = &mut self.verifier {
                        verifier.update(&bytes);
                    }
                    return Ok(Some(bytes));
                }
                Ok(Some(_)) => self.interrupted("the source sent more bytes than it announced")?,
                Ok(None) => self.interrupted("the source sent fewer bytes than it announced")?,
                Err(error) => self.interrupted(&error.to_string())?,
            }
        }
    }

    fn end(&mut self) -> Result<Option<Bytes>, ModelError> {
        let (Some(verifier), Some(answer)) = (self.verifier.take(), self.answer.take()) else {
            return Ok(None);
        };
        if verifier.is_right(&self.manifest) {
            self.sources.finish(answer);
            return Ok(None);
        }
        let source_name = self.sources.name(answer.at);
        let (name, version) = (self.name.clone(), self.manifest.version);
        let error = ModelError::WrongBytes { source_name, name, version };
        self.sources.judge(answer.at, &error);
        Err(error)
    }

    /// Drops the current response after an interruption. Fails if [`RESUMES_MAX`] consecutive attempts to resume have
    /// not received a byte.
    fn interrupted(&mut self, reason: &str) -> Result<(), ModelError> {
        let Some(answer) = self.answer.take() else { return Ok(()) };
        let error = ModelError::Interrupted {
            source_name: self.sources.name(answer.at),
            received_bytes: self.received,
            len_bytes: self.manifest.len_bytes,
            reason: reason.to_owned(),
        };
        self.sources.judge(answer.at, &error);
        (self.failures, self.resumes) = (self.failures + 1, self.resumes + 1);
        if self.failures > RESUMES_MAX { Err(error) } else { Ok(()) }
    }

    /// Requests the remaining bytes from a source that has the object.
    async fn resume(&mut self) -> Result<(), ModelError> {
        let (first, etag) = (format!("bytes={}-", self.received), self.manifest.etag());
        let fields = [(RANGE, first.as_str()), (IF_RANGE, etag.as_str()), (IF_MATCH, etag.as_str())];
        let path = path(&self.name, self.manifest.version);
        let mut first_error = None;
        for at in self.sources.order() {
            let asked = self.sources.ask(at, &path, &fields, Duration::ZERO).await;
            let error = match asked {
                Ok(answer) if self.is_rest(&answer) => {
                    self.answer = Some(answer);
                    return Ok(());
                }
                Ok(answer) => {
                    let what = format!(
                        "the response (status {}) does not contain the remainder of the model",
                        answer.status
                    );
                    ModelError::BadAnswer { source_name: self.sources.name(at), what }
                }
                Err(error) => error,
            };
            self.sources.judge(at, &error);
            first_error.get_or_insert(error);
        }
        Err(first_error.unwrap_or(ModelError::NoSources))
    }

    /// Returns whether a response contains the missing bytes of the object that is being downloaded.
    fn is_rest(&self, answer: &Answer) -> bool {
        let text = |name: HeaderName| answer.headers.get(name).and_then(|value| value.to_str().ok());
        let len_bytes = self.manifest.len_bytes;
        let rest = format!("bytes {}-{}/{len_bytes}", self.received, len_bytes - 1);
        let is_whole = answer.status == StatusCode::OK && self.received == 0;
        let is_part =
            answer.status == StatusCode::PARTIAL_CONTENT && text(CONTENT_RANGE) == Some(rest.as_str());
        (is_whole || is_part) && text(hyper::header::ETAG) == Some(self.manifest.etag().as_str())
    }
}

fn path(name: &ModelName, version: u64) -> String {
    format!("/models/{name}/{version}")
}

async fn begin_at(
    sources: &Sources,
    at: usize,
    name: &ModelName,
    version: u64,
    wanted: Option<&Manifest>,
) -> Result<(Answer, Manifest), ModelError> {
    let etag = wanted.map(Manifest::etag);
    let fields: Vec<_> = etag.iter().map(|etag| (IF_MATCH, etag.as_str())).collect();
    let answer = sources.ask(at, &path(name, version), &fields, Duration::ZERO).await?;
    let bad = |what: String| ModelError::BadAnswer { source_name: sources.name(at), what };
    if answer.status != StatusCode::OK {
        return Err(bad(format!("status is {}, expected 200 OK with the model", answer.status)));
    }
    let len_bytes =
        content_length(&answer.headers).ok_or_else(|| bad("the response has no valid length".to_owned()))?;
    let found = object::manifest(&answer.headers, len_bytes)
        .map_err(|field| bad(format!("the response header {field} is missing or invalid")))?;
    if found.version != version || wanted.is_some_and(|wanted| !wanted.is_of_same_bytes(&found)) {
        let expected = wanted.map_or_else(|| format!("version {version}"), |wanted| format!("{wanted:?}"));
        return Err(bad(format!("the response contains {found:?}, expected {expected}")));
    }
    Ok((answer, found))
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
