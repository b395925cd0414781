//! Terrain on which the lander lands: straight segments to both sides of a flat pad.

use std::array;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::env::scene::Point;

/// Number of corners.
pub(super) const CORNERS: usize = 11;
/// Horizontal distance from the middle of the terrain to its edges, m.
pub(super) const HALF_WIDTH: f64 = 10.0;
/// Horizontal distance from the middle of the pad to its ends, m.
pub(super) const PAD_HALF_WIDTH: f64 = 2.0;

/// Horizontal distance between two adjacent corners, m.
const SPACING: f64 = 2.0 * HALF_WIDTH / (CORNERS - 1) as f64;
/// Bound on the absolute height of a corner before smoothing, m.
const HEIGHT_MAX: f64 = 10.0 / 3.0;

/// Heights of the corners above the pad, m, from left to right.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Terrain {
    pub(super) heights: [f64; CORNERS],
}

impl Terrain {
    /// Creates flat terrain.
    pub(super) fn flat() -> Self {
        Self { heights: [0.0; CORNERS] }
    }

    /// Generates random terrain with a flat pad in the middle. The height of each corner is the mean of three random
    /// heights.
    pub(super) fn random(rng: &mut ChaCha8Rng) -> Self {
        const MIDDLE: usize = CORNERS / 2;
        let mut rough: [f64; CORNERS] = array::from_fn(|_| rng.random_range(-HEIGHT_MAX..HEIGHT_MAX));
        rough[MIDDLE - 2..=MIDDLE + 2].fill(0.0);
        let at = |corner: usize| rough[corner.min(CORNERS - 1)];
        let heights =
            array::from_fn(|corner| (at(corner.saturating_sub(1)) + at(corner) + at(corner + 1)) / 3.0);
        Self { heights }
    }

    /// Returns the height, in m, and the slope of the terrain at the horizontal position `x`. Beyond the edges, the
    /// outermost segments are extended.
    pub(super) fn at(&self, x: f64) -> (f64, f64) {
        let along = (x + HALF_WIDTH) / SPACING;
        let segment = (along.max(0.0) as usize).min(CORNERS - 2);
        let (left, right) = (self.heights[segment], self.heights[segment + 1]);
        (left + (along - segment as f64) * (right - left), (right - left) / SPACING)
    }

    /// Returns the corners from left to right.
    pub(super) fn corners(&self) -> impl Iterator<Item = Point> + '_ {
        self.heights.iter().enumerate().map(|(i, height)| [i as f64 * SPACING - HALF_WIDTH, *height])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn the_pad_is_flat_and_the_rest_is_bounded() {
        for seed in 0..100 {
            let terrain = Terrain::random(&mut ChaCha8Rng::seed_from_u64(seed));
            for x in [-PAD_HALF_WIDTH, -0.7, 0.0, 1.3, PAD_HALF_WIDTH - 1e-9] {
                assert_eq!(terrain.at(x), (0.0, 0.0), "{x} m, {terrain:?}");
            }
            assert!(terrain.heights.iter().all(|height| height.abs() <= HEIGHT_MAX));
            assert!(terrain.heights[0] != 0.0 && terrain.heights[CORNERS - 1] != 0.0);
        }
    }

    #[test]
    fn heights_are_interpolated_between_corners() {
        let mut terrain = Terrain::flat();
        (terrain.heights[0], terrain.heights[1]) = (1.0, 3.0);
        assert_eq!(terrain.at(-9.5), (1.5, 1.0));
        assert_eq!(terrain.at(-7.0), (1.5, -1.5));
        assert_eq!(terrain.corners().nth(1), Some([-8.0, 3.0]));
    }
}
