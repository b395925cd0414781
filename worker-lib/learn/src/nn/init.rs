//! Weight initialisation.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

/// Fills `weight` (`[rows, cols]`, row-major) with `gain` times a random matrix whose rows are orthonormal or, if it
/// has fewer columns than rows, whose columns are (Saxe et al., 2014). Uses the Gram-Schmidt process in f64, applied
/// twice for accuracy.
///
/// # Panics
/// Panics if `weight` does not hold `rows * cols` floats.
pub fn orthogonal(weight: &mut [f32], rows: usize, cols: usize, gain: f64, rng: &mut impl Rng) {
    assert_eq!(weight.len(), rows * cols, "a {rows} x {cols} weight");
    let (count, length) = (rows.min(cols), rows.max(cols));
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(count);
    while basis.len() < count {
        let mut vector: Vec<f64> = (0..length).map(|_| StandardNormal.sample(rng)).collect();
        for _ in 0..2 {
            basis.iter().for_each(|other| remove_component(&mut vector, other));
        }
        let norm = dot(&vector, &vector).sqrt();
        // A vector that lies almost in the span of the others has no meaningful direction, so a new vector is drawn.
        if norm > 1e-6 {
            vector.iter_mut().for_each(|x| *x /= norm);
            basis.push(vector);
        }
    }
    for (row, weights) in weight.chunks_exact_mut(cols).enumerate() {
        for (col, w) in weights.iter_mut().enumerate() {
            let x = if rows <= cols { basis[row][col] } else { basis[col][row] };
            *w = (gain * x) as f32;
        }
    }
}

/// Fills `values` with random numbers drawn uniformly between `-1 / sqrt(fan_in)` and `1 / sqrt(fan_in)`. This is
/// PyTorch's default for the weights and biases of dense and convolution layers whose units have `fan_in` inputs.
pub fn uniform_by_fan_in(values: &mut [f32], fan_in: usize, rng: &mut impl Rng) {
    let bound = 1.0 / (fan_in as f32).sqrt();
    values.iter_mut().for_each(|value| *value = rng.random_range(-bound..=bound));
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn remove_component(vector: &mut [f64], unit: &[f64]) {
    let along = dot(vector, unit);
    vector.iter_mut().zip(unit).for_each(|(x, u)| *x -= along * u);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn the_smaller_dimension_is_orthonormal() {
        for (rows, cols) in [(64, 11), (64, 64), (3, 64), (1, 64)] {
            let mut weight = vec![0.0; rows * cols];
            orthogonal(&mut weight, rows, cols, 2.0, &mut ChaCha8Rng::seed_from_u64(1));
            let at = |vector: usize, i: usize| {
                f64::from(if rows <= cols { weight[vector * cols + i] } else { weight[i * cols + vector] })
            };
            for a in 0..rows.min(cols) {
                for b in 0..=a {
                    let product: f64 = (0..rows.max(cols)).map(|i| at(a, i) * at(b, i)).sum();
                    let want = if a == b { 4.0 } else { 0.0 };
                    assert!((product - want).abs() < 1e-5, "{rows} x {cols}: {a} {b} {product}");
                }
            }
        }
    }
}
