//! Tool messages about the generated Verilog that indicate no error, each with a reason. Any other message is an
//! error.

/// A kind of message that is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiver {
    /// For Verilator, the name of the warning; for Icarus, a text that the message contains.
    pub code: &'static str,
    /// Reason why the message indicates no error.
    pub reason: &'static str,
}

/// Waivers for `verilator --lint-only -Wall`.
pub const VERILATOR: [Waiver; 6] = [
    Waiver {
        code: "WIDTH",
        reason: "rust-hdl writes literals of 32 bits; rustc checks the widths, and each module is compared with its \
                 simulation",
    },
    Waiver {
        code: "UNUSEDSIGNAL",
        reason: "modules receive whole records of which they use only a part; the write strobes are not used",
    },
    Waiver {
        code: "UNUSEDPARAM",
        reason: "all states of a state machine are declared, including those that are only assigned",
    },
    Waiver { code: "VARHIDDEN", reason: "a memory's loop variable has the same name in each instance" },
    Waiver { code: "DECLFILENAME", reason: "one file holds all modules" },
    Waiver {
        code: "UNOPTFLAT",
        reason: "a block's inputs and outputs share one `always`; yosys finds no loop of single bits",
    },
];

/// Waivers for `iverilog -g2001 -Wall`.
pub const ICARUS: [Waiver; 1] = [Waiver {
    code: "sensitive to all",
    reason: "memories in LUTs are read asynchronously: the output depends on every word",
}];
