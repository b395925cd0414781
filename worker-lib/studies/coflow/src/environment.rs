//! Simulation of a fabric as an environment for a custom agent. Whenever rates are computed, the agent puts the ready
//! coflows in order: it chooses the coflow with the highest priority, then that with the second-highest priority, and
//! so on, until only one is left. The candidates are the ready coflows that have not been chosen, in the order in which
//! they became ready.
//!
//! The cost of an interval is its length in seconds times the number of jobs that have arrived and are not complete,
//! divided by the number of jobs of the episode, so the sum of all costs is the mean job completion time.

use std::collections::BTreeMap;

use self_cell::self_cell;
use strum::IntoEnumIterator as _;

use super::deepweave::scene::{FEATURE_NAMES, FEATURES, Scene};
use super::inputs::JobDraws;
use super::measure::Times;
use super::policy::{Policy, PolicySpec, Sharing};
use super::simulation::{self, Fabric, Run, check_arrivals, simulate};
use super::workload::Job;
use iswitch_study::environment::{End, Environment, Figures, Outcome, check_choice, no_decision, row_names};
use iswitch_study::{StudyError, names};

/// Number of features of a candidate: its validity, and the features of a coflow in a [`Scene`].
const ROW: usize = FEATURES + 1;
/// Names of the features of a candidate.
pub const ROW_NAMES: [&str; ROW] = row_names(&["available"], &FEATURE_NAMES);
/// Names of the values in a candidate's details.
const DETAILS: [&str; 6] =
    ["job", "coflow", "bottleneck_left_s", "size_left_bytes", "ready_s", "job_path_left_s"];
/// Maximum number of candidates.
pub const CANDIDATES_MAX: usize = 4096;
/// Maximum absolute value of a feature; larger values are clamped.
const FEATURE_MAX: f32 = 12.0;

/// Returns the sharing with this name. [`Sharing::Equal`] is not accepted, because it does not depend on the order that
/// the agent chooses.
///
/// # Errors
/// Fails if no accepted sharing has this name.
pub fn parse_sharing(text: &str) -> Result<Sharing, StudyError> {
    names::parse("sharing", text, Sharing::iter().filter(|sharing| *sharing != Sharing::Equal), "")
}

/// Environment in which an agent chooses the order of the coflows of a simulated fabric.
pub struct CoflowEnvironment {
    jobs: JobDraws,
    fabric: Fabric,
    sharing: Sharing,
    candidates: usize,
    episode: Option<Episode>,
}

impl CoflowEnvironment {
    /// Creates the environment. `sharing` is the rule by which coflows share the fabric in the order that the agent
    /// chooses, and `candidates` is the maximum number of candidates of a decision.
    ///
    /// # Errors
    /// Fails if there are no jobs or if a number is out of range.
    pub fn new(
        jobs: JobDraws,
        fabric: Fabric,
        sharing: Sharing,
        candidates: usize,
    ) -> Result<Self, StudyError> {
        if !(2..=CANDIDATES_MAX).contains(&candidates) {
            return Err(StudyError::field("candidates", candidates, format!("2 to {CANDIDATES_MAX}")));
        }
        match &jobs {
            JobDraws::Fixed(jobs, _) => check_arrivals(jobs)?,
            JobDraws::Drawn { count: 0, .. } => return Err(StudyError::field("jobs", 0, "at least 1")),
            JobDraws::Drawn { interarrival, .. } if !(interarrival.is_finite() && *interarrival >= 0.0) => {
                let expected = "a number of seconds >= 0";
                return Err(StudyError::field("interarrival", interarrival, expected));
            }
            JobDraws::Drawn { .. } => {}
        }
        Ok(Self { jobs, fabric, sharing, candidates, episode: None })
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

impl Environment for CoflowEnvironment {
    fn features(&self) -> &'static [&'static str] {
        &ROW_NAMES
    }

    fn bounds(&self) -> (f32, f32) {
        (-FEATURE_MAX, FEATURE_MAX)
    }

    fn detail_names(&self) -> &'static [&'static str] {
        &DETAILS
    }

    fn candidates(&self) -> usize {
        self.candidates
    }

    fn reset(&mut self, draw: u64) -> Result<(), StudyError> {
        let mut episode = Episode::new(self.jobs.jobs(draw), &self.fabric, self.sharing)?;
        if episode.seek() == End::Complete {
            let expected = "at least 1: at least two coflows must be ready at the same time";
            return Err(StudyError::field("number of decisions", 0, expected));
        }
        self.episode = Some(episode);
        Ok(())
    }

