//! `iswitch place advise`: prints what a policy would do now with the jobs of Slurm or Kubernetes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{ArgGroup, Args};
use iswitch_placement::manager::kubernetes::{GPU_RESOURCE, read_kubernetes};
use iswitch_placement::manager::slurm::read_slurm;
use iswitch_placement::manager::xid::{HARDWARE_FAILURES, read_xids};
use iswitch_placement::manager::{Advice, Managed};
use iswitch_placement::options::Queueing;
use iswitch_placement::{Options, StudyError};
use iswitch_study::contest::Contestant as _;
use iswitch_study::table::{Table, read};
use serde::Serialize;

use super::rules::CostArgs;
use super::source::{PICKERS, PolicySource};
use iswitch_manual::print_line;

/// Arguments of `iswitch place advise`.
#[derive(Args)]
#[command(group = ArgGroup::new("manager").required(true).args(["slurm_nodes", "kubernetes_nodes"]))]
pub(crate) struct AdviseArgs {
    #[arg(
        help = "Policy: its name, or the run directory of a training run",
        long_help = format!("Policy: {PICKERS}")
    )]
    policy: String,
    /// File with Slurm's nodes: the output of `scontrol show nodes --json`
    ///
    /// With Slurm versions before 23.02, use the output of `sinfo --json` instead.
    #[arg(long, value_name = "FILE", requires = "slurm_jobs")]
    slurm_nodes: Option<PathBuf>,
    /// File with Slurm's jobs: the output of `squeue --json`
    #[arg(long, value_name = "FILE", requires = "slurm_nodes")]
    slurm_jobs: Option<PathBuf>,
    /// GPU type to consider, as named in Slurm's configuration, such as a100
    ///
    /// GPUs of other types, and the jobs that request them, are left out. The option is required if the nodes have GPUs
    /// of several types.
    #[arg(long, value_name = "TYPE", requires = "slurm_nodes")]
    gpu_type: Option<String>,
    /// File with the Kubernetes nodes: the output of `kubectl get nodes -o json`
    #[arg(long, value_name = "FILE", requires = "kubernetes_pods")]
    kubernetes_nodes: Option<PathBuf>,
    /// File with the Kubernetes pods: the output of `kubectl get pods -A -o json`
    ///
    /// Pods that a label or annotation assigns to the same group or job start together.
    #[arg(long, value_name = "FILE", requires = "kubernetes_nodes")]
    kubernetes_pods: Option<PathBuf>,
    /// Name of the Kubernetes resource that represents GPUs
    #[arg(long, value_name = "NAME", requires = "kubernetes_nodes", default_value = GPU_RESOURCE)]
    gpu_resource: String,
    /// CSV file with the failures per GPU-year on each node: node,per_year
    ///
    /// GPUs on nodes that the file does not list are assumed not to fail. If neither this option nor --xid is given,
    /// all GPUs are assumed not to fail.
    #[arg(long, value_name = "FILE", conflicts_with = "xid")]
    node_rates: Option<PathBuf>,
    /// Kernel log of all nodes, from which the failure rates are estimated
    ///
    /// The format is that of `journalctl --dmesg --output short-iso`. Lines from NVIDIA's driver with one of the Xids
    /// in --xid-codes count as failures; several lines about the same GPU on the same date count as one failure.
    #[arg(long, value_name = "FILE", requires = "xid_days")]
    xid: Option<PathBuf>,
    /// Number of days that the kernel log covers
    #[arg(long, value_name = "DAYS", requires = "xid", allow_negative_numbers = true)]
    xid_days: Option<f64>,
    /// NVIDIA error codes (Xids) that count as failures of a GPU
    #[arg(long, value_name = "N", requires = "xid", value_delimiter = ',', default_values_t = HARDWARE_FAILURES)]
    xid_codes: Vec<u32>,
    #[command(flatten)]
    cost: CostArgs,
    /// Seed of the policy's random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the decisions as one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Result, as `--json` prints it.
#[derive(Serialize)]
struct Report<'a> {
    policy: String,
    nodes: usize,
    gpus: usize,
    jobs: usize,
    #[serde(flatten)]
    advice: &'a Advice,
    left_out: Vec<LeftOut>,
}

