//! Data types of the NetFPGA-SUME's 256-bit AXI4-Stream; byte 0 of a frame is `tdata[7:0]`.
//!
//! The first field of a structure occupies the lowest bits. A half is 16 bits in stream order, with the first byte in
//! the low bits, so a 16-bit header field, which is big-endian on the wire, appears byte-swapped.

use rust_hdl::prelude::*;

/// One beat as 16 halves. Because the headers take 50 bytes, floats start at odd halves.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Halves {
    pub h0: Bits<16>,
    pub h1: Bits<16>,
    pub h2: Bits<16>,
    pub h3: Bits<16>,
    pub h4: Bits<16>,
    pub h5: Bits<16>,
    pub h6: Bits<16>,
    pub h7: Bits<16>,
    pub h8: Bits<16>,
    pub h9: Bits<16>,
    pub h10: Bits<16>,
    pub h11: Bits<16>,
    pub h12: Bits<16>,
    pub h13: Bits<16>,
    pub h14: Bits<16>,
    pub h15: Bits<16>,
}

/// One burst of eight floats.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Lanes {
    pub l0: Bits<32>,
    pub l1: Bits<32>,
    pub l2: Bits<32>,
    pub l3: Bits<32>,
    pub l4: Bits<32>,
    pub l5: Bits<32>,
    pub l6: Bits<32>,
    pub l7: Bits<32>,
}

/// `tuser` of a frame's first beat, in the layout of the NetFPGA reference switch.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Tuser {
    /// Length of the frame, in bytes.
    pub len: Bits<16>,
    /// Source port, one-hot.
    pub source: Bits<8>,
    /// Destination ports, one bit each.
    pub destination: Bits<8>,
    /// Bits for other modules, which pass through the accelerator unchanged.
    pub rest: Bits<96>,
}

/// One beat with its sideband signals.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Flit {
    pub data: Halves,
    pub keep: Bits<32>,
    pub user: Tuser,
    pub last: Bit,
}

/// Size of a beat, in bytes.
pub const BEAT_LEN_BYTES: usize = 32;

impl Halves {
    /// Creates a beat from its bytes.
    pub fn from_bytes(bytes: &[u8; BEAT_LEN_BYTES]) -> Self {
        let half = |i: usize| u64::from(u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]])).into();
        Self {
            h0: half(0),
            h1: half(1),
            h2: half(2),
            h3: half(3),
            h4: half(4),
            h5: half(5),
            h6: half(6),
            h7: half(7),
            h8: half(8),
            h9: half(9),
            h10: half(10),
            h11: half(11),
            h12: half(12),
            h13: half(13),
            h14: half(14),
            h15: half(15),
        }
    }

    /// Returns the 16 halves in stream order.
    pub fn to_array(self) -> [Bits<16>; 16] {
        [
            self.h0, self.h1, self.h2, self.h3, self.h4, self.h5, self.h6, self.h7, self.h8, self.h9,
            self.h10, self.h11, self.h12, self.h13, self.h14, self.h15,
        ]
    }

    /// Returns the bytes of the beat.
    pub fn to_bytes(self) -> [u8; BEAT_LEN_BYTES] {
        let mut bytes = [0; BEAT_LEN_BYTES];
        for (pair, half) in bytes.chunks_exact_mut(2).zip(self.to_array()) {
            pair.copy_from_slice(&half.to_u16().to_le_bytes());
        }
        bytes
    }
}

impl Lanes {
    /// Returns the eight floats in order.
    pub fn to_array(self) -> [Bits<32>; 8] {
        [self.l0, self.l1, self.l2, self.l3, self.l4, self.l5, self.l6, self.l7]
    }
}

/// Converts halves to floats, which are another view of the same 256 bits. The block is pure wiring.
#[derive(LogicBlock, Default)]
pub struct HalvesToLanes {
    pub halves: Signal<In, Halves>,
    pub lanes: Signal<Out, Lanes>,
}

impl Logic for HalvesToLanes {
    fn update(&mut self) {
        let halves = self.halves.val().to_array();
        let lane = |i: usize| {
            let (low, high) = (halves[2 * i].to_u16(), halves[2 * i + 1].to_u16());
            (u64::from(high) << 16 | u64::from(low)).into()
        };
        self.lanes.next = Lanes {
            l0: lane(0),
            l1: lane(1),
            l2: lane(2),
            l3: lane(3),
            l4: lane(4),
            l5: lane(5),
            l6: lane(6),
            l7: lane(7),
        };
    }

    fn connect(&mut self) {
        self.lanes.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom("always @(*) lanes = halves;\n".to_owned())
    }
}

/// Converts floats to halves. The block is pure wiring.
#[derive(LogicBlock, Default)]
pub struct LanesToHalves {
    pub lanes: Signal<In, Lanes>,
    pub halves: Signal<Out, Halves>,
}

impl Logic for LanesToHalves {
    fn update(&mut self) {
        let mut bytes = [0; BEAT_LEN_BYTES];
        for (word, lane) in bytes.chunks_exact_mut(4).zip(self.lanes.val().to_array()) {
            word.copy_from_slice(&lane.to_u32().to_le_bytes());
        }
        self.halves.next = Halves::from_bytes(&bytes);
    }

    fn connect(&mut self) {
        self.halves.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom("always @(*) halves = lanes;\n".to_owned())
    }
}
