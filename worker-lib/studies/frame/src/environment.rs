//! Simulators as environments for agents outside the project: the simulation stops at each decision, describes the
//! candidates among which the agent chooses, and continues with the choice.
//!
//! A decision is a list of at most [`Environment::candidates`] rows, one for each candidate. The row of a candidate
//! that is not valid contains only zeros. The first feature of each row is 1 if the candidate is valid.

use crate::StudyError;

/// Named figures, such as the results of an episode.
pub type Figures = Vec<(&'static str, f64)>;

/// State of an episode after a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Another decision follows.
    Open,
    /// All work is done.
    Complete,
    /// The time limit has been reached; the simulated system would continue.
    Limit,
}

/// Result of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Reward: minus the cost that has accrued since the previous decision.
    pub reward: f64,
    /// State of the episode.
    pub end: End,
}

/// Simulator that stops at each decision.
pub trait Environment: Send {
    /// Returns the names of the features of a candidate. The first is the validity of the candidate.
    fn features(&self) -> &'static [&'static str];

    /// Returns the minimum and the maximum value of a feature.
    fn bounds(&self) -> (f32, f32);

    /// Returns the names of the exact values that [`Self::details`] returns for a candidate.
    fn detail_names(&self) -> &'static [&'static str];

    /// Returns the maximum number of candidates of a decision, which is the number of rows.
    fn candidates(&self) -> usize;

    /// Begins the episode of a draw. The number of the draw determines all random inputs, as in the commands of the
    /// study.
    ///
    /// # Errors
    /// Fails if the options do not describe a valid simulation, or if the episode has no decision.
    fn reset(&mut self, draw: u64) -> Result<(), StudyError>;

    /// Returns whether a candidate of the current decision may be chosen.
    fn is_valid(&self, candidate: usize) -> bool;

    /// Writes the features of all candidates into `rows`, `[candidates, features]`, which contains zeros.
    fn observe(&self, rows: &mut [f32]);

    /// Returns the exact values of each candidate in their units, or `None` for a candidate that is not valid.
    fn details(&self) -> Vec<Option<Vec<f64>>>;

    /// Chooses a valid candidate and simulates until the next decision or the end of the episode.
    ///
    /// # Errors
    /// Fails if the candidate is not valid, the episode has not begun or has ended, or the simulation fails.
    fn choose(&mut self, candidate: usize) -> Result<Outcome, StudyError>;

    /// Returns the results of the episode, as the simulator computes them for its own policies; `None` before the end.
    fn results(&self) -> Option<Figures>;

    /// Returns the candidate that a rule of the study chooses. If an agent calls this method at each decision of an
    /// episode and follows the result, the results of the episode are those of the rule in the simulator.
    ///
    /// # Errors
    /// Fails if no rule has this name, if the rule makes decisions that the environment does not offer, or if no
    /// decision is pending.
    fn rule_choice(&mut self, rule: &str) -> Result<usize, StudyError>;

    /// Runs a rule of the study in the simulator, on the draw of the current episode, and returns its results.
    ///
    /// # Errors
    /// Fails if no rule has this name, no episode has begun, or the simulation fails.
    fn run_rule(&self, rule: &str) -> Result<Figures, StudyError>;
}

/// Returns the names of the features of a row: those that the environment adds, and those of its study.
pub const fn row_names<const N: usize>(
    added: &[&'static str],
    of_study: &[&'static str],
) -> [&'static str; N] {
    assert!(N == added.len() + of_study.len(), "a row must have as many features as names");
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = if at < added.len() { added[at] } else { of_study[at - added.len()] };
        at += 1;
    }
    names
}

/// Checks that a candidate may be chosen. `has_begun` indicates whether an episode has begun.
///
/// # Errors
/// Fails if no decision is pending, or if the candidate is not valid.
pub fn check_choice(
    environment: &impl Environment,
    has_begun: bool,
    candidate: usize,
) -> Result<(), StudyError> {
    if environment.is_valid(candidate) {
        return Ok(());
    }
    let all = 0..environment.candidates();
    let valid: Vec<_> =
        all.filter(|other| environment.is_valid(*other)).map(|other| other.to_string()).collect();
    if valid.is_empty() {
        return Err(no_decision(has_begun));
    }
    Err(StudyError::field("action", candidate, format!("one of {}", valid.join(", "))))
}

/// Returns the error for a call that requires a pending decision. `has_begun` indicates whether an episode has begun.
pub fn no_decision(has_begun: bool) -> StudyError {
    let value = if has_begun { "after the end of the episode" } else { "before the first reset" };
    StudyError::field("time of the call", value, "a call between a reset and the end of the episode")
}
