//! Tests that the generated Verilog, simulated by Verilator, processes one beat per cycle, even if all frames are for
//! the same segment.

use std::net::{Ipv4Addr, SocketAddrV4};

use hdl::accelerator::Build;
use hdl::adder::add;
use hdl::generate;
use hdl::host::{JobSetup, Member, contribution, member_frame, result_frame};
use hdl::simulation::{Command, Device, Frame, Report, Verilated};
use iswitch_harness::requirements;
use iswitch_protocol::wire::Class;
use iswitch_protocol::{Round, Seg, SegmentIndex, VectorLayout};

const WORKERS: u8 = 4;
const FLOATS: usize = 366;
const PACKETS: u32 = 60_000;
/// Number of 32-byte beats in a frame, which consists of 50 bytes of headers followed by the floats.
const BEATS: u64 = (50 + 4 * FLOATS as u64).div_ceil(32);
/// Maximum number of cycles from the first input beat to the last output beat, not counting one cycle per beat.
const MOST_EXTRA_CYCLES: u64 = 200;

fn worker(number: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 10 + number), 4000)
}

/// Returns the commands that set up a job with one segment, so that all rounds are for the same segment.
fn setup() -> Vec<Command> {
    let setup = JobSetup {
        id: 1,
        layout: VectorLayout::new(FLOATS as u32, FLOATS as u16).unwrap(),
        base: Round::new(0),
        threshold: WORKERS,
        members: (0..WORKERS)
            .map(|number| Member { address: worker(number), is_switch: false, port: 1 << (2 * number) })
            .collect(),
        // There is no pacing: the frames arrive faster than four ports of 10 Gb/s can deliver them.
        pace: 0,
        forwards_strangers: false,
    };
    setup.writes().unwrap().into_iter().map(|(at, value)| Command::Write(at, value)).collect()
}

fn payload(round: u32, contributions: u16, floats: &[u32]) -> Vec<u8> {
    contribution(
        Seg { index: SegmentIndex::new(0).unwrap(), round: Round::new(round), contributions },
        floats,
    )
}

/// Returns integers that are different for each worker, so that an incorrect sum shows which worker is missing.
fn floats(number: u8) -> Vec<u32> {
    (0..FLOATS).map(|i| ((i + 1) as f32 * 16_f32.powi(number.into())).to_bits()).collect()
}

fn run() -> Report {
    let gradients: Vec<_> = (0..WORKERS).map(floats).collect();
    let sends = (0..PACKETS).map(|packet| {
        let number = (packet % u32::from(WORKERS)) as u8;
        let payload = payload(packet / u32::from(WORKERS), 1, &gradients[usize::from(number)]);
        let bytes = member_frame(worker(number), Class::Data, &payload);
        Command::Send(Frame { bytes, source: 1 << (2 * number), destination: 0 })
    });
    let directory = tempfile::tempdir().unwrap();
    let program = Verilated::build(&generate::accelerator(Build::Slots128), directory.path()).unwrap();
    let mut device = Verilated::start(&program).unwrap();
    device.run(&setup()).unwrap();
    device.run(&sends.collect::<Vec<_>>()).unwrap()
}

#[test]
fn same_segment_packets_take_one_cycle_per_beat() {
    if !requirements::programs("same_segment_packets_take_one_cycle_per_beat", &["verilator"]) {
        return;
    }
    let report = run();
    assert_eq!(report.beats, u64::from(PACKETS) * BEATS);
    assert!(
        report.cycles <= report.beats + MOST_EXTRA_CYCLES,
        "{} cycles for {} beats",
        report.cycles,
        report.beats
    );
    let sum =
        (0..WORKERS).map(floats).reduce(|sum, own| sum.iter().zip(&own).map(|(a, b)| add(*a, *b)).collect());
    let sum = sum.unwrap();
    assert_eq!(report.frames.len() as u32, PACKETS / u32::from(WORKERS));
    for (round, frame) in report.frames.iter().enumerate() {
        let expected = result_frame(&payload(round as u32, WORKERS.into(), &sum));
        assert!(frame.bytes == expected, "the result of round {round} must be exact");
    }
}
