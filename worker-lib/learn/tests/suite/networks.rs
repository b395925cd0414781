//! Gradients of all layers and of the four models of the iSwitch paper, compared with finite differences and with
//! numbers that PyTorch has computed in float64 (`fixtures/nn/generate.py`).
use iswitch_learn::nn::{Activation, Image, Network};

const FRAMES: Image = Image { height: 84, width: 84, channels: 4 };

/// Returns pseudo-random numbers between -0.5 and 0.5. They are reproducible in any language, because each is an
/// integer hash followed by one division.
fn noise(len: usize, salt: u32) -> Vec<f32> {
    (0..len as u32)
        .map(|i| {
            let hash =
                (i.wrapping_mul(2_654_435_761) ^ salt.wrapping_mul(40_503)).wrapping_mul(2_246_822_519);
            (hash >> 8) as f32 / 16_777_216.0 - 0.5
        })
        .collect()
}

struct Run {
    output: Vec<f32>,
    loss: f64,
    gradient: Vec<f32>,
    by_input: Vec<f32>,
}

/// Computes the mean squared error, and its gradients with respect to the parameters and to the input.
fn run(net: &Network, parameters: &[f32], input: &[f32], target: &[f32], threads: usize) -> Run {
    let mut work = net.workspace(target.len() / net.outputs()).with_threads(threads);
    let output = net.forward(parameters, input, &mut work).to_vec();
    let delta = work.output_delta(target.len());
    for (d, (y, t)) in delta.iter_mut().zip(output.iter().zip(target)) {
        *d = 2.0 * (y - t) / target.len() as f32;
    }
    let (mut gradient, mut by_input) = (vec![0.0; net.parameter_count()], vec![0.0; input.len()]);
    net.backward_to_input(parameters, input, &mut work, Some(&mut gradient), &mut by_input);
    let errors = output.iter().zip(target).map(|(y, t)| f64::from(y - t).powi(2));
    let loss = errors.sum::<f64>() / output.len() as f64;
    Run { output, loss, gradient, by_input }
}

/// Returns the number of derivatives in `analytic` that deviate from the finite differences of `loss` by more than a
/// tolerance.
fn outliers(values: &[f32], analytic: &[f32], loss: impl Fn(&[f32]) -> f64) -> usize {
    let is_outlier = |i: usize| {
        let loss_at = |step: f32| {
            let mut moved = values.to_vec();
            moved[i] += step;
            loss(&moved)
        };
        let numeric = (loss_at(2e-3) - loss_at(-2e-3)) / 4e-3;
        (f64::from(analytic[i]) - numeric).abs() > 1e-4 + 4e-3 * numeric.abs()
    };
    (0..values.len()).filter(|i| is_outlier(*i)).count()
}

fn check_by_differences(net: &Network, batch: usize, has_kinks: bool) {
    let parameters = noise(net.parameter_count(), 1);
    let (input, target) = (noise(batch * net.inputs(), 2), noise(batch * net.outputs(), 3));
    let found = run(net, &parameters, &input, &target, 1);
    let by_parameter =
        outliers(&parameters, &found.gradient, |moved| run(net, moved, &input, &target, 1).loss);
    let by_input = outliers(&input, &found.by_input, |moved| run(net, &parameters, moved, &target, 1).loss);
    // The rectifier has a kink; a finite difference across it does not approximate the derivative.
    let allowed = |len: usize| if has_kinks { len / 40 } else { 0 };
    assert!(by_parameter <= allowed(parameters.len()), "{net:?}: {by_parameter} parameters");
    assert!(by_input <= allowed(input.len()), "{net:?}: {by_input} inputs");
}

#[test]
fn dense_layers_agree_with_finite_differences() {
    for hidden in [Activation::Tanh, Activation::Relu, Activation::Identity] {
        check_by_differences(&Network::mlp(&[5, 16, 9, 2], hidden), 7, hidden == Activation::Relu);
    }
}

#[test]
fn convolutions_agree_with_finite_differences() {
    let image = Image { height: 7, width: 6, channels: 2 };
    let net = Network::image(image)
        .convolution(3, 3, 2, Activation::Tanh)
        .convolution(4, 2, 1, Activation::Tanh)
        .dense(3, Activation::Identity);
    check_by_differences(&net, 3, false);
}

#[test]
fn layer_normalisation_agrees_with_finite_differences() {
    let net = Network::flat(6)
        .dense(12, Activation::Identity)
        .layer_norm(Activation::Tanh)
        .dense(9, Activation::Identity)
        .layer_norm(Activation::Identity)
        .dense(2, Activation::Tanh);
    check_by_differences(&net, 5, false);
}

