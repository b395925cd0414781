//! Tests of the top module in rust-hdl's simulation, with a job of four workers.

use std::net::{Ipv4Addr, SocketAddrV4};

use hdl::accelerator::Build;
use hdl::accelerator::records::event;
use hdl::accelerator::registers::{ID, offset};
use hdl::adder::add;
use hdl::host::{HOST_PORT, JobSetup, Member, PACE_10G, contribution, member_frame, result_frame};
use hdl::simulation::{BoardError, Command, Device, Frame, Pause, RustDevice};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{Class, ControlBody, ControlRepr};
use iswitch_protocol::{Round, Seg, SegmentIndex, VectorLayout};

const BASE: Round = Round::new(7);

fn worker(number: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 10 + number), 4000)
}

fn member(number: u8) -> Member {
    Member { address: worker(number), is_switch: false, port: 1 << (2 * number) }
}

fn setup(gradient_len: u32, segment_floats: u16) -> JobSetup {
    JobSetup {
        id: 3,
        layout: VectorLayout::new(gradient_len, segment_floats).unwrap(),
        base: BASE,
        threshold: 4,
        members: (0..4).map(member).collect(),
        pace: PACE_10G,
        forwards_strangers: false,
    }
}

fn configured(build: Build, setup: &JobSetup) -> RustDevice {
    let mut device = RustDevice::new(build);
    configure(&mut device, setup);
    device
}

fn configure(device: &mut RustDevice, setup: &JobSetup) {
    let writes = setup.writes().unwrap();
    let commands: Vec<_> = writes.into_iter().map(|(at, value)| Command::Write(at, value)).collect();
    device.run(&commands).unwrap();
}

fn send(number: u8, payload: &[u8]) -> Command {
    let bytes = member_frame(worker(number), Class::Data, payload);
    Command::Send(Frame { bytes, source: 1 << (2 * number), destination: 0 })
}

fn seg(index: u32, round: Round, contributions: u16) -> Seg {
    Seg { index: SegmentIndex::new(index).unwrap(), round, contributions }
}

fn floats(len: usize, salt: u32) -> Vec<u32> {
    (0..len as u32).map(|i| (f32::from_bits(0x3f80_0000 + i * 77 + salt * 1001) - 1.3).to_bits()).collect()
}

fn read(device: &mut RustDevice, offset: u16) -> u32 {
    device.read(offset).unwrap()
}

fn counter(device: &mut RustDevice, code: u64) -> u32 {
    read(device, offset::COUNTERS + 4 * code as u16)
}

#[test]
fn four_contributions_make_one_result() {
    // `testbench lockstep` covers all other lengths.
    let lens = [(Build::Slots128, 1), (Build::Slots256, 4), (Build::Slots128, 11), (Build::Slots256, 366)];
    for (build, len) in lens {
        let setup = setup(len, 366);
        let mut device = configured(build, &setup);
        let mut sum = vec![0; len as usize];
        let mut commands = Vec::new();
        for number in 0..4 {
            let own = floats(len as usize, u32::from(number));
            sum = sum.iter().zip(&own).map(|(a, b)| add(*a, *b)).collect();
            commands.push(send(number, &contribution(seg(0, BASE, 1), &own)));
        }
        let report = device.run(&commands).unwrap();
        let expected = result_frame(&contribution(seg(0, BASE, 4), &sum));
        assert_eq!(report.frames.len(), 1, "{build:?}, {len} floats");
        assert_eq!(report.frames[0].destination, setup.result_ports());
        assert_eq!(report.frames[0].bytes, expected, "{build:?}, {len} floats");
        assert_eq!(counter(&mut device, event::SUMMED), 3);
        assert_eq!(counter(&mut device, event::COMPLETED), 1);
    }
}

