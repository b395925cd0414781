//! The frame of a program: its manual, its log, its arguments, its exit status.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser;

/// Parses the arguments and calls `run`; an error is printed on one line and fails the program.
///
/// Writes the program's manual instead if a packager asks for it ([`iswitch_manual::write_if_asked`]). The environment
/// variable `ISWITCH_LOG` selects what is logged to the standard error (default: `warn`).
pub fn main<C: Parser>(run: impl FnOnce(C) -> anyhow::Result<ExitCode>) -> ExitCode {
    if let Some(status) = iswitch_manual::write_if_asked(C::command) {
        return status;
    }
    let filter = tracing_subscriber::EnvFilter::try_from_env("ISWITCH_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    run(C::parse()).unwrap_or_else(|error| {
        eprintln!("{}: {error:#}", C::command().get_name());
        ExitCode::FAILURE
    })
}
