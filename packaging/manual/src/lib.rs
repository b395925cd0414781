//! What the commands share. Man pages and completions, written by each command from its own arguments, and
//! [`output`].
//!
//! Packagers call `COMMAND --write-manual DIRECTORY`; nobody else needs to know.

pub mod output;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

/// What has to be the first argument of a command that is to describe itself.
pub const OPTION: &str = "--write-manual";

/// The shells that completions are written for, each into a directory of its name.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// If the process was asked to describe itself, does that; its exit status.
///
/// To be called first in `main`, with the function that makes the command.
pub fn write_if_asked(command: impl FnOnce() -> Command) -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let (option, directory) = (arguments.next()?, arguments.next());
    if option != OsStr::new(OPTION) {
        return None;
    }
    let outcome = match directory {
        Some(directory) => write(command(), Path::new(&directory)),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a directory")),
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{OPTION}: {error}");
            ExitCode::FAILURE
        }
    })
}

/// Writes pages into `man` below the directory, one for the command and one for each of its subcommands, and
/// completions into `bash`, `zsh` and `fish`.
///
/// # Errors
/// Those of the file system.
pub fn write(mut command: Command, directory: &Path) -> io::Result<()> {
    let name = command.get_name().to_owned();
    let pages = directory.join("man");
    fs::create_dir_all(&pages)?;
    // First: what completions are generated from gets subcommands that only help.
    clap_mangen::generate_to(command.clone().disable_help_subcommand(true), &pages)?;
    for shell in SHELLS {
        let directory = directory.join(shell.to_string());
        fs::create_dir_all(&directory)?;
        clap_complete::generate_to(shell, &mut command, &name, directory)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn there_is_a_page_for_each_subcommand_and_a_completion_for_each_shell() {
        let top = Command::new("top").arg(Arg::new("interval").long("interval").help("Seconds."));
        let top = top.subcommand(Command::new("once"));
        let command = Command::new("prog").version("1").about("Does things.").subcommand(top);
        let directory = tempfile::tempdir().unwrap();
        write(command, directory.path()).unwrap();
        let page = fs::read_to_string(directory.path().join("man/prog-top.1")).unwrap();
        assert!(page.contains("interval"), "{page}");
        for file in ["man/prog.1", "bash/prog.bash", "zsh/_prog", "fish/prog.fish"] {
            let text = fs::read_to_string(directory.path().join(file)).unwrap();
            assert!(text.contains("prog"), "{file}: {text}");
        }
        let mut pages: Vec<_> = fs::read_dir(directory.path().join("man"))
            .unwrap()
            .map(|page| page.unwrap().file_name())
            .collect();
        pages.sort();
        assert_eq!(pages, ["prog-top-once.1", "prog-top.1", "prog.1"]);
    }
}