#[test]
fn ordinary_frames_pass_untouched() {
    let mut device = configured(Build::Slots128, &setup(366, 366));
    let frames: Vec<_> = [60, 61, 64, 95, 96, 97, 1514]
        .into_iter()
        .map(|len| Frame { bytes: (0..len).map(|i| i as u8).collect(), source: 4, destination: 0 })
        .collect();
    let commands: Vec<_> = frames.iter().cloned().map(Command::Send).collect();
    let report = device.run(&commands).unwrap();
    assert_eq!(report.frames, frames);
    assert_eq!(counter(&mut device, event::ORDINARY), frames.len() as u32);
}

#[test]
fn data_packets_from_non_members_are_dropped_or_forwarded() {
    for forwards_strangers in [false, true] {
        let setup = JobSetup { forwards_strangers, threshold: 1, ..setup(4, 366) };
        let mut device = configured(Build::Slots128, &setup);
        let (stranger, floats) = (9, floats(4, 1));
        let payload = contribution(seg(0, BASE, 1), &floats);
        let foreign = Frame {
            bytes: member_frame(worker(stranger), Class::Data, &payload),
            source: 1,
            destination: HOST_PORT,
        };
        let report = device.run(&[Command::Send(foreign.clone()), send(0, &payload)]).unwrap();
        let result = Frame {
            bytes: result_frame(&contribution(seg(0, BASE, 1), &floats)),
            source: 0,
            destination: setup.result_ports(),
        };
        let forwarded = if forwards_strangers { vec![foreign, result] } else { vec![result] };
        assert_eq!(report.frames, forwarded);
        assert_eq!(counter(&mut device, event::UNKNOWN_MEMBER), u32::from(!forwards_strangers));
        assert_eq!(counter(&mut device, event::ORDINARY), u32::from(forwards_strangers));
    }
}

/// Regression test for a deadlock. A result that started immediately after its decision occupied the output while it
/// waited for its sums. Its last contribution, without which no sum was complete, waited behind an ordinary frame that
/// could not leave until the output was free.
#[test]
fn a_result_does_not_deadlock_with_its_own_sums() {
    let setup = setup(1, 366);
    let mut device = configured(Build::Slots128, &setup);
    let ordinary = Frame { bytes: vec![0x86; 1514], source: 1, destination: 0 };
    let mut commands = vec![Command::Pauses(Pause::Percent(0), Pause::Percent(70))];
    for round in 0..8 {
        for number in 0..4 {
            let payload = contribution(seg(0, BASE.plus(round), 1), &floats(1, u32::from(number)));
            if number == 3 {
                commands.push(Command::Send(ordinary.clone()));
            }
            commands.push(send(number, &payload));
        }
    }
    let report = device.run(&commands).unwrap();
    let ordinary_count = report.frames.iter().filter(|frame| **frame == ordinary).count();
    assert_eq!((ordinary_count, report.frames.len()), (8, 16));
}

#[test]
fn registers_follow_the_convention() {
    let mut device = RustDevice::new(Build::Slots128);
    device.run(&[Command::Write(offset::FLIP, 0x1234_5678), Command::Write(offset::DEBUG, 9)]).unwrap();
    assert_eq!(u64::from(read(&mut device, offset::ID)), ID);
    assert_eq!(read(&mut device, offset::FLIP), !0x1234_5678);
    assert_eq!(read(&mut device, offset::DEBUG), 9);
}

#[test]
fn the_status_register_shows_operations_in_progress() {
    let mut device = RustDevice::new(Build::Slots128);
    // The budget is 0, so all eight members have spent it.
    assert_eq!(read(&mut device, offset::STATUS), 0xff00_0100, "halted after reset");
    configure(&mut device, &setup(366, 366));
    assert_eq!(read(&mut device, offset::STATUS), 4, "H");
    for (register, value, bit) in [(offset::RESET, 1 << 4, 9), (offset::FINISH_COUNT, 20, 10)] {
        device.write(register, value).unwrap();
        assert_eq!(read(&mut device, offset::STATUS), 1 << bit | 4, "register {register:#x}");
        device.run(&[]).unwrap();
        assert_eq!(read(&mut device, offset::STATUS), 4, "register {register:#x}");
    }
}

