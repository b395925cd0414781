//! Network namespaces: emulated machines and cables, which are created for a test and removed when it ends.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;

use iswitch_lab::LabError;
use iswitch_lab::namespace::{DIRECTORY, remove};
use iswitch_lab::network::{self, bridge_commands};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::process::Process;
use crate::scratch;

pub use iswitch_lab::network::{SWITCH_ADDRESS, SWITCH_MAC, WORKER_INTERFACE};

/// A network namespace. Dropping it removes the namespace.
#[derive(Debug)]
pub struct Namespace(iswitch_lab::namespace::Namespace);

/// Returns the value, or panics with the error.
fn expect<T>(result: Result<T, LabError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

impl Namespace {
    /// Creates a namespace with its loopback interface up; `role` becomes part of its name.
    ///
    /// # Panics
    /// Panics if the namespace cannot be created; call [`crate::requirements::networks_and`] first.
    pub fn new(role: &str) -> Self {
        expect(Self::try_new(role))
    }

    pub(crate) fn try_new(role: &str) -> Result<Self, LabError> {
        static CLEANED: Once = Once::new();
        CLEANED.call_once(remove_leftovers);
        iswitch_lab::namespace::Namespace::new(scratch::name(role)).map(Self)
    }

    /// Returns the name of the namespace.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Creates a command that runs inside the namespace.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.0.command(program.as_ref());
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command inside the namespace and returns its output.
    ///
    /// # Panics
    /// Panics if the command fails.
    pub fn run<const N: usize>(&self, words: [&str; N]) -> String {
        expect(self.0.run(words))
    }

    /// Starts a command inside the namespace.
    ///
    /// # Panics
    /// Panics if the command cannot be started.
    pub fn spawn<const N: usize>(&self, words: [&str; N]) -> Process {
        Process::spawn(words[0], self.command(words[0]).args(&words[1..]))
    }

    /// Runs `ip` commands inside the namespace, one per line.
    ///
    /// # Panics
    /// Panics if a command fails.
    pub fn ip(&self, commands: &str) {
        expect(self.0.ip(commands));
    }

    /// Loads an nft script inside the namespace.
    ///
    /// # Panics
    /// Panics if nft refuses the script.
    pub fn nft(&self, script: &str) {
        expect(self.0.nft(script));
    }

    /// Calls a function in a thread inside the namespace.
    ///
    /// # Panics
    /// Panics if the function panics or the namespace no longer exists.
    pub fn enter<T: Send>(&self, function: impl FnOnce() -> T + Send) -> T {
        let file =
            File::open(Path::new(DIRECTORY).join(self.name())).expect("the file of the namespace must exist");
        let inside = move || {
            move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(LinkNameSpaceType::Network))
                .expect("the owner of a namespace must be able to enter it");
            function()
        };
        std::thread::scope(|scope| scope.spawn(inside).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Removes the namespaces of earlier test processes that were killed, including the processes inside them.
fn remove_leftovers() {
    let Ok(entries) = std::fs::read_dir(DIRECTORY) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if scratch::is_leftover(&name) {
            end_processes(&name);
            remove(&name);
        }
    }
}

/// Kills the processes inside an orphaned namespace.
fn end_processes(name: &str) {
    let Ok(output) = Command::new("ip").args(["netns", "pids", name]).output() else { return };
    let ids = String::from_utf8_lossy(&output.stdout);
    for id in ids.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)) {
        let _ = kill_process(id, Signal::KILL);
    }
}

/// Options of a [`Star`].
#[derive(Clone, Copy, Debug)]
pub struct StarOptions {
    /// Number of workers.
    pub workers: usize,
    /// MTU of all interfaces.
    pub mtu_bytes: u32,
}

impl Default for StarOptions {
    fn default() -> Self {
        Self { workers: 4, mtu_bytes: 1500 }
    }
}

/// Workers, each connected by a cable to a port of a switch's bridge.
///
/// Worker i (from 0) has the interface [`WORKER_INTERFACE`] and is plugged into the bridge port `s<i + 1>`.
#[derive(Debug)]
pub struct Star {
    /// The switch.
    pub switch: Namespace,
    /// The workers.
    pub workers: Vec<Namespace>,
    /// Options with which the star was created.
    pub options: StarOptions,
}

