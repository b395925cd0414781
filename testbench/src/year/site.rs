//! The daemon, its jobs and its files during a year.

use std::fs;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use iswitch_harness::cluster::{Daemon, Group, SOON, keygen};
use iswitch_harness::faults::{self, Faults};
use iswitch_harness::netns::{Star, StarOptions};
use iswitch_harness::process::Signal;
use iswitch_harness::scratch;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use tempfile::TempDir;

use super::job::{Job, Place};
use super::pair::Pair;
use super::{Action, Pause};

/// Size of the file system that holds the dumps of the flight recorder.
const DISK_KIB: u32 = 512;
/// Time that jobs run undisturbed after an action.
const REST: Duration = Duration::from_millis(100);
/// Time between the beginning and the end of an action that lasts for a moment.
const MOMENT: Duration = Duration::from_millis(300);
/// Number of rounds that each job must complete after an action.
const ROUNDS_AFTER: u32 = 3;
/// Maximum number of jobs.
pub(super) const MAX_JOBS: usize = 64;
/// Interval at which the progress of jobs is read.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Lease of a member, in milliseconds. A removed job can start again after a lease.
pub(super) const LEASE_MS: u32 = 2000;
/// Bytes written to the pipe of the log beforehand, so that few lines fill it.
const PREFILL_LEN_BYTES: usize = 56 << 10;
/// Number of log lines that are written while the log is not read.
const UNREAD_LINES: usize = 100;

pub(super) struct Site {
    /// Declared first, so that the workers end before their networks.
    jobs: Vec<Job>,
    pair: Option<Pair>,
    daemon: Option<Daemon>,
    star: Star,
    directory: TempDir,
    log: Log,
    /// Number of keys created so far.
    keys: usize,
}

/// The daemon's standard error: a pipe that a thread reads, except while reading is paused.
struct Log {
    writer: Option<PipeWriter>,
    is_paused: Arc<AtomicBool>,
    reader: Option<JoinHandle<String>>,
}

impl Log {
    fn new() -> Self {
        let (mut reader, writer) = pipe().expect("the pipe must be created");
        let is_paused = Arc::new(AtomicBool::new(false));
        let paused = Arc::clone(&is_paused);
        let reader = std::thread::spawn(move || read_unless(&paused, &mut reader));
        Self { writer: Some(writer), is_paused, reader: Some(reader) }
    }

    fn writer(&self) -> PipeWriter {
        self.writer.as_ref().and_then(|writer| writer.try_clone().ok()).expect("the pipe must be open")
    }

    fn pause(&self, pause: bool) {
        self.is_paused.store(pause, Ordering::Relaxed);
    }

    /// Waits for the end of the log, after the daemon has ended, and returns the log.
    fn end(&mut self) -> String {
        self.pause(false);
        self.writer = None;
        self.reader.take().map(|reader| reader.join().unwrap_or_default()).unwrap_or_default()
    }
}

fn read_unless(is_paused: &AtomicBool, pipe: &mut PipeReader) -> String {
    let (mut log, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        while is_paused.load(Ordering::Relaxed) {
            sleep(POLL_INTERVAL);
        }
        match pipe.read(&mut buffer) {
            Ok(0) | Err(_) => return String::from_utf8_lossy(&log).into_owned(),
            Ok(len) => log.extend_from_slice(&buffer[..len]),
        }
    }
}

impl Site {
    pub(super) fn new(jobs: usize, workers: usize) -> Self {
        // The last worker is behind the port that is removed and added again.
        let star = Star::new(StarOptions { workers: workers + 1, ..StarOptions::default() });
        let mut site = Self {
            jobs: vec![],
            pair: None,
            daemon: None,
            star,
            directory: scratch::directory(),
            log: Log::new(),
            keys: 0,
        };
        fs::create_dir(site.disk()).expect("a directory must be creatable");
        for number in (1..jobs).step_by(2) {
            site.create_key(number);
        }
        site.configure(1000, "info", false);
        site.start_daemon();
        for number in 0..jobs {
            let key = (number % 2 == 1).then(|| site.copy_of_key(number));
            let job = Job::start(number, site.place(), key.as_deref());
            site.jobs.push(job);
        }
        site.pair = Some(Pair::start(&site.star, &site.directory, MAX_JOBS));
        site
    }

