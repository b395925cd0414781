//! Process of an external policy, and the lines that it exchanges with a run.

use std::fmt::Display;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::{External, SEED_VARIABLE};
use crate::StudyError;

/// Time that a program has to exit after its standard input is closed, before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to wait for the exit status of a program that has closed its standard output, before the error is
/// returned without it.
const STATUS_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest interval between checks of whether a program has exited.
const POLL_MAX: Duration = Duration::from_millis(20);
/// Size of a read from the pipe, in bytes: the capacity of a pipe on Linux.
const READ_LEN_BYTES: usize = 1 << 16;
/// Maximum number of characters of an invalid answer that an error shows.
const SHOWN_CHARS: usize = 200;

/// Running program of an external policy. When this value is dropped, the program's standard input is closed; a
/// program that does not exit within 5 seconds is killed, as are all processes that it has left behind in its process
/// group.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    /// Standard input of the program; `None` once it is closed.
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// Bytes that have been read but are not part of a complete answer yet.
    received: Vec<u8>,
    /// Number of requests that have been sent, including the greeting.
    requests: u64,
    timeout: Duration,
    answer_len_max_bytes: usize,
    /// Whether the program has exceeded its time limit and must therefore be killed without delay.
    is_late: bool,
    /// Exit status, once the program has been waited for.
    status: Option<ExitStatus>,
}

