//! The HalfCheetah-v5 environment.

use rand_chacha::ChaCha8Rng;

use super::simulation::Simulation;
use crate::env::half_cheetah_task::{self, MOTORS, N};
use crate::env::scene::Picture;
use crate::env::{Action, EnvError, EnvSpec, Environment, Step, clipped};

pub(super) const ID: &str = "HalfCheetah-v5";

/// Number of MuJoCo steps (10 ms each) per action.
const FRAME_SKIP: usize = 5;

/// A 14 kg robot: a torso with a head and two legs, each made of three capsules on hinges with springs and dampers. The
/// density is chosen so that the capsules together have a mass of 14 kg.
const MODEL: &str = r#"
<mujoco model="half_cheetah">
  <compiler angle="radian" inertiafromgeom="true"/>
  <option timestep="0.01"/>
  <default>
    <geom type="capsule" size="0.046" density="660.8849500774735" contype="1" conaffinity="0" condim="3"
      friction="0.4 0.1 0.1" solref="0.02 1" solimp="0 0.8 0.01"/>
    <joint type="hinge" axis="0 1 0" armature="0.1" limited="true" solreflimit="0.02 1" solimplimit="0 0.8 0.03"/>
    <motor ctrllimited="true" ctrlrange="-1 1"/>
  </default>
  <worldbody>
    <geom name="ground" type="plane" size="40 40 40" conaffinity="1"/>
    <body name="torso" pos="0 0 0.7">
      <joint name="forward" type="slide" axis="1 0 0" armature="0" limited="false"/>
      <joint name="up" type="slide" axis="0 0 1" armature="0" limited="false"/>
      <joint name="pitch" armature="0" limited="false"/>
      <geom name="torso" fromto="-0.5 0 0 0.5 0 0"/>
      <geom name="head" pos="0.6 0 0.1" axisangle="0 1 0 0.87" size="0.046 0.15"/>
      <body name="back_thigh" pos="-0.5 0 0">
        <joint name="back_thigh" range="-0.52 1.05" damping="6" stiffness="240"/>
        <geom pos="0.1 0 -0.13" axisangle="0 1 0 -3.8" size="0.046 0.145"/>
        <body name="back_shin" pos="0.16 0 -0.25">
          <joint name="back_shin" range="-0.785 0.785" damping="4.5" stiffness="180"/>
          <geom pos="-0.14 0 -0.07" axisangle="0 1 0 -2.03" size="0.046 0.15"/>
          <body name="back_foot" pos="-0.28 0 -0.14">
            <joint name="back_foot" range="-0.4 0.785" damping="3" stiffness="120"/>
            <geom pos="0.03 0 -0.097" axisangle="0 1 0 -0.27" size="0.046 0.094"/>
          </body>
        </body>
      </body>
      <body name="front_thigh" pos="0.5 0 0">
        <joint name="front_thigh" range="-1 0.7" damping="4.5" stiffness="180"/>
        <geom pos="-0.07 0 -0.12" axisangle="0 1 0 0.52" size="0.046 0.133"/>
        <body name="front_shin" pos="-0.14 0 -0.24">
          <joint name="front_shin" range="-1.2 0.87" damping="3" stiffness="120"/>
          <geom pos="0.065 0 -0.09" axisangle="0 1 0 -0.6" size="0.046 0.106"/>
          <body name="front_foot" pos="0.13 0 -0.18">
            <joint name="front_foot" range="-0.5 0.5" damping="1.5" stiffness="60"/>
            <geom pos="0.045 0 -0.07" axisangle="0 1 0 -0.6" size="0.046 0.07"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="back_thigh" gear="120"/>
    <motor joint="back_shin" gear="90"/>
    <motor joint="back_foot" gear="60"/>
    <motor joint="front_thigh" gear="120"/>
    <motor joint="front_shin" gear="60"/>
    <motor joint="front_foot" gear="30"/>
  </actuator>
</mujoco>
"#;

/// The HalfCheetah-v5 environment. Observation: z (m), pitch and six joint angles (rad), nine velocities (m/s and
/// rad/s). Action: six motors in [-1, 1]. Reward: forward velocity (m/s) - 0.1 |action|^2. Episodes never terminate.
pub struct HalfCheetah {
    spec: EnvSpec,
    simulation: Simulation,
}

impl HalfCheetah {
    /// Creates a standing robot.
    ///
    /// # Errors
    /// Fails if libmujoco cannot be opened or rejects the model.
    pub fn new() -> Result<Self, EnvError> {
        let simulation = Simulation::new(MODEL, N, MOTORS)?;
        Ok(Self { spec: half_cheetah_task::spec(ID), simulation })
    }

    fn observe(&self, observation: &mut [f32]) {
        let (q, v) = self.simulation.coordinates().split_at(N);
        half_cheetah_task::observe(q, v, observation);
    }
}

impl Environment for HalfCheetah {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng, observation: &mut [f32]) -> Result<(), EnvError> {
        self.simulation.begin(|coordinates| {
            let (q, v) = coordinates.split_at_mut(N);
            half_cheetah_task::disturb(q, v, rng);
        });
        self.observe(observation);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Result<Step, EnvError> {
        let control: [f64; MOTORS] = clipped(action)?;
        let x_before = self.simulation.coordinates()[0];
        self.simulation.advance(&control, FRAME_SKIP);
        self.observe(observation);
        Ok(half_cheetah_task::outcome(x_before, self.simulation.coordinates()[0], &control))
    }

    fn picture(&mut self) -> Result<Option<Picture>, EnvError> {
        Ok(Some(Picture::Scene(half_cheetah_task::scene(&self.simulation.coordinates()[..N]))))
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

    /// `fixtures/env/half_cheetah_v5.csv` has the columns `episode,actions[6],reward,qpos[9],qvel[9]`, recorded once
    /// from Gymnasium 1.4.0's HalfCheetah-v5 on MuJoCo 4.0.0. Each step starts from the recorded state, because
    /// contacts amplify a difference in the last bit.
    #[test]
    fn trajectories_match_recordings_of_gymnasium() {
        let Some(mut cheetah) = available(HalfCheetah::new()) else { return };
        let tolerance = if cheetah.simulation.is_older() { 0.2 } else { 1e-5 };
        let mut observation = [0.0; 17];
        let mut steps = 0;
        for (line, fields) in recorded(include_str!("../../../../../fixtures/env/half_cheetah_v5.csv")) {
            let (reward, state) = (fields[7], &fields[8..]);
            if reward < -999.0 {
                cheetah.reset(&mut ChaCha8Rng::seed_from_u64(1), &mut observation).unwrap();
            } else {
                let action: Vec<f32> = fields[1..7].iter().map(|a| *a as f32).collect();
                let step = cheetah.step(Action::Continuous(&action), &mut observation).unwrap();
                assert!((step.reward - reward).abs() < tolerance * reward.abs().max(1.0), "{line}: {step:?}");
                for (got, want) in cheetah.simulation.coordinates().iter().zip(state) {
                    let is_near = (got - want).abs() < tolerance * want.abs().max(1.0);
                    assert!(is_near, "{line}: {:?}", cheetah.simulation.coordinates());
                }
                steps += 1;
            }
            cheetah.simulation.set_coordinates(state);
            cheetah.observe(&mut observation);
        }
        assert_eq!(steps, 150);
    }

    #[test]
    fn a_restored_state_continues_bit_for_bit() {
        let (Some(mut a), Some(mut b)) = (available(HalfCheetah::new()), available(HalfCheetah::new()))
        else {
            return;
        };
        takes_over(&mut a, &mut b, MOTORS);
    }
}