    /// Ends all jobs, and returns the number of rounds in which each sum was exact.
    pub(super) fn end(mut self) -> Result<u64, String> {
        for job in &mut self.jobs {
            job.check_running()?;
            job.end()?;
        }
        let mut rounds = self.jobs.iter().map(Job::rounds).sum();
        if let Some(pair) = self.pair.take() {
            rounds += pair.end()?;
        }
        self.daemon.take().map(Daemon::stop);
        let log = self.log.end();
        match log.lines().find(|line| line.contains("panicked")) {
            Some(line) => Err(format!("the daemon panicked: {line}")),
            None => Ok(rounds),
        }
    }

    fn disk(&self) -> PathBuf {
        self.directory.path().join("disk")
    }

    fn place(&self) -> Place<'_> {
        place(&self.star, self.daemon().address(), &self.directory)
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("the daemon must run")
    }

    fn start_daemon(&mut self) {
        let (disk, dumps, lease) = (self.disk(), self.disk().join("flight.jsonl"), LEASE_MS.to_string());
        let dumps = dumps.to_str().expect("the path must be UTF-8");
        let arguments = ["--flight-recorder", dumps, "--lease-ms", &lease];
        let (config, log) = (self.config(), self.log.writer());
        let daemon = Daemon::configured_with_disk(&self.star, &config, (&disk, DISK_KIB), log, &arguments);
        self.daemon = Some(daemon);
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("iswitchd.toml")
    }

    /// Writes the configuration file, with or without the last port.
    fn configure(&self, slow_ms: u32, log_level: &str, has_last_port: bool) {
        let mut ports = self.star.ports();
        if !has_last_port {
            ports.pop();
        }
        let keys: Vec<_> = (0..MAX_JOBS)
            .map(|number| (number, self.key_file(number)))
            .filter(|(_, path)| path.exists())
            .map(|(number, path)| format!("\"{number}={}\"", path.display()))
            .collect();
        let text = format!(
            "port = {ports:?}\nslow_ms = {slow_ms}\nlog_level = '{log_level}'\nkey_files = [{}]\n",
            keys.join(", ")
        );
        fs::write(self.config(), text).expect("the configuration must be writable");
    }

    fn key_file(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("job-{number}.key"))
    }

    /// Creates a new key for a job.
    fn create_key(&mut self, number: usize) {
        self.keys += 1;
        let new = keygen(self.directory.path(), &format!("new-{}.key", self.keys));
        fs::rename(new, self.key_file(number)).expect("a key must be replaceable");
    }

    /// Copies a job's key to another file, so that the workers can still read it after the original has been
    /// replaced.
    fn copy_of_key(&mut self, number: usize) -> PathBuf {
        let copy = self.directory.path().join(format!("worker-{number}-{}.key", self.keys));
        fs::copy(self.key_file(number), &copy).expect("a key must be readable");
        copy
    }

    fn ctl(&self, arguments: &str) -> Result<String, String> {
        let output = self.daemon().ctl(arguments);
        let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn obeyed(&self, arguments: &str) -> Result<String, String> {
        self.ctl(arguments).map_err(|error| format!("iswitchctl {arguments}: {error}"))
    }

    fn refused(&self, arguments: &str, expected: &str) -> Result<(), String> {
        match self.ctl(arguments) {
            Err(error) if error.contains(expected) => Ok(()),
            other => Err(format!("iswitchctl {arguments}: {other:?}, expected the error {expected:?}")),
        }
    }

    /// Carries out an action, waits until all jobs have made progress, and measures the pause.
    pub(super) fn carry_out(
        &mut self,
        action: Action,
        target: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Pause, String> {
        let begin = now();
        let job_continues = self.act(action, target, rng)?;
        self.wait_for_progress()?;
        self.pair.iter().try_for_each(|pair| pair.active().map(drop))?;
        sleep(REST);
        let end = now();
        let longest = |job: &Job| job.longest_round(begin, end);
        let others = self.jobs.iter().enumerate().filter(|(number, _)| *number != target);
        let pause = Pause {
            action,
            target: job_continues.then(|| longest(&self.jobs[target])),
            others: others.map(|(_, job)| longest(job)).max(),
            pair: self.pair.as_ref().map(|pair| pair.longest_round(begin, end)),
        };
        self.jobs.iter_mut().try_for_each(Job::check_running)?;
        self.pair.iter_mut().try_for_each(Pair::check_running)?;
        Ok(pause)
    }

    /// Returns whether the target job continued during the action.
    fn act(&mut self, action: Action, target: usize, rng: &mut ChaCha8Rng) -> Result<bool, String> {
        match action {
            Action::Nothing => sleep(MOMENT),
            Action::Inspect => self.inspect()?,
            Action::Reload => self.reload(rng)?,
            Action::RefuseReload => self.refuse_reload()?,
            Action::RotateKey => return self.rotate_key(target).map(|()| false),
            Action::ChangePorts => self.change_ports()?,
            Action::Halt => {
                self.obeyed(&format!("job halt {target}"))?;
                sleep(MOMENT);
                self.obeyed(&format!("job resume {target}"))?;
            }
            Action::Reset => drop(self.obeyed(&format!("job reset {target} --yes"))?),
            Action::Remove => return self.remove(target).map(|()| false),
            Action::Expel => return self.expel(target, rng).map(|()| false),
            Action::Drain => self.drain()?,
            Action::Restart => {
                self.daemon.take().map(Daemon::stop);
                self.start_daemon();
            }
            Action::Crash => self.crash(),
            Action::FailOver => {
                let Self { pair, star, .. } = self;
                pair.iter_mut().try_for_each(|pair| pair.fail_over(star))?;
            }
            Action::Freeze => {
                self.signal(Signal::STOP);
                sleep(Duration::from_millis(rng.random_range(20..1000)));
                self.signal(Signal::CONT);
            }
            Action::FillDisk => self.fill_disk()?,
            Action::FillLog => self.fill_log(),
            Action::Unplug => self.unplug(rng),
            Action::Loss => {
                let worker = &self.star.workers[rng.random_range(0..self.star.workers.len() - 1)];
                Faults { loss_permille: 100, ..Faults::default() }.inject(worker);
                sleep(MOMENT);
                faults::remove(worker);
            }
        }
        Ok(true)
    }

    fn inspect(&self) -> Result<(), String> {
        let views =
            ["status", "counters --json", "jobs", "job list --json", "snapshot --json", "flight", "config"];
        views.into_iter().try_for_each(|view| self.obeyed(view).map(drop))
    }

    fn reload(&mut self, rng: &mut ChaCha8Rng) -> Result<(), String> {
        let slow_ms = rng.random_range(200..5000);
        self.configure(slow_ms, ["info", "debug", "warn"][rng.random_range(0..3)], false);
        if rng.random() {
            self.obeyed("reload")?;
        } else {
            self.signal(Signal::HUP);
        }
        self.wait_until(&format!("slow_ms = {slow_ms} in force"), |site| {
            site.setting("slow_ms") == Some(slow_ms.into())
        })
    }

    fn setting(&self, name: &str) -> Option<Value> {
        let settings: Value = serde_json::from_str(&self.ctl("config --json").ok()?).ok()?;
        let row = settings.as_array()?.iter().find(|row| row["setting"] == name)?;
        Some(row["value"].clone())
    }

    fn refuse_reload(&self) -> Result<(), String> {
        let before = fs::read(self.config()).expect("the configuration must be readable");
        let slow_ms = self.setting("slow_ms");
        let ports = self.star.ports();
        for (text, expected) in [
            ("slow_ms = 5\n", "slow_ms is 5, expected 100 to 3600000"),
            ("memory_mib = 77\n", "memory_mib (from 256 to 77) cannot change while the switch is running"),
        ] {
            fs::write(self.config(), format!("port = {ports:?}\n{text}"))
                .expect("the configuration must be writable");
            self.refused("reload", expected)?;
        }
        fs::write(self.config(), before).expect("the configuration must be writable");
        let after = self.setting("slow_ms");
        if after == slow_ms {
            Ok(())
        } else {
            Err(format!("slow_ms is {after:?}, expected {slow_ms:?} as before"))
        }
    }

    fn rotate_key(&mut self, target: usize) -> Result<(), String> {
        self.create_key(target);
        self.configure(1000, "info", false);
        self.obeyed("reload")?;
        // The job keeps its key until it ends.
        self.wait_for_progress()?;
        self.jobs[target].end()?;
        self.wait_until(&format!("the end of job {target}"), |site| site.job(target).is_none())?;
        self.restart_job(target);
        Ok(())
    }

    /// Adds a port, lets a job of the worker behind it run, and removes the port.
    fn change_ports(&mut self) -> Result<(), String> {
        self.configure(1000, "info", true);
        self.obeyed("reload")?;
        let (number, last) = (self.jobs.len(), self.star.workers.len() - 1);
        let behind = &self.star.workers[last..];
        let mut group =
            Group::of(behind, self.daemon().address(), &format!("--job {number} --rounds 1000000000"));
        self.wait_for_rounds(&[number])?;
        self.configure(1000, "info", false);
        let port = Star::port(last);
        self.refused("reload", &format!("port \"{port}\" has 1 members, expected none"))?;
        group.end();
        group.results(SOON);
        self.wait_until(&format!("the end of job {number}"), |site| site.job(number).is_none())?;
        self.obeyed("reload").map(drop)
    }

    fn restart_job(&mut self, target: usize) {
        let key = self.key_file(target).exists().then(|| self.copy_of_key(target));
        let Self { jobs, daemon: Some(daemon), star, directory, .. } = self else { return };
        jobs[target].restart(place(star, daemon.address(), directory), key.as_deref());
    }

    fn remove(&mut self, target: usize) -> Result<(), String> {
        self.obeyed(&format!("job remove {target} --yes"))?;
        self.wait_until(&format!("the end of job {target}"), |site| site.job(target).is_none())?;
        self.jobs[target].kill();
        sleep(Duration::from_millis(LEASE_MS.into()) + REST);
        self.restart_job(target);
        Ok(())
    }

    fn expel(&mut self, target: usize, rng: &mut ChaCha8Rng) -> Result<(), String> {
        let members = self.members(target);
        let chosen = &members[rng.random_range(0..members.len())];
        let rank = chosen["rank"].as_u64().ok_or("the member has no rank")? as usize;
        self.obeyed(&format!("member expel {target} {} --yes", chosen["id"]))?;
        let left = members.len() - 1;
        self.wait_until("a job without the expelled member", |site| site.members(target).len() == left)?;
        if left > 0 {
            self.wait_for_rounds(&[target])?;
        }
        self.jobs[target].end_without(rank)?;
        self.wait_until(&format!("the end of job {target}"), |site| site.job(target).is_none())?;
        sleep(Duration::from_millis(LEASE_MS.into()) + REST);
        self.restart_job(target);
        Ok(())
    }

    fn drain(&mut self) -> Result<(), String> {
        self.obeyed("drain --yes")?;
        let stranger = self.jobs.len();
        let refused = Job::start(stranger, self.place(), None).refused()?;
        if !refused.contains("accepts no further jobs") {
            return Err(format!("a new job got {refused:?}, expected a refusal because of the drain"));
        }
        self.daemon.take().map(Daemon::stop);
        self.start_daemon();
        Ok(())
    }

    fn crash(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.process.kill(SOON);
        }
        self.start_daemon();
    }

    fn signal(&mut self, signal: Signal) {
        if let Some(daemon) = &mut self.daemon {
            daemon.process.signal(signal);
        }
    }

    fn fill_disk(&mut self) -> Result<(), String> {
        let dumps = self.daemon().inside(&self.disk().join("flight.jsonl"));
        let filler = self.daemon().inside(&self.disk().join("filler"));
        // The write fails once the disk is full.
        let filled = fs::write(&filler, vec![0; (2 * DISK_KIB as usize) << 10]);
        if filled.is_ok() {
            return Err(format!("{} held more than the size of its file system", filler.display()));
        }
        self.signal(Signal::USR1);
        sleep(MOMENT);
        fs::remove_file(&filler).map_err(|error| format!("{}: {error}", filler.display()))?;
        let len = |path: &Path| path.metadata().map_or(0, |file| file.len());
        let before = len(&dumps);
        self.signal(Signal::USR1);
        self.wait_until("a dump after the disk has room again", |_| len(&dumps) > before)
    }

    fn fill_log(&mut self) {
        self.log.pause(true);
        self.log.writer().write_all(&vec![b'\n'; PREFILL_LEN_BYTES]).expect("the pipe must have room");
        let missing = self.jobs.len() + 1;
        for _ in 0..UNREAD_LINES {
            // Each refusal writes a line to the log.
            let _ = self.ctl(&format!("job halt {missing}"));
        }
        self.log.pause(false);
    }

    fn unplug(&mut self, rng: &mut ChaCha8Rng) {
        let port = Star::port(rng.random_range(0..self.star.workers.len() - 1));
        self.star.switch.ip(&format!("link set {port} down"));
        sleep(MOMENT);
        self.star.switch.ip(&format!("link set {port} up"));
    }

    fn job(&self, number: usize) -> Option<Value> {
        let jobs: Value = serde_json::from_str(&self.ctl("jobs --json").ok()?).ok()?;
        jobs.as_array()?.iter().find(|job| job["job"] == number).cloned()
    }

    fn members(&self, number: usize) -> Vec<Value> {
        self.job(number).and_then(|job| job["members"].as_array().cloned()).unwrap_or_default()
    }

    /// Waits until each job has completed rounds after the call.
    fn wait_for_progress(&self) -> Result<(), String> {
        let all: Vec<_> = (0..self.jobs.len()).collect();
        self.wait_for_rounds(&all)
    }

    fn wait_for_rounds(&self, numbers: &[usize]) -> Result<(), String> {
        numbers.iter().try_for_each(|number| {
            let round = |site: &Self| {
                let job = site.job(*number)?;
                (job["formed"] == true && job["halted"] == false).then(|| job["round"].as_u64())?
            };
            let mut first = None;
            self.wait_until(&format!("progress of job {number}"), |site| {
                let Some(now) = round(site) else { return false };
                now.abs_diff(*first.get_or_insert(now)) >= u64::from(ROUNDS_AFTER)
            })
        })
    }

    fn wait_until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) -> Result<(), String> {
        let begin = Instant::now();
        while !is_so(self) {
            if begin.elapsed() > SOON {
                return Err(format!("timed out after {SOON:?} while waiting for {what}"));
            }
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

/// Returns the place of jobs: all workers but the last, which is behind the port that is removed and added again.
pub(super) fn place<'a>(star: &'a Star, switch: SocketAddrV4, directory: &'a TempDir) -> Place<'a> {
    let (_, workers) = star.workers.split_last().expect("a star has workers");
    Place { workers, switch, standby: None, directory: directory.path() }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock must be after 1970")
}
