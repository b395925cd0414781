//! Measures the costs of the model on this machine, over the loopback interface, without privileges.
//!
//! On the loopback interface, the kernel does the receiver's work within the sender's call. The measurement therefore
//! does not separate the costs of the two sides well; only the sum of both costs is accurate.

use std::hint::black_box;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use iswitch_protocol::limits::{
    DEFAULT_DATA_TOS, DEFAULT_SEGMENT_FLOATS, MAX_SUPERFRAME_LEN_BYTES, SEG_LEN_BYTES,
};
use iswitch_protocol::wire::control::answer_challenge;
use iswitch_protocol::wire::{Class, ControlBody, ControlRepr, JoinRepr, emit_seg};
use iswitch_protocol::{Round, Seg, SegmentIndex};
use iswitch_socket::{Options, UdpSocket};
use iswitch_switch::{Config, Endpoint, PortId, Switch};

use super::costs::{Costs, EndCosts, Line, Pipeline};
use super::wire::Framing;
use crate::contest::Spread;

/// Number of repetitions of each measurement. The result is their median.
const CALLS: usize = 3_000;
/// Number of repetitions of each pass over whole vectors.
const PASSES: usize = 15;
/// Numbers of segments in the shortest and in the longest super-frame.
const SEGMENTS: [usize; 2] = [1, 44];
/// Length of the vectors, in floats: that of the paper's longest vector. The CPU caches hold only a small part of it.
const FLOATS: usize = 1_687_206;
const MEMBERS: u8 = 4;
/// Throughput of the paper's accelerator: 256 bits in each cycle of 200 MHz.
const HARDWARE_BYTES_PER_S: f64 = 6.4e9;
/// Latency of the paper's accelerator: a hundred cycles.
const HARDWARE_LATENCY_NS: f64 = 500.0;
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// Measures all costs, which takes a few seconds.
///
/// # Errors
/// Fails if sockets on the loopback interface do not work.
pub fn measure() -> io::Result<Costs> {
    let superframe = superframes()?;
    let (switch_add, switch_emit) = switch_core();
    Ok(Costs {
        superframe,
        switch_frame: switch_frames()?,
        stream: streams()?,
        switch_add,
        switch_emit,
        worker_add: Line { ns: 0.0, ns_per_byte: worker_add() },
        wake_ns: wake(superframe)?,
        hardware: Pipeline { bytes_per_s: HARDWARE_BYTES_PER_S, latency_ns: HARDWARE_LATENCY_NS },
    })
}

fn median(values: Vec<f64>) -> f64 {
    Spread::of(values).median
}

fn nanos(since: Instant) -> f64 {
    since.elapsed().as_nanos() as f64
}

/// Returns the line through two measured points. Its slope is never negative.
fn line(bytes: [usize; 2], ns: [f64; 2]) -> Line {
    let ns_per_byte = ((ns[1] - ns[0]) / (bytes[1] - bytes[0]) as f64).max(0.0);
    Line { ns: (ns[0] - ns_per_byte * bytes[0] as f64).max(0.0), ns_per_byte }
}

/// Returns the medians of the times of two operations that alternate. `both` receives the number of the call, starting
/// from 0. Other processes interrupt few of the calls, so they do not affect the medians.
fn in_turn(mut both: impl FnMut(usize) -> io::Result<[f64; 2]>) -> io::Result<[f64; 2]> {
    let mut times = [Vec::with_capacity(CALLS), Vec::with_capacity(CALLS)];
    for call in 0..CALLS {
        let both = both(call)?;
        times.iter_mut().zip(both).for_each(|(times, ns)| times.push(ns));
    }
    Ok(times.map(median))
}

/// Contribution and sum of a worker. Each call uses the next part of these long vectors, so that the part is not in the
/// CPU caches.
struct Vectors {
    contribution: Vec<u8>,
    sum: Vec<u8>,
}

impl Vectors {
    fn new() -> Self {
        Self { contribution: vec![1; FLOATS * size_of::<f32>()], sum: vec![0; FLOATS * size_of::<f32>()] }
    }

