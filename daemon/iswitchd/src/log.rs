//! Logging to standard error.
//!
//! Until [`detach`] is called, the calling thread writes each line. Afterwards, a separate thread writes the lines,
//! because standard error may be a pipe whose reader has stalled, and a write would block the packet loop. If the queue
//! is full, lines are dropped and counted, and a line at that point in the log reports how many are missing. The
//! non-blocking writer of `tracing-appender` is not used, because it does not report dropped lines and starts its
//! thread before the daemon drops its privileges.

use std::cell::Cell;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use crate::config::{LogFormat, LogLevel};

/// Capacity of the queue to the writer thread, in lines: more than the packet loop logs in two seconds.
const LINES_PENDING: usize = 256;
/// Maximum time that [`flush`] waits for the reader of standard error.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Polling interval of [`flush`].
const FLUSH_INTERVAL: Duration = Duration::from_millis(2);

/// Field that marks an event of the switch and precedes the other fields of the event.
const EVENT_FIELD: &str = "event";

/// Queue to the writer thread, once that thread has started.
static QUEUE: OnceLock<Queue> = OnceLock::new();

/// The level of the log, which can change while the daemon runs.
static LEVEL: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();

thread_local! {
    /// Whether this is the writer thread, which must not queue its own lines.
    static IS_WRITER: Cell<bool> = const { Cell::new(false) };
}

/// Starts logging.
pub fn start(format: LogFormat, level: LogLevel) {
    let (level, handle) = reload::Layer::new(filter_of(level));
    let _ = LEVEL.set(handle);
    let log = tracing_subscriber::registry().with(level);
    let lines = tracing_subscriber::fmt::layer().with_writer(|| Output).with_ansi(io::stderr().is_terminal());
    match format {
        LogFormat::Text => log.with(lines.with_target(false).fmt_fields(TextFields)).init(),
        LogFormat::Json => log.with(lines.json().flatten_event(true)).init(),
    }
}

/// Formatter for the fields of a text line. The fields of a switch event are omitted, because its message contains
/// them.
struct TextFields;

impl<'writer> FormatFields<'writer> for TextFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut line = TextLine { writer, is_event: false, is_empty: true, outcome: Ok(()) };
        fields.record(&mut line);
        line.outcome
    }
}

struct TextLine<'writer> {
    writer: Writer<'writer>,
    is_event: bool,
    is_empty: bool,
    outcome: fmt::Result,
}

impl Visit for TextLine<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let name = field.name();
        self.is_event |= name == EVENT_FIELD;
        let separator = if self.is_empty { "" } else { " " };
        if name == "message" {
            self.outcome = self.outcome.and_then(|()| write!(self.writer, "{separator}{value:?}"));
        } else if !self.is_event {
            self.outcome = self.outcome.and_then(|()| write!(self.writer, "{separator}{name}={value:?}"));
        } else {
            return;
        }
        self.is_empty = false;
    }
}

/// Changes the level of the log after logging has started.
pub(crate) fn set_level(level: LogLevel) {
    if let Some(handle) = LEVEL.get() {
        // The subscriber lives as long as the process.
        let _ = handle.reload(filter_of(level));
    }
}

