//! Training curves: TensorBoard event files and CSV, side by side in the run directory.

mod csv;
mod tensorboard;

use std::path::Path;

pub use csv::CsvWriter;
pub use tensorboard::EventWriter;

use super::TrainError;

/// Writes named numbers over steps to `progress.csv` and a TensorBoard event file.
#[derive(Debug)]
pub struct MetricsWriter {
    csv: CsvWriter,
    events: EventWriter,
    tags: Vec<&'static str>,
}

impl MetricsWriter {
    /// In `directory`, which exists. `resume_step` is the step a resumed run goes on from: rows of the CSV file
    /// up to it are kept, later ones, which the run is about to produce again, are dropped. Without it the CSV
    /// file starts anew.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn create(
        directory: &Path,
        tags: &[&'static str],
        resume_step: Option<u64>,
    ) -> Result<Self, TrainError> {
        let path = directory.join("progress.csv");
        let csv =
            CsvWriter::create(&path, tags, resume_step).map_err(|error| TrainError::File { path, error })?;
        let events = EventWriter::create(directory)
            .map_err(|error| TrainError::File { path: directory.to_owned(), error })?;
        Ok(Self { csv, events, tags: tags.to_vec() })
    }

    /// Writes one row, in the order of the tags; numbers that do not exist at this step are left out.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&mut self, step: u64, values: &[Option<f64>]) -> Result<(), TrainError> {
        let fail = |path: &Path, error| TrainError::File { path: path.to_owned(), error };
        self.csv.write(step, values).map_err(|error| fail(self.csv.path(), error))?;
        let scalars = self.tags.iter().zip(values).filter_map(|(tag, value)| Some((*tag, (*value)? as f32)));
        self.events
            .write_scalars(step, &scalars.collect::<Vec<_>>())
            .map_err(|error| fail(self.events.path(), error))
    }
}
