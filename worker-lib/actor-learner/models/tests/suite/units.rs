//! Checks that the program accepts all options in the systemd units, including those in comments.

use std::process::Command;

#[test]
fn units_use_only_existing_options() {
    let units = [
        include_str!("../../dist/iswitch-models.service"),
        include_str!("../../dist/iswitch-models-cell.service"),
    ];
    for (unit, command) in units.into_iter().zip(["serve", "cell"]) {
        let help =
            Command::new(env!("CARGO_BIN_EXE_iswitch-models")).args([command, "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        // A command line, or its continuation in a comment.
        let is_of_program = |line: &&str| line.contains("ExecStart=/") || line.starts_with("#       --");
        let words = unit.lines().filter(is_of_program).flat_map(str::split_whitespace);
        let options: Vec<_> = words.filter(|word| word.starts_with("--")).collect();
        assert!(options.len() >= 8, "{options:?}");
        for option in options {
            assert!(help.contains(&format!("{option} ")), "{command} has no {option}");
        }
    }
}
