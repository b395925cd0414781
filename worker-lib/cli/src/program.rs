//! Common `main` function of the programs: manual pages, logging, argument parsing and exit status.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::{launch, signals};

/// Parses the arguments and calls `run`. On failure, prints the error on one line and returns the corresponding exit
/// status. If a signal has requested that `run` stop, the process then terminates itself with the same signal.
///
/// If the program's manual is requested, for example by a packager, writes the manual instead
/// ([`iswitch_manual::write_if_asked`]). The environment variable `ISWITCH_LOG` selects what is logged to standard
/// error: a level, or pairs such as `iswitch=debug` (default: `warn`).
pub fn main<C: Parser>(run: impl FnOnce(C) -> anyhow::Result<ExitCode>) -> ExitCode {
    main_with(|| Ok(std::env::args_os().collect()), run)
}

/// Same as [`main`], but with the command line that `arguments` returns. The command line includes the name of the
/// program.
pub fn main_with<C: Parser>(
    arguments: impl FnOnce() -> anyhow::Result<Vec<OsString>>,
    run: impl FnOnce(C) -> anyhow::Result<ExitCode>,
) -> ExitCode {
    if let Some(status) = iswitch_manual::write_if_asked(C::command) {
        return status;
    }
    let filter = std::env::var("ISWITCH_LOG").ok().and_then(|directives| directives.parse().ok());
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN));
    let log = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    tracing_subscriber::registry().with(log).with(filter).init();
    let status = arguments().and_then(|arguments| run(C::parse_from(arguments))).unwrap_or_else(|error| {
        eprintln!("{}: {}", C::command().get_name(), iswitch_manual::describe(error.as_ref()));
        launch::exit_code(&error)
    });
    signals::end_as_signalled();
    status
}
