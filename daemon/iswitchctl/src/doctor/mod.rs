//! `iswitchctl doctor`: diagnoses a set-up and suggests fixes.

mod daemon;
mod echo;
mod finding;
mod group;
mod host;
mod path_mtu;
mod peer;
mod probe;
mod switch;

use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, value_parser};
use iswitch_control::{Request, ask};
use iswitch_protocol::limits::{DEFAULT_CONTROL_TOS, DEFAULT_DATA_TOS};
use iswitch_protocol::wire::Classifier;
use iswitch_protocol::{Key, key_file};

use crate::ask::{QueryArgs, print};
use crate::tos::parse_tos;
use finding::Report;
use peer::PeerCheck;
use probe::{Patience, Probe};
use switch::SwitchCheck;

/// Options of `iswitchctl doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Check the path to this switch
    ///
    /// The check covers both directions.
    #[arg(long, value_name = "HOST:PORT")]
    switch: Option<String>,
    /// Check the path to another machine that runs `iswitchctl doctor --answer`
    ///
    /// Start `iswitchctl doctor --answer 0.0.0.0:7712` on that machine first; the default port is 7712. This check
    /// reports the problems in each direction separately, and needs no iswitchd.
    #[arg(long, value_name = "HOST[:PORT]")]
    peer: Option<String>,
    /// Listen on this address and answer --peer requests from other machines
    ///
    /// The command then runs no checks, and continues until it is interrupted.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["switch", "peer"])]
    answer: Option<SocketAddrV4>,
    /// Network interface to check
    ///
    /// The default is the interface on the path to the switch or the peer.
    #[arg(long, value_name = "IFACE")]
    interface: Option<String>,
    /// Number of the job to use in requests to the switch
    #[arg(long, default_value_t = 0)]
    job: u32,
    /// Key file of the job
    #[arg(long, value_name = "PATH")]
    key_file: Option<PathBuf>,
    /// ToS of control packets
    ///
    /// The value must be a multiple of 4, because the two low-order bits belong to ECN.
    #[arg(long, value_name = "TOS", default_value_t = DEFAULT_CONTROL_TOS, value_parser = parse_tos)]
    control_tos: u8,
    /// ToS of data packets
    ///
    /// The value must be a multiple of 4, because the two low-order bits belong to ECN.
    #[arg(long, value_name = "TOS", default_value_t = DEFAULT_DATA_TOS, value_parser = parse_tos)]
    data_tos: u8,
    /// Minimum MTU that every link must have, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = value_parser!(u16).range(576..=9000))]
    mtu: u16,
    /// Minimum receive buffer that the kernel must grant, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 20)]
    recv_buffer_bytes: usize,
    /// Timeout of each request attempt, in milliseconds
    ///
    /// A request counts as unanswered after three attempts.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = value_parser!(u64).range(1..=60_000))]
    timeout_ms: u64,
    /// Also check that this machine's bridges and firewall permit group delivery
    ///
    /// These checks matter only if the switch runs with --group-delivery auto.
    #[arg(long)]
    group_delivery: bool,
    /// Exit with status 1 even if there are only warnings
    #[arg(long)]
    strict: bool,
}

/// Number of attempts per request.
const TRIES: u32 = 3;

/// Runs all checks and prints the findings. The exit status is 1 if a check has failed.
pub(crate) fn run(args: &DoctorArgs, control: &QueryArgs) -> anyhow::Result<ExitCode> {
    if let Some(address) = args.answer {
        echo::answer(address)?;
    }
    let mut report = Report::default();
    examine(args, control, &mut report)?;
    print(&if control.json() { format!("{}\n", serde_json::to_string(&report)?) } else { report.text() });
    Ok(if report.is_healthy(args.strict) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn examine(args: &DoctorArgs, control: &QueryArgs, report: &mut Report) -> anyhow::Result<()> {
    let switch = args.switch.as_deref().map(|name| resolve("--switch", name, None)).transpose()?;
    let peer = args.peer.as_deref().map(|name| resolve("--peer", name, Some(echo::ECHO_PORT))).transpose()?;
    let key = args.key_file.as_deref().map(read_key).transpose()?;
    let patience = Patience { timeout: Duration::from_millis(args.timeout_ms), tries: TRIES };
    let classifier =
        Classifier { control_tos: args.control_tos, data_tos: args.data_tos, ..Classifier::default() };
    let mtu_bytes = usize::from(args.mtu);
    check_interface(args, report, switch.or(peer), patience);
    host::check_receive_buffer(report, args.recv_buffer_bytes);
    host::check_cpu(report);
    if args.group_delivery {
        group::check_host(report);
    }
    check_daemon(report, control)?;
    if let Some(address) = switch {
        let key = key.as_ref();
        SwitchCheck { address, job: args.job, key, classifier, mtu_bytes, patience }.run(report);
    }
    if let Some(address) = peer {
        PeerCheck { address, classifier, mtu_bytes, patience }.run(report);
    }
    Ok(())
}

fn read_key(path: &std::path::Path) -> anyhow::Result<Key> {
    key_file::read(path).with_context(|| format!("cannot use key file {}", path.display()))
}

fn resolve(option: &str, name: &str, default_port: Option<u16>) -> anyhow::Result<SocketAddrV4> {
    let name = match default_port {
        Some(port) if !name.contains(':') => format!("{name}:{port}"),
        _ => name.to_owned(),
    };
    let mut found =
        name.to_socket_addrs().with_context(|| format!("{option} is {name:?}, expected HOST:PORT"))?;
    let address = found.find_map(|address| match address {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    });
    address.with_context(|| format!("{option} is {name:?}, expected a host with an IPv4 address"))
}

/// Checks the given interface. If no interface is given, checks the interface on the path to `to`.
fn check_interface(args: &DoctorArgs, report: &mut Report, to: Option<SocketAddrV4>, patience: Patience) {
    let on_the_way = || {
        let local = Probe::connect(to?, patience).ok()?.local()?;
        host::interface_of(local).map(|interface| interface.name)
    };
    match args.interface.clone().or_else(on_the_way) {
        Some(name) => host::check_interface(report, &name, args.mtu.into()),
        None => report.skipped("interface", "give --interface, --switch or --peer"),
    }
}

/// Checks the daemon on this machine. Skips the check if no control socket was given and the default one does not
/// exist.
fn check_daemon(report: &mut Report, control: &QueryArgs) -> anyhow::Result<()> {
    let path = match control.path() {
        Ok(path) if path.exists() || control.is_given() => path,
        _ => {
            report.skipped("daemon", "no control socket on this machine");
            return Ok(());
        }
    };
    match ask(&path, Request::Snapshot) {
        Ok(answer) => {
            let view = serde_json::from_value(answer).context(
                "cannot parse the daemon's snapshot; install the same release of iswitchd and iswitchctl",
            )?;
            daemon::check(report, &view);
        }
        Err(error) => report.failed(
            "daemon",
            format!("the control socket {} does not answer: {error}", path.display()),
            "start iswitchd, or set --socket to the path of its --control-socket",
        ),
    }
    Ok(())
}
