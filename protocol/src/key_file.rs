//! Key files: one line of hexadecimal digits, two for each of 16 to 64 bytes.

use core::fmt;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use zeroize::Zeroizing;

use crate::auth::{Key, KeyError};
use crate::limits::MAX_KEY_LEN_BYTES;

#[cfg(feature = "key-creation")]
mod create;

#[cfg(feature = "key-creation")]
pub use create::create;

/// Maximum length of a key file, in bytes: the digits of the longest key and some whitespace.
const MAX_FILE_LEN_BYTES: usize = 2 * MAX_KEY_LEN_BYTES + 64;
/// Permission bits of users who are neither the file's owner nor in its group.
const OTHERS: u32 = 0o007;

/// Reason why a key file could not be read or created.
#[derive(Debug)]
pub enum KeyFileError {
    /// The file could not be opened, read or written.
    Io(io::Error),
    /// Users other than the owner and the group have access to the file; the field is the mode of the file.
    Exposed(u32),
    /// The file does not contain a valid key.
    Key(KeyError),
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Exposed(mode) => {
                write!(f, "the file has mode {mode:04o}, expected no access for others; run chmod o= FILE")
            }
            Self::Key(error) => error.fmt(f),
        }
    }
}

impl Error for KeyFileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Exposed(_) => None,
            Self::Key(error) => Some(error),
        }
    }
}

impl From<io::Error> for KeyFileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<KeyError> for KeyFileError {
    fn from(error: KeyError) -> Self {
        Self::Key(error)
    }
}

/// Reads a key from a file. A file to which other users have access is refused, since any of them may have read the
/// key.
pub fn read(path: &Path) -> Result<Key, KeyFileError> {
    let file = File::open(path)?;
    let mode = file.metadata()?.mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(KeyFileError::Exposed(mode));
    }
    // The buffer has a fixed size, because growing it would leave copies of the key in memory.
    let mut text = Zeroizing::new([0; MAX_FILE_LEN_BYTES + 1]);
    let mut len = 0;
    let mut file = file.take(text.len() as u64);
    loop {
        match file.read(&mut text[len..])? {
            0 => break,
            count => len += count,
        }
    }
    if len > MAX_FILE_LEN_BYTES {
        return Err(KeyError::NotHex.into());
    }
    Ok(Key::from_hex(&text[..len])?)
}
