//! Start-up, operation and shutdown of the daemon.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use iswitch_protocol::{Label, part};
use iswitch_socket::Options;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::config::{Config, Threads};
use crate::control_socket::{ControlListener, Controlled};
use crate::flight_file::{FlightDumps, FlightFile, FlightWriter};
use crate::log;
use crate::metrics::MetricsListener;
use crate::monitor::Monitor;
use crate::port::{PacketOptions, PacketPort, XdpModes, XdpOptions, XdpPort, remove_orphans};
use crate::reload::{Arguments, Reloader, Source};
use crate::sandbox::{self, Account};
use crate::{service_manager, stdin};
use iswitch_runtime::card::CardDriver;
use iswitch_runtime::embedded::{random_boot, random_secret};
use iswitch_runtime::port::{Port, UdpPort};
use iswitch_runtime::runtime::{Handle, Runtime};
use iswitch_runtime::snapshot::Snapshot;
use iswitch_runtime::threads::{self, OtherThreads};
use iswitch_switch::{PortId, StrangerLimits, Uplinks};

/// Runs the daemon until SIGTERM or SIGINT arrives, or until no job is left after a drain. If `stop_on_stdin_eof` is
/// set, the daemon also ends once standard input has ended and no job is left. On return, the ingress rules and the
/// control socket have been removed.
pub fn run(config: &Config) -> anyhow::Result<()> {
    // The handlers are installed before anything that must be removed on shutdown, so that a signal stays pending
    // instead of killing the process.
    let signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1]).context("cannot install the signal handlers")?;
    let account = if config.sandbox { Account::choose(config.user.as_deref())? } else { None };
    let mut opened = Opened::open(config)?;
    let mut monitor = if config.sandbox { Some(opened.entrust(config)?) } else { None };
    let outcome =
        source(monitor.as_mut()).and_then(|source| opened.serve(config, source, account.as_ref(), signals));
    // Dropping the monitor waits until the monitor process has finished, even after an error. By now, the daemon has
    // closed everything that the monitor removes.
    drop(monitor);
    log_summary(&outcome?);
    Ok(())
}

/// Returns the source from which a reload reads the configuration.
fn source(monitor: Option<&mut Monitor>) -> anyhow::Result<Source> {
    Ok(match monitor.and_then(Monitor::reload_helper) {
        Some(helper) => Source::Monitor(helper),
        None => Source::Files(Arguments::of_this_process()?),
    })
}

/// A port on a network interface.
enum InterfacePort {
    Raw(PacketPort),
    Xdp(XdpPort),
}

impl InterfacePort {
    fn name(&self) -> &str {
        match self {
            Self::Raw(port) => port.name(),
            Self::Xdp(port) => port.name(),
        }
    }

    fn boxed(self) -> Box<dyn Port> {
        match self {
            Self::Raw(port) => Box::new(port),
            Self::Xdp(port) => Box::new(port),
        }
    }
}

/// Ports of one thread.
struct ThreadPorts {
    udp: Vec<UdpPort>,
    interfaces: Vec<InterfacePort>,
    uplinks: Vec<UdpPort>,
}

/// All resources that need privileges to open.
struct Opened {
    /// Ports of each thread.
    threads: Vec<ThreadPorts>,
    control: Option<ControlListener>,
    metrics: Option<MetricsListener>,
    flight: FlightFile,
}

impl Opened {
    fn open(config: &Config) -> anyhow::Result<Self> {
        let threads = open_threads(config)?;
        let control = config.control_socket.as_deref().map(ControlListener::bind).transpose()?;
        let metrics = config.metrics.map(open_metrics).transpose()?;
        let flight = open_flight_file(config.flight_recorder.as_deref())?;
        Ok(Self { threads, control, metrics, flight })
    }

