//! Element-wise functions between layers.

/// Function applied to each output of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Leaves the value unchanged.
    Identity,
    /// Hyperbolic tangent; see [`tanh`].
    Tanh,
    /// `max(0, x)`.
    Relu,
}

impl Activation {
    /// Applies the function in place.
    pub fn forward(self, values: &mut [f32]) {
        match self {
            Self::Identity => {}
            Self::Tanh => values.iter_mut().for_each(|x| *x = tanh(*x)),
            Self::Relu => values.iter_mut().for_each(|x| *x = x.max(0.0)),
        }
    }

    /// Multiplies `delta`, the gradient of the loss with respect to the function's results, by the function's
    /// derivative. The product is the gradient with respect to the arguments. `results` is the output of
    /// [`Self::forward`].
    pub fn backward(self, results: &[f32], delta: &mut [f32]) {
        match self {
            Self::Identity => {}
            Self::Tanh => delta.iter_mut().zip(results).for_each(|(d, y)| *d *= 1.0 - y * y),
            Self::Relu => {
                delta.iter_mut().zip(results).for_each(|(d, y)| *d = if *y > 0.0 { *d } else { 0.0 });
            }
        }
    }
}

/// Argument at which the rational approximation reaches 1 to f32 precision; arguments of greater magnitude are clamped.
const SATURATION: f32 = 7.905_311;

/// Numerator coefficients, from x^13 down to x^1.
const NUMERATOR: [f32; 7] = [
    -2.760_768_5e-16,
    2.000_188e-13,
    -8.604_672e-11,
    5.122_297e-8,
    1.485_722_4e-5,
    6.372_619_3e-4,
    4.893_524_6e-3,
];

/// Denominator coefficients, from x^6 down to x^0.
const DENOMINATOR: [f32; 4] = [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_6e-3, 4.893_525e-3];

/// Computes the hyperbolic tangent with the rational minimax approximation of the Eigen library
/// (`generic_fast_tanh_float`: degree 13 over degree 6). The absolute error is below 5e-7 for all arguments (tested);
/// the function is odd, and its results lie in [-1, 1]. It uses neither branches nor fused operations, so it can be
/// vectorised and returns bit-identical results on every machine.
#[inline]
pub fn tanh(x: f32) -> f32 {
    let x = x.clamp(-SATURATION, SATURATION);
    let square = x * x;
    let horner = |coefficients: &[f32]| coefficients.iter().fold(0.0, |sum, c| sum * square + c);
    x * horner(&NUMERATOR) / horner(&DENOMINATOR)
}

/// Computes the logistic function with [`tanh`].
#[inline]
pub(super) fn sigmoid(x: f32) -> f32 {
    0.5 + 0.5 * tanh(0.5 * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tanh_is_within_its_error_bound() {
        let worst = (-120_000..=120_000)
            .map(|i| i as f32 * 1e-4)
            .map(|x| (f64::from(tanh(x)) - f64::from(x).tanh()).abs())
            .fold(0.0, f64::max);
        assert!(worst < 5e-7, "{worst:e}");
    }

    #[test]
    fn tanh_is_odd_and_bounded() {
        for x in [0.0, 1e-30, 0.3, 2.0, 7.9, 8.0, 1e30, f32::INFINITY] {
            assert_eq!(tanh(-x).to_bits(), (-tanh(x)).to_bits());
            assert!(tanh(x) <= 1.0 + 5e-7, "{x}: {}", tanh(x));
        }
    }

    #[test]
    fn derivatives_agree_with_differences() {
        for activation in [Activation::Identity, Activation::Tanh, Activation::Relu] {
            for x in [-1.5_f32, -0.2, 0.4, 2.0] {
                let at = |x: f32| {
                    let mut value = [x];
                    activation.forward(&mut value);
                    value[0]
                };
                let numeric = (at(x + 1e-2) - at(x - 1e-2)) / 2e-2;
                let mut delta = [1.0];
                activation.backward(&[at(x)], &mut delta);
                assert!((delta[0] - numeric).abs() < 2e-4, "{activation:?} at {x}: {} {numeric}", delta[0]);
            }
        }
    }
}
