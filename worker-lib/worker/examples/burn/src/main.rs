//! Fits a function with burn on any number of workers: each worker computes the gradient on its own samples, the
//! switch sums the gradients, and all workers apply the same step.
//!
//! ```sh
//! iswitchd --udp 127.0.0.1:7711 &
//! cargo run --release -- 127.0.0.1:7711 2 0 &   cargo run --release -- 127.0.0.1:7711 2 1
//! ```

mod gradients;

use std::error::Error;

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::tanh;
use burn::tensor::{Device, Distribution, Tensor};
use iswitch::{GradientAggregator as _, JoinOptions, Worker};

const STEPS: usize = 500;
const BATCH: usize = 64;
const LEARNING_RATE: f64 = 3e-3;
/// Seed of the initial weights, which are the same on all workers.
const SEED: u64 = 1;

#[derive(Module, Debug)]
struct Network {
    hidden: Linear,
    output: Linear,
}

impl Network {
    fn new(device: &Device) -> Self {
        Self { hidden: LinearConfig::new(2, 64).init(device), output: LinearConfig::new(64, 1).init(device) }
    }

    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.output.forward(tanh(self.hidden.forward(inputs)))
    }
}

/// Draws random points from a square and returns them with their targets, `sin(3 x) y`.
fn batch(device: &Device) -> (Tensor<2>, Tensor<2>) {
    let points = Tensor::<2>::random([BATCH, 2], Distribution::Uniform(-1.0, 1.0), device);
    let (x, y) = (points.clone().narrow(1, 0, 1), points.clone().narrow(1, 1, 1));
    (points, (x * 3.0).sin() * y)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [switch, workers, rank] = &arguments[..] else {
        return Err("usage: ADDRESS:PORT WORKERS RANK".into());
    };
    let (workers, rank): (u16, u16) = (workers.parse()?, rank.parse()?);

    let device = Device::flex().autodiff();
    device.seed(SEED);
    let mut network = Network::new(&device);
    // Parameters are initialised on first use. This pass initialises them before the seed changes.
    network.forward(batch(&device).0);
    let mut optimiser = AdamConfig::new().init();
    // From here, each worker draws different samples.
    device.seed(SEED + 1 + u64::from(rank));

    let len = u32::try_from(network.num_params())?;
    let options = JoinOptions { rank, ..JoinOptions::new(switch.parse()?, workers, len) };
    let mut worker = Worker::join(options)?;
    for step in 0..STEPS {
        let (points, targets) = batch(&device);
        let loss = (network.forward(points) - targets).powi_scalar(2).mean();
        let mut grads = GradientsParams::from_grads(loss.backward(), &network);
        // The gradients are flattened, aggregated and copied back.
        let mut vector = gradients::to_vector(&network, &grads);
        worker.all_reduce_mean(&mut vector)?;
        gradients::from_vector(&network, &mut grads, &vector);
        network = optimiser.step(LEARNING_RATE, network, grads);
        if step % 100 == 0 {
            eprintln!("worker {rank}, step {step}: loss {:.5}", loss.into_scalar::<f32>());
        }
    }
    // All workers evaluate the same points with identical networks, so they print the same loss.
    device.seed(SEED);
    let (points, targets) = batch(&device);
    let loss = (network.forward(points) - targets).powi_scalar(2).mean();
    println!("{:.9}", loss.into_scalar::<f32>());
    worker.leave()?;
    Ok(())
}