    /// Starts the monitor, which retains the privileges that the daemon drops.
    fn entrust(&mut self, config: &Config) -> anyhow::Result<Monitor> {
        let (mut rules, mut xdp) = (Vec::new(), Vec::new());
        for port in self.threads.iter_mut().flat_map(|ports| &mut ports.interfaces) {
            match port {
                InterfacePort::Raw(port) => rules.extend(port.rule_mut()),
                InterfacePort::Xdp(port) => xdp.push(port),
            }
        }
        let rule_scripts = rules.iter().map(|rule| rule.script().clone()).collect();
        let xdp_scripts = xdp.iter().map(|port| port.script().clone()).collect();
        let control_socket = config.control_socket.as_deref();
        let monitor =
            Monitor::start(rule_scripts, xdp_scripts, control_socket, config.log_format, config.log_level)?;
        for (number, rule) in rules.into_iter().enumerate() {
            rule.entrust(monitor.keeper(number)?);
        }
        for (number, port) in xdp.into_iter().enumerate() {
            port.entrust(monitor.xdp_keeper(number)?);
        }
        self.control.iter_mut().for_each(ControlListener::entrust_file);
        Ok(monitor)
    }

    /// Drops the privileges that are no longer needed and runs the packet loops until a signal stops them.
    fn serve(
        self,
        config: &Config,
        source: Source,
        account: Option<&Account>,
        signals: Signals,
    ) -> anyhow::Result<Snapshot> {
        let Self { threads, control, metrics, flight } = self;
        let names = names_of(&threads);
        let mut loops = Loops::create(config, threads)?;
        let handle = loops.handle.clone();
        if config.sandbox {
            sandbox::drop_privileges(account)?;
        }
        log::detach().context("cannot start the log writer thread")?;
        let reloader = Arc::new(Reloader::new(config.clone(), source, handle.clone()));
        let controlled = Controlled { handle: handle.clone(), reloader: Arc::clone(&reloader) };
        let control = control.map(|control| control.serve(controlled)).transpose()?;
        let metrics = metrics.map(|metrics| metrics.serve(handle.clone())).transpose()?;
        let flight = flight.start()?;
        if flight.dumps().has_file() {
            loops.dump_stalls(&flight);
        }
        if config.stop_on_stdin_eof {
            stdin::stop_on_eof(handle.clone())
                .context("cannot start the thread that reads standard input")?;
        }
        obey_signals(signals, handle, flight.dumps(), reloader)?;
        // All threads are started first, because the system-call filter applies to the threads that are running when it
        // is installed.
        let (first, others) = loops.start()?;
        if config.sandbox {
            sandbox::filter_system_calls();
        }
        service_manager::tell(&[NotifyState::Ready]);
        announce(config, &names);
        let last = first.run().and_then(|last| others.join(last))?;
        service_manager::tell(&[NotifyState::Stopping]);
        drop((control, metrics));
        Ok(last)
    }
}

/// Packet loops of all threads, before they are started.
struct Loops {
    runtimes: Vec<Runtime>,
    handle: Handle,
}

impl Loops {
    fn create(config: &Config, threads: Vec<ThreadPorts>) -> anyhow::Result<Self> {
        let strangers = StrangerLimits { key: random_secret()?, ..config.switch.strangers };
        let whole = iswitch_switch::Config { strangers, ..config.switch };
        let divided = threads::divided(whole, threads.len());
        let beats = service_manager::watchdogs(threads.len());
        let (mut runtimes, mut handles) = (Vec::new(), Vec::new());
        for ((at, ports), beat) in threads.into_iter().enumerate().zip(beats) {
            let switch = iswitch_switch::Config { boot: random_boot(), ..threads::of_thread(divided, at) };
            let (mut runtime, handle) = create_loop(config, switch, at, ports)?;
            runtime.on_heartbeat(beat);
            runtimes.push(runtime);
            handles.push(handle);
        }
        Ok(Self { runtimes, handle: Handle::of_all(handles) })
    }

    /// Makes each loop dump the flight records of a stalled job to the file.
    fn dump_stalls(&mut self, flight: &FlightWriter) {
        for runtime in &mut self.runtimes {
            let dumps = flight.dumps();
            runtime.on_stall(move |event, flight| dumps.push(event.name(), flight));
        }
    }

    /// Starts the threads of all loops except the first, which the caller runs.
    fn start(self) -> anyhow::Result<(Runtime, OtherThreads)> {
        let mut runtimes = self.runtimes.into_iter();
        let first = runtimes.next().context("no packet loop")?;
        let others = OtherThreads::start(runtimes, &self.handle).context("cannot start a packet thread")?;
        Ok((first, others))
    }
}

