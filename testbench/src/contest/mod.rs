//! Framework shared by all benchmarks. Contenders take turns on one testbed, in an order that is shuffled for each turn
//! (a seed determines the shuffle). Every result is the median over the turns, with the minimum and the maximum. The
//! first contender is the reference.
//!
//! Machines are shared and noisy, so contenders are compared only within a turn: [`Row::ratio_to`] divides the runs of
//! the same turn and returns the median of the ratios.

mod actor_pool;
pub mod interval;
mod latencies;
pub mod markdown;
pub mod progress;
pub mod spread;
pub mod standings;

use std::convert::Infallible;
use std::fmt::Display;

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

pub(crate) use actor_pool::ActorPool;
pub use actor_pool::wait_for_start;
pub use interval::Interval;
pub use latencies::Latencies;
pub use markdown::Markdown;
pub use progress::Progress;
pub use spread::Spread;
pub use standings::{Row, Standings};

/// Contenders, the number of turns, and the seed that determines the order of the contenders in each turn.
#[derive(Clone, Debug)]
pub struct Contest<T> {
    contenders: Vec<T>,
    turns: usize,
    seed: u64,
    title: String,
}

/// One turn of one contender.
#[derive(Debug)]
pub struct Turn<'a> {
    /// Number of the turn, starting from 0.
    pub index: usize,
    label: String,
    progress: &'a Progress,
}

impl Turn<'_> {
    /// Prints a measurement of the turn as a permanent line of the progress display.
    pub fn report(&self, text: impl Display) {
        self.progress.note(&format!("{}: {text}", self.label));
    }
}

impl<T: Display> Contest<T> {
    /// Creates a contest with the given number of turns. The results of the other contenders are compared with those of
    /// the first one.
    pub fn new(contenders: impl IntoIterator<Item = T>, turns: usize) -> Self {
        Self { contenders: contenders.into_iter().collect(), turns, seed: 0, title: String::new() }
    }

    /// Sets a title for the progress display.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// Sets the seed that determines the order of the contenders in each turn; the default is 0.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Runs each contender once in each turn.
    pub fn hold<R>(self, progress: &Progress, mut run: impl FnMut(&T, &Turn<'_>) -> R) -> Standings<T, R> {
        let Ok(standings) =
            self.try_hold(progress, |contender, turn| Ok::<_, Infallible>(run(contender, turn)));
        standings
    }

    /// Runs each contender once in each turn, until a run fails.
    ///
    /// # Errors
    /// Returns the error of the first run that fails.
    pub fn try_hold<R, E>(
        self,
        progress: &Progress,
        mut run: impl FnMut(&T, &Turn<'_>) -> Result<R, E>,
    ) -> Result<Standings<T, R>, E> {
        let mut runs: Vec<Vec<R>> = self.contenders.iter().map(|_| Vec::with_capacity(self.turns)).collect();
        progress.begin(self.turns * self.contenders.len());
        let mut held = Ok(());
        'turns: for index in 0..self.turns {
            for at in order(self.contenders.len(), index, self.seed) {
                let contender = &self.contenders[at];
                let turn = Turn { index, label: self.label(index, contender), progress };
                progress.step(&turn.label);
                match run(contender, &turn) {
                    Ok(measured) => runs[at].push(measured),
                    Err(error) => {
                        held = Err(error);
                        break 'turns;
                    }
                }
            }
        }
        progress.end();
        held.map(|()| self.contenders.into_iter().zip(runs).collect())
    }

    fn label(&self, turn: usize, contender: &T) -> String {
        let title = if self.title.is_empty() { String::new() } else { format!("{}, ", self.title) };
        format!("{title}turn {} of {}: {contender}", turn + 1, self.turns)
    }
}

/// Returns the order of the contenders in a turn. Every second turn reverses the order of the previous turn, so that
/// either of two contenders runs first equally often. The order matters, because machines warm up and slow down.
fn order(contenders: usize, turn: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<_> = (0..contenders).collect();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(turn as u64 / 2);
    order.shuffle(&mut random);
    if turn % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_contender_runs_once_per_turn_in_a_seeded_order() {
        let held = |seed| {
            let mut ran = Vec::new();
            let contest = Contest::new(["a", "b", "c", "d"], 6).seeded(seed);
            let standings = contest.hold(&Progress::silent(), |contender, turn| {
                ran.push(*contender);
                (*contender, turn.index)
            });
            for Row { contender, runs } in &standings.rows {
                assert_eq!(*runs, (0..6).map(|turn| (*contender, turn)).collect::<Vec<_>>());
            }
            ran
        };
        assert_eq!(held(1), held(1));
        assert_ne!(held(1), held(2));
        let turns: Vec<_> = held(1).chunks(4).map(<[_]>::to_vec).collect();
        assert!(turns[0] != turns[2] || turns[2] != turns[4], "the turns must be shuffled: {turns:?}");
    }

    #[test]
    fn each_of_two_contenders_comes_first_equally_often() {
        for seed in 0..20 {
            let orders: Vec<_> = (0..10).map(|turn| order(5, turn, seed)).collect();
            for (a, b) in (0..5).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let place = |order: &[usize], of| order.iter().position(|at| *at == of);
                let earlier = orders.iter().filter(|order| place(order, a) < place(order, b)).count();
                assert_eq!(earlier, 5, "{a} and {b}, seed {seed}");
            }
        }
    }

    #[test]
    fn the_first_failure_ends_a_contest() {
        let mut runs = 0;
        let held = Contest::new(["a", "b"], 3).try_hold(&Progress::silent(), |contender, turn| {
            runs += 1;
            if turn.index == 1 { Err(format!("{contender} failed")) } else { Ok(()) }
        });
        assert!(held.unwrap_err().ends_with(" failed"));
        assert_eq!(runs, 3);
    }

    #[test]
    fn the_label_of_a_turn_names_its_contender() {
        let contest = Contest::new(["nginx"], 3).titled("4 KiB");
        assert_eq!(contest.label(1, &"nginx"), "4 KiB, turn 2 of 3: nginx");
        assert_eq!(Contest::new(["nginx"], 3).label(0, &"nginx"), "turn 1 of 3: nginx");
    }
}
