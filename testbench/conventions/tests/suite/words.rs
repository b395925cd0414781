//! Words that the style page rejects.

use std::fs;

use iswitch_conventions::{report, root, sources};

const STYLE_PAGE: &str = "docs/style.md";
/// File-name endings of the files to check: the files that people read.
const KINDS: [&str; 6] = [".md", ".rs", ".py", ".toml", ".service", ".h"];

/// Returns the word list of the style page, in lower case.
fn rejected() -> Vec<String> {
    let page = fs::read_to_string(root().join(STYLE_PAGE)).expect("the style page must be readable");
    let (_, rest) = page.split_once("## Word list").expect("the style page must have a word list");
    let (_, rest) = rest.split_once("```text\n").expect("the word list must be a block of text");
    let (list, _) = rest.split_once("```").expect("the word list must end");
    list.lines().map(str::to_lowercase).collect()
}

/// Returns whether a lower-case text contains a word as a whole, not as a part of another word.
fn contains(text: &str, word: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphabetic);
    text.match_indices(word).any(|(start, found)| {
        !is_letter(text[..start].chars().next_back())
            && !is_letter(text[start + found.len()..].chars().next())
    })
}

#[test]
fn rejected_words_do_not_occur() {
    let words = rejected();
    assert!(words.len() > 5, "the word list is too short: {words:?}");
    let mut problems = Vec::new();
    for (path, text) in KINDS.into_iter().flat_map(sources) {
        if path == STYLE_PAGE || path.ends_with("suite/words.rs") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            let found = words.iter().filter(|word| contains(&line, word));
            problems.extend(found.map(|word| format!("{path}:{}: \"{word}\"", number + 1)));
        }
    }
    report(&problems);
}

#[test]
fn rejected_words_match_only_whole_words() {
    assert!(contains("it was told.", "told") && contains("is_told", "told"));
    assert!(!contains("the stolden", "told"));
}
