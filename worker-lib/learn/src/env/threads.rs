//! Stepping of environments in several threads.
//!
//! The environments are divided into groups. When the caller finishes the first step of a batch, its thread wakes one
//! thread for each group except the last, steps the last group itself, and waits for the other threads. Environments
//! share no data and each has its own random generator, so the results do not depend on the number of threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;

use super::scene::Picture;
use super::{Action, ActionSpace, ActionSpec, EnvError, EnvSpec, Environment, Step};

/// Time that a thread polls before it sleeps. It is long enough for the caller to choose the next actions: if cores are
/// idle, the threads sleep only while the learner computes an update. Waking a sleeping thread takes longer than a step
/// of most environments.
const POLL_TIME: Duration = Duration::from_micros(50);
/// Number of polls between two readings of the clock.
const POLLS: u32 = 64;
/// Maximum exponent of the back-off: after repeated unsuccessful polls, at most 2^6 - 1 consecutive waits skip polling.
const BACK_OFF_MAX: u32 = 6;

/// Divides `count` items into at most `groups` contiguous groups, none of them empty, and returns their sizes. The
/// sizes differ by at most one.
pub(super) fn group_sizes(count: usize, groups: usize) -> Vec<usize> {
    let groups = groups.clamp(1, count.max(1));
    (0..groups).map(|i| count / groups + usize::from(i < count % groups)).collect()
}

/// Returns the environments of all groups, in order. Each group except the last has a separate thread that steps it;
/// the calling thread steps the last group. The threads exit when the last environment is dropped.
///
/// # Errors
/// Fails if a thread cannot be started.
pub(super) fn in_threads(
    groups: Vec<Vec<Box<dyn Environment>>>,
) -> Result<Vec<Box<dyn Environment>>, EnvError> {
    if groups.len() <= 1 {
        return Ok(groups.into_iter().flatten().collect());
    }
    let specs: Vec<Vec<EnvSpec>> =
        groups.iter().map(|group| group.iter().map(|env| env.spec().clone()).collect()).collect();
    let pool = Arc::new(Pool::start(groups)?);
    let pooled = |group, (place, spec)| {
        Box::new(Pooled { spec, group, place, pool: Arc::clone(&pool) }) as Box<dyn Environment>
    };
    let of_group = |(group, specs): (usize, Vec<EnvSpec>)| {
        specs.into_iter().enumerate().map(move |it| pooled(group, it)).collect::<Vec<_>>()
    };
    Ok(specs.into_iter().enumerate().flat_map(of_group).collect())
}

/// A flag that one thread raises while another thread waits for it.
///
/// If other programs occupy the cores, a polling thread takes CPU time from the thread that is to raise the flag. After
/// the n-th consecutive unsuccessful poll, a thread therefore sleeps immediately, without polling, in its next 2^(n -
/// 1) - 1 waits.
#[derive(Default)]
struct Signal {
    is_raised: AtomicBool,
    /// The waiting thread, if it has stopped polling and sleeps.
    sleeper: Mutex<Option<Thread>>,
    /// Number of consecutive unsuccessful polls, capped at [`BACK_OFF_MAX`].
    failures: AtomicU32,
    /// Number of further waits in which the thread sleeps immediately, without polling.
    unpolled: AtomicU32,
}

impl Signal {
    fn raise(&self) {
        self.is_raised.store(true, Ordering::Release);
        if let Some(thread) = lock(&self.sleeper).take() {
            thread.unpark();
        }
    }

    /// Waits until the flag is raised, then lowers it.
    fn wait(&self) {
        if self.poll() {
            return;
        }
        // The flag is checked after this thread has registered, so a flag that is raised in between is not missed.
        *lock(&self.sleeper) = Some(thread::current());
        while !self.lower() {
            thread::park();
        }
    }

