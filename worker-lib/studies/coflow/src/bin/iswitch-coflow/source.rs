//! Policies as named on the command line.

use anyhow::{Context as _, bail};
use iswitch_coflow::deepweave::agent::DeepWeave;
use iswitch_coflow::deepweave::lookahead::Lookahead;
use iswitch_coflow::deepweave::training::{DeepWeaveStudy, Saved};
use iswitch_coflow::policy::external::ExternalPolicy;
use iswitch_coflow::policy::{Policy, PolicySpec};
use iswitch_coflow::search::{Search, StaticPriorities};
use iswitch_coflow::simulation::Fabric;
use iswitch_coflow::workload::Job;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::contest::{Contestant, directory_name, plain, saved};
use iswitch_study::external::External;

/// Accepted policies, for help texts and errors.
pub(super) const POLICIES: &str = "fair, fifo, fifo-job, lcf, sebf, bssi, aalo, job-srpt, job-sebf, job-bssi, \
    shafiee-ghaderi; the run directory of `iswitch coflow train`, or DIRECTORY:EVALUATIONS (a search tries this many \
    orders for each arriving job, starting from the network's order); lookahead:EVALUATIONS (the same search, starting \
    from the order of job-sebf); or local-search:EVALUATIONS (a search for the best fixed priorities of each batch of \
    jobs; requires --interarrival 0)";

const LOCAL_SEARCH: &str = "local-search";
const LOOKAHEAD: &str = "lookahead";
const EVALUATIONS: u64 = 5000;
/// Number of evaluations between two progress reports.
const REPORT_INTERVAL: u64 = 50;

/// Policy as selected on the command line.
#[derive(Debug)]
pub(super) enum PolicySource {
    /// Policy that does not learn.
    Plain(PolicySpec),
    /// Fixed priorities, found by a search before the jobs are run.
    LocalSearch {
        /// Number of simulated runs of the jobs.
        evaluations: u64,
    },
    /// Search that starts from the order of JobSEBF and runs whenever jobs arrive.
    Lookahead {
        /// Number of orders that the search tries for each job that has arrived since the previous decision.
        evaluations: u64,
    },
    /// Trained policy, optionally with a search.
    Saved {
        /// Checkpoint of the training run.
        saved: Box<Saved>,
        /// Name of the policy: the last component of the path, with the number of evaluations if one is given.
        name: String,
        /// Number of orders that the search tries for each job that has arrived since the previous decision; `None` if
        /// there is no search.
        evaluations: Option<u64>,
    },
    /// External policy, which runs as a separate program.
    External(External),
}

impl Contestant for PolicySource {
    fn parse(text: &str) -> anyhow::Result<Self> {
        if let Some(saved) = saved::<DeepWeaveStudy>(text)? {
            return Ok(Self::Saved { saved: Box::new(saved), name: directory_name(text), evaluations: None });
        }
        if let Some((directory, _)) = text.rsplit_once(':')
            && let Some(saved) = saved::<DeepWeaveStudy>(directory)?
        {
            let (saved, name) = (Box::new(saved), directory_name(text));
            return Ok(Self::Saved { saved, name, evaluations: Some(evaluations(text)?) });
        }
        if let Some(external) = External::parse(text, is_own)? {
            return Ok(Self::External(external));
        }
        let Some((name, _)) = text.rsplit_once(':') else {
            return match text {
                LOCAL_SEARCH => Ok(Self::LocalSearch { evaluations: EVALUATIONS }),
                _ => plain(text, POLICIES).map(Self::Plain),
            };
        };
        match name {
            LOCAL_SEARCH => Ok(Self::LocalSearch { evaluations: evaluations(text)? }),
            LOOKAHEAD => Ok(Self::Lookahead { evaluations: evaluations(text)? }),
            _ => bail!("policy is {text}, expected {POLICIES}"),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Plain(spec) => spec.to_string(),
            Self::LocalSearch { evaluations } => format!("{LOCAL_SEARCH}:{evaluations}"),
            Self::Lookahead { evaluations } => format!("{LOOKAHEAD}:{evaluations}"),
            Self::Saved { name, .. } => name.clone(),
            Self::External(external) => external.name().to_owned(),
        }
    }

    fn external_mut(&mut self) -> Option<&mut External> {
        match self {
            Self::External(external) => Some(external),
            _ => None,
        }
    }
}

