//! Common framework of the scheduling studies: packet routing, coflow scheduling and job placement.
//!
//! A study implements [`Study`]: its hyper-parameters, its iteration, and the tensors of its checkpoint. The framework
//! trains the policy with one or more workers, saves and resumes training runs, keeps the best policy, and provides the
//! commands `train` and `compare`.
//!
//! | module | content |
//! |---|---|
//! | [`study`] | trait of a study, with its hyper-parameters, records and iterations |
//! | [`training`] | training run of one worker |
//! | [`saved`] | checkpoints of training runs |
//! | [`weights`] | parameters with their optimiser, and exact sums over workers |
//! | [`table`] | reading and writing of CSV files |
//! | [`names`] | names of the values of an enumeration |
//! | [`files`] | atomic replacement of files |
//! | [`train`] | the `train` command |
//! | [`contest`] | policies on the command line, and their comparison on the same draws |
//! | [`external`] | policies that run as separate programs |
//! | [`environment`] | simulators that stop at each decision, for agents outside the project |

pub mod contest;
pub mod environment;
pub mod error;
pub mod external;
pub mod files;
pub mod names;
pub mod saved;
pub mod study;
pub mod table;
#[cfg(feature = "testing")]
pub mod testing;
pub mod train;
pub mod training;
pub mod weights;

pub use error::StudyError;
pub use saved::Saved;
pub use study::{Common, Hyperparameters, Mark, OnStage, Record, Stage, Step, Study};
pub use training::Training;
pub use weights::{Totals, Weights};