impl Program {
    /// Starts the program of a policy in a process group of its own. The program inherits this process's standard
    /// error.
    pub(super) fn spawn(
        external: &External,
        seed: u64,
        answer_len_max_bytes: usize,
    ) -> Result<Self, StudyError> {
        let External { name, command, answer_timeout } = external;
        let fail = |error: &dyn Display| {
            let text = format!("policy {name}: the program `{command}` cannot be started: {error}");
            StudyError::Own(text.into())
        };
        let mut child = Command::new("sh")
            .args(["-c", command])
            .env(SEED_VARIABLE, seed.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| fail(&error))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(fail(&"its pipes are missing"));
        };
        let program = Self {
            name: name.clone(),
            child,
            input: Some(input),
            output,
            received: Vec::new(),
            requests: 0,
            timeout: *answer_timeout,
            answer_len_max_bytes,
            is_late: false,
            status: None,
        };
        // Reads and writes have a time limit, so this process's ends of the pipes do not block. The program's ends
        // still do.
        let set = |fd: &dyn AsFd| rustix::io::ioctl_fionbio(fd.as_fd(), true);
        let is_set =
            program.input.iter().try_for_each(|input| set(input)).and_then(|()| set(&program.output));
        is_set.map_err(|error| fail(&error))?;
        Ok(program)
    }

    /// Sends a request and returns the answer; `form` describes the expected answer for error messages.
    ///
    /// # Errors
    /// Fails if the program exits, does not answer in time, or answers with an error, with a line that is too long or
    /// with anything that is not an `A`. The error names the policy and the request.
    pub fn ask<A: DeserializeOwned>(
        &mut self,
        request: &impl Serialize,
        form: &str,
    ) -> Result<A, StudyError> {
        let mut line = serde_json::to_vec(request).map_err(|error| self.error(&error))?;
        line.push(b'\n');
        self.check_silence()?;
        self.requests += 1;
        let answer = self.exchange(&line)?;
        let text = String::from_utf8_lossy(&answer);
        let json: Json =
            serde_json::from_str(&text).map_err(|error| self.invalid(&text, &format!("{form}: {error}")))?;
        match &json {
            Json::Object(object) => {
                if let Some(error) = object.get("error") {
                    let error = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
                    return Err(self.error(&format!("the program reports an error: {error}")));
                }
            }
            _ => return Err(self.invalid(&text, form)),
        }
        serde_json::from_value(json).map_err(|error| self.invalid(&text, &format!("{form}: {error}")))
    }

    /// Returns an error about the latest request, which names the policy and the request.
    pub fn error(&self, problem: &dyn Display) -> StudyError {
        let request = match self.requests {
            0 | 1 => "the greeting".to_owned(),
            number => format!("request {}", number - 1),
        };
        StudyError::Own(format!("policy {}, {request}: {problem}", self.name).into())
    }

    fn invalid(&self, answer: &str, expected: &str) -> StudyError {
        let mut shown: String = answer.chars().take(SHOWN_CHARS).collect();
        if shown.len() < answer.len() {
            shown.push_str("...");
        }
        self.error(&StudyError::field("answer", shown, expected))
    }

    /// Fails if the program has written anything since its latest answer. The answers would otherwise get out of step
    /// with the requests.
    fn check_silence(&mut self) -> Result<(), StudyError> {
        match self.read() {
            Err(error) if !is_retried(&error) => Err(self.broken(&error)),
            // A program that has ended is reported when it does not answer.
            _ if self.received.is_empty() => Ok(()),
            _ => {
                let text = String::from_utf8_lossy(&self.received).trim_end().to_owned();
                Err(self.invalid(&text, "one line for each request; these bytes follow the answer"))
            }
        }
    }

    /// Sends a line and returns the line that answers it, without its terminator.
    fn exchange(&mut self, line: &[u8]) -> Result<Vec<u8>, StudyError> {
        let deadline = Instant::now() + self.timeout;
        let mut unsent = line;
        let mut searched = 0;
        loop {
            let end =
                self.received[searched..].iter().position(|byte| *byte == b'\n').map(|at| searched + at);
            if end.unwrap_or(self.received.len()) > self.answer_len_max_bytes {
                let expected = format!("at most {} bytes", self.answer_len_max_bytes);
                let value = format!("more than {} bytes", self.answer_len_max_bytes);
                return Err(self.error(&StudyError::field("length of the answer", value, expected)));
            }
            if let Some(end) = end {
                let rest = self.received.split_off(end + 1);
                let mut answer = std::mem::replace(&mut self.received, rest);
                answer.pop();
                return Ok(answer);
            }
            searched = self.received.len();
            self.wait(!unsent.is_empty(), deadline)?;
            if !unsent.is_empty() {
                self.write(&mut unsent)?;
            }
            match self.read() {
                Ok(0) => return Err(self.ended()),
                Ok(_) => {}
                Err(error) if is_retried(&error) => {}
                Err(error) => return Err(self.broken(&error)),
            }
        }
    }

    /// Waits until an answer can be read or, if `is_sending`, more of the request can be written.
    fn wait(&mut self, is_sending: bool, deadline: Instant) -> Result<(), StudyError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        let mut fds = vec![PollFd::new(&self.output, PollFlags::IN)];
        if let Some(input) = self.input.as_ref().filter(|_| is_sending) {
            fds.push(PollFd::new(input, PollFlags::OUT));
        }
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => {
                self.is_late = true;
                let seconds = self.timeout.as_secs_f64();
                let expected = format!("an answer within {seconds} s (--answer-timeout)");
                Err(self.error(&StudyError::field(
                    "time without an answer",
                    format!("{seconds} s"),
                    expected,
                )))
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// Writes as much of a line as the pipe accepts. If the program has closed its standard input, drops the rest
    /// without an error, because the program may still have answered.
    fn write(&mut self, unsent: &mut &[u8]) -> Result<(), StudyError> {
        let Some(input) = &mut self.input else {
            *unsent = &[];
            return Ok(());
        };
        match input.write(unsent) {
            Ok(len) => *unsent = &unsent[len..],
            Err(error) if is_retried(&error) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.input = None;
                *unsent = &[];
            }
            Err(error) => return Err(self.broken(&error)),
        }
        Ok(())
    }

    /// Reads what the program has written, and returns the number of bytes; 0 if standard output is closed.
    fn read(&mut self) -> io::Result<usize> {
        let len = self.received.len();
        self.received.resize(len + READ_LEN_BYTES, 0);
        let read = self.output.read(&mut self.received[len..]);
        self.received.truncate(len + read.as_ref().copied().unwrap_or(0));
        read
    }

    fn broken(&self, error: &dyn Display) -> StudyError {
        self.error(&format!("cannot communicate with the program: {error}"))
    }

    /// Returns the error for a program that has closed its standard output, with its exit status.
    fn ended(&mut self) -> StudyError {
        let status = match self.exited(STATUS_TIMEOUT).then(|| self.end()).flatten() {
            Some(status) => format!("the program has ended with {status}"),
            None => "the program has closed its standard output but is still running".to_owned(),
        };
        let answer = if self.received.is_empty() {
            "missing".to_owned()
        } else {
            format!("incomplete ({} bytes without a line feed)", self.received.len())
        };
        self.error(&StudyError::field("answer", answer, format!("one line of JSON; {status}")))
    }

    /// Returns whether the program exits within this time. The process is not reaped before [`Self::end`].
    fn exited(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut pause = Duration::from_millis(1);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None)) {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(POLL_MAX);
        }
        true
    }

    /// Kills all remaining processes of the program, and returns its exit status. The process group cannot belong to
    /// another program, because the process that leads it has not been waited for.
    fn end(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            // This fails only if no process is left.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            self.status = self.child.wait().ok();
        }
        self.status
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.input = None;
        if !self.is_late && self.status.is_none() {
            self.exited(END_TIMEOUT);
        }
        self.end();
    }
}

