//! Arguments that select the jobs and the fabric.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};
use iswitch_coflow::deepweave::episodes::Task;
use iswitch_coflow::generate::{JobSource, set_deadlines, synthetic_shape, synthetic_trace};
use iswitch_coflow::simulation::{Fabric, Rates};
use iswitch_coflow::trace::{Arrival, CoflowTrace, JobFile, Shape, read_shapes};
use iswitch_coflow::workload::Job;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::files::write;

const PORTS: u64 = 20;
const JOBS: u64 = 200;
/// Maximum number of jobs. All jobs of a draw are held in memory, and a wide coflow has a flow for each pair of an
/// ingress and an egress port.
const JOBS_MAX: u64 = 100_000;
const SYNTHETIC_PORTS_MAX: u64 = 512;
const INTERARRIVAL_S: f64 = 20.0;
const DRAWS: u64 = 20;
/// 1 Gbit/s, in bytes per second.
const GBIT: f64 = 125e6;
/// Number of coflows in a synthetic trace, as in the FB2010 benchmark. The numbers of shapes and nodes below are those
/// of TPC-H.
const SYNTHETIC_COFLOWS: usize = 526;
const SYNTHETIC_SHAPES: usize = 22;
const SYNTHETIC_NODES: (usize, usize) = (2, 18);
/// Numbers of the random streams. Each draw has two streams, for jobs and for deadlines; all draws share the stream of
/// the synthetic trace and shapes.
const JOBS_STREAM: usize = 0;
const DEADLINES_STREAM: usize = 1;
const SYNTHETIC_STREAM: usize = 2;

/// Coflows and shapes from which jobs are drawn, and the fabric.
#[derive(Args, Clone, Debug)]
pub(super) struct SourceArgs {
    /// Trace of coflows, in the format of the coflow benchmark (FB2010)
    ///
    /// Without this option, coflows are drawn from a synthetic trace.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// File of job shapes
    ///
    /// The file is either a text file with a line `NODES EDGES A B A B ...` for each shape, where each pair A B means
    /// that node A precedes node B, or a CSV file of tasks from Alibaba's cluster-trace-v2018. Each job has a randomly
    /// chosen shape with a random coflow at each node. Without this option, each job is a single coflow if --trace is
    /// given, and has a synthetic shape otherwise.
    #[arg(long, value_name = "FILE")]
    dags: Option<PathBuf>,
    /// Number of ingress ports, equal to the number of egress ports [default: 20]
    ///
    /// With --trace, the file determines the number.
    #[arg(
        long, value_name = "M", conflicts_with = "trace",
        value_parser = clap::value_parser!(u64).range(1..=SYNTHETIC_PORTS_MAX)
    )]
    ports: Option<u64>,
    /// Capacity of each port, in Gbit/s
    #[arg(long, value_name = "GBIT", default_value_t = 1.0, allow_negative_numbers = true)]
    capacity: f64,
    /// Model of the rates of flows
    #[arg(long, value_enum, value_name = "MODEL", default_value_t = RatesName::Backfill)]
    rates: RatesName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RatesName {
    /// Per-flow rates: each flow gets all capacity that is free at both of its ports
    Backfill,
    /// Per-coflow rates: a coflow waits if any of its ports is busy
    Blocking,
}

impl From<RatesName> for Rates {
    fn from(name: RatesName) -> Self {
        match name {
            RatesName::Backfill => Self::Backfill,
            RatesName::Blocking => Self::Blocking,
        }
    }
}

