//! Gymnasium's robots on MuJoCo, whose library is opened at run time.
//!
//! The models are this project's own descriptions of the robots, with Gymnasium's geometry and constants; tests check
//! that trajectories equal recordings of Gymnasium's environments.

mod half_cheetah;
mod hopper;
mod library;
mod simulation;

pub use half_cheetah::HalfCheetah;
pub use hopper::MujocoHopper;
pub use library::MujocoLibrary;

pub(super) const HOPPER_ID: &str = hopper::ID;
pub(super) const HALF_CHEETAH_ID: &str = half_cheetah::ID;

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    pub(super) use crate::env::tests::available;
    use crate::env::{Action, Environment};

    /// Returns each line of a recorded trajectory with its fields.
    pub(super) fn recorded(fixture: &str) -> impl Iterator<Item = (&str, Vec<f64>)> {
        let lines = fixture.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| (line, line.split(',').map(|field| field.parse().unwrap()).collect()))
    }

    /// Checks that `b` continues bit for bit from a state that `a` saved during a contact.
    pub(super) fn takes_over(a: &mut impl Environment, b: &mut impl Environment, motors: usize) {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let len = a.spec().observation_dim;
        let (mut observed_a, mut observed_b) = (vec![0.0; len], vec![0.0; len]);
        a.reset(&mut rng, &mut observed_a).unwrap();
        b.reset(&mut rng, &mut observed_b).unwrap();
        // These steps bring the robot into contact with the ground, where the solver's warm start matters.
        for _ in 0..8 {
            a.step(Action::Continuous(&vec![0.3; motors]), &mut observed_a).unwrap();
        }
        b.restore_state(&a.save_state()).unwrap();
        for i in 0..10 {
            let action = vec![0.1 * i as f32 - 0.4; motors];
            let action = Action::Continuous(&action);
            assert_eq!(a.step(action, &mut observed_a).unwrap(), b.step(action, &mut observed_b).unwrap());
            let bits = |observed: &[f32]| observed.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&observed_a), bits(&observed_b));
        }
    }
}
