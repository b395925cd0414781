//! Faults inserted into the generated Verilog, which verification must detect.
//!
//! All faults are compiled into one program, as mutant schemata (Untch, Offutt and Harrold, "Mutation Analysis Using
//! Mutant Schemata", 1993). Each module with faults is replaced by a selector that instantiates the original module and
//! one faulty copy per fault. A plusarg selects the copy when the simulation starts. Verilator therefore compiles the
//! Verilog only once instead of once per fault.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Plusarg that selects a fault by its number in the list, counted from 1.
pub const ARGUMENT: &str = "fault";
const LIST: &str = include_str!("../../faults.toml");

/// Check that must detect a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// `testbench lockstep`, run on the Verilog of the whole accelerator.
    Lockstep,
    /// [`super::adder::verify`], run on the Verilog of the adder.
    Adder,
    /// [`super::modules::compare`], run on the Verilog of the faulty module alone.
    Modules,
}

/// A fault, defined by a text in a Verilog module and the faulty text that replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Unique name of the fault.
    pub name: String,
    /// Description of the wrong behaviour.
    pub what: String,
    /// Check that must detect the fault.
    pub found_by: Check,
    /// Verilog module that contains the fault.
    pub module: String,
    /// Text to replace, which must occur exactly once in the module.
    pub search: String,
    /// Faulty text that replaces `search`.
    pub replace: String,
}

/// Reason why a fault could not be inserted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The Verilog does not contain the fault's module.
    #[error("fault {fault}: the RTL has no module {module}; update the fault to match the RTL")]
    NoModule {
        /// Name of the fault.
        fault: String,
        #[expect(missing_docs)]
        module: String,
    },
    /// The text to replace does not occur exactly once in the fault's module.
    #[error(
        "fault {fault}: its search text occurs {count} times in {module}, expected 1; update the fault to match the RTL"
    )]
    Count {
        /// Name of the fault.
        fault: String,
        #[expect(missing_docs)]
        module: String,
        #[expect(missing_docs)]
        count: usize,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    fault: Vec<Fault>,
}

/// Returns all faults in hdl/faults.toml.
///
/// # Panics
/// Panics if the file is not a valid fault list.
pub fn all() -> Vec<Fault> {
    toml::from_str::<List>(LIST).unwrap_or_else(|error| panic!("hdl/faults.toml: {error}")).fault
}

impl Fault {
    /// Returns the Verilog with this fault inserted.
    pub fn apply(&self, verilog: &str) -> Result<String, FaultError> {
        let module = self.find_module(verilog)?;
        Ok(verilog.replacen(module, &self.change(module)?, 1))
    }

    fn find_module<'a>(&self, verilog: &'a str) -> Result<&'a str, FaultError> {
        let missing = || FaultError::NoModule { fault: self.name.clone(), module: self.module.clone() };
        let start = verilog.find(&format!("module {}(", self.module)).ok_or_else(missing)?;
        let last = format!("endmodule // {}\n", self.module);
        let len = verilog[start..].find(&last).ok_or_else(missing)? + last.len();
        Ok(&verilog[start..start + len])
    }

    fn change(&self, module: &str) -> Result<String, FaultError> {
        match module.matches(&self.search).count() {
            1 => Ok(module.replacen(&self.search, &self.replace, 1)),
            count => Err(FaultError::Count { fault: self.name.clone(), module: self.module.clone(), count }),
        }
    }
}

/// Returns the Verilog with all the given faults inserted. In a simulation, the plusarg [`ARGUMENT`] activates one of
/// them; without this plusarg, all faults are inactive.
pub fn plant(verilog: &str, faults: &[Fault]) -> Result<String, FaultError> {
    let mut by_module: BTreeMap<&str, Vec<(usize, &Fault)>> = BTreeMap::new();
    for (at, fault) in faults.iter().enumerate() {
        by_module.entry(&fault.module).or_default().push((at + 1, fault));
    }
    let mut planted = verilog.to_owned();
    for (name, faults) in by_module {
        let module = faults[0].1.find_module(verilog)?;
        let mut text = choice(name, module, &faults.iter().map(|(number, _)| *number).collect::<Vec<_>>());
        text += &renamed(module, name, 0);
        for (number, fault) in faults {
            text += &renamed(&fault.change(module)?, name, number);
        }
        planted = planted.replacen(module, &text, 1);
    }
    Ok(planted)
}

