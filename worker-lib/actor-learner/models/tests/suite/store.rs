//! Compares the behaviour of the store with that of a simple reference model.

use std::collections::BTreeMap;

use bytes::Bytes;
use iswitch_models::{Found, Manifest, ModelName, ModelStore, PublishError, StoreOptions};
use proptest::prelude::*;

const LEN_MAX: u64 = 8;
const KEPT: usize = 3;
const NAMES: usize = 2;

fn name(at: u8) -> ModelName {
    format!("model-{at}").parse().unwrap()
}

proptest! {
    #[test]
    fn the_store_agrees_with_a_model_that_keeps_all_versions(
        steps in prop::collection::vec((0_u8..3, 0_u64..20, 0_usize..10, any::<u8>()), 1..60)
    ) {
        let options = StoreOptions { versions_kept: KEPT, object_len_max_bytes: LEN_MAX, names_max: NAMES };
        let store = ModelStore::new(options);
        let mut all: BTreeMap<u8, BTreeMap<u64, Vec<u8>>> = BTreeMap::new();
        for (who, version, len, fill) in steps {
            let bytes = vec![fill; len];
            let outcome = store.publish(&name(who), version, Bytes::from(bytes.clone()));
            let latest = all.get(&who).and_then(|versions| versions.last_key_value());
            let is_repeated = latest.is_some_and(|(at, known)| *at == version && *known == bytes);
            let expected = match latest {
                _ if len as u64 > LEN_MAX => {
                    Err(PublishError::TooLarge { len_bytes: len as u64, limit_bytes: LEN_MAX })
                }
                _ if len == 0 => Err(PublishError::Empty),
                None if all.len() == NAMES => Err(PublishError::TooManyNames { name: name(who), limit: NAMES }),
                Some((latest, _)) if *latest >= version && !is_repeated => {
                    Err(PublishError::NotNewer { name: name(who), version, latest: *latest })
                }
                _ => Ok(Manifest::of(version, &bytes).sha256),
            };
            if expected.is_ok() {
                all.entry(who).or_default().insert(version, bytes);
            }
            prop_assert_eq!(outcome.map(|manifest| manifest.sha256), expected);
            for who in 0..3 {
                check(&store, who, all.get(&who))?;
            }
        }
        prop_assert_eq!(store.size().0, all.len());
    }
}

fn check(store: &ModelStore, who: u8, all: Option<&BTreeMap<u64, Vec<u8>>>) -> Result<(), TestCaseError> {
    let latest = store.latest(&name(who)).map(|object| object.manifest.version);
    prop_assert_eq!(latest, all.and_then(|versions| versions.keys().last().copied()));
    let kept: Vec<u64> =
        all.map(|it| it.keys().rev().take(KEPT).rev().copied().collect()).unwrap_or_default();
    for version in 0..20 {
        match store.get(&name(who), version) {
            Found::Nothing => prop_assert!(all.is_none()),
            Found::OtherVersions(others) => prop_assert!(others == kept && !kept.contains(&version)),
            Found::Object(object) => {
                prop_assert!(kept.contains(&version));
                prop_assert_eq!(&object.bytes[..], &all.unwrap()[&version][..]);
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_waiting_reader_is_notified_of_the_first_newer_version() {
    let store = std::sync::Arc::new(ModelStore::new(StoreOptions::default()));
    let wait = |after| {
        let store = std::sync::Arc::clone(&store);
        tokio::spawn(async move { store.newer(&name(0), after).await.manifest.version })
    };
    let (any, third) = (wait(None), wait(Some(2)));
    for version in [1, 2, 7] {
        store.publish(&name(1), version, Bytes::from_static(b"another")).unwrap();
        store.publish(&name(0), version, Bytes::from_static(b"model")).unwrap();
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    assert_eq!((any.await.unwrap(), third.await.unwrap()), (1, 7));
    assert_eq!(wait(Some(6)).await.unwrap(), 7);
}