/// Creates the loop of thread `at`. The parent of each thread is the thread with the same number on the parent switch.
fn create_loop(
    config: &Config,
    switch: iswitch_switch::Config,
    at: usize,
    ports: ThreadPorts,
) -> anyhow::Result<(Runtime, Handle)> {
    let ThreadPorts { udp, interfaces, uplinks } = ports;
    let mut ports: Vec<Box<dyn Port>> = Vec::new();
    ports.extend(udp.into_iter().map(|port| Box::new(port) as Box<dyn Port>));
    ports.extend(interfaces.into_iter().map(InterfacePort::boxed));
    let first_uplink = PortId(ports.len() as u8);
    ports.extend(uplinks.into_iter().map(|port| Box::new(port) as Box<dyn Port>));
    let of_thread = |parent: &SocketAddrV4| {
        part::address(*parent, at).with_context(|| {
            format!(
                "parent is {parent}, expected a lower UDP port: each thread uses the \
                 next consecutive port of the parent, and the last would be above 65535"
            )
        })
    };
    let parents = config.parents.iter().map(of_thread).collect::<anyhow::Result<Vec<_>>>()?;
    let host = Label::lossy(&iswitch_socket::host_name().unwrap_or_default());
    let uplinks = Uplinks::new(&parents, first_uplink, config.uplink_ports.1);
    let uplinks = uplinks.map(|uplinks| uplinks.with_host(host));
    let switch = iswitch_switch::Config { uplinks, ..switch };
    let (mut runtime, handle) =
        Runtime::with_keys(switch, config.keys(random_secret()?), ports, config.spin)?;
    if let Some(spec) = &config.card {
        let ports = usize::from(first_uplink.0);
        let use_card = || CardDriver::new(spec.open()?, spec.slots, ports, config.classifier);
        runtime.with_card(use_card().with_context(|| format!("cannot use card {spec}"))?);
        tracing::info!(card = %spec, slots = spec.slots, "card open");
    }
    Ok((runtime, handle))
}

/// Returns the names of the ports through which workers reach the threads: UDP addresses and interfaces.
fn names_of(threads: &[ThreadPorts]) -> PortNames {
    let first = threads.first();
    let udp = first.map_or(&[][..], |ports| &ports.udp).iter().map(|port| port.name().to_owned());
    let raw = first.map_or(&[][..], |ports| &ports.interfaces).iter().map(|port| port.name().to_owned());
    PortNames { udp: udp.collect(), raw: raw.collect(), threads: threads.len() }
}

/// Names of the ports of the first thread, and the number of threads.
struct PortNames {
    udp: Vec<String>,
    raw: Vec<String>,
    threads: usize,
}

/// Opens the ports of all threads. If the operator has not chosen the number of threads and a UDP port for a further
/// thread is already in use, opens the ports of a single thread.
fn open_threads(config: &Config) -> anyhow::Result<Vec<ThreadPorts>> {
    let Threads { count, is_chosen } = config.threads;
    let udp = match open_udp(config, count) {
        Err(error) if !is_chosen && count > 1 && is_in_use(&error) => {
            tracing::warn!(
                threads = count,
                error = iswitch_manual::describe(error.as_ref()),
                "running a single thread, because the UDP ports for further threads are in use; free these ports, or \
                 set --threads 1"
            );
            open_udp(config, 1)?
        }
        outcome => outcome?,
    };
    let count = udp.len();
    let interfaces = open_interfaces(config, config.udp.len(), count)?;
    let open = |(at, (udp, interfaces)): (usize, (Vec<UdpPort>, Vec<InterfacePort>))| {
        let uplinks = open_uplinks(config, udp.len() + interfaces.len(), at)?;
        Ok(ThreadPorts { udp, interfaces, uplinks })
    };
    udp.into_iter().zip(interfaces).enumerate().map(open).collect()
}

fn is_in_use(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::AddrInUse)
}

fn socket_options(config: &Config) -> Options {
    Options {
        recv_buffer_bytes: config.buffer_bytes,
        send_buffer_bytes: config.buffer_bytes,
        offload: config.offload,
    }
}

