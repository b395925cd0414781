//! `iswitch lab`: creates a network with a switch and workers inside this machine, and runs a command in each worker.
//!
//! ```text
//! iswitch-lab                  forwards signals to its child, and returns the child's exit status
//! `- unshare                   creates the namespaces
//!    `- iswitch-lab --inside   process 1: creates the network, starts and supervises the processes below
//!       |- iswitchd            in the namespace of the switch
//!       `- COMMAND             in the namespace of each worker
//! ```

mod cli;
mod environment;
mod inside;
mod output;
mod outside;
mod supervisor;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use cli::Cli;

fn main() -> ExitCode {
    if let Some(status) = iswitch_manual::write_if_asked(Cli::command) {
        return status;
    }
    let cli = Cli::parse();
    let code = if cli.is_inside { inside::run(&cli) } else { outside::run(&cli) };
    match code {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("iswitch-lab: {}", iswitch_manual::describe(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
