//! Results pages: their tables, figures and programs.

/// Content of a results page that a reproduction uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// All tables, in the order of the page.
    pub(crate) tables: Vec<Table>,
    /// File names of all figures, in the order of the page.
    pub(crate) figures: Vec<String>,
    /// Python programs: the heading above each program, and its text.
    pub(crate) programs: Vec<(String, String)>,
}

/// Table of a results page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// Heading of the section that contains the table.
    pub(crate) section: String,
    /// Number of the table within its section, from 1.
    pub(crate) number: usize,
    /// Cells of the first line.
    pub(crate) header: Vec<String>,
    /// Cells of all lines below the header; as many in each line as in the header.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Page {
    /// Parses the Markdown text of a page.
    pub(crate) fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let (mut section, mut lines) = (String::new(), text.lines().peekable());
        while let Some(line) = lines.next() {
            let line = line.trim();
            if let Some(language) = line.strip_prefix("```") {
                let code: Vec<_> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
                if language == "python" {
                    page.programs.push((section.clone(), code.join("\n") + "\n"));
                }
            } else if line.starts_with('#') {
                line.trim_start_matches('#').trim().clone_into(&mut section);
            } else if line.starts_with('|') {
                let mut rows = vec![cells(line)];
                while let Some(row) = lines.next_if(|line| line.trim().starts_with('|')) {
                    rows.push(cells(row.trim()));
                }
                page.add_table(&section, rows);
            } else if let Some(path) = line.strip_prefix("![").and_then(|line| line.split_once("](")) {
                let path = path.1.trim_end_matches(')');
                page.figures.push(path.rsplit('/').next().unwrap_or(path).to_owned());
            }
        }
        page
    }

    fn add_table(&mut self, section: &str, mut rows: Vec<Vec<String>>) {
        // The second line separates the header from the rows.
        let body = rows.split_off(rows.len().min(2));
        let number = 1 + self.tables.iter().filter(|table| table.section == section).count();
        let header = rows.swap_remove(0);
        self.tables.push(Table { section: section.to_owned(), number, header, rows: body });
    }

    /// Returns a table by the heading above it and its number in that section.
    pub(crate) fn table(&self, section: &str, number: usize) -> Option<&Table> {
        self.tables.iter().find(|table| table.section == section && table.number == number)
    }

    /// Returns the first Python program below a heading.
    pub(crate) fn program(&self, section: &str) -> Option<&str> {
        self.programs.iter().find(|(heading, _)| heading == section).map(|(_, text)| text.as_str())
    }
}

/// Returns the cells of a line such as `| a | b |`.
fn cells(line: &str) -> Vec<String> {
    let inner = line.strip_prefix('|').unwrap_or(line);
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// Number in a table cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    /// Start and end of the number within the cell, in bytes, including its sign.
    pub(crate) begin: usize,
    pub(crate) end: usize,
    /// Number of digits after the decimal point.
    pub(crate) decimals: usize,
    /// Whether the number is written with a plus sign.
    pub(crate) has_plus: bool,
    pub(crate) value: f64,
}

/// Returns the numbers in a cell, from left to right. A hyphen after a digit, as in `0.97-0.98`, is not a sign, and
/// digits after a letter, as in `x100`, are not a number.
pub(crate) fn numbers(cell: &str) -> Vec<Number> {
    let bytes = cell.as_bytes();
    let is_word = |at: usize| bytes[at].is_ascii_alphanumeric() || bytes[at] == b'.';
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let begin = at;
        while at < bytes.len() && (bytes[at].is_ascii_digit() || is_decimal_point(bytes, at)) {
            at += 1;
        }
        if begin > 0 && is_word(begin - 1) {
            continue;
        }
        let has_sign =
            begin > 0 && matches!(bytes[begin - 1], b'-' | b'+') && (begin == 1 || !is_word(begin - 2));
        let text = &cell[begin - usize::from(has_sign)..at];
        if let Ok(value) = text.parse() {
            let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let has_plus = text.starts_with('+');
            found.push(Number { begin: begin - usize::from(has_sign), end: at, decimals, has_plus, value });
        }
    }
    found
}

fn is_decimal_point(bytes: &[u8], at: usize) -> bool {
    bytes[at] == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
}

/// Replaces `numbers`, the numbers of the cell, with `texts`, which contains one text for each of them.
pub(crate) fn replace(cell: &str, numbers: &[Number], texts: &[String]) -> String {
    let (mut text, mut end) = (String::new(), 0);
    for (number, new) in numbers.iter().zip(texts) {
        text += &cell[end..number.begin];
        text += new;
        end = number.end;
    }
    text + &cell[end..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(cell: &str) -> Vec<f64> {
        numbers(cell).iter().map(|number| number.value).collect()
    }

    #[test]
    fn numbers_are_found_with_their_signs_and_decimals() {
        assert_eq!(values("318.6 / 3.490"), [318.6, 3.49]);
        assert_eq!(values("0.974 (0.967-0.981)"), [0.974, 0.967, 0.981]);
        assert_eq!(values("1.230 +/- 161"), [1.23, 161.0]);
        assert_eq!(values("-25.2 %, +3"), [-25.2, 3.0]);
        assert_eq!(values("35.4 to 39.8 %"), [35.4, 39.8]);
        assert_eq!(values("x100, not measured, po2"), [0.0; 0]);
        assert_eq!(values("33.0 +/- 1.5 d."), [33.0, 1.5]);
        let found = numbers("+3 of 1.250");
        assert_eq!((found[0].has_plus, found[0].decimals, found[1].decimals), (true, 0, 3));
        assert_eq!(replace("+3 of 1.250", &found, &["+4".to_owned(), "2.5".to_owned()]), "+4 of 2.5");
    }

    #[test]
    fn tables_figures_and_programs_belong_to_their_sections() {
        let text = "# Top\n\n| a | b |\n|---|---|\n| c | 1 |\n\n## Next\n```sh\n# no heading\n| no | table |\n```\n\
                    ![title](figures/x.svg)\n\n   | d |\n   |---|\n\n| e |\n|---|\n| 2 |\n```python\nprint(1)\n```\n";
        let page = Page::parse(text);
        let names: Vec<_> = page.tables.iter().map(|it| (it.section.as_str(), it.number)).collect();
        assert_eq!(names, [("Top", 1), ("Next", 1), ("Next", 2)]);
        assert_eq!(page.table("Top", 1).unwrap().rows, [["c", "1"]]);
        assert_eq!(page.figures, ["x.svg"]);
        assert_eq!(page.program("Next"), Some("print(1)\n"));
        assert_eq!(page.program("Top"), None);
    }
}
