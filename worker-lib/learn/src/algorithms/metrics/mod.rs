//! Training curves, as TensorBoard event files and as CSV in the run directory.

mod csv;
mod tensorboard;

use std::path::Path;

pub use csv::CsvWriter;
pub use tensorboard::EventWriter;

use super::TrainError;

/// Writer of training curves: named values, one row per step, in `progress.csv` and in a TensorBoard event file.
#[derive(Debug)]
pub struct MetricsWriter {
    csv: CsvWriter,
    events: EventWriter,
    tags: Vec<&'static str>,
}

impl MetricsWriter {
    /// Creates the files in `directory`, which must exist. `resume_step` is the step from which a resumed run
    /// continues: the CSV file keeps its rows up to and including this step and drops later rows, which the resumed run
    /// will write again. Without `resume_step`, the CSV file starts empty.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
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

    /// Writes the settings of the run, given as name-value pairs, to the event file, as a table with the tag
    /// `hyperparameters`, as in CleanRL.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write_hyper_parameters(&mut self, settings: &[(String, String)]) -> Result<(), TrainError> {
        let rows = settings.iter().map(|(name, value)| format!("|{name}|{}|", value.replace('|', "\\|")));
        let table = ["|param|value|".to_owned(), "|-|-|".to_owned()].into_iter().chain(rows);
        let text = table.collect::<Vec<_>>().join("\n");
        self.events
            .write_text("hyperparameters", &text)
            .map_err(|error| TrainError::File { path: self.events.path().to_owned(), error })
    }

    /// Writes one row. `values` must be in the order of the tags; values that are `None` are omitted.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn write(&mut self, step: u64, values: &[Option<f64>]) -> Result<(), TrainError> {
        let fail = |path: &Path, error| TrainError::File { path: path.to_owned(), error };
        self.csv.write(step, values).map_err(|error| fail(self.csv.path(), error))?;
        let scalars = self.tags.iter().zip(values).filter_map(|(tag, value)| Some((*tag, (*value)? as f32)));
        self.events
            .write_scalars(step, &scalars.collect::<Vec<_>>())
            .map_err(|error| fail(self.events.path(), error))
    }
}
