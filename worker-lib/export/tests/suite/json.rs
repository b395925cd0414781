//! Tests of the JSON format. The tests use an interpreter that implements only what the documentation of the format
//! states.

use std::path::Path;

use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::ddpg::DdpgConfig;
use iswitch_learn::algorithms::dqn::DqnConfig;
use iswitch_learn::algorithms::ppo::PpoConfig;
use iswitch_learn::algorithms::sac::SacConfig;
use iswitch_learn::algorithms::td3::Td3Config;
use iswitch_learn::algorithms::trained::Trained;
use iswitch_learn::algorithms::trainer::Algorithm;
use iswitch_learn::env;
use serde_json::Value;

use crate::runs::{exported, train};

const CART_POLE: &str = "CartPole-v1";
const NO_VELOCITY: &str = "CartPoleNoVel-v1";
const PENDULUM: &str = "Pendulum-v1";

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("an array").iter().map(|number| number.as_f64().expect("a number")).collect()
}

fn preprocessed(steps: &Value, observation: &[f32]) -> Vec<f64> {
    let raw = observation.iter().copied().map(f64::from);
    match steps["type"].as_str().unwrap() {
        "none" => raw.collect(),
        "normalise" => {
            let (mean, std, limit) =
                (numbers(&steps["mean"]), numbers(&steps["std"]), steps["limit"].as_f64().unwrap());
            let both = mean.iter().zip(std);
            raw.zip(both).map(|(x, (mean, std))| ((x - mean) / std).clamp(-limit, limit)).collect()
        }
        other => panic!("preprocessing {other}"),
    }
}

fn forward(layers: &Value, mut x: Vec<f64>) -> Vec<f64> {
    for layer in layers.as_array().unwrap() {
        x = match layer["type"].as_str().unwrap() {
            "linear" => {
                let rows = layer["weight"].as_array().unwrap().iter().map(numbers);
                let dot = |row: Vec<f64>| row.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>();
                rows.zip(numbers(&layer["bias"])).map(|(row, bias)| dot(row) + bias).collect()
            }
            "layer_norm" => {
                let len = x.len() as f64;
                let mean = x.iter().sum::<f64>() / len;
                let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / len;
                let std = (variance + layer["epsilon"].as_f64().unwrap()).sqrt();
                let parameters = numbers(&layer["weight"]).into_iter().zip(numbers(&layer["bias"]));
                x.iter().zip(parameters).map(|(x, (weight, bias))| weight * (x - mean) / std + bias).collect()
            }
            "tanh" => x.into_iter().map(f64::tanh).collect(),
            "relu" => x.into_iter().map(|x| x.max(0.0)).collect(),
            other => panic!("layer {other}"),
        };
    }
    x
}

/// Returns the output of the recurrent layer and advances its state, which is a list of vectors.
fn remember(memory: &Value, x: &[f64], state: &mut Vec<Vec<f64>>) -> Vec<f64> {
    let width = memory["width"].as_u64().unwrap() as usize;
    let product = |kind: &str, x: &[f64]| -> Vec<f64> {
        let rows = memory[&format!("weight_{kind}")].as_array().unwrap().iter().map(numbers);
        let dot = |row: Vec<f64>| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
        rows.zip(numbers(&memory[&format!("bias_{kind}")])).map(|(row, bias)| dot(row) + bias).collect()
    };
    if state.is_empty() {
        *state = vec![vec![0.0; width]; if memory["type"] == "lstm" { 2 } else { 1 }];
    }
    let (of_input, of_state) = (product("ih", x), product("hh", &state[0]));
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for j in 0..width {
        let [input, hidden] = [&of_input, &of_state].map(|all| move |gate: usize| all[gate * width + j]);
        let sum = |gate: usize| input(gate) + hidden(gate);
        if memory["type"] == "lstm" {
            state[1][j] = sigmoid(sum(1)) * state[1][j] + sigmoid(sum(0)) * sum(2).tanh();
            state[0][j] = sigmoid(sum(3)) * state[1][j].tanh();
        } else {
            let (reset, update) = (sigmoid(sum(0)), sigmoid(sum(1)));
            let candidate = (input(2) + reset * hidden(2)).tanh();
            state[0][j] = (1.0 - update) * candidate + update * state[0][j];
        }
    }
    state[0].clone()
}

