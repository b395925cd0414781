//! Code blocks of the documentation. `guide` runs those of the tutorials; here, the commands of every other page are
//! checked against the programs, and Python blocks are compiled.

use std::path::Path;

use iswitch_conventions::{report, sources};
use iswitch_harness::binaries;
use iswitch_harness::process::command;
use iswitch_harness::requirements::programs;

/// A fenced code block of a page.
#[derive(Debug)]
struct Block {
    page: String,
    text: String,
}

/// Returns the fenced code blocks of a page, each as the words after the opening fence and the lines of the block.
pub(super) fn fenced_blocks(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.trim_start().strip_prefix("```").filter(|info| !info.is_empty()) {
            found.push((
                info,
                lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")).collect(),
            ));
        }
    }
    found
}

/// Returns, from all pages, the code blocks in the given language.
fn blocks(language: &str) -> Vec<Block> {
    let mut found = Vec::new();
    for (page, text) in sources(".md") {
        for (info, lines) in fenced_blocks(&text) {
            if info.split([' ', ',']).next() == Some(language) {
                found.push(Block { page: page.clone(), text: lines.join("\n") });
            }
        }
    }
    found
}

/// Returns the words of each simple command of a shell script, without comments, assignments and redirections. This is
/// not a complete shell parser: quotes may surround a whole word or a part of it, and nothing is expanded.
fn simple_commands(script: &str) -> Vec<Vec<String>> {
    let script = script.replace("\\\n", " ");
    let mut commands = Vec::new();
    for line in script.lines() {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                _ if quote == Some(letter) => quote = None,
                _ if quote.is_some() => word.push(letter),
                '\'' | '"' => quote = Some(letter),
                '#' if word.is_empty() => break,
                '$' if letters.peek() == Some(&'(') => word.push(letter),
                '&' | '|' | ';' => {
                    words.push(std::mem::take(&mut word));
                    commands.push(std::mem::take(&mut words));
                }
                ' ' => words.push(std::mem::take(&mut word)),
                _ => word.push(letter),
            }
        }
        words.push(word);
        commands.push(words);
    }
    for words in &mut commands {
        words.retain(|word| !word.is_empty());
        let assignments = words.iter().take_while(|word| is_assignment(word) || *word == "sudo").count();
        words.drain(..assignments);
        words.truncate(words.iter().position(|word| word.starts_with(['>', '<'])).unwrap_or(words.len()));
    }
    commands.retain(|words| !words.is_empty());
    commands
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_'))
}

/// Returns the program of this project that a command runs, and the program's arguments.
fn program(words: &[String]) -> Option<(&'static Path, &[String])> {
    let (first, arguments) = words.split_first()?;
    if first == "cargo" && arguments.first().is_some_and(|verb| verb == "run") {
        let (options, arguments) = match arguments.iter().position(|word| word == "--") {
            Some(at) => (&arguments[..at], &arguments[at + 1..]),
            None => (arguments, &[][..]),
        };
        let of = |option: &str| options.iter().skip_while(|word| *word != option).nth(1);
        if of("--example").is_some() {
            return None;
        }
        // The default member of the workspace is `iswitch`.
        let name = of("--bin").or(of("-p")).map_or("iswitch", String::as_str);
        return Some((binaries::path(name), arguments));
    }
    let name = Path::new(first).file_name()?.to_str()?;
    binaries::all().get(name).map(|path| (path.as_path(), arguments))
}

/// Returns the arguments without placeholders. A placeholder is an alternative in brackets, `...`, or a variable that
/// is not the value of an option.
fn without_placeholders(arguments: &[String]) -> impl Iterator<Item = &String> {
    arguments.iter().enumerate().filter_map(|(at, word)| {
        let is_value = at > 0 && arguments[at - 1].starts_with("--");
        let is_placeholder = word.starts_with('$') && !is_value || word.contains(['[', ']']) || word == "...";
        (!is_placeholder).then_some(word)
    })
}

/// Checks a command line without running the command: `--help` at its end is only reached if all earlier options exist
/// and their values are valid.
fn check(page: &str, words: &[String]) -> Option<String> {
    let (program, arguments) = program(words)?;
    // A command after `--` is checked separately.
    let own = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let output = command(program)
        .args(without_placeholders(&arguments[..own]))
        .arg("--help")
        .output()
        .expect("the program must start");
    let line = words.join(" ");
    (!output.status.success()).then(|| format!("{page}: {line}\n{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn documented_commands_are_accepted() {
    let mut problems = Vec::new();
    let mut checked = 0;
    let is_run = |block: &Block| block.page.starts_with("docs/guide/");
    for block in blocks("sh").iter().filter(|block| !is_run(block)) {
        for words in simple_commands(&block.text) {
            checked += usize::from(program(&words).is_some());
            problems.extend(check(&block.page, &words));
        }
    }
    assert!(checked > 100, "only {checked} commands were found");
    report(&problems);
}

#[test]
fn an_invalid_command_is_detected() {
    for line in
        ["iswitch train ppo --worker 4", "iswitch train ppo --workers four", "sudo iswitchd --prot eth0 # no"]
    {
        let commands = simple_commands(line);
        assert!(check("a page", &commands[0]).is_some(), "{line} was accepted");
    }
}

#[test]
fn python_blocks_compile() {
    if !programs("python_blocks_compile", &["python3"]) {
        return;
    }
    let mut problems = Vec::new();
    for block in blocks("python") {
        let output =
            command("python3").args(["-c", "import ast, sys; ast.parse(sys.argv[1])", &block.text]).output();
        let output = output.expect("python3 must start");
        if !output.status.success() {
            problems.push(format!("{}: {}", block.page, String::from_utf8_lossy(&output.stderr)));
        }
    }
    report(&problems);
}
