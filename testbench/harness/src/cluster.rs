//! A daemon and its workers as separate processes.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use iswitch_protocol::limits::DEFAULT_PORT;
use serde_json::Value;
use tempfile::TempDir;

use crate::binaries;
use crate::netns::{Namespace, SWITCH_ADDRESS, Star};
use crate::process::{Finished, Process, Signal, command, run};
use crate::scratch;

/// Time limit for operations that normally complete within a moment, with a margin for a busy machine.
pub const SOON: Duration = Duration::from_secs(20);
/// Time without a further result after which daemons count as settled.
const SETTLED: Duration = Duration::from_millis(100);

/// Kind of port on which a daemon receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// Raw packet sockets on the ports of the bridge.
    Raw,
    /// A UDP socket at the bridge's address.
    Udp,
    /// AF_XDP sockets in driver mode on the ports of the bridge.
    Xdp,
    /// AF_XDP sockets in generic mode on the ports of the bridge, as for a driver without XDP support. Workers must not
    /// send super-frames.
    XdpGeneric,
}

impl PortKind {
    /// The kinds of port that need no special kernel support.
    pub const ALL: [Self; 2] = [Self::Raw, Self::Udp];
}

/// A running iswitchd.
#[derive(Debug)]
pub struct Daemon {
    /// The process.
    pub process: Process,
    address: SocketAddrV4,
    /// Directory of the control socket.
    directory: TempDir,
}

