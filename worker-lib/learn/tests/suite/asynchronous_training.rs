//! Asynchronous training, with the embedded switch and with an asynchronous parameter server.
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use iswitch::pipeline::{PipelineConfig, PipelineReport};
use iswitch::{AsyncWorker, ElementTypes, JoinOptions};
use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::async_server::{AsyncClientOptions, AsyncServer, ServerReport, work};
use iswitch_learn::algorithms::asynchronous::train;
use iswitch_learn::algorithms::checkpoint::{ModelFile, RunKind, save_model};
use iswitch_learn::algorithms::ddpg::DdpgConfig;
use iswitch_learn::algorithms::halves::{Halves, Tail};
use iswitch_learn::algorithms::ppo::PpoConfig;
use iswitch_learn::algorithms::sac::SacConfig;
use iswitch_learn::algorithms::td3::Td3Config;
use iswitch_learn::algorithms::trainer::{Algorithm, Mode, Progress, World};
use iswitch_learn::env;
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};

const LOCALHOST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
const CART_POLE: &str = "CartPole-v1";
const PENDULUM: &str = "Pendulum-v1";
const BOUND: u32 = 2;
const TIMEOUT: Duration = Duration::from_secs(20);

fn a2c(total_steps: u64) -> A2cConfig {
    A2cConfig { total_steps, environments: Some(12), ..A2cConfig::preset(CART_POLE) }
}

fn ppo() -> PpoConfig {
    PpoConfig {
        total_steps: 4_096,
        rollout_steps: 256,
        normalise_observations: true,
        normalise_rewards: true,
        ..PpoConfig::preset(CART_POLE)
    }
}

fn halves<A: Algorithm>(config: &A, id: &'static str, rank: usize, workers: usize) -> Halves {
    let world = World { rank, size: workers };
    config.clone().halves(world, &|count| env::make_vector(id, count), Mode::Asynchronous).unwrap()
}

/// Final state of a worker.
struct End {
    report: PipelineReport,
    progress: Progress,
    /// Highest mean return of recent episodes after any update.
    best_return: f64,
}

/// Runs a job that uses an embedded switch, and returns the final state of each worker.
fn by_switch<A: Algorithm + Sync>(config: &A, id: &'static str, workers: u16) -> Vec<End> {
    by_switch_in(config, id, workers, ElementTypes::F32)
}

