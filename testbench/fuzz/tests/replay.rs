//! Fuzz target: records of the replay journal. `docs/fuzzing.md` describes how to run it.

use iswitch_replay::store::rewritten_record;

/// Kinds of records. The kind is the first byte of a record; every kind is tried with the same remaining bytes.
const KINDS: std::ops::RangeInclusive<u8> = 0..=10;

#[test]
fn replay_record() {
    bolero::check!().with_iterations(2000).for_each(|bytes: &[u8]| {
        for kind in KINDS {
            let body = [&[kind], bytes].concat();
            if let Some([once, twice]) = rewritten_record(&body) {
                assert_eq!(once.len(), body.len(), "kind {kind}");
                assert_eq!(once, twice, "kind {kind}");
            }
        }
    });
}

#[test]
fn records_of_each_kind_are_tried() {
    let read: Vec<u8> = KINDS
        .filter(|kind| {
            (0..400).any(|len| rewritten_record(&[&[*kind], &vec![0; len][..]].concat()).is_some())
        })
        .collect();
    assert_eq!(read, [2, 3, 4, 5, 6, 7, 8, 9]);
}
