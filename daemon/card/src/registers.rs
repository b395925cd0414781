//! The register map of the accelerator. The constants, the C header and the table in hdl/README.md are generated from
//! this one list.

use serde::Serialize;

/// Value of the ID register: the letters "iSW" and a zero byte, in little-endian order.
pub const ID: u32 = 0x0057_5369;
/// Version of this register map: the value of the VERSION register.
pub const VERSION: u32 = 4;

/// Names of the counters in the words of [`offset::COUNTERS`].
pub const COUNTER_NAMES: [&str; 18] = [
    "ordinary",
    "control",
    "summed",
    "completed",
    "forced",
    "unknown_member",
    "malformed",
    "halted",
    "seg_out_of_range",
    "length_mismatch",
    "bad_weight",
    "duplicate",
    "late",
    "stale_round",
    "early_round",
    "not_participant",
    "repeated",
    "unanswered",
];

/// Permitted access to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// A write has no effect on the value.
    Read,
    /// The register can be read and written.
    ReadWrite,
}

impl Access {
    /// Returns the abbreviation that the tables use for this access.
    #[must_use]
    pub const fn letters(self) -> &'static str {
        match self {
            Self::Read => "r",
            Self::ReadWrite => "rw",
        }
    }
}

/// Register, or array of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Register {
    /// Name of the register, in capitals.
    pub name: &'static str,
    /// Byte offset of the first word.
    pub offset: u16,
    /// Number of 32-bit words.
    pub words: u16,
    /// Permitted access.
    pub access: Access,
    /// Description of the content, in Markdown without line breaks.
    pub content: &'static str,
}

