//! Two switches in addition to the daemon, and a job whose workers use one of them at a time.

use std::net::SocketAddrV4;
use std::thread::sleep;
use std::time::{Duration, Instant};

use iswitch_harness::cluster::{Daemon, SOON};
use iswitch_harness::netns::{SWITCH_ADDRESS, Star};
use iswitch_protocol::limits::DEFAULT_PORT;
use tempfile::TempDir;

use super::job::{Job, Place};
use super::site::{LEASE_MS, POLL_INTERVAL, place};

/// UDP ports of the two switches, beyond those of the daemon's threads.
const PORTS: [u16; 2] = [DEFAULT_PORT + 32, DEFAULT_PORT + 64];

/// Two switches and their job.
pub(super) struct Pair {
    job: Job,
    daemons: [Option<Daemon>; 2],
}

impl Pair {
    /// Starts both switches, and job `number` at the first of them.
    pub(super) fn start(star: &Star, directory: &TempDir, number: usize) -> Self {
        let daemons = PORTS.map(|port| Some(start(star, port)));
        let [first, standby] = PORTS.map(|port| SocketAddrV4::new(SWITCH_ADDRESS, port));
        let place = Place { standby: Some(standby), ..place(star, first, directory) };
        Self { job: Job::start(number, place, None), daemons }
    }

    /// Returns the switch at which the job makes progress, once it does.
    pub(super) fn active(&self) -> Result<usize, String> {
        let sums = || self.daemons.each_ref().map(|daemon| daemon.as_ref().map_or(0, Daemon::results));
        let (begin, before) = (Instant::now(), sums());
        loop {
            let now = sums();
            if let Some(at) = (0..before.len()).find(|at| now[*at] > before[*at]) {
                return Ok(at);
            }
            if begin.elapsed() > SOON {
                return Err(format!("the job with two switches made no progress within {SOON:?}"));
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// Kills the switch that the job uses, waits for progress at the other one, and starts the killed one again.
    pub(super) fn fail_over(&mut self, star: &Star) -> Result<(), String> {
        let killed = self.active()?;
        if let Some(mut daemon) = self.daemons[killed].take() {
            daemon.process.kill(SOON);
        }
        let active = self.active();
        self.daemons[killed] = Some(start(star, PORTS[killed]));
        active.map(|_| ())
    }

    /// Fails if a worker has ended.
    pub(super) fn check_running(&mut self) -> Result<(), String> {
        self.job.check_running()
    }

    /// Returns the longest round that overlaps the time from `begin` to `end`, both since the Unix epoch.
    pub(super) fn longest_round(&self, begin: Duration, end: Duration) -> Duration {
        self.job.longest_round(begin, end)
    }

    /// Ends the job and both switches, and returns the number of exact rounds.
    pub(super) fn end(mut self) -> Result<u64, String> {
        self.active()?;
        self.job.end()?;
        self.daemons.into_iter().flatten().for_each(|daemon| drop(daemon.stop()));
        Ok(self.job.rounds())
    }
}

fn start(star: &Star, port: u16) -> Daemon {
    let address = SocketAddrV4::new(SWITCH_ADDRESS, port);
    Daemon::on_udp(&star.switch, address, &["--lease-ms", &LEASE_MS.to_string()])
}