impl Daemon {
    /// Starts a daemon on all bridge ports of a star.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn on_ports(star: &Star, arguments: &[&str]) -> Self {
        Self::in_star(star, PortKind::Raw, arguments)
    }

    /// Starts a daemon on the switch of a star.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn in_star(star: &Star, kind: PortKind, arguments: &[&str]) -> Self {
        Self::serving(&star.switch, SWITCH_ADDRESS, kind, &star.ports(), arguments)
    }

    /// Starts a daemon on the switch of a star and sends its log to `stderr`.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn in_star_logging_to(
        star: &Star,
        kind: PortKind,
        stderr: impl Into<Stdio>,
        arguments: &[&str],
    ) -> Self {
        let (mut command, address) = daemon_command(&star.switch, SWITCH_ADDRESS, kind, &star.ports());
        Self::start(command.args(arguments), Some(address), Some(stderr.into()))
    }

    /// Starts a daemon on the switch of a star with the ports of its configuration file.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn configured(star: &Star, config: &Path, arguments: &[&str]) -> Self {
        let mut command = star.switch.command(binaries::iswitchd());
        command.arg("--config").arg(config).args(arguments);
        Self::start(&mut command, Some(SocketAddrV4::new(SWITCH_ADDRESS, DEFAULT_PORT)), None)
    }

    /// Starts a daemon as [`Self::configured`] does, but with a file system of its own, of the given size, at `disk`.
    /// Other processes reach the file system at [`Self::inside`]. The log goes to `stderr`.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn configured_with_disk(
        star: &Star,
        config: &Path,
        (disk, size_kib): (&Path, u32),
        stderr: impl Into<Stdio>,
        arguments: &[&str],
    ) -> Self {
        // `ip netns exec` has given the shell a mount namespace of its own, which ends with the daemon.
        let mount = format!(
            "mount -t tmpfs -o mode=1777,size={size_kib}k none {} && exec \"$0\" \"$@\"",
            disk.display()
        );
        let mut command = star.switch.command("sh");
        command.args(["-c", &mount]).arg(binaries::iswitchd()).arg("--config").arg(config).args(arguments);
        let address = SocketAddrV4::new(SWITCH_ADDRESS, DEFAULT_PORT);
        Self::start(&mut command, Some(address), Some(stderr.into()))
    }

    /// Returns the path at which other processes reach a file of the daemon's mount namespace.
    pub fn inside(&self, path: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.process.id()));
        root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Starts a daemon in a namespace, either on the given interfaces or at the given address. In both cases, workers
    /// reach the daemon at that address.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn serving(
        namespace: &Namespace,
        address: Ipv4Addr,
        kind: PortKind,
        interfaces: &[String],
        arguments: &[&str],
    ) -> Self {
        let (mut command, address) = daemon_command(namespace, address, kind, interfaces);
        Self::start(command.args(arguments), Some(address), None)
    }

    /// Starts a daemon on a UDP port of a namespace.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn on_udp(namespace: &Namespace, address: SocketAddrV4, arguments: &[&str]) -> Self {
        let mut command = namespace.command(binaries::iswitchd());
        command.arg("--udp").arg(address.to_string());
        Self::start(command.args(arguments), Some(address), None)
    }

    /// Starts a daemon on a free UDP port of the loopback interface.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn on_loopback(arguments: &[&str]) -> Self {
        let mut command = command(binaries::iswitchd());
        Self::start(command.args(["--udp", "127.0.0.1:0"]).args(arguments), None, None)
    }

    /// Starts a daemon on a free UDP port of the loopback interface and sends its log to `stderr`.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn logging_to(stderr: impl Into<Stdio>, arguments: &[&str]) -> Self {
        let mut command = command(binaries::iswitchd());
        command.args(["--udp", "127.0.0.1:0"]).args(arguments);
        Self::start(&mut command, None, Some(stderr.into()))
    }

    fn start(
        command: &mut std::process::Command,
        address: Option<SocketAddrV4>,
        stderr: Option<Stdio>,
    ) -> Self {
        let directory = scratch::directory();
        command.arg("--control-socket").arg(directory.path().join("control"));
        let mut process = match stderr {
            None => Process::spawn("iswitchd", command),
            Some(stderr) => Process::spawn_logging_to("iswitchd", command, stderr),
        };
        process.wait_for(" ready: ", SOON);
        let address = address.unwrap_or_else(|| announced_address(&process.stdout()));
        Self { process, address, directory }
    }

    /// Returns the address at which workers reach the daemon.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Returns the path of the daemon's control socket.
    pub fn control_socket(&self) -> PathBuf {
        self.directory.path().join("control")
    }

    /// Runs `iswitchctl` with the given arguments, separated by spaces.
    ///
    /// # Panics
    /// Panics if iswitchctl cannot be started.
    pub fn ctl(&self, arguments: &str) -> Output {
        let mut command = command(binaries::iswitchctl());
        command.args(arguments.split(' ')).arg("--socket").arg(self.control_socket());
        command.output().expect("iswitchctl must start")
    }

    /// Returns the output of `iswitchctl counters`.
    ///
    /// # Panics
    /// Panics if iswitchctl fails.
    pub fn counters(&self) -> Value {
        self.ask("counters")
    }

    /// Returns the output of `iswitchctl status`.
    ///
    /// # Panics
    /// Panics if iswitchctl fails.
    pub fn status(&self) -> Value {
        self.ask("status")
    }

    /// Returns the output of `iswitchctl jobs`.
    ///
    /// # Panics
    /// Panics if iswitchctl fails.
    pub fn jobs(&self) -> Value {
        self.ask("jobs")
    }

    /// Returns the human-readable output of `iswitchctl status`.
    ///
    /// # Panics
    /// Panics if iswitchctl fails.
    pub fn status_text(&self) -> String {
        run(command(binaries::iswitchctl()).args(["status", "--socket"]).arg(self.control_socket()))
    }

    /// Returns whether the daemon's only job has lost its parent, as reported by `iswitchctl jobs`.
    ///
    /// # Panics
    /// Panics if there is no job with a parent.
    pub fn has_lost_parent(&self) -> bool {
        let jobs = self.jobs();
        jobs[0]["parent_lost"].as_bool().unwrap_or_else(|| panic!("expected a job with a parent, got {jobs}"))
    }

    /// Waits until the daemon's only job has lost its parent (if `is_lost` is true) or reaches it again (if false).
    ///
    /// # Panics
    /// Panics if the job does not reach the requested state in time.
    pub fn wait_for_parent(&self, is_lost: bool) {
        wait_for("parent_lost", || self.has_lost_parent(), |lost| *lost == is_lost);
    }

    fn ask(&self, request: &str) -> Value {
        let mut command = command(binaries::iswitchctl());
        command.args([request, "--json", "--socket"]).arg(self.control_socket());
        serde_json::from_str(&run(&mut command)).expect("iswitchctl must print JSON")
    }

    /// Returns the number of datagrams dropped for the given reason.
    ///
    /// # Panics
    /// Panics if the daemon has no counter for this reason.
    pub fn drops(&self, reason: &str) -> u64 {
        let counters = self.counters();
        counters["drops"][reason]
            .as_u64()
            .unwrap_or_else(|| panic!("expected a counter {reason} in {counters}"))
    }

    /// Returns one of the daemon's traffic counters.
    ///
    /// # Panics
    /// Panics if the daemon has no such counter.
    pub fn traffic(&self, name: &str) -> u64 {
        let counters = self.counters();
        counters["traffic"][name]
            .as_u64()
            .unwrap_or_else(|| panic!("expected a counter {name} in {counters}"))
    }

    /// Returns the number of segments that the daemon has summed so far.
    ///
    /// # Panics
    /// Panics if iswitchctl fails.
    pub fn results(&self) -> u64 {
        self.traffic("results")
    }

    /// Waits until the daemon has summed at least `segments` segments.
    ///
    /// # Panics
    /// Panics if the daemon does not sum that many segments in time.
    pub fn wait_until_results(&self, segments: u64) {
        wait_for("results", || self.results(), |results| *results >= segments);
    }

    /// Waits until the daemon has summed more segments than at the time of the call, and returns the new total.
    ///
    /// # Panics
    /// Panics if the daemon does not sum any more segments in time.
    pub fn wait_for_results(&self) -> u64 {
        self.wait_for_more("results", self.results())
    }

    /// Waits until a traffic counter exceeds the value `before`, and returns the counter.
    ///
    /// # Panics
    /// Panics if the counter does not exceed `before` in time.
    pub fn wait_for_more(&self, name: &str, before: u64) -> u64 {
        wait_for(name, || self.traffic(name), |count| *count > before)
    }

    /// Waits until the daemon's only job has exactly `members` members.
    ///
    /// # Panics
    /// Panics if the number of members is not `members` in time.
    pub fn wait_for_members(&self, members: usize) {
        let present = || self.jobs()[0]["members"].as_array().map_or(0, Vec::len);
        wait_for("members", present, |present| *present == members);
    }

    /// Waits until the daemon's log contains a text, and returns the log. A separate thread writes the log, so a log
    /// line may appear after the daemon has announced that it is ready.
    ///
    /// # Panics
    /// Panics if the text does not appear in time.
    pub fn wait_for_log(&self, text: &str) -> String {
        let log = wait_for(text, || Log(self.process.stderr()), |log| log.0.contains(text));
        log.0
    }

    /// Stops the daemon with SIGTERM, as a service manager does, and checks that its control socket is gone.
    ///
    /// # Panics
    /// Panics if the daemon fails or does not stop in time.
    pub fn stop(self) -> Finished {
        let finished = self.process.stop(Signal::TERM, SOON);
        assert!(finished.status.success(), "iswitchd: {}\n{}", finished.status, finished.stderr);
        assert!(!self.directory.path().join("control").exists(), "iswitchd must remove its control socket");
        finished
    }
}

