//! Comma-separated values with a line of names.

use std::path::Path;
use std::str::FromStr;

use crate::PlacementError;

/// A file's text.
pub(super) fn read(path: &Path) -> Result<String, PlacementError> {
    std::fs::read_to_string(path).map_err(|error| PlacementError::file(path, error))
}

/// Lines that are not empty, with their numbers from 1.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    lines.map(|(number, line)| (number + 1, line)).filter(|(_, line)| !line.trim().is_empty())
}

/// A number, or what is wrong with it.
pub(super) fn number<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("{name} is {text:?}, expected a number"))
}

/// A file, and where its columns of certain names are.
pub(super) struct Table<'a, const N: usize> {
    path: &'a Path,
    text: &'a str,
    names: [&'static str; N],
    columns: [usize; N],
    width: usize,
}

/// The fields of a line that were asked for.
pub(super) struct Row<'a, const N: usize> {
    pub(super) line: usize,
    names: [&'static str; N],
    fields: [&'a str; N],
}

impl<'a, const N: usize> Table<'a, N> {
    /// With these columns.
    pub(super) fn new(
        text: &'a str,
        path: &'a Path,
        names: [&'static str; N],
    ) -> Result<Self, PlacementError> {
        let (line, header) = numbered(text).next().unwrap_or((1, ""));
        let header: Vec<_> = header.split(',').map(str::trim).collect();
        let mut columns = [0; N];
        for (column, name) in columns.iter_mut().zip(names) {
            *column = header.iter().position(|other| *other == name).ok_or_else(|| {
                let reason = format!("there is no column {name}; expected {}", names.join(", "));
                PlacementError::line(path, line, reason)
            })?;
        }
        Ok(Self { path, text, names, columns, width: header.len() })
    }

    /// What `read` makes of each row.
    pub(super) fn rows<T>(
        &self,
        mut read: impl FnMut(Row<'a, N>) -> Result<T, String>,
    ) -> Result<Vec<T>, PlacementError> {
        let mut all = Vec::new();
        for (line, text) in numbered(self.text).skip(1) {
            let row = self.row(line, text).and_then(&mut read);
            all.push(row.map_err(|reason| PlacementError::line(self.path, line, reason))?);
        }
        Ok(all)
    }

    fn row(&self, line: usize, text: &'a str) -> Result<Row<'a, N>, String> {
        if text.contains('"') {
            return Err("quotation marks are not understood".to_owned());
        }
        let all: Vec<_> = text.split(',').collect();
        if all.len() != self.width {
            return Err(format!(
                "number of fields is {}, expected {}, as in the first line",
                all.len(),
                self.width
            ));
        }
        Ok(Row { line, names: self.names, fields: self.columns.map(|column| all[column].trim()) })
    }
}

impl<'a, const N: usize> Row<'a, N> {
    /// The text of a column, by its place among the names.
    pub(super) fn text(&self, column: usize) -> &'a str {
        self.fields[column]
    }

    /// A column's number.
    pub(super) fn number<T: FromStr>(&self, column: usize) -> Result<T, String> {
        number(self.names[column], self.fields[column])
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

    #[test]
    fn columns_are_found_by_name() {
        assert_eq!(sum("a,x,b\n1,?,2\r\n\n3, ?, 4\n").unwrap(), [3.0, 7.0]);
        assert!(sum("a,b\n").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let text = |text: &str| sum(text).unwrap_err();
        assert_eq!(text(""), "t.csv, line 1: there is no column b; expected b, a");
        assert_eq!(text("\nb,c\n"), "t.csv, line 2: there is no column a; expected b, a");
        assert_eq!(text("a,b\n1,2\n1,x\n"), "t.csv, line 3: b is \"x\", expected a number");
        assert_eq!(
            text("a,b\n1,2,3\n"),
            "t.csv, line 2: number of fields is 3, expected 2, as in the first line"
        );
        assert_eq!(text("a,b\n\"1\",2\n"), "t.csv, line 2: quotation marks are not understood");
    }
}
