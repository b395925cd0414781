//! The `iswitchd` binary: reads the configuration, checks it, and runs the daemon or its monitor.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use iswitch_daemon::config::Cli;
use iswitch_daemon::sandbox::Account;
use iswitch_daemon::{daemon, log, memory, monitor, port};

/// Exit status for an unusable configuration; the same as for an invalid command line.
const BAD_CONFIGURATION: u8 = 2;

fn main() -> ExitCode {
    if monitor::is_called() {
        return monitor::main();
    }
    if let Some(status) = iswitch_manual::write_if_asked(Cli::command) {
        return status;
    }
    let cli = Cli::parse();
    let check = cli.check;
    let config = match cli.resolve() {
        Ok(config) => config,
        Err(error) => return fail(&error, BAD_CONFIGURATION),
    };
    for port in &config.interfaces {
        if let Err(error) = port::check_interface(&port.interface) {
            return fail(&error, BAD_CONFIGURATION);
        }
    }
    if let Err(error) = memory::check(&config.switch) {
        return fail(&error, BAD_CONFIGURATION);
    }
    if config.sandbox
        && let Err(error) = Account::choose(config.user.as_deref())
    {
        return fail(&error, BAD_CONFIGURATION);
    }
    if check {
        // The configuration is valid even if standard output is closed.
        let _ = writeln!(io::stdout(), "the configuration is valid");
        return ExitCode::SUCCESS;
    }
    log::start(config.log_format, config.log_level);
    let outcome = daemon::run(&config);
    log::flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&iswitch_manual::describe(error.as_ref()), 1),
    }
}

fn fail(error: &dyn std::fmt::Display, status: u8) -> ExitCode {
    eprintln!("iswitchd: {error}");
    ExitCode::from(status)
}
