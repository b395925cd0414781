//! Environment in which a user-supplied agent places the jobs of a cluster: whenever a job can start, the agent picks
//! its GPUs one by one. The candidates are the GPUs of the cluster; a GPU is valid if it is free and has not been
//! picked yet. The rules of the queue determine which job is next; the agent cannot make a job wait.
//!
//! The cost between two decisions depends on the [`Objective`]. For the makespan, it is the elapsed time in hours. For
//! the completion time, it is the increase, in hours, of the mean time that the jobs have spent in the system so far:
//! the time from a job's arrival to its completion, or to the current time if the job is not complete. The costs of a
//! complete episode therefore add up to its makespan or to its mean completion time.

use std::collections::BTreeMap;

use self_cell::self_cell;

use super::cluster::Level;
use super::failure::{FailureDraw, YEAR};
use super::learned::features::{MOST, PICK_FEATURES, PICK_NAMES, View, scaled_count};
use super::options::Checkpoint;
use super::policy::{Order, Placer, PolicySpec};
use super::simulation::{self, Scenario, Simulation};
use super::state::State;
use super::workload::Workload;
use iswitch_learn::algorithms::streams::Purpose;
use iswitch_study::StudyError;
use iswitch_study::environment::{End, Environment, Figures, Outcome, check_choice, no_decision, row_names};

/// Names of the features that the environment adds to those of a GPU: whether the candidate is valid; the fractions of
/// the job's GPUs that have already been picked on its node, in its rack and behind its switch; and for each of these
/// failure domains, half the logarithm of 1 plus the number of its failures expected during the job's remaining work.
const ADDED: [&str; 7] = [
    "available",
    "picked_on_node",
    "picked_in_rack",
    "picked_at_switch",
    "node_failures",
    "rack_failures",
    "switch_failures",
];
/// Number of features of a candidate: those in [`ADDED`], and the [`PICK_FEATURES`] features of a GPU.
const ROW: usize = PICK_FEATURES + ADDED.len();
/// Names of the features of a candidate.
pub const ROW_NAMES: [&str; ROW] = row_names(&ADDED, &PICK_NAMES);
/// Names of the values in a candidate's details. `failures_per_year` includes the failures of the GPU's node, rack and
/// switch, each of which is also a separate value.
const DETAILS: [&str; 11] = [
    "gpu",
    "node",
    "rack",
    "switch",
    "failures_per_year",
    "node_failures_per_year",
    "rack_failures_per_year",
    "switch_failures_per_year",
    "age_years",
    "job_gpus",
    "job_seconds_left",
];
/// Maximum number of GPUs of the cluster; an observation has one row for each GPU.
pub const GPUS_MAX: usize = 4096;
const HOUR: f64 = 3600.0;

/// Quantity to minimise. The rewards of a complete episode add up to the negative of this quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Objective {
    /// Mean completion time of the jobs, in hours.
    CompletionTime,
    /// Makespan, in hours.
    Makespan,
}

/// Settings of the environment, in addition to its workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnvironmentOptions {
    /// Factor by which all failure rates are multiplied.
    pub rate_factor: f64,
    /// Checkpoint setting of jobs.
    pub checkpoint: Checkpoint,
    /// Order of the jobs in the queue.
    pub order: Order,
    /// Quantity to minimise.
    pub objective: Objective,
}

/// Cluster in which an agent picks the GPUs of each job.
pub struct PlacementEnvironment {
    workload: Workload,
    options: EnvironmentOptions,
    episode: Option<Episode>,
}

impl PlacementEnvironment {
    /// Creates the environment.
    ///
    /// # Errors
    /// Fails if the workload and the options do not describe a valid scenario, or if the cluster has a single GPU or
    /// more than [`GPUS_MAX`].
    pub fn new(workload: Workload, options: EnvironmentOptions) -> Result<Self, StudyError> {
        let gpus = workload.cluster.gpus();
        if !(2..=GPUS_MAX).contains(&gpus) {
            return Err(StudyError::field("gpus", gpus, format!("2 to {GPUS_MAX}")));
        }
        workload.scenario(0, options.rate_factor, options.checkpoint)?;
        Ok(Self { workload, options, episode: None })
    }

    fn open(&self) -> Option<&Episode> {
        self.episode.as_ref().filter(|episode| episode.results.is_none())
    }