/// Returns the scores of discrete actions, or the continuous action. Advances the state of a recurrent policy, which is
/// empty at the start of an episode.
fn outputs(policy: &Value, observation: &[f32], state: &mut Vec<Vec<f64>>) -> Vec<f64> {
    let mut x = preprocessed(&policy["observation"]["preprocessing"], observation);
    let memory = &policy["memory"];
    assert_eq!(policy["format"], if memory.is_object() { "iswitch-policy-2" } else { "iswitch-policy-1" });
    if memory.is_object() {
        x = remember(memory, &x, state);
    }
    let features = forward(&policy["layers"], x);
    let outputs = if policy["value"].is_array() {
        let value = forward(&policy["value"], features.clone())[0];
        let advantages = forward(&policy["advantage"], features);
        let mean = advantages.iter().sum::<f64>() / advantages.len() as f64;
        advantages.iter().map(|advantage| value + advantage - mean).collect()
    } else {
        features
    };
    let action = &policy["action"];
    if action["type"] == "discrete" {
        return outputs;
    }
    let [scale, offset, low, high] = ["scale", "offset", "low", "high"].map(|name| numbers(&action[name]));
    (0..outputs.len()).map(|i| (outputs[i] * scale[i] + offset[i]).clamp(low[i], high[i])).collect()
}

/// Trains and exports a policy. For many observations, compares the actions computed from the exported file with those
/// of the policy itself.
fn check<A: Algorithm>(config: A, id: &'static str) {
    let directory = tempfile::tempdir().unwrap();
    let (run, file) = (directory.path().join("run"), directory.path().join("policy.json"));
    train(config, id, &run);
    exported(&run, &file, &[]);
    let described: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let env = env::make(id).unwrap();
    let mut policy = Trained::read(Path::new(&run)).unwrap().policy(env.spec()).unwrap();
    let mut action = vec![0.0; env.spec().action.stored_dim()];
    let mut state = Vec::new();
    for i in 0..200 {
        if i % 50 == 0 {
            policy.begin_episode();
            state.clear();
        }
        let dim = env.spec().observation_dim;
        let observation: Vec<_> = (0..dim).map(|j| 3.0 * ((i * 7 + j * 3) as f32 * 0.37).sin()).collect();
        let scores = policy.scores(&observation).to_vec();
        policy.act(&observation, None, &mut action);
        let outputs = outputs(&described, &observation, &mut state);
        if described["action"]["type"] == "discrete" {
            for (actual, expected) in outputs.iter().zip(&scores) {
                assert!((actual - f64::from(*expected)).abs() < 1e-5, "{} {i}: {actual} {expected}", A::NAME);
            }
        } else {
            let expected = env.action_space().to_units(env.spec().to_env(&action)).unwrap();
            for (actual, expected) in outputs.iter().zip(expected) {
                assert!((actual - expected).abs() < 4e-5, "{} {i}: {actual} {expected}", A::NAME);
            }
        }
    }
}

#[test]
fn policies_of_all_algorithms_act_alike() {
    let small = || vec![16, 16];
    let dqn = |hidden, duelling| DqnConfig { hidden, duelling, ..DqnConfig::preset(CART_POLE) };
    check(dqn(small(), false), CART_POLE);
    check(dqn(small(), true), CART_POLE);
    check(A2cConfig::preset(CART_POLE), CART_POLE);
    check(PpoConfig { rollout_steps: 512, ..PpoConfig::preset(PENDULUM) }, PENDULUM);
    let recurrent = |lstm, gru| PpoConfig {
        lstm,
        gru,
        rollout_steps: 64,
        minibatch_size: 64,
        ..PpoConfig::preset(NO_VELOCITY)
    };
    check(recurrent(Some(8), None), NO_VELOCITY);
    check(recurrent(None, Some(8)), NO_VELOCITY);
    check(DdpgConfig { hidden: small(), ..DdpgConfig::preset(PENDULUM) }, PENDULUM);
    check(Td3Config { hidden: small(), ..Td3Config::preset(PENDULUM) }, PENDULUM);
    check(SacConfig { hidden: small(), ..SacConfig::preset(PENDULUM) }, PENDULUM);
}