fn by_switch_in<A: Algorithm + Sync>(
    config: &A,
    id: &'static str,
    workers: u16,
    elements: ElementTypes,
) -> Vec<End> {
    let switch = EmbeddedSwitch::start(LOCALHOST, &EmbeddedOptions::default()).unwrap();
    let shape = config.vector_shape(env::make(id).unwrap().spec(), Mode::Asynchronous).unwrap();
    let len = shape.summed_len(elements, workers.into()).unwrap();
    let run = |rank: u16| {
        let options = JoinOptions {
            rank,
            workers_timeout: Some(TIMEOUT),
            ..JoinOptions::new(switch.address(), workers, len as u32)
        };
        let halves = halves(config, id, rank.into(), workers.into());
        assert_eq!(halves.shape, shape);
        let worker = AsyncWorker::join(options.with_elements(elements)).unwrap();
        let pipeline = PipelineConfig { staleness_bound: BOUND, digest_interval: 10 };
        let mut progress = halves.replica.progress();
        let mut best_return = f64::NEG_INFINITY;
        let report = train(halves, worker, workers.into(), pipeline, Arc::default(), &mut |replica, _, _| {
            progress = replica.progress();
            best_return = best_return.max(progress.mean_return.unwrap_or(f64::NEG_INFINITY));
            Ok(())
        });
        End { report: report.unwrap(), progress, best_return }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|rank| scope.spawn(move || run(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn models_are_alike(all: &[End]) {
    let bits = |report: &PipelineReport| report.model.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for End { report, progress, .. } in all {
        assert!(bits(report) == bits(&all[0].report), "the models differ");
        assert_eq!(*progress, all[0].progress);
        assert!(progress.finished);
        assert!(report.staleness.at_commit().max().unwrap() <= BOUND as usize);
        assert_eq!(report.staleness.updates(), progress.iterations);
    }
}

#[test]
fn asynchronous_workers_with_a_switch_end_with_the_same_model() {
    models_are_alike(&by_switch(&a2c(20_000), CART_POLE, 3));
    let (total_steps, learning_starts, batch_size, hidden) = (1_500, 200, 16, vec![16, 16]);
    let ddpg = DdpgConfig {
        total_steps,
        learning_starts,
        batch_size,
        hidden: hidden.clone(),
        policy_delay: 2,
        ..DdpgConfig::preset(PENDULUM)
    };
    models_are_alike(&by_switch(&ddpg, PENDULUM, 2));
    let td3 = Td3Config {
        total_steps,
        learning_starts,
        batch_size,
        hidden: hidden.clone(),
        ..Td3Config::preset(PENDULUM)
    };
    models_are_alike(&by_switch(&td3, PENDULUM, 2));
    let sac = SacConfig { total_steps, learning_starts, batch_size, hidden, ..SacConfig::preset(PENDULUM) };
    models_are_alike(&by_switch(&sac, PENDULUM, 2));
    models_are_alike(&by_switch(&ppo(), CART_POLE, 2));
    for (lstm, gru) in [(Some(16), None), (None, Some(16))] {
        let recurrent = PpoConfig { lstm, gru, ..ppo() };
        models_are_alike(&by_switch(&recurrent, "CartPoleNoVel-v1", 2));
    }
}

#[test]
fn sixteen_bit_elements_keep_the_statistics_of_asynchronous_workers() {
    let steps_of = |elements: &str| {
        let all = by_switch_in(&ppo(), CART_POLE, 2, elements.parse().unwrap());
        models_are_alike(&all);
        // The statistics of the normalisation follow the parameters in the model.
        let model = &all[0].report.model;
        let variances = &model[model.len() - 5..];
        assert!(variances.iter().all(|x| x.is_finite() && *x > 0.0), "{elements}: {variances:?}");
        all[0].progress.steps
    };
    // Each worker's rollouts have 128 steps.
    assert!(["bf16", "f16", "f16-f32"].map(steps_of).iter().all(|steps| steps.is_multiple_of(128)));
}

#[test]
fn asynchronous_a2c_learns_with_a_switch() {
    let all = by_switch(&a2c(250_000), CART_POLE, 2);
    // The test checks the best return, because the final one depends on timing: a policy that balances the pole may
    // lose this ability later.
    let best = all[0].best_return;
    assert!(best > 150.0, "the best mean return is {best}; a random policy has 20");
}

/// Runs an asynchronous parameter server and its workers. `others` is called with the server's address and may open
/// further connections to it.
fn by_server(
    config: &A2cConfig,
    workers: usize,
    bound: u32,
    stop: &Arc<AtomicBool>,
    others: impl FnOnce(SocketAddr) + Send,
) -> (ServerReport, Progress) {
    let spec = env::make(CART_POLE).unwrap().spec().clone();
    let len = config.vector_shape(&spec, Mode::Asynchronous).unwrap().len();
    let server = AsyncServer::bind(LOCALHOST, len, bound).unwrap();
    let address = server.local_addr().unwrap();
    let SocketAddr::V4(v4) = address else { panic!("{address}") };
    std::thread::scope(|scope| {
        scope.spawn(move || others(address));
        for rank in 0..workers {
            scope.spawn(move || {
                let halves = halves(config, CART_POLE, rank, workers);
                let model_len = halves.model.len();
                let options = AsyncClientOptions { server: v4, vector_len: len, model_len, timeout: TIMEOUT };
                work(halves.local, &options, Arc::clone(stop)).unwrap();
            });
        }
        let Halves { model, replica, .. } = halves(config, CART_POLE, 0, workers);
        let mut last = replica.progress();
        let report = server
            .run(model, replica, &AtomicBool::new(false), &mut |replica, _, _| {
                last = replica.progress();
                Ok(())
            })
            .unwrap();
        (report, last)
    })
}

#[test]
fn a_server_applies_fresh_gradients_and_survives_faulty_peers() {
    // A silent connection stays open until the end, and must not prevent the server from ending.
    let silent = Mutex::new(Vec::new());
    for bound in [0, 3] {
        let (report, progress) = by_server(&a2c(20_000), 3, bound, &Arc::default(), |address| {
            silent.lock().unwrap().push(TcpStream::connect(address).unwrap());
            // One peer sends noise, one is a worker of another job, and one leaves in the middle of a vector.
            TcpStream::connect(address).unwrap().write_all(&[7; 100]).unwrap();
            let mut other = TcpStream::connect(address).unwrap();
            other.write_all(&[0x69, 0x53, 0x57, 0x32, 5, 0, 0, 0, 5, 0, 0, 0]).unwrap();
            let mut answer = Vec::new();
            other.read_to_end(&mut answer).unwrap();
            assert_eq!(answer.len(), 12);
            let mut leaver = TcpStream::connect(address).unwrap();
            leaver.write_all(&answer).unwrap();
            leaver.write_all(&[0; 500]).unwrap();
        });
        assert!(progress.finished && progress.steps >= 20_000);
        assert_eq!(report.applied, progress.iterations);
        assert_eq!(report.staleness.len(), bound as usize + 1);
        assert_eq!(report.staleness.iter().sum::<u64>(), report.applied);
        // A worker sends the statistics of a skipped vector with its next vector, so only the statistics of the
        // workers' final vectors may be lost.
        let each = 5 * 4;
        assert!(progress.steps < 20_000 + 3 * (report.skipped + 3) * each, "{report:?} {progress:?}");
    }
}

#[test]
fn a_request_to_stop_ends_the_server_and_its_workers() {
    let stop = Arc::new(AtomicBool::new(false));
    let (_, progress) = by_server(&a2c(u64::MAX), 2, 3, &stop, |_| {
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
    });
    assert!(!progress.finished && progress.iterations > 0);
}

#[test]
fn an_asynchronous_run_resumes_from_its_model() {
    let directory = tempfile::tempdir().unwrap();
    let config = a2c(4_000);
    let spec = env::make(CART_POLE).unwrap().spec().clone();
    let kind = RunKind { algorithm: A2cConfig::NAME, env: CART_POLE, config: "{}" };
    let first = by_switch(&config, CART_POLE, 1).remove(0);
    let mut other = halves(&config, CART_POLE, 0, 1);
    let mut model = first.report.model.clone();
    // The file holds the final model and the counters of a replica that has applied one sum.
    let mut sum = vec![0.0; config.vector_shape(&spec, Mode::Asynchronous).unwrap().len()];
    Tail { steps: 60.0, episodes: 1.0, returns: 25.0, ..Tail::default() }.write(&mut sum);
    other.replica.apply(&mut model, &sum, 1);
    save_model(directory.path(), &kind, 7, &|writer| other.replica.write(&model, writer)).unwrap();
    let mut resumed = halves(&config, CART_POLE, 0, 1);
    let file = ModelFile::read(directory.path()).unwrap();
    resumed.replica.read(&mut resumed.model, &file.reader().unwrap()).unwrap();
    assert!(resumed.model == model);
    let progress = resumed.replica.progress();
    assert_eq!((progress.advances, progress.steps, progress.iterations), (7, 60, 1));
    assert_eq!(progress.mean_return, Some(25.0));
}
