//! CSV files: the traces and tables that a study reads, and the results that it writes.
//!
//! Fields may be enclosed in quotation marks. A quoted field may contain separators, and quotation marks if they are
//! doubled. Lines end with LF or CRLF. A byte-order mark at the start of a file, empty lines, and spaces around
//! fields are ignored.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

pub use csv::StringRecord;
use csv::{ReaderBuilder, Writer};

use crate::StudyError;

/// Reads a text file.
///
/// # Errors
/// Fails if the file cannot be read or is not UTF-8.
pub fn read(path: &Path) -> Result<String, StudyError> {
    let text = std::fs::read_to_string(path).map_err(|error| StudyError::file(path, error))?;
    Ok(without_mark(&text).to_owned())
}

/// Returns the text without its byte-order mark, if it has one.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns the lines that are not empty, each with its line number, counted from 1.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = without_mark(text).lines().enumerate();
    lines.map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.trim().is_empty())
}

/// Parses a field as a number.
///
/// # Errors
/// Returns an error message that contains `name` if the field is not a number.
pub fn number<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("{name} is {text:?}, expected a number"))
}

/// Reader of the records in a CSV text.
pub struct Records<'a> {
    text: &'a str,
    reader: csv::Reader<&'a [u8]>,
    record: StringRecord,
}

impl<'a> Records<'a> {
    /// Creates a reader for a text with comma-separated fields.
    pub fn new(text: &'a str) -> Self {
        Self::separated_by(b',', text)
    }

    /// Creates a reader for a text with fields separated by `separator`.
    pub fn separated_by(separator: u8, text: &'a str) -> Self {
        let text = without_mark(text);
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(separator);
        Self { text, reader: builder.from_reader(text.as_bytes()), record: StringRecord::new() }
    }

    /// Returns the next record that is not empty, with the number of its first line, or `None` at the end of the text.
    /// Spaces around fields are removed. Errors contain the line number.
    ///
    /// # Errors
    /// Fails if a quotation mark is not closed.
    pub fn advance(&mut self) -> Result<Option<(usize, &StringRecord)>, (usize, String)> {
        loop {
            let begin = self.reader.position().clone();
            let is_read = self.reader.read_record(&mut self.record);
            let text = &self.text[begin.byte() as usize..self.reader.position().byte() as usize];
            // The CSV reader skips the rest of the previous line end, and empty lines, as part of the next record.
            let content = text.trim_start_matches(['\r', '\n']);
            let skipped = text[..text.len() - content.len()].matches('\n').count();
            let line = begin.line() as usize + skipped;
            match is_read {
                Err(error) => return Err((line, error.to_string())),
                Ok(false) => return Ok(None),
                // Quotation marks inside a field are doubled, so an odd number means that one is not closed.
                Ok(true) if content.matches('"').count() % 2 == 1 => {
                    let reason = "a quotation mark is not closed; double a quotation mark inside a field";
                    return Err((line, reason.to_owned()));
                }
                Ok(true) => {}
            }
            if !content.trim().is_empty() {
                self.record.trim();
                return Ok(Some((line, &self.record)));
            }
        }
    }

    /// Calls `read` with each remaining record and its line number.
    ///
    /// # Errors
    /// Returns the first error in the text or from `read`, with `path` and the line number.
    pub fn for_each(
        mut self,
        path: &Path,
        mut read: impl FnMut(usize, &StringRecord) -> Result<(), String>,
    ) -> Result<(), StudyError> {
        let fail = |(line, reason): (usize, String)| StudyError::line(path, line, reason);
        while let Some((line, record)) = self.advance().map_err(fail)? {
            read(line, record).map_err(|reason| fail((line, reason)))?;
        }
        Ok(())
    }
}

/// Returns the column names of a table, which form its first record, and their line number.
///
/// # Errors
/// Fails if a quotation mark is not closed.
pub fn header(text: &str, path: &Path) -> Result<(usize, Vec<String>), StudyError> {
    let mut records = Records::new(text);
    let first = records.advance().map_err(|(line, reason)| StudyError::line(path, line, reason))?;
    Ok(first.map_or((1, Vec::new()), |(line, record)| (line, record.iter().map(str::to_owned).collect())))
}