/// Generates a key with iswitchctl, and returns the path of the key file.
///
/// # Panics
/// Panics if iswitchctl fails.
pub fn keygen(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    run(command(binaries::iswitchctl()).arg("keygen").arg(&path));
    path
}

/// Returns the command that starts a daemon in a namespace, followed by the address at which workers will reach that
/// daemon.
fn daemon_command(
    namespace: &Namespace,
    address: Ipv4Addr,
    kind: PortKind,
    interfaces: &[String],
) -> (std::process::Command, SocketAddrV4) {
    let address = SocketAddrV4::new(address, DEFAULT_PORT);
    let mut command = namespace.command(binaries::iswitchd());
    serve(&mut command, address, kind, interfaces);
    (command, address)
}

/// Adds the arguments with which a daemon serves the interfaces or the address.
fn serve(command: &mut std::process::Command, address: SocketAddrV4, kind: PortKind, interfaces: &[String]) {
    let (before, after) = match kind {
        PortKind::Raw => ("", ""),
        PortKind::Xdp => ("xdp:", ",driver"),
        PortKind::XdpGeneric => ("xdp:", ",generic"),
        PortKind::Udp => {
            command.arg("--udp").arg(address.to_string());
            return;
        }
    };
    for interface in interfaces {
        command.arg("--port").arg(format!("{before}{interface}{after}"));
    }
}

