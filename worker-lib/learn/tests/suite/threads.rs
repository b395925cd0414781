//! Training with environments in several threads. The tests check that the resulting model is bit-identical to that of
//! a single thread.

use iswitch::Loopback;
use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::checkpoint::{self, Writer};
use iswitch_learn::algorithms::evaluate::{evaluate, evaluate_parallel};
use iswitch_learn::algorithms::ppo::PpoConfig;
use iswitch_learn::algorithms::sac::SacConfig;
use iswitch_learn::algorithms::trained::Trained;
use iswitch_learn::algorithms::trainer::{Algorithm, Mode, Trainer, World};
use iswitch_learn::env;

/// Returns a trainer for a job with a single worker.
fn trainer<A: Algorithm>(id: &'static str, config: &A, threads: usize) -> Box<dyn Trainer> {
    let shape = config.vector_shape(env::make(id).unwrap().spec(), Mode::Synchronous).unwrap();
    let member = Loopback::group(1, shape.len()).remove(0);
    let make = move |count: usize| env::make_parallel(id, count, threads);
    config.clone().trainer(World { rank: 0, size: 1 }, &make, Box::new(member)).unwrap()
}

/// Returns the bit patterns of the model in a checkpoint after some training.
fn model_after<A: Algorithm>(id: &'static str, config: &A, threads: usize, advances: usize) -> Vec<u32> {
    let mut trainer = trainer(id, config, threads);
    for _ in 0..advances {
        trainer.advance().unwrap();
    }
    let mut writer = Writer::default();
    trainer.write_model(&mut writer);
    trainer.write_worker(&mut writer);
    writer.all_floats().iter().map(|x| x.to_bits()).collect()
}

fn threads_do_what_one_does<A: Algorithm>(id: &'static str, config: &A, advances: usize) {
    let expected = model_after(id, config, 1, advances);
    for threads in [2, 3, 8] {
        let equal = model_after(id, config, threads, advances) == expected;
        assert!(equal, "{} on {id} with {threads} threads", A::NAME);
    }
}

#[test]
fn ppo_learns_the_same_with_any_number_of_threads() {
    let config = PpoConfig {
        environments: Some(6),
        rollout_steps: 192,
        epochs: 2,
        ..PpoConfig::preset("PlanarHopper-v0")
    };
    let config = PpoConfig { minibatch_size: 48, total_steps: 192 * 20, ..config };
    threads_do_what_one_does("PlanarHopper-v0", &config, 3);
}

#[test]
fn a2c_learns_the_same_with_any_number_of_threads() {
    let config = A2cConfig { environments: Some(5), ..A2cConfig::preset("CartPole-v1") };
    threads_do_what_one_does("CartPole-v1", &config, 2);
}

#[test]
fn sac_learns_the_same_with_any_number_of_threads() {
    let config = SacConfig {
        environments: Some(4),
        learning_starts: 100,
        batch_size: 16,
        buffer_size: 300,
        hidden: vec![16, 16],
        ..SacConfig::preset("Pendulum-v1")
    };
    threads_do_what_one_does("Pendulum-v1", &config, 1);
}

#[test]
fn a_checkpoint_is_resumed_with_another_number_of_threads() {
    let config = A2cConfig { environments: Some(5), ..A2cConfig::preset("CartPole-v1") };
    let directory = tempfile::tempdir().unwrap();
    let mut first = trainer("CartPole-v1", &config, 2);
    first.advance().unwrap();
    checkpoint::save(first.as_mut(), directory.path()).unwrap();
    let mut second = trainer("CartPole-v1", &config, 3);
    assert!(checkpoint::resume(second.as_mut(), directory.path()).unwrap().is_empty());
    let models = [&mut first, &mut second].map(|trainer| {
        trainer.advance().unwrap();
        let mut writer = Writer::default();
        trainer.write_model(&mut writer);
        writer.all_floats()
    });
    assert_eq!(models[0], models[1]);
}

#[test]
fn several_episodes_at_once_are_those_of_one_after_the_other() {
    let config = A2cConfig { environments: Some(4), ..A2cConfig::preset("CartPole-v1") };
    let directory = tempfile::tempdir().unwrap();
    let mut trainer = trainer("CartPole-v1", &config, 1);
    trainer.advance().unwrap();
    checkpoint::save(trainer.as_mut(), directory.path()).unwrap();
    let trained = Trained::read(directory.path()).unwrap();
    let mut env = env::make("CartPole-v1").unwrap();
    let policy = || trained.policy(env::make("CartPole-v1").unwrap().spec()).unwrap();
    let expected = evaluate(policy().as_mut(), env.as_mut(), 7, 1, false).unwrap();
    for threads in [1, 2, 3, 7] {
        let mut environments = env::make_parallel("CartPole-v1", threads, threads).unwrap();
        let mut policies: Vec<_> = (0..threads).map(|_| policy()).collect();
        assert_eq!(evaluate_parallel(&mut policies, &mut environments, 7, 1).unwrap(), expected);
    }
}