impl Star {
    /// Creates the namespaces, the cables and the bridge, and waits until they carry frames.
    ///
    /// # Panics
    /// Panics if a step fails; call [`crate::requirements::networks_and`] first.
    pub fn new(options: StarOptions) -> Self {
        let switch = Namespace::new("sw");
        let mtu = options.mtu_bytes;
        switch.ip(&bridge_commands(SWITCH_ADDRESS, SWITCH_MAC));
        let workers = (1..=options.workers).map(|number| Namespace::new(&format!("w{number}"))).collect();
        let star = Self { switch, workers, options };
        (0..options.workers).for_each(|worker| star.cable(worker).lay());
        star.switch.ip(&format!("link set br0 mtu {mtu}\n"));
        for worker in 0..options.workers {
            star.cable(worker).configure();
            star.cable(worker).await_frames();
        }
        star
    }

    /// Returns the cable of a worker.
    pub fn cable(&self, worker: usize) -> Cable<'_> {
        Cable {
            switch: &self.switch,
            port: Self::port(worker),
            end: &self.workers[worker],
            interface: WORKER_INTERFACE,
            address: Self::worker_address(worker),
            switch_address: SWITCH_ADDRESS,
            mtu_bytes: self.options.mtu_bytes,
        }
    }

    /// Returns the number of nft tables in the switch's namespace; a daemon has one for each of its ports.
    ///
    /// # Panics
    /// Panics if nft fails.
    pub fn tables(&self) -> usize {
        self.switch.run(["nft", "list", "tables"]).lines().count()
    }

    /// Replaces a worker's cable: both interfaces are new but keep their names.
    ///
    /// # Panics
    /// Panics if a step fails.
    pub fn replug(&self, worker: usize, options: StarOptions) {
        self.switch.ip(&format!("link del {}\n", Self::port(worker)));
        let cable = Cable { mtu_bytes: options.mtu_bytes, ..self.cable(worker) };
        cable.lay();
        cable.configure();
    }

    /// Returns the names of all workers' bridge ports.
    pub fn ports(&self) -> Vec<String> {
        (0..self.workers.len()).map(Self::port).collect()
    }

    /// Returns the name of a worker's bridge port.
    pub fn port(worker: usize) -> String {
        network::port(worker)
    }

    /// Returns the address of a worker.
    pub fn worker_address(worker: usize) -> Ipv4Addr {
        network::worker_address(worker)
    }
}

/// A cable between an interface of one namespace and a port of the bridge `br0` in another.
#[derive(Clone, Debug)]
pub struct Cable<'a> {
    /// Namespace of the bridge.
    pub switch: &'a Namespace,
    /// The bridge port.
    pub port: String,
    /// Namespace at the other end of the cable.
    pub end: &'a Namespace,
    /// Interface at that end.
    pub interface: &'static str,
    /// Address of the interface at that end.
    pub address: Ipv4Addr,
    /// Address of the bridge.
    pub switch_address: Ipv4Addr,
    /// MTU of both ends.
    pub mtu_bytes: u32,
}

impl Cable<'_> {
    /// Creates both ends.
    ///
    /// # Panics
    /// Panics if an interface with one of these names exists already.
    pub fn lay(&self) {
        self.switch.ip(&self.commands().lay_commands(self.end.name()));
    }

    /// Assigns the address to the end of the cable that is away from the bridge, and brings the interface at that end
    /// up.
    ///
    /// # Panics
    /// Panics if the interface has the address already.
    pub fn configure(&self) {
        self.end.ip(&self.commands().configure_commands());
    }

    fn commands(&self) -> network::Cable<'_> {
        let Self { interface, address, mtu_bytes, .. } = *self;
        network::Cable { port: self.port.clone(), interface, address, mtu_bytes }
    }

    /// Waits until the cable carries frames in both directions.
    ///
    /// # Panics
    /// Panics if the cable does not carry frames in time.
    pub fn await_frames(&self) {
        self.end.run(["ping", "-q", "-c", "1", "-w", "5", &self.switch_address.to_string()]);
    }
}
