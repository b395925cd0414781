//! Scenarios for training and tests, and simulated runs of them. The draw numbers of these scenarios start at 2^62, so
//! training and tests never use a draw on which policies are compared.

use rand::RngExt as _;

use super::config::PlacementConfig;
use crate::failure::FailureDraw;
use crate::policy::Placer;
use crate::simulation::{Outcome, Scenario, simulate_draw};
use crate::workload::Workload;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::StudyError;

/// Number of the first training draw.
const TRAINING: u64 = 1 << 63;
/// Number of the first test draw.
const TEST: u64 = 1 << 62;
/// Number of low-order bits of a draw's number that hold its index within the training run.
const NUMBER_BITS: u32 = 32;
/// Number of the random stream that determines a draw's failure-rate factor. Stream 0 determines the GPUs of the draw.
const CONDITION_STREAM: usize = 1;

/// Draw of jobs and GPUs, together with its failure-rate factor and checkpoint setting.
#[derive(Clone, Debug)]
pub struct Episode {
    /// Scenario of the draw.
    pub scenario: Scenario,
    /// Number of the draw.
    pub draw: u64,
}

/// Returns the draw number of draw `at` in a training run with seed `seed`. `first` is [`TRAINING`] or [`TEST`].
fn number(first: u64, seed: u64, at: u64) -> u64 {
    first | (seed << NUMBER_BITS & (TEST - 1)) | at
}

impl Episode {
    /// Returns the episode that environment number `environment` runs in the given training iteration.
    ///
    /// # Errors
    /// Returns the errors of [`Workload::scenario`].
    pub fn of_training(
        config: &PlacementConfig,
        workload: &Workload,
        iteration: u64,
        environment: usize,
    ) -> Result<Self, StudyError> {
        let at = iteration * config.environments as u64 + environment as u64;
        let draw = number(TRAINING, config.seed, at);
        let share = stream(draw, Purpose::Rates, CONDITION_STREAM).random();
        Self::new(config, workload, draw, (share, environment))
    }

    /// Returns episode number `at` of a test. All tests of a training run use the same episodes, whose failure-rate
    /// factors are evenly spaced on a logarithmic scale.
    ///
    /// # Errors
    /// Returns the errors of [`Workload::scenario`].
    pub fn of_test(config: &PlacementConfig, workload: &Workload, at: usize) -> Result<Self, StudyError> {
        let share = (at as f64 + 0.5) / config.test_draws as f64;
        Self::new(config, workload, number(TEST, config.seed, at as u64), (share, at))
    }

    fn new(
        config: &PlacementConfig,
        workload: &Workload,
        draw: u64,
        (share, at): (f64, usize),
    ) -> Result<Self, StudyError> {
        let factor = config.factor_min * (config.factor_max / config.factor_min).powf(share);
        Ok(Self { scenario: workload.scenario(draw, factor, config.checkpoint(at))?, draw })
    }

    /// Simulates a run of a placer on the failures determined by `purpose` and `course`. Failures with different
    /// purposes or courses are independent.
    ///
    /// # Errors
    /// Fails if the placer makes an invalid decision.
    pub fn run(
        &self,
        placer: &mut dyn Placer,
        purpose: Purpose,
        course: usize,
    ) -> Result<Outcome, StudyError> {
        let draw = FailureDraw::new(self.scenario.failures(), self.draw, purpose, course);
        simulate_draw(&self.scenario, placer, draw, None)
    }
}
