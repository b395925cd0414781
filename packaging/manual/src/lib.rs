//! Code shared by all commands: generation of man pages and shell completions from a command's own arguments,
//! [`output`], and error messages.
//!
//! Packagers run `COMMAND --write-manual DIRECTORY`. `--help` does not show this option, because users do not
//! need it.

pub mod output;

mod error;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

pub use error::describe;

/// Option that makes a command write its man pages and completions, if it is the first argument.
pub const OPTION: &str = "--write-manual";

/// Shells for which completions are written. The completions for each shell are written into a directory named after
/// the shell.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes the man pages and completions if the first argument is [`OPTION`], and returns the exit status. Otherwise
/// returns `None`.
///
/// Call this first in `main`. `command` returns the description of the command.
pub fn write_if_asked(command: impl FnOnce() -> Command) -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let (option, directory) = (arguments.next()?, arguments.next());
    if option != OsStr::new(OPTION) {
        return None;
    }
    let outcome = match directory {
        Some(directory) => write(command(), Path::new(&directory)),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no directory given, expected --write-manual DIRECTORY",
        )),
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{OPTION}: {error}");
            ExitCode::FAILURE
        }
    })
}

/// Writes man pages for the command and its subcommands into the subdirectory `man` of `directory`, and completions
/// into the subdirectories `bash`, `zsh` and `fish`.
///
/// # Errors
/// Fails if a file or directory cannot be written.
pub fn write(mut command: Command, directory: &Path) -> io::Result<()> {
    let name = command.get_name().to_owned();
    let pages = directory.join("man");
    fs::create_dir_all(&pages)?;
    // The pages come first, because generating the completions adds `help` subcommands, which need no pages.
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
    fn each_subcommand_has_a_page_and_each_shell_a_completion() {
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