/// A log whose `Debug` output keeps its line breaks, so that panic messages are readable.
struct Log(String);

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\n{}", self.0)
    }
}

/// Waits until none of the daemons sums or delivers any more segments, and returns the number of results of each. Call
/// it after a process that sends packets to the daemons was stopped: on a busy machine, a daemon may have to wait for a
/// CPU before it can read these packets.
///
/// # Panics
/// Panics if the numbers still change after [`SOON`].
pub fn settled_results<'a>(daemons: impl IntoIterator<Item = &'a Daemon>) -> Vec<u64> {
    let daemons: Vec<_> = daemons.into_iter().collect();
    let read = || -> Vec<u64> { daemons.iter().map(|daemon| daemon.results()).collect() };
    let begin = Instant::now();
    let mut results = read();
    loop {
        sleep(SETTLED);
        let next = read();
        if next == results {
            return results;
        }
        assert!(begin.elapsed() < SOON, "expected no further results: {results:?}, {next:?}");
        results = next;
    }
}

/// Calls `ask` repeatedly until `is_good` accepts the answer, and returns that answer.
///
/// # Panics
/// Panics if no answer is accepted in time.
pub fn wait_for<T: std::fmt::Debug>(what: &str, ask: impl Fn() -> T, is_good: impl Fn(&T) -> bool) -> T {
    let begin = Instant::now();
    loop {
        let answer = ask();
        if is_good(&answer) {
            return answer;
        }
        assert!(begin.elapsed() < SOON, "timed out waiting for {what}; the last answer is {answer:?}");
    }
}

/// Parses the address from a line such as `iswitchd 0.1.0 ready: udp 127.0.0.1:40001`.
fn announced_address(line: &str) -> SocketAddrV4 {
    let address = line.split_whitespace().find_map(|word| word.trim_end_matches(',').parse().ok());
    address.unwrap_or_else(|| panic!("expected an address in {line:?}"))
}

/// The workers of a job, each an `all_reduce` process that checks the sums.
#[derive(Debug, Default)]
pub struct Group(Vec<Process>);

impl Group {
    /// Starts a worker in each worker namespace of a star.
    ///
    /// # Panics
    /// Panics if a worker cannot be started.
    pub fn in_star(star: &Star, switch: SocketAddrV4, arguments: &str) -> Self {
        Self::of(&star.workers, switch, arguments)
    }

