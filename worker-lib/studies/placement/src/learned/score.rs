//! Random choices, their probabilities, and the gradients of the probabilities.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Gumbel};

/// Minimum exponent; smaller exponents are raised to it, so that sums of exponentials stay above 0.
const EXPONENT_MIN: f64 = -600.0;

/// Returns the best `count` items, the highest logit first. With `rng`, items are instead drawn one after another
/// without replacement, each with a probability proportional to the exponential of its logit (the Plackett-Luce
/// distribution, sampled by the Gumbel trick). `before` defines the order of items with equal logits.
pub fn choose(
    logits: &[f64],
    count: usize,
    rng: Option<&mut ChaCha8Rng>,
    before: impl Fn(usize, usize) -> std::cmp::Ordering,
) -> Vec<usize> {
    let mut keyed: Vec<(f64, usize)> = match rng {
        None => logits.iter().copied().zip(0..).collect(),
        Some(rng) => {
            let noise = Gumbel::new(0.0, 1.0).expect("the scale must be above 0");
            logits.iter().map(|logit| logit + noise.sample(rng)).zip(0..).collect()
        }
    };
    keyed.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| before(a.1, b.1)));
    keyed.truncate(count);
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// Returns the logarithm of the probability that `item` is the first item that [`choose`] draws.
pub fn log_probability(logits: &[f64], item: usize) -> f64 {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|logit| (logit - most).max(EXPONENT_MIN).exp()).sum();
    logits[item] - most - sum.ln()
}

/// Adds to `by_logits` the gradient of the logarithm of the probability that [`choose`] returns `chosen`, with respect
/// to the logits and multiplied by `scale`.
pub fn add_choice_gradient(logits: &[f64], chosen: &[usize], scale: f64, by_logits: &mut [f64]) {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|logit| (logit - most).max(EXPONENT_MIN).exp()).collect();
    let mut is_chosen = vec![false; logits.len()];
    chosen.iter().for_each(|item| is_chosen[*item] = true);
    let rest: f64 = weights.iter().zip(&is_chosen).filter(|(_, is)| !**is).map(|(weight, _)| weight).sum();
    // For each choice, the sum of the weights of the items that had not been chosen before. The sums are computed from
    // the last choice backwards, because subtracting weights from the total would lose precision.
    let mut left = vec![rest; chosen.len()];
    let mut sum = rest;
    for (at, item) in chosen.iter().enumerate().rev() {
        sum += weights[*item];
        left[at] = sum;
    }
    let mut inverses = 0.0;
    for (item, left) in chosen.iter().zip(left) {
        inverses += 1.0 / left;
        by_logits[*item] += scale * (1.0 - weights[*item] * inverses);
    }
    for (item, weight) in weights.iter().enumerate().filter(|(item, _)| !is_chosen[*item]) {
        by_logits[item] -= scale * weight * inverses;
    }
}

/// Adds to `by_logits` the gradient of the entropy of the first choice, with respect to the logits and multiplied by
/// `scale`.
pub fn add_entropy_gradient(logits: &[f64], scale: f64, by_logits: &mut [f64]) {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|logit| (logit - most).max(EXPONENT_MIN).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let logarithm = |weight: f64| (weight / sum).ln();
    let entropy: f64 = weights.iter().map(|weight| -weight / sum * logarithm(*weight)).sum();
    for (by, weight) in by_logits.iter_mut().zip(&weights) {
        *by -= scale * weight / sum * (logarithm(*weight) + entropy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    fn of_all(logits: &[f64], chosen: &[usize]) -> f64 {
        let mut left: Vec<usize> = (0..logits.len()).collect();
        let mut sum = 0.0;
        for item in chosen {
            let total: f64 = left.iter().map(|other| logits[*other].exp()).sum();
            sum += logits[*item] - total.ln();
            left.retain(|other| other != item);
        }
        sum
    }

    fn entropy(logits: &[f64]) -> f64 {
        let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
        logits.iter().map(|logit| -logit.exp() / sum * (logit.exp() / sum).ln()).sum()
    }

    #[test]
    fn probability_gradients_match_finite_differences() {
        let logits = [0.3, -1.2, 2.0, 0.0, 0.7];
        let slope = |of: &dyn Fn(&[f64]) -> f64, item: usize| {
            let moved = |by: f64| {
                let mut moved = logits;
                moved[item] += by;
                of(&moved)
            };
            (moved(1e-5) - moved(-1e-5)) / 2e-5
        };
        for chosen in [vec![3], vec![2, 0], vec![1, 4, 3, 2, 0]] {
            let mut by_logits = [0.0; 5];
            add_choice_gradient(&logits, &chosen, 2.0, &mut by_logits);
            for (item, by) in by_logits.iter().enumerate() {
                let want = 2.0 * slope(&|logits| of_all(logits, &chosen), item);
                assert!((by - want).abs() < 1e-6, "{chosen:?} {item}: {by}, {want}");
            }
        }
        assert!((log_probability(&logits, 3) - of_all(&logits, &[3])).abs() < 1e-12);
        let mut by_logits = [0.0; 5];
        add_entropy_gradient(&logits, 1.0, &mut by_logits);
        for (item, by) in by_logits.iter().enumerate() {
            assert!((by - slope(&entropy, item)).abs() < 1e-6, "{item}");
        }
    }

    #[test]
    fn choices_have_the_expected_probabilities() {
        let logits = [1.0, 0.0, -0.5];
        let mut rng = stream(1, Purpose::Actions, 0);
        let first_two = |rng: &mut _| choose(&logits, 2, Some(rng), |a, b| a.cmp(&b));
        let hits = (0..20_000).filter(|_| first_two(&mut rng) == [1, 0]).count();
        let want = of_all(&logits, &[1, 0]).exp();
        assert!((hits as f64 / 20_000.0 - want).abs() < 0.01, "{hits}, {want}");
        assert_eq!(choose(&[1.0, 2.0, 1.0], 3, None, |a, b| b.cmp(&a)), [1, 2, 0]);
    }

    #[test]
    fn extreme_logits_give_bounded_gradients() {
        let logits = [0.0, -5000.0, 4000.0];
        let mut by_logits = [0.0; 3];
        add_choice_gradient(&logits, &[2, 0, 1], 1.0, &mut by_logits);
        add_entropy_gradient(&logits, 1.0, &mut by_logits);
        assert!(by_logits.iter().all(|by| by.abs() <= 1.0), "{by_logits:?}");
    }
}
