//! Means over several runs, with their confidence intervals.

use serde::Serialize;

/// Mean over runs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Mean {
    /// Sample mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; null for a single run.
    pub ci95: Option<f64>,
}

impl Mean {
    /// Returns the mean of at least one value, with its confidence interval.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let ci95 = (values.len() > 1).then(|| {
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
            student_95(values.len() - 1) * (variance / count).sqrt()
        });
        Self { mean, ci95 }
    }

    /// Formats the mean with `digits` digits after the decimal point, followed by the confidence interval if there is
    /// one.
    pub fn text(self, digits: usize) -> String {
        match self.ci95 {
            Some(ci95) => format!("{:.digits$} +/- {ci95:.digits$}", self.mean),
            None => format!("{:.digits$}", self.mean),
        }
    }
}

/// Returns the 0.975 quantile of Student's t-distribution. Up to 10 degrees of freedom, the quantile comes from a
/// table. For more degrees of freedom, it is computed with the expansion around the normal quantile (Abramowitz and
/// Stegun, 26.7.5), which is accurate to within 0.001 in this range.
fn student_95(freedom: usize) -> f64 {
    const Z: f64 = 1.959_964;
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    if let Some(quantile) = TABLE.get(freedom.saturating_sub(1)) {
        return *quantile;
    }
    let n = freedom as f64;
    let (z3, z5) = (Z.powi(3), Z.powi(5));
    Z + (z3 + Z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_the_published_tables() {
        for (freedom, want) in [(1, 12.706), (10, 2.228), (11, 2.201), (19, 2.093), (30, 2.042), (99, 1.984)]
        {
            assert!((student_95(freedom) / want - 1.0).abs() < 2e-3, "{freedom}: {}", student_95(freedom));
        }
    }

    #[test]
    fn one_run_has_no_interval() {
        assert_eq!(Mean::of(&[2.5]).text(1), "2.5");
        assert_eq!(Mean::of(&[1.0, 3.0]).text(2), "2.00 +/- 12.71");
    }
}
