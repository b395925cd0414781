//! Tables of a replay shard, derived from the requirements of an algorithm.

use iswitch_replay::table::{ErrorBuffer, LimiterError, RateLimiter, Selector, TableConfig};

use iswitch_learn::algorithms::remote::Demand;

/// Name of the table of transitions or rollouts.
pub(super) const EXPERIENCE: &str = "experience";
/// Name of the table of episode statistics from actors of off-policy algorithms.
pub(super) const EPISODES: &str = "episodes";

/// Maximum number of episode messages that a shard keeps for slow learners.
const EPISODES_KEPT: u64 = 65_536;
/// Approximate number of items that actors insert concurrently.
const ITEMS_IN_FLIGHT: f64 = 256.0;

/// Returns the tables of one of `shards` shards. All shards have the same tables.
///
/// # Errors
/// Fails if no table can maintain the ratio of samples to inserts.
pub fn tables(demand: &Demand, shards: usize) -> Result<Vec<TableConfig>, LimiterError> {
    let part = |count: u64| count.div_ceil(shards.max(1) as u64).max(1);
    let experience = match *demand {
        Demand::Rollouts { per_update, .. } => {
            TableConfig::queue(EXPERIENCE, part(per_update as u64), u64::MAX)
        }
        Demand::Transitions { capacity, batch_size, learning_starts, samples_per_insert, prioritisation } => {
            // The margin covers the inserts and the samples in flight, so that neither side waits for a whole batch of
            // the other.
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
        // Limit the memory of the table. The limit suffices for the maximum number of messages and their overhead.
        ..TableConfig::uniform(EPISODES, EPISODES_KEPT, EPISODES_KEPT * 512)
    };
    Ok(vec![experience, episodes])
}
