//! Gradient clipping by global norm (Pascanu et al., 2013).

/// Scales `gradient` so that its Euclidean norm is at most `max_norm`. Returns the norm before scaling. The norm is
/// computed in f64 and in a fixed order, so all replicas scale by a bit-identical factor.
pub fn clip_global_norm(gradient: &mut [f32], max_norm: f32) -> f32 {
    const LANES: usize = 8;
    let mut sums = [0.0_f64; LANES];
    let chunks = gradient.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(*x) * f64::from(*x);
        }
    }
    let norm = (sums.iter().sum::<f64>() + rest).sqrt() as f32;
    if norm > max_norm {
        let scale = max_norm / norm;
        gradient.iter_mut().for_each(|x| *x *= scale);
    }
    norm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_vectors_above_the_norm_limit_are_clipped() {
        let mut long: Vec<f32> = (0..19).map(|i| i as f32 - 9.0).collect();
        let norm = clip_global_norm(&mut long, 0.5);
        assert!((norm - 570.0_f32.sqrt()).abs() < 1e-4);
        let after = long.iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!((after - 0.5).abs() < 1e-6, "{after}");
        let mut short = [0.3_f32, 0.0, -0.2];
        clip_global_norm(&mut short, 0.5);
        assert_eq!(short.map(f32::to_bits), [0.3_f32, 0.0, -0.2].map(f32::to_bits));
    }
}
