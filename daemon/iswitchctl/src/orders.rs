//! Commands that change jobs, members or settings of a running daemon.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use iswitch_control::{Command, Request};
use serde_json::Value;

use crate::ask::{QueryArgs, print};

/// Confirmation option of the commands that interrupt training.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Confirmation {
    /// Do not ask for confirmation
    ///
    /// Without this option, the command asks for confirmation if standard input is a terminal.
    #[arg(long, short)]
    yes: bool,
}

impl Confirmation {
    /// If standard input is a terminal, asks the operator for confirmation. Returns whether to proceed.
    fn is_given(self, question: &str) -> anyhow::Result<bool> {
        if self.yes || !io::stdin().is_terminal() {
            return Ok(true);
        }
        eprint!("{question} [y/N] ");
        io::stderr().flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}

/// Commands for jobs.
#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Show all jobs and their members
    List,
    /// Show one job and its members
    Show {
        /// Number of the job
        job: u32,
    },
    /// Suspend a job
    ///
    /// The current round of each worker fails with "the job is halted".
    Halt {
        /// Number of the job
        job: u32,
    },
    /// Resume a suspended job
    ///
    /// The workers that are still running rejoin and continue with the sums that they have.
    Resume {
        /// Number of the job
        job: u32,
    },
    /// Let the workers of a job rejoin
    ///
    /// The switch forgets the open rounds. The workers continue with the sums that they have.
    Reset {
        /// Number of the job
        job: u32,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// End a job
    ///
    /// The current round of each worker fails with "the job is halted", and the switch refuses the worker's Joins for
    /// the duration of one lease, so that training ends.
    Remove {
        /// Number of the job
        job: u32,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// Commands for members.
#[derive(Debug, Subcommand)]
pub(crate) enum MemberCommand {
    /// Remove a member from its job
    ///
    /// The job continues without the member. The switch refuses the member's Joins for the duration of one lease.
    Expel {
        /// Number of the job
        job: u32,
        /// Id of the member, as `iswitchctl jobs` shows it
        member: u16,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

impl JobCommand {
    pub(crate) fn run(self, ask: &QueryArgs) -> anyhow::Result<ExitCode> {
        match self {
            Self::List => ask.show(Request::Jobs),
            Self::Show { job } => show(job, ask),
            Self::Halt { job } => order(Command::Halt { job }, ask, &format!("job {job} is halted")),
            Self::Resume { job } => order(
                Command::Resume { job },
                ask,
                &format!("job {job} was resumed; it will continue once its workers have rejoined"),
            ),
            Self::Reset { job, confirmation } => {
                let done = format!("job {job} was reset; it will continue once its workers have rejoined");
                confirmed(confirmation, Command::Reset { job }, ask, &format!("Reset job {job}?"), &done)
            }
            Self::Remove { job, confirmation } => {
                let question = format!("End job {job}? Its workers stop training.");
                confirmed(
                    confirmation,
                    Command::Remove { job },
                    ask,
                    &question,
                    &format!("job {job} was removed"),
                )
            }
        }
    }
}

impl MemberCommand {
    pub(crate) fn run(self, ask: &QueryArgs) -> anyhow::Result<ExitCode> {
        let Self::Expel { job, member, confirmation } = self;
        let question = format!("Expel member {member} of job {job}?");
        let done = format!("member {member} of job {job} was expelled");
        confirmed(confirmation, Command::Expel { job, member }, ask, &question, &done)
    }
}

/// Makes the daemon stop when its last job has ended.
pub(crate) fn drain(confirmation: Confirmation, ask: &QueryArgs) -> anyhow::Result<ExitCode> {
    let question = "Accept no further jobs and stop the switch when the last job has ended?";
    let done = "the switch accepts no further jobs, and will stop when its last job has ended";
    confirmed(confirmation, Command::Drain, ask, question, done)
}

/// Makes the daemon reload its configuration, and prints the settings that have changed.
pub(crate) fn reload(ask: &QueryArgs) -> anyhow::Result<ExitCode> {
    let answer = ask.command(Command::Reload)?;
    let changed = answer["changed"].as_array().map_or(&[][..], Vec::as_slice);
    let describe = |change: &Value| {
        format!("{}: {} -> {}\n", change["setting"].as_str().unwrap_or("-"), change["from"], change["to"])
    };
    let text: String = changed.iter().map(describe).collect();
    let text = if text.is_empty() { "no setting has changed\n".to_owned() } else { text };
    print(&if ask.json() { format!("{answer}\n") } else { text });
    Ok(ExitCode::SUCCESS)
}

fn show(job: u32, ask: &QueryArgs) -> anyhow::Result<ExitCode> {
    let jobs = ask.ask(Request::Jobs)?;
    let all = jobs.as_array().map_or(&[][..], Vec::as_slice);
    // For a long vector, each thread of the switch may report a separate job with this number.
    let found: Vec<&Value> = all.iter().filter(|status| status["job"] == job).collect();
    if found.is_empty() {
        let numbers: Vec<_> = all.iter().map(|status| status["job"].to_string()).collect();
        anyhow::ensure!(!numbers.is_empty(), "job is {job}, but this switch has no jobs");
        anyhow::bail!("job is {job}, expected the number of a job of this switch: {}", numbers.join(", "));
    }
    let found = Value::from(found.into_iter().cloned().collect::<Vec<_>>());
    print(&if ask.json() { format!("{found}\n") } else { Request::Jobs.text(found) });
    Ok(ExitCode::SUCCESS)
}

fn confirmed(
    confirmation: Confirmation,
    command: Command,
    ask: &QueryArgs,
    question: &str,
    done: &str,
) -> anyhow::Result<ExitCode> {
    if !confirmation.is_given(question)? {
        eprintln!("iswitchctl: nothing was changed");
        return Ok(ExitCode::FAILURE);
    }
    order(command, ask, done)
}

fn order(command: Command, ask: &QueryArgs, done: &str) -> anyhow::Result<ExitCode> {
    let answer = ask.command(command)?;
    print(&if ask.json() { format!("{answer}\n") } else { format!("{done}\n") });
    Ok(ExitCode::SUCCESS)
}
