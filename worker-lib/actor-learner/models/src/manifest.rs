//! Metadata of a version, as contained in the pointer `latest`.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Metadata of one version of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version number. Later versions have greater numbers.
    pub version: u64,
    /// Length of the model, in bytes.
    pub len_bytes: u64,
    /// SHA-256 of the model's bytes; also the object's ETag.
    pub sha256: Sha256Digest,
    /// CRC-32C (Castagnoli) of the model's bytes.
    pub crc32c: u32,
    /// Time of publication according to the learner's clock, in milliseconds since the Unix epoch.
    pub published_unix_ms: u64,
}

impl Manifest {
    /// Returns the manifest of `bytes`. The time of publication is the current time.
    pub fn of(version: u64, bytes: &[u8]) -> Self {
        Self {
            version,
            len_bytes: bytes.len() as u64,
            sha256: Sha256Digest(Sha256::digest(bytes).into()),
            crc32c: crc32c::crc32c(bytes),
            published_unix_ms: unix_ms(),
        }
    }

    /// Returns whether two manifests describe the same bytes. Ignores the versions and the times of publication.
    pub fn is_of_same_bytes(&self, other: &Self) -> bool {
        let bytes = |it: &Self| (it.len_bytes, it.sha256, it.crc32c);
        bytes(self) == bytes(other)
    }

    /// Returns the object's strong ETag, including its quotes.
    pub fn etag(&self) -> String {
        self.sha256.etag()
    }
}

/// SHA-256 digest, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256Digest(pub [u8; 32]);

impl Sha256Digest {
    /// Returns the digest as a strong ETag, including its quotes.
    pub fn etag(self) -> String {
        format!("\"{self}\"")
    }

    /// Parses an ETag created by [`Self::etag`].
    pub fn from_etag(text: &str) -> Option<Self> {
        text.strip_prefix('"')?.strip_suffix('"')?.parse().ok()
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Error for a string that is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 digest has 64 hexadecimal digits")]
pub struct BadDigest;

impl FromStr for Sha256Digest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Self, BadDigest> {
        let digits = text.as_bytes();
        let mut digest = [0; 32];
        if digits.len() != 2 * digest.len() {
            return Err(BadDigest);
        }
        for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16).ok_or(BadDigest);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Ok(Self(digest))
    }
}

impl TryFrom<String> for Sha256Digest {
    type Error = BadDigest;

    fn try_from(text: String) -> Result<Self, BadDigest> {
        text.parse()
    }
}

impl From<Sha256Digest> for String {
    fn from(digest: Sha256Digest) -> Self {
        digest.to_string()
    }
}

/// Method for verifying the bytes of a received model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verification {
    /// CRC-32C, which detects accidental corruption in the network or in memory. It processes many gigabytes per
    /// second.
    Crc32c,
    /// CRC-32C and SHA-256. In addition to corruption, SHA-256 detects forged bytes. It processes about one gigabyte
    /// per second on CPUs with SHA instructions.
    #[default]
    Sha256,
}

/// Incremental verifier of a model's bytes.
#[derive(Clone, Debug)]
pub struct Verifier {
    len_bytes: u64,
    crc32c: u32,
    sha256: Option<Sha256>,
}

impl Verifier {
    /// Creates a verifier that has not received any bytes.
    pub fn new(verification: Verification) -> Self {
        let sha256 = (verification == Verification::Sha256).then(Sha256::new);
        Self { len_bytes: 0, crc32c: 0, sha256 }
    }

    /// Adds the next bytes of the model.
    pub fn update(&mut self, bytes: &[u8]) {
        self.len_bytes += bytes.len() as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(bytes);
        }
    }

    /// Returns whether the received bytes match the manifest.
    pub fn is_right(self, manifest: &Manifest) -> bool {
        let Self { len_bytes, crc32c, sha256 } = self;
        let sha256_is_right = sha256.is_none_or(|sha256| manifest.sha256.0 == *sha256.finalize());
        len_bytes == manifest.len_bytes && crc32c == manifest.crc32c && sha256_is_right
    }
}

/// Returns the current time in milliseconds since the Unix epoch.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    millis(since)
}

/// Converts a duration to whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_match_standard_check_values() {
        let manifest = Manifest::of(3, b"123456789");
        // The expected values come from the CRC catalogue and from `sha256sum`.
        assert_eq!(manifest.crc32c, 0xE306_9283);
        let text = "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225";
        assert_eq!(manifest.sha256.to_string(), text);
        assert_eq!(Sha256Digest::from_etag(&manifest.etag()), Some(manifest.sha256));
        for bad in ["", "\"\"", text, &format!("W/\"{text}\""), &format!("\"{}g\"", &text[1..])] {
            assert_eq!(Sha256Digest::from_etag(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_manifest_round_trips_through_json() {
        let manifest = Manifest::of(u64::MAX, &[7; 100]);
        let text = serde_json::to_string(&manifest).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), manifest);
        assert!(serde_json::from_str::<Manifest>(&text.replace(&manifest.sha256.to_string(), "00")).is_err());
    }

    #[test]
    fn altered_bytes_are_detected_for_any_chunking() {
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let manifest = Manifest::of(1, &bytes);
        for verification in [Verification::Crc32c, Verification::Sha256] {
            let is_right = |bytes: &[u8], piece_len: usize| {
                let mut verifier = Verifier::new(verification);
                bytes.chunks(piece_len).for_each(|piece| verifier.update(piece));
                verifier.is_right(&manifest)
            };
            assert!(is_right(&bytes, 10_000) && is_right(&bytes, 7));
            let mut other = bytes.clone();
            other[5_000] ^= 1;
            assert!(!is_right(&other, 999) && !is_right(&bytes[1..], 999) && !is_right(&bytes[..9_999], 999));
        }
    }
}
