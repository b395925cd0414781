//! Tests of options and spellings that users of other training programs expect, and of errors that name the option at
//! fault.
use std::process::{Command, Output};

use serde_json::Value;

fn iswitch(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iswitch")).args(arguments).output().unwrap()
}

/// Returns the hyper-parameters with which a command would train.
fn parameters(arguments: &[&str]) -> Value {
    let Output { status, stdout, stderr } =
        iswitch(&[&["train"], arguments, &["--list-parameters", "--json"]].concat());
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap()
}

fn error(arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = iswitch(&[&["train"], arguments].concat());
    assert!(!status.success(), "{arguments:?} was accepted");
    String::from_utf8(stderr).unwrap()
}

#[test]
fn aliases_and_spellings_of_numbers_are_accepted() {
    let expected = parameters(&["ppo", "--steps", "2000000", "--learning-rate", "0.001"]);
    assert_eq!(expected["total_steps"], 2_000_000);
    for options in [
        &["ppo", "--total-timesteps", "2e6", "--lr", "1e-3"][..],
        &["ppo", "--steps", "2_000_000", "--set", "learning_rate=1e-3"],
        &["ppo", "--set", "total_steps=2e6", "--set", "learning_rate=0.001"],
    ] {
        assert_eq!(parameters(options), expected, "{options:?}");
    }
    let negative = parameters(&["ppo", "--set", "log_std_init=-2", "--set", "environments=1e1"]);
    assert_eq!((&negative["log_std_init"], &negative["environments"]), (&(-2.0).into(), &10.into()));
}

#[test]
fn each_hyper_parameter_is_listed_with_its_value_and_a_description() {
    for algorithm in ["dqn", "a2c", "ppo", "ddpg", "td3", "sac"] {
        let values = parameters(&[algorithm]);
        let text = String::from_utf8(iswitch(&["train", algorithm, "--list-parameters"]).stdout).unwrap();
        let lines: Vec<_> = text.lines().skip_while(|line| *line != "[hyper_parameters]").skip(1).collect();
        for name in values.as_object().unwrap().keys() {
            let at = lines.iter().position(|line| line.starts_with(&format!("{name} = "))).expect(name);
            let description = lines[at - 1];
            assert!(description.starts_with("# ") && description.ends_with('.'), "{name}: {description:?}");
        }
        assert_eq!(lines.len(), 2 * values.as_object().unwrap().len(), "{text}");
    }
}

#[test]
fn errors_name_the_option_and_the_value() {
    let errors = [
        (
            &["ppo", "--steps", "a million"][..],
            "'a million' for '--steps <N>': expected a whole number such as 1000000",
        ),
        (&["ppo", "--lr", "-1"], "learning_rate is -1.0, expected a number >= 0"),
        (&["ppo", "--set", "epochs=1.5"], "--set epochs=1.5: "),
        (
            &["dqn", "--steps", "1000"],
            "--steps 1000: learning_starts is 10000, expected fewer than the 1000 steps",
        ),
        (&["dqn", "--set", "learning_starts=600000"], "iswitch: learning_starts is 600000"),
        (&["a2c", "--staleness", "2"], "--async"),
    ];
    for (arguments, expected) in errors {
        let error = error(arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
