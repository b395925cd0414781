//! Resource usage of the daemon itself, from `/proc/self`.
//!
//! The files are opened before the daemon enters its sandbox, in which it cannot open files.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{RawDir, SeekFrom, seek};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// Maximum length of `/proc/self/stat`, in bytes: room for 52 fields, one of which is the name of the program.
const STAT_LEN_MAX_BYTES: usize = 2048;
/// Length of the buffer for the entries of a directory, in bytes.
const ENTRIES_LEN_BYTES: usize = 4096;

/// Files that describe this process.
#[derive(Debug)]
pub(super) struct Process {
    stat: File,
    descriptors: File,
    /// Time at which the machine booted, in seconds since the Unix epoch.
    boot_s: f64,
    max_descriptors: Option<u64>,
    // Both values are read before the daemon enters its sandbox, because the sandbox forbids the system call that their
    // first query makes.
    ticks_per_second: u64,
    page_bytes: u64,
}

/// Resource usage at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usage {
    /// User and system time, in seconds.
    pub(super) cpu_s: f64,
    /// Resident memory, in bytes.
    pub(super) resident_bytes: u64,
    /// Size of the address space, in bytes.
    pub(super) virtual_bytes: u64,
    /// Time at which the process started, in seconds since the Unix epoch.
    pub(super) start_s: f64,
    /// Number of threads.
    pub(super) threads: u64,
    /// Number of open file descriptors, including those of [`Process`].
    pub(super) open_descriptors: u64,
    /// Maximum number of file descriptors; `None` if it is unlimited.
    pub(super) max_descriptors: Option<u64>,
}

impl Process {
    /// Opens the files.
    ///
    /// # Errors
    /// Fails if `/proc` is not mounted, or not readable.
    pub(super) fn open() -> io::Result<Self> {
        let machine = std::fs::read_to_string("/proc/stat")?;
        let boot_s = machine.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
        Ok(Self {
            stat: File::open("/proc/self/stat")?,
            descriptors: File::open("/proc/self/fd")?,
            boot_s: boot_s.ok_or_else(|| io::Error::other("/proc/stat has no btime line"))?,
            max_descriptors: getrlimit(Resource::Nofile).current,
            ticks_per_second: clock_ticks_per_second(),
            page_bytes: page_size() as u64,
        })
    }

    /// Returns the current usage.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub(super) fn usage(&self) -> io::Result<Usage> {
        let mut buffer = [0; STAT_LEN_MAX_BYTES];
        let len = self.stat.read_at(&mut buffer, 0)?;
        let text = String::from_utf8_lossy(&buffer[..len]);
        let malformed = || io::Error::other("/proc/self/stat is malformed");
        let usage = parse(&text, self.ticks_per_second, self.page_bytes).ok_or_else(malformed)?;
        let (open_descriptors, max_descriptors) = (self.open_descriptors()?, self.max_descriptors);
        Ok(Usage { start_s: self.boot_s + usage.start_s, open_descriptors, max_descriptors, ..usage })
    }

    fn open_descriptors(&self) -> io::Result<u64> {
        seek(&self.descriptors, SeekFrom::Start(0))?;
        let mut buffer = [const { MaybeUninit::uninit() }; ENTRIES_LEN_BYTES];
        let mut entries = RawDir::new(&self.descriptors, &mut buffer);
        let mut count = 0;
        while let Some(entry) = entries.next() {
            let name = entry?;
            count += u64::from(name.file_name().to_bytes().iter().all(u8::is_ascii_digit));
        }
        Ok(count)
    }
}

/// Parses `/proc/self/stat` (proc_pid_stat(5)). In the result, the start time is relative to the boot of the machine,
/// and the numbers of descriptors are not filled in.
fn parse(stat: &str, ticks_per_second: u64, page_bytes: u64) -> Option<Usage> {
    // The second field, the name of the program, may contain spaces and parentheses. The last closing parenthesis ends
    // it.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let seconds = |ticks: u64| ticks as f64 / ticks_per_second as f64;
    Some(Usage {
        cpu_s: seconds(field(14)? + field(15)?),
        threads: field(20)?,
        start_s: seconds(field(22)?),
        virtual_bytes: field(23)?,
        resident_bytes: field(24)? * page_bytes,
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_those_of_the_manual() {
        let stat =
            "42 (a) b) S 1 42 42 0 -1 4194560 900 0 0 0 250 50 0 0 20 0 7 0 12300 8192000 1500 184467440737";
        let usage = parse(stat, 100, 4096).unwrap();
        let expected = Usage {
            cpu_s: 3.0,
            threads: 7,
            start_s: 123.0,
            virtual_bytes: 8_192_000,
            resident_bytes: 1500 * 4096,
            ..Usage::default()
        };
        assert_eq!(usage, expected);
        assert!(parse("42 (a) S 1 42", 100, 4096).is_none() && parse("", 100, 4096).is_none());
    }

    #[test]
    fn this_process_is_described() {
        let process = Process::open().unwrap();
        let before = process.usage().unwrap();
        let files: Vec<_> = (0..100).map(|_| File::open("/proc/self/stat").unwrap()).collect();
        let after = process.usage().unwrap();
        // Other tests open and close files at the same time.
        assert!(after.open_descriptors > before.open_descriptors + 50, "{before:?} {after:?}");
        drop(files);
        assert!(after.resident_bytes > 1 << 16 && after.virtual_bytes >= after.resident_bytes, "{after:?}");
        let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        assert!(after.start_s > now_s - 3600.0 && after.start_s < now_s + 2.0, "{after:?}, {now_s}");
        assert!(after.cpu_s >= before.cpu_s && after.threads >= 1);
    }
}
