//! Dumps of the flight recorder as lines of JSON. If a job stalls, the dump goes to a file; on SIGUSR1 it goes to the
//! file or, without one, to standard error.
//!
//! The file is opened before the daemon drops its access to files. Once the file is full, its content replaces that of
//! a second file with the suffix `.1`, and the file is truncated, so that the newest dumps are always in the main file.
//! The content is copied rather than the file renamed, because the running daemon can neither rename nor create files.
//! A separate thread writes the dumps, so that a slow disk does not delay packets. A dump that arrives while 64 dumps
//! are already pending is dropped, and the drop is logged.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iswitch_protocol::{Instant, Round};
use serde::Serialize;
use serde_json::{Value, json};

use iswitch_runtime::flight::JobFlight;
use iswitch_switch::{FlightRecord, JobStatus};

/// Maximum number of pending dumps.
const DUMPS_PENDING: usize = 64;
/// Maximum length of the file, in bytes; a dump that would exceed it triggers rotation.
const FILE_LEN_MAX_BYTES: u64 = 32 << 20;
/// Buffer size of the copy during rotation, in bytes.
const COPY_LEN_BYTES: usize = 64 << 10;
/// Maximum time that shutdown waits for pending dumps.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which shutdown checks whether the pending dumps are written.
const END_INTERVAL: Duration = Duration::from_millis(5);

/// First line of a dump: the reason for the dump, and the state of the job.
#[derive(Serialize)]
struct Head<'a> {
    dump: &'a str,
    unix_ms: u64,
    boot: String,
    uptime_ms: f64,
    job: u32,
    records: usize,
    status: Option<&'a JobStatus>,
}

/// Line of a dump that describes one event. Times count from the start of the daemon.
#[derive(Serialize)]
struct Line {
    job: u32,
    at_ms: f64,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ms: Option<f64>,
    text: String,
}

impl Line {
    fn of(job: u32, record: &FlightRecord) -> Self {
        let FlightRecord { at, until, times, incident } = record;
        let is_repeated = *times > 1;
        Self {
            job,
            at_ms: ms(*at),
            what: incident.name(),
            round: incident.round().map(Round::get),
            member: incident.member(),
            times: is_repeated.then_some(*times),
            until_ms: is_repeated.then(|| ms(*until)),
            text: incident.to_string(),
        }
    }
}

fn ms(instant: Instant) -> f64 {
    (instant.as_nanos() / 1000) as f64 / 1000.0
}

/// Returns the lines of a dump as JSON values.
pub(crate) fn lines(cause: &str, flight: &JobFlight) -> Vec<Value> {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let head = Head {
        dump: cause,
        unix_ms: unix.as_millis() as u64,
        boot: format!("{:016x}", flight.boot),
        uptime_ms: ms(flight.taken),
        job: flight.job,
        records: flight.records.len(),
        status: flight.status.as_ref(),
    };
    let records = flight.records.iter().map(|record| json!(Line::of(flight.job, record)));
    std::iter::once(json!(head)).chain(records).collect()
}

/// Destination of dumps.
#[derive(Debug)]
enum Sink {
    Files(Files),
    /// A pipe or a device, which is not rotated.
    Stream(File),
    StandardError,
}

impl Sink {
    fn write(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::StandardError => io::stderr().lock().write_all(text.as_bytes()),
            Self::Stream(file) => file.write_all(text.as_bytes()),
            Self::Files(files) => files.write(text.as_bytes()),
        }
    }
}

/// Pair of files: one with the newest dumps, and one with the dumps before them.
#[derive(Debug)]
struct Files {
    newest: File,
    len_bytes: u64,
    older: File,
}

impl Files {
    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.len_bytes > 0 && self.len_bytes + text.len() as u64 > FILE_LEN_MAX_BYTES {
            self.rotate()?;
        }
        // Counted before the write, because a failed write may still write part of the text.
        self.len_bytes += text.len() as u64;
        self.newest.write_all(text)
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.older.set_len(0)?;
        let mut buffer = vec![0; COPY_LEN_BYTES];
        let mut at = 0;
        loop {
            let len = self.newest.read_at(&mut buffer, at)?;
            if len == 0 {
                break;
            }
            self.older.write_all(&buffer[..len])?;
            at += len as u64;
        }
        self.newest.set_len(0)?;
        self.len_bytes = 0;
        Ok(())
    }
}

/// Returns the path of the file with the older dumps.
fn older_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Opens a file that only its owner can read, because dumps contain addresses.
fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// Open destination for dumps: a file or standard error.
#[derive(Debug)]
pub struct FlightFile {
    sink: Sink,
}

impl FlightFile {
    /// Opens two files in append mode: `path`, and `path` with the suffix `.1`. Without a path, dumps requested with
    /// SIGUSR1 go to standard error.
    ///
    /// # Errors
    /// Returns the errors of `open(2)`.
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self { sink: Sink::StandardError }) };
        let is_stream = path.metadata().is_ok_and(|existing| !existing.is_file());
        if is_stream {
            // Opened for writing only: otherwise the daemon would itself be a reader of the pipe, and would not
            // notice when the other reader goes away.
            let stream = OpenOptions::new().append(true).open(path)?;
            return Ok(Self { sink: Sink::Stream(stream) });
        }
        let (newest, older) = (open_private(path)?, open_private(&older_path(path))?);
        let len_bytes = newest.metadata()?.len();
        Ok(Self { sink: Sink::Files(Files { newest, len_bytes, older }) })
    }

    /// Starts the thread that writes the dumps.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn start(self) -> io::Result<FlightWriter> {
        let has_file = !matches!(self.sink, Sink::StandardError);
        let (orders, pending) = sync_channel(DUMPS_PENDING);
        let work = move || write_all(self.sink, &pending);
        let thread = std::thread::Builder::new().name("flight".to_owned()).spawn(work)?;
        Ok(FlightWriter { thread: Some(thread), dumps: FlightDumps { has_file, orders } })
    }
}

