//! The tables of a shard, from what an algorithm wants.

use iswitch_replay::table::{ErrorBuffer, LimiterError, RateLimiter, Selector, TableConfig};

use iswitch_learn::algorithms::remote::Demand;

/// Transitions or rollouts.
pub(super) const EXPERIENCE: &str = "experience";
/// What actors of an off-policy algorithm tell of their episodes.
pub(super) const EPISODES: &str = "episodes";

/// Messages about episodes that a shard keeps for learners that are slow.
const EPISODES_KEPT: u64 = 65_536;
/// Items that actors hand over at a time, about.
const ITEMS_IN_FLIGHT: f64 = 256.0;

/// Tables of one of `shards` shards.
///
/// # Errors
/// A ratio of samples to inserts that no table can hold to.
pub fn tables(demand: &Demand, shards: usize) -> Result<Vec<TableConfig>, LimiterError> {
    let part = |count: u64| count.div_ceil(shards.max(1) as u64).max(1);
    let experience = match *demand {
        Demand::Rollouts { per_update, .. } => {
            TableConfig::queue(EXPERIENCE, part(per_update as u64), u64::MAX)
        }
        Demand::Transitions { capacity, batch_size, learning_starts, samples_per_insert, prioritisation } => {
            // Enough for what is under way on both sides, so that neither waits for the other's granularity.
            let margin = 2.0 * (batch_size as f64 + samples_per_insert * ITEMS_IN_FLIGHT);
            let margin = ErrorBuffer::Margin(margin);
            let limiter =
                RateLimiter::sample_to_insert_ratio(samples_per_insert, part(learning_starts), margin)?;
            let sampler = prioritisation
                .map_or(Selector::Uniform, |how| Selector::Prioritized { exponent: f64::from(how.alpha) });
            TableConfig { limiter, sampler, ..TableConfig::uniform(EXPERIENCE, part(capacity), u64::MAX) }
        }
    };
    let episodes = TableConfig {
        sampler: Selector::Fifo,
        max_times_sampled: 1,
        // Some 80 MiB of memory would be too many for a message of 16 bytes.
        ..TableConfig::uniform(EPISODES, EPISODES_KEPT, EPISODES_KEPT * 512)
    };
    Ok(vec![experience, episodes])
}
