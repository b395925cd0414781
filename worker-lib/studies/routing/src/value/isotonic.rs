//! Weighted isotonic regression by pooling adjacent violators (Ayer et al., 1955).

/// Returns the non-decreasing values with the smallest weighted squared distance from `values`. A value whose weight is
/// 0 becomes equal to the preceding value or, at the start of the list, to the following value.
pub(super) fn isotonic(values: &[f64], weights: &[f64]) -> Vec<f64> {
    // Blocks of equal values: their mean, weight and length.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::with_capacity(values.len());
    for (value, weight) in values.iter().zip(weights) {
        if *weight <= 0.0 {
            match blocks.last_mut() {
                Some((_, _, len)) => *len += 1,
                None => blocks.push((*value, 0.0, 1)),
            }
            continue;
        }
        let (mut mean, mut total, mut count) = (*value, *weight, 1);
        while let Some((before, weight, len)) =
            blocks.pop_if(|(before, weight, _)| *before > mean || *weight == 0.0)
        {
            mean = (mean * total + before * weight) / (total + weight);
            total += weight;
            count += len;
        }
        blocks.push((mean, total, count));
    }
    blocks.into_iter().flat_map(|(mean, _, len)| std::iter::repeat_n(mean, len)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_isotonic_fit_keeps_rising_values_and_pools_falling_ones() {
        assert_eq!(isotonic(&[1.0, 2.0, 2.0, 5.0], &[1.0; 4]), [1.0, 2.0, 2.0, 5.0]);
        assert_eq!(isotonic(&[3.0, 1.0, 4.0], &[1.0, 3.0, 1.0]), [1.5, 1.5, 4.0]);
        assert_eq!(isotonic(&[1.0, 9.0, 4.0, 9.0], &[1.0, 1.0, 1.0, 0.0]), [1.0, 6.5, 6.5, 6.5]);
        assert_eq!(isotonic(&[9.0, 2.0], &[0.0, 1.0]), [2.0, 2.0]);
    }

    proptest! {
        #[test]
        fn the_isotonic_fit_never_falls_and_keeps_the_weighted_sum(
            pairs in prop::collection::vec((-10.0_f64..10.0, 0.1_f64..5.0), 1..20),
        ) {
            let (values, weights): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            let fitted = isotonic(&values, &weights);
            prop_assert!(fitted.windows(2).all(|pair| pair[0] <= pair[1]));
            let sum = |values: &[f64]| values.iter().zip(&weights).map(|(value, weight)| value * weight).sum::<f64>();
            prop_assert!((sum(&fitted) - sum(&values)).abs() < 1e-9);
        }
    }
}