    /// Returns the offset of the part of `bytes` bytes that the call with the given number uses.
    fn place(&self, call: usize, bytes: usize) -> usize {
        call % (self.sum.len() / bytes) * bytes
    }
}

fn ends(bytes: [usize; 2], times: [[f64; 2]; 2]) -> EndCosts {
    let of = |side: usize| line(bytes, [times[0][side], times[1][side]]);
    EndCosts { send: of(0), receive: of(1) }
}

fn udp_pair() -> io::Result<[UdpSocket; 2]> {
    let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let sockets = [UdpSocket::bind(any, &Options::default())?, UdpSocket::bind(any, &Options::default())?];
    sockets[0].connect(sockets[1].local_addr()?)?;
    sockets[1].connect(sockets[0].local_addr()?)?;
    Ok(sockets)
}

fn stride() -> usize {
    SEG_LEN_BYTES + Framing::segments(1).payload_bytes
}

/// Measures sends and receives as the worker does them: the calls copy floats from the vector into packets, and from
/// packets into the sum.
fn superframes() -> io::Result<EndCosts> {
    let [from, to] = udp_pair()?;
    let mut vectors = Vectors::new();
    let heads = [[0; SEG_LEN_BYTES]; SEGMENTS[1]];
    let mut taken = [[0; SEG_LEN_BYTES]; SEGMENTS[1]];
    let segment = Framing::segments(1).payload_bytes;
    let mut time = |segments: usize| {
        in_turn(|call| {
            let at = vectors.place(call, segments * segment);
            let begin = Instant::now();
            let bodies = vectors.contribution[at..][..segments * segment].chunks(segment);
            let packets =
                heads.iter().zip(bodies).map(|(head, body)| [IoSlice::new(head), IoSlice::new(body)]);
            from.send_gathered(DEFAULT_DATA_TOS, &packets.collect::<Vec<_>>())?;
            let sent = nanos(begin);
            let begin = Instant::now();
            let mut done = 0;
            while done < segments {
                let bodies = vectors.sum[at + done * segment..at + segments * segment].chunks_mut(segment);
                let places = taken.iter_mut().zip(bodies);
                let places = places.flat_map(|(head, body)| [IoSliceMut::new(head), IoSliceMut::new(body)]);
                done += to.recv_scattered(&mut places.collect::<Vec<_>>())?.len / stride();
            }
            Ok([sent, nanos(begin)])
        })
    };
    let times = [time(SEGMENTS[0])?, time(SEGMENTS[1])?];
    Ok(ends(SEGMENTS.map(|segments| segments * segment), times))
}

/// Measures sends and receives as the switch daemon does them: it sends prepared packets, and processes received
/// packets in the receive buffer.
fn switch_frames() -> io::Result<EndCosts> {
    let [from, to] = udp_pair()?;
    let payload = vec![1; SEGMENTS[1] * stride()];
    let mut buffer = vec![0; MAX_SUPERFRAME_LEN_BYTES];
    let mut time = |segments: usize| {
        in_turn(|_| {
            let begin = Instant::now();
            from.send(DEFAULT_DATA_TOS, None, None, &payload[..segments * stride()], stride())?;
            let sent = nanos(begin);
            let begin = Instant::now();
            let mut left = segments * stride();
            while left > 0 {
                left = left.saturating_sub(to.recv(&mut buffer)?.len);
            }
            Ok([sent, nanos(begin)])
        })
    };
    let times = [time(SEGMENTS[0])?, time(SEGMENTS[1])?];
    Ok(ends(SEGMENTS.map(|segments| segments * Framing::segments(1).payload_bytes), times))
}

fn streams() -> io::Result<EndCosts> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut from = TcpStream::connect(listener.local_addr()?)?;
    let (mut to, _) = listener.accept()?;
    from.set_nodelay(true)?;
    let framing = Framing::stream();
    let sizes = [framing.payload_bytes, framing.payload_bytes * framing.packets];
    let mut vectors = Vectors::new();
    let mut time = |bytes: usize| {
        in_turn(|call| {
            let at = vectors.place(call, bytes);
            let begin = Instant::now();
            from.write_all(&vectors.contribution[at..][..bytes])?;
            let sent = nanos(begin);
            let begin = Instant::now();
            to.read_exact(&mut vectors.sum[at..][..bytes])?;
            Ok([sent, nanos(begin)])
        })
    };
    let times = [time(sizes[0])?, time(sizes[1])?];
    Ok(ends(sizes, times))
}

