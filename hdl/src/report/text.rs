//! Formatting of a report as text.

use std::fmt::Write as _;

use super::resources::{DEVICE, PAPER};
use super::timing::Path;
use super::{BUDGET_NS, BuildReport, CAVEAT, SLOW_NETS};

/// Formats the resource table, the timing estimate and the worst paths of a build.
pub fn render(report: &BuildReport) -> String {
    let mut text = format!("{}\n", report.build);
    resources(&mut text, report);
    timing(&mut text, report);
    text
}

/// Returns notes on the paper's figures and on the limitations of the timing estimate.
pub fn notes() -> String {
    format!(
        "The paper's accelerator adds to the reference switch 18.6 % of that switch's LUTs, 17.3 % of its FFs and \
         44.5 % of its BRAMs, as well as 17 DSPs. We assume that the percentages are relative to the switch, not \
         to the device.\n{CAVEAT}\n"
    )
}

fn resources(text: &mut String, report: &BuildReport) {
    let _ =
        writeln!(text, "{:10}{:>9}{:>21}{:>22}", "", "this build", "paper's accelerator", "of an xc7vx690t");
    let columns = report.resources.named().into_iter().zip(PAPER.named()).zip(DEVICE.named());
    for (((figure, value), (_, paper)), (_, device)) in columns {
        let _ = writeln!(
            text,
            "{figure:10}{:>9}{:>12} {:>6.1} %{:>13} {:>6.2} %",
            thousands(value),
            thousands(paper),
            100.0 * value / paper,
            thousands(device),
            100.0 * value / device
        );
    }
    let luts = report.luts;
    let _ = writeln!(
        text,
        "LUT: {} logic ({} cells), {} memory, {} shift registers",
        thousands(luts.logic.into()),
        thousands(luts.cells.into()),
        thousands(luts.memory.into()),
        thousands(luts.shift.into())
    );
}

fn timing(text: &mut String, report: &BuildReport) {
    for (what, timing) in [("", &report.timing), (" with slow nets", &report.slow_timing)] {
        let _ = writeln!(
            text,
            "critical path{what}: {:.2} ns ({:.0} MHz); {} of {} endpoints above {BUDGET_NS} ns",
            timing.worst_ns,
            1000.0 / timing.worst_ns,
            thousands(timing.over_budget as f64),
            thousands(timing.endpoints as f64)
        );
    }
    let _ = writeln!(text, "(slow nets: all net delays are multiplied by {SLOW_NETS})");
    report.timing.paths.iter().for_each(|path| line(text, path));
}

fn line(text: &mut String, path: &Path) {
    let _ =
        write!(text, "  {:.2} ns, {:>2} levels: {} -> {}", path.delay_ns, path.levels, path.from, path.to);
    if path.over_budget > 1 {
        let _ = write!(text, " ({} similar paths above {BUDGET_NS} ns)", path.over_budget);
    }
    let fan_outs: Vec<_> = path.fan_outs.iter().map(usize::to_string).collect();
    let _ = writeln!(text, "\n      nets with {} pins", fan_outs.join(", "));
    if !path.through.is_empty() {
        let _ = writeln!(text, "      through {}", path.through.join(", "));
    }
}

/// Formats a multiple of 0.5 with a comma between groups of three digits.
fn thousands(value: f64) -> String {
    let digits = format!("{}", value.trunc());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value.fract() != 0.0 {
        text.push_str(".5");
    }
    text
}
