use super::*;
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// Reference model: slots in insertion order, each with its priority and the sequence number of its last change.
#[derive(Default)]
struct Naive {
    items: Vec<(u32, f64, u64)>,
    stamps: u64,
}

impl Naive {
    fn insert(&mut self, slot: u32, priority: f64) {
        self.items.push((slot, priority, self.stamps));
        self.stamps += 1;
    }

    fn update(&mut self, slot: u32, priority: f64) {
        let stamp = self.stamps;
        self.stamps += 1;
        for item in self.items.iter_mut().filter(|item| item.0 == slot) {
            (item.1, item.2) = (priority, stamp);
        }
    }

    fn extreme(&self, sign: f64) -> Option<u32> {
        let order = |a: &&(u32, f64, u64), b: &&(u32, f64, u64)| {
            (sign * a.1).total_cmp(&(sign * b.1)).then(a.2.cmp(&b.2))
        };
        self.items.iter().min_by(order).map(|item| item.0)
    }
}

proptest! {
    #[test]
    fn selectors_agree_with_naive_implementations(
        steps in prop::collection::vec(
            (0_u8..4, 0_u32..24, prop::sample::select(vec![0.0, 0.5, 1.0, 3.0, 7.25])),
            1..200,
        ),
        seed in any::<u64>(),
    ) {
        let selectors = [
            Selector::Uniform,
            Selector::Prioritized { exponent: 0.7 },
            Selector::Fifo,
            Selector::Lifo,
            Selector::MaxHeap,
            Selector::MinHeap,
        ];
        let mut indices = selectors.map(Selector::index);
        let mut naive = Naive::default();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for (action, slot, priority) in steps {
            let is_there = naive.items.iter().any(|item| item.0 == slot);
            match (action, is_there) {
                (0 | 1, false) => {
                    naive.insert(slot, priority);
                    indices.iter_mut().for_each(|index| index.insert(slot, priority));
                }
                (2, true) => {
                    naive.items.retain(|item| item.0 != slot);
                    indices.iter_mut().for_each(|index| index.remove(slot));
                }
                (_, true) => {
                    naive.update(slot, priority);
                    indices.iter_mut().for_each(|index| index.update(slot, priority));
                }
                (_, false) => {}
            }
            let picks = indices.each_ref().map(|index| index.pick(&mut rng));
            prop_assert_eq!(picks[2].map(|pick| pick.0), naive.items.first().map(|item| item.0));
            prop_assert_eq!(picks[3].map(|pick| pick.0), naive.items.last().map(|item| item.0));
            prop_assert_eq!(picks[4].map(|pick| pick.0), naive.extreme(-1.0));
            prop_assert_eq!(picks[5].map(|pick| pick.0), naive.extreme(1.0));
            let weights: f64 = naive.items.iter().map(|item| weight_of(item.1)).sum();
            prop_assert!((indices[1].mass(naive.items.len()) - weights).abs() < 1e-9 * (1.0 + weights));
            for (pick, is_weighted) in [(picks[0], false), (picks[1], weights > 0.0)] {
                let Some((slot, probability)) = pick else {
                    prop_assert!(naive.items.is_empty());
                    continue;
                };
                let item = naive.items.iter().find(|item| item.0 == slot);
                prop_assert!(item.is_some(), "slot {} is missing", slot);
                let share = weight_of(item.map_or(0.0, |item| item.1)) / weights;
                let want = if is_weighted { share } else { 1.0 / naive.items.len() as f64 };
                prop_assert!((probability - want).abs() < 1e-9, "{} instead of {}", probability, want);
            }
        }
    }
}

fn weight_of(priority: f64) -> f64 {
    if priority == 0.0 { 0.0 } else { priority.powf(0.7) }
}

/// Returns Pearson's chi-square statistic of `draws` draws against the expected probabilities.
fn chi_square(index: &Index, expected: &[f64], draws: u32) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut drawn = vec![0_u32; expected.len()];
    for _ in 0..draws {
        let (slot, _) = index.pick(&mut rng).unwrap();
        drawn[slot as usize] += 1;
    }
    let expected = expected.iter().map(|share| share * f64::from(draws));
    drawn.iter().zip(expected).map(|(drawn, want)| (f64::from(*drawn) - want).powi(2) / want).sum()
}

#[test]
fn draws_follow_priorities() {
    let selector = Selector::Prioritized { exponent: 0.6 };
    let mut index = selector.index();
    let priorities: Vec<f64> = (1..=64).map(|rank| 1.0 / f64::from(rank)).collect();
    // Cover removals and changes of priorities as well.
    for slot in 0..80 {
        index.insert(slot, 5.0);
    }
    (64..80).for_each(|slot| index.remove(slot));
    (0..64).for_each(|slot| index.update(slot, priorities[slot as usize]));
    let weights: Vec<f64> = priorities.iter().map(|priority| priority.powf(0.6)).collect();
    let total: f64 = weights.iter().sum();
    let expected: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
    // With 63 degrees of freedom, 103.4 is exceeded with probability 0.001. The seed is fixed.
    let statistic = chi_square(&index, &expected, 200_000);
    assert!(statistic < 103.4, "{statistic}");
    // Check that the test would detect a wrong exponent.
    let wrong: Vec<f64> =
        priorities.iter().map(|priority| priority / priorities.iter().sum::<f64>()).collect();
    assert!(chi_square(&index, &wrong, 200_000) > 1000.0);
}

#[test]
fn uniform_draws_are_uniform() {
    let mut index = Selector::Uniform.index();
    (0..48).for_each(|slot| index.insert(slot, 1.0));
    (32..48).for_each(|slot| index.remove(slot));
    // With 31 degrees of freedom, 61.1 is exceeded with probability 0.001.
    let statistic = chi_square(&index, &[1.0 / 32.0; 32], 100_000);
    assert!(statistic < 61.1, "{statistic}");
}

#[test]
fn the_priority_sum_does_not_drift() {
    let mut index = Selector::Prioritized { exponent: 1.0 }.index();
    (0..100).for_each(|slot| index.insert(slot, 0.1));
    let before = index.mass(100);
    for round in 0..20_000_u32 {
        index.update(round % 100, 1e11 / f64::from(1 + round % 7));
        index.update(round % 100, 0.1);
    }
    assert_eq!(index.mass(100), before);
}

#[test]
fn zero_weight_items_are_drawn_only_if_all_weights_are_zero() {
    let mut index = Selector::Prioritized { exponent: 0.0 }.index();
    (0..4).for_each(|slot| index.insert(slot, 0.0));
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut seen = [false; 4];
    for _ in 0..100 {
        let (slot, probability) = index.pick(&mut rng).unwrap();
        seen[slot as usize] = true;
        assert_eq!(probability, 0.25);
    }
    assert_eq!(seen, [true; 4]);
    index.update(2, 1e-30);
    assert!((0..100).all(|_| index.pick(&mut rng) == Some((2, 1.0))));
}

#[test]
fn a_printed_name_parses_to_the_same_value() {
    for name in ["uniform", "prioritized:0.6", "fifo", "lifo", "max-heap", "min-heap"] {
        assert_eq!(name.parse::<Selector>().unwrap().to_string(), name);
    }
    for name in ["prioritized", "prioritized:-1", "prioritized:NaN", "heap", ""] {
        let error = name.parse::<Selector>().unwrap_err();
        assert!(error.starts_with(&format!("selector is {name:?}, expected")), "{error}");
    }
}