    /// Returns the current episode.
    ///
    /// # Errors
    /// Fails if no episode has begun, or if it has ended.
    fn open_mut(&mut self) -> Result<&mut Episode, StudyError> {
        let has_begun = self.episode.is_some();
        let episode = self.episode.as_mut().filter(|episode| episode.results.is_none());
        episode.ok_or_else(|| no_decision(has_begun))
    }
}

impl Environment for PlacementEnvironment {
    fn features(&self) -> &'static [&'static str] {
        &ROW_NAMES
    }

    fn bounds(&self) -> (f32, f32) {
        (-MOST as f32, MOST as f32)
    }

    fn detail_names(&self) -> &'static [&'static str] {
        &DETAILS
    }

    fn candidates(&self) -> usize {
        self.workload.cluster.gpus()
    }

    fn reset(&mut self, draw: u64) -> Result<(), StudyError> {
        let EnvironmentOptions { rate_factor, checkpoint, .. } = self.options;
        let scenario = self.workload.scenario(draw, rate_factor, checkpoint)?;
        let mut episode = Episode::new(scenario, draw, self.options);
        if episode.seek()? != End::Open {
            let expected = "at least 1: a job must start while more GPUs are free than it needs";
            return Err(StudyError::field("number of decisions", 0, expected));
        }
        self.episode = Some(episode);
        Ok(())
    }

    fn is_valid(&self, candidate: usize) -> bool {
        self.open().is_some_and(|episode| episode.is_valid(candidate))
    }

    fn observe(&self, rows: &mut [f32]) {
        let Some(episode) = self.open() else { return };
        let state = episode.simulation().state();
        for (gpu, features) in &episode.features {
            if episode.is_valid(*gpu) {
                let row = &mut rows[gpu * ROW..][..ROW];
                row[0] = 1.0;
                for (at, level) in Level::ALL.into_iter().enumerate() {
                    row[1 + at] = episode.picked_in(state, level, *gpu);
                    row[1 + Level::ALL.len() + at] = episode.expected_failures(state, level, *gpu);
                }
                row[ADDED.len()..].copy_from_slice(features);
            }
        }
    }

    fn details(&self) -> Vec<Option<Vec<f64>>> {
        let of = |gpu: usize| {
            let episode = self.open().filter(|episode| episode.is_valid(gpu))?;
            let state = episode.simulation().state();
            let (job, size) = episode.candidate?;
            let mut values = vec![gpu as f64];
            values.extend(Level::ALL.map(|level| state.cluster().domain_of(level, gpu) as f64));
            values.push(state.rate(gpu) * YEAR);
            values.extend(Level::ALL.map(|level| state.rate_at(level, gpu) * YEAR));
            values.extend([state.age(gpu), size as f64, state.seconds_left(job, size)]);
            Some(values)
        };
        (0..self.candidates()).map(of).collect()
    }

    fn choose(&mut self, candidate: usize) -> Result<Outcome, StudyError> {
        check_choice(self, self.episode.is_some(), candidate)?;
        let episode = self.open_mut()?;
        episode.picks.push(candidate);
        let end = episode.seek()?;
        Ok(Outcome { reward: episode.reward(), end })
    }

    fn results(&self) -> Option<Figures> {
        self.episode.as_ref()?.results.clone()
    }

    fn rule_choice(&mut self, rule: &str) -> Result<usize, StudyError> {
        self.open_mut()?.rule_choice(rule)
    }

    fn run_rule(&self, rule: &str) -> Result<Figures, StudyError> {
        let episode = self.episode.as_ref().ok_or_else(|| no_decision(false))?;
        let outcome = rule.parse::<PolicySpec>()?.run(episode.simulated.borrow_owner(), episode.draw)?;
        Ok(figures(&outcome))
    }
}

