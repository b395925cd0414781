//! Readers of files that describe clusters, jobs and failures. The project contains no real traces; callers supply the
//! paths of their own copies. Columns are identified by their names in the first line, in any order, and other columns
//! are ignored.

mod alibaba;
mod format;
mod infinitehbd;
mod own;
mod philly;
mod pollux;
mod tiresias;
mod titan;

pub use alibaba::{SharedGpus, read_alibaba_nodes, read_alibaba_pods};
pub use format::{JobsFormat, read_nodes};
pub use infinitehbd::read_infinitehbd;
pub use own::{read_cluster, read_jobs, read_outages, read_rates};
pub use philly::{Throughputs, read_gavel, read_philly};
pub use pollux::read_pollux;
pub use tiresias::read_tiresias;
pub use titan::read_titan;

use super::Job;

/// Jobs read from a file, and counts of the rows that were excluded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jobs {
    /// Jobs, sorted by arrival.
    pub jobs: Vec<Job>,
    /// Reasons why rows were excluded, each with the number of rows to which it applies.
    pub left_out: Vec<(usize, &'static str)>,
}
