//! Markdown tables.

/// Markdown table that is written row by row.
#[derive(Clone, Debug)]
pub struct Markdown {
    columns: usize,
    text: String,
}

impl Markdown {
    /// Creates a table with the heading of each column.
    pub fn new<C: AsRef<str>>(heads: impl IntoIterator<Item = C>) -> Self {
        let mut table = Self { columns: 0, text: String::new() };
        table.columns = table.push(heads);
        table.text += "|";
        table.text += &"---|".repeat(table.columns);
        table.text += "\n";
        table
    }

    /// Adds a row.
    ///
    /// # Panics
    /// Panics if the row does not have one cell for each column.
    pub fn row<C: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells = self.push(cells);
        assert_eq!(cells, self.columns, "cells of a row in a table of {} columns", self.columns);
    }

    fn push<C: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = C>) -> usize {
        let mut count = 0;
        self.text += "|";
        for cell in cells {
            let cell = cell.as_ref();
            if !cell.is_empty() {
                self.text += " ";
                self.text += cell;
            }
            self.text += " |";
            count += 1;
        }
        self.text += "\n";
        count
    }

    /// Returns the whole table. Each row ends with a line feed.
    pub fn text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_one_line() {
        let mut table = Markdown::new(["", "ms"]);
        table.row(["nginx", "3"]);
        table.row([String::new(), "4".to_owned()]);
        assert_eq!(table.text(), "| | ms |\n|---|---|\n| nginx | 3 |\n| | 4 |\n");
    }

    #[test]
    #[should_panic(expected = "cells of a row in a table of 2 columns")]
    fn a_row_must_have_all_columns() {
        Markdown::new(["", "ms"]).row(["nginx"]);
    }
}
