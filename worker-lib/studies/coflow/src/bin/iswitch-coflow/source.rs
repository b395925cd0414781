//! Policies as the command line names them.

use anyhow::{Context as _, bail};
use iswitch_coflow::deepweave::agent::DeepWeave;
use iswitch_coflow::deepweave::lookahead::Lookahead;
use iswitch_coflow::deepweave::training::{DeepWeaveStudy, Saved};
use iswitch_coflow::policy::{Policy, PolicySpec};
use iswitch_coflow::search::{Search, StaticPriorities};
use iswitch_coflow::simulation::Fabric;
use iswitch_coflow::workload::Job;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::contest::{Contestant, directory_name, plain, saved};

/// Help for arguments that name policies.
pub(super) const POLICIES: &str = "fair, fifo, fifo-job, lcf, sebf, bssi, aalo, job-srpt, job-sebf, job-bssi, \
    shafiee-ghaderi; the run directory of `iswitch coflow train`, or DIRECTORY:EVALUATIONS (that many orders are tried \
    for each job that arrives, going on from the network's); lookahead:EVALUATIONS (the same from job-sebf's); or \
    local-search:EVALUATIONS (priorities that are searched for each batch of jobs, which needs --interarrival 0)";

const LOCAL_SEARCH: &str = "local-search";
const LOOKAHEAD: &str = "lookahead";
const EVALUATIONS: u64 = 5000;
/// Evaluations between two reports.
const REPORT_INTERVAL: u64 = 50;

/// Where a policy comes from.
#[derive(Debug)]
pub(super) enum PolicySource {
    /// One that needs no training.
    Plain(PolicySpec),
    /// Priorities that are searched for the jobs.
    LocalSearch {
        /// Runs of the jobs.
        evaluations: u64,
    },
    /// A search when jobs arrive, from the order of JobSEBF.
    Lookahead {
        /// Orders for each job that arrives.
        evaluations: u64,
    },
    /// A trained one, with a search if so.
    Saved {
        /// The training.
        saved: Box<Saved>,
        /// As the command line has it.
        name: String,
        /// Orders for each job that arrives.
        evaluations: Option<u64>,
    },
}

impl Contestant for PolicySource {
    fn parse(text: &str) -> anyhow::Result<Self> {
        if let Some(saved) = saved::<DeepWeaveStudy>(text)? {
            return Ok(Self::Saved { saved: Box::new(saved), name: directory_name(text), evaluations: None });
        }
        let Some((name, number)) = text.rsplit_once(':') else {
            return match text {
                LOCAL_SEARCH => Ok(Self::LocalSearch { evaluations: EVALUATIONS }),
                _ => plain(text, POLICIES).map(Self::Plain),
            };
        };
        let evaluations = || -> anyhow::Result<u64> {
            let parsed = number.parse().ok();
            parsed.with_context(|| format!("evaluations of {name} is {number}, expected a number"))
        };
        match name {
            LOCAL_SEARCH => Ok(Self::LocalSearch { evaluations: evaluations()? }),
            LOOKAHEAD => Ok(Self::Lookahead { evaluations: evaluations()? }),
            _ => {
                let Some(saved) = saved::<DeepWeaveStudy>(name)? else {
                    bail!("policy is {text}, expected {POLICIES}");
                };
                let (saved, name) = (Box::new(saved), directory_name(text));
                Ok(Self::Saved { saved, name, evaluations: Some(evaluations()?) })
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Plain(spec) => spec.to_string(),
            Self::LocalSearch { evaluations } => format!("{LOCAL_SEARCH}:{evaluations}"),
            Self::Lookahead { evaluations } => format!("{LOOKAHEAD}:{evaluations}"),
            Self::Saved { name, .. } => name.clone(),
        }
    }
}

impl PolicySource {
    /// A fresh policy for these jobs. `seed` is of its draws; `show` is told how far it is if that takes long.
    pub(super) fn build(
        &self,
        jobs: &[Job],
        fabric: Fabric,
        seed: u64,
        show: &mut dyn FnMut(&str),
    ) -> anyhow::Result<Box<dyn Policy>> {
        match self {
            Self::Plain(spec) => Ok(spec.build(fabric.capacity)),
            Self::LocalSearch { evaluations } => search(jobs, fabric, *evaluations, seed, show),
            Self::Lookahead { evaluations } => {
                Ok(Box::new(DeepWeave::job_sebf().with_lookahead(lookahead(*evaluations, seed))))
            }
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

fn lookahead(evaluations: u64, seed: u64) -> Lookahead {
    Lookahead::new(evaluations, stream(seed, Purpose::Actions, 1))
}

fn search(
    jobs: &[Job],
    fabric: Fabric,
    evaluations: u64,
    seed: u64,
    show: &mut dyn FnMut(&str),
) -> anyhow::Result<Box<dyn Policy>> {
    if jobs.iter().any(|job| job.arrival > 0.0) {
        bail!("policy {LOCAL_SEARCH} knows all jobs from the start: give it a batch, with --interarrival 0");
    }
    let mut rng = stream(seed, Purpose::Actions, 0);
    let mut search = Search::new(jobs, fabric, StaticPriorities::by_need(jobs))?;
    for done in 0..evaluations {
        if done % REPORT_INTERVAL == 0 {
            show(&format!("{done}/{evaluations} evaluations, mean JCT {:.1} s", search.least()));
        }
        search.advance(&mut rng)?;
    }
    Ok(Box::new(search.best().clone()))
}
