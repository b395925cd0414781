//! Contenders of `testbench peers`, and the code that runs each of them.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use iswitch::aggregate::Style;
use iswitch_protocol::{ElementType, ElementTypes};
use serde_json::Value;

use super::network::Network;
use super::{Load, Run, Tools};
use iswitch_harness::binaries;
use iswitch_harness::cluster::{PortKind, SOON};
use iswitch_harness::netns::WORKER_INTERFACE;
use iswitch_harness::process::Process;
use iswitch_harness::requirements::has_xdp;

const TIMEOUT: Duration = Duration::from_secs(300);
const SERVER_PORT: u16 = 7800;
const RING_PORT: u16 = 7801;
const GLOO_PORT: u16 = 7802;
/// Subnet of all workers.
const SUBNET: &str = "10.9.0.0/16";

/// System that sums vectors over workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// iswitchd on ports of the given kind, with the given element types.
    Switch(PortKind, Delivery, ElementTypes),
    /// Open MPI with elements of this type. `None` leaves the choice of the algorithm to Open MPI; `Some` selects an
    /// algorithm of its component `tuned`.
    Mpi(Option<u8>, ElementType),
    /// Gloo, as used by PyTorch, with elements of this type.
    Gloo(ElementType),
    /// Parameter server of this project.
    ParameterServer(Style),
    /// Ring of this project.
    Ring(Style),
}

/// How iswitchd delivers results to the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// One unicast packet to each worker.
    Unicast,
    /// One multicast packet for all workers of a job, which the bridge copies.
    Group,
}

/// Algorithms of Open MPI's `coll_tuned_allreduce_algorithm`.
const MPI_ALGORITHMS: [(u8, &str); 6] = [
    (1, "linear"),
    (2, "non-overlapping"),
    (3, "recursive doubling"),
    (4, "ring"),
    (5, "segmented ring"),
    (6, "Rabenseifner"),
];

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = |style| match style {
            Style::Paper => "as in the paper",
            Style::Pipelined => "pipelined",
        };
        match self {
            Self::Switch(kind, delivery, _) => {
                f.write_str(match kind {
                    PortKind::Raw => "iswitchd, raw ports",
                    PortKind::Udp => "iswitchd, UDP port",
                    PortKind::Xdp => "iswitchd, AF_XDP ports",
                    PortKind::XdpGeneric => "iswitchd, AF_XDP ports, generic",
                })?;
                f.write_str(if *delivery == Delivery::Group { ", group delivery" } else { "" })
            }
            Self::Mpi(None, _) => f.write_str("Open MPI, its choice"),
            Self::Mpi(Some(algorithm), _) => {
                let name = MPI_ALGORITHMS
                    .iter()
                    .find(|(number, _)| number == algorithm)
                    .map_or("?", |(_, name)| name);
                write!(f, "Open MPI, {name}")
            }
            Self::Gloo(_) => f.write_str("Gloo"),
            Self::ParameterServer(how) => write!(f, "parameter server, {}", style(*how)),
            Self::Ring(how) => write!(f, "ring, {}", style(*how)),
        }?;
        // 32-bit elements are the default and are not named.
        match self {
            Self::Switch(_, _, elements) if *elements != ElementTypes::F32 => write!(f, ", {elements}"),
            Self::Mpi(_, element) | Self::Gloo(element) if *element != ElementType::F32 => {
                write!(f, ", {element}")
            }
            _ => Ok(()),
        }
    }
}

impl Contender {
    /// Returns the switch with 32-bit elements.
    pub const fn switch(kind: PortKind) -> Self {
        Self::Switch(kind, Delivery::Unicast, ElementTypes::F32)
    }

    /// Returns all contenders that can run on this machine with the given element types, the switch first. The
    /// parameter server and the ring of this project support only 32-bit elements.
    pub fn all(tools: &Tools, wire: &[ElementTypes]) -> Vec<Self> {
        let styles = [Style::Paper, Style::Pipelined];
        let kinds: Vec<_> = PortKind::ALL.into_iter().chain(has_xdp().then_some(PortKind::Xdp)).collect();
        let setups = kinds.into_iter().map(|kind| (kind, Delivery::Unicast));
        // Group delivery needs the bridge, which only raw ports have.
        let setups: Vec<_> = setups.chain([(PortKind::Raw, Delivery::Group)]).collect();
        let switches = wire
            .iter()
            .flat_map(|wire| setups.iter().map(|(kind, delivery)| Self::Switch(*kind, *delivery, *wire)));
        let own = styles.map(Self::ParameterServer).into_iter().chain(styles.map(Self::Ring));
        // The peers use the same type in both directions.
        let uniform = |wire: &&ElementTypes| **wire == ElementTypes::uniform(wire.contributions());
        let elements = || wire.iter().filter(uniform).map(|wire| wire.contributions());
        let algorithms = || [None].into_iter().chain(MPI_ALGORITHMS.map(|(number, _)| Some(number)));
        let mpi = elements().filter(|_| tools.mpi.is_ok());
        let mpi = mpi.flat_map(|element| algorithms().map(move |algorithm| Self::Mpi(algorithm, element)));
        let gloo = elements().filter(|_| tools.python.is_ok()).map(Self::Gloo);
        switches.chain(own).chain(mpi).chain(gloo).collect()
    }