/// Returns the time per byte, in nanoseconds, to add a received super-frame to a vector.
fn worker_add() -> f64 {
    let framing = Framing::stream();
    let floats = framing.payload_bytes * framing.packets / size_of::<f32>();
    let (own, mut sum) = (vec![1.0_f32; FLOATS], vec![0.0_f32; FLOATS]);
    let received = vec![2.0_f32; floats];
    let pass = |_| {
        let begin = Instant::now();
        for (sum, own) in sum.chunks_mut(floats).zip(own.chunks(floats)) {
            for ((sum, own), x) in sum.iter_mut().zip(own).zip(black_box(&received)) {
                *sum = own + x;
            }
        }
        black_box(&sum);
        nanos(begin) / (FLOATS * size_of::<f32>()) as f64
    };
    median((0..PASSES).map(pass).collect())
}

/// Returns the time from the arrival of a packet to the first instruction of a sleeping receiver: half of a round trip,
/// less the time of the calls that send and receive.
fn wake(superframe: EndCosts) -> io::Result<f64> {
    let [here, there] = udp_pair()?;
    let payload = vec![1; stride()];
    let answers = CALLS;
    thread::scope(|scope| {
        let echo = scope.spawn(|| {
            let mut buffer = vec![0; MAX_SUPERFRAME_LEN_BYTES];
            for _ in 0..answers {
                if !there.wait_readable(Some(PING_TIMEOUT))? {
                    return Err(io::Error::from(io::ErrorKind::TimedOut));
                }
                let len = there.recv(&mut buffer)?.len;
                there.send(DEFAULT_DATA_TOS, None, None, &buffer[..len], len)?;
            }
            Ok::<_, io::Error>(())
        });
        let mut buffer = vec![0; MAX_SUPERFRAME_LEN_BYTES];
        let trip = in_turn(|_| {
            let begin = Instant::now();
            here.send(DEFAULT_DATA_TOS, None, None, &payload, payload.len())?;
            if !here.wait_readable(Some(PING_TIMEOUT))? {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            here.recv(&mut buffer)?;
            Ok([nanos(begin), 0.0])
        })?;
        echo.join().map_err(|_| io::Error::from(io::ErrorKind::Other))??;
        let calls = superframe.send.plus(superframe.receive);
        let bytes = Framing::segments(1).payload_bytes as f64;
        Ok((trip[0] / 2.0 - calls.ns - calls.ns_per_byte * bytes).max(0.0))
    })
}

fn member(number: u8) -> Endpoint {
    Endpoint {
        port: PortId(0),
        peer: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, number), 5000),
        local: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 254), 7711),
        peer_mac: [0; 6],
        local_mac: [0; 6],
    }
}

/// Returns a switch with a job, which all members have joined.
fn formed(now: iswitch_protocol::Instant) -> Switch {
    let mut switch = Switch::new(Config { boot: 1, ..Config::default() });
    for number in 1..=MEMBERS {
        let join = JoinRepr {
            instance: u32::from(number),
            ..JoinRepr::worker(FLOATS as u32, DEFAULT_SEGMENT_FLOATS, u16::from(MEMBERS))
        };
        let join = ControlRepr { job: 1, request: 1, body: ControlBody::Join(join) };
        let mut bytes = vec![0; join.buffer_len()];
        join.emit(&mut bytes);
        switch.handle_datagrams(now, &member(number), Class::Control, &bytes, bytes.len());
        let challenge = switch.poll_transmit().expect("the switch must answer a Join");
        assert!(answer_challenge(&mut bytes, challenge.payload));
        switch.handle_datagrams(now, &member(number), Class::Control, &bytes, bytes.len());
        drain(&mut switch);
    }
    switch
}

