//! Delays of the primitives and nets of a Virtex-7 (speed grade -3), in nanoseconds.
//!
//! Values marked as measured come from the post-route timing report of the NetFPGA-SUME reference switch (Vivado
//! 2016.4, same part and grade). That report has too few paths through carry chains, LUT RAMs and shift registers; the
//! delays of these primitives are estimates from the data sheet (DS183).

/// Returns the measured delay of a net with the given fan-out, which is the number of pins that the net drives.
pub fn net_ns(fan_out: usize) -> f64 {
    match fan_out {
        0..=1 => 0.30,
        2..=3 => 0.36,
        4..=8 => 0.50,
        9..=20 => 0.75,
        21..=60 => 1.10,
        _ => 1.85,
    }
}

/// Measured clock-to-output delay of a flip-flop. Inputs of the top module are assumed to come from a flip-flop.
pub const CLOCK_TO_Q_NS: f64 = 0.216;
/// Set-up time of a flip-flop's data input. Outputs of the top module are assumed to lead to a flip-flop.
pub const SETUP_NS: f64 = 0.04;
/// Delay of a route-through LUT, which only passes a signal on to a pin of a carry chain or wide multiplexer that has
/// no other input path.
pub const PASS_NS: f64 = 0.05;

const BLOCK_RAM_TO_OUTPUT_NS: f64 = 1.564; // measured, without output register
const BLOCK_RAM_SETUP_NS: f64 = 0.42;
const LUT_MEMORY_TO_OUTPUT_NS: f64 = 1.0;
const LUT_MEMORY_READ_NS: f64 = 0.12;
const LUT_MEMORY_SETUP_NS: f64 = 0.15;
const ENABLE_SETUP_NS: f64 = 0.20;
const RESET_SETUP_NS: f64 = 0.27;

/// Types of primitives in the timing model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// FDRE, FDSE, FDCE and FDPE.
    FlipFlop,
    /// LUT1 to LUT6, with the number of inputs; also INV, which is implemented as a LUT1.
    Lut(u8),
    /// MUXF7 and MUXF8, located after the LUTs of a slice.
    WideMux,
    /// CARRY4.
    Carry,
    /// RAM32M and RAM64M: distributed RAM with the read ports A, B and C and the read and write port D.
    QuadRam,
    /// RAM32X1D, RAM64X1D and RAM128X1D: dual-port distributed RAM with a width of one bit.
    DualRam,
    /// SRL16E and SRLC32E.
    ShiftRegister,
    /// RAMB18E1 and RAMB36E1.
    BlockRam,
}

/// Role of an input pin in the timing analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InputRole {
    /// Clock input.
    Clock,
    /// End point of paths. The value is the set-up time, in nanoseconds.
    Ends(f64),
    /// Combinational input, whose paths continue to the outputs of the cell.
    Passes,
}

impl Kind {
    /// Returns the primitive with the given name, or `None` if the model has no entry for it.
    pub fn of(primitive: &str) -> Option<Self> {
        Some(match primitive {
            "FDRE" | "FDSE" | "FDCE" | "FDPE" => Self::FlipFlop,
            "INV" | "LUT1" => Self::Lut(1),
            "LUT2" => Self::Lut(2),
            "LUT3" => Self::Lut(3),
            "LUT4" => Self::Lut(4),
            "LUT5" => Self::Lut(5),
            "LUT6" => Self::Lut(6),
            "MUXF7" | "MUXF8" => Self::WideMux,
            "CARRY4" => Self::Carry,
            "RAM32M" | "RAM64M" => Self::QuadRam,
            "RAM32X1D" | "RAM64X1D" | "RAM128X1D" => Self::DualRam,
            "SRL16E" | "SRLC32E" => Self::ShiftRegister,
            "RAMB18E1" | "RAMB36E1" => Self::BlockRam,
            _ => return None,
        })
    }

    /// Returns the delay from the clock to an output, or `None` if no path starts at the cell.
    pub fn launch_ns(self) -> Option<f64> {
        match self {
            Self::FlipFlop => Some(CLOCK_TO_Q_NS),
            Self::BlockRam => Some(BLOCK_RAM_TO_OUTPUT_NS),
            // The delay is that of a word that is read while it is being written.
            Self::QuadRam | Self::DualRam | Self::ShiftRegister => Some(LUT_MEMORY_TO_OUTPUT_NS),
            Self::Lut(_) | Self::WideMux | Self::Carry => None,
        }
    }