fn figures(outcome: &simulation::Outcome) -> Figures {
    let figures = [
        ("makespan_s", Some(outcome.makespan)),
        ("mean_jct_s", outcome.mean_completion_time()),
        ("p95_jct_s", outcome.completion_time_percentile(0.95)),
        ("failures", Some(outcome.failures as f64)),
        ("hits", Some(outcome.hits as f64)),
        ("unfinished_jobs", Some(outcome.unfinished() as f64)),
        ("lost_gpu_s", Some(outcome.gpu_time.lost)),
        ("overhead_gpu_s", Some(outcome.gpu_time.overhead)),
        ("utilisation", Some(outcome.gpu_time.utilisation())),
        ("ettr", outcome.ettr),
    ];
    figures.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

type Paused<'a> = Option<Simulation<'a, 'static>>;

self_cell!(
    /// Scenario and its simulation, which is `None` after the end of the episode.
    struct Simulated {
        owner: Scenario,
        #[covariant]
        dependent: Paused,
    }
);

/// Placer that only orders the queue.
struct Queue(Order);

impl Placer for Queue {
    fn order(&mut self, state: &State<'_>, queue: &mut [usize]) {
        self.0.sort(state, queue);
    }

    /// Places no job, because the agent picks the GPUs.
    fn place(&mut self, _state: &State<'_>, _job: usize, _size: usize, _picks: &mut Vec<usize>) {}
}

/// Rule that picks GPUs for the same jobs as the agent.
struct Follower {
    placer: Box<dyn Placer>,
    /// GPUs that the rule picks for the current job, in order.
    picks: Vec<usize>,
}

impl Follower {
    fn place(&mut self, state: &State<'_>, (job, size): (usize, usize)) {
        self.picks.clear();
        self.placer.place(state, job, size, &mut self.picks);
    }
}

/// Episode with the jobs and failures of one draw.
struct Episode {
    draw: u64,
    simulated: Simulated,
    options: EnvironmentOptions,
    queue: Queue,
    /// Job to place and its number of GPUs.
    candidate: Option<(usize, usize)>,
    /// GPUs that have already been picked for this job.
    picks: Vec<usize>,
    /// Id and features of each GPU that was free when this job became the one to place.
    features: Vec<(usize, [f32; PICK_FEATURES])>,
    /// Sum of the costs, in hours.
    cost: f64,
    /// Part of the cost that previous rewards have accounted for.
    paid: f64,
    followers: BTreeMap<String, Follower>,
    /// Results; present after the end of the simulation.
    results: Option<Figures>,
}

impl Episode {
    fn new(scenario: Scenario, draw: u64, options: EnvironmentOptions) -> Self {
        let simulated = Simulated::new(scenario, |scenario| {
            let failures = FailureDraw::new(scenario.failures(), draw, Purpose::Failures, 0);
            Some(Simulation::new(scenario, failures, None))
        });
        Self {
            draw,
            simulated,
            options,
            queue: Queue(options.order),
            candidate: None,
            picks: Vec::new(),
            features: Vec::new(),
            cost: 0.0,
            paid: 0.0,
            followers: BTreeMap::new(),
            results: None,
        }
    }

    /// Returns the simulation, which exists until the episode ends.
    fn simulation(&self) -> &Simulation<'_, 'static> {
        self.simulated.borrow_dependent().as_ref().expect("the episode must be open")
    }

    fn is_valid(&self, gpu: usize) -> bool {
        self.candidate.is_some()
            && self.simulation().state().gpus.get(gpu).is_some_and(super::state::Gpu::is_free)
            && !self.picks.contains(&gpu)
    }

    /// Returns the fraction of the job's GPUs that have already been picked in the failure domain of `gpu` at a level.
    fn picked_in(&self, state: &State<'_>, level: Level, gpu: usize) -> f32 {
        let domain = |gpu: usize| state.cluster().domain_of(level, gpu);
        let size = self.candidate.map_or(1, |(_, size)| size);
        self.picks.iter().filter(|picked| domain(**picked) == domain(gpu)).count() as f32 / size as f32
    }

    /// Returns the feature for the number of failures expected, during the remaining work of the job, in the failure
    /// domain that contains `gpu` at a level.
    fn expected_failures(&self, state: &State<'_>, level: Level, gpu: usize) -> f32 {
        let left = self.candidate.map_or(0.0, |(job, _)| state.progress[job].left);
        scaled_count(state.rate_at(level, gpu) * left)
    }

    /// Returns the negated cost since the previous call, or since the start of the episode if this is the first call.
    fn reward(&mut self) -> f64 {
        let paid = std::mem::replace(&mut self.paid, self.cost);
        paid - self.cost
    }

    /// Simulates until the agent must pick one of several GPUs, or until the end of the simulation.
    fn seek(&mut self) -> Result<End, StudyError> {
        loop {
            if let Some((_, size)) = self.candidate {
                let mut left = (0..self.simulation().state().gpus.len()).filter(|gpu| self.is_valid(*gpu));
                if self.picks.len() < size {
                    let (first, second) = (left.next(), left.next());
                    let (Some(only), None) = (first, second) else { return Ok(End::Open) };
                    self.picks.push(only);
                    continue;
                }
                let picks = std::mem::take(&mut self.picks);
                self.candidate = None;
                self.simulate(|simulation, _| simulation.start(&picks))?;
            }
            self.candidate = self.simulate(|simulation, queue| simulation.next(queue))?;
            self.cost = self.cost_now();
            if self.candidate.is_none() {
                return Ok(self.finish());
            }
            self.load();
        }
    }

    fn simulate<T>(
        &mut self,
        act: impl FnOnce(&mut Simulation<'_, 'static>, &mut Queue) -> Result<T, StudyError>,
    ) -> Result<T, StudyError> {
        let queue = &mut self.queue;
        self.simulated.with_dependent_mut(|_, simulation| {
            act(simulation.as_mut().expect("the episode must be open"), queue)
        })
    }

    /// Returns the sum of all costs until now, in hours.
    fn cost_now(&self) -> f64 {
        let (state, scenario) = (self.simulation().state(), self.simulated.borrow_owner());
        match self.options.objective {
            Objective::Makespan => state.time / HOUR,
            Objective::CompletionTime => {
                let arrived = scenario.jobs().iter().zip(&state.progress);
                let until_now =
                    arrived.map(|(job, it)| (it.completed.unwrap_or(state.time) - job.arrival()).max(0.0));
                until_now.sum::<f64>() / scenario.jobs().len() as f64 / HOUR
            }
        }
    }

    fn finish(&mut self) -> End {
        let simulation = self.simulated.with_dependent_mut(|_, it| it.take().map(Simulation::finish));
        let outcome = simulation.expect("the episode must be open");
        self.results = Some(figures(&outcome));
        if outcome.unfinished() == 0 { End::Complete } else { End::Limit }
    }

    /// Computes the features for the job to place, and asks all followers for their picks.
    fn load(&mut self) {
        let Some((job, size)) = self.candidate else { return };
        let state = self.simulated.borrow_dependent().as_ref().expect("the episode must be open").state();
        let free: Vec<usize> = state.free_gpus().collect();
        let rows = View::of(state).of_gpus(state, job, size, &free);
        let row = |row: &[f32]| std::array::from_fn(|at| row[at]);
        self.features = free.into_iter().zip(rows.chunks_exact(PICK_FEATURES).map(row)).collect();
        self.followers.values_mut().for_each(|follower| follower.place(state, (job, size)));
    }

    fn rule_choice(&mut self, rule: &str) -> Result<usize, StudyError> {
        let candidate = self.candidate.ok_or_else(|| no_decision(true))?;
        if !self.followers.contains_key(rule) {
            let spec: PolicySpec = rule.parse()?;
            let order = spec.picks_in().ok_or_else(|| {
                StudyError::field(
                    "rule",
                    rule,
                    "a rule that starts jobs in queue order and decides only their GPUs",
                )
            })?;
            if order != self.options.order {
                let expected = format!("a rule with the order {}, not {order}", self.options.order);
                return Err(StudyError::field("rule", rule, expected));
            }
            let placer = spec.build(self.simulated.borrow_owner(), self.draw)?;
            let mut follower = Follower { placer, picks: Vec::new() };
            follower.place(self.simulation().state(), candidate);
            self.followers.insert(rule.to_owned(), follower);
        }
        let picks = self.followers[rule].picks.iter().copied();
        picks
            .into_iter()
            .find(|gpu| self.is_valid(*gpu))
            .ok_or_else(|| StudyError::field("rule", rule, "a rule that picks as many GPUs as the job needs"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cluster;
    use crate::Options;
    use crate::inputs::{FailuresInput, JobsInput};
    use crate::options::Queueing;
    use crate::workload::DomainFailures;

    const OPTIONS: EnvironmentOptions = EnvironmentOptions {
        rate_factor: 3000.0,
        checkpoint: Checkpoint::YoungDaly { cost: 60.0 },
        order: Order::Arrival,
        objective: Objective::CompletionTime,
    };

    fn workload(jobs: &JobsInput, options: Options) -> Workload {
        let cluster = Cluster::of_gpus(20, 8).unwrap();
        let failures = FailuresInput::default().load(&cluster).unwrap();
        let (jobs, _) = jobs.load(cluster.gpus()).unwrap();
        Workload { cluster, jobs, failures, domains: Vec::new(), options }
    }

    fn environment(options: EnvironmentOptions) -> PlacementEnvironment {
        let jobs = JobsInput { batch: Some(25), interarrival: Some(3000.0), ..JobsInput::default() };
        let rules = Options { queueing: Queueing::Easy, spread_slowdown: 1.2, ..Options::default() };
        PlacementEnvironment::new(workload(&jobs, rules), options).unwrap()
    }

    fn detail(name: &str) -> usize {
        DETAILS.iter().position(|other| *other == name).unwrap()
    }

    fn figure(figures: &Figures, name: &str) -> f64 {
        figures.iter().find(|(other, _)| *other == name).unwrap().1
    }

    /// Runs an episode in which `choose` makes all decisions. Returns the sum of the rewards, the reason for the end,
    /// and the results.
    fn drive(
        environment: &mut PlacementEnvironment,
        draw: u64,
        mut choose: impl FnMut(&mut PlacementEnvironment) -> usize,
    ) -> (f64, End, Figures) {
        environment.reset(draw).unwrap();
        let mut sum = 0.0;
        loop {
            let gpu = choose(environment);
            let Outcome { reward, end } = environment.choose(gpu).unwrap();
            sum += reward;
            if end != End::Open {
                return (sum, end, environment.results().unwrap());
            }
        }
    }

    #[test]
    fn a_rule_that_drives_the_environment_has_its_own_results() {
        let rules = ["random", "first-fit", "best-fit", "pack", "spread", "rested", "reliable", "match"];
        let longest = EnvironmentOptions { order: Order::LongestFirst, ..OPTIONS };
        let cases = rules.iter().map(|rule| (OPTIONS, *rule)).chain([(longest, "longest-reliable")]);
        for (options, rule) in cases {
            let mut environment = environment(options);
            let (sum, end, results) = drive(&mut environment, 4, |it| it.rule_choice(rule).unwrap());
            assert_eq!(results, environment.run_rule(rule).unwrap(), "{rule}");
            assert_eq!(end, End::Complete);
            assert!(figure(&results, "hits") > 0.0);
            let mean = figure(&results, "mean_jct_s") / HOUR;
            assert!((sum + mean).abs() < 1e-9 * mean, "{rule}: {sum}, {mean}");
        }
    }

    #[test]
    fn the_lowest_rates_of_the_details_are_the_most_reliable_gpus() {
        let mut environment = environment(EnvironmentOptions { objective: Objective::Makespan, ..OPTIONS });
        let choose = |it: &mut PlacementEnvironment| {
            let details = it.details();
            let rate = |row: &[f64]| row[detail("failures_per_year")];
            let all = details.iter().enumerate().filter_map(|(gpu, row)| Some((gpu, rate(row.as_ref()?))));
            all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
        };
        let (sum, _, results) = drive(&mut environment, 5, choose);
        assert_eq!(results, environment.run_rule("reliable").unwrap());
        assert_ne!(results, environment.run_rule("random").unwrap());
        assert!((sum + figure(&results, "makespan_s") / HOUR).abs() < 1e-9 * -sum);
    }

    #[test]
    fn the_horizon_ends_an_episode_at_its_limit() {
        let jobs = JobsInput { batch: Some(30), ..JobsInput::default() };
        let options = Options { horizon: 7200.0, ..Options::default() };
        let mut environment = PlacementEnvironment::new(workload(&jobs, options), OPTIONS).unwrap();
        let (_, end, results) = drive(&mut environment, 1, |it| it.rule_choice("reliable").unwrap());
        assert_eq!(end, End::Limit);
        assert!(figure(&results, "unfinished_jobs") > 0.0);
        assert_eq!(results, environment.run_rule("reliable").unwrap());
    }

    #[test]
    fn rows_describe_the_free_gpus() {
        let mut environment = environment(OPTIONS);
        environment.reset(1).unwrap();
        while environment.episode.as_ref().unwrap().picks.is_empty() {
            let gpu = environment.rule_choice("first-fit").unwrap();
            assert_eq!(environment.choose(gpu).unwrap().end, End::Open);
        }
        let mut rows = vec![0.0; 20 * ROW];
        environment.observe(&mut rows);
        let picked = environment.episode.as_ref().unwrap().picks[0];
        for (gpu, row) in rows.chunks_exact(ROW).enumerate() {
            assert_eq!(row[0] == 1.0, environment.is_valid(gpu));
            assert_eq!(row[1] > 0.0, environment.is_valid(gpu) && gpu / 8 == picked / 8, "{gpu}, {picked}");
        }
        assert!(!environment.is_valid(picked) && !environment.is_valid(20));
    }

    #[test]
    fn failures_of_nodes_and_racks_are_given_by_name() {
        let jobs = JobsInput { batch: Some(25), interarrival: Some(3000.0), ..JobsInput::default() };
        let plain = workload(&jobs, Options { queueing: Queueing::Easy, ..Options::default() });
        // Nodes of 8, 8 and 4 GPUs; the first two are in one rack.
        let cluster = plain.cluster.clone().with_racks(2, 1).unwrap();
        let domain = |(level, per_year)| DomainFailures { level, per_year, repair: 600.0 };
        let domains = [(Level::Node, 2.0), (Level::Rack, 3.0)].map(domain).to_vec();
        let workload = Workload { cluster, domains, ..plain };
        let options = EnvironmentOptions { rate_factor: 10.0, ..OPTIONS };
        let mut environment = PlacementEnvironment::new(workload, options).unwrap();
        environment.reset(1).unwrap();
        let mut rows = vec![0.0; 20 * ROW];
        environment.observe(&mut rows);
        let column = |name: &str| ROW_NAMES.iter().position(|other| *other == name).unwrap();
        let mut seen = 0;
        for (gpu, row) in environment.details().into_iter().enumerate() {
            let Some(row) = row else { continue };
            seen += 1;
            let near = |name: &str, want: f64| (row[detail(name)] - want).abs() < 1e-9 * want.max(1.0);
            assert!(near("node", (gpu / 8) as f64) && near("rack", (gpu / 16) as f64), "{row:?}");
            assert!(near("node_failures_per_year", 20.0) && near("rack_failures_per_year", 30.0), "{row:?}");
            assert!(near("switch_failures_per_year", 0.0), "{row:?}");
            assert!(row[detail("failures_per_year")] > 50.0, "{row:?}");
            let features = &rows[gpu * ROW..][..ROW];
            let (node, rack) = (features[column("node_failures")], features[column("rack_failures")]);
            assert!(0.0 < node && node < rack && features[column("switch_failures")] == 0.0, "{features:?}");
        }
        assert!(seen > 1);
        let (_, _, results) = drive(&mut environment, 2, |it| it.rule_choice("reliable").unwrap());
        assert_eq!(results, environment.run_rule("reliable").unwrap());
    }

    #[test]
    fn invalid_options_and_choices_are_reported() {
        let new = |rate_factor| {
            let workload = workload(&JobsInput::default(), Options::default());
            let options = EnvironmentOptions { rate_factor, ..OPTIONS };
            PlacementEnvironment::new(workload, options).map(drop).unwrap_err().to_string()
        };
        assert!(new(-1.0).starts_with("failure factor is -1, expected a number"), "{}", new(-1.0));
        let mut environment = environment(OPTIONS);
        environment.reset(1).unwrap();
        let error = environment.choose(20).unwrap_err().to_string();
        assert!(error.starts_with("action is 20, expected one of 0, 1, 2"), "{error}");
        let text = |error: Result<usize, StudyError>| error.unwrap_err().to_string();
        assert_eq!(
            text(environment.rule_choice("longest-reliable")),
            "rule is longest-reliable, expected a rule with the order arrival, not longest-first"
        );
        for rule in ["saving", "las", "clairvoyant"] {
            let error = text(environment.rule_choice(rule));
            assert!(
                error.starts_with(&format!("rule is {rule}, expected a rule that starts jobs")),
                "{error}"
            );
        }
    }
}
