//! Saves and restores the environments of a worker in its checkpoint file.

use safetensors::tensor::Dtype;

use super::super::TrainError;
use super::super::environments::EnvironmentSlot;
use super::file::{Reader, Writer};

/// Writes the state of each environment and the positions of its random streams, keyed by the global number of the
/// environment.
pub fn write_slots(writer: &mut Writer, slots: &[EnvironmentSlot]) {
    for slot in slots {
        let name = |what: &str| format!("env.{}.{what}", slot.index);
        writer.doubles(&name("state"), &slot.env.save_state());
        writer.floats(&name("observation"), vec![slot.observation.len()], &slot.observation);
        if !slot.memory.is_empty() {
            writer.floats(&name("memory"), vec![slot.memory.len()], &slot.memory);
        }
        let episode = [slot.episode_return, f64::from(slot.episode_length), slot.discounted_return];
        writer.doubles(&name("episode"), &episode);
        writer.text(&name("action_rng"), slot.action_rng.get_word_pos().to_string());
        writer.text(&name("reset_rng"), slot.reset_rng.get_word_pos().to_string());
        writer.text(&name("minibatch_rng"), slot.minibatch_rng.get_word_pos().to_string());
    }
}

/// Restores the state of each environment slot from the file in `files` that contains it. Returns the numbers of the
/// environments that are in none of the files.
///
/// # Errors
/// Fails if a saved state does not match the slot.
pub fn read_slots(files: &[Reader<'_>], slots: &mut [EnvironmentSlot]) -> Result<Vec<usize>, TrainError> {
    let mut missing = Vec::new();
    for slot in slots {
        let name = format!("env.{}.state", slot.index);
        match files.iter().find(|file| file.has(&name)) {
            Some(file) => decode_slot(file, slot)?,
            None => missing.push(slot.index),
        }
    }
    Ok(missing)
}

fn decode_slot(file: &Reader<'_>, slot: &mut EnvironmentSlot) -> Result<(), TrainError> {
    let name = |what: &str| format!("env.{}.{what}", slot.index);
    let numbers = file.len(&name("state"), Dtype::F64)?;
    let state = file.doubles(&name("state"), numbers)?;
    let observation = file.floats(&name("observation"), slot.observation.len())?;
    let memory = match slot.memory.len() {
        0 => vec![],
        len => file.floats(&name("memory"), len)?,
    };
    let episode = file.doubles(&name("episode"), 3)?;
    let (actions, resets, minibatches) = (
        file.number(&name("action_rng"))?,
        file.number(&name("reset_rng"))?,
        file.number(&name("minibatch_rng"))?,
    );
    slot.env.restore_state(&state)?;
    (slot.observation, slot.memory) = (observation, memory);
    (slot.episode_return, slot.episode_length, slot.discounted_return) =
        (episode[0], episode[1] as u32, episode[2]);
    slot.action_rng.set_word_pos(actions);
    slot.reset_rng.set_word_pos(resets);
    slot.minibatch_rng.set_word_pos(minibatches);
    Ok(())
}
