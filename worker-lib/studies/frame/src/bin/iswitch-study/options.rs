//! Options of `iswitch study reproduce`.

use std::path::PathBuf;

use clap::Args;

use crate::recipe::Data;

/// Options for all pages.
#[derive(Args)]
pub(crate) struct CommonArgs {
    /// Directory for the results of the commands, the figures and the report
    ///
    /// The default is runs/reproduce-STUDY or, with --quick, runs/reproduce-STUDY-quick.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run only this step, and the steps whose files it uses; repeatable
    #[arg(long, value_name = "STEP")]
    pub(crate) only: Vec<String>,
    /// Also run the steps that take hours
    #[arg(long)]
    pub(crate) long: bool,
    /// Run small versions of all steps, which take only seconds
    ///
    /// The numbers are not comparable with those on the page. Steps that normally take hours are included.
    #[arg(long, conflicts_with = "long")]
    pub(crate) quick: bool,
    /// List the steps with their state, duration and commands, without running them
    #[arg(long, conflicts_with = "force")]
    pub(crate) list: bool,
    /// Discard the results of the selected steps, and run these steps again
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Arguments of `iswitch study reproduce routing`.
#[derive(Args)]
pub(crate) struct RoutingArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Arguments of `iswitch study reproduce coflow`.
#[derive(Args)]
pub(crate) struct CoflowArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Coflow benchmark file (FB2010-1Hr-150-0.txt)
    #[arg(long, value_name = "FILE", env = "ISWITCH_COFLOW_TRACE")]
    fb2010: Option<PathBuf>,
    /// File with the shapes of the TPC-H queries
    #[arg(long, value_name = "FILE", env = "ISWITCH_TPCH_SHAPES")]
    tpch: Option<PathBuf>,
    /// Task file of Alibaba's cluster-trace-v2018
    #[arg(long, value_name = "FILE", env = "ISWITCH_ALIBABA_TASKS")]
    alibaba: Option<PathBuf>,
}

/// Arguments of `iswitch study reproduce placement`.
#[derive(Args)]
pub(crate) struct PlacementArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// File with Philly's job durations (philly_job_distribution.csv)
    #[arg(long, value_name = "FILE", env = "ISWITCH_PHILLY_JOBS")]
    philly: Option<PathBuf>,
    /// File with the failure histories of Titan's GPUs (gc_full.csv)
    #[arg(long, value_name = "FILE", env = "ISWITCH_TITAN_LIFE")]
    titan: Option<PathBuf>,
    /// File with InfiniteHBD's node faults (fault_trace.json)
    #[arg(long, value_name = "FILE", env = "ISWITCH_INFINITEHBD_FAULTS")]
    infinitehbd: Option<PathBuf>,
}

impl CoflowArgs {
    pub(crate) fn data(&self) -> Data {
        let Self { fb2010, tpch, alibaba, .. } = self;
        [("FB2010", fb2010.clone()), ("TPCH", tpch.clone()), ("ALIBABA", alibaba.clone())].into()
    }
}

impl PlacementArgs {
    pub(crate) fn data(&self) -> Data {
        let Self { philly, titan, infinitehbd, .. } = self;
        [("PHILLY", philly.clone()), ("TITAN", titan.clone()), ("INFINITEHBD", infinitehbd.clone())].into()
    }
}