    /// Starts a worker in each of the given namespaces.
    ///
    /// # Panics
    /// Panics if a worker cannot be started.
    pub fn of<'a>(
        workers: impl IntoIterator<Item = &'a Namespace>,
        switch: SocketAddrV4,
        arguments: &str,
    ) -> Self {
        let commands = workers.into_iter().map(|worker| worker.command(binaries::all_reduce()));
        let commands: Vec<_> = commands.collect();
        let count = commands.len();
        Self::start(commands.into_iter(), count, switch, arguments)
    }

    /// Starts all workers in the namespace of the test.
    ///
    /// # Panics
    /// Panics if a worker cannot be started.
    pub fn here(workers: usize, switch: SocketAddrV4, arguments: &str) -> Self {
        let commands = (0..workers).map(|_| command(binaries::all_reduce()));
        Self::start(commands, workers, switch, arguments)
    }

    /// Starts only the workers with the given ranks, in the namespace of the test. `workers` is the number of workers
    /// of the whole job.
    ///
    /// # Panics
    /// Panics if a worker cannot be started.
    pub fn part(workers: usize, ranks: Range<usize>, switch: SocketAddrV4, arguments: &str) -> Self {
        let commands = ranks.map(|rank| (rank, command(binaries::all_reduce())));
        Self::start_ranks(commands, workers, switch, arguments)
    }

    fn start(
        commands: impl Iterator<Item = std::process::Command>,
        workers: usize,
        switch: SocketAddrV4,
        arguments: &str,
    ) -> Self {
        Self::start_ranks(commands.enumerate(), workers, switch, arguments)
    }

    fn start_ranks(
        commands: impl Iterator<Item = (usize, std::process::Command)>,
        workers: usize,
        switch: SocketAddrV4,
        arguments: &str,
    ) -> Self {
        let spawn = |(rank, mut command): (usize, std::process::Command)| {
            let place = format!("--json --switch {switch} --workers {workers} --rank {rank}");
            command.args(place.split_whitespace()).args(arguments.split_whitespace());
            Process::spawn(&format!("all_reduce of rank {rank}"), &mut command)
        };
        Self(commands.map(spawn).collect())
    }

    /// Returns whether all workers are still running.
    pub fn is_running(&mut self) -> bool {
        self.0.iter_mut().all(Process::is_running)
    }

    /// Returns whether any worker is still running.
    pub fn is_any_running(&mut self) -> bool {
        // Every process is queried, so that each one that has ended is reaped.
        self.0.iter_mut().filter_map(|process| process.is_running().then_some(())).count() > 0
    }

    /// Sends a signal to one worker.
    ///
    /// # Panics
    /// Panics if the signal cannot be sent.
    pub fn signal(&mut self, rank: usize, signal: Signal) {
        self.0[rank].signal(signal);
    }

    /// Makes all workers stop after the same round.
    ///
    /// # Panics
    /// Panics if a signal cannot be sent.
    pub fn end(&mut self) {
        self.0.iter_mut().for_each(|process| process.signal(Signal::TERM));
    }

    /// Kills one worker and removes it from the group; workers of higher rank move down by one index.
    ///
    /// # Panics
    /// Panics if the worker cannot be killed.
    pub fn kill(&mut self, rank: usize) {
        self.0.remove(rank).kill(SOON);
    }

    /// Waits until all workers have checked all their sums, and returns their results by rank.
    ///
    /// # Panics
    /// Panics if a sum is wrong or a round does not complete.
    pub fn results(self, timeout: Duration) -> Vec<Value> {
        let results = self.0.into_iter().map(|process| {
            let line = process.wait_success(timeout);
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
        });
        results.collect()
    }

    /// Waits until all workers have ended, successfully or not.
    ///
    /// # Panics
    /// Panics if a worker does not end in time.
    pub fn finish(self, timeout: Duration) -> Vec<Finished> {
        self.0.into_iter().map(|process| process.wait(timeout)).collect()
    }
}

/// Returns the sum of one field over all results.
///
/// # Panics
/// Panics if the field is not a number.
pub fn total(results: &[Value], field: &str) -> u64 {
    results.iter().map(|result| result[field].as_u64().expect("the field must be a number")).sum()
}

/// Formats the round times and the goodput of rank 0 for a report.
pub fn times(results: &[Value]) -> String {
    let of = |field| results[0][field].as_f64().unwrap_or(f64::NAN);
    format!("p50 {:.0} us, p99 {:.0} us, {:.0} Mbit/s", of("us_p50"), of("us_p99"), of("goodput_mbit_s"))
}

/// Formats the effects of a fault for a report: the longest round, and the numbers of incomplete and missed rounds and
/// of rejoins.
pub fn costs(results: &[Value]) -> String {
    let longest = results.iter().filter_map(|result| result["us_max"].as_f64()).fold(0.0, f64::max);
    let of = |field| total(results, field);
    format!(
        "longest round {:.0} ms; {} rounds: {} without all workers, {} with a worker in only some segments, \
         {} missed; {} rejoins",
        longest / 1e3,
        of("rounds"),
        of("partial_rounds"),
        of("mixed_rounds"),
        of("missed_rounds"),
        of("rejoins")
    )
}
