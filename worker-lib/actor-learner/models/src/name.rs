//! Name of a model.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits::NAME_LEN_MAX_BYTES;

/// Name of a model: 1 to 64 letters, digits, `.`, `_` and `-`. The first character is not `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelName(String);

/// Error for an invalid model name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "model name is {0:?}, expected 1 to {NAME_LEN_MAX_BYTES} letters, digits, '.', '_' and '-', not starting with '.'"
)]
pub struct BadName(String);

impl ModelName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ModelName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let fits = (1..=NAME_LEN_MAX_BYTES).contains(&text.len());
        if fits && !text.starts_with('.') && text.bytes().all(is_good) {
            return Ok(Self(text.to_owned()));
        }
        Err(BadName(text.chars().take(2 * NAME_LEN_MAX_BYTES).collect()))
    }
}

impl TryFrom<String> for ModelName {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        text.parse()
    }
}

impl From<ModelName> for String {
    fn from(name: ModelName) -> Self {
        name.0
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_names_are_safe_in_paths() {
        for good in ["a", "ppo-Hopper_v5.2", &"x".repeat(64)] {
            assert_eq!(good.parse::<ModelName>().unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "a b", "ä", "a\n", &"x".repeat(65)] {
            assert!(bad.parse::<ModelName>().is_err(), "{bad:?}");
        }
    }
}
