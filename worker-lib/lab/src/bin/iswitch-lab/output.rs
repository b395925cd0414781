//! Output of the processes. Each line is prefixed with the name of the process that printed it.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum length of a line, in bytes. A longer line is printed in several parts.
const MAX_LINE_LEN_BYTES: u64 = 64 << 10;
/// Maximum time to wait for remaining output after the commands have exited. Without this limit, a background process
/// that keeps a pipe open could prevent the lab from ending.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Stream to which lines are copied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Stdout,
    Stderr,
}

/// Threads that copy the output of processes line by line.
#[derive(Debug, Default)]
pub(crate) struct Copiers(Vec<JoinHandle<()>>);

impl Copiers {
    /// Copies all lines from `source`, each prefixed with `[name] `. If `lines` is given, each line is sent to it as
    /// well.
    pub(crate) fn add(
        &mut self,
        name: &str,
        source: impl Read + Send + 'static,
        target: Target,
        lines: Option<Sender<String>>,
    ) {
        let prefix = format!("[{name}] ");
        let copy = move || {
            let mut source = BufReader::new(source);
            while let Some(line) = next_line(&mut source) {
                let text = [prefix.as_bytes(), &line, b"\n"].concat();
                // If no process reads the output, the output is lost, but the command must not block.
                let _ = match target {
                    Target::Stdout => io::stdout().lock().write_all(&text),
                    Target::Stderr => io::stderr().lock().write_all(&text),
                };
                if let Some(lines) = &lines {
                    // The receiver may no longer exist, because only the startup of the switch waits for lines.
                    let _ = lines.send(String::from_utf8_lossy(&line).into_owned());
                }
            }
        };
        self.0.push(std::thread::spawn(copy));
    }

    /// Waits until all output has been copied or `DRAIN_TIMEOUT` expires.
    pub(crate) fn drain(self) {
        let begin = Instant::now();
        while !self.0.iter().all(JoinHandle::is_finished) && begin.elapsed() < DRAIN_TIMEOUT {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Returns the next line without its terminator. If the line is too long, returns a part of it.
fn next_line(source: &mut BufReader<impl Read>) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let len_bytes = source.by_ref().take(MAX_LINE_LEN_BYTES).read_until(b'\n', &mut line).ok()?;
    line.pop_if(|last| *last == b'\n');
    (len_bytes > 0).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_lines_are_split_and_bounded_in_length() {
        let long = vec![b'x'; MAX_LINE_LEN_BYTES as usize + 1];
        let text = [b"one\n\n".as_slice(), &long, b"\nlast"].concat();
        let mut source = BufReader::new(text.as_slice());
        let lines: Vec<_> = std::iter::from_fn(|| next_line(&mut source)).collect();
        let lens: Vec<_> = lines.iter().map(Vec::len).collect();
        assert_eq!(lens, [3, 0, MAX_LINE_LEN_BYTES as usize, 1, 4]);
        assert_eq!((&lines[0][..], &lines[4][..]), (&b"one"[..], &b"last"[..]));
    }
}
