//! eBPF program that redirects iSwitch frames to AF_XDP sockets and leaves all others to the kernel.
//!
//! The program is assembled here, because it is short and an eBPF compiler is not part of a Rust toolchain.

use std::os::fd::RawFd;

use iswitch_protocol::limits::TOS_MASK;
use iswitch_protocol::wire::Classifier;

use crate::port::filter;

/// Verdicts of a program (`enum xdp_action`): drop the frame, or pass it to the kernel.
pub(super) const XDP_DROP: u32 = 1;
pub(super) const XDP_PASS: u32 = 2;

// Registers. R0 holds the return value of a function, R1 to R5 its arguments.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;

// Opcodes composed from the constants of linux/bpf.h.
const LOAD_WORD: u8 = 0x61; // BPF_LDX | BPF_MEM | BPF_W
const LOAD_HALF: u8 = 0x69; // BPF_LDX | BPF_MEM | BPF_H
const LOAD_BYTE: u8 = 0x71; // BPF_LDX | BPF_MEM | BPF_B
const LOAD_MAP: u8 = 0x18; // BPF_LD | BPF_IMM | BPF_DW, two instructions long
const MOVE: u8 = 0xbf; // BPF_ALU64 | BPF_MOV | BPF_X
const MOVE_CONSTANT: u8 = 0xb7; // BPF_ALU64 | BPF_MOV | BPF_K
const ADD_CONSTANT: u8 = 0x07; // BPF_ALU64 | BPF_ADD | BPF_K
const AND_CONSTANT: u8 = 0x57; // BPF_ALU64 | BPF_AND | BPF_K
const JUMP: u8 = 0x05; // BPF_JMP | BPF_JA
const JUMP_GREATER: u8 = 0x2d; // BPF_JMP | BPF_JGT | BPF_X
const JUMP_EQUAL: u8 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_NOT_EQUAL: u8 = 0x55; // BPF_JMP | BPF_JNE | BPF_K
const CALL: u8 = 0x85; // BPF_JMP | BPF_CALL
const EXIT: u8 = 0x95; // BPF_JMP | BPF_EXIT

/// Source register of [`LOAD_MAP`] that marks the constant as the descriptor of a map (`BPF_PSEUDO_MAP_FD`).
const MAP_DESCRIPTOR: u8 = 1;
/// Number of the function `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;

// Offsets in struct xdp_md.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;

// Offsets and values of the classic filter, converted to the types of eBPF instructions.
const ETHERTYPE_AT: i16 = filter::ETHERTYPE_AT as i16;
const IP_AT: i16 = filter::IP_AT as i16;
const TOS_AT: i16 = filter::TOS_AT as i16;
const FRAGMENT_AT: i16 = filter::FRAGMENT_AT as i16;
const PROTOCOL_AT: i16 = filter::PROTOCOL_AT as i16;
/// Offset of the UDP destination port, not including the length of the IPv4 header, which the program adds.
const PORT_AT: i16 = filter::DESTINATION_PORT_AT as i16;
const ETHERTYPE_IPV4: u16 = filter::ETHERTYPE_IPV4 as u16;
const PROTOCOL_UDP: i32 = filter::PROTOCOL_UDP as i32;
const FRAGMENT_BITS: u16 = filter::FRAGMENT_BITS as u16;

/// One instruction, with the layout of `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    code: u8,
    /// Destination in the low four bits and source in the high four bits; reversed on big-endian machines.
    registers: u8,
    offset: i16,
    constant: i32,
}

/// Target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    TosIsOurs,
    /// Start of the code that runs if the length of the IPv4 header, in 32-bit words, is not the given one. This code
    /// checks the next possible length.
    LongerThan(i16),
    Take,
    Pass,
}

/// A program under construction.
#[derive(Default)]
struct Assembly {
    instructions: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

impl Assembly {
    fn emit(&mut self, code: u8, destination: u8, source: u8, offset: i16, constant: i32) {
        let registers = if cfg!(target_endian = "little") {
            source << 4 | destination
        } else {
            destination << 4 | source
        };
        self.instructions.push(Instruction { code, registers, offset, constant });
    }

    fn load(&mut self, code: u8, destination: u8, source: u8, offset: i16) {
        self.emit(code, destination, source, offset, 0);
    }

    fn copy(&mut self, code: u8, destination: u8, source: u8) {
        self.emit(code, destination, source, 0, 0);
    }

