//! Asks a running iswitchd.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use iswitch_daemon::config::default_control_socket;
use iswitch_daemon::control_socket::{Request, ask};

/// Shows what a running iswitchd is doing.
#[derive(Parser)]
#[command(name = "iswitchctl", version)]
struct Cli {
    /// What to show
    request: Request,
    /// Control socket of the daemon [default: /run/iswitchd.sock as root, otherwise iswitchd.sock in
    /// XDG_RUNTIME_DIR]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print the answer as one line of JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let Some(path) = cli.socket.or_else(default_control_socket) else {
        eprintln!("iswitchctl: XDG_RUNTIME_DIR is not set: give --socket PATH");
        return ExitCode::from(2);
    };
    match ask(&path, cli.request) {
        Ok(answer) => {
            let text = if cli.json { format!("{answer}\n") } else { cli.request.text(answer) };
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
