//! The child process: its start, its requests with a timeout, and its termination.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{ChildError, GymnasiumOptions, message};

const SCRIPT: &str = concat!(include_str!("child.py"), include_str!("envpool.py"), "main()\n");
/// Maximum number of stderr lines that an error quotes.
const STDERR_LINES: usize = 10;
/// Time to wait for the remaining stderr output after the child has exited.
const STDERR_GRACE: Duration = Duration::from_secs(1);
/// Time that a child has to exit after its request pipe is closed. After this time, it is killed.
const END_GRACE: Duration = Duration::from_secs(2);
/// Environment variables that prevent numerical libraries from starting one thread per CPU; such threads would compete
/// with other workers.
const THREAD_VARIABLES: [&str; 3] = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"];

/// A Python process that runs `child.py` and `envpool.py`. Dropping this value terminates the process.
pub(super) struct Child {
    process: std::process::Child,
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    /// Most recent answer: its kind, followed by its body.
    answer: Vec<u8>,
    answer_timeout: Duration,
    stderr: Arc<Mutex<VecDeque<String>>>,
    stderr_reader: Option<JoinHandle<()>>,
}

impl Child {
    pub(super) fn start(options: &GymnasiumOptions) -> Result<Self, ChildError> {
        let mut command = Command::new(&options.python);
        command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for variable in THREAD_VARIABLES.iter().filter(|name| std::env::var_os(name).is_none()) {
            command.env(variable, "1");
        }
        let mut process =
            command.spawn().map_err(|error| ChildError::Start { python: options.python.clone(), error })?;
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(requests), Some(answers), Some(stderr)) = pipes else {
            return Err(ChildError::Protocol("it has no standard streams, expected pipes".to_owned()));
        };
        let lines = Arc::default();
        let stderr_reader = Some(keep_last_lines(stderr, Arc::clone(&lines)));
        let child = Self {
            process,
            requests: Some(requests),
            answers,
            answer: Vec::new(),
            answer_timeout: options.answer_timeout,
            stderr: lines,
            stderr_reader,
        };
        // Only this process's ends of the pipes become non-blocking, because the child's ends are separate open file
        // descriptions.
        child.requests.as_ref().map_or(Ok(()), |requests| rustix::io::ioctl_fionbio(requests, true))?;
        rustix::io::ioctl_fionbio(&child.answers, true)?;
        Ok(child)
    }

    /// Sends a request and returns the answer: its kind, followed by its body.
    pub(super) fn ask(&mut self, request: &[u8]) -> Result<&[u8], ChildError> {
        self.send(request)?;
        loop {
            self.receive()?;
            if self.answer.first() != Some(&message::ALIVE) {
                return Ok(&self.answer);
            }
        }
    }

    fn send(&mut self, mut request: &[u8]) -> Result<(), ChildError> {
        let deadline = Instant::now() + self.answer_timeout;
        let requests = self.requests.as_mut().ok_or(ChildError::Closed)?;
        while !request.is_empty() {
            match requests.write(request) {
                Ok(written) => request = &request[written..],
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(ChildError::Closed),
                Err(error) => wait_after(error, requests.as_fd(), PollFlags::OUT, deadline)?,
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), ChildError> {
        let deadline = Instant::now() + self.answer_timeout;
        let mut len = [0; 4];
        read_all(&mut self.answers, &mut len, deadline)?;
        let len = u32::from_le_bytes(len) as usize;
        if len > message::MESSAGE_BYTES_MAX {
            return Err(ChildError::Protocol(format!(
                "it sent a response of {len} bytes, expected at most {}",
                message::MESSAGE_BYTES_MAX
            )));
        }
        self.answer.resize(len, 0);
        read_all(&mut self.answers, &mut self.answer, deadline)
    }

    /// Kills the process immediately. Returns the last lines that it wrote to stderr.
    pub(super) fn kill(&mut self) -> String {
        // Killing a process that has already exited returns an error, which does not matter here.
        let _ = self.process.kill();
        let _ = self.process.wait();
        // The wait is limited, because a descendant of the child may still be running and hold the stderr pipe open.
        let deadline = Instant::now() + STDERR_GRACE;
        while self.stderr_reader.as_ref().is_some_and(|reader| !reader.is_finished())
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        let lines = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }

    /// Returns the handle of the operating-system process.
    #[cfg(test)]
    pub(super) fn process(&mut self) -> &mut std::process::Child {
        &mut self.process
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The child exits when its request pipe is closed.
        self.requests = None;
        let deadline = Instant::now() + END_GRACE;
        while Instant::now() < deadline {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read_all(from: &mut ChildStdout, mut to: &mut [u8], deadline: Instant) -> Result<(), ChildError> {
    while !to.is_empty() {
        match from.read(to) {
            Ok(0) => return Err(ChildError::Closed),
            Ok(len) => to = &mut to[len..],
            Err(error) => wait_after(error, from.as_fd(), PollFlags::IN, deadline)?,
        }
    }
    Ok(())
}

/// Handles the error of a read or a write. If the pipe was not ready, waits until it is ready or `deadline` has passed.
/// Returns all other errors except an interruption by a signal.
fn wait_after(
    error: std::io::Error,
    pipe: BorrowedFd<'_>,
    readiness: PollFlags,
    deadline: Instant,
) -> Result<(), ChildError> {
    match error.kind() {
        ErrorKind::WouldBlock => {}
        ErrorKind::Interrupted => return Ok(()),
        _ => return Err(ChildError::Pipe(error)),
    }
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
    match poll(&mut [PollFd::from_borrowed_fd(pipe, readiness)], Some(&timeout)) {
        Ok(0) => Err(ChildError::Timeout),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(ChildError::Pipe(error.into())),
    }
}

fn keep_last_lines(stderr: ChildStderr, lines: Arc<Mutex<VecDeque<String>>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            tracing::debug!(line, "output of the environment process");
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == STDERR_LINES {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    })
}