    /// Returns the length of the longer of the two element types, divided by 32 bits.
    pub fn wire_share(self) -> f64 {
        let len_bytes = match self {
            Self::Switch(_, _, elements) => elements.longest_len_bytes(),
            Self::Mpi(_, element) | Self::Gloo(element) => element.len_bytes(),
            Self::ParameterServer(_) | Self::Ring(_) => ElementType::F32.len_bytes(),
        };
        len_bytes as f64 / ElementType::F32.len_bytes() as f64
    }

    /// Returns whether the contender is a program that does not belong to this project.
    pub fn is_peer(self) -> bool {
        matches!(self, Self::Mpi(..) | Self::Gloo(_))
    }

    /// Sums as many vectors as the load specifies, and returns the measurements.
    ///
    /// # Panics
    /// Panics if a sum is wrong or does not arrive.
    pub fn run(self, network: &Network, tools: &Tools, load: Load) -> Run {
        match self {
            Self::Switch(kind, delivery, elements) => run_switch(network, (kind, delivery), elements, load),
            Self::ParameterServer(style) => run_parameter_server(network, style, load),
            Self::Ring(style) => run_ring(network, style, load),
            Self::Mpi(algorithm, element) => run_mpi(network, tools, (algorithm, element), load),
            Self::Gloo(element) => run_gloo(network, tools, element, load),
        }
    }
}

fn run_switch(
    network: &Network,
    (kind, delivery): (PortKind, Delivery),
    elements: ElementTypes,
    load: Load,
) -> Run {
    let options: &[&str] = match delivery {
        Delivery::Unicast => &["--group-delivery", "off"],
        Delivery::Group => &["--group-delivery", "auto"],
    };
    let daemons = network.start_switches(kind, options);
    let cpu = || daemons.iter().map(|daemon| cpu_seconds(daemon.process.id())).sum::<f64>();
    let before = cpu();
    let workers = own_workers(network, load, |rank| {
        format!("--through switch --at {} --wire {elements}", network.switch_of(rank))
    });
    let cpu = cpu() - before;
    let peak = daemons.iter().map(|daemon| daemon.process.peak_rss_kib()).max().unwrap_or_default();
    // Child switches are stopped first, because a switch that loses its parent logs a warning.
    daemons.into_iter().rev().for_each(|daemon| drop(daemon.stop()));
    let run = Run::of(load, &workers);
    Run { switch_cpu_s_per_gb: cpu / load.gigabytes(), switch_peak_kib: peak, ..run }
}

fn style_word(style: Style) -> &'static str {
    match style {
        Style::Paper => "paper",
        Style::Pipelined => "pipelined",
    }
}

fn run_parameter_server(network: &Network, style: Style, load: Load) -> Run {
    let arguments = format!(
        "--through parameter-server --at {}:{SERVER_PORT} --style {}",
        network.server_address(),
        style_word(style)
    );
    let mut command = network.server().command(binaries::reduce_times());
    command.args(own_arguments(network, load, &arguments)).arg("--serve");
    let mut server = Process::spawn("parameter server", &mut command);
    server.wait_for("ready: ", SOON);
    let workers = own_workers(network, load, |_| arguments.clone());
    let served = server.wait_success(TIMEOUT);
    let served: Value = serde_json::from_str(served.lines().last().unwrap_or_default()).expect("a JSON line");
    let run = Run::of(load, &workers);
    Run {
        switch_cpu_s_per_gb: number(&served, "cpu_seconds") / load.gigabytes(),
        switch_peak_kib: number(&served, "peak_rss_kib") as u64,
        ..run
    }
}

fn run_ring(network: &Network, style: Style, load: Load) -> Run {
    let member = |rank| format!("{}:{RING_PORT}", network.worker_address(rank));
    let members: Vec<_> = (0..network.worker_count()).map(member).collect();
    let arguments = format!("--through ring --members {} --style {}", members.join(","), style_word(style));
    Run::of(load, &own_workers(network, load, |_| arguments.clone()))
}

fn own_arguments(network: &Network, load: Load, arguments: &str) -> Vec<String> {
    let Load { floats, rounds, warm_up, compute } = load;
    let workers = network.worker_count();
    let counts = format!("--workers {workers} --floats {floats} --rounds {rounds} --warm-up {warm_up}");
    let all = format!("{arguments} {counts} --compute-us {}", compute.as_micros());
    all.split_whitespace().map(str::to_owned).collect()
}

