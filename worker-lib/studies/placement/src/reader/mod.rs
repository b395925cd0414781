//! Files of clusters, jobs and failures. Nothing of real traces is in this project: paths are the caller's. Columns are
//! found by their names in the first line, in any order; others are not looked at.

mod alibaba;
mod format;
mod own;
mod philly;
mod pollux;
mod tiresias;
mod titan;

pub use alibaba::{SharedGpus, read_alibaba_nodes, read_alibaba_pods};
pub use format::{JobsFormat, read_nodes};
pub use own::{read_cluster, read_jobs, read_outages, read_rates};
pub use philly::{Throughputs, read_gavel, read_philly};
pub use pollux::read_pollux;
pub use tiresias::read_tiresias;
pub use titan::read_titan;

use super::Job;

/// Jobs of a file, by arrival, and rows that are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jobs {
    /// By arrival.
    pub jobs: Vec<Job>,
    /// Rows that were left out: how many, and why.
    pub left_out: Vec<(usize, &'static str)>,
}
