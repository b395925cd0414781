//! Secret shared by a shard and all of its clients.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ctutils::CtEq as _;
use http::{HeaderMap, HeaderValue, header};
use zeroize::Zeroizing;

use crate::limits::{TOKEN_BYTES_MAX, TOKEN_BYTES_MIN};

const SCHEME: &str = "Bearer ";

/// Bearer token. Its debug output shows only its length.
#[derive(Clone)]
pub struct Token(Arc<Zeroizing<Vec<u8>>>);

/// Reasons why a token cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TokenError {
    /// The token file cannot be read.
    #[error("cannot read the token file {path}: {reason}")]
    File {
        /// Path of the file.
        path: String,
        /// Cause of the error.
        reason: String,
    },
    /// The text is not a valid token.
    #[error(
        "the token is {len} bytes long, expected one line of {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} printable ASCII \
         characters without spaces: create one with `openssl rand -hex 32`"
    )]
    Text {
        /// Length of the text without the line terminator, in bytes.
        len: usize,
    },
}

impl Token {
    /// Creates a token from 16 to 512 printable ASCII characters without spaces.
    ///
    /// # Errors
    /// Fails if the text is shorter than 16 or longer than 512 characters, or if it contains other characters.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let is_long = (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&text.len());
        if !is_long || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Text { len: text.len() });
        }
        Ok(Self(Arc::new(Zeroizing::new(text.as_bytes().to_vec()))))
    }

    /// Reads a token from a file that contains a single line.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not contain a valid token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let refused = |error: std::io::Error| TokenError::File {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        let text = Zeroizing::new(std::fs::read_to_string(path).map_err(refused)?);
        Self::new(text.trim_end())
    }

    /// Returns whether a request carries this token. The duration of the comparison does not depend on the position of
    /// the first difference.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let given = value.and_then(|value| value.strip_prefix(SCHEME.as_bytes()));
        given.is_some_and(|given| given.len() == self.0.len() && given.ct_eq(&self.0[..]).to_bool())
    }

    /// Returns the value of the header that carries the token.
    pub(crate) fn header(&self) -> HeaderValue {
        let text = [SCHEME.as_bytes(), &self.0].concat();
        let mut value = HeaderValue::from_bytes(&text).expect("a token consists of printable ASCII");
        value.set_sensitive(true);
        value
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.ct_eq(&other.0[..]).to_bool()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0123456789abcdef";

    #[test]
    fn a_token_is_one_line_of_printable_characters() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, format!("{TEXT}\n")).unwrap();
        assert_eq!(Token::read(&path), Token::new(TEXT));
        for text in ["", "short", "0123456789abcdef 0123", "0123456789abcdé", &"x".repeat(513)] {
            assert_eq!(Token::new(text), Err(TokenError::Text { len: text.len() }));
        }
        assert!(matches!(Token::read(folder.path()), Err(TokenError::File { .. })));
        assert!(!format!("{:?}", Token::new(TEXT).unwrap()).contains(TEXT));
    }

    #[test]
    fn only_the_complete_token_is_accepted() {
        let token = Token::new(TEXT).unwrap();
        let is_taken = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            token.is_in(&headers)
        };
        assert!(is_taken("Bearer 0123456789abcdef"));
        assert!(!token.is_in(&HeaderMap::new()));
        for value in [
            "",
            "Bearer ",
            "0123456789abcdef",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer 0123456789abcdeF",
        ] {
            assert!(!is_taken(value), "{value}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, token.header());
        assert!(token.is_in(&headers));
    }
}