    fn is_valid(&self, candidate: usize) -> bool {
        candidate < self.candidates && self.open().is_some_and(|it| candidate < it.ready.len())
    }

    fn observe(&self, rows: &mut [f32]) {
        let Some(episode) = self.open() else { return };
        for (row, (_, features)) in rows.chunks_exact_mut(ROW).zip(&episode.ready) {
            row[0] = 1.0;
            row[1..].copy_from_slice(features);
        }
    }

    fn details(&self) -> Vec<Option<Vec<f64>>> {
        let of = |candidate: usize| Some(self.open()?.details(&self.fabric, candidate)).flatten();
        (0..self.candidates).map(of).collect()
    }

    fn choose(&mut self, candidate: usize) -> Result<Outcome, StudyError> {
        check_choice(self, self.episode.is_some(), candidate)?;
        let episode = self.open_mut()?;
        let (chosen, _) = episode.ready.remove(candidate);
        episode.order.push(chosen);
        let end = if episode.ready.len() > 1 { End::Open } else { episode.seek() };
        Ok(Outcome { reward: episode.reward(), end })
    }

    fn results(&self) -> Option<Figures> {
        self.episode.as_ref()?.results.clone()
    }

    fn rule_choice(&mut self, rule: &str) -> Result<usize, StudyError> {
        let (sharing, capacity, candidates) = (self.sharing, self.fabric.capacity, self.candidates);
        self.open_mut()?.rule_choice(rule, capacity, sharing, candidates)
    }

    fn run_rule(&self, rule: &str) -> Result<Figures, StudyError> {
        let episode = self.episode.as_ref().ok_or_else(|| no_decision(false))?;
        let mut policy = rule.parse::<PolicySpec>()?.build(self.fabric.capacity);
        let jobs = episode.simulated.borrow_owner();
        Ok(figures(&simulate(jobs, &self.fabric, policy.as_mut(), &mut |_, _| {})?))
    }
}

fn figures(outcome: &simulation::Outcome) -> Figures {
    let (jobs, coflows) = (Times::of(&outcome.job_times), Times::of(&outcome.coflow_times));
    vec![
        ("mean_jct_s", jobs.mean),
        ("p95_jct_s", jobs.p95),
        ("mean_cct_s", coflows.mean),
        ("p95_cct_s", coflows.p95),
        ("makespan_s", outcome.makespan),
        ("rate_computations", outcome.decisions as f64),
    ]
}

self_cell!(
    /// Jobs, and the simulation that borrows them.
    struct Simulated {
        owner: Vec<Job>,
        #[covariant]
        dependent: Run,
    }
);

/// Rule-based policy that orders the ready coflows in every state of the episode, so that its choice is available to
/// the agent.
struct Follower {
    policy: Box<dyn Policy>,
    /// Order in which the rule puts the coflows that are ready in the current state, and the sharing that it uses.
    order: Vec<usize>,
    sharing: Sharing,
}

impl Follower {
    fn prioritise(&mut self, run: &Run<'_>) {
        self.order.clear();
        self.order.extend(run.ready());
        self.sharing = self.policy.prioritise(&run.state, &mut self.order);
    }
}

/// Episode of one draw.
struct Episode {
    simulated: Simulated,
    sharing: Sharing,
    /// Ready coflows that have not been chosen, in the order in which they became ready, with their features.
    ready: Vec<(usize, [f32; FEATURES])>,
    /// Coflows that the agent has chosen for the next interval, highest priority first.
    order: Vec<usize>,
    /// Mean, over all jobs of the episode, of the time that a job has been in the fabric so far, in seconds.
    cost: f64,
    /// Part of the cost that rewards have accounted for.
    paid: f64,
    followers: BTreeMap<String, Follower>,
    /// Results; `None` until all jobs are complete.
    results: Option<Figures>,
}

impl Episode {
    fn new(jobs: Vec<Job>, fabric: &Fabric, sharing: Sharing) -> Result<Self, StudyError> {
        let mut simulated = Simulated::try_new(jobs, |jobs| Run::new(jobs, fabric))?;
        simulated.with_dependent_mut(|_, run| run.arrive());
        let mut episode = Self {
            simulated,
            sharing,
            ready: Vec::new(),
            order: Vec::new(),
            cost: 0.0,
            paid: 0.0,
            followers: BTreeMap::new(),
            results: None,
        };
        episode.load();
        Ok(episode)
    }

    /// Returns the negated cost that has accrued since the previous call or, on the first call, since the start of the
    /// episode.
    fn reward(&mut self) -> f64 {
        let paid = std::mem::replace(&mut self.paid, self.cost);
        paid - self.cost
    }

