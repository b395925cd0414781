//! Classic BPF program that selects iSwitch frames from the traffic of an interface, in the kernel.

use iswitch_protocol::limits::TOS_MASK;
use iswitch_protocol::wire::Classifier;

/// Number of instructions of the program.
pub(super) const FILTER_LEN: usize = 17;

/// Position of the instruction that rejects the frame.
const DROP: usize = FILTER_LEN - 2;
/// Position of the instruction that accepts the frame.
const TAKE: usize = FILTER_LEN - 1;

/// Return value that accepts a frame: the number of bytes to deliver, which exceeds the length of any frame.
const ACCEPT: u32 = 0x40000;

// Opcodes composed from the constants of linux/filter.h.
const LOAD_WORD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const LOAD_HALF: u16 = 0x28; // BPF_LD | BPF_H | BPF_ABS
const LOAD_BYTE: u16 = 0x30; // BPF_LD | BPF_B | BPF_ABS
const LOAD_HALF_AT_X: u16 = 0x48; // BPF_LD | BPF_H | BPF_IND
const LOAD_HEADER_LEN_TO_X: u16 = 0xb1; // BPF_LDX | BPF_B | BPF_MSH: X = 4 * (byte & 15)
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

/// Pseudo-offset `SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT`: a load from it returns whether the device has removed a VLAN
/// tag.
const VLAN_TAG_PRESENT: u32 = (-0x1000_i32 + 48) as u32;
pub(super) const ETHERTYPE_AT: u32 = 12;
pub(super) const ETHERTYPE_IPV4: u32 = 0x0800;
pub(super) const IP_AT: u32 = 14;
pub(super) const TOS_AT: u32 = IP_AT + 1;
pub(super) const FRAGMENT_AT: u32 = IP_AT + 6;
pub(super) const PROTOCOL_AT: u32 = IP_AT + 9;
pub(super) const PROTOCOL_UDP: u32 = 17;
/// Mask of the more-fragments flag and the fragment offset.
pub(super) const FRAGMENT_BITS: u32 = 0x3fff;
/// Offset of the UDP destination port, not including the length of the IPv4 header, which the program adds.
pub(super) const DESTINATION_PORT_AT: u32 = IP_AT + 2;

/// One instruction, with the layout of `struct sock_filter`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction {
    pub(super) code: u16,
    /// Number of instructions to skip if the comparison is true. `skip_false` is the number to skip if it is false.
    pub(super) skip_true: u8,
    pub(super) skip_false: u8,
    pub(super) operand: u32,
}

