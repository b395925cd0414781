//! From a configuration to a running daemon and back to nothing.

use std::io::{IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::Context;
use iswitch_socket::Options;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing_subscriber::filter::LevelFilter;

use crate::config::{Config, LogFormat, LogLevel};
use crate::control_socket::ControlSocket;
use crate::embedded::{random_boot, random_secret};
use crate::port::{PacketOptions, PacketPort, Port, UdpPort, remove_orphans};
use crate::runtime::{Handle, Runtime};
use crate::snapshot::Snapshot;
use crate::switch::{PortId, StrangerLimits, Uplinks};

/// Logs on standard error from now on, in the form that the configuration asks for.
pub fn start_log(config: &Config) {
    let level = match config.log_level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let terminal = std::io::stderr().is_terminal();
    let log =
        tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(terminal);
    match config.log_format {
        LogFormat::Text => log.with_target(false).init(),
        LogFormat::Json => log.json().init(),
    }
}

/// Runs until SIGTERM or SIGINT. On return ingress rules and control socket are removed.
pub fn run(config: &Config) -> anyhow::Result<()> {
    // Before anything that has to be removed again: a signal from now on is not lost, but waits.
    let signals = Signals::new([SIGTERM, SIGINT]).context("cannot handle signals")?;
    let mut ports = open_ports(config)?;
    let names: Vec<_> = ports.iter().map(|port| port.name().to_owned()).collect();
    let uplinks = Uplinks::new(&config.parents, PortId(ports.len() as u8), config.uplink_ports.1);
    open_uplinks(config, &mut ports)?;
    let strangers = StrangerLimits { key: random_secret()?, ..config.switch.strangers };
    let switch = crate::switch::Config { boot: random_boot(), uplinks, strangers, ..config.switch };
    let keys = config.keys(random_secret()?);
    let (runtime, handle) = Runtime::with_keys(switch, keys, ports, config.spin)?;
    let control = config.control_socket.as_deref();
    let control = control.map(|path| ControlSocket::start(path, handle.clone())).transpose()?;
    stop_on_signal(signals, handle)?;
    announce(config, &names);
    let last = runtime.run()?;
    drop(control);
    log_summary(&last);
    Ok(())
}

fn socket_options(config: &Config) -> Options {
    Options {
        recv_buffer_bytes: config.buffer_bytes,
        send_buffer_bytes: config.buffer_bytes,
        offload: config.offload,
    }
}

/// Opens the ports towards the parent. Their numbers are always the same, so that the parent knows a switch
/// again that was restarted.
fn open_uplinks(config: &Config, ports: &mut Vec<Box<dyn Port>>) -> anyhow::Result<()> {
    let (first, count) = config.uplink_ports;
    for at in 0..u16::from(count) {
        let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, first + at);
        let id = PortId(ports.len() as u8);
        let port =
            UdpPort::bind(id, address, config.classifier, &socket_options(config)).with_context(|| {
                format!("cannot use udp port {} towards the parent (choose another uplink_port)", first + at)
            })?;
        ports.push(Box::new(port));
    }
    Ok(())
}

fn open_ports(config: &Config) -> anyhow::Result<Vec<Box<dyn Port>>> {
    let mut ports: Vec<Box<dyn Port>> = Vec::new();
    let socket = socket_options(config);
    for address in &config.udp {
        let port = UdpPort::bind(PortId(ports.len() as u8), *address, config.classifier, &socket)
            .with_context(|| format!("cannot serve udp address {address}"))?;
        ports.push(Box::new(port));
    }
    if !config.interfaces.is_empty() {
        clean_up(config.ingress_rule)?;
    }
    let packet = PacketOptions {
        recv_buffer_bytes: config.buffer_bytes,
        send_buffer_bytes: config.buffer_bytes,
        offload: config.offload,
        ingress_rule: config.ingress_rule,
    };
    for name in &config.interfaces {
        let port = PacketPort::open(PortId(ports.len() as u8), name, config.classifier, &packet)?;
        ports.push(Box::new(port));
    }
    for port in &ports {
        let (port, recv_buffer_bytes) = (port.name(), port.recv_buffer_bytes());
        tracing::info!(port, recv_buffer_bytes, "port open");
        if recv_buffer_bytes < config.buffer_bytes {
            tracing::warn!(
                port,
                recv_buffer_bytes,
                "net.core.rmem_max limits the receive buffer: small windows"
            );
        }
    }
    Ok(ports)
}

/// Removes the rules that crashed daemons left behind, on whatever interface.
fn clean_up(must_work: bool) -> anyhow::Result<()> {
    match remove_orphans() {
        Ok(tables) => {
            for table in tables {
                tracing::warn!(table, "removed the ingress rule of a daemon that has died");
            }
            Ok(())
        }
        // Who asks for no rule may have no nft, or no right to use it.
        Err(error) if !must_work => {
            tracing::debug!(%error, "cannot look for ingress rules of daemons that have died");
            Ok(())
        }
        Err(error) => Err(error).context("raw ports need root and nft"),
    }
}

fn stop_on_signal(mut signals: Signals, handle: Handle) -> anyhow::Result<()> {
    let wait = move || {
        for signal in signals.forever() {
            tracing::info!(signal, "stopping");
            handle.stop();
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}

/// One line on standard output: whoever started the daemon may go on.
fn announce(config: &Config, names: &[String]) {
    let (udp, raw) = names.split_at(config.udp.len());
    let udp = udp.iter().map(|address| format!("udp {address}"));
    let raw = raw.iter().map(|name| format!("port {name} (udp port {})", config.classifier.udp_port));
    let parents = config.parents.iter().map(|parent| format!("parent {parent}"));
    let all: Vec<_> = udp.chain(raw).chain(parents).collect();
    // A closed standard output is no reason to stop.
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
