//! Policy iteration (algorithm 1 of the paper): simulate or use the network, learn what states are worth, be greedy.
//!
//! The environments of a job are numbered and have random streams of their own, as those of
//! [`algorithms`](iswitch_learn::algorithms) have; the workers divide them. Counts of arrivals, sums of regressions and
//! of tests are added as integers, so that a linear value is the same to the last bit however many workers there are;
//! gradients of a network are added as floats.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::config::{Learner, RoutingConfig, ValueKind};
use super::fit::{FitTask, fit_cnn, fit_linear};
use super::lockstep::{Lockstep, Test};
use super::model::Model;
use super::network::Queues;
use super::online::use_network;
use super::policy::Greedy;
use super::rates::{Arrivals, Rates};
use super::trained::history;
use super::trajectory::Environment;
use super::value::{LinearFit, Value};
use super::{ALGORITHM, RoutingError};
use iswitch::GradientAggregator;
use iswitch_learn::algorithms::checkpoint::{self, Reader, RunKind, Writer};
use iswitch_learn::algorithms::exact::LIMBS;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::algorithms::trainer::{Place, first_bytes};
use iswitch_learn::group::Group;

/// What one iteration came to. The keys are an interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// From 0, which is the policy before any learning.
    pub iteration: u64,
    /// Slots of the network itself that were needed so far, without tests.
    pub network_slots: u64,
    /// Slots that were simulated so far.
    pub simulated_slots: u64,
    /// States that were learnt from in this iteration.
    pub states: u64,
    /// Share of the variance of discounted costs that the value explains; none where it was not fitted.
    pub explained: Option<f64>,
    /// Of the test: packets in the network before arrivals, mean over slots and environments.
    pub queued: f64,
    /// Of the test: mean delay in slots, by Little's law.
    pub delay: f64,
    /// What no policy could fall below in the test.
    pub bound_queued: f64,
    /// And in delay.
    pub bound_delay: f64,
    /// How long the iteration took, in seconds.
    pub seconds: f64,
}

/// What goes on within an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Such as `simulating`.
    pub name: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// Of how much.
    pub total: u64,
}

/// Is told now and then what goes on.
pub type OnStage<'a> = &'a mut dyn FnMut(Stage);

/// The best policy so far.
#[derive(Clone, Debug)]
struct Best {
    iteration: u64,
    queued: f64,
    parameters: Vec<f32>,
}

/// A training of one worker.
pub struct Training {
    config: RoutingConfig,
    rates: Rates,
    group: Group,
    model: Model,
    best: Option<Best>,
    /// Packets that arrived in the observed slots, `[switch, class]`.
    arrived: Vec<u64>,
    observed_slots: u64,
    history: Vec<Iteration>,
    stop: Arc<AtomicBool>,
    has_agreed: bool,
}

/// Floats in the vectors that the workers of a job sum.
///
/// # Errors
/// If a hyper-parameter is out of range.
pub fn vector_len(config: &RoutingConfig) -> Result<usize, RoutingError> {
    config.check()?;
    let shape = config.shape()?;
    let gradient = match config.value {
        ValueKind::Linear => 0,
        ValueKind::Cnn => config.network.parameters(shape)?,
    };
    let numbers = (shape.links() + 1).max(LinearFit::new(shape).sums_len());
    Ok(gradient.max(numbers * LIMBS))
}

impl Training {
    /// At its start. `aggregator` must sum vectors of [`vector_len`] floats; matrix products take up to `threads`.
    ///
    /// # Errors
    /// If a hyper-parameter is out of range or the rates are of another network.
    pub fn new(
        config: RoutingConfig,
        rates: Rates,
        place: Place,
        threads: usize,
        aggregator: Box<dyn GradientAggregator>,
    ) -> Result<Self, RoutingError> {
        let len = vector_len(&config)?;
        if rates.shape() != config.shape()? {
            let (field, actual) = ("switches of the rates", rates.shape().switches());
            return Err(RoutingError::field(field, actual, config.switches.to_string()));
        }
        let group = Group::new(place, config.environments, len, aggregator)?;
        let model = Model::new(&config, threads)?;
        let links = rates.shape().links();
        Ok(Self {
            config,
            rates,
            group,
            model,
            best: None,
            arrived: vec![0; links],
            observed_slots: 0,
            history: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            has_agreed: false,
        })
    }