/// Returns the program. It accepts an untagged IPv4/UDP frame if the frame has one of the two ToS values and is either
/// a fragment or addressed to the UDP port of the switch.
///
/// With several threads, each thread has a program with its own UDP port, and only one program takes the fragments. All
/// programs together accept exactly the frames that [`super::IngressRule`] drops, because only the switch may handle a
/// frame that a program accepts.
pub(super) fn program(classifier: &Classifier, takes_fragments: bool) -> [Instruction; FILTER_LEN] {
    let load = |code, operand| Instruction { code, skip_true: 0, skip_false: 0, operand };
    // Jump offsets count from the next instruction.
    let jump = |at: usize, code, operand, yes: usize, no: usize| Instruction {
        code,
        skip_true: (yes - at - 1) as u8,
        skip_false: (no - at - 1) as u8,
        operand,
    };
    [
        load(LOAD_WORD, VLAN_TAG_PRESENT),
        jump(1, JUMP_EQUAL, 0, 2, DROP),
        load(LOAD_HALF, ETHERTYPE_AT),
        jump(3, JUMP_EQUAL, ETHERTYPE_IPV4, 4, DROP),
        load(LOAD_BYTE, PROTOCOL_AT),
        jump(5, JUMP_EQUAL, PROTOCOL_UDP, 6, DROP),
        load(LOAD_BYTE, TOS_AT),
        load(AND, TOS_MASK.into()),
        jump(8, JUMP_EQUAL, classifier.control_tos.into(), 10, 9),
        jump(9, JUMP_EQUAL, classifier.data_tos.into(), 10, DROP),
        load(LOAD_HALF, FRAGMENT_AT),
        jump(11, JUMP_ANY_BIT, FRAGMENT_BITS, if takes_fragments { TAKE } else { DROP }, 12),
        load(LOAD_HEADER_LEN_TO_X, IP_AT),
        load(LOAD_HALF_AT_X, DESTINATION_PORT_AT),
        jump(14, JUMP_EQUAL, classifier.udp_port.into(), TAKE, DROP),
        load(RETURN, 0),
        load(RETURN, ACCEPT),
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use iswitch_protocol::wire::frame::HEADERS_LEN_BYTES;
    use iswitch_protocol::wire::{Class, FrameAddresses};
    use proptest::prelude::*;

    use super::*;

    /// Returns whether the kernel would accept the frame. Interprets the instructions that the program uses.
    pub(in crate::port) fn accepts(frame: &[u8], vlan_tag_present: bool) -> bool {
        accepts_as(frame, vlan_tag_present, &Classifier::default(), true)
    }

    fn accepts_as(
        frame: &[u8],
        vlan_tag_present: bool,
        classifier: &Classifier,
        takes_fragments: bool,
    ) -> bool {
        let program = program(classifier, takes_fragments);
        let byte = |at: u32| frame.get(at as usize).map(|byte| u32::from(*byte));
        let half = |at: u32| Some(byte(at)? << 8 | byte(at + 1)?);
        let (mut a, mut x, mut pc) = (0, 0, 0);
        loop {
            let Instruction { code, skip_true, skip_false, operand } = program[pc];
            pc += 1;
            let mut branch = |condition: bool| {
                pc += usize::from(if condition { skip_true } else { skip_false });
                Some(a)
            };
            let next = match code {
                LOAD_WORD if operand == VLAN_TAG_PRESENT => Some(u32::from(vlan_tag_present)),
                LOAD_HALF => half(operand),
                LOAD_BYTE => byte(operand),
                LOAD_HALF_AT_X => half(operand + x),
                LOAD_HEADER_LEN_TO_X => byte(operand).map(|byte| {
                    x = 4 * (byte & 15);
                    a
                }),
                AND => Some(a & operand),
                JUMP_EQUAL => branch(a == operand),
                JUMP_ANY_BIT => branch(a & operand != 0),
                RETURN => return operand != 0,
                _ => panic!("no such instruction: {code:#x} {operand:#x}"),
            };
            // A load beyond the end of the frame ends the program, and the frame is rejected.
            let Some(next) = next else { return false };
            a = next;
        }
    }

    pub(in crate::port) fn frame(class: Class) -> Vec<u8> {
        let addresses = FrameAddresses {
            source_mac: [2; 6],
            destination_mac: [4; 6],
            source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 5000),
            destination: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), Classifier::default().udp_port),
        };
        let mut frame = Classifier::default().emit_headers(class, &addresses, 12).to_vec();
        frame.resize(HEADERS_LEN_BYTES + 12, 0);
        frame
    }

    fn changed(at: usize, value: u8) -> Vec<u8> {
        let mut frame = frame(Class::Data);
        frame[at] = value;
        frame
    }

    #[test]
    fn protocol_frames_are_accepted() {
        assert!(accepts(&frame(Class::Control), false));
        assert!(accepts(&frame(Class::Data), false));
        assert!(accepts(&changed(15, 0x1c | 3), false), "ECN bits do not count");
        assert!(accepts(&changed(20, 0x20), false), "first fragment");
        let mut last_fragment = changed(21, 1);
        last_fragment[36] = 0xff; // a later fragment has no UDP header
        assert!(accepts(&last_fragment, false));
        let mut options = frame(Class::Data);
        options[14] = 0x46;
        options.splice(34..34, [1; 4]);
        assert!(accepts(&options, false), "IPv4 options");
    }

    #[test]
    fn each_thread_accepts_its_own_udp_port_and_one_of_them_the_fragments() {
        let next = Classifier { udp_port: Classifier::default().udp_port + 1, ..Classifier::default() };
        let own = frame(Class::Data);
        assert!(!accepts_as(&own, false, &next, false));
        let [high, low] = next.udp_port.to_be_bytes();
        let mut of_next = changed(36, high);
        of_next[37] = low;
        assert!(accepts_as(&of_next, false, &next, false) && !accepts(&of_next, false));
        let fragment = changed(20, 0x20);
        assert!(accepts(&fragment, false) && !accepts_as(&fragment, false, &next, false));
    }

    #[test]
    fn ordinary_traffic_is_left_to_the_kernel() {
        assert!(!accepts(&frame(Class::Data), true), "VLAN tag removed by the device");
        assert!(!accepts(&changed(12, 0x81), false), "VLAN tag in the frame");
        assert!(!accepts(&changed(13, 0x06), false), "ARP");
        assert!(!accepts(&changed(15, 0), false), "best-effort ToS");
        assert!(!accepts(&changed(23, 6), false), "TCP");
        assert!(!accepts(&changed(37, 0), false), "another UDP port");
        assert!(!accepts(&frame(Class::Data)[..37], false), "no room for a port");
        assert!(!accepts(&[], false));
    }

    proptest! {
        /// The filter accepts every frame that the classifier recognizes and that is long enough to have a UDP port.
        #[test]
        fn the_filter_hides_nothing_from_the_classifier(
            at in 12usize..38, value: u8, second_at in 12usize..38, second: u8,
        ) {
            let mut frame = frame(Class::Data);
            frame[at] = value;
            frame[second_at] = second;
            if Classifier::default().classify(&frame).is_some_and(|outcome| outcome.is_ok()) {
                prop_assert!(accepts(&frame, false));
            }
            if accepts(&frame, false) {
                // Conversely, the only other frames that the filter accepts have a malformed header, which the
                // classifier reports as an error or treats as ordinary traffic.
                prop_assert!(Classifier::default().class_of(frame[15]).is_some());
            }
        }
    }
}