#[test]
fn a_stalled_board_is_an_error() {
    let mut device = configured(Build::Slots128, &setup(366, 366));
    let frame = Frame { bytes: vec![0; 1514], source: 1, destination: 0 };
    let mut commands = vec![Command::Pauses(Pause::Percent(0), Pause::Percent(100))];
    // This is more than all queues together can hold.
    commands.extend(vec![Command::Send(frame); 4]);
    assert_eq!(device.run(&commands), Err(BoardError::Stalled));
}

/// Minimum average number of clock cycles per frame at the input: four ports of 10 Gb/s deliver at most one frame every
/// 3.36 cycles.
const LINE_RATE_CYCLES: f64 = 3.36;

/// Returns the average number of clock cycles per frame if the frames are sent back to back.
fn cycles_per_frame(device: &mut RustDevice, frames: &[Command]) -> f64 {
    let report = device.run(frames).unwrap();
    report.cycles as f64 / frames.len() as f64
}

#[test]
fn short_frames_of_any_kind_pass_at_line_rate() {
    let setup = setup(1, 366);
    let mut device = configured(Build::Slots128, &setup);
    let own = contribution(seg(0, BASE, 1), &floats(1, 0));
    device.run(&[send(0, &own)]).unwrap();
    let duplicate = send(0, &own);
    let wrong_length = send(1, &own[..8]);
    let stranger = Frame { bytes: member_frame(worker(9), Class::Data, &own), source: 1, destination: 0 };
    let early = send(2, &contribution(seg(0, BASE.plus(1), 1), &floats(1, 0)));
    let ordinary = Command::Send(Frame { bytes: vec![0x86; 60], source: 1, destination: 0 });
    let kinds = [duplicate, wrong_length, Command::Send(stranger), early, ordinary];
    for kind in 0..kinds.len() {
        let flood: Vec<_> = (0..200)
            .map(|number| if number % 4 == 3 { kinds[4].clone() } else { kinds[kind].clone() })
            .collect();
        let cycles = cycles_per_frame(&mut device, &flood);
        assert!(cycles < LINE_RATE_CYCLES, "kind {kind}: {cycles} cycles for each frame");
    }
    let mixed: Vec<_> = (0..400).map(|number| kinds[number * 7 % kinds.len()].clone()).collect();
    let cycles = cycles_per_frame(&mut device, &mixed);
    assert!(cycles < LINE_RATE_CYCLES, "mixed: {cycles} cycles for each frame");
}

/// Returns the contributions of all four workers to a segment of `len` floats, and the result.
fn segment(index: u32, round: Round, len: usize) -> (Vec<Command>, Vec<u8>) {
    let mut sum = vec![0; len];
    let mut commands = Vec::new();
    for number in 0..4 {
        let own = floats(len, u32::from(number) + 10 * index + round.get());
        sum = sum.iter().zip(&own).map(|(a, b)| add(*a, *b)).collect();
        commands.push(send(number, &contribution(seg(index, round, 1), &own)));
    }
    (commands, result_frame(&contribution(seg(index, round, 4), &sum)))
}

/// Returns the payload of a Help for the segments of the bitmap.
fn help_payload(job: u32, round: Round, first: u32, bitmap: &[u8]) -> Vec<u8> {
    let range = RangeRepr { round, first, count: 8 * bitmap.len() as u32 };
    let body = ControlBody::Help(SegmentSetRepr { range, bitmap });
    let repr = ControlRepr { job, request: 1, body };
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    bytes
}

/// Sends the payload of a Help from a worker.
fn send_help(number: u8, payload: &[u8]) -> Command {
    let bytes = member_frame(worker(number), Class::Control, payload);
    Command::Send(Frame { bytes, source: 1 << (2 * (number % 4)), destination: 0 })
}

/// Sends a Help from a worker for the segments of the bitmap.
fn help(number: u8, job: u32, round: Round, first: u32, bitmap: &[u8]) -> Command {
    send_help(number, &help_payload(job, round, first, bitmap))
}

