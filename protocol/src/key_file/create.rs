//! Creation of key files.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::string::String;

use zeroize::{Zeroize, Zeroizing};

use super::KeyFileError;

/// Length of a new key, in bytes.
const NEW_KEY_LEN_BYTES: usize = 32;
/// Permission bits of a new key file.
const OWNER_ONLY: u32 = 0o600;

/// Writes a new random key of 32 bytes to a new file that only its owner can access. Fails if the file exists.
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
