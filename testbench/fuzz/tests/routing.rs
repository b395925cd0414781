//! Fuzz targets: files of routing policies, and requests to the routing agent. `docs/fuzzing.md` describes how to run
//! them.

use std::fs;
use std::panic::AssertUnwindSafe;

use iswitch_learn::algorithms::checkpoint::MODEL_FILE;
use iswitch_routing::agent::{Agent, QUEUE_LEN_MAX};
use iswitch_routing::network::{Queues, Routing, Shape, end_slot};
use iswitch_routing::policy::{Fill, PolicySpec};
use iswitch_routing::training::{RoutingStudy, Saved};
use serde_json::Value;

/// If the input describes a network that is too large, the reader must refuse the input before it allocates memory for
/// the network.
#[test]
fn routing_file() {
    let directory = tempfile::tempdir().expect("a temporary directory must be available");
    let path = directory.path().join(MODEL_FILE);
    bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
        fs::write(&path, bytes).expect("the file must be writable");
        let shape = Shape::new(3, 2).expect("the shape must be valid");
        let policy =
            Saved::read(directory.path()).and_then(|saved| RoutingStudy::saved_policy(&saved, shape, 1, 1));
        if let Err(error) = policy {
            assert!(!error.to_string().is_empty());
        }
    });
}

#[test]
fn routing_request() {
    let shape = Shape::new(3, 2).expect("the shape must be valid");
    let policy = PolicySpec::PowerOfTwo.build(shape, Fill::Random, 1);
    let mut agent = AssertUnwindSafe(Agent::new("po2".to_owned(), policy, shape));
    bolero::check!().with_iterations(1000).for_each(|bytes: &[u8]| {
        let answer = agent.answer(&String::from_utf8_lossy(bytes));
        assert!(!answer.contains('\n'));
        let answer: Value = serde_json::from_str(&answer).expect("the answer must be JSON");
        assert!(["links", "policy", "error"].iter().any(|key| answer.get(key).is_some()), "{answer}");
    });
}

#[test]
fn routing_queues() {
    let shape = Shape::new(3, 3).expect("the shape must be valid");
    let policies = PolicySpec::all().map(|spec| (spec, spec.build(shape, Fill::Rule, 1)));
    let mut policies = AssertUnwindSafe(policies.collect::<Vec<_>>());
    bolero::check!().with_iterations(300).with_type::<[u32; 27]>().for_each(|lens| {
        let mut queues = Queues::empty(shape);
        // Short queues are as frequent as long ones.
        let clamped =
            lens.iter().map(|len| if len % 2 == 0 { len / 2 % 5 } else { (len / 2).min(QUEUE_LEN_MAX) });
        queues.all_mut().iter_mut().zip(clamped).for_each(|(len, given)| *len = given);
        for (spec, policy) in policies.iter_mut() {
            let mut routing = Routing::idle(shape);
            policy.route(&queues, &mut routing);
            routing.check(&queues).unwrap_or_else(|error| panic!("{spec}: {error}"));
            end_slot(&mut queues.clone(), &routing);
        }
    });
}
