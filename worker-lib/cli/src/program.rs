//! The frame of a program: its manual, its log, its arguments, its exit status.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Parses the arguments and calls `run`; an error is printed on one line and fails the program.
///
/// Writes the program's manual instead if a packager asks for it ([`iswitch_manual::write_if_asked`]). The environment
/// variable `ISWITCH_LOG` selects what is logged to the standard error: a level, or pairs such as `iswitch=debug`
/// (default: `warn`).
pub fn main<C: Parser>(run: impl FnOnce(C) -> anyhow::Result<ExitCode>) -> ExitCode {
    if let Some(status) = iswitch_manual::write_if_asked(C::command) {
        return status;
    }
    let filter = std::env::var("ISWITCH_LOG").ok().and_then(|directives| directives.parse().ok());
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN));
    let log = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    tracing_subscriber::registry().with(log).with(filter).init();
    run(C::parse()).unwrap_or_else(|error| {
        eprintln!("{}: {error:#}", C::command().get_name());
        ExitCode::FAILURE
    })
}
