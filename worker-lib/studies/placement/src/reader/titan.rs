//! Reader of the life histories of Titan's GPUs (Ostrouchov et al., SC 2020).

use std::collections::BTreeMap;
use std::path::Path;

use crate::failure::YEAR;
use crate::rates::{Batch, GpuLife};
use iswitch_study::StudyError;
use iswitch_study::table::{Row, Table, read};

/// First year of the new batch: GPUs installed from this year on belong to it.
const NEW_BATCH: &str = "2016";

/// Reads `gc_full.csv`. It has one line for each stay of a GPU at a location and one line for each failure that did not
/// end a stay. The line of a stay names the failure that ended it: `DBE` (a double-bit error), `OTB` (off the bus), or
/// nothing. The cage of a life history is the cage of the GPU's longest stay.
///
/// # Errors
/// Fails if the file cannot be read, a line is invalid (the error then names the line), or a GPU has failures but no
/// stay.
pub fn read_titan(path: &Path) -> Result<Vec<GpuLife>, StudyError> {
    let text = read(path)?;
    let mut lives: BTreeMap<String, Life> = BTreeMap::new();
    Table::new(&text, path, ["SN", "location", "insert", "duration", "event"])?
        .rows(|row| lives.entry(row.text(0).to_owned()).or_default().add(&row))?;
    let fail = |serial: &str| {
        StudyError::file(path, format!("GPU {serial} has failures, but no line with an insert time"))
    };
    lives.into_iter().map(|(serial, life)| life.finish().ok_or_else(|| fail(&serial))).collect()
}

#[derive(Default)]
struct Life {
    events: u32,
    seconds: f64,
    longest: f64,
    cage: usize,
    /// Time at which the GPU was first inserted.
    inserted: Option<String>,
}

impl Life {
    fn add(&mut self, row: &Row<'_, 5>) -> Result<(), String> {
        let cage = cage(row.text(1))?;
        match row.text(4) {
            "" => {}
            "DBE" | "OTB" => self.events += 1,
            other => return Err(format!("event is {other:?}, expected DBE, OTB or an empty field")),
        }
        let insert = row.text(2);
        // A line without an insert time is a failure that did not end a stay.
        if insert.is_empty() {
            return Ok(());
        }
        if !insert.get(..4).is_some_and(|year| year.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(format!("insert is {insert:?}, expected YYYY-MM-DD hh:mm:ss"));
        }
        let seconds: f64 = row.number(3)?;
        if !(seconds >= 0.0 && seconds.is_finite()) {
            return Err(format!("duration is {seconds}, expected a number of seconds >= 0"));
        }
        self.seconds += seconds;
        if seconds >= self.longest {
            (self.longest, self.cage) = (seconds, cage);
        }
        if self.inserted.as_deref().is_none_or(|first| insert < first) {
            self.inserted = Some(insert.to_owned());
        }
        Ok(())
    }

    fn finish(self) -> Option<GpuLife> {
        let batch = if self.inserted?.as_str() < NEW_BATCH { Batch::Old } else { Batch::New };
        Some(GpuLife { events: self.events, years: self.seconds / YEAR, cage: self.cage, batch })
    }
}

/// Returns the cage of a location such as `c3-0c2s1n0`: cabinet 3-0, cage 2.
fn cage(location: &str) -> Result<usize, String> {
    let cage = location.rsplit_once('c').and_then(|(_, rest)| rest.split_once('s')).map(|(cage, _)| cage);
    let cage = cage.and_then(|cage| cage.parse().ok()).filter(|cage| *cage < 3);
    cage.ok_or_else(|| format!("location is {location:?}, expected cX-YcCsSnN with cage C from 0 to 2"))
}