/// Opens the ports through which a thread reaches the parent. Their UDP port numbers are fixed, so that the parent
/// recognizes this switch after a restart.
fn open_uplinks(config: &Config, ports_before: usize, thread: usize) -> anyhow::Result<Vec<UdpPort>> {
    let (first, count) = config.uplink_ports;
    let first = first + u16::from(count) * thread as u16;
    let open = |at: u8| {
        let number = first + u16::from(at);
        let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, number);
        let id = PortId(ports_before as u8 + at);
        UdpPort::bind(id, address, config.classifier, &socket_options(config)).with_context(|| {
            format!("cannot bind UDP port {number} for packets to the parent; choose another --uplink-port")
        })
    };
    (0..count).map(open).collect()
}

fn open_metrics(address: SocketAddr) -> anyhow::Result<MetricsListener> {
    let listener = MetricsListener::bind(address)
        .with_context(|| format!("cannot serve metrics at {address}; choose another --metrics address"))?;
    tracing::info!(address = %listener.address()?, "serving Prometheus metrics at /metrics");
    Ok(listener)
}

fn open_flight_file(path: Option<&Path>) -> anyhow::Result<FlightFile> {
    let name = path.unwrap_or(Path::new("standard error")).display();
    FlightFile::open(path).with_context(|| format!("cannot open the flight recorder file {name}"))
}

/// Opens the UDP ports of each thread: for each address, one port per thread, with consecutive numbers.
fn open_udp(config: &Config, threads: usize) -> anyhow::Result<Vec<Vec<UdpPort>>> {
    let socket = socket_options(config);
    let mut opened: Vec<_> = (0..threads).map(|_| Vec::new()).collect();
    for (at, address) in config.udp.iter().enumerate() {
        let id = PortId(at as u8);
        let ports = threads::bind_consecutive(id, *address, threads, config.classifier, &socket);
        let ports = ports.with_context(|| match threads {
            1 => format!("cannot serve UDP address {address}"),
            _ => {
                format!(
                    "cannot serve {threads} consecutive UDP ports from {address}; choose another --udp address, or \
                     decrease --threads"
                )
            }
        })?;
        for (thread, port) in opened.iter_mut().zip(ports) {
            check_buffer(&port, config);
            thread.push(port);
        }
    }
    Ok(opened)
}

/// Opens the ports of each thread on the interfaces.
fn open_interfaces(
    config: &Config,
    ports_before: usize,
    threads: usize,
) -> anyhow::Result<Vec<Vec<InterfacePort>>> {
    if config.interfaces.iter().any(|spec| spec.xdp.is_none()) {
        clean_up(config.ingress_rule)?;
    }
    let packet = PacketOptions { threads: threads as u16, ..config.packet_options() };
    let with_ids = || config.interfaces.iter().zip(ports_before..).map(|(spec, id)| (PortId(id as u8), spec));
    let raw: Vec<_> = with_ids()
        .filter(|(_, spec)| spec.xdp.is_none())
        .map(|(id, spec)| (id, spec.interface.as_str()))
        .collect();
    let mut raw = PacketPort::open_all(&raw, config.classifier, &packet)?.into_iter();
    let mut opened: Vec<_> = (0..threads).map(|_| Vec::new()).collect();
    for (id, spec) in with_ids() {
        if let Some(modes) = spec.xdp {
            // The configuration permits AF_XDP only with a single thread.
            opened[0].push(InterfacePort::Xdp(open_xdp(config, id, &spec.interface, modes)?));
            continue;
        }
        for (thread, port) in opened.iter_mut().zip(raw.next().into_iter().flatten()) {
            check_buffer(&port, config);
            thread.push(InterfacePort::Raw(port));
        }
    }
    Ok(opened)
}

fn open_xdp(config: &Config, id: PortId, name: &str, modes: XdpModes) -> anyhow::Result<XdpPort> {
    let buffer_bytes = config.buffer_bytes;
    let options = XdpOptions { modes, recv_buffer_bytes: buffer_bytes, send_buffer_bytes: buffer_bytes };
    let port = XdpPort::open(id, name, config.classifier, &options)?;
    log_open(&port);
    Ok(port)
}