/// Reason why jobs were ignored, and the number of these jobs.
#[derive(Serialize)]
struct LeftOut {
    jobs: usize,
    reason: &'static str,
}

/// Prints the decisions of a policy, but does not carry them out.
pub(crate) fn run(args: &AdviseArgs) -> anyhow::Result<ExitCode> {
    let managed = args.managed()?;
    let source = PolicySource::parse(&args.policy)?;
    let cluster = managed.cluster()?;
    let failures = managed.failures(&args.rates(&managed)?)?;
    let options = Options { queueing: Queueing::Easy, ..args.cost.options()? };
    let mut agent = source.agent(&cluster, &failures, options, args.seed)?;
    let advice = managed.advise(&mut agent)?;
    let left_out = managed.left_out.iter().map(|(jobs, reason)| LeftOut { jobs: *jobs, reason });
    let report = Report {
        policy: source.name(),
        nodes: managed.nodes.len(),
        gpus: cluster.gpus(),
        jobs: managed.jobs.len(),
        advice: &advice,
        left_out: left_out.collect(),
    };
    if args.json {
        print_line!("{}", serde_json::to_string(&report)?)?;
    } else {
        print(&report)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl AdviseArgs {
    fn managed(&self) -> anyhow::Result<Managed> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64());
        let slurm = self.slurm_nodes.as_deref().zip(self.slurm_jobs.as_deref());
        let kubernetes = self.kubernetes_nodes.as_deref().zip(self.kubernetes_pods.as_deref());
        Ok(match (slurm, kubernetes) {
            (Some((nodes, jobs)), _) => read_slurm(nodes, jobs, self.gpu_type.as_deref(), now)?,
            (None, Some((nodes, pods))) => read_kubernetes(nodes, pods, &self.gpu_resource, now)?,
            (None, None) => unreachable!(
                "the command line must give the files of exactly one manager: --slurm-nodes and --slurm-jobs, or \
                 --kubernetes-nodes and --kubernetes-pods"
            ),
        })
    }

    /// Returns the failure rate of each node's GPUs, in failures per GPU-year.
    fn rates(&self, managed: &Managed) -> anyhow::Result<Vec<f64>> {
        if let Some(path) = &self.node_rates {
            return Ok(node_rates(path, managed)?);
        }
        let Some((path, days)) = self.xid.as_deref().zip(self.xid_days) else {
            return Ok(vec![0.0; managed.nodes.len()]);
        };
        Ok(read_xids(path, &self.xid_codes)?.rates(managed, days)?)
    }
}

/// Reads a CSV file with the columns `node,per_year`. Nodes without a line have the rate 0.
fn node_rates(path: &Path, managed: &Managed) -> Result<Vec<f64>, StudyError> {
    let text = read(path)?;
    let known = managed.by_name();
    let mut rates = vec![None; managed.nodes.len()];
    Table::new(&text, path, ["node", "per_year"])?.rows(|row| {
        let name = row.text(0);
        let at = known.get(name);
        let at = *at.ok_or_else(|| {
            format!("node is {name:?}, expected one of the nodes with GPUs in the node file")
        })?;
        match rates[at].replace(row.number(1)?) {
            None => Ok(()),
            Some(_) => Err(format!("node {name} appears twice, expected at most one line for each node")),
        }
    })?;
    Ok(rates.into_iter().map(Option::unwrap_or_default).collect())
}

fn print(report: &Report<'_>) -> std::io::Result<()> {
    let Report { policy, nodes, gpus, jobs, advice, left_out } = report;
    print_line!("{policy}: {gpus} GPUs on {nodes} nodes, {jobs} jobs")?;
    for job in &advice.suspend {
        print_line!("suspend {job}")?;
    }
    for start in &advice.start {
        let nodes = start.nodes.iter().map(|on| format!("{}:{}", on.node, on.gpus.len()));
        print_line!("start {} on {}", start.job, nodes.collect::<Vec<_>>().join(" "))?;
    }
    if advice.suspend.is_empty() && advice.start.is_empty() {
        print_line!("no changes")?;
    }
    if let Some(seconds) = advice.look_again_s {
        print_line!("run this command again in {seconds:.0} s, even if nothing happens before then")?;
    }
    for LeftOut { jobs, reason } in left_out {
        print_line!("left out: {jobs}, each of which {reason}")?;
    }
    Ok(())
}