    fn constant(&mut self, code: u8, destination: u8, constant: i32) {
        self.emit(code, destination, 0, 0, constant);
    }

    fn jump(&mut self, code: u8, left: u8, constant: i32, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.constant(code, left, constant);
    }

    /// Passes the frame to the kernel if fewer than `len` bytes of the frame follow the position in the register
    /// `from`.
    fn pass_if_shorter(&mut self, from: u8, len: i16) {
        self.copy(MOVE, R4, from);
        self.constant(ADD_CONSTANT, R4, len.into());
        self.jumps.push((self.instructions.len(), Label::Pass));
        self.copy(JUMP_GREATER, R4, R3);
    }

    fn label(&mut self, label: Label) {
        self.labels.push((label, self.instructions.len()));
    }

    fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let to = self.labels.iter().find(|(other, _)| *other == label).map_or(at, |(_, to)| *to);
            // Jump offsets count from the next instruction, and all jumps go forward.
            self.instructions[at].offset = (to - at - 1) as i16;
        }
        self.instructions
    }
}

/// Returns the program. It redirects the frames that [the classic filter](super::super::filter) accepts to a socket of
/// `map`: the socket of the receive queue on which the frame arrived. If the queue of such a frame has no socket, the
/// program drops the frame.
///
/// XDP sees frames before VLAN tags are processed, but it does not see a tag that the device has removed.
pub(super) fn program(classifier: &Classifier, map: RawFd) -> Vec<Instruction> {
    // The program loads half-words in network byte order, as they are stored in the frame.
    let network = |value: u16| i32::from(value.to_be());
    let mut it = Assembly::default();
    it.load(LOAD_WORD, R2, R1, DATA);
    it.load(LOAD_WORD, R3, R1, DATA_END);
    it.pass_if_shorter(R2, PROTOCOL_AT + 1);
    it.load(LOAD_HALF, R5, R2, ETHERTYPE_AT);
    it.jump(JUMP_NOT_EQUAL, R5, network(ETHERTYPE_IPV4), Label::Pass);
    it.load(LOAD_BYTE, R5, R2, PROTOCOL_AT);
    it.jump(JUMP_NOT_EQUAL, R5, PROTOCOL_UDP, Label::Pass);
    it.load(LOAD_BYTE, R5, R2, TOS_AT);
    it.constant(AND_CONSTANT, R5, TOS_MASK.into());
    it.jump(JUMP_EQUAL, R5, classifier.control_tos.into(), Label::TosIsOurs);
    it.jump(JUMP_NOT_EQUAL, R5, classifier.data_tos.into(), Label::Pass);
    it.label(Label::TosIsOurs);
    it.load(LOAD_HALF, R5, R2, FRAGMENT_AT);
    it.constant(AND_CONSTANT, R5, network(FRAGMENT_BITS));
    it.jump(JUMP_NOT_EQUAL, R5, 0, Label::Take);
    // Length of the IPv4 header, in 32-bit words.
    it.load(LOAD_BYTE, R5, R2, IP_AT);
    it.constant(AND_CONSTANT, R5, 15);
    // Each length is compared in turn, the usual one first, because the verifier allows variable packet offsets only in
    // programs loaded with CAP_PERFMON.
    for words in [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4] {
        let port_at = PORT_AT + 4 * words;
        it.jump(JUMP_NOT_EQUAL, R5, words.into(), Label::LongerThan(words));
        it.pass_if_shorter(R2, port_at + 2);
        it.load(LOAD_HALF, R5, R2, port_at);
        it.jump(JUMP_EQUAL, R5, network(classifier.udp_port), Label::Take);
        it.jump(JUMP, 0, 0, Label::Pass);
        it.label(Label::LongerThan(words));
    }
    it.label(Label::Pass);
    it.constant(MOVE_CONSTANT, R0, XDP_PASS as i32);
    it.emit(EXIT, 0, 0, 0, 0);
    it.label(Label::Take);
    it.load(LOAD_WORD, R2, R1, QUEUE);
    it.emit(LOAD_MAP, R1, MAP_DESCRIPTOR, 0, map);
    it.emit(0, 0, 0, 0, 0);
    // Return value if the map has no socket for the queue.
    it.constant(MOVE_CONSTANT, R3, XDP_DROP as i32);
    it.constant(CALL, 0, REDIRECT_MAP);
    it.emit(EXIT, 0, 0, 0, 0);
    it.finish()
}
