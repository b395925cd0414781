//! Commands of the control socket, which change jobs, members or settings of the daemon.

use std::fmt;

use crate::Request;

/// A command for a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reload the configuration file.
    Reload,
    /// Create no further jobs, and stop the daemon when its last job has ended.
    Drain,
    /// Suspend a job.
    Halt {
        /// The job's number.
        job: u32,
    },
    /// Resume a suspended job.
    Resume {
        /// The job's number.
        job: u32,
    },
    /// Close the open rounds of a job, and let its members rejoin.
    Reset {
        /// The job's number.
        job: u32,
    },
    /// End a job, and refuse Joins from its workers for the duration of one lease.
    Remove {
        /// The job's number.
        job: u32,
    },
    /// Remove a member and refuse the member's Joins for the duration of one lease.
    Expel {
        /// The job's number.
        job: u32,
        /// Id of the member.
        member: u16,
    },
}

/// Syntax of all commands.
const FORMS: [&str; 7] =
    ["reload", "drain", "halt JOB", "resume JOB", "reset JOB", "remove JOB", "expel JOB MEMBER"];

impl Command {
    /// Parses a line as a command.
    ///
    /// # Errors
    /// Fails if the line is not a command. The error text lists all requests and commands.
    pub fn parse(line: &str) -> Result<Self, String> {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let command = match words[..] {
            ["reload"] => Some(Self::Reload),
            ["drain"] => Some(Self::Drain),
            ["expel", job, member] => {
                job.parse().ok().zip(member.parse().ok()).map(|(job, member)| Self::Expel { job, member })
            }
            [verb, job] => job.parse().ok().and_then(|job| match verb {
                "halt" => Some(Self::Halt { job }),
                "resume" => Some(Self::Resume { job }),
                "reset" => Some(Self::Reset { job }),
                "remove" => Some(Self::Remove { job }),
                _ => None,
            }),
            _ => None,
        };
        command.ok_or_else(|| {
            let requests = Request::names();
            let all = requests.iter().map(String::as_str).chain(FORMS).collect::<Vec<_>>().join(", ");
            format!("request is {line:?}, expected {all}")
        })
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reload => f.write_str("reload"),
            Self::Drain => f.write_str("drain"),
            Self::Halt { job } => write!(f, "halt {job}"),
            Self::Resume { job } => write!(f, "resume {job}"),
            Self::Reset { job } => write!(f, "reset {job}"),
            Self::Remove { job } => write!(f, "remove {job}"),
            Self::Expel { job, member } => write!(f, "expel {job} {member}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed_as_they_are_written() {
        let job = u32::MAX;
        for command in [
            Command::Reload,
            Command::Drain,
            Command::Halt { job },
            Command::Resume { job },
            Command::Reset { job },
            Command::Remove { job },
            Command::Expel { job, member: 3 },
        ] {
            assert_eq!(Command::parse(&command.to_string()), Ok(command));
        }
        for line in ["", "halt", "halt 4294967296", "halt -1", "expel 1", "reload now", "remove 1 2"] {
            let error = Command::parse(line).unwrap_err();
            assert!(error.starts_with(&format!("request is {line:?}, expected status, ")), "{error}");
            assert!(error.ends_with("remove JOB, expel JOB MEMBER"), "{error}");
        }
    }
}