fn log_open(port: &dyn Port) {
    let recv_buffer_bytes = port.recv_buffer_bytes();
    tracing::info!(port = port.name(), mode = port.mode(), recv_buffer_bytes, "port open");
}

fn check_buffer(port: &dyn Port, config: &Config) {
    log_open(port);
    let (port, recv_buffer_bytes) = (port.name(), port.recv_buffer_bytes());
    if recv_buffer_bytes < config.buffer_bytes {
        tracing::warn!(
            port,
            recv_buffer_bytes,
            "receive buffer limited by net.core.rmem_max; the workers' windows will be small"
        );
    }
}

/// Removes, on all interfaces, the ingress rules that crashed daemons left behind. A failure is an error only if
/// `must_work` is true.
fn clean_up(must_work: bool) -> anyhow::Result<()> {
    match remove_orphans() {
        Ok(tables) => {
            for table in tables {
                tracing::warn!(table, "removed the ingress rule of a daemon that is no longer running");
            }
            Ok(())
        }
        // If no rule is requested, nft may be missing or not permitted.
        Err(error) if !must_work => {
            tracing::debug!(%error, "cannot look for ingress rules of daemons that are no longer running");
            Ok(())
        }
        Err(error) => Err(error).context("cannot prepare raw ports, which need root and nft"),
    }
}

/// Starts the thread that handles signals: SIGUSR1 dumps the flight recorder, SIGHUP reloads the configuration, every
/// other signal stops the daemon.
fn obey_signals(
    mut signals: Signals,
    handle: Handle,
    dumps: FlightDumps,
    reloader: Arc<Reloader>,
) -> anyhow::Result<()> {
    let wait = move || {
        for signal in signals.forever() {
            match signal {
                SIGUSR1 => dump_flights(&handle, &dumps),
                // The outcome is in the log.
                SIGHUP => drop(reloader.reload_and_log()),
                _ => {
                    tracing::info!(signal, "stopping");
                    handle.stop();
                }
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}

fn dump_flights(handle: &Handle, dumps: &FlightDumps) {
    match handle.flights() {
        Ok(flights) if flights.is_empty() => {
            tracing::info!("flight recorder is empty: no job has been created yet");
        }
        Ok(flights) => {
            flights.iter().for_each(|flight| dumps.push("signal", flight.clone()));
        }
        Err(error) => tracing::warn!(%error, "flight recorder not dumped: the switch does not answer"),
    }
}

/// Announces on standard output, in one line, that the daemon is ready and which addresses it serves.
fn announce(config: &Config, names: &PortNames) {
    let udp = names.udp.iter().map(|address| format!("udp {address}"));
    let port = config.classifier.udp_port;
    let raw = names.raw.iter().map(|name| format!("port {name} (udp port {port})"));
    let parents = config.parents.iter().map(|parent| format!("parent {parent}"));
    let threads =
        (names.threads > 1).then(|| format!("{} threads with consecutive udp ports", names.threads));
    let all: Vec<_> = udp.chain(raw).chain(parents).chain(threads).collect();
    // The daemon keeps running if standard output is closed.
    let _ = writeln!(io::stdout(), "iswitchd {} ready: {}", env!("CARGO_PKG_VERSION"), all.join(", "));
}

fn log_summary(last: &Snapshot) {
    for port in &last.ports {
        tracing::info!(
            port = port.name,
            received = port.counters.get("received_datagrams"),
            sent = port.counters.get("sent_datagrams"),
            receive_buffer_drops = port.counters.get("receive_buffer_drops"),
            send_lost = port.counters.get("send_full") + port.counters.get("send_errors"),
            "port closed"
        );
    }
    for (reason, datagrams) in last.drops.iter().filter(|(_, datagrams)| *datagrams > 0) {
        tracing::info!(reason, datagrams, "dropped");
    }
    tracing::info!(
        uptime_ms = last.uptime_ms,
        contributions = last.traffic.get("contributions"),
        results = last.traffic.get("results"),
        results_repeated = last.traffic.get("results_repeated"),
        dropped = last.drops.total(),
        "stopped"
    );
}
