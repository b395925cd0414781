//! Policy iteration (algorithm 1 of the paper): each iteration collects costs from a simulation or from the network
//! itself, fits a value function to them, and adopts the policy that is greedy with respect to this function.
//!
//! The environments of a job are numbered, and each has separate random streams, like those of
//! [`algorithms`](iswitch_learn::algorithms). They are divided among the workers. Counts of arrivals and the sums of
//! regressions and tests are added as integers, so a linear value function is bit-identical for any number of workers.
//! Gradients of the convolutional network are added as floats.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::config::{Learner, RoutingConfig, ValueKind};
use super::fit::{fit_cnn, fit_linear};
use super::lockstep::{Lockstep, Test};
use super::model::Model;
use super::network::{Queues, Shape};
use super::online::use_network;
use super::policy::Greedy;
use super::rates::{Arrivals, Rates};
use super::trajectory::Environment;
use super::value::{LinearFit, Value};
use iswitch_learn::algorithms::checkpoint::{Reader, Writer};
use iswitch_learn::algorithms::exact::LIMBS;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::{Mark, Record, Study, StudyError};

/// Record of one iteration. The JSON keys are part of the public interface and must not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Number of the iteration; 0 is the record of the policy before any learning.
    pub iteration: u64,
    /// Number of slots of the network itself that have been used so far, excluding tests.
    pub network_slots: u64,
    /// Number of slots that have been simulated so far.
    pub simulated_slots: u64,
    /// Number of states that were training data in this iteration.
    pub states: u64,
    /// Fraction of the variance of the discounted costs that the value function explains; `None` if it was not
    /// computed.
    pub explained: Option<f64>,
    /// Number of packets in the network before arrivals in the test, averaged over slots and environments.
    pub queued: f64,
    /// Mean delay in the test, in slots, by Little's law.
    pub delay: f64,
    /// Lower bound on [`Self::queued`] under any policy.
    pub bound_queued: f64,
    /// Lower bound on [`Self::delay`] under any policy.
    pub bound_delay: f64,
    /// Duration of the iteration, in seconds.
    pub seconds: f64,
}

impl Record for Iteration {
    fn mark(&self) -> Mark {
        // Every iteration ends with a test.
        Mark { iteration: self.iteration, is_tested: true, result: Some(self.queued) }
    }

    fn without_time(self) -> Self {
        Self { seconds: 0.0, ..self }
    }
}

/// Context of the current iteration.
pub(super) type Step<'a> = iswitch_study::Step<'a, RoutingConfig>;

/// Training run of one worker.
pub type Training = iswitch_study::Training<RoutingStudy>;
/// Checkpoint of a training run.
pub type Saved = iswitch_study::Saved<RoutingStudy>;

/// Network for which a policy is trained, and the resources for training.
#[derive(Clone, Debug)]
pub struct Task {
    /// Arrival rates of the network.
    pub rates: Rates,
    /// Number of threads for the matrix products of a worker.
    pub threads: usize,
}

/// State that is modified by an iteration.
#[derive(Clone, Debug)]
pub struct State {
    model: Model,
    /// Number of packets that arrived in the observed slots, as `[switch, class]`.
    arrived: Vec<u64>,
    observed_slots: u64,
}

/// Study of packet routing: a network and the policy that is trained for it.
#[derive(Debug)]
pub struct RoutingStudy {
    rates: Rates,
    state: State,
}

impl RoutingStudy {
    /// Returns the arrival rates of the network.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// Returns the policy with the best test result of a training run, or `None` before the first test. `seed` is the
    /// seed of the random choices between links of equal value.
    pub fn best_policy(training: &Training, seed: u64) -> Option<Greedy<Box<dyn Value>>> {
        let (best, Self { rates, state }) = (training.best_parameters()?, training.study());
        Some(state.model.clone().into_policy(training.config(), rates.shape(), best, seed))
    }

    /// Returns the arrival rates of the network in a checkpoint.
    ///
    /// # Errors
    /// Fails if the file is damaged.
    pub fn saved_rates(saved: &Saved) -> Result<Rates, StudyError> {
        read_rates(saved.config(), &saved.reader()?)
    }

    /// Returns the policy with the best test result in a checkpoint, for a network of size `shape`. `seed` is the seed
    /// of the random choices between links of equal value. Matrix products use up to `threads` threads.
    ///
    /// # Errors
    /// Fails if the policy was trained for a network of a different size, or if no policy has been tested.
    pub fn saved_policy(
        saved: &Saved,
        shape: Shape,
        seed: u64,
        threads: usize,
    ) -> Result<Greedy<Box<dyn Value>>, StudyError> {
        let (config, own) = (saved.config(), saved.config().shape()?);
        if shape != own {
            return Err(saved
                .reader()?
                .refuse(format!("the policy was trained for {own}, not {shape}"))
                .into());
        }
        Ok(Model::new(config, threads)?.into_policy(config, shape, &saved.best_parameters()?, seed))
    }

    /// Returns the number of slots of an iteration, in total across all environments.
    fn slots_of_iteration(config: &RoutingConfig) -> u64 {
        (config.slots_with_window() * config.environments) as u64
    }

