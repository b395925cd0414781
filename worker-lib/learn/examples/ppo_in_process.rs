//! PPO in one process, without a switch and without the `iswitch` command. This is an example of a custom training
//! program. `cargo run --release -p iswitch-learn --example ppo_in_process -- [ENV [STEPS [SEED]]]`

use iswitch::Loopback;
use iswitch_learn::algorithms::ppo::{PpoConfig, PpoTrainer};
use iswitch_learn::algorithms::trainer::Algorithm as _;
use iswitch_learn::env;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let id = arguments.first().map_or("PlanarHopper-v0", String::as_str).to_owned();
    let mut config = PpoConfig::preset(&id);
    if let Some(steps) = arguments.get(1) {
        config.total_steps = steps.parse()?;
    }
    if let Some(seed) = arguments.get(2) {
        config.seed = seed.parse()?;
    }

    // The job's vectors have one float for each parameter. To train together with other workers through a switch,
    // replace the loopback with the aggregator of a switch, and set this worker's rank and the number of workers below.
    let parameters = config.networks(env::make(&id)?.spec()).parameter_count();
    let aggregator = Box::new(Loopback::alone(parameters));
    let mut trainer =
        PpoTrainer::new(config, (0, 1), &move |count| env::make_vector(&id, count), aggregator)?;
    while !trainer.finished() {
        let report = trainer.step_rollout()?;
        if report.rollouts % 50 == 0 || report.finished {
            println!("{:>9} steps, mean return {:.1}", report.steps, report.mean_return.unwrap_or(f64::NAN));
        }
    }
    Ok(())
}
