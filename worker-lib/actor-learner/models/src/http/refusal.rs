//! Refusals of HTTP requests.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use serde::{Deserialize, Serialize};

use super::body::Body;
use crate::manifest::millis;
use crate::store::PublishError;
use crate::{ModelName, limits};

/// Refusal of a request. The variant determines the status, the error code in the JSON response, and the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("no such path: expected /models/NAME/latest, /models/NAME/VERSION or /metrics")]
    UnknownPath,
    #[error("there is no model {0}")]
    UnknownModel(ModelName),
    #[error("model {name} has no version {version}, expected one of {kept:?}")]
    UnknownVersion { name: ModelName, version: u64, kept: Vec<u64> },
    #[error("{field} is {value:?}: expected {expected}")]
    BadRequest { field: &'static str, value: String, expected: String },
    #[error("method is {method}, expected {allowed}")]
    MethodNotAllowed { method: String, allowed: &'static str },
    #[error("clients at this address may not publish, expected an address that --publish-from permits")]
    PublishForbidden,
    #[error("{what} requires a valid token, expected the header `Authorization: Bearer TOKEN`")]
    Unauthorized { what: &'static str },
    #[error("{0}")]
    NotPublished(#[from] PublishError),
    #[error("the upload was too slow: it exceeded its time limit, or no data arrived for {0:?}")]
    UploadStalled(Duration),
    #[error("the request body was interrupted: {0}")]
    UploadBroken(String),
    #[error("the range begins after the end of the object, which is {len_bytes} bytes long")]
    RangeNotSatisfiable { len_bytes: u64 },
    #[error("the object's ETag is {etag}, expected one of those in If-Match")]
    PreconditionFailed { etag: String },
    #[error("too many {what}, expected at most {limit} at a time")]
    Busy { what: &'static str, limit: usize },
    #[error("upstream's model is {len_bytes} bytes long; this cell accepts at most {limit_bytes}")]
    SourceTooLarge { len_bytes: u64, limit_bytes: u64 },
    #[error("upstream: {0}")]
    SourceFailed(String),
    #[error(
        "the latest known version of model {name} was last confirmed {age_ms} ms ago, expected at most {limit_ms} ms \
         ago; upstream: {reason}"
    )]
    ModelTooOld { name: ModelName, age_ms: u64, limit_ms: u64, reason: String },
}

/// JSON body of a refusal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ErrorAnswer {
    /// Machine-readable error code, such as `unknown_version`.
    pub(crate) error: String,
    /// Human-readable message.
    pub(crate) message: String,
    /// Available versions, if the requested one is not available.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) kept: Option<Vec<u64>>,
}

impl Refusal {
    /// Returns the machine-readable error code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::UnknownPath => "unknown_path",
            Self::UnknownModel(_) => "unknown_model",
            Self::UnknownVersion { .. } => "unknown_version",
            Self::BadRequest { .. } => "bad_request",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::PublishForbidden => "publish_forbidden",
            Self::Unauthorized { .. } => "unauthorized",
            Self::NotPublished(PublishError::NotNewer { .. }) => "not_newer",
            Self::NotPublished(PublishError::TooLarge { .. }) => "too_large",
            Self::NotPublished(PublishError::Empty) => "empty",
            Self::NotPublished(PublishError::TooManyNames { .. }) => "too_many_names",
            Self::UploadStalled(_) => "upload_stalled",
            Self::UploadBroken(_) => "upload_broken",
            Self::RangeNotSatisfiable { .. } => "range_not_satisfiable",
            Self::PreconditionFailed { .. } => "precondition_failed",
            Self::Busy { .. } => "busy",
            Self::SourceTooLarge { .. } => "source_too_large",
            Self::SourceFailed(_) => "source_failed",
            Self::ModelTooOld { .. } => "model_too_old",
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::UnknownPath | Self::UnknownModel(_) | Self::UnknownVersion { .. } => StatusCode::NOT_FOUND,
            Self::BadRequest { .. } | Self::UploadBroken(_) | Self::NotPublished(PublishError::Empty) => {
                StatusCode::BAD_REQUEST
            }
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::PublishForbidden => StatusCode::FORBIDDEN,
            Self::Unauthorized { .. } => StatusCode::UNAUTHORIZED,
            Self::NotPublished(PublishError::NotNewer { .. }) => StatusCode::CONFLICT,
            Self::NotPublished(PublishError::TooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotPublished(PublishError::TooManyNames { .. }) => StatusCode::INSUFFICIENT_STORAGE,
            Self::UploadStalled(_) => StatusCode::REQUEST_TIMEOUT,
            Self::RangeNotSatisfiable { .. } => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::PreconditionFailed { .. } => StatusCode::PRECONDITION_FAILED,
            Self::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::SourceTooLarge { .. } | Self::SourceFailed(_) => StatusCode::BAD_GATEWAY,
            Self::ModelTooOld { .. } => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// Returns the refusal as a response that caches do not store.
    pub(crate) fn answer(&self) -> Response<Body> {
        let kept = if let Self::UnknownVersion { kept, .. } = self { Some(kept.clone()) } else { None };
        let answer = ErrorAnswer { error: self.code().to_owned(), message: self.to_string(), kept };
        let json = serde_json::to_vec(&answer).expect("strings and numbers can be serialized as JSON");
        let mut response = Response::new(Body::Ready(Bytes::from(json)));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self {
            Self::MethodNotAllowed { allowed, .. } => {
                headers.insert(ALLOW, HeaderValue::from_static(allowed));
            }
            Self::RangeNotSatisfiable { len_bytes } => {
                let range = format!("bytes */{len_bytes}");
                headers.insert(
                    CONTENT_RANGE,
                    HeaderValue::from_str(&range).expect("digits are valid in a header"),
                );
            }
            Self::Unauthorized { .. } => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"iswitch-models\""));
            }
            Self::Busy { .. } => {
                headers.insert(RETRY_AFTER, HeaderValue::from(limits::RETRY_AFTER.as_secs()));
            }
            _ => {}
        }
        response
    }

    /// Returns the refusal to serve a model because it is too old. The refusal contains the model's age, the limit,
    /// and the reason why there is no newer version.
    pub(crate) fn too_old(name: &ModelName, age: Duration, limit: Duration, reason: &str) -> Self {
        let (age_ms, limit_ms) = (millis(age), millis(limit));
        Self::ModelTooOld { name: name.clone(), age_ms, limit_ms, reason: reason.to_owned() }
    }
}
