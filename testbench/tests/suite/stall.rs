//! Test with real processes and the real daemon, in which one worker is stopped half of the time. The simulation proves
//! that the other workers lose nothing; this test measures their rates.

use std::time::{Duration, Instant};

use iswitch_harness::binaries;
use iswitch_harness::cluster::{Daemon, SOON};
use iswitch_harness::process::{Process, Signal, command};
use iswitch_harness::requirements::{alone, programs, report};
use serde_json::Value;

/// Number of workers that run all the time; it is also the threshold H.
const FAST: usize = 3;
const SECONDS: f64 = 4.0;
/// Duration of each period. The remaining workers are stopped and continued in alternating periods of this length.
const STALL: Duration = Duration::from_millis(200);

fn worker(daemon: &Daemon, rank: usize, workers: usize) -> Process {
    let mut command = command(binaries::async_pipeline());
    let arguments = format!(
        "--json --switch {} --workers {workers} --rank {rank} --threshold {FAST} --seconds {SECONDS}",
        daemon.address()
    );
    command.args(arguments.split_whitespace());
    Process::spawn(&format!("async_pipeline of rank {rank}"), &mut command)
}

/// Returns the results of the workers that are not stopped.
fn measure(stopped: usize) -> Vec<Value> {
    let daemon = Daemon::on_loopback(&[]);
    let workers = FAST + stopped;
    let fast: Vec<_> = (0..FAST).map(|rank| worker(&daemon, rank, workers)).collect();
    let mut others: Vec<_> = (FAST..workers).map(|rank| worker(&daemon, rank, workers)).collect();
    let begin = Instant::now();
    while stopped > 0 && begin.elapsed().as_secs_f64() < SECONDS {
        for signal in [Signal::STOP, Signal::CONT] {
            others.iter_mut().for_each(|other| other.signal(signal));
            std::thread::sleep(STALL);
        }
    }
    let results = fast.into_iter().map(|process| process.wait_success(SOON));
    let results = results.map(|line| serde_json::from_str(&line).expect("one line of JSON")).collect();
    // The stopped worker may have missed more rounds than the switch keeps; then it ends with an error.
    for other in others {
        let finished = other.wait(SOON);
        assert!(
            finished.status.success()
                || finished.stderr.contains("the other workers continued without this one"),
            "{}",
            finished.stderr
        );
    }
    results
}

fn mean(results: &[Value], field: &str) -> f64 {
    results.iter().map(|result| result[field].as_f64().expect("a number")).sum::<f64>() / results.len() as f64
}

#[test]
fn a_stopped_worker_does_not_stop_the_others() {
    if !programs("a_stopped_worker_does_not_stop_the_others", &["setpriv"]) {
        return;
    }
    let _alone = alone();
    let (without, with) = (measure(0), measure(1));
    for (name, results) in [("without", &without), ("with", &with)] {
        assert!(results.iter().all(|result| result["updates"].as_u64().is_some_and(|updates| updates > 0)));
        assert!(results.iter().all(|result| result["lost"] == 0));
        report(&format!(
            "asynchronous, H = {FAST}, {FAST} workers {name} one stopped half of the time: \
             {:.0} gradients/s each, {:.0} updates/s, staleness {:.2}",
            mean(results, "contributed_s"),
            mean(results, "updates_s"),
            mean(results, "staleness_at_inclusion")
        ));
    }
}
