//! Start-up, operation and shutdown of the daemon.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;

use anyhow::Context;
use iswitch_socket::Options;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::config::Config;
use crate::control_socket::ControlListener;
use crate::flight_file::{FlightDumps, FlightFile};
use crate::log;
use crate::metrics::MetricsListener;
use crate::monitor::Monitor;
use crate::port::{PacketOptions, PacketPort, PortSpec, XdpOptions, XdpPort, remove_orphans};
use crate::sandbox::{self, Account};
use crate::service_manager;
use iswitch_runtime::embedded::{random_boot, random_secret};
use iswitch_runtime::port::{Port, UdpPort};
use iswitch_runtime::runtime::{Handle, Runtime};
use iswitch_runtime::snapshot::Snapshot;
use iswitch_switch::{PortId, StrangerLimits, Uplinks};

/// Runs the daemon until SIGTERM or SIGINT arrives. On return, the ingress rules and the control socket have been
/// removed.
pub fn run(config: &Config) -> anyhow::Result<()> {
    // The handlers are installed before anything that must be removed on shutdown, so that a signal stays pending
    // instead of killing the process.
    let signals = Signals::new([SIGTERM, SIGINT, SIGUSR1]).context("cannot handle signals")?;
    let account = if config.sandbox { Account::choose(config.user.as_deref())? } else { None };
    let mut opened = Opened::open(config)?;
    let monitor = if config.sandbox { opened.entrust(config)? } else { None };
    let outcome = opened.serve(config, account.as_ref(), signals);
    // Dropping waits until the monitor has finished, also after an error. By now, everything that the monitor removes
    // is closed.
    drop(monitor);
    log_summary(&outcome?);
    Ok(())
}

/// A port on a network interface.
enum InterfacePort {
    Raw(PacketPort),
    Xdp(XdpPort),
}

impl InterfacePort {
    fn boxed(self) -> Box<dyn Port> {
        match self {
            Self::Raw(port) => Box::new(port),
            Self::Xdp(port) => Box::new(port),
        }
    }
}

/// All resources that need privileges to open.
struct Opened {
    udp: Vec<UdpPort>,
    interfaces: Vec<InterfacePort>,
    uplinks: Vec<UdpPort>,
    control: Option<ControlListener>,
    metrics: Option<MetricsListener>,
    flight: FlightFile,
}

impl Opened {
    fn open(config: &Config) -> anyhow::Result<Self> {
        let udp = open_udp(config)?;
        let interfaces = open_interfaces(config, udp.len())?;
        let uplinks = open_uplinks(config, udp.len() + interfaces.len())?;
        let control = config.control_socket.as_deref().map(ControlListener::bind).transpose()?;
        let metrics = config.metrics.map(open_metrics).transpose()?;
        let flight = open_flight_file(config.flight_recorder.as_deref())?;
        Ok(Self { udp, interfaces, uplinks, control, metrics, flight })
    }