/// Takes all packets that the switch has to send, and returns their total length, in bytes.
fn drain(switch: &mut Switch) -> usize {
    let mut bytes = 0;
    while let Some(transmit) = switch.poll_transmit() {
        bytes += black_box(transmit.payload).len();
    }
    bytes
}

/// Returns a super-frame of a round.
fn contribution(round: u32, first: u32, segments: usize) -> Vec<u8> {
    let mut bytes = vec![0; segments * stride()];
    for (at, packet) in (first..).zip(bytes.chunks_mut(stride())) {
        let index = SegmentIndex::new(at).expect("the index must fit into the vector");
        let floats = emit_seg(packet, Seg { index, round: Round::new(round), contributions: 1 });
        floats.chunks_mut(4).for_each(|word| word.copy_from_slice(&1.5_f32.to_le_bytes()));
    }
    bytes
}

/// Returns the core's cost of adding a contribution, and the additional cost of the contribution that completes a sum.
fn switch_core() -> (Line, Line) {
    let now = iswitch_protocol::Instant::from_nanos(1);
    let mut switch = formed(now);
    let segments = FLOATS / usize::from(DEFAULT_SEGMENT_FLOATS);
    let mut round = 0;
    let mut time = |of_frame: usize| {
        let (mut added, mut emitted) = (Vec::new(), Vec::new());
        for _ in 0..PASSES {
            let frames = segments / of_frame;
            for frame in 0..frames {
                let bytes = contribution(round, (frame * of_frame) as u32, of_frame);
                for number in 1..=MEMBERS {
                    let begin = Instant::now();
                    switch.handle_datagrams(now, &member(number), Class::Data, &bytes, stride());
                    let sent = drain(&mut switch);
                    let ns = nanos(begin);
                    assert_eq!(
                        sent > 0,
                        number == MEMBERS,
                        "only the last contribution must complete the sum"
                    );
                    if sent > 0 { emitted.push(ns) } else { added.push(ns) }
                }
            }
            // The segments that did not fill a super-frame complete the round.
            finish(&mut switch, now, round, frames * of_frame);
            round += 1;
        }
        let added = median(added);
        (added, (median(emitted) - added).max(0.0))
    };
    let [(add_short, emit_short), (add_long, emit_long)] = SEGMENTS.map(&mut time);
    let bytes = SEGMENTS.map(|segments| segments * Framing::segments(1).payload_bytes);
    (line(bytes, [add_short, add_long]), line(bytes, [emit_short, emit_long]))
}

/// Contributes the remaining segments, so that the next round can begin.
fn finish(switch: &mut Switch, now: iswitch_protocol::Instant, round: u32, first: usize) {
    let floats = FLOATS - first * usize::from(DEFAULT_SEGMENT_FLOATS);
    let full = floats / usize::from(DEFAULT_SEGMENT_FLOATS);
    let mut bytes = contribution(round, first as u32, full + 1);
    bytes.truncate(full * stride() + SEG_LEN_BYTES + floats % usize::from(DEFAULT_SEGMENT_FLOATS) * 4);
    for number in 1..=MEMBERS {
        switch.handle_datagrams(now, &member(number), Class::Data, &bytes, stride());
        drain(switch);
    }
}

/// Returns the costs in the format of the file that the model reads.
pub fn file(costs: &Costs) -> String {
    toml::to_string(costs).expect("numbers can be written as TOML")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_costs_are_read_back_unchanged() {
        let costs = measure().expect("the loopback interface must work");
        assert!(costs.superframe.send.ns_per_byte + costs.superframe.send.ns > 0.0);
        assert!(costs.switch_add.ns_per_byte > 0.0);
        assert_eq!(Costs::parse(&file(&costs)), Ok(costs));
    }

    #[test]
    fn a_fitted_cost_line_passes_through_both_points() {
        assert_eq!(line([10, 20], [7.0, 12.0]), Line { ns: 2.0, ns_per_byte: 0.5 });
        assert_eq!(line([10, 20], [7.0, 6.0]), Line { ns: 7.0, ns_per_byte: 0.0 });
    }
}