/// Creates the network of the DQN paper in Nature (Mnih et al., 2015). The network of the iSwitch paper's A2C has 32
/// channels in the last convolution.
fn atari(last_channels: usize, outputs: usize) -> Network {
    Network::image(FRAMES)
        .convolution(32, 8, 4, Activation::Relu)
        .convolution(64, 4, 2, Activation::Relu)
        .convolution(last_channels, 3, 1, Activation::Relu)
        .dense(512, Activation::Relu)
        .dense(outputs, Activation::Identity)
}

fn ddpg_actor() -> Network {
    Network::flat(17)
        .dense(128, Activation::Identity)
        .layer_norm(Activation::Relu)
        .dense(128, Activation::Identity)
        .layer_norm(Activation::Relu)
        .dense(6, Activation::Tanh)
}

fn ddpg_critic_tail() -> Network {
    Network::flat(134)
        .dense(128, Activation::Identity)
        .layer_norm(Activation::Relu)
        .dense(1, Activation::Identity)
}

/// Compares the results of a network with a fixture file, whose lines are `kind,index,value`. Errors are relative to
/// the largest value of the same kind.
fn check_by_fixture(net: &Network, batch: usize, scale: f32, fixture: &str) {
    let parameters: Vec<_> = noise(net.parameter_count(), 1).iter().map(|x| x * scale).collect();
    let (input, target) = (noise(batch * net.inputs(), 2), noise(batch * net.outputs(), 3));
    for threads in [1, 2] {
        let found = run(net, &parameters, &input, &target, threads);
        let largest = |values: &[f32]| values.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        let mut checked = 0;
        for line in fixture.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<_> = line.split(',').collect();
            let (index, want) = (fields[1].parse::<usize>().unwrap(), fields[2].parse::<f64>().unwrap());
            let (got, size) = match fields[0] {
                "loss" => (found.loss, found.loss),
                "output" => (f64::from(found.output[index]), f64::from(largest(&found.output))),
                "gradient" => (f64::from(found.gradient[index]), f64::from(largest(&found.gradient))),
                "input" => (f64::from(found.by_input[index]), f64::from(largest(&found.by_input))),
                other => panic!("unknown kind {other}"),
            };
            assert!((got - want).abs() <= 3e-6 * size, "{line}: {got}, largest {size}");
            checked += 1;
        }
        assert!(checked > 100, "{checked} numbers");
    }
}

#[test]
fn dqn_agrees_with_pytorch() {
    let net = atari(64, 6);
    assert_eq!(net.parameter_count(), 1_687_206);
    check_by_fixture(&net, 2, 0.1, include_str!("../../../../fixtures/nn/dqn.csv"));
}

#[test]
fn a2c_agrees_with_pytorch() {
    let net = atari(32, 7);
    assert_eq!(net.parameter_count(), 866_439);
    check_by_fixture(&net, 2, 0.1, include_str!("../../../../fixtures/nn/a2c.csv"));
}

#[test]
fn ppo_agrees_with_pytorch() {
    let net = Network::mlp(&[11, 64, 64, 3], Activation::Tanh);
    check_by_fixture(&net, 4, 1.0, include_str!("../../../../fixtures/nn/ppo_actor.csv"));
}

#[test]
fn ddpg_agrees_with_pytorch() {
    check_by_fixture(&ddpg_actor(), 4, 1.0, include_str!("../../../../fixtures/nn/ddpg_actor.csv"));
    check_by_fixture(
        &ddpg_critic_tail(),
        4,
        1.0,
        include_str!("../../../../fixtures/nn/ddpg_critic_tail.csv"),
    );
}

#[test]
fn the_batch_size_does_not_change_a_row() {
    for net in [Network::mlp(&[11, 64, 64, 3], Activation::Tanh), ddpg_actor()] {
        let (parameters, input) = (noise(net.parameter_count(), 1), noise(64 * net.inputs(), 2));
        let mut work = net.workspace(64);
        let all = net.forward(&parameters, &input, &mut work).to_vec();
        for (row, want) in input.chunks_exact(net.inputs()).zip(all.chunks_exact(net.outputs())) {
            let one = net.forward(&parameters, row, &mut work);
            assert!(one.iter().zip(want).all(|(a, b)| (a - b).abs() < 4e-6), "{one:?} {want:?}");
        }
    }
}

#[test]
#[should_panic(expected = "expected an image before a convolution")]
fn a_convolution_requires_an_image_input() {
    let _ = Network::flat(3).dense(4, Activation::Relu).convolution(1, 1, 1, Activation::Relu);
}
