//! Command-line code shared by `iswitch` and the programs of its subcommands: options of runs and of aggregation,
//! launching of workers, and display of progress and results.

pub mod algorithm;
pub mod asynchronous;
pub mod config_file;
pub mod eval;
pub mod evaluation;
pub mod files;
pub mod group;
pub mod hyper;
pub mod launch;
pub mod learner;
pub mod line_server;
pub mod mean;
pub mod number;
pub mod outcome;
pub mod program;
pub mod progress;
pub mod run;
pub mod session;
pub mod signals;
pub mod subcommand;
pub mod switch;
pub mod tracking;
pub mod train;
