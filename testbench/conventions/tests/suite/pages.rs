//! Links between pages, and the book that mdBook builds from `docs/`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use iswitch_conventions::{report, root, sources};

/// Page that lists the chapters of the book.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Returns the lines of a page outside fenced blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the targets of the links of a page.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

/// Returns the anchor of a heading, as GitHub and mdBook derive it: lower-case words, joined by hyphens.
fn anchor(heading: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    heading.trim().to_lowercase().chars().filter(is_kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the anchors of the headings of a page. A number distinguishes headings with the same text.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter_map(|line| {
        let rest = line.trim_start_matches('#');
        rest.strip_prefix(' ').filter(|_| line.starts_with('#'))
    });
    let numbered = headings.map(|heading| {
        let anchor = anchor(heading);
        let count = counts.entry(anchor.clone()).or_default();
        *count += 1;
        if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
    });
    numbered.collect()
}

/// Resolves `.` and `..` in a path.
fn normalized(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, component| {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
        path
    })
}

#[test]
fn links_between_pages_have_existing_targets() {
    let pages: BTreeMap<_, _> = sources(".md").into_iter().collect();
    let anchors: BTreeMap<_, _> = pages.iter().map(|(page, text)| (Path::new(page), anchors(text))).collect();
    let mut problems = Vec::new();
    for (page, text) in &pages {
        for target in links(text).filter(|target| !target.contains("://")) {
            let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
            let directory = Path::new(page).parent().expect("a page must be in a directory");
            let path = if path.is_empty() { page.into() } else { normalized(&directory.join(path)) };
            let lacks_anchor =
                |anchors: &BTreeSet<String>| !fragment.is_empty() && !anchors.contains(fragment);
            if !root().join(&path).exists() {
                problems.push(format!("{page}: the link target {target} does not exist"));
            } else if anchors.get(&*path).is_some_and(lacks_anchor) {
                problems.push(format!("{page}: {} has no heading #{fragment}", path.display()));
            }
        }
    }
    report(&problems);
}

#[test]
fn links_are_found_in_text() {
    let text = "[a](b.md), `[x]` and [c](../d/e.md#f); f(x)";
    assert!(links(text).eq(["b.md", "../d/e.md#f"]));
}

#[test]
fn anchors_are_derived_from_headings() {
    let text = "# Keys: `keygen`\n```sh\n# no heading\n```\n## A-2 (new)\n#tag\n## A-2 (new)\n";
    assert_eq!(anchors(text), ["a-2-new", "a-2-new-1", "keys-keygen"].map(str::to_owned).into());
}

#[test]
fn the_book_has_one_chapter_for_each_page() {
    let summary = std::fs::read_to_string(root().join(SUMMARY)).expect("the summary must be readable");
    let chapters: Vec<_> = links(&summary).map(|target| format!("docs/{target}")).collect();
    // mdBook also writes the first chapter to the top-level index, where links of a deeper page would be broken.
    assert_eq!(chapters.first().map(String::as_str), Some("docs/README.md"), "first chapter of {SUMMARY}");
    let pages = sources(".md").into_iter().map(|(page, _)| page);
    let pages: Vec<_> = pages.filter(|page| page.starts_with("docs/") && page != SUMMARY).collect();
    let count = |page: &String| chapters.iter().filter(|chapter| *chapter == page).count();
    let problems = pages.iter().filter(|page| count(page) != 1);
    report(
        &problems
            .map(|page| format!("{SUMMARY}: {} chapters {page}, expected 1", count(page)))
            .collect::<Vec<_>>(),
    );
}

/// Returns whether a line contains an HTML tag outside code.
fn has_html(line: &str) -> bool {
    let text: String = line.split('`').step_by(2).collect();
    let mut tags = text.split('<').skip(1).filter(|rest| !rest.starts_with("http"));
    tags.any(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!')))
}

#[test]
fn pages_of_the_book_contain_no_html() {
    let pages = sources(".md").into_iter().filter(|(page, _)| page.starts_with("docs/"));
    let problems = pages.flat_map(|(page, text)| {
        let lines = prose(&text).filter(|line| has_html(line));
        lines
            .map(|line| format!("{page}: HTML in {line:?}; write Markdown or a code span"))
            .collect::<Vec<_>>()
    });
    report(&problems.collect::<Vec<_>>());
    assert!(has_html("an option <name> vanishes") && !has_html("`<name>`, 1 < 2 and <https://a.b>"));
}

/// Runs the preprocessor of the book on a chapter `guide/a.md` with the given text; returns the text that it writes.
/// Returns `None` if Python is not installed.
///
/// # Panics
/// Panics if the preprocessor fails, or if Python is missing and all tests are required.
fn preprocessed(text: &str) -> Option<String> {
    let mut command = Command::new("python3");
    command.arg(root().join("docs/outside_links.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut process) = command.spawn() else {
        let line = "SKIPPED links out of the book: python3 is not installed\n";
        assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
        // The line is written directly, because the test harness captures the output of the print macros.
        std::io::stderr().write_all(line.as_bytes()).expect("standard error must be writable");
        return None;
    };
    let chapter = serde_json::json!({ "content": text, "source_path": "guide/a.md", "sub_items": [] });
    let book = serde_json::json!({ "items": ["Separator", { "Chapter": chapter }] });
    let html = serde_json::json!({ "git-repository-url": "https://a.b" });
    let context = serde_json::json!({ "config": { "output": { "html": html } } });
    let mut input = process.stdin.take().expect("standard input is a pipe");
    write!(input, "{}", serde_json::json!([context, book])).expect("the preprocessor must read its input");
    drop(input);
    let output = process.wait_with_output().expect("the preprocessor must end");
    assert!(output.status.success());
    let book: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the output must be JSON");
    book["items"][1]["Chapter"]["content"].as_str().map(str::to_owned)
}

#[test]
fn links_out_of_the_book_lead_to_the_repository() {
    let text = "[a](b.md#c) [d](../e.md) [f](#g) [h](https://i.j) [k](../../l/m.md#n) [o](../../p)";
    let expected = "[a](b.md#c) [d](../e.md) [f](#g) [h](https://i.j) [k](https://a.b/blob/main/l/m.md#n) \
                    [o](https://a.b/blob/main/p)";
    if let Some(text) = preprocessed(text) {
        assert_eq!(text, expected);
    }
}
