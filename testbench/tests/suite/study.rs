//! Tests that run short versions of the study that reproduces the paper's results. Each part runs in the same
//! environment as in a full measurement. Needs root.

use std::time::Duration;

use iswitch_harness::requirements::{alone, networks_and, report};
use iswitch_testbench::contest::{Progress, Row};
use iswitch_testbench::peers::racks::racks_of;
use iswitch_testbench::peers::{Links, Network};
use iswitch_testbench::study::asynchronous;
use iswitch_testbench::study::convergence::train;
use iswitch_testbench::study::paper::Model;
use iswitch_testbench::study::replay::{CONTENDERS, Origin, Scene, scaling_text};
use iswitch_testbench::study::tasks::{Method, TASKS};

const COMPUTE: Duration = Duration::from_millis(2);

fn links() -> Links {
    Links { rate: Some("1gbit".parse().unwrap()), delay: None }
}

fn scene() -> Scene {
    Scene { model: Model::named("PPO").unwrap(), origin: Origin::Paper, compute: COMPUTE, stretch: 2 }
}

#[test]
fn iterations_consist_of_computation_and_aggregation() {
    if !networks_and("iterations_consist_of_computation_and_aggregation", &["tc"]) {
        return;
    }
    let _alone = alone();
    let star = Network::star(2, links());
    let racks = Network::racks(&racks_of(4), links());
    for network in [&star, &racks] {
        let replay = scene().measure(network, &CONTENDERS, 1, 0.1, &Progress::silent());
        assert_eq!(replay.table.standings.rows.len(), CONTENDERS.len());
        for Row { contender, runs } in &replay.table.standings.rows {
            let run = runs[0];
            assert!(run.compute_us >= 2.0 * COMPUTE.as_secs_f64() * 1e6, "{contender}: {run:?}");
            assert!(run.iteration_us > run.compute_us, "{contender}: {run:?}");
        }
        report(&replay.text());
        assert_eq!(replay.json()["racks"].is_number(), network.rack_count().is_some());
        assert!(scaling_text(&[replay]).contains("iswitchd, raw ports"));
    }
}

#[test]
fn asynchronous_gradients_update_the_model_without_waiting() {
    if !networks_and("asynchronous_gradients_update_the_model_without_waiting", &["tc"]) {
        return;
    }
    let _alone = alone();
    let network = Network::star(3, links());
    let replay = asynchronous::measure(scene(), &network, 1, 0.1, &Progress::silent());
    for Row { contender: method, runs } in &replay.standings.rows {
        let run = &runs[0];
        assert!(
            run.updates > 0.0 && run.gradients >= run.updates && run.seconds > 0.0,
            "{method:?}: {run:?}"
        );
        assert_eq!(run.staleness.len(), 4, "S = 3 when committed: {method:?}: {run:?}");
    }
    let server = &replay.standings.reference().runs[0];
    assert_eq!(server.gradients, server.updates, "the server must apply gradients one at a time");
    report(&replay.text());
}

#[test]
fn results_of_short_trainings_are_read() {
    // The workers of one machine use the loopback interface, without namespaces.
    let _alone = alone();
    for method in
        [Method::ASYNCHRONOUS[0], Method::ASYNCHRONOUS[1], Method::SYNCHRONOUS[0], Method::SYNCHRONOUS[1]]
    {
        let training = train(TASKS[0], method, 2, 1, Some(20_000));
        assert!(training.steps >= 20_000.0 && training.updates > 0.0, "{method:?}: {training:?}");
        assert!(training.points.last().is_some_and(|point| point.seconds > 0.0), "{method:?}: {training:?}");
        let reached = training.reached(1.0).expect("an episode must return at least 1");
        assert!(reached.updates <= training.updates && reached.steps <= training.steps, "{reached:?}");
        assert_eq!(training.staleness.is_some(), method.is_async);
    }
}
