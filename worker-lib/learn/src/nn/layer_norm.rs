//! Layer normalisation (Ba et al., 2016), as in PyTorch.

/// Constant that is added to the variance.
pub const LAYER_NORM_EPSILON: f32 = 1e-5;

/// Splits the values that the forward pass kept into the normalised rows, `[batch, len]`, and the inverse standard
/// deviation of each row, `[batch]`.
fn kept_parts(len: usize, kept: &[f32]) -> (&[f32], &[f32]) {
    kept.split_at(kept.len() / (len + 1) * len)
}

pub(super) fn forward(len: usize, weight: &[f32], bias: &[f32], x: &[f32], y: &mut [f32], kept: &mut [f32]) {
    let (normalised, inverses) = kept.split_at_mut(x.len());
    let rows = x.chunks_exact(len).zip(y.chunks_exact_mut(len)).zip(normalised.chunks_exact_mut(len));
    for (((x, y), normalised), inverse) in rows.zip(inverses) {
        let mean = x.iter().sum::<f32>() / len as f32;
        let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / len as f32;
        *inverse = 1.0 / (variance + LAYER_NORM_EPSILON).sqrt();
        for (i, n) in normalised.iter_mut().enumerate() {
            *n = (x[i] - mean) * *inverse;
            y[i] = weight[i] * *n + bias[i];
        }
    }
}

pub(super) fn parameter_gradient(
    len: usize,
    delta: &[f32],
    kept: &[f32],
    by_weight: &mut [f32],
    by_bias: &mut [f32],
) {
    let (normalised, _) = kept_parts(len, kept);
    by_weight.fill(0.0);
    by_bias.fill(0.0);
    for (delta, normalised) in delta.chunks_exact(len).zip(normalised.chunks_exact(len)) {
        for (i, d) in delta.iter().enumerate() {
            by_weight[i] += d * normalised[i];
            by_bias[i] += d;
        }
    }
}

pub(super) fn input_gradient(len: usize, weight: &[f32], delta: &[f32], kept: &[f32], by_input: &mut [f32]) {
    let (normalised, inverses) = kept_parts(len, kept);
    let rows = delta.chunks_exact(len).zip(normalised.chunks_exact(len)).zip(by_input.chunks_exact_mut(len));
    for (((delta, normalised), by_input), inverse) in rows.zip(inverses) {
        let weighted = || delta.iter().zip(weight).map(|(d, w)| d * w);
        let mean = weighted().sum::<f32>() / len as f32;
        let along = weighted().zip(normalised).map(|(d, n)| d * n).sum::<f32>() / len as f32;
        for ((by_x, d), n) in by_input.iter_mut().zip(weighted()).zip(normalised) {
            *by_x = inverse * (d - mean - n * along);
        }
    }
}
