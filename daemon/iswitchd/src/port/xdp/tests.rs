//! Tests that run the program in the kernel. They need root; without it they report that they are skipped.

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use iswitch_protocol::wire::{Class, Classifier};
use proptest::prelude::*;

use super::super::filter::tests::{accepts, frame};
use super::bpf;
use super::program::{XDP_DROP, XDP_PASS, program};

/// Minimum length of a frame on which the kernel can run the program, in bytes.
const ETHERNET_HEADER: usize = 14;

/// Loads the program with a map that contains no sockets. The program therefore drops the frames that it would
/// otherwise redirect.
fn load() -> Option<OwnedFd> {
    let map = match bpf::create_socket_map(1) {
        Ok(map) => map,
        Err(error) => {
            let line = format!("SKIPPED a test of the XDP program, which needs root and bpf(2) ({error})\n");
            assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
            let _ = std::io::stderr().write_all(line.as_bytes());
            return None;
        }
    };
    Some(
        bpf::load(&program(&Classifier::default(), map.as_raw_fd()))
            .expect("the kernel should accept the program"),
    )
}

fn takes(program: &OwnedFd, frame: &[u8]) -> bool {
    match bpf::test_run(program.as_fd(), frame).expect("the kernel should run the program") {
        XDP_DROP => true,
        XDP_PASS => false,
        other => panic!("unexpected return value of the program: {other}"),
    }
}

#[test]
fn a_queue_without_a_socket_drops_only_protocol_frames() {
    let Some(program) = load() else { return };
    assert!(takes(&program, &frame(Class::Control)) && takes(&program, &frame(Class::Data)));
    let mut other_port = frame(Class::Data);
    other_port[37] ^= 1;
    assert!(!takes(&program, &other_port));
}

#[test]
fn the_xdp_program_accepts_the_same_frames_as_the_classic_filter() {
    let Some(program) = load() else { return };
    let bytes = proptest::collection::vec((12_usize..38, any::<u8>()), 0..4);
    proptest!(|(is_data: bool, bytes in bytes, options in 0_usize..11, len in ETHERNET_HEADER..100)| {
        let mut frame = frame(if is_data { Class::Data } else { Class::Control });
        frame[14] += options as u8;
        frame.splice(34..34, vec![1; 4 * options]);
        bytes.iter().for_each(|(at, value)| frame[*at] = *value);
        frame.truncate(len);
        prop_assert_eq!(takes(&program, &frame), accepts(&frame, false), "{:02x?}", frame);
    });
}