    /// Polls until the flag is raised or [`POLL_TIME`] has passed; does not poll if recent polls were unsuccessful.
    /// Returns whether the flag was raised.
    fn poll(&self) -> bool {
        let unpolled = self.unpolled.load(Ordering::Relaxed);
        if unpolled > 0 {
            self.unpolled.store(unpolled - 1, Ordering::Relaxed);
            return self.lower();
        }
        let begin = Instant::now();
        while begin.elapsed() < POLL_TIME {
            for _ in 0..POLLS {
                if self.lower() {
                    self.failures.store(0, Ordering::Relaxed);
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        let failures = self.failures.load(Ordering::Relaxed);
        self.failures.store((failures + 1).min(BACK_OFF_MAX), Ordering::Relaxed);
        self.unpolled.store((1 << failures) - 1, Ordering::Relaxed);
        false
    }

    /// Lowers the flag and returns whether it was raised.
    fn lower(&self) -> bool {
        self.is_raised.load(Ordering::Relaxed) && self.is_raised.swap(false, Ordering::Acquire)
    }
}

/// A copy of an action.
enum StoredAction {
    Continuous(Vec<f32>),
    Discrete(usize),
}

impl StoredAction {
    fn store(&mut self, action: Action<'_>) {
        match (self, action) {
            (Self::Continuous(stored), Action::Continuous(values)) => {
                stored.clear();
                stored.extend_from_slice(values);
            }
            (stored, Action::Continuous(values)) => *stored = Self::Continuous(values.to_vec()),
            (stored, Action::Discrete(choice)) => *stored = Self::Discrete(choice),
        }
    }

    fn get(&self) -> Action<'_> {
        match self {
            Self::Continuous(values) => Action::Continuous(values),
            Self::Discrete(choice) => Action::Discrete(*choice),
        }
    }
}

/// An environment of a group, with a step that has been announced or taken.
struct Seat {
    env: Box<dyn Environment>,
    action: StoredAction,
    is_begun: bool,
    /// Observation after the step, `[observation_dim]`.
    observation: Vec<f32>,
    /// Outcome of the step, or the panic that occurred in it, until the caller takes it.
    outcome: Option<thread::Result<Result<Step, EnvError>>>,
}

impl Seat {
    fn new(env: Box<dyn Environment>) -> Self {
        let spec = env.spec();
        let action = match spec.action {
            ActionSpec::Continuous { dim } => StoredAction::Continuous(vec![0.0; dim]),
            ActionSpec::Discrete { .. } => StoredAction::Discrete(0),
        };
        let observation = vec![0.0; spec.observation_dim];
        Self { env, action, is_begun: false, observation, outcome: None }
    }

    /// Runs a part of the announced step. If that part fails or panics, the error or panic becomes the outcome of the
    /// step.
    fn attempt(
        &mut self,
        part: impl FnOnce(&mut dyn Environment, Action<'_>, &mut [f32]) -> Result<Option<Step>, EnvError>,
    ) {
        let Self { env, action, observation, .. } = self;
        // After a panic, the environment is in an unknown state. The panic is resumed in the caller, which owns the
        // environment.
        let run = AssertUnwindSafe(|| part(env.as_mut(), action.get(), observation));
        match catch_unwind(run) {
            Ok(Ok(None)) => return,
            Ok(Ok(Some(step))) => self.outcome = Some(Ok(Ok(step))),
            Ok(Err(error)) => self.outcome = Some(Ok(Err(error))),
            Err(panic) => self.outcome = Some(Err(panic)),
        }
        self.is_begun = false;
    }

    /// Discards an announced step and its outcome.
    fn clear(&mut self) {
        (self.is_begun, self.outcome) = (false, None);
    }
}

/// Environments that the same thread steps.
struct Group {
    seats: Vec<Mutex<Seat>>,
    /// Raised when announced steps are to be taken, and when the thread is to exit.
    begin: Signal,
    /// Raised when the steps have been taken.
    end: Signal,
    is_over: AtomicBool,
}

impl Group {
    /// Takes the announced steps. Begins all steps before it finishes any, because environments may share a process.
    fn step(&self) {
        let begun = || self.seats.iter().map(lock).filter(|seat| seat.is_begun);
        begun().for_each(|mut seat| seat.attempt(|env, action, _| env.begin_step(action).map(|()| None)));
        begun().for_each(|mut seat| {
            seat.attempt(|env, action, observation| env.finish_step(action, observation).map(Some));
        });
    }

    /// Takes announced steps whenever they are due, until the group is closed.
    fn serve(&self) {
        loop {
            self.begin.wait();
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            self.step();
            self.end.raise();
        }
    }
}

/// All groups, and the threads that step all groups except the last.
struct Pool {
    groups: Vec<Arc<Group>>,
    threads: Vec<JoinHandle<()>>,
    /// Lock that is held while the steps of a batch are taken.
    batch: Mutex<()>,
}

impl Pool {
    fn start(groups: Vec<Vec<Box<dyn Environment>>>) -> Result<Self, EnvError> {
        let group = |environments: Vec<Box<dyn Environment>>| {
            Arc::new(Group {
                seats: environments.into_iter().map(|env| Mutex::new(Seat::new(env))).collect(),
                begin: Signal::default(),
                end: Signal::default(),
                is_over: AtomicBool::new(false),
            })
        };
        let groups: Vec<_> = groups.into_iter().map(group).collect();
        let helped = groups.len() - 1;
        // If a thread cannot be started, the pool is dropped, which ends the threads that have already been started.
        let mut pool = Self { groups, threads: Vec::new(), batch: Mutex::new(()) };
        for number in 0..helped {
            let group = Arc::clone(&pool.groups[number]);
            let thread = thread::Builder::new().name(format!("env-{number}"));
            pool.threads.push(thread.spawn(move || group.serve()).map_err(EnvError::Thread)?);
        }
        Ok(pool)
    }

    fn seat(&self, group: usize, place: usize) -> MutexGuard<'_, Seat> {
        lock(&self.groups[group].seats[place])
    }

    /// Takes the announced steps of all groups.
    fn step(&self) {
        let _batch = lock(&self.batch);
        let Some((own, others)) = self.groups.split_last() else { return };
        others.iter().for_each(|group| group.begin.raise());
        own.step();
        others.iter().for_each(|group| group.end.wait());
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for group in &self.groups {
            group.is_over.store(true, Ordering::Relaxed);
            group.begin.raise();
        }
        // The threads themselves never panic, because the panics of environments are caught.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// An environment of a pool.
struct Pooled {
    spec: EnvSpec,
    group: usize,
    place: usize,
    pool: Arc<Pool>,
}

impl Pooled {
    fn seat(&self) -> MutexGuard<'_, Seat> {
        self.pool.seat(self.group, self.place)
    }
}

impl Environment for Pooled {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn action_space(&self) -> ActionSpace {
        self.seat().env.action_space()
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        let mut seat = self.seat();
        seat.clear();
        seat.env.reset(rng, observation)
    }

    /// Steps only this environment, in the calling thread.
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let mut seat = self.seat();
        seat.clear();
        seat.env.step(action, observation)
    }

    fn begin_step(&mut self, action: Action<'_>) -> Result<(), EnvError> {
        let mut seat = self.seat();
        seat.action.store(action);
        (seat.is_begun, seat.outcome) = (true, None);
        Ok(())
    }

    fn finish_step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        if self.seat().is_begun {
            self.pool.step();
        }
        let mut seat = self.seat();
        match seat.outcome.take() {
            Some(Ok(outcome)) => {
                observation.copy_from_slice(&seat.observation);
                outcome
            }
            Some(Err(panic)) => {
                drop(seat);
                resume_unwind(panic)
            }
            None => seat.env.step(action, observation),
        }
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        self.seat().env.picture()
    }

    fn save_state(&self) -> Vec<f64> {
        self.seat().env.save_state()
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        let mut seat = self.seat();
        seat.clear();
        seat.env.restore_state(state)
    }
}

/// Locks a mutex and ignores poisoning: the data behind the locks of this module is consistent even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng as _;