/// Runs `reduce_times` in each worker namespace.
fn own_workers(network: &Network, load: Load, arguments: impl Fn(usize) -> String) -> Vec<Value> {
    let spawn = |rank: usize| {
        let mut command = network.workers()[rank].command(binaries::reduce_times());
        command.args(own_arguments(network, load, &arguments(rank))).args(["--rank", &rank.to_string()]);
        Process::spawn(&format!("worker {rank}"), &mut command)
    };
    let processes: Vec<_> = (0..network.worker_count()).map(spawn).collect();
    results(processes)
}

fn results(processes: Vec<Process>) -> Vec<Value> {
    let outputs = processes.into_iter().map(|process| process.wait_success(TIMEOUT));
    outputs.flat_map(|output| json_lines(&output)).collect()
}

fn json_lines(output: &str) -> Vec<Value> {
    output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn run_mpi(
    network: &Network,
    tools: &Tools,
    (algorithm, element): (Option<u8>, ElementType),
    load: Load,
) -> Run {
    let program = tools.mpi.as_ref().expect("Open MPI must be found before it is a contender");
    let machines: Vec<_> = network
        .workers()
        .iter()
        .enumerate()
        .map(|(rank, namespace)| (network.worker_address(rank).to_string(), namespace.name().to_owned()))
        .collect();
    let hosts: Vec<_> = machines.iter().map(|(address, _)| format!("{address}:1")).collect();
    let mut command = network.workers()[0].command(Path::new("mpirun"));
    command.args(["--allow-run-as-root", "-np", &machines.len().to_string(), "--host", &hosts.join(",")]);
    command.arg("--mca").arg("plm_rsh_agent").arg(tools.remote_shell(&machines));
    let choose = |command: &mut Command, name: &str, value: &str| {
        command.args(["--mca", name, value]);
    };
    // Open MPI must use only the network, and must not spin on a core that other processes need.
    for (name, value) in [
        ("pml", "ob1"),
        ("btl", "tcp,self"),
        ("btl_tcp_if_include", SUBNET),
        ("oob_tcp_if_include", SUBNET),
        ("mpi_yield_when_idle", "1"),
        // With the default value, helpers that start at the same time on one machine write to the same file, and crash.
        ("rtc_hwloc_vmhole", "none"),
    ] {
        choose(&mut command, name, value);
    }
    if let Some(algorithm) = algorithm {
        choose(&mut command, "coll_tuned_use_dynamic_rules", "1");
        choose(&mut command, "coll_tuned_allreduce_algorithm", &algorithm.to_string());
    }
    let Load { floats, rounds, warm_up, .. } = load;
    command
        .arg(program)
        .args([floats.to_string(), rounds.to_string(), warm_up.to_string()])
        .arg(element.name());
    Run::of(load, &results(vec![Process::spawn("mpirun", &mut command)]))
}

fn run_gloo(network: &Network, tools: &Tools, element: ElementType, load: Load) -> Run {
    let python = tools.python.as_ref().expect("PyTorch must be found before Gloo is a contender");
    let first = format!("{}:{GLOO_PORT}", network.worker_address(0));
    let Load { floats, rounds, warm_up, .. } = load;
    let spawn = |rank: usize| {
        let mut command = network.workers()[rank].command(python);
        command.env("GLOO_SOCKET_IFNAME", WORKER_INTERFACE).arg(tools.gloo_script());
        command.args([rank.to_string(), network.worker_count().to_string(), first.clone()]);
        command.args([floats.to_string(), rounds.to_string(), warm_up.to_string()]).arg(element.name());
        Process::spawn(&format!("Gloo, rank {rank}"), &mut command)
    };
    Run::of(load, &results((0..network.worker_count()).map(spawn).collect()))
}

impl Run {
    fn of(load: Load, workers: &[Value]) -> Self {
        let rank0 = workers.iter().find(|worker| worker["rank"] == 0).expect("rank 0 must report its times");
        let measured = load.bytes() * load.rounds as f64 / 1e9;
        let cpu: f64 = workers.iter().map(|worker| number(worker, "cpu_seconds")).sum();
        let peak = workers.iter().map(|worker| number(worker, "peak_rss_kib")).fold(0.0, f64::max);
        Self {
            us_p50: number(rank0, "us_p50"),
            us_p99: number(rank0, "us_p99"),
            iteration_us: rank0["iteration_us"].as_f64().unwrap_or_default(),
            compute_us: rank0["compute_us"].as_f64().unwrap_or_default(),
            worker_cpu_s_per_gb: cpu / workers.len() as f64 / measured,
            switch_cpu_s_per_gb: 0.0,
            worker_peak_kib: peak as u64,
            switch_peak_kib: 0,
        }
    }
}

fn number(result: &Value, field: &str) -> f64 {
    result[field]
        .as_f64()
        .unwrap_or_else(|| panic!("{field} is missing or not a number in the result {result}"))
}

/// Returns the CPU time of all threads of a process, in seconds.
fn cpu_seconds(id: u32) -> f64 {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{id}/task")) else { return 0.0 };
    let of_task = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    tasks.flatten().filter_map(of_task).sum::<f64>() * 1e-9
}