fn filter_of(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// Starts the writer thread, so that no other thread blocks when it logs. Call it after privileges have been dropped,
/// because the thread inherits the privileges of its creator. A second call has no effect.
///
/// # Errors
/// Fails if the thread cannot be started.
pub fn detach() -> io::Result<()> {
    if QUEUE.get().is_some() {
        return Ok(());
    }
    let (queue, lines) = Queue::new();
    let write = move || {
        IS_WRITER.set(true);
        let say_lost =
            |lines| tracing::warn!(lines, "log lines dropped: standard error was not read in time");
        write_all(&lines, &mut io::stderr(), say_lost);
    };
    std::thread::Builder::new().name("log".to_owned()).spawn(write)?;
    // If two calls race, the queue of the second call is dropped together with its only sender, so the thread of that
    // call ends.
    let _ = QUEUE.set(queue);
    Ok(())
}

/// Waits until all queued lines are written, for at most one second.
pub fn flush() {
    let begin = Instant::now();
    while QUEUE.get().is_some_and(|queue| !queue.is_empty()) && begin.elapsed() < FLUSH_TIMEOUT {
        // Unlike a sleep, `park_timeout` uses a system call that the sandbox allows.
        std::thread::park_timeout(FLUSH_INTERVAL);
    }
}

/// Returns the number of lines dropped since start-up because standard error was not read in time.
pub fn dropped_lines() -> u64 {
    QUEUE.get().map_or(0, Queue::dropped)
}

/// Writer that receives each log line in a single call, and queues or prints it.
struct Output;

impl Write for Output {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match QUEUE.get() {
            Some(queue) if !IS_WRITER.get() => queue.push(line),
            _ => io::stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A queued line.
struct Line {
    text: Vec<u8>,
    /// Number of lines that had been dropped since start-up when this line was queued.
    dropped_before: u64,
}

/// Sending end of the queue.
struct Queue {
    lines: SyncSender<Line>,
    counts: &'static Counts,
}

/// Receiving end of the queue.
struct Lines {
    lines: Receiver<Line>,
    counts: &'static Counts,
}

/// Counters shared by both ends of the queue.
#[derive(Default)]
struct Counts {
    queued: AtomicU64,
    written: AtomicU64,
    dropped: AtomicU64,
}

impl Queue {
    /// Creates a queue and returns both ends. Its counters live as long as the process.
    fn new() -> (Self, Lines) {
        let counts = Box::leak(Box::default());
        let (sender, lines) = sync_channel(LINES_PENDING);
        (Self { lines: sender, counts }, Lines { lines, counts })
    }

    /// Queues a line, or drops it if the queue is full. Never blocks.
    fn push(&self, text: &[u8]) {
        let Counts { queued, dropped, .. } = self.counts;
        let line = Line { text: text.to_owned(), dropped_before: dropped.load(Ordering::Relaxed) };
        // Counted before it is sent, because `written` must not exceed `queued`.
        queued.fetch_add(1, Ordering::SeqCst);
        if self.lines.try_send(line).is_err() {
            queued.fetch_sub(1, Ordering::SeqCst);
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_empty(&self) -> bool {
        self.counts.written.load(Ordering::SeqCst) >= self.counts.queued.load(Ordering::SeqCst)
    }

    fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }
}

/// Writes lines until all senders are gone. If lines have been dropped since the previous call of `say_lost`, calls
/// `say_lost` with the number of these lines.
fn write_all(queue: &Lines, output: &mut impl Write, say_lost: impl Fn(u64)) {
    let Lines { lines, counts } = queue;
    let mut said = 0;
    let mut say = |dropped: u64| {
        if dropped > said {
            say_lost(dropped - said);
            said = dropped;
        }
    };
    loop {
        let line = match lines.try_recv() {
            Ok(line) => line,
            Err(TryRecvError::Empty) => {
                say(counts.dropped.load(Ordering::Relaxed));
                let Ok(line) = lines.recv() else { return };
                line
            }
            Err(TryRecvError::Disconnected) => return,
        };
        say(line.dropped_before);
        // A closed standard error is not reported, because no other channel exists.
        let _ = output.write_all(&line.text);
        counts.written.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::net::UnixStream;

    use super::*;

    const LONG_LINE_LEN_BYTES: usize = 4096;

    /// Returns a line that is long enough for a few of them to fill the buffer of the socket.
    fn long_line(number: usize) -> Vec<u8> {
        format!("{number:0LONG_LINE_LEN_BYTES$}\n").into_bytes()
    }

    #[test]
    fn a_stalled_log_reader_blocks_no_thread_and_learns_of_lost_lines() {
        const LINES: usize = 4 * LINES_PENDING;
        let (mut output, input) = UnixStream::pair().unwrap();
        let notices = output.try_clone().unwrap();
        let (queue, lines) = Queue::new();
        let writer = std::thread::spawn(move || {
            write_all(&lines, &mut output, |lost| writeln!(&notices, "lost {lost}").unwrap());
        });
        // The reader has stalled: the socket takes about 50 of these lines, and the queue takes as many as it has
        // room for.
        for number in 0..LINES {
            queue.push(&long_line(number));
        }
        let dropped = queue.dropped();
        assert!(dropped > 0 && dropped < LINES as u64, "{dropped}");
        assert!(!queue.is_empty());

        let mut input = BufReader::new(input);
        let (mut lost, mut expected) = (0, 0);
        while expected < LINES {
            let mut line = String::new();
            assert!(input.read_line(&mut line).unwrap() > 0);
            if let Some(count) = line.strip_prefix("lost ") {
                let count: usize = count.trim().parse().unwrap();
                (lost, expected) = (lost + count, expected + count);
            } else {
                assert_eq!(line.as_bytes(), long_line(expected));
                expected += 1;
            }
        }
        assert_eq!(lost as u64, dropped);
        drop(queue);
        writer.join().unwrap();
        let mut rest = String::new();
        input.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}
