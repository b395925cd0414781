//! The Hopper-v5 environment.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::simulation::Simulation;
use crate::env::hopper_task::{self, MOTORS, N, START_SPREAD};
use crate::env::scene::Picture;
use crate::env::{Action, EnvError, EnvSpec, Environment, Step, clipped};

pub(super) const ID: &str = "Hopper-v5";

/// Number of MuJoCo steps (2 ms each) per action.
const FRAME_SKIP: usize = 4;

/// A torso, a thigh, a leg and a foot: capsules with the density of water on three hinges that turn about -y, each
/// with a motor of 200 N m, a rotor inertia of 1 kg m^2 and a damping of 1 N m s/rad.
const MODEL: &str = r#"
<mujoco model="hopper">
  <compiler angle="degree" inertiafromgeom="true"/>
  <option integrator="RK4" timestep="0.002"/>
  <default>
    <geom type="capsule" friction="0.9" condim="1" margin="0.001" solref="0.02 1" solimp="0.8 0.8 0.01"/>
    <joint type="hinge" axis="0 -1 0" armature="1" damping="1" limited="true"/>
    <motor gear="200" ctrllimited="true" ctrlrange="-1 1"/>
  </default>
  <worldbody>
    <geom name="ground" type="plane" size="20 20 0.125" condim="3" friction="1"/>
    <body name="torso" pos="0 0 1.25">
      <joint name="forward" type="slide" axis="1 0 0" pos="0 0 -1.25" armature="0" damping="0" limited="false"/>
      <joint name="up" type="slide" axis="0 0 1" pos="0 0 -1.25" ref="1.25" armature="0" damping="0" limited="false"/>
      <joint name="pitch" axis="0 1 0" armature="0" damping="0" limited="false"/>
      <geom name="torso" size="0.05" fromto="0 0 0.2 0 0 -0.2"/>
      <body name="thigh" pos="0 0 -0.2">
        <joint name="hip" range="-150 0"/>
        <geom name="thigh" size="0.05" fromto="0 0 0 0 0 -0.45"/>
        <body name="leg" pos="0 0 -0.45">
          <joint name="knee" range="-150 0"/>
          <geom name="leg" size="0.04" fromto="0 0 0 0 0 -0.5"/>
          <body name="foot" pos="0 0 -0.5">
            <joint name="ankle" range="-45 45"/>
            <geom name="foot" size="0.06" fromto="-0.13 0 0 0.26 0 0" friction="2"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="hip"/>
    <motor joint="knee"/>
    <motor joint="ankle"/>
  </actuator>
</mujoco>
"#;

/// The Hopper-v5 environment, whose observation, action and reward equal those of [`crate::env::PlanarHopper`].
/// Observation: z (m), pitch and three joint angles (rad), six velocities (m/s and rad/s) clipped to [-10, 10]. Action:
/// three motors in [-1, 1]. Reward: forward velocity (m/s) + 1 while healthy - 0.001 |action|^2.
pub struct MujocoHopper {
    spec: EnvSpec,
    simulation: Simulation,
}

impl MujocoHopper {
    /// Creates a standing robot.
    ///
    /// # Errors
    /// Fails if libmujoco cannot be opened or rejects the model.
    pub fn new() -> Result<Self, EnvError> {
        let simulation = Simulation::new(MODEL, N, MOTORS)?;
        Ok(Self { spec: hopper_task::spec(ID), simulation })
    }

    fn observe(&self, observation: &mut [f32]) {
        let (q, v) = self.simulation.coordinates().split_at(N);
        hopper_task::observe(q, v, observation);
    }
}

impl Environment for MujocoHopper {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.simulation.begin(|coordinates| {
            coordinates.iter_mut().for_each(|x| *x += rng.random_range(-START_SPREAD..START_SPREAD));
        });
        self.observe(observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let control = clipped(action)?;
        let x_before = self.simulation.coordinates()[0];
        self.simulation.advance(&control, FRAME_SKIP);
        self.observe(observation);
        let (q, v) = self.simulation.coordinates().split_at(N);
        Ok(hopper_task::outcome(x_before, q, v, &control))
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        Ok(Some(Picture::Scene(hopper_task::scene(self.simulation.coordinates()))))
    }

    fn save_state(&self) -> Vec<f64> {
        self.simulation.save()
    }

    fn restore_state(&mut self, state: &[f64]) -> Result<(), EnvError> {
        self.simulation.restore(state)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{available, recorded, takes_over};
    use super::*;
    use rand::SeedableRng;

    /// `fixtures/env/hopper_v5.csv` has the columns `episode,actions[3],reward,terminated,qpos[6],qvel[6]`, recorded
    /// once from Gymnasium 1.4.0's Hopper-v5 on MuJoCo 4.0.0. MuJoCo versions before 3.5.0 solve contacts slightly
    /// differently, even with Gymnasium's own model file, so the tolerance is wider for them.
    #[test]
    fn trajectories_match_recordings_of_gymnasium() {
        let Some(mut hopper) = available(MujocoHopper::new()) else { return };
        let older = hopper.simulation.is_older();
        let tolerance = if older { 0.2 } else { 1e-6 };
        let mut observation = [0.0; 11];
        let mut ends = 0;
        for (line, fields) in recorded(include_str!("../../../../../fixtures/env/hopper_v5.csv")) {
            let (reward, terminated, state) = (fields[4], fields[5] > 0.0, &fields[6..]);
            if reward < -999.0 {
                hopper.reset(&mut ChaCha8Rng::seed_from_u64(1), &mut observation).unwrap();
                hopper.simulation.set_coordinates(state);
                hopper.observe(&mut observation);
                continue;
            }
            let action: Vec<f32> = fields[1..4].iter().map(|a| *a as f32).collect();
            let step = hopper.step(Action::Continuous(&action), &mut observation).unwrap();
            assert!((step.reward - reward).abs() < tolerance, "{line}: {step:?}");
            assert_eq!(step.terminated, terminated, "{line}");
            for (got, want) in hopper.simulation.coordinates().iter().zip(state) {
                let is_near = (got - want).abs() < tolerance * want.abs().max(1.0);
                assert!(is_near, "{line}: {:?}", hopper.simulation.coordinates());
            }
            ends += usize::from(terminated);
            if older {
                // Each step starts from the recorded state, so that differences do not accumulate over the episode.
                hopper.simulation.set_coordinates(state);
                hopper.observe(&mut observation);
            }
        }
        assert!(ends >= 2, "{ends} ends");
    }

    #[test]
    fn a_restored_state_continues_bit_for_bit() {
        let (Some(mut a), Some(mut b)) = (available(MujocoHopper::new()), available(MujocoHopper::new()))
        else {
            return;
        };
        takes_over(&mut a, &mut b, MOTORS);
    }
}
