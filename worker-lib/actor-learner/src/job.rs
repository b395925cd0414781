//! Description of a run. Actors and shards receive no other configuration.

use std::sync::atomic::{AtomicBool, Ordering};

use iswitch_models::{Credentials, Endpoint};
use serde::{Deserialize, Serialize};

use super::ActorLearnerError;
use super::error::malformed;
use super::policy::{PAUSE, reader};
use super::refusal;
use super::retry::ProblemReport;
use iswitch_learn::algorithms::remote::Demand;

/// Version of the format of items and policies. Programs with different format versions are incompatible.
const FORMAT: u32 = 1;

/// Description of a run, as published by the first learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    format: u32,
    /// Name of the algorithm, such as `dqn`.
    pub algorithm: String,
    /// Id of the environment.
    pub env: String,
    /// Hyper-parameters as JSON.
    pub config: String,
    /// Number of floats in a policy.
    pub policy_len: usize,
    /// The algorithm's requirements for experience replay. Sizes are totals over all shards.
    pub demand: Demand,
    /// Address of each shard: `http://HOST:PORT` or `unix:PATH`.
    pub shards: Vec<String>,
}

impl Job {
    /// Name under which the description is published.
    pub const NAME: &'static str = "job";

    /// Creates the description of a run that uses the given shards.
    pub fn new(
        (algorithm, env, config): (&str, &str, &str),
        policy_len: usize,
        demand: Demand,
        shards: Vec<String>,
    ) -> Self {
        let [algorithm, env, config] = [algorithm, env, config].map(str::to_owned);
        Self { format: FORMAT, algorithm, env, config, policy_len, demand, shards }
    }

    /// Encodes the description for publication.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers can be serialized as JSON")
    }

    /// Decodes the output of [`Self::to_bytes`].
    ///
    /// # Errors
    /// Fails if the bytes are malformed or come from an incompatible version of this program.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ActorLearnerError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let expected = || format!("the description of a run in format {FORMAT}");
        let head: Head =
            serde_json::from_slice(bytes).map_err(|error| malformed("job", error.to_string(), expected()))?;
        if head.format != FORMAT {
            return Err(malformed("job", format!("in format {}", head.format), expected()));
        }
        serde_json::from_slice(bytes).map_err(|error| malformed("job", error.to_string(), expected()))
    }

    /// Reads the description from a cell or a learner as soon as it has been published. Returns `None` if `stop` is set
    /// first.
    ///
    /// # Errors
    /// Fails if there are no endpoints, if the credentials are rejected, or if the published object is not a
    /// description of a run in the format of this version.
    pub fn read(
        endpoints: &[Endpoint],
        credentials: &Credentials,
        stop: &AtomicBool,
    ) -> Result<Option<Self>, ActorLearnerError> {
        let io = |source| ActorLearnerError::Io {
            what: "cannot start the reader of the run's description",
            source,
        };
        let mut client = reader(Self::NAME, endpoints, credentials).map_err(io)?;
        let mut problem_report = ProblemReport::default();
        while !stop.load(Ordering::Relaxed) {
            match client.poll() {
                Ok(Some(model)) => return Self::from_bytes(&model.bytes).map(Some),
                Ok(None) => {}
                Err(error) => match refusal::of_models(&error) {
                    Some(refusal) => return Err(refusal),
                    None => problem_report.about("waiting for a learner", &error),
                },
            }
            std::thread::sleep(PAUSE);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_description_round_trips() {
        let demand = Demand::Rollouts { per_update: 4, steps: 16, statistics: 3 };
        let job = Job::new(("ppo", "CartPole-v1", "{\"gamma\":0.5}"), 12, demand, vec!["unix:/a".to_owned()]);
        assert_eq!(Job::from_bytes(&job.to_bytes()).unwrap(), job);
    }

    #[test]
    fn invalid_job_descriptions_are_reported() {
        let error = |bytes: &[u8]| Job::from_bytes(bytes).unwrap_err().to_string();
        assert!(error(b"{").starts_with("job is EOF"), "{}", error(b"{"));
        assert_eq!(
            error(b"{\"format\":7}"),
            "job is in format 7, expected the description of a run in format 1"
        );
        assert!(error(b"{\"format\":1}").starts_with("job is missing field"));
    }
}