    /// Simulates until at least two coflows are ready, or until all jobs are complete.
    fn seek(&mut self) -> End {
        while self.ready.len() < 2 {
            if self.simulated.borrow_dependent().open == 0 {
                self.results = Some(figures(&self.simulated.borrow_dependent().finish()));
                return End::Complete;
            }
            let mut order = std::mem::take(&mut self.order);
            order.extend(self.ready.drain(..).map(|(stage, _)| stage));
            let sharing = self.sharing;
            self.cost += self.simulated.with_dependent_mut(|jobs, run| {
                run.send(order, sharing);
                let seconds = run.next_event(f64::INFINITY);
                // `open` counts all incomplete jobs, including those that have not arrived. The latter do not wait.
                let waiting = run.arrived() + run.open - jobs.len();
                run.advance(seconds);
                run.arrive();
                seconds * waiting as f64 / jobs.len() as f64
            });
            self.load();
        }
        End::Open
    }

    /// Lists the ready coflows, and asks each follower for its order.
    fn load(&mut self) {
        let run = self.simulated.borrow_dependent();
        self.followers.values_mut().for_each(|follower| follower.prioritise(run));
        let ready: Vec<usize> = run.ready().collect();
        self.ready.clear();
        if ready.len() < 2 {
            self.ready.extend(ready.into_iter().map(|stage| (stage, [0.0; FEATURES])));
            return;
        }
        let scene = Scene::of(&run.state, run.arrived());
        let features: BTreeMap<usize, &[f32]> =
            scene.stages.iter().copied().zip(scene.features.chunks_exact(FEATURES)).collect();
        self.ready.extend(ready.into_iter().map(|stage| {
            let mut row = [0.0; FEATURES];
            let values = features.get(&stage).copied().unwrap_or_default();
            let clamped = values.iter().map(|value| value.clamp(-FEATURE_MAX, FEATURE_MAX));
            row.iter_mut().zip(clamped).for_each(|(slot, value)| *slot = value);
            (stage, row)
        }));
    }

    fn details(&self, fabric: &Fabric, candidate: usize) -> Option<Vec<f64>> {
        let state = &self.simulated.borrow_dependent().state;
        let stage = &state.stages[self.ready.get(candidate)?.0];
        Some(vec![
            stage.job as f64,
            stage.index as f64,
            stage.bottleneck_left,
            stage.size * stage.left * fabric.capacity,
            stage.ready.unwrap_or(state.time),
            state.path_left(stage.job),
        ])
    }

