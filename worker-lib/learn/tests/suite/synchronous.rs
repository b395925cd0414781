//! Tests of the algorithms that consist of two halves (DQN, A2C, DDPG, TD3 and SAC): with several workers, with
//! checkpoints, and until the task is solved.
use std::path::Path;
use std::sync::atomic::Ordering;

use iswitch::Loopback;
use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::checkpoint::{self, Writer};
use iswitch_learn::algorithms::ddpg::DdpgConfig;
use iswitch_learn::algorithms::dqn::DqnConfig;
use iswitch_learn::algorithms::evaluate::evaluate;
use iswitch_learn::algorithms::ppo::PpoConfig;
use iswitch_learn::algorithms::replay::Prioritisation;
use iswitch_learn::algorithms::sac::SacConfig;
use iswitch_learn::algorithms::td3::Td3Config;
use iswitch_learn::algorithms::trained::Trained;
use iswitch_learn::algorithms::trainer::{Algorithm, Mode, Trainer, World, replicas_identical};
use iswitch_learn::env;

const CART_POLE: &str = "CartPole-v1";
const PENDULUM: &str = "Pendulum-v1";

fn dqn() -> DqnConfig {
    DqnConfig {
        environments: Some(4),
        learning_starts: 200,
        train_every: 8,
        updates: 2,
        batch_size: 16,
        buffer_size: 400,
        target_update_interval: 40,
        hidden: vec![16, 16],
        ..DqnConfig::preset(CART_POLE)
    }
}

fn a2c() -> A2cConfig {
    A2cConfig { environments: Some(4), ..A2cConfig::preset(CART_POLE) }
}

fn ddpg() -> DdpgConfig {
    DdpgConfig {
        environments: Some(4),
        learning_starts: 100,
        batch_size: 16,
        buffer_size: 300,
        hidden: vec![16, 16],
        ..DdpgConfig::preset(PENDULUM)
    }
}

fn td3() -> Td3Config {
    Td3Config {
        environments: Some(4),
        learning_starts: 100,
        batch_size: 16,
        buffer_size: 300,
        hidden: vec![16, 16],
        ..Td3Config::preset(PENDULUM)
    }
}

fn sac() -> SacConfig {
    SacConfig {
        environments: Some(4),
        learning_starts: 100,
        batch_size: 16,
        buffer_size: 300,
        hidden: vec![16, 16],
        ..SacConfig::preset(PENDULUM)
    }
}