macro_rules! registers {
    ($($name:ident = $offset:literal, $words:literal, $access:ident, $content:literal;)*) => {
        /// Byte offsets of the registers. The first seven registers are common to all NetFPGA cores. IPv4 addresses,
        /// UDP ports and MAC addresses are in wire byte order, with the first byte in the lowest bits.
        pub mod offset {
            $(#[doc = $content] pub const $name: u16 = $offset;)*
        }

        /// All registers, in ascending order of their offsets.
        pub const REGISTERS: &[Register] = &[$(Register {
            name: stringify!($name),
            offset: $offset,
            words: $words,
            access: Access::$access,
            content: $content,
        }),*];
    };
}

registers! {
    ID = 0x00, 1, Read,
        "identification of the core: 0x00575369, the letters \"iSW\" and a zero byte";
    VERSION = 0x04, 1, Read,
        "version of this register map: 4";
    RESET = 0x08, 1, ReadWrite,
        "writing 1 to bit 0 clears the counters; writing 1 to bit 4 discards all sums";
    FLIP = 0x0C, 1, ReadWrite,
        "reads as the complement of the value written";
    DEBUG = 0x10, 1, ReadWrite,
        "reads as the value written";
    PKTIN = 0x14, 1, Read,
        "number of frames received";
    PKTOUT = 0x18, 1, Read,
        "number of frames sent";
    STATUS = 0x1C, 1, Read,
        "bits 7..0: H; bit 8: halted; bit 9: sums are being discarded; bit 10: segments are being finished; bit \
         11: results wait, are being sent or have been requested again; bit 12: a value outside its range has \
         been refused since the counters were last cleared; bits 31..24: members that have spent their budget of \
         repeated results (all of them while REPEATS is 0)";
    CONTROL = 0x20, 1, ReadWrite,
        "bit 0: take the job's frames; bit 1: halted; bit 2: forward data packets whose sender is not a member, \
         instead of dropping them; bits 15..8: rate of results in quarters of a byte per cycle (25 for 10 Gb/s), or \
         0 for no limit";
    THRESHOLD = 0x24, 1, ReadWrite,
        "H of future rounds, 1 to 64; if bit 31 is set, the write also changes H of the open rounds";
    BASE_ROUND = 0x28, 1, ReadWrite,
        "first round of the job";
    LAST_INDEX = 0x2C, 1, ReadWrite,
        "number of segments of the vector, minus one";
    FLOATS = 0x30, 1, ReadWrite,
        "bits 8..0: number of floats of a segment; bits 24..16: number of floats of the last segment";
    JOB = 0x34, 1, ReadWrite,
        "identifier of the job";
    FILTER = 0x38, 1, ReadWrite,
        "bits 7..0: ToS of data packets; bits 15..8: ToS of control packets; bits 31..16: UDP port of the switch";
    FINISH_ROUND = 0x3C, 1, ReadWrite,
        "round of the segments to finish";
    FINISH_FIRST = 0x40, 1, ReadWrite,
        "first segment to finish";
    FINISH_COUNT = 0x44, 1, ReadWrite,
        "number of segments to finish, at most 1,024; a write starts the operation; if bit 31 is set, only \
         segments with enough contributions are finished";
    TO_MAC = 0x48, 1, ReadWrite,
        "destination MAC address of results, first four bytes";
    MACS = 0x4C, 1, ReadWrite,
        "last two bytes of the destination MAC address, and first two of the source MAC address";
    FROM_MAC = 0x50, 1, ReadWrite,
        "last four bytes of the source MAC address";
    FROM_ADDRESS = 0x54, 1, ReadWrite,
        "IPv4 address of the switch: source of results, and destination of the job's frames";
    TO_ADDRESS = 0x58, 1, ReadWrite,
        "destination IPv4 address";
    PORTS = 0x5C, 1, ReadWrite,
        "UDP ports of results; bits 15..0: source; bits 31..16: destination";
    RESULT = 0x60, 1, ReadWrite,
        "bits 7..0: ToS of results; bits 15..8: `tuser` destination of control packets, to which results add the \
         ports of the members; bits 31..16: one's-complement sum of the half-words of the IPv4 header that are \
         the same in all results";
    HAZARDS = 0x64, 1, Read,
        "number of cycles in which a burst stalled because an earlier burst with the same address was in the loop";
    REPEATS = 0x68, 1, ReadWrite,
        "bits 15..0: budget of each member, the number of results that it may request again; each result of the \
         job restores 8 of them, and so do 2^20 clock cycles";
    SKIPPED = 0x6C, 1, Read,
        "number of requests for results that were discarded because the budget was spent or because too many \
         requests waited";
    SLOT = 0x70, 1, ReadWrite,
        "number of a slot; a write copies the state of the slot to the four registers SLOT_STATE to SLOT_PREVIOUS";
    MEMBERS = 0x80, 16, ReadWrite,
        "eight members of two words each: first the IPv4 address, then a word with bits 15..0: UDP port; bit 16: \
         valid; bit 17: the member is a switch; bits 31..24: port of the board as a bit of `tuser`";
    COUNTERS = 0x100, 32, Read,
        "counters, of which 18 are used, in this order: ordinary, control, summed, completed, forced, and one for \
         each drop reason: unknown_member, malformed, halted, seg_out_of_range, length_mismatch, bad_weight, \
         duplicate, late, stale_round, early_round, not_participant; then repeated (results that were \
         retransmitted) and unanswered (requests for results that are not kept)";
    SLOT_STATE = 0x180, 1, Read,
        "bit 0: the sum of the slot is open; bit 1: it is complete; bit 2: the sum of the segment that used the \
         slot before is kept; bit 3: bank of the sum; bits 15..8: members in the sum; bits 31..16: number of \
         worker gradients in the sum; if bits 0 and 1 are clear, the slot is empty";
    SLOT_ROUND = 0x184, 1, Read,
        "round of the sum";
    SLOT_SEGMENT = 0x188, 1, Read,
        "index of the segment of the sum";
    SLOT_PREVIOUS = 0x18C, 1, Read,
        "number of worker gradients in the sum that is kept";
    ROUND_NEXT = 0x190, 1, Read,
        "next round to open";
    ROUND_EVEN = 0x194, 1, Read,
        "number of segments of the even round that are not finished";
    ROUND_ODD = 0x198, 1, Read,
        "number of segments of the odd round that are not finished";
    ROUND_RULES = 0x19C, 1, Read,
        "bits 7..0: H of the even round; bits 15..8: members that take part in it; bits 23..16 and 31..24: those \
         of the odd round";
}