    /// Starts the monitor if there is anything to remove on shutdown or to restore when an interface is recreated.
    fn entrust(&mut self, config: &Config) -> anyhow::Result<Option<Monitor>> {
        let (mut rules, mut xdp) = (Vec::new(), Vec::new());
        for port in &mut self.interfaces {
            match port {
                InterfacePort::Raw(port) => rules.extend(port.rule_mut()),
                InterfacePort::Xdp(port) => xdp.push(port),
            }
        }
        if rules.is_empty() && xdp.is_empty() && self.control.is_none() {
            return Ok(None);
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
        Ok(Some(monitor))
    }

    /// Gives up the privileges that are no longer needed and runs the packet loop until a signal stops it.
    fn serve(self, config: &Config, account: Option<&Account>, signals: Signals) -> anyhow::Result<Snapshot> {
        let Self { udp, interfaces, uplinks, control, metrics, flight } = self;
        let mut ports: Vec<Box<dyn Port>> = Vec::new();
        ports.extend(udp.into_iter().map(|port| Box::new(port) as Box<dyn Port>));
        ports.extend(interfaces.into_iter().map(InterfacePort::boxed));
        let names: Vec<_> = ports.iter().map(|port| port.name().to_owned()).collect();
        let first_uplink = PortId(ports.len() as u8);
        ports.extend(uplinks.into_iter().map(|port| Box::new(port) as Box<dyn Port>));
        let uplinks = Uplinks::new(&config.parents, first_uplink, config.uplink_ports.1);
        let strangers = StrangerLimits { key: random_secret()?, ..config.switch.strangers };
        let switch = iswitch_switch::Config { boot: random_boot(), uplinks, strangers, ..config.switch };
        let keys = config.keys(random_secret()?);
        let (mut runtime, handle) = Runtime::with_keys(switch, keys, ports, config.spin)?;
        runtime.on_heartbeat(service_manager::watchdog());
        if config.sandbox {
            sandbox::give_up_privileges(account)?;
        }
        log::detach().context("cannot start the log writer thread")?;
        let control = control.map(|control| control.serve(handle.clone())).transpose()?;
        let metrics = metrics.map(|metrics| metrics.serve(handle.clone())).transpose()?;
        let flight = flight.start()?;
        let dumps = flight.dumps();
        if dumps.has_file() {
            runtime.on_stall(move |event, flight| dumps.push(event.name(), flight));
        }
        obey_signals(signals, handle, flight.dumps())?;
        if config.sandbox {
            sandbox::filter_system_calls();
        }
        service_manager::tell(&[NotifyState::Ready]);
        announce(config, &names);
        let last = runtime.run()?;
        service_manager::tell(&[NotifyState::Stopping]);
        drop((control, metrics));
        Ok(last)
    }
}

fn socket_options(config: &Config) -> Options {
    Options {
        recv_buffer_bytes: config.buffer_bytes,
        send_buffer_bytes: config.buffer_bytes,
        offload: config.offload,
    }
}

/// Opens the ports to the parent. Their UDP port numbers are fixed, so that the parent recognizes this switch after a
/// restart.
fn open_uplinks(config: &Config, ports_before: usize) -> anyhow::Result<Vec<UdpPort>> {
    let (first, count) = config.uplink_ports;
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

fn open_udp(config: &Config) -> anyhow::Result<Vec<UdpPort>> {
    let socket = socket_options(config);
    let open = |(at, address): (usize, &SocketAddrV4)| {
        let port = UdpPort::bind(PortId(at as u8), *address, config.classifier, &socket)
            .with_context(|| format!("cannot serve UDP address {address}"))?;
        check_buffer(&port, config);
        Ok(port)
    };
    config.udp.iter().enumerate().map(open).collect()
}

fn open_interfaces(config: &Config, ports_before: usize) -> anyhow::Result<Vec<InterfacePort>> {
    if config.interfaces.iter().any(|spec| spec.xdp.is_none()) {
        clean_up(config.ingress_rule)?;
    }
    let packet = PacketOptions {
        recv_buffer_bytes: config.buffer_bytes,
        send_buffer_bytes: config.buffer_bytes,
        offload: config.offload,
        ingress_rule: config.ingress_rule,
    };
    let open = |(at, spec): (usize, &PortSpec)| {
        let (id, name) = (PortId((ports_before + at) as u8), &spec.interface);
        if let Some(modes) = spec.xdp {
            let buffer_bytes = config.buffer_bytes;
            let options =
                XdpOptions { modes, recv_buffer_bytes: buffer_bytes, send_buffer_bytes: buffer_bytes };
            let port = XdpPort::open(id, name, config.classifier, &options)?;
            log_open(&port);
            return Ok(InterfacePort::Xdp(port));
        }
        let port = PacketPort::open(id, name, config.classifier, &packet)?;
        check_buffer(&port, config);
        Ok(InterfacePort::Raw(port))
    };
    config.interfaces.iter().enumerate().map(open).collect()
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
            "receive buffer limited by net.core.rmem_max; windows will be small"
        );
    }
}

/// Removes the ingress rules that crashed daemons left behind, on all interfaces.
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

/// Starts the thread that handles signals: SIGUSR1 dumps the flight recorder, every other signal stops the daemon.
fn obey_signals(mut signals: Signals, handle: Handle, dumps: FlightDumps) -> anyhow::Result<()> {
    let wait = move || {
        for signal in signals.forever() {
            if signal == SIGUSR1 {
                dump_flights(&handle, &dumps);
                continue;
            }
            tracing::info!(signal, "stopping");
            handle.stop();
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
fn announce(config: &Config, names: &[String]) {
    let (udp, raw) = names.split_at(config.udp.len());
    let udp = udp.iter().map(|address| format!("udp {address}"));
    let raw = raw.iter().map(|name| format!("port {name} (udp port {})", config.classifier.udp_port));
    let parents = config.parents.iter().map(|parent| format!("parent {parent}"));
    let all: Vec<_> = udp.chain(raw).chain(parents).collect();
    // The daemon keeps running if standard output is closed.
    let _ = writeln!(std::io::stdout(), "iswitchd {} ready: {}", env!("CARGO_PKG_VERSION"), all.join(", "));
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
