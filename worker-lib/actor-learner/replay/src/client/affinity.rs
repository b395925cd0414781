//! Choice of the shard that an actor writes to.

/// Returns the shards in an actor's order of preference, by rendezvous hashing (Thaler and Ravishankar, "Using
/// name-based mappings to increase hit rates", 1998). Each shard gets an equal share of the actors. If a shard fails,
/// only the actors that prefer it move, and they are spread evenly over the remaining shards.
pub(super) fn preference(actor: u64, shards: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shards.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(mix(actor, shards[*at])));
    order
}

/// Hashes a shard's name with FNV-1a, which yields the same number in every process.
pub(super) fn hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Mixes the two numbers with the finaliser of SplitMix64.
fn mix(actor: u64, shard: u64) -> u64 {
    let mut x = finish(actor.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ shard;
    x = finish(x);
    x
}

fn finish(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(count: usize) -> Vec<u64> {
        (0..count).map(|at| hash(&format!("http://10.0.0.{at}:7800"))).collect()
    }

    #[test]
    fn actors_are_spread_evenly() {
        let shards = shards(8);
        let mut counts = [0_i32; 8];
        (0..2048).for_each(|actor| counts[preference(actor, &shards)[0]] += 1);
        assert!(counts.iter().all(|count| (count - 256).abs() < 80), "{counts:?}");
    }

    #[test]
    fn only_the_actors_of_a_removed_shard_are_reassigned() {
        let all = shards(8);
        let mut moved = [0_i32; 8];
        for actor in 0..2048 {
            let before = preference(actor, &all);
            let after = preference(actor, &all[..7]);
            if before[0] == 7 {
                assert_eq!(after[0], before[1]);
                moved[after[0]] += 1;
            } else {
                assert_eq!(after[0], before[0]);
            }
        }
        assert!(moved[..7].iter().all(|count| *count > 10), "{moved:?}");
    }
}