/// Jobs, their arrivals and deadlines, and the fabric.
#[derive(Args, Clone, Debug)]
pub(super) struct WorkloadArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// JSON file of jobs with their coflows, dependencies and arrivals
    ///
    /// For example: {"ports": 4, "jobs": [{"arrival_s": 0, "coflows": [{"flows": [[0, 1, 1e9], [2, 1, 5e8]]},
    /// {"collective": {"kind": "ring-all-reduce", "hosts": [0, 1, 2], "bytes": 1e8}, "starts_after": [0]}]}]}. Each
    /// flow is given as [ingress port, egress port, bytes]. Other kinds of collectives are tree-all-reduce and
    /// all-to-all.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trace", "dags", "ports", "jobs", "interarrival"])]
    job_file: Option<PathBuf>,
    /// Write the jobs of the first draw to a file for --job-file
    #[arg(long, value_name = "FILE")]
    export_jobs: Option<PathBuf>,
    /// Number of jobs to draw
    ///
    /// The default is 200. With --trace but neither --dags nor --jobs, no jobs are drawn: each coflow in the file is a
    /// separate job and arrives at the time given in the file.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=JOBS_MAX))]
    jobs: Option<u64>,
    /// Mean time between arrivals, in seconds; 0 for a batch
    ///
    /// Arrivals are a Poisson process; in a batch, all jobs arrive at once. The default is 20 s. With --trace but
    /// neither --dags nor --jobs, coflows arrive at the times given in the file, and the only accepted value is 0.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    interarrival: Option<f64>,
    /// Number of independent draws of jobs
    ///
    /// Each policy runs once on each draw. The default is 20, or 1 with --trace but neither --dags nor --jobs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    draws: Option<u64>,
    /// Number of the first draw; the number of a draw is its seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    draw: u64,
    /// Give each job a deadline with a relative slack of up to SLACK
    ///
    /// The deadline of a job is its isolated time multiplied by 1 + U(0, SLACK), where U is a uniform random number.
    /// The results include the share of deadlines met. No policy takes deadlines into account.
    #[arg(long, value_name = "SLACK", allow_negative_numbers = true)]
    deadlines: Option<f64>,
}

impl SourceArgs {
    /// Returns the source of jobs and the fabric.
    pub(super) fn task(&self) -> anyhow::Result<Task> {
        let (trace, fabric) = self.coflows()?;
        Ok(Task { source: self.jobs(trace)?, fabric })
    }

    fn coflows(&self) -> anyhow::Result<(CoflowTrace, Fabric)> {
        let trace = if let Some(path) = &self.trace { CoflowTrace::read(path)? } else { self.synthetic()? };
        let fabric = self.fabric(trace.ports)?;
        Ok((trace, fabric))
    }

    fn fabric(&self, ports: usize) -> anyhow::Result<Fabric> {
        if !(1e-3..=1e6).contains(&self.capacity) {
            bail!("capacity is {}, expected 0.001 to 1000000 Gbit/s", self.capacity);
        }
        Ok(Fabric { ports, capacity: self.capacity * GBIT, rates: self.rates.into() })
    }

    fn synthetic(&self) -> anyhow::Result<CoflowTrace> {
        let ports = usize::try_from(self.ports.unwrap_or(PORTS))?;
        let mut rng = stream(0, Purpose::Arrivals, SYNTHETIC_STREAM);
        Ok(synthetic_trace(ports, SYNTHETIC_COFLOWS, 1.0, &mut rng)?)
    }

    fn jobs(&self, trace: CoflowTrace) -> anyhow::Result<JobSource> {
        let shapes = match &self.dags {
            Some(path) => read_shapes(path)?,
            None if self.trace.is_some() => vec![Shape { nodes: 1, edges: Vec::new() }],
            None => synthetic_shapes(),
        };
        let coflows = trace.arrivals.into_iter().map(|arrival| arrival.coflow).collect();
        Ok(JobSource::new(shapes, coflows)?)
    }
}

/// Source of the jobs of a draw.
#[derive(Clone, Debug)]
enum Source {
    /// Jobs that are the same in each draw, and a description of them.
    Fixed(Vec<Job>, &'static str),
    /// Jobs that are drawn at random for each draw.
    Drawn { source: JobSource, count: usize, interarrival: f64 },
}

/// Jobs of all draws, and the fabric.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    fabric: Fabric,
    source: Source,
    deadlines: Option<f64>,
    draws: std::ops::Range<u64>,
}

impl WorkloadArgs {
    /// Reads or generates the coflows and shapes from which jobs are drawn.
    pub(super) fn load(&self) -> anyhow::Result<Workload> {
        if let Some(slack) = self.deadlines.filter(|slack| !(slack.is_finite() && *slack >= 0.0)) {
            bail!("deadlines is {slack}, expected a number of at least 0");
        }
        if let Some(seconds) = self.interarrival.filter(|it| !(it.is_finite() && *it >= 0.0)) {
            bail!("interarrival is {seconds}, expected a number of seconds of at least 0");
        }
        let (source, fabric) = self.jobs_and_fabric()?;
        let draws = match source {
            Source::Fixed(..) => self.draws.unwrap_or(1),
            Source::Drawn { .. } => self.draws.unwrap_or(DRAWS),
        };
        if draws > 1 && matches!(source, Source::Fixed(..)) && self.deadlines.is_none() {
            bail!(
                "draws is {draws}, expected 1, because a trace or a file of jobs has the same jobs in each draw; \
                 use --trace with --jobs to draw jobs at random"
            );
        }
        let Some(end) = self.draw.checked_add(draws) else {
            bail!("draw is {}, expected at most {}", self.draw, u64::MAX - draws)
        };
        let workload = Workload { fabric, source, deadlines: self.deadlines, draws: self.draw..end };
        if let Some(path) = &self.export_jobs {
            let file = JobFile { ports: fabric.ports, jobs: workload.jobs(self.draw)? };
            write(path, &file.to_text())?;
        }
        Ok(workload)
    }

