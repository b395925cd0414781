//! Arguments that select the jobs and the fabric.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};
use iswitch_coflow::deepweave::episodes::Task;
use iswitch_coflow::generate::set_deadlines;
use iswitch_coflow::inputs::{FabricInput, GBIT, Inputs, JobDraws, PORTS, SYNTHETIC_PORTS_MAX};
use iswitch_coflow::simulation::{Fabric, Rates};
use iswitch_coflow::trace::{CoflowTrace, JobFile};
use iswitch_coflow::workload::{Job, PORTS_MAX};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::files::write;

const CAPACITY_GBIT: f64 = 1.0;
const JOBS: u64 = 200;
/// Maximum number of jobs. All jobs of a draw are held in memory, and a wide coflow has a flow for each pair of an
/// ingress and an egress port.
const JOBS_MAX: u64 = 100_000;
const INTERARRIVAL_S: f64 = 20.0;
const DRAWS: u64 = 20;
/// Number of the random stream for a draw's deadlines, which is separate from the stream for its jobs.
const DEADLINES_STREAM: usize = 1;

/// Coflows and shapes from which jobs are drawn, and the fabric.
#[derive(Args, Clone, Debug)]
pub(super) struct SourceArgs {
    /// Trace of coflows, in the format of the coflow benchmark (FB2010)
    ///
    /// Without this option, coflows are drawn from a synthetic trace.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// File with job shapes
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
        value_parser = clap::value_parser!(u64).range(1..=SYNTHETIC_PORTS_MAX as u64)
    )]
    ports: Option<u64>,
    /// Capacity of each port, in Gbit/s [default: 1]
    #[arg(long, value_name = "GBIT", allow_negative_numbers = true)]
    capacity: Option<f64>,
    /// Model of the rates of flows [default: backfill]
    #[arg(long, value_enum, value_name = "MODEL")]
    rates: Option<RatesName>,
    /// TOML file of the fabric: unequal ports, and racks with oversubscribed links
    ///
    /// For example, a file with the lines `ports = 8`, `gbit = 10`, `[[rack]]`, `ports = [0, 1, 2, 3]` and
    /// `oversubscription = 2`. docs/coflow.md describes all keys. A port whose rate the file does not specify has the
    /// rate of --capacity. Synthetic coflows use the number of ports in the fabric file; if coflows are read from a
    /// file, that file must have the same number of ports.
    #[arg(long, value_name = "FILE", conflicts_with = "ports")]
    fabric: Option<PathBuf>,
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
        let inputs = self.inputs(None)?;
        let (trace, fabric) = inputs.coflows()?;
        Ok(Task { source: inputs.jobs(trace)?, fabric })
    }

    /// Returns the inputs. `trained` is the fabric of a training run. It determines the fabric and the model of rates
    /// if no option specifies them.
    fn inputs(&self, trained: Option<Fabric>) -> anyhow::Result<Inputs> {
        let rates = trained.as_ref().map_or(Rates::default(), |fabric| fabric.rates);
        let is_stated = self.ports.is_some() || self.capacity.is_some();
        let trained = trained.filter(|_| !is_stated).map_or(FabricInput::Equal, FabricInput::Trained);
        Ok(Inputs {
            trace: self.trace.clone(),
            dags: self.dags.clone(),
            ports: self.ports.map_or(Ok(PORTS), usize::try_from)?,
            capacity_gbit: self.capacity.unwrap_or(CAPACITY_GBIT),
            rates: self.rates.map_or(rates, Rates::from),
            fabric: self.fabric.clone().map_or(trained, FabricInput::File),
        })
    }
}

/// Fabric without jobs.
#[derive(Args, Clone, Debug)]
pub(super) struct FabricArgs {
    /// Number of ingress ports, equal to the number of egress ports
    #[arg(
        long, value_name = "M", default_value_t = PORTS as u64,
        value_parser = clap::value_parser!(u64).range(1..=PORTS_MAX as u64)
    )]
    ports: u64,
    /// Capacity of each port, in Gbit/s
    #[arg(long, value_name = "GBIT", default_value_t = CAPACITY_GBIT, allow_negative_numbers = true)]
    capacity: f64,
    /// Model of the rates of flows
    #[arg(long, value_enum, value_name = "MODEL", default_value_t = RatesName::Backfill)]
    rates: RatesName,
    /// TOML file of the fabric: unequal ports, and racks with oversubscribed links
    ///
    /// docs/coflow.md describes the keys. A port whose rate the file does not specify has the rate of --capacity.
    #[arg(long, value_name = "FILE", conflicts_with = "ports")]
    fabric: Option<PathBuf>,
}

impl FabricArgs {
    /// Returns the fabric.
    pub(super) fn load(&self) -> anyhow::Result<Fabric> {
        let fabric = self.fabric.clone().map_or(FabricInput::Equal, FabricInput::File);
        let (capacity_gbit, rates) = (self.capacity, self.rates.into());
        let inputs = Inputs { capacity_gbit, rates, fabric, ..Inputs::default() };
        Ok(inputs.any_fabric(usize::try_from(self.ports)?)?)
    }
}

