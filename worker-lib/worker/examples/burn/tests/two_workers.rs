//! Trains with two workers and a switch. Both workers must end with the same network.

use std::process::{Command, Stdio};

use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};

#[test]
fn two_workers_learn_identical_models() {
    let address = "127.0.0.1:0".parse().expect("an address");
    let switch = EmbeddedSwitch::start(address, &EmbeddedOptions::default()).expect("a switch");
    let start = |rank: u16| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-burn-example"));
        command.args([switch.address().to_string(), "2".to_owned(), rank.to_string()]);
        command.stdout(Stdio::piped()).spawn().expect("a worker")
    };
    let workers = [start(0), start(1)];
    let [first, second] = workers.map(|worker| {
        let output = worker.wait_with_output().expect("its output");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    });
    assert_eq!(first, second);
    // A network that always returns zero has a loss of 0.17.
    let loss: f32 = first.trim().parse().expect("a number");
    assert!(loss < 0.02, "{loss}");
}