/// Table whose first record contains the names of the columns, and a selection of columns to read. The selected columns
/// may be in any order in the file; all other columns are ignored.
pub struct Table<'a, const N: usize> {
    path: &'a Path,
    records: Records<'a>,
    names: [&'static str; N],
    columns: [usize; N],
    width: usize,
}

/// Record of a table. Only the columns that were passed to [`Table::new`] are accessible.
pub struct Row<'a, const N: usize> {
    /// Number of the line on which the record starts, counted from 1.
    pub line: usize,
    names: [&'static str; N],
    fields: [&'a str; N],
}

impl<'a, const N: usize> Table<'a, N> {
    /// Creates a table from which the columns `names` are read.
    ///
    /// # Errors
    /// Fails if a column is missing.
    pub fn new(text: &'a str, path: &'a Path, names: [&'static str; N]) -> Result<Self, StudyError> {
        let (line, header) = header(text, path)?;
        let mut columns = [0; N];
        for (column, name) in columns.iter_mut().zip(names) {
            *column = header.iter().position(|other| *other == name).ok_or_else(|| {
                let reason = format!("there is no column {name}; expected {}", names.join(", "));
                StudyError::line(path, line, reason)
            })?;
        }
        Ok(Self { path, records: Records::new(text), names, columns, width: header.len() })
    }

    /// Calls `read` for each row, and returns the results.
    ///
    /// # Errors
    /// Returns the first error, with the path of the file and the line number.
    pub fn rows<T>(
        self,
        mut read: impl FnMut(Row<'_, N>) -> Result<T, String>,
    ) -> Result<Vec<T>, StudyError> {
        let Self { path, records, names, columns, width } = self;
        let (mut all, mut is_header) = (Vec::new(), true);
        records.for_each(path, |line, record| {
            if std::mem::take(&mut is_header) {
                return Ok(());
            }
            if record.len() != width {
                let actual = record.len();
                return Err(format!("number of fields is {actual}, expected {width}, as in the first line"));
            }
            all.push(read(Row { line, names, fields: columns.map(|column| &record[column]) })?);
            Ok(())
        })?;
        Ok(all)
    }
}

impl<const N: usize> Row<'_, N> {
    /// Returns the text in a column. `column` is the index of its name in the list of columns to read.
    pub fn text(&self, column: usize) -> &str {
        self.fields[column]
    }

    /// Parses the number in a column. `column` is the index of its name in the list of columns to read.
    ///
    /// # Errors
    /// Returns an error message if the field is not a number.
    pub fn number<T: FromStr>(&self, column: usize) -> Result<T, String> {
        number(self.names[column], self.fields[column])
    }
}

/// Table to be written.
pub struct Output(Writer<Vec<u8>>);

/// Field that is left empty if the value is `None`.
pub struct OrEmpty<T>(pub Option<T>);

impl<T: Display> Display for OrEmpty<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |value| value.fmt(f))
    }
}

impl Output {
    /// Creates a table whose first line is `columns`, the names of the columns separated by commas.
    pub fn new(columns: &str) -> Self {
        let mut table = Self::without_columns();
        table.0.write_record(columns.split(',')).expect("writing to memory succeeds");
        table
    }

    /// Creates a table without column names.
    pub fn without_columns() -> Self {
        Self(csv::WriterBuilder::new().flexible(true).from_writer(Vec::new()))
    }

    /// Appends a row. A field that contains a comma, a quotation mark or a line end is quoted.
    pub fn row(&mut self, fields: &[&dyn Display]) {
        self.0.write_record(fields.iter().map(ToString::to_string)).expect("writing to memory succeeds");
    }