    use super::*;

    /// Environment with one number as its observation, whose episodes end at random.
    struct Toy {
        spec: EnvSpec,
        position: f64,
        pushes: u32,
        /// Held by each environment, so that the reference count shows how many environments still exist.
        _alive: Arc<()>,
    }

    const ERROR: usize = 8;
    const PANIC: usize = 9;

    impl Toy {
        fn new(alive: &Arc<()>) -> Self {
            let spec = EnvSpec {
                id: "Toy".into(),
                observation_dim: 1,
                image: None,
                action: ActionSpec::Discrete { n: 10 },
                episode_steps_max: 20,
                solved_return: f64::INFINITY,
            };
            Self { spec, position: 0.0, pushes: 0, _alive: Arc::clone(alive) }
        }
    }

    impl Environment for Toy {
        fn spec(&self) -> &EnvSpec {
            &self.spec
        }

        fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
            (self.position, self.pushes) = (rng.random_range(-1.0..1.0), 0);
            observation[0] = self.position as f32;
            Ok(())
        }

        fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
            let Action::Discrete(push) = action else { unreachable!() };
            assert_ne!(push, PANIC, "pushed too far");
            if push == ERROR {
                return Err(EnvError::NotReset);
            }
            self.position = (self.position * 3.7 + push as f64).sin();
            self.pushes += 1;
            observation[0] = self.position as f32;
            let terminated = self.position > 0.9;
            let truncated = !terminated && self.pushes == 20;
            Ok(Step { reward: self.position, terminated, truncated, life_lost: self.position < -0.9 })
        }

        fn save_state(&self) -> Vec<f64> {
            vec![self.position, f64::from(self.pushes)]
        }

        fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
            (self.position, self.pushes) = (state[0], state[1] as u32);
            Ok(())
        }
    }

    fn toys(count: usize, threads: usize, alive: &Arc<()>) -> Vec<Box<dyn Environment>> {
        let toy = || Box::new(Toy::new(alive)) as Box<dyn Environment>;
        let groups = group_sizes(count, threads).into_iter();
        in_threads(groups.map(|size| (0..size).map(|_| toy()).collect()).collect()).unwrap()
    }

    /// Takes one batch of steps. An environment whose action is `None` does not step. Returns everything that a caller
    /// sees.
    fn play(
        environments: &mut [Box<dyn Environment>],
        rngs: &mut [ChaCha8Rng],
        actions: &[Option<usize>],
    ) -> Vec<(Option<Step>, u32, Vec<f64>)> {
        for (env, action) in environments.iter_mut().zip(actions) {
            if let Some(choice) = action {
                env.begin_step(Action::Discrete(*choice)).unwrap();
            }
        }
        let each = environments.iter_mut().zip(rngs).zip(actions);
        each.map(|((env, rng), action)| {
            let mut observation = [0.0];
            let step = action.map(|it| env.finish_step(Action::Discrete(it), &mut observation).unwrap());
            if step.is_some_and(|step| step.terminated || step.truncated) {
                env.reset(rng, &mut observation).unwrap();
            }
            (step, observation[0].to_bits(), env.save_state())
        })
        .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_results_do_not_depend_on_the_number_of_threads(
            count in 1_usize..9,
            threads in 2_usize..6,
            batches in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.9, 0..8_usize), 8), 1..40),
            seed in any::<u64>(),
        ) {
            let alive = Arc::new(());
            let run = |threads| {
                let mut all = toys(count, threads, &alive);
                let rng = |i| ChaCha8Rng::seed_from_u64(seed.wrapping_add(i));
                let mut rngs: Vec<_> = (0..count as u64).map(rng).collect();
                all.iter_mut().zip(&mut rngs).for_each(|(env, rng)| env.reset(rng, &mut [0.0]).unwrap());
                let mut seen = Vec::new();
                for (number, actions) in batches.iter().enumerate() {
                    seen.push(play(&mut all, &mut rngs, &actions[..count]));
                    if number == 20 {
                        // A checkpoint is restored into new environments.
                        let states: Vec<_> = all.iter().map(|env| env.save_state()).collect();
                        all = toys(count, threads, &alive);
                        all.iter_mut().zip(&states).for_each(|(env, state)| env.restore_state(state).unwrap());
                    }
                }
                seen
            };
            prop_assert_eq!(run(threads), run(1));
        }
    }

    #[test]
    fn an_error_reaches_the_caller_and_the_others_continue() {
        let alive = Arc::new(());
        for failing in 0..4 {
            let mut all = toys(4, 3, &alive);
            for (i, env) in all.iter_mut().enumerate() {
                env.begin_step(Action::Discrete(if i == failing { ERROR } else { 1 })).unwrap();
            }
            for (i, env) in all.iter_mut().enumerate() {
                let outcome = env.finish_step(Action::Discrete(1), &mut [0.0]);
                assert_eq!(matches!(outcome, Err(EnvError::NotReset)), i == failing, "{outcome:?}");
            }
            assert!(all[failing].step(Action::Discrete(1), &mut [0.0]).is_ok());
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_threads_continue() {
        let alive = Arc::new(());
        for failing in 0..3 {
            let mut all = toys(3, 3, &alive);
            for (i, env) in all.iter_mut().enumerate() {
                env.begin_step(Action::Discrete(if i == failing { PANIC } else { 1 })).unwrap();
            }
            for (i, env) in all.iter_mut().enumerate() {
                let finish = AssertUnwindSafe(|| env.finish_step(Action::Discrete(1), &mut [0.0]));
                let outcome = catch_unwind(finish).map_err(|panic| *panic.downcast::<String>().unwrap());
                assert_eq!(outcome.is_err_and(|text| text.contains("pushed too far")), i == failing);
            }
            for env in &mut all {
                env.begin_step(Action::Discrete(2)).unwrap();
            }
            assert!(all.iter_mut().all(|env| env.finish_step(Action::Discrete(2), &mut [0.0]).is_ok()));
        }
    }

    #[test]
    fn the_threads_end_with_the_last_environment() {
        let alive = Arc::new(());
        let mut all = toys(5, 4, &alive);
        // All threads fall asleep in this time, so the pool must wake them to make them exit.
        thread::sleep(10 * POLL_TIME);
        let last = all.pop();
        drop(all);
        assert_eq!(Arc::strong_count(&alive), 6, "expected all environments to exist");
        drop(last);
        assert_eq!(Arc::strong_count(&alive), 1, "expected the threads to have dropped their groups");
    }

    #[test]
    fn a_step_without_an_announcement_and_an_abandoned_one_are_possible() {
        let alive = Arc::new(());
        let (mut one, mut other) = (toys(2, 2, &alive), toys(2, 1, &alive));
        let (mut seen, mut expected) = ([0.0], [0.0]);
        one[0].begin_step(Action::Discrete(3)).unwrap();
        one[0].reset(&mut ChaCha8Rng::seed_from_u64(1), &mut seen).unwrap();
        other[0].reset(&mut ChaCha8Rng::seed_from_u64(1), &mut expected).unwrap();
        for finish in [true, false] {
            let act = |env: &mut dyn Environment, observation: &mut [f32]| {
                let action = Action::Discrete(5);
                if finish { env.finish_step(action, observation) } else { env.step(action, observation) }
                    .unwrap()
            };
            assert_eq!(act(one[0].as_mut(), &mut seen), act(other[0].as_mut(), &mut expected));
            assert_eq!((seen, one[0].save_state()), (expected, other[0].save_state()));
        }
    }

    #[test]
    fn groups_are_not_empty_and_differ_by_at_most_one() {
        assert_eq!(group_sizes(16, 3), [6, 5, 5]);
        assert_eq!(group_sizes(2, 5), [1, 1]);
        assert_eq!(group_sizes(3, 0), [3]);
        assert_eq!(group_sizes(0, 4), [0]);
    }
}
