//! Dumps of the flight recorder as lines of JSON: to a file when a job stalls, and there or to standard error on
//! SIGUSR1.
//!
//! The file is opened before the daemon gives up files, and only appended to. A thread of its own writes, so that a
//! slow disk delays no packet; a dump that comes while 64 others wait is left out and logged.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iswitch_protocol::{Instant, Round};
use serde::Serialize;
use serde_json::{Value, json};

use crate::flight::JobFlight;
use crate::switch::{FlightRecord, JobStatus};

/// Dumps that wait to be written.
const DUMPS_PENDING: usize = 64;
/// Length of the file after which nothing is added to it: the first dumps are those that tell why.
const FILE_LEN_MAX_BYTES: u64 = 64 << 20;

/// The first line of a dump: why it was made, and how the job stands.
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

/// Each other line of a dump. Times count from the start of the daemon.
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

/// A dump, one value a line.
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

/// One value a line.
pub(crate) fn text(lines: &[Value]) -> String {
    lines.iter().fold(String::new(), |text, line| text + &line.to_string() + "\n")
}

/// Where dumps go.
#[derive(Debug)]
enum Sink {
    File { file: File, len_bytes: u64 },
    StandardError,
}

impl Sink {
    fn write(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::StandardError => io::stderr().lock().write_all(text.as_bytes()),
            Self::File { len_bytes, .. } if *len_bytes >= FILE_LEN_MAX_BYTES => {
                Err(io::Error::other(format!("the file has {len_bytes} bytes, at most {FILE_LEN_MAX_BYTES}")))
            }
            Self::File { file, len_bytes } => {
                *len_bytes += text.len() as u64;
                file.write_all(text.as_bytes())
            }
        }
    }
}

/// An open file for dumps, or standard error.
#[derive(Debug)]
pub struct FlightFile {
    sink: Sink,
}

impl FlightFile {
    /// Opens `path` to append to it; without one dumps that are asked for go to standard error.
    ///
    /// # Errors
    /// Those of `open(2)`.
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self { sink: Sink::StandardError }) };
        // Addresses are for the owner.
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let len_bytes = file.metadata()?.len();
        Ok(Self { sink: Sink::File { file, len_bytes } })
    }

    /// Writes from now on whatever is handed over.
    ///
    /// # Errors
    /// If there can be no further thread.
    pub fn start(self) -> io::Result<FlightWriter> {
        let has_file = matches!(self.sink, Sink::File { .. });
        let (orders, pending) = sync_channel(DUMPS_PENDING);
        let work = move || write_all(self.sink, &pending);
        let thread = std::thread::Builder::new().name("flight".to_owned()).spawn(work)?;
        Ok(FlightWriter { thread: Some(thread), dumps: FlightDumps { has_file, orders } })
    }
}

/// What the thread that writes is told.
#[derive(Debug)]
enum Order {
    /// Write a dump; why it was made.
    Write(&'static str, Box<JobFlight>),
    End,
}

fn write_all(mut sink: Sink, pending: &Receiver<Order>) {
    while let Ok(Order::Write(cause, flight)) = pending.recv() {
        let lines = lines(cause, &flight);
        let text = text(&lines);
        match sink.write(&text) {
            Ok(()) => tracing::info!(cause, job = flight.job, lines = lines.len(), "flight recorder dumped"),
            Err(error) => tracing::warn!(cause, job = flight.job, %error, "flight recorder not dumped"),
        }
    }
}

/// The thread that writes. Dropping it waits until all is written.
#[derive(Debug)]
pub struct FlightWriter {
    dumps: FlightDumps,
    thread: Option<JoinHandle<()>>,
}

impl FlightWriter {
    /// Takes dumps, in any thread.
    pub fn dumps(&self) -> FlightDumps {
        self.dumps.clone()
    }
}

impl Drop for FlightWriter {
    fn drop(&mut self) {
        // It fails if the thread has ended.
        let _ = self.dumps.orders.send(Order::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Hands dumps to the thread that writes them.
#[derive(Clone, Debug)]
pub struct FlightDumps {
    has_file: bool,
    orders: SyncSender<Order>,
}

impl FlightDumps {
    /// Whether there is a file: stalls are dumped to one only.
    pub fn has_file(&self) -> bool {
        self.has_file
    }

    /// Has a dump written soon.
    pub fn push(&self, cause: &'static str, flight: JobFlight) {
        let job = flight.job;
        if self.orders.try_send(Order::Write(cause, Box::new(flight))).is_err() {
            tracing::warn!(cause, job, "flight recorder not dumped: too many dumps at once");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::{Event, Incident};

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
    fn each_line_says_what_when_and_how_often() {
        let lines = lines("signal", &flight());
        assert_eq!((lines[0]["dump"].as_str(), lines[0]["records"].as_u64()), (Some("signal"), Some(2)));
        let helped = json!({
            "job": 7, "at_ms": 1234.567, "what": "helped", "round": 9, "member": 2, "times": 5, "until_ms": 2000.0,
            "text": "member 2 asked for results of round 9",
        });
        let ended = json!({ "job": 7, "at_ms": 1234.567, "what": "job_ended", "text": "job 7 ended" });
        assert_eq!(lines[1..], [helped, ended]);
    }

    #[test]
    fn a_file_is_appended_to_until_it_is_long() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flight.jsonl");
        for _ in 0..2 {
            let writer = FlightFile::open(Some(&path)).unwrap().start().unwrap();
            writer.dumps().push("signal", flight());
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 6);
        File::options().write(true).open(&path).unwrap().set_len(FILE_LEN_MAX_BYTES).unwrap();
        let writer = FlightFile::open(Some(&path)).unwrap().start().unwrap();
        writer.dumps().push("signal", flight());
        drop(writer);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), FILE_LEN_MAX_BYTES);
    }
}