/// Message to the writer thread.
#[derive(Debug)]
enum Order {
    /// A dump to write; the first field is the reason for the dump.
    Write(&'static str, Box<JobFlight>),
    End,
}

fn write_all(mut sink: Sink, pending: &Receiver<Order>) {
    while let Ok(Order::Write(cause, flight)) = pending.recv() {
        let lines = lines(cause, &flight);
        let text = iswitch_control::lines_of(&lines);
        match sink.write(&text) {
            Ok(()) => tracing::info!(cause, job = flight.job, lines = lines.len(), "flight recorder dumped"),
            Err(error) => tracing::warn!(cause, job = flight.job, %error, "cannot write the flight recorder"),
        }
    }
}

/// Handle of the writer thread. When dropped, it waits until all dumps are written, for at most five seconds.
#[derive(Debug)]
pub struct FlightWriter {
    dumps: FlightDumps,
    thread: Option<JoinHandle<()>>,
}

impl FlightWriter {
    /// Returns a handle for submitting dumps, usable in any thread.
    pub fn dumps(&self) -> FlightDumps {
        self.dumps.clone()
    }
}

impl Drop for FlightWriter {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let begin = std::time::Instant::now();
        let mut is_notified = false;
        // Waits for a limited time, because the reader of standard error or of a pipe may have stalled.
        while !thread.is_finished() && begin.elapsed() < END_TIMEOUT {
            is_notified = is_notified || self.dumps.orders.try_send(Order::End).is_ok();
            // Unlike a sleep, `park_timeout` uses a system call that the sandbox allows.
            std::thread::park_timeout(END_INTERVAL);
        }
        if !thread.is_finished() {
            return tracing::warn!("some flight recorder dumps were not written before the timeout");
        }
        let _ = thread.join();
    }
}

/// Handle for submitting dumps to the writer thread.
#[derive(Clone, Debug)]
pub struct FlightDumps {
    has_file: bool,
    orders: SyncSender<Order>,
}

impl FlightDumps {
    /// Returns whether dumps go to a file. Stalls are dumped only to a file.
    pub fn has_file(&self) -> bool {
        self.has_file
    }

    /// Queues a dump for writing.
    pub fn push(&self, cause: &'static str, flight: JobFlight) {
        let job = flight.job;
        if self.orders.try_send(Order::Write(cause, Box::new(flight))).is_err() {
            tracing::warn!(cause, job, "flight recorder not dumped: too many dumps are pending");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_switch::{Event, Incident};

    fn flight() -> JobFlight {
        let at = Instant::from_nanos(1_234_567_890);
        let helped = Incident::Helped { member: 2, round: Round::new(9) };
        let ended = Incident::Event(Event::JobEnded { job: 7 });
        let records = vec![
            FlightRecord { at, until: Instant::from_nanos(2_000_000_000), times: 5, incident: helped },
            FlightRecord { at, until: at, times: 1, incident: ended },
        ];
        JobFlight { boot: 1, taken: at, job: 7, status: None, records }
    }

    #[test]
    fn each_line_contains_an_event_its_time_and_its_count() {
        let lines = lines("signal", &flight());
        assert_eq!((lines[0]["dump"].as_str(), lines[0]["records"].as_u64()), (Some("signal"), Some(2)));
        let helped = json!({
            "job": 7, "at_ms": 1234.567, "what": "helped", "round": 9, "member": 2, "times": 5, "until_ms": 2000.0,
            "text": "member 2 requested results of round 9",
        });
        let ended = json!({ "job": 7, "at_ms": 1234.567, "what": "job_ended", "text": "job 7 ended" });
        assert_eq!(lines[1..], [helped, ended]);
    }

    fn dump(path: &Path) {
        let writer = FlightFile::open(Some(path)).unwrap().start().unwrap();
        writer.dumps().push("signal", flight());
    }

    #[test]
    fn a_file_is_appended_to_and_rotated_when_it_is_full() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flight.jsonl");
        let older = directory.path().join("flight.jsonl.1");
        dump(&path);
        dump(&path);
        let two = std::fs::read_to_string(&path).unwrap();
        assert_eq!((two.lines().count(), std::fs::read_to_string(&older).unwrap().len()), (6, 0));
        // The file is full, so the next dump will be the only one in it, and the previous content will be in the
        // other file.
        File::options().write(true).open(&path).unwrap().set_len(FILE_LEN_MAX_BYTES).unwrap();
        dump(&path);
        dump(&path);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 6);
        let moved = std::fs::read(&older).unwrap();
        assert_eq!(moved.len() as u64, FILE_LEN_MAX_BYTES);
        assert!(moved.starts_with(two.as_bytes()));
        // Second rotation: only the content that was moved last is kept.
        let two = std::fs::read_to_string(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(FILE_LEN_MAX_BYTES - 1).unwrap();
        dump(&path);
        let moved = std::fs::read(&older).unwrap();
        assert_eq!(moved.len() as u64, FILE_LEN_MAX_BYTES - 1);
        assert!(moved.starts_with(two.as_bytes()));
    }
}