    /// Returns the role of an input, or `None` if the model has no entry for the pin.
    #[expect(clippy::match_same_arms, reason = "each kind of cell has its own line")]
    pub fn input_role(self, pin: &str) -> Option<InputRole> {
        use InputRole::{Clock, Ends, Passes};
        Some(match (self, pin) {
            (Self::FlipFlop, "C")
            | (Self::QuadRam | Self::DualRam, "WCLK")
            | (Self::ShiftRegister, "CLK")
            | (Self::BlockRam, "CLKARDCLK" | "CLKBWRCLK") => Clock,
            (Self::FlipFlop, "D") => Ends(SETUP_NS),
            (Self::FlipFlop, "CE") => Ends(ENABLE_SETUP_NS),
            (Self::FlipFlop, "R" | "S" | "CLR" | "PRE") => Ends(RESET_SETUP_NS),
            (Self::Lut(_), "I") => Passes,
            (Self::Lut(inputs), _) if indexed(pin, "I").is_some_and(|at| at < inputs) => Passes,
            (Self::WideMux, "I0" | "I1" | "S") | (Self::Carry, "S" | "DI" | "CI" | "CYINIT") => Passes,
            (Self::QuadRam, "ADDRA" | "ADDRB" | "ADDRC") => Passes,
            (Self::QuadRam, "ADDRD" | "DIA" | "DIB" | "DIC" | "DID" | "WE") => Ends(LUT_MEMORY_SETUP_NS),
            (Self::DualRam, "D" | "WE") => Ends(LUT_MEMORY_SETUP_NS),
            (Self::DualRam, _) if numbered(pin, "DPRA") => Passes,
            (Self::DualRam, _) if numbered(pin, "A") => Ends(LUT_MEMORY_SETUP_NS),
            (Self::ShiftRegister, "D" | "CE") => Ends(LUT_MEMORY_SETUP_NS),
            (Self::ShiftRegister, _) if numbered(pin, "A") => Passes,
            (Self::BlockRam, _) => Ends(BLOCK_RAM_SETUP_NS),
            _ => return None,
        })
    }

    /// Returns the delay from an input bit to an output bit, or `None` if the cell has no combinational path between
    /// them.
    pub fn arc_ns(self, input: (&str, usize), output: (&str, usize)) -> Option<f64> {
        match self {
            Self::Lut(inputs) => Some(if inputs > 4 { 0.07 } else { 0.05 }),
            Self::WideMux => Some(0.12),
            Self::Carry => carry_ns(input, output),
            // Written data reaches the output only through the clock.
            Self::QuadRam => {
                let reads = input
                    .0
                    .strip_prefix("ADDR")
                    .is_some_and(|port| output.0.strip_prefix("DO") == Some(port));
                reads.then_some(LUT_MEMORY_READ_NS)
            }
            Self::DualRam => {
                let address = if output.0 == "DPO" { "DPRA" } else { "A" };
                numbered(input.0, address).then_some(LUT_MEMORY_READ_NS)
            }
            Self::ShiftRegister => numbered(input.0, "A").then_some(LUT_MEMORY_READ_NS),
            Self::FlipFlop | Self::BlockRam => None,
        }
    }
}

/// Returns whether a pin is the given bus or one bit of it, such as `A3` of the bus `A`.
fn numbered(pin: &str, bus: &str) -> bool {
    pin == bus || indexed(pin, bus).is_some()
}

/// Returns the number that follows the prefix `name` in the name of a pin.
fn indexed(pin: &str, name: &str) -> Option<u8> {
    pin.strip_prefix(name)?.parse().ok()
}

/// Returns the delay through a CARRY4, or `None` if there is no path. A sum bit does not depend on `DI` at its own
/// position, but the carry-out at this position does.
#[expect(clippy::match_same_arms, reason = "a table")]
fn carry_ns((input, from): (&str, usize), (output, to): (&str, usize)) -> Option<f64> {
    const STEP_NS: f64 = 0.02;
    let is_sum = output == "O";
    let (reaches, first_ns) = match (input, is_sum) {
        ("S", true) => (from <= to, 0.25),
        ("DI", true) => (from < to, 0.25),
        ("S", false) => (from <= to, 0.27),
        ("DI", false) => (from <= to, 0.25),
        ("CI", true) => return Some(0.20),
        ("CI", false) => return Some(0.055),
        ("CYINIT", _) => return Some(0.30),
        _ => return None,
    };
    reaches.then(|| first_ns + STEP_NS * (to - from) as f64)
}
