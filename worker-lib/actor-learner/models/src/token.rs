//! Bearer tokens (RFC 6750), which authorise a client to publish or to read.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::limits::{TOKEN_LEN_MAX_BYTES, TOKEN_LEN_MIN_BYTES};

/// Permission bits of users who are neither the file's owner nor in its group.
const OTHERS: u32 = 0o007;
const SCHEME: &str = "Bearer ";

/// Secret that a request carries: 16 to 512 letters, digits and characters of `-._~+/=`. Its memory is cleared when the
/// last copy is dropped.
#[derive(Clone)]
pub struct Token(Arc<Zeroizing<String>>);

/// Reasons why a token cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Other users may read or write the file.
    #[error("the file's mode is {0:04o}, expected no access for others (chmod o= FILE)")]
    Exposed(u32),
    /// The text is not a valid token.
    #[error(
        "invalid token: expected one line of {TOKEN_LEN_MIN_BYTES} to {TOKEN_LEN_MAX_BYTES} letters, digits and \
         -._~+/= (create one with `openssl rand -hex 32`)"
    )]
    Malformed,
}

impl Token {
    /// Creates a token from text. Surrounding white space is ignored.
    ///
    /// # Errors
    /// Fails if the text is too short or too long, or if it contains invalid characters.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        let fits = (TOKEN_LEN_MIN_BYTES..=TOKEN_LEN_MAX_BYTES).contains(&text.len());
        if !fits || !text.bytes().all(is_good) {
            return Err(TokenError::Malformed);
        }
        Ok(Self(Arc::new(Zeroizing::new(text.to_owned()))))
    }

    /// Reads a token from a file. Rejects a file that other users can access, because its token is not secret.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is accessible to others, or does not contain a valid token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let file = File::open(path)?;
        let mode = file.metadata()?.mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(TokenError::Exposed(mode));
        }
        // Allocate the buffer at its full size, because growing it would leave copies in memory. The size leaves room
        // for white space around the token.
        let len_max = 2 * TOKEN_LEN_MAX_BYTES;
        let mut text = Zeroizing::new(String::with_capacity(len_max + 1));
        let read = file.take(len_max as u64 + 1).read_to_string(&mut text);
        match read {
            Ok(_) => Self::new(&text),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(TokenError::Malformed),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a request carries this token. The time of the comparison does not reveal the position of the
    /// first difference.
    pub(crate) fn is_shown(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| {
            let (scheme, token) = value.split_at_checked(SCHEME.len())?;
            scheme.eq_ignore_ascii_case(SCHEME).then_some(token.trim())
        });
        // Compare digests, so that not even the length can be inferred from the comparison time.
        let digest = |text: &str| Sha256::digest(text.as_bytes());
        shown.is_some_and(|shown| digest(shown).ct_eq(&digest(&self.0)).into())
    }

    /// Returns the header value that carries the token.
    pub(crate) fn header(&self) -> HeaderValue {
        let text = Zeroizing::new(format!("{SCHEME}{}", self.0.as_str()));
        let mut value =
            HeaderValue::from_str(&text).expect("the characters of a token are valid in a header");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const TEXT: &str = "0123456789abcdef";

    fn shows(value: &str) -> bool {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
        Token::new(TEXT).unwrap().is_shown(&headers)
    }

    #[test]
    fn only_the_exact_bearer_token_is_accepted() {
        assert!(shows("Bearer 0123456789abcdef") && shows("bearer  0123456789abcdef "));
        for wrong in
            ["Bearer 0123456789abcdeg", "Bearer 0123456789abcde", "Bearer", "Bearer ", "Basic x", TEXT, ""]
        {
            assert!(!shows(wrong), "{wrong:?}");
        }
        assert!(!Token::new(TEXT).unwrap().is_shown(&HeaderMap::new()));
        let own = HeaderMap::from_iter([(AUTHORIZATION, Token::new(TEXT).unwrap().header())]);
        assert!(Token::new(TEXT).unwrap().is_shown(&own));
        assert!(!format!("{own:?}{:?}", Token::new(TEXT).unwrap()).contains(TEXT));
    }

    #[test]
    fn valid_token_files_are_read_and_invalid_ones_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let read = |text: &[u8], mode| {
            std::fs::write(&path, text).unwrap();
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            Token::read(&path).map(|token| token.0.to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(read(b"0123456789abcdef\n", 0o640).as_deref(), Ok(TEXT));
        let error = read(b"0123456789abcdef\n", 0o644).unwrap_err();
        assert_eq!(error, "the file's mode is 0644, expected no access for others (chmod o= FILE)");
        for bad in [
            &b""[..],
            b"short",
            b"with space in it, long enough",
            b"\xff\xff\xff\xff\xff\xff\xff",
            &[b'a'; 4096],
        ] {
            assert!(read(bad, 0o600).unwrap_err().starts_with("invalid token: expected one line"), "{bad:?}");
        }
        assert!(Token::read(&directory.path().join("missing")).is_err());
    }
}
