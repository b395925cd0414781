//! Help of all commands: every line fits a terminal of 80 columns, and every option and command has a one-line
//! description.

use std::path::Path;

use iswitch_harness::binaries;
use iswitch_harness::process::{command, run};

use crate::manuals::commands;

/// Width of a terminal, in columns.
const COLUMNS: usize = 80;
/// Maximum length of a description in the short help, in characters.
const LONGEST_DESCRIPTION: usize = 79;

fn programs() -> impl Iterator<Item = &'static Path> {
    let users = commands().map(|(_, path)| path);
    users.into_iter().chain([binaries::path("hdl"), binaries::path("testbench")])
}

/// Returns the help of a command, formatted for a terminal that is wider than the help may be.
fn help(program: &Path, subcommands: &[String], option: &str) -> String {
    run(command(program).args(subcommands).arg(option).env("COLUMNS", (2 * COLUMNS).to_string()))
}

/// Returns the names of the subcommands that a help text lists.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Calls `check` with the short help of each program and of its subcommands, down to the second level.
fn for_each_command(check: &mut impl FnMut(&Path, &[String], &str)) {
    fn visit(program: &Path, path: &mut Vec<String>, check: &mut impl FnMut(&Path, &[String], &str)) {
        let short = help(program, path, "-h");
        check(program, path, &short);
        for name in subcommands(&short) {
            path.push(name);
            visit(program, path, check);
            path.pop();
        }
    }
    for program in programs() {
        visit(program, &mut Vec::new(), check);
    }
}

/// Returns the options, arguments and commands that a short help lists, each with its description but without its
/// default and its accepted values.
fn descriptions(help: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in help.lines().take_while(|line| *line != "Examples:") {
        let text = line.trim_start();
        match line.len() - text.len() {
            0 => {}
            // Options without a letter are indented by 6.
            1..=6 => {
                let (name, description) = text.split_once("  ").unwrap_or((text, ""));
                found.push((name.to_owned(), description.trim().to_owned()));
            }
            _ => {
                if let Some((_, description)) = found.last_mut() {
                    format!("{description} {text}").trim().clone_into(description);
                }
            }
        }
    }
    let without_values = |text: String| text.split(" [").next().unwrap_or_default().to_owned();
    found.into_iter().map(|(name, description)| (name, without_values(description))).collect()
}

#[test]
fn every_help_line_fits_the_terminal() {
    for_each_command(&mut |program, path, short| {
        for text in [short, &help(program, path, "--help")] {
            for line in text.lines().filter(|line| !line.starts_with("Usage: ")) {
                let len = line.chars().count();
                assert!(len < COLUMNS, "{} {path:?}: {len} columns: {line}", program.display());
            }
        }
    });
}

#[test]
fn descriptions_are_short_phrases() {
    for_each_command(&mut |program, path, short| {
        for (name, text) in descriptions(short) {
            let entry = format!("{} {path:?}: {name}: {text:?}", program.display());
            assert!(text.chars().count() <= LONGEST_DESCRIPTION, "{entry} is too long for the short help");
            assert!(!text.ends_with('.'), "{entry} is a sentence, expected a verb or noun phrase");
            let begins = text.chars().next();
            assert!(
                begins.is_some_and(|letter| letter.is_uppercase() || !letter.is_alphabetic()),
                "{entry} must begin with a capital letter"
            );
        }
    });
}

#[test]
fn the_main_programs_end_with_examples() {
    for program in [binaries::iswitch(), binaries::iswitchd(), binaries::iswitchctl()] {
        let text = help(program, &[], "--help");
        let (_, examples) =
            text.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{}: {text}", program.display()));
        assert!(examples.lines().count() >= 3, "{}: {examples}", program.display());
    }
}