    fn rule_choice(
        &mut self,
        rule: &str,
        capacity: f64,
        sharing: Sharing,
        candidates: usize,
    ) -> Result<usize, StudyError> {
        if !self.followers.contains_key(rule) {
            let spec: PolicySpec = rule.parse()?;
            // Aalo also reorders coflows between these events, and the plan of Shafiee and Ghaderi depends on earlier
            // states.
            if matches!(spec, PolicySpec::Aalo | PolicySpec::ShafieeGhaderi) {
                let expected = "a rule that decides only when a coflow or a flow becomes ready or ends, and only from \
                                the current state";
                return Err(StudyError::field("rule", rule, expected));
            }
            let mut follower = Follower { policy: spec.build(capacity), order: Vec::new(), sharing };
            follower.prioritise(self.simulated.borrow_dependent());
            self.followers.insert(rule.to_owned(), follower);
        }
        let follower = &self.followers[rule];
        if follower.sharing != sharing {
            let expected = format!("a rule with the sharing {sharing}, not {}", follower.sharing);
            return Err(StudyError::field("rule", rule, expected));
        }
        let first = follower.order.iter().find(|stage| !self.order.contains(stage));
        let at = first.and_then(|stage| self.ready.iter().position(|(other, _)| other == stage));
        at.filter(|at| *at < candidates).ok_or_else(|| {
            let expected = format!(
                "a rule that chooses one of the {candidates} candidates; {} coflows are ready",
                self.ready.len()
            );
            StudyError::field("rule", rule, expected)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Inputs;

    fn drawn(count: usize, interarrival: f64) -> (JobDraws, Fabric) {
        let inputs = Inputs { ports: 8, ..Inputs::default() };
        let (trace, fabric) = inputs.coflows().unwrap();
        (JobDraws::Drawn { source: inputs.jobs(trace).unwrap(), count, interarrival }, fabric)
    }

    fn environment(sharing: Sharing) -> CoflowEnvironment {
        let (jobs, fabric) = drawn(8, 15.0);
        CoflowEnvironment::new(jobs, fabric, sharing, 64).unwrap()
    }

    fn figure(figures: &Figures, name: &str) -> f64 {
        figures.iter().find(|(other, _)| *other == name).unwrap().1
    }

    /// Runs an episode in which `choose` makes the decisions. Returns the sum of the rewards and the results.
    fn drive(
        environment: &mut CoflowEnvironment,
        draw: u64,
        mut choose: impl FnMut(&mut CoflowEnvironment) -> usize,
    ) -> (f64, Figures) {
        environment.reset(draw).unwrap();
        let mut sum = 0.0;
        loop {
            let candidate = choose(environment);
            let Outcome { reward, end } = environment.choose(candidate).unwrap();
            sum += reward;
            if end == End::Complete {
                return (sum, environment.results().unwrap());
            }
        }
    }

    #[test]
    fn a_rule_that_drives_the_environment_has_its_own_results() {
        for (sharing, rules) in [
            (Sharing::Madd, &["fifo", "fifo-job", "lcf", "sebf", "job-srpt", "job-sebf"][..]),
            (Sharing::Greedy, &["bssi"]),
        ] {
            let mut environment = environment(sharing);
            for rule in rules {
                let (sum, results) = drive(&mut environment, 2, |it| it.rule_choice(rule).unwrap());
                assert_eq!(results, environment.run_rule(rule).unwrap(), "{rule}");
                let mean = figure(&results, "mean_jct_s");
                assert!((sum + mean).abs() < 1e-9 * mean, "{rule}: {sum}, {mean}");
            }
        }
    }

    #[test]
    fn smallest_bottleneck_first_by_the_details_is_sebf() {
        let mut environment = environment(Sharing::Madd);
        let choose = |it: &mut CoflowEnvironment| {
            let details = it.details();
            let all = details.iter().enumerate().filter_map(|(at, row)| Some((at, row.as_ref()?)));
            let key = |row: &[f64]| [row[2], row[0], row[1]];
            all.min_by(|a, b| key(a.1).partial_cmp(&key(b.1)).unwrap()).unwrap().0
        };
        let (_, results) = drive(&mut environment, 3, choose);
        assert_eq!(results, environment.run_rule("sebf").unwrap());
        assert_ne!(results, environment.run_rule("fifo").unwrap());
    }

    #[test]
    fn rows_describe_the_ready_coflows() {
        let mut environment = environment(Sharing::Madd);
        environment.reset(1).unwrap();
        let mut rows = vec![0.0; 64 * ROW];
        environment.observe(&mut rows);
        let is_ready = ROW_NAMES.iter().position(|name| *name == "ready").unwrap();
        for (candidate, row) in rows.chunks_exact(ROW).enumerate() {
            let is_valid = f32::from(u8::from(environment.is_valid(candidate)));
            assert_eq!((row[0], row[is_ready]), (is_valid, is_valid));
            assert!(row.iter().all(|value| value.abs() <= FEATURE_MAX));
        }
        assert!(environment.is_valid(1) && !environment.is_valid(64));
    }

    #[test]
    fn invalid_options_and_choices_are_reported() {
        let text = |count, interarrival, candidates| {
            let (jobs, fabric) = drawn(count, interarrival);
            let made = CoflowEnvironment::new(jobs, fabric, Sharing::Madd, candidates);
            made.map(drop).unwrap_err().to_string()
        };
        assert_eq!(text(0, 1.0, 9), "jobs is 0, expected at least 1");
        assert_eq!(text(2, -1.0, 9), "interarrival is -1, expected a number of seconds >= 0");
        assert_eq!(text(2, 1.0, 1), "candidates is 1, expected 2 to 4096");
        let error = parse_sharing("equal").unwrap_err().to_string();
        assert_eq!(error, "sharing is equal, expected one of madd, greedy, greedy-per-flow");
        let mut environment = environment(Sharing::Madd);
        environment.reset(1).unwrap();
        let error = environment.choose(63).unwrap_err().to_string();
        assert!(error.starts_with("action is 63, expected one of 0, 1"), "{error}");
        let error = environment.rule_choice("bssi").unwrap_err().to_string();
        assert_eq!(error, "rule is bssi, expected a rule with the sharing madd, not greedy");
        for rule in ["aalo", "shafiee-ghaderi"] {
            let error = environment.rule_choice(rule).unwrap_err().to_string();
            let expected = format!("rule is {rule}, expected a rule that decides only when a coflow");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
