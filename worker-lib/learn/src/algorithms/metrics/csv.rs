//! Training curves as a CSV file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use iswitch_storage::RealDisk;

/// A CSV file with the `step` column and one column for each tag. When `write` returns, the row has been passed to
/// the operating system.
#[derive(Debug)]
pub struct CsvWriter {
    path: PathBuf,
    file: File,
}

impl CsvWriter {
    /// Creates the file; see [`super::MetricsWriter::create`]. If the file exists but has different columns, it is
    /// replaced by a file without rows. A crash during this call loses none of the rows that are to be kept.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written.
    pub fn create(path: &Path, tags: &[&str], resume_step: Option<u64>) -> io::Result<Self> {
        let header = format!("step,{}", tags.join(","));
        let old = match resume_step {
            Some(_) if path.exists() => std::fs::read_to_string(path)?,
            _ => String::new(),
        };
        let kept = |row: &&str| {
            let step = row.split(',').next().and_then(|step| step.parse::<u64>().ok());
            step.is_some_and(|step| Some(step) <= resume_step)
        };
        let mut rows = old.lines();
        let mut text = header.clone() + "\n";
        if rows.next() == Some(&header) {
            rows.filter(kept).for_each(|row| text.extend([row, "\n"]));
        }
        iswitch_storage::replace(&RealDisk, path, text.as_bytes())?;
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a row; an absent value leaves its cell empty.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&mut self, step: u64, values: &[Option<f64>]) -> io::Result<()> {
        let cells: Vec<String> =
            values.iter().map(|value| value.map_or(String::new(), |x| x.to_string())).collect();
        self.file.write_all(format!("{step},{}\n", cells.join(",")).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_run_drops_rows_that_it_will_rewrite() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("progress.csv");
        let tags = ["a", "b"];
        let mut csv = CsvWriter::create(&path, &tags, None).unwrap();
        for step in 1..=3 {
            csv.write(step, &[Some(0.5), None]).unwrap();
        }
        CsvWriter::create(&path, &tags, Some(2)).unwrap().write(3, &[Some(1e-4), Some(2.0)]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "step,a,b\n1,0.5,\n2,0.5,\n3,0.0001,2\n");
        CsvWriter::create(&path, &tags, None).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "step,a,b\n");
    }
}
