//! The core allocates nothing after it was made: neither on the packet path nor for members and recovery.

mod common;

use std::alloc::System;

use common::{Harness, JOB, control, data, endpoint, join, range};
use iswitch_daemon::switch::Config;
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{Class, ControlBody};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Packets of a job's life: joins, rounds with losses and repeats, bad packets, a halt, a reset, leaves.
fn life() -> Vec<(u8, Class, Vec<u8>)> {
    let mut packets = Vec::new();
    for host in 1..=4 {
        packets.push((host, Class::Control, control(JOB, 1, ControlBody::Join(join(4)))));
    }
    for round in 0..3 {
        for host in [1, 2, 3, 4, 2, 9] {
            for (index, floats) in
                [(0, &[1.0, 2.0][..]), (1, &[3.0, f32::NAN]), (1, &[3.0, 4.0]), (2, &[5.0])]
            {
                packets.push((host, Class::Data, data(index, round, floats)));
            }
            let help = ControlBody::Help(SegmentSetRepr { range: range(round, 0, 3), bitmap: &[7] });
            packets.push((host, Class::Control, control(JOB, 2, help)));
        }
        let fbcast = ControlBody::FBcast(range(round, 0, 3));
        packets.push((1, Class::Control, control(JOB, 3, fbcast)));
    }
    packets.push((1, Class::Data, vec![0; 3]));
    packets.push((1, Class::Control, vec![0; 3]));
    packets.push((1, Class::Control, control(JOB, 4, ControlBody::SetH { threshold: 2 })));
    packets.push((1, Class::Control, control(JOB, 5, ControlBody::Halt)));
    let reset = ControlBody::Reset { round: iswitch_protocol::Round::new(0) };
    packets.push((1, Class::Control, control(JOB, 6, reset)));
    for host in 1..=4 {
        packets.push((host, Class::Control, control(JOB, 7, ControlBody::Leave)));
    }
    packets
}

#[test]
fn nothing_is_allocated_after_start() {
    let packets = life();
    for ordered in [false, true] {
        live(&packets, Harness::with(Config { memory_bytes: 1 << 20, ordered, ..Config::default() }));
    }
}

fn live(packets: &[(u8, Class, Vec<u8>)], mut harness: Harness) {
    let mut sent = 0;
    let region = Region::new(ALLOCATOR);
    for _ in 0..3 {
        for (host, class, bytes) in packets {
            harness.now_ms += 1;
            let now = harness.now();
            harness.switch.handle_datagrams(now, &endpoint(*host), *class, bytes, bytes.len());
            while let Some(transmit) = harness.switch.poll_transmit() {
                sent += transmit.recipients().count();
            }
            while harness.switch.poll_event().is_some() {}
            harness.switch.handle_timeout(now);
        }
    }
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0));
    assert!(sent > 300, "the test did something: {sent} packets sent");
    assert_eq!(harness.switch.jobs().count(), 0);
}