fn is_retried(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FORM: &str = r#"{"a": n}"#;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Answer {
        a: u32,
    }

    /// Starts a program whose answers may be at most 100 bytes long.
    fn start(command: &str) -> Result<Program, StudyError> {
        let external = External::new("mine", command).unwrap();
        external.start("test", 7, &json!({ "size": 2 }), 100)
    }

    /// Returns the error of the first request that fails: the greeting or the next one.
    fn failure(command: &str) -> String {
        let mut program = match start(command) {
            Ok(program) => program,
            Err(error) => return error.to_string(),
        };
        let error = program.ask::<Answer>(&json!({ "n": 1 }), FORM).expect_err("the request must fail");
        // The tests do not wait for programs that do not end by themselves.
        program.is_late = true;
        error.to_string()
    }

    #[test]
    fn a_program_gets_the_greeting_the_requests_and_the_seed() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let command = format!(
            r#"while read -r line; do echo "$line" >> {0}; echo "{{\"a\": $ISWITCH_SEED}}"; done; echo end >> {0}"#,
            log.display()
        );
        let mut program = start(&command).unwrap();
        for number in 1..3 {
            let answer: Answer = program.ask(&json!({ "n": number }), FORM).unwrap();
            assert_eq!(answer, Answer { a: 7 });
        }
        drop(program);
        let greeting = r#"{"describe":{"version":1,"study":"test","policy":"mine","seed":7,"size":2}}"#;
        let log = std::fs::read_to_string(&log).unwrap();
        assert_eq!(log, format!("{greeting}\n{{\"n\":1}}\n{{\"n\":2}}\nend\n"));
    }

    #[test]
    fn a_program_that_ends_is_reported_with_its_exit_status() {
        let ended = "answer is missing, expected one line of JSON; the program has ended with";
        let missing = "exec /nonexistent/program 2>/dev/null";
        assert_eq!(failure(missing), format!("policy mine, the greeting: {ended} exit status: 127"));
        let early = "read line; echo '{}'; read line; exit 3";
        assert_eq!(failure(early), format!("policy mine, request 1: {ended} exit status: 3"));
        let killed = "read line; echo '{}'; kill -9 $$";
        assert_eq!(failure(killed), format!("policy mine, request 1: {ended} signal: 9 (SIGKILL)"));
        let closed = "read line; echo '{}'; read line; exec >&-; exec sleep 1000";
        let error = failure(closed);
        assert!(
            error.ends_with("JSON; the program has closed its standard output but is still running"),
            "{error}"
        );
        let cut = "read line; echo '{}'; read line; printf '{\"a\"'";
        let error = failure(cut);
        assert!(
            error.contains("answer is incomplete (4 bytes without a line feed), expected one"),
            "{error}"
        );
    }

    #[test]
    fn an_invalid_answer_is_reported_with_its_request() {
        let answers = |greeting: &str, answer: &str| {
            failure(&format!("read line; echo '{greeting}'; while read line; do echo '{answer}'; done"))
        };
        let error = answers("hello", "");
        assert!(
            error.starts_with("policy mine, the greeting: answer is hello, expected an object such as {}: ")
        );
        let error = answers(r#"{"error": "only two switches"}"#, "");
        assert_eq!(error, "policy mine, the greeting: the program reports an error: only two switches");
        let error = answers("{}", "[1]");
        assert_eq!(error, r#"policy mine, request 1: answer is [1], expected {"a": n}"#);
        let error = answers("{}", r#"{"a": 1, "b": 2}"#);
        let text =
            r#"policy mine, request 1: answer is {"a": 1, "b": 2}, expected {"a": n}: unknown field `b`"#;
        assert!(error.starts_with(text), "{error}");
        let error = answers("{}", &"x".repeat(101));
        let text =
            "policy mine, request 1: length of the answer is more than 100 bytes, expected at most 100 bytes";
        assert_eq!(error, text);
    }

    #[test]
    fn a_line_without_a_request_is_reported() {
        let twice = r#"while read line; do printf '{"a": 1}\n{"a": 2}\n'; done"#;
        let text = r#"answer is {"a": 2}, expected one line for each request; these bytes follow the answer"#;
        assert_eq!(failure(twice), format!("policy mine, the greeting: {text}"));
    }

    #[test]
    fn a_program_that_does_not_answer_in_time_is_killed() {
        let late = "time without an answer is 0.2 s, expected an answer within 0.2 s (--answer-timeout)";
        // The second request is larger than the pipe, and the program never reads it.
        for (command, len) in [("sleep 1000 & sleep 1000", 1), ("exec sleep 1000", 1 << 20)] {
            let mut program = start(&format!("read line; echo '{{}}'; {command}")).unwrap();
            program.timeout = Duration::from_millis(200);
            let error = program.ask::<Answer>(&json!({ "n": "x".repeat(len) }), FORM).unwrap_err();
            assert_eq!(error.to_string(), format!("policy mine, request 1: {late}"));
            assert!(!program.exited(Duration::ZERO));
            program.end();
            assert!(program.status.is_some_and(|status| !status.success()));
        }
    }

    #[test]
    fn long_requests_and_early_answers_do_not_block() {
        let mut program = start(r#"while read -r line; do echo "{\"a\": ${#line}}"; done"#).unwrap();
        for len in [1, 1 << 17, 1 << 20] {
            let answer: Answer = program.ask(&json!("x".repeat(len)), FORM).unwrap();
            assert_eq!(answer.a as usize, len + 2);
        }
        // The program answers without having read the request.
        let mut program =
            start(r#"read line; echo '{}'; sleep 0.1; echo '{"a": 5}'; exec sleep 1000"#).unwrap();
        let answer: Answer = program.ask(&json!("x".repeat(1 << 20)), FORM).unwrap();
        assert_eq!(answer, Answer { a: 5 });
        program.is_late = true;
    }
}
