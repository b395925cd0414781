//! Selection of policies by their command-line names.

use anyhow::bail;
use iswitch_learn::algorithms::streams::Purpose;
use iswitch_placement::agent::Agent;
use iswitch_placement::failure::FailureDraw;
use iswitch_placement::learned::Trained;
use iswitch_placement::learned::training::PlacementStudy;
use iswitch_placement::policy::external::ExternalPlacer;
use iswitch_placement::policy::{Clairvoyant, Placer, PolicySpec};
use iswitch_placement::simulation::{Observer, Outcome, Scenario, simulate_draw};
use iswitch_placement::{Cluster, Failures, Options};
use iswitch_study::contest::{Contestant, directory_name, plain, saved};
use iswitch_study::external::External;

/// Names of the policies that the command line accepts, for help and error messages.
pub(super) const POLICIES: &str = "random, best-of:N (the best of N random plans), hindsight:N (the best of N random \
    runs, chosen afterwards), first-fit, best-fit, pack, spread, drain-lemons, rested, reliable, longest-reliable, \
    match, las, pollux, oracle, saving, clairvoyant (knows all future failures); or the run directory of \
    `iswitch place train`";
/// Names of the policies that need only the current state of a cluster, for help and error messages.
pub(super) const PICKERS: &str = "random, first-fit, best-fit, pack, spread, drain-lemons, rested, reliable, \
    longest-reliable, match, oracle, saving; or the run directory of `iswitch place train`";

/// Source of a policy.
#[derive(Debug)]
pub(super) enum PolicySource {
    /// Policy that needs no training.
    Plain(PolicySpec),
    /// Trained policy.
    Saved {
        /// Trained network and its hyper-parameters.
        policy: Box<Trained>,
        /// Last component of the run directory's path as given on the command line.
        name: String,
    },
    /// External policy, which runs as a separate program.
    External(External),
}

impl Contestant for PolicySource {
    fn parse(text: &str) -> anyhow::Result<Self> {
        if let Some(saved) = saved::<PlacementStudy>(text)? {
            return Ok(Self::Saved {
                policy: Box::new(Trained::of_saved(&saved)?),
                name: directory_name(text),
            });
        }
        match External::parse(text, |name| name.parse::<PolicySpec>().is_ok())? {
            Some(external) => Ok(Self::External(external)),
            None => plain(text, POLICIES).map(Self::Plain),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Plain(spec) => spec.to_string(),
            Self::Saved { name, .. } => name.clone(),
            Self::External(external) => external.name().to_owned(),
        }
    }

    fn external_mut(&mut self) -> Option<&mut External> {
        match self {
            Self::External(external) => Some(external),
            Self::Plain(_) | Self::Saved { .. } => None,
        }
    }
}

impl PolicySource {
    /// Runs the policy on a scenario; `seed` determines the failures and the policy's own random choices. If the policy
    /// chooses among finished runs (`hindsight`), the observer is never called.
    pub(super) fn run<'o>(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &'o mut Observer<'o>,
    ) -> anyhow::Result<Outcome> {
        let draw = FailureDraw::new(scenario.failures(), seed, Purpose::Failures, 0);
        let mut placer = match self {
            Self::Plain(PolicySpec::Clairvoyant) => {
                let mut placer = Clairvoyant::new(scenario, seed);
                return Ok(simulate_draw(scenario, &mut placer, draw, Some(observer))?);
            }
            Self::Plain(spec @ PolicySpec::Hindsight(_)) => return Ok(spec.run(scenario, seed)?),
            Self::Plain(spec) => spec.build(scenario, seed)?,
            Self::Saved { policy, .. } => policy.placer(scenario.cluster())?,
            Self::External(external) => Box::new(ExternalPlacer::start(external, scenario, seed)?),
        };
        Ok(simulate_draw(scenario, placer.as_mut(), draw, Some(observer))?)
    }

    /// Creates an agent with this policy, for a cluster managed by an external scheduler. `failures` supplies the
    /// failure rates and ages of the GPUs, and `seed` determines the policy's random choices.
    ///
    /// # Errors
    /// Fails if the policy needs more than the current state of the cluster, or if an option is out of range.
    pub(super) fn agent(
        &self,
        cluster: &Cluster,
        failures: &Failures,
        options: Options,
        seed: u64,
    ) -> anyhow::Result<Agent> {
        let scenario = Scenario::new(cluster.clone(), Vec::new(), failures.clone(), options)?;
        let placer = self.picker(&scenario, seed)?;
        Ok(Agent::new(self.name(), placer, cluster.clone(), failures.clone(), options)?)
    }

    /// Returns a placer for a cluster managed by an external scheduler.
    ///
    /// # Errors
    /// Fails if the policy needs more than the current state of the cluster.
    fn picker(&self, scenario: &Scenario, seed: u64) -> anyhow::Result<Box<dyn Placer>> {
        match self {
            Self::Plain(
                spec @ (PolicySpec::Random
                | PolicySpec::FirstFit
                | PolicySpec::BestFit
                | PolicySpec::Pack
                | PolicySpec::Spread
                | PolicySpec::DrainLemons
                | PolicySpec::Rested
                | PolicySpec::Reliable
                | PolicySpec::LongestReliable
                | PolicySpec::Saving
                | PolicySpec::Match
                | PolicySpec::Oracle),
            ) => Ok(spec.build(scenario, seed)?),
            Self::Saved { policy, .. } => Ok(policy.placer(scenario.cluster())?),
            Self::External(external) => {
                bail!("policy is {}, an external policy; expected {PICKERS}", external.name())
            }
            Self::Plain(spec) => {
                bail!(
                    "policy is {spec}, which needs more than the current state of the cluster; expected {PICKERS}"
                )
            }
        }
    }
}