impl PolicySource {
    /// Returns the fabric on which the policy was trained, if it is a network whose run directory records the fabric.
    pub(super) fn fabric(&self) -> anyhow::Result<Option<Fabric>> {
        let Self::Saved { saved, .. } = self else { return Ok(None) };
        Ok(DeepWeave::fabric_of_saved(saved)?)
    }

    /// Returns a warning if the policy is a network whose training run had a model of rates, or unequal ports or racks,
    /// that differ from those of `fabric`, or did not record its model of rates.
    pub(super) fn warning(&self, fabric: &Fabric) -> anyhow::Result<Option<String>> {
        let Self::Saved { saved, name, .. } = self else { return Ok(None) };
        let rates = fabric.rates;
        let trained = DeepWeave::fabric_of_saved(saved)?;
        Ok(match DeepWeave::rates_of_saved(saved)? {
            Some(of_run) if of_run == rates => {
                let others = trained.filter(|trained| trained.network != fabric.network);
                others.map(|_| {
                    format!(
                        "warning: policy {name} was trained on ports or racks whose rates differ from those of this \
                         fabric; `iswitch coflow evaluate` uses the fabric of the training run by default"
                    )
                })
            }
            Some(trained) => Some(format!(
                "warning: policy {name} was trained with --rates {trained} and is used with --rates {rates}"
            )),
            None => Some(format!(
                "warning: the run directory of policy {name} does not record --rates, because an earlier version \
                 wrote it; the policy is used with --rates {rates}"
            )),
        })
    }

    /// Creates a fresh instance of the policy for these jobs. `seed` determines the random choices of the policy;
    /// `show` receives the progress reports of a search.
    pub(super) fn build(
        &self,
        jobs: &[Job],
        fabric: &Fabric,
        seed: u64,
        show: &mut dyn FnMut(&str),
    ) -> anyhow::Result<Box<dyn Policy>> {
        match self {
            Self::Plain(spec) => Ok(spec.build(fabric.capacity)),
            Self::LocalSearch { evaluations } => search(jobs, fabric, *evaluations, seed, show),
            Self::Lookahead { evaluations } => {
                Ok(Box::new(DeepWeave::job_sebf().with_lookahead(lookahead(*evaluations, seed))))
            }
            Self::External(external) => Ok(Box::new(ExternalPolicy::start(external, jobs, fabric, seed)?)),
            Self::Saved { saved, evaluations, .. } => {
                let policy = DeepWeave::of_saved(saved, jobs)?;
                Ok(Box::new(match evaluations {
                    Some(evaluations) => policy.with_lookahead(lookahead(*evaluations, seed)),
                    None => policy,
                }))
            }
        }
    }
}

/// Parses the number of evaluations at the end of a policy name such as `lookahead:100`.
fn evaluations(text: &str) -> anyhow::Result<u64> {
    let (name, number) = text.rsplit_once(':').unwrap_or((text, ""));
    let parsed = number.parse().ok();
    parsed.with_context(|| format!("number of evaluations of {name} is {number:?}, expected a whole number"))
}

/// Returns whether a policy of this study has this name.
fn is_own(name: &str) -> bool {
    name == LOCAL_SEARCH || name == LOOKAHEAD || name.parse::<PolicySpec>().is_ok()
}

fn lookahead(evaluations: u64, seed: u64) -> Lookahead {
    Lookahead::new(evaluations, stream(seed, Purpose::Actions, 1))
}

fn search(
    jobs: &[Job],
    fabric: &Fabric,
    evaluations: u64,
    seed: u64,
    show: &mut dyn FnMut(&str),
) -> anyhow::Result<Box<dyn Policy>> {
    if jobs.iter().any(|job| job.arrival > 0.0) {
        bail!(
            "policy {LOCAL_SEARCH} requires a batch of jobs that all arrive at time 0; add --interarrival 0"
        );
    }
    let mut rng = stream(seed, Purpose::Actions, 0);
    let mut search = Search::new(jobs, fabric, StaticPriorities::by_need(jobs, fabric))?;
    for done in 0..evaluations {
        if done % REPORT_INTERVAL == 0 {
            show(&format!("{done}/{evaluations} evaluations, mean JCT {:.1} s", search.least()));
        }
        search.advance(&mut rng)?;
    }
    Ok(Box::new(search.best().clone()))
}
