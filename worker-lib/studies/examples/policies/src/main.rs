//! A policy of your own for each study, compared with iSwitch's built-in policies on the same draws.
//!
//!     cargo run --release
//!
//! Each module implements the trait of its study for a new policy, and runs it with the simulator of the study.

mod coflow;
mod placement;
mod routing;

use iswitch_routing::StudyError;

/// Number of draws. The index of a draw determines all of its random inputs.
const DRAWS: u64 = 5;

/// Name of each policy, and the mean of the study's metric over the draws. Lower is better.
type Figures = Vec<(&'static str, f64)>;

fn main() -> Result<(), StudyError> {
    for (figure, figures) in [
        ("delay of a packet (slots)", routing::compare(DRAWS)?),
        ("job completion time (s)", coflow::compare(DRAWS)?),
        ("job completion time (h)", placement::compare(DRAWS)?),
    ] {
        println!("{figure}:");
        figures.iter().for_each(|(policy, mean)| println!("  {policy:16} {mean:8.2}"));
    }
    Ok(())
}

/// Returns the mean of a metric over all draws.
fn mean(draws: u64, of: impl FnMut(u64) -> Result<f64, StudyError>) -> Result<f64, StudyError> {
    let sum = (1..=draws).map(of).sum::<Result<f64, StudyError>>()?;
    Ok(sum / draws as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the metric of a policy divided by that of another one.
    fn ratio(figures: &Figures, policy: &str, other: &str) -> f64 {
        let of =
            |name: &str| figures.iter().find(|(policy, _)| *policy == name).expect("a policy of the table").1;
        of(policy) / of(other)
    }

    #[test]
    fn the_policies_are_better_than_policies_that_ignore_the_state() {
        assert!(ratio(&routing::compare(2).unwrap(), "longest-first", "rand") < 1.0);
        assert!(ratio(&coflow::compare(2).unwrap(), "narrowest-first", "fifo") < 1.0);
        assert!(ratio(&placement::compare(2).unwrap(), "shortest-first", "random") < 1.0);
    }
}
