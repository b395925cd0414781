//! File operations of the store. The store accesses its directory only through [`Disk`], so that tests can replace the
//! directory with an in-memory disk that can fail and can tear, lose or damage writes.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, IoSlice, Write as _};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Directory that contains files. Its errors are those of the operating system.
pub(crate) trait Disk: Debug + Send + Sync {
    /// Returns the names of all files, in any order.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Returns the length of a file, in bytes.
    fn len(&self, name: &str) -> io::Result<u64>;
    /// Opens a file for reading.
    fn open(&self, name: &str) -> io::Result<Box<dyn ReadFile>>;
    /// Creates a file for writing. Fails if a file with this name exists.
    fn create(&self, name: &str) -> io::Result<Box<dyn WriteFile>>;
    /// Flushes the content of a file, so that it survives a crash of the machine.
    fn sync_file(&self, name: &str) -> io::Result<()>;
    /// Renames a file. If a file with the new name exists, it is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Flushes the file names in the directory, so that they survive a crash of the machine.
    fn sync_names(&self) -> io::Result<()>;
    /// Returns a number that is different for each call. It serves as the salt of a file.
    fn salt(&self) -> u64;
}

/// File opened for reading.
pub(crate) trait ReadFile {
    /// Reads bytes, starting at `offset`. Returns the number of bytes read; 0 at the end of the file.
    fn read_at(&mut self, to: &mut [u8], offset: u64) -> io::Result<usize>;
}

/// File that is written sequentially.
pub(crate) trait WriteFile: Send {
    /// Appends the parts in order, possibly only a prefix of them. Returns the number of bytes that were appended.
    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Flushes the written data, so that it survives a crash of the machine.
    fn sync(&mut self) -> io::Result<()>;
    /// Truncates the file to `len` bytes.
    fn cut(&mut self, len: u64) -> io::Result<()>;
}

/// Appends all parts to a file.
pub(super) fn write_all(file: &mut dyn WriteFile, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Without this call, empty parts at the front would look as if the file accepted no more data.
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match file.write(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Real directory in the file system.
#[derive(Debug)]
pub(super) struct RealDisk(pub(super) PathBuf);

impl Disk for RealDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        // The store itself uses only UTF-8 file names.
        let name = |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name().into_string().ok());
        fs::read_dir(&self.0)?.filter_map(|entry| name(entry).transpose()).collect()
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        fs::metadata(self.0.join(name)).map(|metadata| metadata.len())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ReadFile>> {
        Ok(Box::new(File::open(self.0.join(name))?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn WriteFile>> {
        let mut options = OpenOptions::new();
        Ok(Box::new(options.write(true).create_new(true).open(self.0.join(name))?))
    }

    fn sync_file(&self, name: &str) -> io::Result<()> {
        File::open(self.0.join(name))?.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    fn salt(&self) -> u64 {
        RandomState::new().build_hasher().finish()
    }
}

impl ReadFile for File {
    fn read_at(&mut self, to: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, to, offset)
    }
}

impl WriteFile for File {
    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_vectored(parts)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}
