//! Result files.

use std::path::PathBuf;

use clap::Args;

use super::results::{Ratio, Summary};
use super::runs::Runs;
use iswitch_cli::mean::Mean;
use iswitch_study::contest::ResultArgs;
use iswitch_study::files::write;
use iswitch_study::table::{OrEmpty, Output};

/// Options for result files.
#[derive(Args)]
pub(super) struct OutputArgs {
    /// CSV file for the results of each job
    ///
    /// For each draw and policy, the file has each job's arrival, first start, completion time, starts and failures.
    #[arg(long, value_name = "FILE")]
    per_job: Option<PathBuf>,
    #[command(flatten)]
    pub(super) results: ResultArgs,
}

impl OutputArgs {
    /// Writes each table for which a file was given.
    pub(super) fn write(&self, runs: Runs, summaries: &[Summary]) -> anyhow::Result<()> {
        self.results.write(|| csv(summaries))?;
        if let Some(path) = &self.per_job {
            write(path, &runs.per_job.into_text())?;
        }
        Ok(())
    }
}

const CSV: &str = "rate_factor,checkpoint,policy,draws,jobs,makespan_s,makespan_ci95_s,makespan_ratio,\
    makespan_ratio_low,makespan_ratio_high,jct_s,jct_ci95_s,jct_p50_s,jct_p95_s,jct_p99_s,jct_ratio,jct_ratio_low,\
    jct_ratio_high,failures,hits,suspensions,useful_gpu_h,lost_gpu_h,overhead_gpu_h,held_gpu_h,failed_gpu_h,\
    idle_gpu_h,utilisation,ettr,unfinished";

fn csv(summaries: &[Summary]) -> Output {
    let mean = |mean: Option<Mean>| OrEmpty(mean.map(|mean| mean.mean));
    let ci95 = |mean: Option<Mean>| OrEmpty(mean.and_then(|mean| mean.ci95));
    let ratio = |it: Option<Ratio>| {
        [it.map(|it| it.mean), it.and_then(|it| it.low), it.and_then(|it| it.high)].map(OrEmpty)
    };
    let mut table = Output::new(CSV);
    for it in summaries {
        let (jct, hours) = (&it.jct, &it.gpu_hours);
        let [makespan_ratio, makespan_low, makespan_high] = ratio(it.makespan_ratio);
        let [jct_ratio, jct_low, jct_high] = ratio(it.jct_ratio);
        table.row(&[
            &it.rate_factor,
            &it.checkpoint,
            &it.policy,
            &it.draws,
            &it.jobs,
            &it.makespan.mean,
            &OrEmpty(it.makespan.ci95),
            &makespan_ratio,
            &makespan_low,
            &makespan_high,
            &mean(jct.mean),
            &ci95(jct.mean),
            &mean(jct.p50),
            &mean(jct.p95),
            &mean(jct.p99),
            &jct_ratio,
            &jct_low,
            &jct_high,
            &it.failures.mean,
            &it.hits.mean,
            &it.suspensions.mean,
            &hours.useful.mean,
            &hours.lost.mean,
            &hours.overhead.mean,
            &hours.held.mean,
            &hours.failed.mean,
            &hours.idle.mean,
            &it.utilisation.mean,
            &mean(it.ettr),
            &it.unfinished.mean,
        ]);
    }
    table
}
