//! Keys in files: one line of hexadecimal digits, two for each of 16 to 64 bytes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::string::String;

use zeroize::{Zeroize, Zeroizing};

use crate::auth::{Key, KeyError};
use crate::limits::MAX_KEY_LEN_BYTES;

/// Bytes of a new key.
const NEW_KEY_LEN_BYTES: usize = 32;
/// Bytes of the longest file: the digits of the longest key, and some white space.
const MAX_FILE_LEN_BYTES: usize = 2 * MAX_KEY_LEN_BYTES + 64;
/// Permission bits of users who are neither the file's owner nor in its group.
const OTHERS: u32 = 0o007;
/// Permission bits of a new file.
const OWNER_ONLY: u32 = 0o600;

/// Why a key could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be opened, read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Everybody may read or write it.
    #[error("the file's mode is {:04o}, expected no access for others (chmod o= FILE)", .0)]
    Exposed(u32),
    /// There is no key in it.
    #[error("{0}")]
    Key(#[from] KeyError),
}

/// Reads a key. A file that is open to others is refused: whoever could read it has the key.
pub fn read(path: &Path) -> Result<Key, KeyFileError> {
    let file = File::open(path)?;
    let mode = file.metadata()?.mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(KeyFileError::Exposed(mode));
    }
    // Of one size from the start: growing would leave copies behind.
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

/// Writes a new random key of 32 bytes into a file that does not exist yet and that its owner alone can read.
pub fn create(path: &Path) -> Result<(), KeyFileError> {
    let mut bytes = Zeroizing::new([0; NEW_KEY_LEN_BYTES]);
    getrandom::fill(&mut *bytes).map_err(io::Error::from)?;
    let mut text = String::with_capacity(2 * NEW_KEY_LEN_BYTES + 1);
    for byte in bytes.iter() {
        for digit in [byte >> 4, byte & 0xf] {
            text.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    text.push('\n');
    let mut file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    text.zeroize();
    Ok(written?)
}