    fn jobs_and_fabric(&self) -> anyhow::Result<(Source, Fabric)> {
        if let Some(path) = &self.job_file {
            let JobFile { ports, jobs } = JobFile::read(path)?;
            return Ok((Source::Fixed(jobs, "jobs from a file"), self.source.fabric(ports)?));
        }
        let (trace, fabric) = self.source.coflows()?;
        let source = if self.is_trace_alone() { self.jobs_of(trace)? } else { self.drawn(trace)? };
        Ok((source, fabric))
    }

    fn is_trace_alone(&self) -> bool {
        self.source.trace.is_some() && self.source.dags.is_none() && self.jobs.is_none()
    }

    /// Returns the jobs in a trace, each of which is a single coflow.
    fn jobs_of(&self, trace: CoflowTrace) -> anyhow::Result<Source> {
        let is_batch = match self.interarrival {
            None => false,
            Some(0.0) => true,
            Some(seconds) => bail!(
                "interarrival is {seconds}, expected 0, because the trace contains the arrival times; \
                 add --jobs to draw jobs at random"
            ),
        };
        let job = |Arrival { time, coflow }| Job::single(if is_batch { 0.0 } else { time }, coflow);
        let jobs = trace.arrivals.into_iter().map(job).collect::<Result<Vec<_>, _>>()?;
        if jobs.is_empty() {
            bail!("the trace has no coflows, expected at least 1");
        }
        Ok(Source::Fixed(jobs, "coflows from a trace"))
    }

    fn drawn(&self, trace: CoflowTrace) -> anyhow::Result<Source> {
        Ok(Source::Drawn {
            source: self.source.jobs(trace)?,
            count: usize::try_from(self.jobs.unwrap_or(JOBS))?,
            interarrival: self.interarrival.unwrap_or(INTERARRIVAL_S),
        })
    }
}

fn synthetic_shapes() -> Vec<Shape> {
    let mut rng = stream(1, Purpose::Arrivals, SYNTHETIC_STREAM);
    let (least, most) = SYNTHETIC_NODES;
    (0..SYNTHETIC_SHAPES).map(|at| synthetic_shape(least + at % (most - least + 1), 2, &mut rng)).collect()
}

impl Workload {
    /// Returns the fabric.
    pub(super) fn fabric(&self) -> Fabric {
        self.fabric
    }

    /// Returns the numbers of all draws.
    pub(super) fn draws(&self) -> std::ops::Range<u64> {
        self.draws.clone()
    }

    /// Returns the jobs of a draw, sorted by arrival.
    pub(super) fn jobs(&self, draw: u64) -> anyhow::Result<Vec<Job>> {
        let mut jobs = match &self.source {
            Source::Fixed(jobs, _) => jobs.clone(),
            Source::Drawn { source, count, interarrival } => {
                source.draw(*count, *interarrival, &mut stream(draw, Purpose::Arrivals, JOBS_STREAM))
            }
        };
        if let Some(slack) = self.deadlines {
            let mut rng = stream(draw, Purpose::Arrivals, DEADLINES_STREAM);
            set_deadlines(&mut jobs, self.fabric, slack, &mut rng)?;
        }
        Ok(jobs)
    }

    /// Describes the draws as text.
    pub(super) fn describe(&self) -> String {
        let Fabric { ports, capacity, rates } = self.fabric;
        let jobs = match &self.source {
            Source::Fixed(jobs, what) => format!("{} {what}", jobs.len()),
            Source::Drawn { source, count, interarrival } => {
                let when = if *interarrival > 0.0 {
                    format!("arriving every {interarrival} s on average")
                } else {
                    "all arriving at once".to_owned()
                };
                format!("{count} jobs of {} shape(s), {when}", source.shapes().len())
            }
        };
        format!(
            "{jobs}; {ports} ports of {} Gbit/s; rates: {rates}; {} draw(s)",
            capacity / GBIT,
            self.draws.clone().count()
        )
    }
}