    fn learn(&mut self, step: &mut Step<'_>) -> Result<Option<FitResult>, StudyError> {
        if step.iteration == 0 {
            return Ok(Some(FitResult { states: 0, explained: None }));
        }
        if let Some(best) = step.best.filter(|_| step.config.continue_best) {
            self.state.model.set_parameters(self.rates.shape(), best);
        }
        match step.config.learner {
            Learner::Mlpi => {
                let estimate = self.observe(step)?;
                let Some(environments) = self.simulate(step, &estimate) else { return Ok(None) };
                match &mut self.state.model {
                    Model::Linear { value, fit } => fit_linear(step, &environments, value, fit).map(Some),
                    Model::Cnn(model) => fit_cnn(step, &environments, model),
                }
            }
            Learner::Mc | Learner::Td => {
                self.state.observed_slots += Self::slots_of_iteration(step.config);
                let Model::Cnn(model) = &mut self.state.model else {
                    unreachable!("the hyper-parameters require a convolutional network with this learner")
                };
                use_network(step, &self.rates, model)
            }
        }
    }

    /// Counts the arrivals that enter the network from outside, and estimates the arrival rates (equation 4 of the
    /// paper).
    fn observe(&mut self, step: &mut Step<'_>) -> Result<Rates, StudyError> {
        let (config, environments) = (step.config, step.config.environments);
        let State { arrived, observed_slots, .. } = &mut self.state;
        let each = (config.observed_slots as usize).div_ceil(environments);
        let mut numbers = vec![0_i128; arrived.len() + 1];
        for environment in step.group.own(environments) {
            let rng = stream(config.seed, Purpose::Arrivals, index(config, step.iteration, environment));
            let mut arrivals = Arrivals::new(&self.rates, rng);
            for _ in 0..each {
                numbers.iter_mut().zip(arrivals.draw()).for_each(|(sum, count)| *sum += i128::from(*count));
            }
            *numbers.last_mut().expect("the last number counts slots") += each as i128;
        }
        step.group.sum(&mut numbers)?;
        arrived.iter_mut().zip(&numbers).for_each(|(sum, count)| *sum += *count as u64);
        *observed_slots += numbers[arrived.len()] as u64;
        let slots = *observed_slots as f64;
        let estimate = arrived.iter().map(|count| *count as f64 / slots).collect();
        Rates::new(self.rates.shape(), estimate)
    }

    /// Simulates slots under the current policy with the estimated rates. Returns `None` if the simulation was stopped
    /// early.
    fn simulate(&self, step: &mut Step<'_>, estimate: &Rates) -> Option<Vec<Environment>> {
        let config = step.config;
        let slots = config.slots_with_window();
        let mut lockstep = Lockstep::new(
            config,
            (self.state.model.value(), estimate),
            &own_indices(step),
            [Purpose::Actions, Purpose::SimulatedArrivals],
        );
        for slot in 0..slots {
            if step.is_stopped() {
                return None;
            }
            step.show("simulating", slot as u64, slots as u64);
            lockstep.slot(config.epsilon, config.memory());
        }
        Some(lockstep.environments)
    }

    /// Tests the current policy on the network itself, without random links. Returns the numbers of packets before and
    /// after arrivals, and the lower bounds on these numbers under any policy, all averaged over slots and
    /// environments. Returns `None` if the test was stopped early.
    fn test(&self, step: &mut Step<'_>) -> Result<Option<[f64; 4]>, StudyError> {
        let (config, shape) = (step.config, self.rates.shape());
        let own = step.group.own(config.environments);
        // The tests of all iterations use the same arrivals, so differences between test results are due to the
        // policies.
        let arrivals =
            |environment| Arrivals::new(&self.rates, stream(config.seed, Purpose::Evaluation, environment));
        let ties = |environment| stream(config.seed, Purpose::Evaluation, config.environments + environment);
        let mut tests: Vec<_> =
            own.clone().map(|environment| Test::new(shape, arrivals(environment))).collect();
        let mut policy =
            Greedy::new(shape, self.state.model.value(), config.exits_first, own.map(ties).collect());
        let mut starts = vec![Queues::empty(shape); tests.len()];
        for slot in 0..config.test_slots {
            if step.is_stopped() {
                return Ok(None);
            }
            step.show("testing", slot, config.test_slots);
            tests.iter_mut().zip(&mut starts).for_each(|(test, start)| test.begin_slot(start));
            policy.route_all(&starts, 0.0);
            for (test, lane) in tests.iter_mut().zip(policy.lanes()) {
                test.end_slot(lane);
            }
        }
        let mut sums = [0_i128; 4];
        for test in &tests {
            sums.iter_mut().zip(test.meter.sums()).for_each(|(sum, part)| *sum += i128::from(part));
        }
        step.group.sum(&mut sums)?;
        let slots = (config.test_slots * config.environments as u64) as f64;
        Ok(Some(sums.map(|sum| sum as f64 / slots)))
    }
}