/// Describes the ports and links of a fabric as text.
pub(super) fn describe(fabric: &Fabric) -> String {
    // The rates equal those of the file up to rounding errors, which must not appear in the text.
    let gbit = |resource| (fabric.relative(resource) * fabric.capacity / GBIT * 1e6).round() / 1e6;
    let Some(network) = &fabric.network else {
        return format!("{} ports of {} Gbit/s", fabric.ports, fabric.capacity / GBIT);
    };
    let of_ports = || (0..2 * fabric.ports).map(gbit);
    let (least, most) = (of_ports().fold(f64::INFINITY, f64::min), of_ports().fold(0.0, f64::max));
    let rates = if least == most { least.to_string() } else { format!("{least} to {most}") };
    format!("{} ports of {rates} Gbit/s, {} oversubscribed link(s)", fabric.ports, network.links())
}

/// Jobs of all draws, and the fabric.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    fabric: Fabric,
    source: JobDraws,
    deadlines: Option<f64>,
    draws: std::ops::Range<u64>,
}

impl WorkloadArgs {
    /// Reads or generates the coflows and shapes from which jobs are drawn.
    pub(super) fn load(&self) -> anyhow::Result<Workload> {
        self.load_on(None)
    }

    /// Like [`Self::load`], except that `trained`, the fabric of a training run, determines the fabric and the model
    /// of rates if no option specifies them.
    pub(super) fn load_on(&self, trained: Option<Fabric>) -> anyhow::Result<Workload> {
        if let Some(slack) = self.deadlines.filter(|slack| !(slack.is_finite() && *slack >= 0.0)) {
            bail!("--deadlines is {slack}, expected a number >= 0");
        }
        if let Some(seconds) = self.interarrival.filter(|it| !(it.is_finite() && *it >= 0.0)) {
            bail!("--interarrival is {seconds}, expected a number of seconds >= 0");
        }
        let (source, fabric) = self.jobs_and_fabric(&self.source.inputs(trained)?)?;
        let draws = match source {
            JobDraws::Fixed(..) => self.draws.unwrap_or(1),
            JobDraws::Drawn { .. } => self.draws.unwrap_or(DRAWS),
        };
        if draws > 1 && matches!(source, JobDraws::Fixed(..)) && self.deadlines.is_none() {
            bail!(
                "--draws is {draws}, expected 1, because a trace or a job file has the same jobs in each draw; \
                 use --trace with --jobs to draw jobs at random"
            );
        }
        let Some(end) = self.draw.checked_add(draws) else {
            bail!("--draw is {}, expected at most {}", self.draw, u64::MAX - draws)
        };
        let workload = Workload { fabric, source, deadlines: self.deadlines, draws: self.draw..end };
        if let Some(path) = &self.export_jobs {
            let file = JobFile { ports: workload.fabric.ports, jobs: workload.jobs(self.draw)? };
            write(path, &file.to_text())?;
        }
        Ok(workload)
    }

    fn jobs_and_fabric(&self, inputs: &Inputs) -> anyhow::Result<(JobDraws, Fabric)> {
        if let Some(path) = &self.job_file {
            let JobFile { ports, jobs } = JobFile::read(path)?;
            return Ok((JobDraws::Fixed(jobs, "jobs from a file"), inputs.fabric(ports)?));
        }
        let (trace, fabric) = inputs.coflows()?;
        let jobs = if self.is_trace_alone() { self.jobs_of(trace)? } else { self.drawn(inputs, trace)? };
        Ok((jobs, fabric))
    }

    fn is_trace_alone(&self) -> bool {
        self.source.trace.is_some() && self.source.dags.is_none() && self.jobs.is_none()
    }

    /// Creates fixed jobs from a trace. Each job is a single coflow.
    fn jobs_of(&self, trace: CoflowTrace) -> anyhow::Result<JobDraws> {
        let is_batch = match self.interarrival {
            None => false,
            Some(0.0) => true,
            Some(seconds) => bail!(
                "--interarrival is {seconds}, expected 0, because the trace contains the arrival times; \
                 add --jobs to draw jobs at random"
            ),
        };
        Ok(JobDraws::of_trace(trace, is_batch)?)
    }

    fn drawn(&self, inputs: &Inputs, trace: CoflowTrace) -> anyhow::Result<JobDraws> {
        Ok(JobDraws::Drawn {
            source: inputs.jobs(trace)?,
            count: usize::try_from(self.jobs.unwrap_or(JOBS))?,
            interarrival: self.interarrival.unwrap_or(INTERARRIVAL_S),
        })
    }
}

impl Workload {
    /// Returns the fabric.
    pub(super) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns the numbers of all draws.
    pub(super) fn draws(&self) -> std::ops::Range<u64> {
        self.draws.clone()
    }

    /// Returns the jobs of a draw, sorted by arrival.
    pub(super) fn jobs(&self, draw: u64) -> anyhow::Result<Vec<Job>> {
        let mut jobs = self.source.jobs(draw);
        if let Some(slack) = self.deadlines {
            let mut rng = stream(draw, Purpose::Arrivals, DEADLINES_STREAM);
            set_deadlines(&mut jobs, &self.fabric, slack, &mut rng)?;
        }
        Ok(jobs)
    }

    /// Describes the draws as text.
    pub(super) fn describe(&self) -> String {
        let jobs = match &self.source {
            JobDraws::Fixed(jobs, what) => format!("{} {what}", jobs.len()),
            JobDraws::Drawn { source, count, interarrival } => {
                let when = if *interarrival > 0.0 {
                    format!("arriving every {interarrival} s on average")
                } else {
                    "all arriving at once".to_owned()
                };
                format!("{count} jobs of {} shape(s), {when}", source.shapes().len())
            }
        };
        format!(
            "{jobs}; {}; rates: {}; {} draw(s)",
            describe(&self.fabric),
            self.fabric.rates,
            self.draws.clone().count()
        )
    }
}
