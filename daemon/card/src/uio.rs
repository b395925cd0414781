//! The registers of a board, mapped from a UIO device such as `/dev/uio0`. **This code has never met a board.**
//!
//! The device must offer the 4 KiB of registers as its first memory map (`Documentation/driver-api/uio-howto` of
//! Linux), that is, at offset 0. Registers have 32 bits in the byte order of the machine, which must be little-endian.
//! Every access is one load or store of 32 bits; accesses take effect in the order of the program.
//!
//! Frames of the board's first DMA queue reach the host through a network interface, which the caller opens.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::access::{Card, CardError, Frame};

/// Size of the register window, in bytes.
pub const WINDOW_LEN_BYTES: usize = 4096;

/// Mapped registers of a board.
#[derive(Debug)]
pub struct UioCard {
    window: NonNull<u32>,
}

// SAFETY: the mapping belongs to this value alone and stays valid in any thread.
unsafe impl Send for UioCard {}

impl UioCard {
    /// Maps the register window.
    ///
    /// # Errors
    /// Fails if the device cannot be opened for reading and writing, or cannot be mapped.
    pub fn open(path: &Path) -> Result<Self, CardError> {
        let device = OpenOptions::new().read(true).write(true).open(path)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the address is chosen by the kernel, and the descriptor is open.
        let window = unsafe {
            libc::mmap(ptr::null_mut(), WINDOW_LEN_BYTES, access, libc::MAP_SHARED, device.as_raw_fd(), 0)
        };
        if window == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        let window = NonNull::new(window.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { window })
    }

    /// Returns the address of a register.
    fn at(&self, offset: u16) -> Result<NonNull<u32>, CardError> {
        let at = usize::from(offset);
        if at % size_of::<u32>() != 0 || at >= WINDOW_LEN_BYTES {
            let expected = WINDOW_LEN_BYTES - size_of::<u32>();
            let text = format!("register offset is {at}, expected a multiple of 4, at most {expected}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text).into());
        }
        // SAFETY: the offset is within the window.
        Ok(unsafe { self.window.add(at / size_of::<u32>()) })
    }
}

impl Drop for UioCard {
    fn drop(&mut self) {
        // SAFETY: the window was mapped with this length, and no pointer to it outlives this value.
        unsafe { libc::munmap(self.window.as_ptr().cast(), WINDOW_LEN_BYTES) };
    }
}

impl Card for UioCard {
    fn read(&mut self, offset: u16) -> Result<u32, CardError> {
        let at = self.at(offset)?;
        // SAFETY: the address is aligned and within the window.
        Ok(unsafe { at.read_volatile() })
    }

    fn write(&mut self, offset: u16, value: u32) -> Result<(), CardError> {
        let at = self.at(offset)?;
        // SAFETY: the address is aligned and within the window.
        unsafe { at.write_volatile(value) };
        Ok(())
    }

    fn exchange(&mut self, _arriving: &[Frame], _leaving: &mut Vec<Frame>) -> Result<(), CardError> {
        Ok(())
    }

    fn is_simulated(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::access::check_identity;
    use crate::registers::{ID, VERSION, offset};

    #[test]
    fn registers_are_words_of_the_window() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("window");
        fs::write(&path, vec![0; WINDOW_LEN_BYTES]).unwrap();
        let mut card = UioCard::open(&path).unwrap();
        card.write(offset::DEBUG, 0x0102_0304).unwrap();
        assert_eq!(card.read(offset::DEBUG).unwrap(), 0x0102_0304);
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes[usize::from(offset::DEBUG)..][..4], [4, 3, 2, 1]);
        assert!(bytes.iter().filter(|byte| **byte != 0).count() == 4, "only one register was written");
        for bad in [2, 0x1000] {
            let error = card.read(bad).unwrap_err().to_string();
            assert!(error.contains(&format!("register offset is {bad}, expected")), "{error}");
        }
    }

    #[test]
    fn a_window_without_the_accelerator_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("window");
        fs::write(&path, vec![0; WINDOW_LEN_BYTES]).unwrap();
        let mut card = UioCard::open(&path).unwrap();
        let error = check_identity(&mut card).unwrap_err().to_string();
        assert_eq!(error, "register ID of the card is 0x00000000, expected 0x00575369");
        card.write(offset::ID, ID).unwrap();
        card.write(offset::VERSION, VERSION + 1).unwrap();
        let error = check_identity(&mut card).unwrap_err().to_string();
        assert_eq!(error, "register VERSION of the card is 0x00000004, expected 0x00000003");
        card.write(offset::VERSION, VERSION).unwrap();
        check_identity(&mut card).unwrap();
    }

    #[test]
    fn a_missing_device_is_reported() {
        let error = UioCard::open(Path::new("/nonexistent/uio0")).unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
    }
}
