//! Resource use and achievable speed of a build, from synthesis by yosys and a timing estimate.

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

/// Timing budget: one clock cycle, in nanoseconds.
pub const BUDGET_NS: f64 = CYCLE_PS as f64 / 1000.0;
/// Factor by which the pessimistic timing estimate multiplies all net delays, as a margin for worse placement and
/// routing.
pub const SLOW_NETS: f64 = 1.3;
/// Limitations of the timing estimate, as printed with each report.
pub const CAVEAT: &str = "The timing is an estimate before place and route. It uses cell delays, and net delays by \
    fan-out, from the post-route timing report of the reference switch on the same part. Timing closure with Vivado \
    has not been attempted.";

/// Resource use and timing of a build.
#[derive(Clone, Debug, Serialize)]
pub struct BuildReport {
    /// Name of the build: `slots128` or `slots256`.
    pub build: String,
    /// Resource use.
    pub resources: Resources,
    /// Number of LUTs by purpose.
    pub luts: LutUse,
    /// Timing estimate.
    pub timing: Timing,
    /// Timing estimate with all net delays multiplied by [`SLOW_NETS`]. Its list of paths is empty.
    pub slow_timing: Timing,
}

/// Computes the resource use and timing of a synthesised build. The report lists at most `paths` of the worst paths.
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

/// Returns the name that selects a build on the command line.
pub fn name(build: Build) -> String {
    build.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A figure that exceeds its limit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{build}: {figure} is {value}, expected at most {limit}")]
pub struct Excess {
    /// Name of the build.
    pub build: String,
    /// Name of the figure, with its unit in brackets if it has one.
    pub figure: &'static str,
    /// Value of the figure.
    pub value: f64,
    /// Limit of the figure.
    pub limit: f64,
}

/// Returns all figures that exceed their limits. The limit on the critical path of every build is [`BUDGET_NS`]; the
/// limit on the resources of the build with 128 slots is [`PAPER`].
pub fn excesses(report: &BuildReport) -> Vec<Excess> {
    let mut figures = vec![("critical path (ns)", report.timing.worst_ns, BUDGET_NS)];
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
