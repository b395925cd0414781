//! Output files of the results.

use std::path::PathBuf;

use clap::Args;

use super::gantt::SPANS_MAX;
use super::plots;
use super::results::Summary;
use super::runs::{Lists, Run, Runs};
use iswitch_cli::files::make_directory;
use iswitch_study::contest::{ResultArgs, Series};
use iswitch_study::files::write;
use iswitch_study::table::{OrEmpty, Output};

/// Default number of ingress ports in a Gantt chart, equal to the default number of egress ports.
const GANTT_PORTS: u64 = 12;

/// Output files in addition to the printed results.
#[derive(Args)]
pub(super) struct OutputArgs {
    /// CSV file with one line for each job, draw and policy
    ///
    /// Each line contains the job's arrival, isolated time, completion time and deadline.
    #[arg(long, value_name = "FILE")]
    per_job: Option<PathBuf>,
    /// CSV file with one line for each coflow, draw and policy
    ///
    /// Each line contains the coflow's size and completion time.
    #[arg(long, value_name = "FILE")]
    per_coflow: Option<PathBuf>,
    /// Directory in which to write figures
    ///
    /// cdf-cct.svg and cdf-jct.svg show the distributions of the completion times of coflows and of jobs over all
    /// draws. gantt-POLICY.svg shows how the jobs of the first draw share the rate of the busiest ports over time.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Maximum number of ports per direction in gantt-POLICY.svg
    ///
    /// The chart shows the ingress ports and the egress ports that carry the most bytes.
    #[arg(
        long, value_name = "N", requires = "plots", default_value_t = GANTT_PORTS,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    gantt_ports: u64,
    #[command(flatten)]
    pub(super) results: ResultArgs,
}

impl OutputArgs {
    /// Returns the number of ingress ports to record, which is also the number of egress ports to record. Returns
    /// `None` if no figures are written.
    pub(super) fn recorded_ports(&self) -> Option<usize> {
        self.plots.as_ref().map(|_| usize::try_from(self.gantt_ports).unwrap_or(usize::MAX))
    }

    /// Writes all requested files.
    pub(super) fn write(&self, runs: Runs, summaries: &[Summary]) -> anyhow::Result<()> {
        let Runs { policies, lists: Lists { per_job, per_coflow } } = runs;
        self.results.write(|| csv(summaries))?;
        let files = [(&self.per_job, per_job.into_text()), (&self.per_coflow, per_coflow.into_text())];
        for (path, text) in files {
            if let Some(path) = path {
                write(path, &text)?;
            }
        }
        let Some(directory) = &self.plots else { return Ok(()) };
        make_directory(directory)?;
        for (name, title, of) in plots::CDFS {
            write(&directory.join(name), &plots::cdf(title, &policies, of))?;
        }
        let mut too_many = Vec::new();
        for Series { policy, mut runs, .. } in policies {
            let Some(Run { jobs, gantt: Some(recorder), .. }) = runs.drain(..).next() else { continue };
            // Some file systems do not allow a colon in a file name.
            let path = directory.join(format!("gantt-{}.svg", policy.replace(':', "-")));
            match recorder.draw(&policy, jobs) {
                Some(svg) => write(&path, &svg)?,
                None => too_many.push(policy),
            }
        }
        if !too_many.is_empty() {
            eprintln!(
                "cannot draw a Gantt chart for {}: it would have more than {SPANS_MAX} bars; reduce --jobs or \
                 --gantt-ports",
                too_many.join(", ")
            );
        }
        Ok(())
    }
}

fn csv(summaries: &[Summary]) -> Output {
    let times =
        |name: &str| format!("{name}_s,{name}_ci95_s,{name}_p50_s,{name}_p95_s,{name}_p99_s,{name}_max_s");
    let mut table = Output::new(&format!(
        "policy,draws,jobs,{},{},makespan_s,deadlines_met,bound_isolated_s,bound_port_s,bound_relaxation_s,jct_ratio,\
         jct_ratio_ci95",
        times("cct"),
        times("jct")
    ));
    for it in summaries {
        let (cct, jct) = (&it.cct, &it.jct);
        table.row(&[
            &it.policy,
            &it.draws,
            &it.jobs,
            &cct.mean.mean,
            &OrEmpty(cct.mean.ci95),
            &cct.p50.mean,
            &cct.p95.mean,
            &cct.p99.mean,
            &cct.max.mean,
            &jct.mean.mean,
            &OrEmpty(jct.mean.ci95),
            &jct.p50.mean,
            &jct.p95.mean,
            &jct.p99.mean,
            &jct.max.mean,
            &it.makespan.mean,
            &OrEmpty(it.deadlines_met.map(|met| met.mean)),
            &it.bound_isolated.mean,
            &it.bound_port.mean,
            &it.bound_relaxation.mean,
            &OrEmpty(it.jct_ratio.map(|ratio| ratio.mean)),
            &OrEmpty(it.jct_ratio.and_then(|ratio| ratio.ci95)),
        ]);
    }
    table
}
