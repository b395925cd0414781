//! Asks a running iswitchd, and makes keys for it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use iswitch_daemon::config::default_control_socket;
use iswitch_daemon::control_socket::{Request, ask};
use iswitch_protocol::key_file;

/// Shows what a running iswitchd is doing, and makes keys for it.
#[derive(Parser)]
#[command(
    name = "iswitchctl",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// What to show
    #[arg(required = true)]
    request: Option<Request>,
    /// Control socket of the daemon [default: /run/iswitchd.sock as root, otherwise iswitchd.sock in
    /// XDG_RUNTIME_DIR]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print the answer as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Writes a new random key into a new file, for `--key-file` of iswitchd and of the workers
    Keygen {
        /// The file; it must not exist
        path: PathBuf,
    },
}

fn keygen(path: &Path) -> ExitCode {
    match key_file::create(path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("iswitchctl: cannot write a key into {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let request = match (cli.command, cli.request) {
        (Some(Command::Keygen { path }), _) => return keygen(&path),
        (None, Some(request)) => request,
        (None, None) => unreachable!("clap asks for one of both"),
    };
    let Some(path) = cli.socket.or_else(default_control_socket) else {
        eprintln!("iswitchctl: XDG_RUNTIME_DIR is not set: give --socket PATH");
        return ExitCode::from(2);
    };
    match ask(&path, request) {
        Ok(answer) => {
            let text = if cli.json { format!("{answer}\n") } else { request.text(answer) };
            // Whoever closed the pipe has read enough.
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("iswitchctl: cannot ask the daemon at {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}