/// Runs the commands, and returns the results that go to a single member, with their ports.
fn repeats(device: &mut RustDevice, commands: &[Command]) -> Vec<(u8, Vec<u8>)> {
    let frames = device.run(commands).unwrap().frames;
    let is_repeat = |frame: &Frame| frame.destination != 0 && frame.destination & HOST_PORT == 0;
    frames.into_iter().filter(is_repeat).map(|frame| (frame.destination, frame.bytes)).collect()
}

#[test]
fn a_late_contribution_gets_the_result_of_this_round_and_of_the_one_before() {
    for build in [Build::Slots128, Build::Slots256] {
        let mut device = configured(build, &setup(11, 11));
        let mut results = Vec::new();
        for round in 0..3 {
            let (commands, result) = segment(0, BASE.plus(round), 11);
            device.run(&commands).unwrap();
            results.push(result);
        }
        let late = |round, number| send(number, &contribution(seg(0, BASE.plus(round), 1), &floats(11, 0)));
        assert_eq!(repeats(&mut device, &[late(2, 1)]), [(0x04, results[2].clone())], "{build:?}");
        assert_eq!(repeats(&mut device, &[late(1, 3)]), [(0x40, results[1].clone())], "{build:?}");
        assert_eq!(repeats(&mut device, &[late(0, 3)]), [], "{build:?}: the slot has been reused twice");
        // A round that is open keeps the result before it.
        device.run(&segment(0, BASE.plus(3), 11).0[..2]).unwrap();
        assert_eq!(repeats(&mut device, &[late(2, 0)]), [(0x01, results[2].clone())], "{build:?}");
        assert_eq!(counter(&mut device, event::REPEATED), 3);
        assert_eq!(counter(&mut device, event::LATE), 3);
        assert_eq!(counter(&mut device, event::STALE_ROUND), 1);
    }
}

#[test]
fn the_result_before_is_kept_when_segments_share_a_slot() {
    // Segments 0, 128 and 256 use the same slot, and so does segment 0 of the next round.
    let mut device = configured(Build::Slots128, &setup(257, 1));
    let uses = [(0, 0), (128, 0), (256, 0), (0, 1)];
    let mut before = None;
    for (index, round) in uses {
        let (commands, result) = segment(index, BASE.plus(round), 1);
        device.run(&commands).unwrap();
        for (index, round, result) in before.iter().chain(&[(index, round, result.clone())]) {
            let late = send(0, &contribution(seg(*index, BASE.plus(*round), 1), &floats(1, 0)));
            assert_eq!(repeats(&mut device, &[late]), [(0x01, result.clone())], "{index} {round}");
        }
        before = Some((index, round, result));
    }
}

#[test]
fn a_help_gets_the_finished_segments_that_it_names() {
    let mut device = configured(Build::Slots128, &setup(17 * 3, 3));
    let mut results = Vec::new();
    for index in 0..17 {
        let (commands, result) = segment(index, BASE, 3);
        // Segment 5 lacks one contribution.
        let last = if index == 5 { 3 } else { 4 };
        device.run(&commands[..last]).unwrap();
        results.push(result);
    }
    let expected: Vec<_> = [1, 3, 11].map(|index: usize| (0x10, results[index].clone())).to_vec();
    // Segment 5 is not finished.
    assert_eq!(repeats(&mut device, &[help(2, 3, BASE, 1, &[0b0001_0101, 0b0000_0100])]), expected);
    assert_eq!(counter(&mut device, event::UNANSWERED), 1);
    assert_eq!(repeats(&mut device, &[help(2, 4, BASE, 1, &[0x15])]), [], "another job");
    assert_eq!(repeats(&mut device, &[help(2, 3, BASE, 10, &[0x15])]), [], "a range beyond the vector");
    assert_eq!(repeats(&mut device, &[help(9, 3, BASE, 1, &[0x15])]), [], "not a member");
    // The bitmap of 16 segments follows the header and the range, which take 24 bytes.
    let payload = help_payload(3, BASE, 1, &[0x15, 0]);
    assert_eq!(repeats(&mut device, &[send_help(2, &payload[..25])]), [], "a bitmap that is cut off");
    assert_eq!(
        repeats(&mut device, &[send_help(2, &payload[..26])]).len(),
        2,
        "a whole bitmap without padding"
    );
    assert_eq!(
        repeats(&mut device, &[Command::Write(offset::CONTROL, 3), help(2, 3, BASE, 1, &[0x15])]),
        [],
        "halted"
    );
}