/// Runs `work` on all workers of a job concurrently.
fn on_all<A: Algorithm + Sync, T: Send>(
    id: &'static str,
    config: &A,
    workers: usize,
    work: impl Fn(&mut dyn Trainer) -> T + Sync,
) -> Vec<T> {
    let len = config.vector_shape(env::make(id).unwrap().spec(), Mode::Synchronous).unwrap().len();
    let members = Loopback::group(workers, len);
    std::thread::scope(|scope| {
        let threads: Vec<_> = members
            .into_iter()
            .enumerate()
            .map(|(rank, member)| {
                let (config, work) = (config.clone(), &work);
                scope.spawn(move || {
                    let make = |count: usize| env::make_vector(id, count);
                    let world = World { rank, size: workers };
                    let mut trainer = config.trainer(world, &make, Box::new(member)).unwrap();
                    work(trainer.as_mut())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Returns the parameters after a number of calls of `advance`, as a checkpoint would contain them.
fn parameters_after(trainer: &mut dyn Trainer, advances: usize) -> Vec<f32> {
    for _ in 0..advances {
        trainer.advance().unwrap();
    }
    assert!(replicas_identical(trainer).unwrap());
    let mut writer = Writer::default();
    trainer.write_model(&mut writer);
    writer.all_floats()
}

fn four_workers_do_what_one_does<A: Algorithm + Sync>(id: &'static str, config: &A, tolerance: f64) {
    let alone = on_all(id, config, 1, |trainer| {
        let parameters = parameters_after(trainer, 1);
        (parameters, trainer.progress())
    })
    .remove(0);
    for workers in [2, 4] {
        let group = on_all(id, config, workers, |trainer| {
            let parameters = parameters_after(trainer, 1);
            (parameters, trainer.progress())
        });
        assert!(group.iter().all(|member| *member == group[0]), "{workers} workers of {}", A::NAME);
        assert_eq!(group[0].1.steps, alone.1.steps);
        let square = |x: f32| f64::from(x).powi(2);
        let distance: f64 = group[0].0.iter().zip(&alone.0).map(|(a, b)| square(a - b)).sum();
        let length: f64 = alone.0.iter().map(|x| square(*x)).sum();
        assert!(distance < tolerance * length, "{} by {workers}: {distance:e} of {length:e}", A::NAME);
    }
}

#[test]
fn the_number_of_workers_does_not_change_the_learned_parameters() {
    four_workers_do_what_one_does(CART_POLE, &dqn(), 1e-4);
    four_workers_do_what_one_does(CART_POLE, &a2c(), 1e-4);
    four_workers_do_what_one_does(PENDULUM, &ddpg(), 1e-4);
    four_workers_do_what_one_does(
        PENDULUM,
        &DdpgConfig { twin_critics: true, policy_delay: 2, target_noise: 0.2, ..ddpg() },
        1e-4,
    );
    four_workers_do_what_one_does(PENDULUM, &td3(), 1e-4);
    four_workers_do_what_one_does(PENDULUM, &sac(), 1e-4);
}

fn goes_on_bit_for_bit<A: Algorithm + Sync>(id: &'static str, config: &A, workers: usize) {
    let straight = on_all(id, config, workers, |trainer| parameters_after(trainer, 5));
    let directory = tempfile::tempdir().unwrap();
    on_all(id, config, workers, |trainer| {
        parameters_after(trainer, 3);
        checkpoint::save(trainer, directory.path()).unwrap();
        // Steps after the checkpoint are lost.
        trainer.advance().unwrap();
    });
    let resumed = on_all(id, config, workers, |trainer| {
        assert_eq!(checkpoint::resume(trainer, directory.path()).unwrap(), [0; 0]);
        assert_eq!(trainer.progress().advances, 3);
        parameters_after(trainer, 2)
    });
    let bits = |all: &[Vec<f32>]| all.iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(bits(&resumed) == bits(&straight), "{} with {workers} workers", A::NAME);
}

#[test]
fn a_resumed_run_continues_bit_for_bit() {
    let prioritisation = Some(Prioritisation { alpha: 0.6, beta: 0.4, epsilon: 1e-6 });
    for workers in [1, 2] {
        goes_on_bit_for_bit(CART_POLE, &dqn(), workers);
        goes_on_bit_for_bit(CART_POLE, &DqnConfig { prioritisation, duelling: true, ..dqn() }, workers);
        goes_on_bit_for_bit(CART_POLE, &a2c(), workers);
        goes_on_bit_for_bit(PENDULUM, &ddpg(), workers);
        let with_options = DdpgConfig { twin_critics: true, policy_delay: 2, target_noise: 0.2, ..ddpg() };
        goes_on_bit_for_bit(PENDULUM, &with_options, workers);
        goes_on_bit_for_bit(PENDULUM, &Td3Config { policy_delay: 3, ..td3() }, workers);
        goes_on_bit_for_bit(PENDULUM, &sac(), workers);
        goes_on_bit_for_bit(PENDULUM, &SacConfig { autotune: false, ..sac() }, workers);
    }
}

#[test]
fn a_request_to_stop_reaches_all_workers() {
    let stops = on_all(CART_POLE, &a2c(), 2, |trainer| {
        assert!(!trainer.advance().unwrap().stopped);
        if trainer.world().rank == 1 {
            trainer.stop_handle().store(true, Ordering::Relaxed);
        }
        let report = trainer.advance().unwrap();
        (report.stopped, trainer.progress().iterations)
    });
    assert_eq!(stops, [(true, 101); 2]);
}

fn save_short_run<A: Algorithm + Sync>(id: &'static str, config: &A, directory: &Path) {
    on_all(id, config, 1, |trainer| {
        trainer.advance().unwrap();
        checkpoint::save(trainer, directory).unwrap();
    });
}

#[test]
fn a_checkpoint_of_another_algorithm_environment_or_network_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    save_short_run(CART_POLE, &a2c(), directory.path());
    let refusal = |outcome: Vec<String>| outcome.into_iter().next().unwrap();
    let resume =
        |trainer: &mut dyn Trainer| checkpoint::resume(trainer, directory.path()).unwrap_err().to_string();
    let other = refusal(on_all(CART_POLE, &dqn(), 1, resume));
    assert!(other.contains("it holds a run of algorithm a2c, not dqn"), "{other}");
    let wider = A2cConfig { hidden: vec![32, 32], ..a2c() };
    let other = refusal(on_all(CART_POLE, &wider, 1, resume));
    assert!(other.contains("actor.0.weight has 256 numbers; this run needs 128"), "{other}");
    let pendulum = A2cConfig { clip_rewards: false, ..a2c() };
    let other = refusal(on_all(PENDULUM, &pendulum, 1, resume));
    assert!(other.ends_with("it holds a run of environment CartPole-v1, not Pendulum-v1"), "{other}");
}

#[test]
fn environments_with_unsupported_actions_are_refused() {
    let spec = |id: &str| env::make(id).unwrap().spec().clone();
    let error = dqn().vector_shape(&spec(PENDULUM), Mode::Synchronous).unwrap_err().to_string();
    assert_eq!(
        error,
        "Pendulum-v1 has continuous actions, expected discrete ones; for continuous actions, train ppo, a2c, ddpg, td3 \
         or sac"
    );
    let errors = [
        ddpg().vector_shape(&spec(CART_POLE), Mode::Synchronous),
        td3().vector_shape(&spec(CART_POLE), Mode::Synchronous),
        sac().vector_shape(&spec(CART_POLE), Mode::Synchronous),
    ];
    for error in errors {
        assert_eq!(
            error.unwrap_err().to_string(),
            "CartPole-v1 has discrete actions, expected continuous ones; for discrete actions, train ppo, a2c or dqn"
        );
    }
}

fn trained_returns<A: Algorithm + Sync>(id: &'static str, config: &A) -> (f64, f64) {
    let directory = tempfile::tempdir().unwrap();
    let mean = on_all(id, config, 1, |trainer| {
        while !trainer.progress().finished {
            trainer.advance().unwrap();
        }
        checkpoint::save(trainer, directory.path()).unwrap();
        trainer.progress().mean_return.unwrap()
    });
    let trained = Trained::read(directory.path()).unwrap();
    assert_eq!((trained.algorithm.as_str(), trained.env.as_str()), (A::NAME, id));
    let mut env = env::make(id).unwrap();
    let mut policy = trained.policy(env.spec()).unwrap();
    let episodes = evaluate(policy.as_mut(), env.as_mut(), 20, 1, false).unwrap();
    (mean[0], episodes.iter().map(|episode| episode.episode_return).sum::<f64>() / 20.0)
}

#[test]
fn a2c_solves_cart_pole() {
    let (mean, evaluated) = trained_returns(CART_POLE, &A2cConfig::preset(CART_POLE));
    assert!(mean >= 475.0 && evaluated >= 475.0, "{mean} {evaluated}");
}

#[test]
fn dqn_solves_cart_pole() {
    let (mean, evaluated) = trained_returns(CART_POLE, &DqnConfig::preset(CART_POLE));
    assert!(mean >= 475.0 && evaluated >= 475.0, "{mean} {evaluated}");
}

#[test]
fn td3_swings_up_the_pendulum() {
    let (mean, evaluated) = trained_returns(PENDULUM, &Td3Config::preset(PENDULUM));
    assert!(mean >= -200.0 && evaluated >= -200.0, "{mean} {evaluated}");
}

#[test]
fn sac_swings_up_the_pendulum() {
    let (mean, evaluated) = trained_returns(PENDULUM, &SacConfig::preset(PENDULUM));
    assert!(mean >= -200.0 && evaluated >= -200.0, "{mean} {evaluated}");
}

#[test]
fn a_trained_agent_of_every_algorithm_can_be_loaded() {
    let acts = |id: &'static str, save: &dyn Fn(&Path)| {
        let directory = tempfile::tempdir().unwrap();
        save(directory.path());
        let mut env = env::make(id).unwrap();
        let mut policy = Trained::read(directory.path()).unwrap().policy(env.spec()).unwrap();
        for stochastic in [false, true] {
            assert_eq!(evaluate(policy.as_mut(), env.as_mut(), 2, 1, stochastic).unwrap().len(), 2);
        }
    };
    acts(CART_POLE, &|path| save_short_run(CART_POLE, &dqn(), path));
    acts(CART_POLE, &|path| save_short_run(CART_POLE, &a2c(), path));
    acts(PENDULUM, &|path| save_short_run(PENDULUM, &ddpg(), path));
    acts(PENDULUM, &|path| save_short_run(PENDULUM, &td3(), path));
    acts(PENDULUM, &|path| save_short_run(PENDULUM, &sac(), path));
    let ppo = PpoConfig { rollout_steps: 64, minibatch_size: 32, ..PpoConfig::preset(CART_POLE) };
    acts(CART_POLE, &|path| save_short_run(CART_POLE, &ppo, path));
}