impl Study for RoutingStudy {
    const ALGORITHM: &'static str = "route";
    type Config = RoutingConfig;
    type Task = Task;
    type Iteration = Iteration;
    type State = State;

    fn vector_len(config: &RoutingConfig) -> Result<usize, StudyError> {
        let shape = config.shape()?;
        let gradient = match config.value {
            ValueKind::Linear => 0,
            ValueKind::Cnn => config.network.parameters(shape)?,
        };
        let numbers = (shape.links() + 1).max(LinearFit::new(shape).sums_len());
        Ok(gradient.max(numbers * LIMBS))
    }

    fn new(config: &RoutingConfig, Task { rates, threads }: Task) -> Result<Self, StudyError> {
        let shape = rates.shape();
        if shape != config.shape()? {
            let field = "number of switches in the rates";
            return Err(StudyError::field(field, shape.switches(), config.switches.to_string()));
        }
        let model = Model::new(config, threads)?;
        Ok(Self { rates, state: State { model, arrived: vec![0; shape.links()], observed_slots: 0 } })
    }

    fn state(&mut self) -> &mut State {
        &mut self.state
    }

    fn parameters(&self) -> &[f32] {
        self.state.model.parameters()
    }

    fn iterate(&mut self, step: &mut Step<'_>) -> Result<Option<Iteration>, StudyError> {
        let Some(learnt) = self.learn(step)? else { return Ok(None) };
        let Some([queued, after, bound_queued, bound_after]) = self.test(step)? else { return Ok(None) };
        let simulated = match step.config.learner {
            Learner::Mlpi => step.iteration * Self::slots_of_iteration(step.config),
            Learner::Mc | Learner::Td => 0,
        };
        let rate = self.rates.total();
        Ok(Some(Iteration {
            iteration: step.iteration,
            network_slots: self.state.observed_slots,
            simulated_slots: simulated,
            states: learnt.states,
            explained: learnt.explained,
            queued,
            delay: after / rate,
            bound_queued,
            bound_delay: bound_after / rate,
            seconds: step.seconds(),
        }))
    }

    fn is_better(_: &RoutingConfig, new: &Iteration, best: Option<&Iteration>) -> bool {
        best.is_none_or(|best| new.queued < best.queued)
    }

    fn environment(&self) -> String {
        self.rates.shape().to_string()
    }

    fn hash_task(&self, hash: &mut Sha256) {
        hash.update(self.rates.to_csv());
    }

    fn hash_state(&self, hash: &mut Sha256) {
        hash.update(bytemuck::cast_slice::<u64, u8>(&self.state.arrived));
    }

    fn write(&self, _: &RoutingConfig, writer: &mut Writer) {
        let State { model, arrived, observed_slots } = &self.state;
        writer.doubles("rates", self.rates.all());
        writer.doubles("arrived", &arrived.iter().map(|count| *count as f64).collect::<Vec<_>>());
        writer.text("observed_slots", observed_slots.to_string());
        model.write(writer);
    }

    fn read(&mut self, _: &RoutingConfig, reader: &Reader<'_>) -> Result<(), StudyError> {
        let shape = self.rates.shape();
        self.state.model.read(shape, reader)?;
        let arrived = reader.doubles("arrived", shape.links())?;
        self.state.arrived = arrived.into_iter().map(|count| count as u64).collect();
        self.state.observed_slots = reader.number("observed_slots")?;
        Ok(())
    }

    fn write_best(_: &RoutingConfig, parameters: &[f32], writer: &mut Writer) {
        writer.floats("best", vec![parameters.len()], parameters);
    }

    fn read_best(config: &RoutingConfig, reader: &Reader<'_>) -> Result<Vec<f32>, StudyError> {
        Ok(reader.floats("best", Model::parameter_count(config)?)?)
    }

    fn check_file(config: &RoutingConfig, reader: &Reader<'_>) -> Result<(), StudyError> {
        if config.value == ValueKind::Cnn {
            let count = config.network.parameters(config.shape()?);
            let count = count.map_err(|error| reader.refuse(format!("its hyper-parameters: {error}")))?;
            reader.check_parameters(count)?;
        }
        read_rates(config, reader).map(|_| ())
    }
}

/// Reads the arrival rates from a checkpoint.
fn read_rates(config: &RoutingConfig, reader: &Reader<'_>) -> Result<Rates, StudyError> {
    let shape = config.shape()?;
    let rates = Rates::new(shape, reader.doubles("rates", shape.links())?);
    rates.map_err(|error| reader.refuse(error.to_string()).into())
}

/// Returns the random-stream numbers of this worker's environments.
fn own_indices(step: &Step<'_>) -> Vec<usize> {
    let own = step.group.own(step.config.environments);
    own.map(|environment| index(step.config, step.iteration, environment)).collect()
}

/// Returns the number of an environment's random stream in an iteration.
pub(super) fn index(config: &RoutingConfig, iteration: u64, environment: usize) -> usize {
    iteration as usize * config.environments + environment
}

/// Result of a fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct FitResult {
    pub(super) states: u64,
    pub(super) explained: Option<f64>,
}
