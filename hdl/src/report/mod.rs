//! What a build takes of the device, and how fast it may become: synthesis by yosys and an estimate of its timing.

pub mod cells;
mod names;
pub mod netlist;
pub mod resources;
pub mod synthesis;
pub mod text;
pub mod timing;

use clap::ValueEnum as _;
use serde::Serialize;

use crate::accelerator::Build;
use crate::simulation::CYCLE_PS;
use resources::{LutUse, PAPER, Resources};
use synthesis::Synthesis;
use timing::{Timing, TimingError, analyse};

/// One cycle.
pub const BUDGET_NS: f64 = CYCLE_PS as f64 / 1000.0;
/// Factor on all net delays of the second estimate: layouts differ.
pub const SLOW_NETS: f64 = 1.3;
/// What the estimate is not.
pub const CAVEAT: &str = "The timing is an estimate before layout: delays of cells and of nets by fan-out, taken from \
    the routed report of the reference switch on the same part. It is not closed timing; Vivado never saw it.";

/// The figures of a build.
#[derive(Clone, Debug, Serialize)]
pub struct BuildReport {
    /// `slots128` or `slots256`.
    pub build: String,
    /// What it takes.
    pub resources: Resources,
    /// Where its LUTs are.
    pub luts: LutUse,
    /// The estimate.
    pub timing: Timing,
    /// The same with all net delays times [`SLOW_NETS`], without paths.
    pub slow_timing: Timing,
}

/// The figures of a synthesised build. `paths` is how many paths to show.
pub fn measure(build: Build, synthesis: &Synthesis, paths: usize) -> Result<BuildReport, TimingError> {
    let Synthesis { netlist, counts } = synthesis;
    Ok(BuildReport {
        build: name(build),
        resources: Resources::of(counts),
        luts: LutUse::of(counts),
        timing: analyse(netlist, 1.0, BUDGET_NS, paths)?,
        slow_timing: analyse(netlist, SLOW_NETS, BUDGET_NS, 0)?,
    })
}

/// A build as the command line names it.
pub fn name(build: Build) -> String {
    build.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A figure that is above its limit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{build}: {figure} is {value}, expected at most {limit}")]
pub struct Excess {
    /// Of which build.
    pub build: String,
    /// Its name and unit.
    pub figure: &'static str,
    /// What it is.
    pub value: f64,
    /// What it may be.
    pub limit: f64,
}

/// All figures above their limits: the paper's resources for the build of 128 slots, [`BUDGET_NS`] for any.
pub fn excesses(report: &BuildReport) -> Vec<Excess> {
    let mut figures = vec![("the critical path in ns", report.timing.worst_ns, BUDGET_NS)];
    if report.build == name(Build::Slots128) {
        let limits = PAPER.named().into_iter();
        figures.extend(
            report
                .resources
                .named()
                .into_iter()
                .zip(limits)
                .map(|((figure, value), (_, limit))| (figure, value, limit)),
        );
    }
    let above = figures.into_iter().filter(|(_, value, limit)| value > limit);
    above.map(|(figure, value, limit)| Excess { build: report.build.clone(), figure, value, limit }).collect()
}