fn renamed(module: &str, name: &str, number: usize) -> String {
    module.replacen(&format!("module {name}("), &format!("module {name}$fault${number}("), 1).replacen(
        &format!("endmodule // {name}\n"),
        &format!("endmodule // {name}$fault${number}\n"),
        1,
    )
}

/// A port as declared in the Verilog.
struct Port<'a> {
    is_output: bool,
    /// Bit range such as `[7:0]`, or an empty string for a single bit.
    range: &'a str,
    name: &'a str,
}

impl<'a> Port<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.trim().strip_suffix(';')?.split_whitespace();
        let is_output = match words.next()? {
            "input" => false,
            "output" => true,
            _ => return None,
        };
        let _ = words.next()?;
        let (first, second) = (words.next()?, words.next());
        let (range, name) = second.map_or(("", first), |name| (first, name));
        Some(Self { is_output, range, name })
    }
}

/// Returns the selector that replaces a module with faults. The selector has the same ports as the module; its outputs
/// are those of the selected copy.
fn choice(name: &str, module: &str, numbers: &[usize]) -> String {
    let ports: Vec<_> = module.lines().filter_map(Port::parse).collect();
    let names: Vec<_> = ports.iter().map(|port| port.name).collect();
    let mut text = format!("module {name}({});\n", names.join(","));
    for Port { is_output, range, name } in &ports {
        let direction = if *is_output { "output" } else { "input" };
        writeln!(text, "    {direction} wire {range} {name};").expect("strings do not fail");
    }
    text += "    integer fault;\n    initial if (!$value$plusargs(\"";
    text += ARGUMENT;
    text += "=%d\", fault)) fault = 0;\n";
    for number in [0].iter().chain(numbers) {
        text += &instance(name, *number, &ports);
    }
    for port in ports.iter().filter(|port| port.is_output) {
        let name = port.name;
        let changed: Vec<_> =
            numbers.iter().map(|number| format!("fault == {number} ? {name}${number} : ")).collect();
        writeln!(text, "    assign {name} = {}{name}$0;", changed.concat()).expect("strings do not fail");
    }
    text + &format!("endmodule // {name}\n")
}

fn instance(module: &str, number: usize, ports: &[Port<'_>]) -> String {
    let mut text = String::new();
    for Port { range, name, .. } in ports.iter().filter(|port| port.is_output) {
        writeln!(text, "    wire {range} {name}${number};").expect("strings do not fail");
    }
    let connections: Vec<_> = ports
        .iter()
        .map(|port| {
            let suffix = if port.is_output { format!("${number}") } else { String::new() };
            format!(".{0}({0}{suffix})", port.name)
        })
        .collect();
    text + &format!("    {module}$fault${number} copy${number}({});\n", connections.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERILOG: &str = "module m(a,b);\n    input wire  [7:0] a;\n    output reg  b;\n    \
                           always @(*) b = a[0];\nendmodule // m\nmodule n(a);\n    input wire  a;\nendmodule // n\n";

    fn fault(module: &str, search: &str) -> Fault {
        Fault {
            name: "wrong_bit".into(),
            what: String::new(),
            found_by: Check::Lockstep,
            module: module.into(),
            search: search.into(),
            replace: "a[1]".into(),
        }
    }

    #[test]
    fn a_fault_selector_has_the_ports_of_its_module() {
        let planted = plant(VERILOG, &[fault("m", "a[0]")]).unwrap();
        for line in [
            "module m(a,b);",
            "    input wire [7:0] a;",
            "    output wire  b;",
            "    m$fault$1 copy$1(.a(a), .b(b$1));",
            "    assign b = fault == 1 ? b$1 : b$0;",
            "module m$fault$1(a,b);",
            "    always @(*) b = a[1];",
            "module n(a);",
        ] {
            assert!(planted.lines().any(|found| found == line), "{line:?} is not in\n{planted}");
        }
    }

    #[test]
    fn a_replacement_requires_exactly_one_match() {
        assert!(fault("m", "a[0]").apply(VERILOG).unwrap().contains("b = a[1];"));
        let count = |search: &str| fault("m", search).apply(VERILOG).unwrap_err();
        assert!(count("a[2]").to_string().contains("0 times"));
        assert!(count("b").to_string().contains("3 times"));
        assert!(fault("o", "a").apply(VERILOG).unwrap_err().to_string().contains("no module o"));
    }
}
