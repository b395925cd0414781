//! Synchronous training through an embedded switch whose packets have 16-bit elements.
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use iswitch::{ElementTypes, JoinOptions, Worker};
use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::ppo::PpoConfig;
use iswitch_learn::algorithms::trainer::{Algorithm, Mode, Progress, World, replicas_identical};
use iswitch_learn::env;
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};

const CART_POLE: &str = "CartPole-v1";
const WORKERS: u16 = 3;
const TIMEOUT: Duration = Duration::from_secs(20);

/// Trains for two calls of `advance`, and returns the progress of each worker.
fn train<A: Algorithm + Sync>(config: &A, elements: ElementTypes) -> Vec<Progress> {
    let loopback = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let switch = EmbeddedSwitch::start(loopback, &EmbeddedOptions::default()).unwrap();
    let shape = config.vector_shape(env::make(CART_POLE).unwrap().spec(), Mode::Synchronous).unwrap();
    let len = shape.summed_len(elements, WORKERS.into()).unwrap() as u32;
    let run = |rank: u16| {
        let options = JoinOptions {
            rank,
            workers_timeout: Some(TIMEOUT),
            ..JoinOptions::new(switch.address(), WORKERS, len)
        };
        let worker = Worker::join(options.with_elements(elements)).unwrap();
        let world = World { rank: rank.into(), size: WORKERS.into() };
        let make = |count: usize| env::make_vector(CART_POLE, count);
        let mut trainer = config.clone().trainer(world, &make, Box::new(worker)).unwrap();
        trainer.advance().unwrap();
        trainer.advance().unwrap();
        assert!(replicas_identical(trainer.as_mut()).unwrap());
        trainer.progress()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WORKERS).map(|rank| scope.spawn(move || run(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Checks that the counts of steps and episodes are exact. Only gradients are rounded if packets have 16-bit elements.
fn counts_are_exact<A: Algorithm + Sync>(config: &A) {
    let wide = train(config, ElementTypes::F32);
    for name in ["bf16", "f16", "bf16-f32"] {
        let all = train(config, name.parse().unwrap());
        assert!(all.iter().all(|progress| *progress == all[0]), "{} in {name}: {all:?}", A::NAME);
        assert_eq!(all[0].steps, wide[0].steps, "{} in {name}", A::NAME);
        let mean_return = all[0].mean_return.unwrap();
        // The return of an episode of this environment is its number of steps.
        assert!((10.0..500.0).contains(&mean_return), "{} in {name}: {mean_return}", A::NAME);
    }
}

#[test]
fn sixteen_bit_elements_round_nothing_but_gradients() {
    counts_are_exact(&A2cConfig { environments: Some(6), ..A2cConfig::preset(CART_POLE) });
    // The statistics of a rollout are longer than the gradient of such a small network, so their exchange takes several
    // rounds.
    let hidden = vec![8];
    counts_are_exact(&PpoConfig { environments: Some(6), hidden, ..PpoConfig::preset(CART_POLE) });
}
