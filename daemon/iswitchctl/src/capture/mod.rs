//! `iswitchctl capture`: records the tagged traffic of interfaces in a file for Wireshark.
//!
//! Frames are captured before nftables and the bridge handle them, so a capture also works on interfaces that a daemon
//! serves. A super-frame is captured as one packet; `packaging/wireshark/iswitch.lua` shows the segments in it.

mod filter;
mod pcapng;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, value_parser};
use iswitch_protocol::limits::{DEFAULT_CONTROL_TOS, DEFAULT_DATA_TOS, DEFAULT_PORT};
use iswitch_protocol::wire::Classifier;
use iswitch_socket::PollSet;
use iswitch_socket::capture::CaptureSocket;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::tos::parse_tos;
use pcapng::Writer;

/// Size of the receive buffer of each socket, in bytes. It holds about 16 ms of traffic at 10 Gbit/s.
const RECV_BUFFER_BYTES: usize = 32 << 20;
/// Maximum length of a super-frame with its Ethernet header, in bytes. The length field of IPv4 has 16 bits.
const FRAME_LEN_MAX_BYTES: u32 = 65_549;
/// Interval at which the time limit and signals are checked, and the file is flushed.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of frames read from one interface before the next interface is served.
const FRAMES_PER_TURN: usize = 256;

/// Options of `iswitchctl capture`.
#[derive(Args, Debug)]
pub(crate) struct CaptureArgs {
    /// Network interface to capture from
    ///
    /// Requires the capability CAP_NET_RAW. The option may be repeated.
    #[arg(long, value_name = "IFACE", required = true)]
    interface: Vec<String>,
    /// File to write in pcapng format, or `-` for standard output
    #[arg(long, value_name = "FILE")]
    write: PathBuf,
    /// Maximum number of packets to capture [default: no limit]
    #[arg(long, value_name = "PACKETS")]
    count: Option<u64>,
    /// Maximum duration of the capture, in seconds [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Maximum number of bytes to keep from each packet
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = FRAME_LEN_MAX_BYTES,
        value_parser = value_parser!(u32).range(64..=i64::from(FRAME_LEN_MAX_BYTES))
    )]
    snap_len: u32,
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
    /// UDP port of the switch
    #[arg(long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    udp_port: u16,
}

/// Interface from which packets are captured.
struct Tap {
    socket: CaptureSocket,
    is_loopback: bool,
}

/// Captures until a limit is reached, the process is interrupted, or the reader of standard output closes the pipe.
pub(crate) fn run(args: &CaptureArgs) -> anyhow::Result<ExitCode> {
    match record(args) {
        Err(error) if is_stdout(&args.write) && is_closed_pipe(&error) => {}
        outcome => outcome?,
    }
    Ok(ExitCode::SUCCESS)
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.downcast_ref::<io::Error>();
    io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn record(args: &CaptureArgs) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context("cannot install the signal handlers")?;
    }
    let CaptureArgs { control_tos, data_tos, udp_port, .. } = *args;
    let classifier = Classifier { control_tos, data_tos, udp_port };
    let taps =
        args.interface.iter().map(|name| open(name, &classifier)).collect::<anyhow::Result<Vec<_>>>()?;
    let out = create(&args.write)?;
    let failed = || format!("cannot write {}", args.write.display());
    let names: Vec<_> = args.interface.iter().map(String::as_str).collect();
    let mut writer = Writer::begin(out, &names, args.snap_len as usize).with_context(failed)?;
    writer.flush().with_context(failed)?;
    eprintln!("iswitchctl: capturing on {}", names.join(", "));
    let count = capture(args, &taps, &mut writer, &stop).with_context(failed)?;
    let drops = finish(&taps, &mut writer).with_context(failed)?;
    eprintln!("iswitchctl: {count} packets captured, {drops} dropped by the kernel");
    Ok(())
}

fn open(name: &str, classifier: &Classifier) -> anyhow::Result<Tap> {
    let interfaces = pnet_datalink::interfaces();
    let interface = interfaces.into_iter().find(|interface| interface.name == name);
    let interface = interface
        .with_context(|| format!("--interface is {name:?}, expected a network interface of this machine"))?;
    let socket = CaptureSocket::open(interface.index, &filter::program(classifier), RECV_BUFFER_BYTES)
        .with_context(|| format!("cannot capture from {name} (this needs CAP_NET_RAW)"))?;
    Ok(Tap { socket, is_loopback: interface.is_loopback() })
}

fn create(path: &Path) -> anyhow::Result<Box<dyn Write>> {
    if is_stdout(path) {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    }
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(Box::new(BufWriter::new(file)))
}

/// Captures packets and returns their number.
fn capture(
    args: &CaptureArgs,
    taps: &[Tap],
    writer: &mut Writer<Box<dyn Write>>,
    stop: &AtomicBool,
) -> io::Result<u64> {
    let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let wanted = args.count.unwrap_or(u64::MAX);
    let (mut poll, mut count) = (PollSet::new(), 0);
    let mut buffer = vec![0; args.snap_len as usize];
    while count < wanted && !stop.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) {
        poll.clear();
        let places: Vec<_> = taps.iter().map(|tap| poll.push(tap.socket.as_fd())).collect();
        let timeout =
            end.map_or(LOOK_INTERVAL, |end| LOOK_INTERVAL.min(end.saturating_duration_since(Instant::now())));
        if !poll.wait(Some(timeout))? {
            writer.flush()?;
            continue;
        }
        for (at, tap) in taps.iter().enumerate().filter(|(at, _)| poll.is_ready(places[*at])) {
            for _ in 0..FRAMES_PER_TURN {
                let Ok(captured) = tap.socket.recv(&mut buffer) else { break };
                // A loopback interface delivers each packet twice.
                if tap.is_loopback && captured.is_outgoing || count == wanted {
                    continue;
                }
                writer.packet(at, &captured, &buffer[..captured.len])?;
                count += 1;
            }
        }
    }
    Ok(count)
}

/// Writes the statistics of each interface and returns the number of packets that were lost because the receive buffer
/// was full.
fn finish(taps: &[Tap], writer: &mut Writer<Box<dyn Write>>) -> io::Result<u64> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let mut total = 0;
    for (at, tap) in taps.iter().enumerate() {
        let drops = tap.socket.drops()?.into();
        writer.statistics(at, now, drops)?;
        total += drops;
    }
    writer.flush()?;
    Ok(total)
}
