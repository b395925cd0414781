use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn item(key: u64, priority: f64, payload_len: usize) -> Item {
    Item {
        key,
        priority,
        times_sampled: 0,
        version: 0,
        origin: Origin { actor: 1, session: 1, seq: key },
        inserted_ms: key,
        payload: Bytes::from(vec![key as u8; payload_len]),
    }
}

fn config(sampler: Selector, remover: Selector, capacity_items: u64, max_times_sampled: u32) -> TableConfig {
    TableConfig { sampler, remover, max_times_sampled, ..TableConfig::uniform("t", capacity_items, 1 << 20) }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(f64, usize),
    Sample,
    Update(u64, f64),
    Delete(u64),
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0.0_f64..4.0, 0_usize..2000).prop_map(|(priority, len)| Step::Insert(priority, len)),
        6 => Just(Step::Sample),
        2 => (0_u64..100, 0.0_f64..4.0).prop_map(|(back, priority)| Step::Update(back, priority)),
        1 => (0_u64..100).prop_map(Step::Delete),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 1..250)
}

fn selector() -> impl Strategy<Value = Selector> {
    prop::sample::select(vec![
        Selector::Uniform,
        Selector::Prioritized { exponent: 0.5 },
        Selector::Fifo,
        Selector::Lifo,
        Selector::MaxHeap,
        Selector::MinHeap,
    ])
}

proptest! {
    /// Tests that a table behaves like a bounded map: only inserted items appear, each lost item is reported, and the
    /// sums match the items.
    #[test]
    fn a_table_behaves_like_a_bounded_map(
        (sampler, remover) in (selector(), selector()),
        (capacity, most) in (1_u64..20, 0_u32..4),
        steps in steps(),
    ) {
        let capacity_bytes = 12_000;
        let config = TableConfig { capacity_bytes, ..config(sampler, remover, capacity, most) };
        let mut table = Table::new(config, 5).unwrap();
        let mut model: BTreeMap<u64, Item> = BTreeMap::new();
        let mut next = 0;
        for step in steps {
            match step {
                Step::Insert(priority, len) => {
                    next += 1;
                    let new = item(next, priority, len);
                    model.insert(next, new.clone());
                    for removed in table.insert(new) {
                        prop_assert!(model.remove(&removed).is_some());
                    }
                }
                Step::Sample => match table.sample() {
                    Ok(sampled) => {
                        let known = model.get_mut(&sampled.item.key).unwrap();
                        known.times_sampled += 1;
                        prop_assert_eq!(&*known, &sampled.item);
                        prop_assert_eq!(sampled.is_removed, most > 0 && known.times_sampled == most);
                        prop_assert!(sampled.probability > 0.0 && sampled.probability <= 1.0);
                        if sampled.is_removed {
                            model.remove(&sampled.item.key);
                        }
                    }
                    Err(held) => prop_assert!(model.is_empty(), "{}", held),
                },
                Step::Update(back, priority) => {
                    let key = u64::saturating_sub(next, back);
                    let known = model.get_mut(&key);
                    prop_assert_eq!(table.set_priority(key, priority), Ok(known.is_some()));
                    known.into_iter().for_each(|known| known.priority = priority);
                }
                Step::Delete(back) => {
                    let key = u64::saturating_sub(next, back);
                    prop_assert_eq!(table.delete(key), model.remove(&key).is_some());
                }
                Step::Reset => {
                    prop_assert_eq!(table.reset(), model.len() as u64);
                    model.clear();
                }
            }
            prop_assert_eq!(table.len(), model.len());
            prop_assert_eq!(table.counts().size(), model.len() as u64);
            let bytes: u64 = model.values().map(|item| cost_bytes(item.payload.len())).sum();
            prop_assert_eq!(table.bytes(), bytes);
            prop_assert!(bytes <= capacity_bytes && model.len() as u64 <= capacity);
            let (mut all, next_slot) = table.part(0, usize::MAX, u64::MAX);
            prop_assert_eq!(next_slot, None);
            all.sort_by_key(|item| item.key);
            prop_assert!(all.iter().eq(model.values()));
        }
    }

    #[test]
    fn the_same_seed_draws_the_same(steps in prop::collection::vec(any::<bool>(), 1..100), seed in any::<u64>()) {
        let config = config(Selector::Uniform, Selector::Uniform, 10, 3);
        let mut tables = [0, 1].map(|_| Table::new(config.clone(), seed).unwrap());
        for (key, is_insert) in steps.into_iter().enumerate() {
            let [a, b] = &mut tables;
            if is_insert {
                prop_assert_eq!(a.insert(item(key as u64, 1.0, 8)), b.insert(item(key as u64, 1.0, 8)));
            } else {
                prop_assert_eq!(a.sample(), b.sample());
            }
        }
    }
}