    /// The hyper-parameters.
    pub fn config(&self) -> &RoutingConfig {
        &self.config
    }

    /// The network's arrival rates.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// This worker's place.
    pub fn place(&self) -> Place {
        self.group.place()
    }

    /// What sums.
    pub fn aggregator(&self) -> &dyn GradientAggregator {
        self.group.aggregator()
    }

    /// Set it to end an iteration before its end: nothing of it is kept.
    pub fn stop_handle(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// All iterations so far.
    pub fn history(&self) -> &[Iteration] {
        &self.history
    }

    /// The iteration with the best test so far.
    pub fn best(&self) -> Option<&Iteration> {
        let best = self.best.as_ref()?;
        self.history.iter().find(|iteration| iteration.iteration == best.iteration)
    }

    /// The policy with the best test so far; ties between links are the draws of `seed`.
    pub fn best_policy(&self, seed: u64) -> Option<Greedy<Box<dyn Value>>> {
        let best = self.best.as_ref()?;
        Some(self.model.clone().into_policy(&self.config, self.rates.shape(), &best.parameters, seed))
    }

    /// All iterations are done.
    pub fn is_finished(&self) -> bool {
        self.history.len() as u64 > self.config.iterations
    }

    /// The next iteration, together with the other workers; the first is the test of the policy before any learning.
    /// Nothing if it was stopped before its end.
    ///
    /// # Errors
    /// If an aggregation fails, or the workers were started with different settings.
    pub fn advance(&mut self, on_stage: OnStage<'_>) -> Result<Option<&Iteration>, RoutingError> {
        if !self.has_agreed {
            self.group.agree([self.job_digest(), self.digest()])?;
            self.has_agreed = true;
        }
        let begin = Instant::now();
        let iteration = self.history.len() as u64;
        let mut learnt = Learnt { states: 0, explained: None };
        if iteration > 0 {
            let Some(of_iteration) = self.learn(iteration, on_stage)? else { return Ok(None) };
            learnt = of_iteration;
        }
        let Some([queued, after, bound_queued, bound_after]) = self.test(on_stage)? else { return Ok(None) };
        let is_model_based = self.config.learner == Learner::Mlpi;
        let rate = self.rates.total();
        let record = Iteration {
            iteration,
            network_slots: self.observed_slots,
            simulated_slots: if is_model_based { iteration * self.slots_of_iteration() } else { 0 },
            states: learnt.states,
            explained: learnt.explained,
            queued,
            delay: after / rate,
            bound_queued,
            bound_delay: bound_after / rate,
            seconds: begin.elapsed().as_secs_f64(),
        };
        self.keep_best(&record);
        self.history.push(record);
        Ok(self.history.last())
    }

    /// Slots of an iteration in all environments.
    fn slots_of_iteration(&self) -> u64 {
        (self.config.slots_with_window() * self.config.environments) as u64
    }

    fn learn(&mut self, iteration: u64, on_stage: OnStage<'_>) -> Result<Option<Learnt>, RoutingError> {
        if let Some(best) = self.best.as_ref().filter(|_| self.config.continue_best) {
            let parameters = best.parameters.clone();
            self.model.set_parameters(self.rates.shape(), &parameters);
        }
        match self.config.learner {
            Learner::Mlpi => {
                let estimate = self.observe(iteration)?;
                let Some(environments) = self.simulate(iteration, &estimate, on_stage) else {
                    return Ok(None);
                };
                let task = FitTask {
                    config: &self.config,
                    iteration,
                    environments: &environments,
                    stop: &self.stop,
                };
                match &mut self.model {
                    Model::Linear { value, fit } => fit_linear(&task, value, fit, &mut self.group).map(Some),
                    Model::Cnn(model) => fit_cnn(&task, model, &mut self.group, on_stage),
                }
            }
            Learner::Mc | Learner::Td => {
                self.observed_slots += self.slots_of_iteration();
                let Model::Cnn(model) = &mut self.model else {
                    unreachable!("the hyper-parameters were checked")
                };
                let network = (&self.config, &self.rates, iteration);
                use_network(network, model, &mut self.group, &self.stop, on_stage)
            }
        }
    }

    /// Counts arrivals at the network itself and estimates its rates (equation 4 of the paper).
    fn observe(&mut self, iteration: u64) -> Result<Rates, RoutingError> {
        let environments = self.config.environments;
        let each = (self.config.observed_slots as usize).div_ceil(environments);
        let mut numbers = vec![0_i128; self.arrived.len() + 1];
        for environment in self.group.own(environments) {
            let rng =
                stream(self.config.seed, Purpose::Arrivals, index(&self.config, iteration, environment));
            let mut arrivals = Arrivals::new(&self.rates, rng);
            for _ in 0..each {
                numbers.iter_mut().zip(arrivals.draw()).for_each(|(sum, count)| *sum += i128::from(*count));
            }
            *numbers.last_mut().expect("there is one more") += each as i128;
        }
        self.group.sum(&mut numbers)?;
        self.arrived.iter_mut().zip(&numbers).for_each(|(sum, count)| *sum += *count as u64);
        self.observed_slots += numbers[self.arrived.len()] as u64;
        let slots = self.observed_slots as f64;
        let estimate = self.arrived.iter().map(|count| *count as f64 / slots).collect();
        Rates::new(self.rates.shape(), estimate)
    }

    /// Simulated slots under the present policy and the estimated rates.
    fn simulate(&self, iteration: u64, estimate: &Rates, on_stage: OnStage<'_>) -> Option<Vec<Environment>> {
        let slots = self.config.slots_with_window();
        let mut lockstep = Lockstep::new(
            &self.config,
            (self.model.value(), estimate),
            &self.own_indices(iteration),
            [Purpose::Actions, Purpose::SimulatedArrivals],
        );
        for slot in 0..slots {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            on_stage(Stage { name: "simulating", done: slot as u64, total: slots as u64 });
            lockstep.slot(self.config.epsilon, self.config.memory());
        }
        Some(lockstep.environments)
    }

    fn own_indices(&self, iteration: u64) -> Vec<usize> {
        let own = self.group.own(self.config.environments);
        own.map(|environment| index(&self.config, iteration, environment)).collect()
    }

    /// Uses the network without random links: packets before and after arrivals and what they would be under any policy
    /// at least, means over slots and environments. Nothing if it was stopped.
    fn test(&mut self, on_stage: OnStage<'_>) -> Result<Option<[f64; 4]>, RoutingError> {
        let (config, shape) = (&self.config, self.rates.shape());
        let own = self.group.own(config.environments);
        // The same arrivals in each iteration, so that policies and not arrivals are compared.
        let arrivals =
            |environment| Arrivals::new(&self.rates, stream(config.seed, Purpose::Evaluation, environment));
        let ties = |environment| stream(config.seed, Purpose::Evaluation, config.environments + environment);
        let mut tests: Vec<_> =
            own.clone().map(|environment| Test::new(shape, arrivals(environment))).collect();
        let mut policy = Greedy::new(shape, self.model.value(), config.exits_first, own.map(ties).collect());
        let mut starts = vec![Queues::empty(shape); tests.len()];
        for slot in 0..config.test_slots {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            on_stage(Stage { name: "testing", done: slot, total: config.test_slots });
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
        self.group.sum(&mut sums)?;
        let slots = (self.config.test_slots * self.config.environments as u64) as f64;
        Ok(Some(sums.map(|sum| sum as f64 / slots)))
    }

    fn keep_best(&mut self, record: &Iteration) {
        if self.best.as_ref().is_none_or(|best| record.queued < best.queued) {
            let parameters = self.model.parameters().to_vec();
            self.best = Some(Best { iteration: record.iteration, queued: record.queued, parameters });
        }
    }

    /// Digest of what all workers have alike.
    pub fn digest(&self) -> u64 {
        let mut hash = Sha256::new();
        hash.update(bytemuck::cast_slice::<f32, u8>(self.model.parameters()));
        hash.update(bytemuck::cast_slice::<u64, u8>(&self.arrived));
        hash.update(self.history.len().to_le_bytes());
        for record in &self.history {
            hash.update(record.queued.to_le_bytes());
        }
        first_bytes(hash)
    }

    /// Whether all workers have the same; all must call it at the same time.
    ///
    /// # Errors
    /// If the aggregation fails.
    pub fn replicas_identical(&mut self) -> Result<bool, RoutingError> {
        Ok(self.group.is_identical(self.digest())?)
    }

    /// Digest of what must be the same for all workers from the start.
    fn job_digest(&self) -> u64 {
        first_bytes(Sha256::new().chain_update(self.config_json()).chain_update(self.rates.to_csv()))
    }

    fn config_json(&self) -> String {
        serde_json::to_string(&self.config).expect("hyper-parameters are plain data")
    }

    /// Saves the state after the last iteration; all workers have the same.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, directory: &std::path::Path) -> Result<(), RoutingError> {
        let config = self.config_json();
        let shape = self.rates.shape();
        let network = format!("{} stages of {} switches", shape.stages(), shape.switches());
        let run = RunKind { algorithm: ALGORITHM, env: &network, config: &config };
        checkpoint::save_model(directory, &run, self.history.len() as u64, &|writer| self.write(writer))?;
        Ok(())
    }

    fn write(&self, writer: &mut Writer) {
        writer.doubles("rates", self.rates.all());
        let arrived: Vec<_> = self.arrived.iter().map(|count| *count as f64).collect();
        writer.doubles("arrived", &arrived);
        writer.text("observed_slots", self.observed_slots.to_string());
        writer.text("history", serde_json::to_string(&self.history).expect("records are plain data"));
        self.model.write(writer);
        if let Some(best) = &self.best {
            writer.floats("best", vec![best.parameters.len()], &best.parameters);
            writer.text("best_iteration", best.iteration.to_string());
        }
    }

    /// Goes on from what [`Self::save`] wrote, with its hyper-parameters; see [`Saved`](super::trained::Saved).
    pub(super) fn restore(&mut self, reader: &Reader<'_>) -> Result<(), RoutingError> {
        let shape = self.rates.shape();
        self.model.read(shape, reader)?;
        let arrived = reader.doubles("arrived", shape.links())?;
        self.arrived = arrived.into_iter().map(|count| count as u64).collect();
        self.observed_slots = reader.number("observed_slots")?;
        self.history = history(reader)?;
        if reader.has("best") {
            let iteration = reader.number("best_iteration")?;
            let parameters = reader.floats("best", self.model.parameters().len())?;
            let queued = self.history.iter().find(|record| record.iteration == iteration);
            let queued =
                queued.ok_or_else(|| reader.refuse("its best iteration is not in its history".to_owned()))?;
            self.best = Some(Best { iteration, queued: queued.queued, parameters });
        }
        Ok(())
    }
}

/// The number of an environment's random stream in an iteration.
pub(super) fn index(config: &RoutingConfig, iteration: u64, environment: usize) -> usize {
    iteration as usize * config.environments + environment
}

/// What a fit came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learnt {
    pub(super) states: u64,
    pub(super) explained: Option<f64>,
}
