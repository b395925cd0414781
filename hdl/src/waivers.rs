//! Waivers for lint messages about the generated Verilog that do not indicate an error. Any message without a waiver
//! fails the lint tests.

/// A kind of lint message that is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiver {
    /// Name of the warning for Verilator, or a text that the message contains for Icarus Verilog.
    pub code: &'static str,
    /// Reason why the message indicates no error.
    pub reason: &'static str,
}

/// Waivers for `verilator --lint-only -Wall`.
pub const VERILATOR: [Waiver; 6] = [
    Waiver {
        code: "WIDTH",
        reason: "rust-hdl writes 32-bit literals; rustc checks the widths, and each module is compared with its \
                 simulation",
    },
    Waiver {
        code: "UNUSEDSIGNAL",
        reason: "modules use only a part of some records, and only some outputs of their submodules; the write \
                 strobes are ignored",
    },
    Waiver {
        code: "UNUSEDPARAM",
        reason: "rust-hdl also declares the states of a state machine in the module of its register, which does not \
                 use them",
    },
    Waiver {
        code: "VARHIDDEN",
        reason: "a module declares a signal or memory with the name that its own instance has in the parent module; \
                 such a module refers only to its own declaration",
    },
    Waiver { code: "DECLFILENAME", reason: "one file holds all modules" },
    Waiver {
        code: "UNOPTFLAT",
        reason: "one `always` block assigns the outputs of a module and the inputs of its submodules; yosys finds no \
                 loop at the bit level",
    },
];

/// Waivers for `iverilog -g2001 -Wall`.
pub const ICARUS: [Waiver; 1] = [Waiver {
    code: "sensitive to all",
    reason: "memories in LUTs are read asynchronously: the output depends on every word",
}];