#[test]
fn a_queue_yields_each_item_once_in_order_and_holds_back_inserts() {
    let mut table = Table::new(TableConfig::queue("q", 3, 1 << 20), 0).unwrap();
    assert!(matches!(table.sample(), Err(Held::Samples { .. })));
    for key in 1..=3 {
        table.can_insert(8).unwrap();
        assert!(table.insert(item(key, 1.0, 8)).is_empty());
    }
    let held = table.can_insert(8).unwrap_err().to_string();
    assert_eq!(
        held,
        "the rate limiter is waiting for samples: an insert would raise inserts x samples_per_insert - samples to 4, \
         expected at most 3 (inserts 3, samples 0, items 3)"
    );
    assert_eq!(table.sample().unwrap().item.key, 1);
    table.can_insert(8).unwrap();
    assert_eq!([table.sample().unwrap().item.key, table.sample().unwrap().item.key], [2, 3]);
    assert!(matches!(table.sample(), Err(Held::Samples { .. })));
}

#[test]
fn a_stack_yields_the_newest_item_first() {
    let mut table = Table::new(TableConfig::stack("s", 3, 1 << 20), 0).unwrap();
    (1..=3).for_each(|key| assert!(table.insert(item(key, 1.0, 8)).is_empty()));
    assert_eq!([0; 3].map(|_| table.sample().unwrap().item.key), [3, 2, 1]);
}

#[test]
fn a_table_without_removal_is_bounded_in_bytes() {
    let capacity_bytes = 3 * cost_bytes(1000);
    let config = TableConfig {
        capacity_bytes,
        when_full: WhenFull::Wait,
        ..config(Selector::Uniform, Selector::Fifo, 100, 0)
    };
    let mut table = Table::new(config, 0).unwrap();
    for key in 1..=3 {
        table.can_insert(1000).unwrap();
        table.insert(item(key, 1.0, 1000));
    }
    assert!(matches!(table.can_insert(0), Err(Held::Full { items: 3, .. })));
    let long = NewItem { priority: 1.0, version: 0, payload: Bytes::from(vec![0; 5000]) };
    assert_eq!(
        table.check(&long).unwrap_err().to_string(),
        "payload is 5000 bytes long, expected at most 3768"
    );
}

#[test]
fn priorities_that_cannot_be_ordered_are_refused() {
    let new = |priority| NewItem { priority, version: 0, payload: Bytes::new() };
    let heap = Table::new(config(Selector::MaxHeap, Selector::MinHeap, 5, 0), 0).unwrap();
    assert_eq!(heap.check(&new(-3.0)), Ok(()));
    assert!(heap.check(&new(f64::NAN)).is_err());
    assert!(heap.check(&new(f64::INFINITY)).is_err());
    let prioritized =
        Table::new(config(Selector::Prioritized { exponent: 2.0 }, Selector::Fifo, 5, 0), 0).unwrap();
    assert_eq!(prioritized.check(&new(1e6)), Ok(()));
    for priority in [-1.0, 1e7, f64::NAN] {
        let error = prioritized.check(&new(priority)).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("priority is {priority}, expected at least 0, and at most 2^40")),
            "{error}"
        );
    }
}
