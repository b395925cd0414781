//! Scenarios of a training, and courses of them. Their draws have numbers of their own: the first 2^62, which
//! comparisons have, are not among them.

use rand::RngExt as _;

use super::config::PlacementConfig;
use crate::failure::FailureDraw;
use crate::policy::Placer;
use crate::simulation::{Outcome, Scenario, simulate_draw};
use crate::workload::Workload;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::StudyError;

/// First draws of trainings and of their tests.
const TRAINING: u64 = 1 << 63;
const TEST: u64 = 1 << 62;
/// Bits of a number within a training.
const NUMBER_BITS: u32 = 32;
/// The stream of a draw that its condition is drawn from; the first is that of its GPUs.
const CONDITION_STREAM: usize = 1;

/// A draw of jobs and GPUs and what is asked of it.
#[derive(Clone, Debug)]
pub struct Episode {
    /// Jobs, GPUs and rules.
    pub scenario: Scenario,
    /// The draw's number.
    pub draw: u64,
}

/// The number of a draw of a seed.
fn number(first: u64, seed: u64, at: u64) -> u64 {
    first | (seed << NUMBER_BITS & (TEST - 1)) | at
}

impl Episode {
    /// That of an environment in an iteration.
    ///
    /// # Errors
    /// As [`Workload::scenario`].
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

    /// That of a test, the same each time. Factors are evenly spaced.
    ///
    /// # Errors
    /// As [`Workload::scenario`].
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

    /// What a placer makes of it with such failures; different numbers and purposes are independent.
    ///
    /// # Errors
    /// If the placer wants what cannot be.
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
