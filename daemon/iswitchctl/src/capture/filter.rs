//! Classic BPF program that selects iSwitch packets from the traffic of an interface, in both directions.

use iswitch_protocol::limits::TOS_MASK;
use iswitch_protocol::wire::Classifier;
use iswitch_socket::capture::Instruction;

// Opcodes composed from the constants of linux/filter.h.
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_AT_X: u16 = 0x48;
const LOAD_HEADER_LEN_TO_X: u16 = 0xb1;
const AND: u16 = 0x54;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const ETHERTYPE_AT: u32 = 12;
const ETHERTYPE_IPV4: u32 = 0x0800;
const IP_AT: u32 = 14;
const TOS_AT: u32 = IP_AT + 1;
const FRAGMENT_AT: u32 = IP_AT + 6;
const FRAGMENT_OFFSET: u32 = 0x1fff;
const PROTOCOL_AT: u32 = IP_AT + 9;
const PROTOCOL_UDP: u32 = 17;
/// Return value that accepts a packet: a number of bytes that exceeds the length of any frame.
const ACCEPT: u32 = 0x40000;

const TAKE: usize = 16;
const DROP: usize = 15;

/// Returns the program. It accepts IPv4/UDP packets that have one of the two ToS values and whose source or destination
/// is the UDP port of the switch. It also accepts the second and later fragments of a packet with such a ToS. iSwitch
/// packets should never be fragmented, so a capture must reveal fragments.
pub(super) fn program(classifier: &Classifier) -> [Instruction; TAKE + 1] {
    let load = |code, operand| (code, 0, 0, operand);
    // Jump offsets count from the next instruction.
    let jump = |at: usize, code, operand, yes: usize, no: usize| {
        (code, (yes - at - 1) as u8, (no - at - 1) as u8, operand)
    };
    let port = classifier.udp_port.into();
    [
        load(LOAD_HALF, ETHERTYPE_AT),
        jump(1, JUMP_EQUAL, ETHERTYPE_IPV4, 2, DROP),
        load(LOAD_BYTE, PROTOCOL_AT),
        jump(3, JUMP_EQUAL, PROTOCOL_UDP, 4, DROP),
        load(LOAD_BYTE, TOS_AT),
        load(AND, TOS_MASK.into()),
        jump(6, JUMP_EQUAL, classifier.control_tos.into(), 8, 7),
        jump(7, JUMP_EQUAL, classifier.data_tos.into(), 8, DROP),
        load(LOAD_HALF, FRAGMENT_AT),
        jump(9, JUMP_ANY_BIT, FRAGMENT_OFFSET, TAKE, 10),
        load(LOAD_HEADER_LEN_TO_X, IP_AT),
        load(LOAD_HALF_AT_X, IP_AT),
        jump(12, JUMP_EQUAL, port, TAKE, 13),
        load(LOAD_HALF_AT_X, IP_AT + 2),
        jump(14, JUMP_EQUAL, port, TAKE, DROP),
        load(RETURN, 0),
        load(RETURN, ACCEPT),
    ]
}
