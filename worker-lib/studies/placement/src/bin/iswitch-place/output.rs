//! Files of results.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;

use super::results::{GpuHours, Ratio, Summary, TimesSummary};
use super::runs::Runs;
use iswitch_cli::files::write;
use iswitch_cli::mean::Mean;

/// What is written besides what is printed.
#[derive(Args)]
pub(super) struct OutputArgs {
    /// Write the results as CSV, a line for each policy, failure rate and checkpoint rule.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write each job's arrival, first start, completion time, starts and failures as CSV, for each draw and policy.
    #[arg(long, value_name = "FILE")]
    per_job: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(super) json: bool,
    /// Show no progress.
    #[arg(long, short)]
    pub(super) quiet: bool,
}

impl OutputArgs {
    /// Writes the tables that were asked for.
    pub(super) fn write(&self, runs: &Runs, summaries: &[Summary]) -> anyhow::Result<()> {
        if let Some(path) = &self.csv {
            write(path, &csv(summaries))?;
        }
        if let Some(path) = &self.per_job {
            write(path, &runs.per_job)?;
        }
        Ok(())
    }
}

const CSV: &str = "rate_factor,checkpoint,policy,draws,jobs,makespan_s,makespan_ci95_s,makespan_ratio,\
    makespan_ratio_low,makespan_ratio_high,jct_s,jct_ci95_s,jct_p50_s,jct_p95_s,jct_p99_s,jct_ratio,jct_ratio_low,\
    jct_ratio_high,failures,hits,suspensions,useful_gpu_h,lost_gpu_h,overhead_gpu_h,held_gpu_h,failed_gpu_h,\
    idle_gpu_h,utilisation,unfinished\n";

fn csv(summaries: &[Summary]) -> String {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let mean = |mean: Option<Mean>| number(mean.map(|mean| mean.mean));
    let ratio = |it: Option<Ratio>| {
        let (low, high) = (it.and_then(|it| it.low), it.and_then(|it| it.high));
        format!("{},{},{}", number(it.map(|it| it.mean)), number(low), number(high))
    };
    let both = |it: Option<Mean>| format!("{},{}", mean(it), number(it.and_then(|it| it.ci95)));
    let mut text = CSV.to_owned();
    for it in summaries {
        let (factor, checkpoint) = (it.rate_factor, &it.checkpoint);
        let _ = write!(text, "{factor},{checkpoint},{},{},{}", it.policy, it.draws, it.jobs);
        let _ = write!(text, ",{},{}", both(Some(it.makespan)), ratio(it.makespan_ratio));
        let TimesSummary { mean: average, p50, p95, p99 } = it.jct;
        let _ = write!(text, ",{},{},{},{}", both(average), mean(p50), mean(p95), mean(p99));
        let _ = write!(text, ",{}", ratio(it.jct_ratio));
        let GpuHours { useful, lost, overhead, held, failed, idle } = it.gpu_hours;
        let rest = [it.failures, it.hits, it.suspensions, useful, lost, overhead, held, failed, idle];
        rest.iter().chain([&it.utilisation, &it.unfinished]).for_each(|it| {
            let _ = write!(text, ",{}", it.mean);
        });
        text.push('\n');
    }
    text
}
