//! Policies as the command line names them.

use anyhow::bail;
use iswitch_learn::algorithms::streams::Purpose;
use iswitch_placement::failure::FailureDraw;
use iswitch_placement::learned::Trained;
use iswitch_placement::learned::training::PlacementStudy;
use iswitch_placement::policy::{Placer, PolicySpec};
use iswitch_placement::simulation::{Observer, Outcome, Scenario, simulate_draw};
use iswitch_study::contest::{Contestant, directory_name, plain, saved};

/// Help for arguments that name policies.
pub(super) const POLICIES: &str = "random, best-of:N (the best of N random plans), hindsight:N (the best of N random \
    courses, chosen afterwards), first-fit, best-fit, reliable, longest-reliable, match, las, pollux, oracle, saving; \
    or the run directory of `iswitch place train`";
/// Those of them that only pick GPUs.
pub(super) const PICKERS: &str = "random, first-fit, best-fit, reliable, match, oracle; or the run \
    directory of `iswitch place train`";

/// Where a policy comes from.
#[derive(Debug)]
pub(super) enum PolicySource {
    /// One that needs no training.
    Plain(PolicySpec),
    /// A trained one.
    Saved {
        /// What came out of the training.
        policy: Box<Trained>,
        /// As the command line has it, without the directories before.
        name: String,
    },
}

impl Contestant for PolicySource {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let Some(saved) = saved::<PlacementStudy>(text)? else {
            return plain(text, POLICIES).map(Self::Plain);
        };
        Ok(Self::Saved { policy: Box::new(Trained::of_saved(&saved)?), name: directory_name(text) })
    }

    fn name(&self) -> String {
        match self {
            Self::Plain(spec) => spec.to_string(),
            Self::Saved { name, .. } => name.clone(),
        }
    }
}

impl PolicySource {
    /// What it makes of a scenario whose failures and own draws `seed` decides. A policy that chooses afterwards has no
    /// course that could be watched.
    pub(super) fn run<'o>(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &'o mut Observer<'o>,
    ) -> anyhow::Result<Outcome> {
        let mut placer = match self {
            Self::Plain(spec @ PolicySpec::Hindsight(_)) => return Ok(spec.run(scenario, seed)?),
            Self::Plain(spec) => spec.build(scenario, seed)?,
            Self::Saved { policy, .. } => policy.placer(scenario.cluster())?,
        };
        let draw = FailureDraw::new(scenario.failures(), seed, Purpose::Failures, 0);
        Ok(simulate_draw(scenario, placer.as_mut(), draw, Some(observer))?)
    }

    /// A policy that picks GPUs for one job at a time, in a cluster that others run.
    pub(super) fn picker(&self, scenario: &Scenario, seed: u64) -> anyhow::Result<Box<dyn Placer>> {
        match self {
            Self::Plain(
                spec @ (PolicySpec::Random
                | PolicySpec::FirstFit
                | PolicySpec::BestFit
                | PolicySpec::Reliable
                | PolicySpec::Match
                | PolicySpec::Oracle),
            ) => Ok(spec.build(scenario, seed)?),
            // Of its decisions only that about GPUs is asked.
            Self::Saved { policy, .. } => Ok(policy.placer(scenario.cluster())?),
            Self::Plain(spec) => {
                bail!("policy is {spec}, which decides about more than one job's GPUs; expected {PICKERS}")
            }
        }
    }
}