#[test]
fn a_member_that_has_spent_its_budget_gets_no_results() {
    let mut device = configured(Build::Slots128, &setup(3, 3));
    device.run(&segment(0, BASE, 3).0).unwrap();
    device.run(&[Command::Write(offset::REPEATS, 5)]).unwrap();
    let late = |number| send(number, &contribution(seg(0, BASE, 1), &floats(3, 0)));
    // The job's result has restored eight results to each member's budget, but no member had spent any.
    let counts: Vec<_> = (0..7).map(|_| repeats(&mut device, &[late(1)]).len()).collect();
    assert_eq!(counts, [1, 1, 1, 1, 1, 0, 0]);
    assert_eq!(read(&mut device, offset::SKIPPED), 2);
    assert_eq!(read(&mut device, offset::STATUS) >> 24, 1 << 1);
    assert_eq!(repeats(&mut device, &[late(2)]).len(), 1, "the budget of another member");
    device.run(&segment(0, BASE.next(), 3).0).unwrap();
    assert_eq!(repeats(&mut device, &[late(1)]).len(), 1, "a result of the job adds eight results");
}

#[test]
fn a_repeated_result_waits_for_the_pace() {
    let mut device = configured(Build::Slots128, &setup(366, 366));
    device.run(&segment(0, BASE, 366).0).unwrap();
    let late = send(1, &contribution(seg(0, BASE, 1), &floats(366, 0)));
    let report = device.run(&vec![late; 12]).unwrap();
    assert_eq!(report.frames.len(), 12);
    // 1,538 bytes on the wire at 6.25 bytes per cycle; the first results may be ahead of the pace.
    assert!(report.cycles > 10 * 246, "{} cycles", report.cycles);
}

#[test]
fn the_host_reads_the_tables() {
    let mut device = configured(Build::Slots128, &setup(257, 1));
    for (index, last) in [(0, 4), (128, 4), (256, 2), (1, 1)] {
        device.run(&segment(index, BASE, 1).0[..last]).unwrap();
    }
    let words = |device: &mut RustDevice, slot| {
        device.run(&[Command::Write(offset::SLOT, slot)]).unwrap();
        [offset::SLOT_STATE, offset::SLOT_ROUND, offset::SLOT_SEGMENT, offset::SLOT_PREVIOUS]
            .map(|at| read(device, at))
    };
    let base = BASE.get();
    // Segment 256 is open with two contributions, in the third use of the slot; segment 128 is kept.
    let state = words(&mut device, 0);
    assert_eq!((state[0] & !8, &state[1..]), (2 << 16 | 0b11 << 8 | 0b101, &[base, 256, 4][..]));
    let state = words(&mut device, 1);
    assert_eq!((state[0] & !8, &state[1..]), (1 << 16 | 1 << 8 | 1, &[base, 1, 0][..]));
    assert_eq!(words(&mut device, 2)[0], 0, "an empty slot");
    let rounds = [offset::ROUND_NEXT, offset::ROUND_EVEN, offset::ROUND_ODD, offset::ROUND_RULES];
    // Round 7 is odd.
    assert_eq!(rounds.map(|at| read(&mut device, at)), [base + 1, 0, 255, 0x0f04 << 16]);
    // The state is that at the time of the selection.
    device.run(&[Command::Write(offset::SLOT, 1)]).unwrap();
    device.run(&segment(1, BASE, 1).0[1..]).unwrap();
    assert_eq!(read(&mut device, offset::SLOT_STATE) & 3, 1);
}