    /// Returns the table as text.
    ///
    /// # Panics
    /// Never panics, because all fields are UTF-8.
    pub fn into_text(self) -> String {
        let bytes = self.0.into_inner().expect("writing to memory succeeds");
        String::from_utf8(bytes).expect("all fields are UTF-8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(text: &str) -> Result<Vec<f64>, String> {
        let path = Path::new("t.csv");
        let table = Table::new(text, path, ["b", "a"]).map_err(|error| error.to_string())?;
        let rows = table.rows(|row| Ok(row.number::<f64>(0)? + row.number::<f64>(1)?));
        rows.map_err(|error| error.to_string())
    }

    fn texts(text: &str) -> Vec<(usize, Vec<String>)> {
        let mut all = Vec::new();
        let read = |line, record: &StringRecord| {
            all.push((line, record.iter().map(str::to_owned).collect()));
            Ok(())
        };
        Records::new(text).for_each(Path::new("t.csv"), read).unwrap();
        all
    }

    #[test]
    fn columns_are_found_by_name() {
        assert_eq!(sum("a,x,b\n1,?,2\r\n\n3, ?, 4\n").unwrap(), [3.0, 7.0]);
        assert_eq!(sum("\u{feff}\"a\",b\r\n\"1\",2\r\n").unwrap(), [3.0]);
        assert!(sum("a,b\n").unwrap().is_empty());
    }

    #[test]
    fn quoted_fields_may_contain_separators_quotes_and_line_ends() {
        let text = "a,b\n\"x, y\",\"say \"\"no\"\"\"\n\"two\nlines\",3\r\n\r\n   \n\"\", last \n";
        let fields = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        let want = [
            (1, fields("a", "b")),
            (2, fields("x, y", "say \"no\"")),
            (3, fields("two\nlines", "3")),
            (7, fields("", "last")),
        ];
        assert_eq!(texts(text), want);
        assert_eq!(texts(&format!("\u{feff}{text}")), want);
        // The text has no final line end, and its lines end with CRLF.
        assert_eq!(texts("a,b\r\n\r\n1,2"), [(1, fields("a", "b")), (3, fields("1", "2"))]);
    }

    #[test]
    fn table_errors_name_the_line_and_the_column() {
        let text = |text: &str| sum(text).unwrap_err();
        assert_eq!(text(""), "t.csv, line 1: there is no column b; expected b, a");
        assert_eq!(text("\nb,c\n"), "t.csv, line 2: there is no column a; expected b, a");
        assert_eq!(text("a,b\n1,2\n1,x\n"), "t.csv, line 3: b is \"x\", expected a number");
        assert_eq!(
            text("a,b\n\"1\n1\",2\n\n1,\"y, z\"\n"),
            "t.csv, line 2: a is \"1\\n1\", expected a number"
        );
        assert_eq!(text("a,b\r\n1,2\r\n\r\n1,\"y,z\"\r\n"), "t.csv, line 4: b is \"y,z\", expected a number");
        assert_eq!(
            text("a,b\n1,2,3\n"),
            "t.csv, line 2: number of fields is 3, expected 2, as in the first line"
        );
        let open = "a quotation mark is not closed; double a quotation mark inside a field";
        assert_eq!(text("a,b\n1,2\n\"1,2\n3,4\n"), format!("t.csv, line 3: {open}"));
        assert_eq!(text("a,b\n1,5\"\n"), format!("t.csv, line 2: {open}"));
        assert_eq!(text("a,\"b\n1,2\n"), format!("t.csv, line 1: {open}"));
    }

    #[test]
    fn a_written_table_is_read_back_unchanged() {
        let mut table = Output::new("name,value");
        table.row(&[&"a, \"b\"", &1]);
        table.row(&[&"plain", &OrEmpty(None::<f64>)]);
        table.row(&[&"number", &OrEmpty(Some(0.5))]);
        let text = table.into_text();
        assert_eq!(text, "name,value\n\"a, \"\"b\"\"\",1\nplain,\nnumber,0.5\n");
        assert_eq!(texts(&text)[1].1, ["a, \"b\"", "1"]);
    }
}
