//! Replay of traces in the generated Verilog, simulated by Icarus Verilog.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::trace::Trace;

/// Reason why a comparison of modules failed.
#[derive(Debug, thiserror::Error)]
pub enum ModulesError {
    /// An output of a module's Verilog differs from that of its rust-hdl simulation.
    #[error(
        "the Verilog of {module} differs from its simulation: in cycle {cycle}, {port} is {got}, expected {expected}"
    )]
    Different {
        /// Name of the module. `port` is the output that differs.
        module: String,
        #[expect(missing_docs)]
        port: String,
        /// Cycle in which the output differs, counted from 0.
        cycle: usize,
        /// Value of the output in the Verilog, in hexadecimal. `expected` is its value in the rust-hdl simulation.
        got: String,
        #[expect(missing_docs)]
        expected: String,
    },
    /// A file could not be written.
    #[error("cannot write to {0:?}: {1}")]
    Write(PathBuf, #[source] io::Error),
    /// Icarus Verilog could not be started.
    #[error("cannot start {0}: {1}; install Icarus Verilog (Debian: apt-get install iverilog)")]
    Start(&'static str, #[source] io::Error),
    /// Icarus Verilog reported an error or ended before the last cycle.
    #[error("{0} failed:\n{1}")]
    Refused(&'static str, String),
}

/// Simulates the Verilog of each trace with the inputs of the trace and compares the outputs in each cycle.
///
/// # Errors
/// Fails at the first difference, or if Icarus Verilog fails or a file cannot be written.
pub fn compare(traces: &[Trace], directory: &Path) -> Result<(), ModulesError> {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| ModulesError::Write(path, error))
    };
    let mut verilog = String::new();
    for trace in traces {
        verilog += &trace.verilog;
        verilog += &bench(trace);
        write(&format!("{}.txt", trace.name), &(trace.cycles.join("\n") + "\n"))?;
    }
    write("modules.v", &verilog)?;
    call("iverilog", &["-g2001", "-o", "modules.vvp", "modules.v"], directory)?;
    let output = call("vvp", &["-n", "modules.vvp"], directory)?;
    if let Some(difference) = output.lines().find_map(parse_difference) {
        return Err(difference);
    }
    for trace in traces {
        let done = format!("DONE {} {}", trace.name, trace.cycles.len());
        if !output.lines().any(|line| line == done) {
            return Err(ModulesError::Refused(
                "vvp",
                format!("expected the line {done:?} in the output:\n{output}"),
            ));
        }
    }
    Ok(())
}

fn call(program: &'static str, arguments: &[&str], directory: &Path) -> Result<String, ModulesError> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .map_err(|error| ModulesError::Start(program, error))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(ModulesError::Refused(program, text + &String::from_utf8_lossy(&output.stderr)))
    }
}

/// Parses a line of the form `DIFFERENT module port cycle got expected`.
fn parse_difference(line: &str) -> Option<ModulesError> {
    let mut words = line.strip_prefix("DIFFERENT ")?.split_whitespace().map(str::to_owned);
    let mut word = || words.next();
    let (module, port, cycle) = (word()?, word()?, word()?.parse().ok()?);
    Some(ModulesError::Different { module, port, cycle, got: word()?, expected: word()? })
}

/// Returns a Verilog testbench that applies the inputs of a trace to its module and checks the outputs.
fn bench(trace: &Trace) -> String {
    let Trace { name, ports, clock, cycles, .. } = trace;
    let mut text = format!("module bench${name};\n    integer file, found, cycle;\n");
    let mut connections = Vec::new();
    let mut read = Vec::new();
    let mut checks = String::new();
    for port in ports {
        let (kind, top, port_name) = (if port.is_input { "reg" } else { "wire" }, port.bits - 1, &port.name);
        writeln!(text, "    {kind} [{top}:0] {port_name};").expect("strings do not fail");
        connections.push(format!(".{port_name}({port_name})"));
        if port.is_input {
            read.push(port_name.clone());
        } else {
            writeln!(text, "    reg [{top}:0] expected${port_name};").expect("strings do not fail");
            read.push(format!("expected${port_name}"));
            checks += &check(name, port_name);
        }
    }
    let (rise, fall) = if let Some(clock) = clock {
        writeln!(text, "    reg {clock};").expect("strings do not fail");
        connections.push(format!(".{clock}({clock})"));
        (format!("{clock} = 1;"), format!("{clock} = 0;"))
    } else {
        (String::new(), String::new())
    };
    let format = vec!["%h"; read.len()].join(" ");
    let (connections, read, count) = (connections.join(", "), read.join(", "), cycles.len());
    text + &format!(
        "    {name} dut({connections});\n    initial begin\n        file = $fopen(\"{name}.txt\", \"r\");\n        \
         for (cycle = 0; cycle < {count}; cycle = cycle + 1) begin\n            {fall}\n            \
         found = $fscanf(file, \"{format}\\n\", {read});\n            #1;\n{checks}            {rise}\n            \
         #1;\n        end\n        $display(\"DONE {name} %0d\", cycle);\n    end\nendmodule\n"
    )
}

fn check(module: &str, port: &str) -> String {
    format!(
        "            if ({port} !== expected${port}) begin\n                \
         $display(\"DIFFERENT {module} {port} %0d %h %h\", cycle, {port}, expected${port});\n                \
         $finish;\n            end\n"
    )
}
