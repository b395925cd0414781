//! Trace of the ports of a module in rust-hdl's simulation.

use rust_hdl::core::atom::{Atom, AtomKind};
use rust_hdl::core::probe::Probe;
use rust_hdl::prelude::*;

use super::draws::Draws;
use crate::generate;

/// Maximum number of iterations in which the logic must settle. The limit exceeds the number of modules on the longest
/// path between two registers, so only a combinational loop can reach it.
const MOST_ITERATIONS: usize = 200;

/// A port of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) bits: usize,
    pub(super) is_input: bool,
}

/// Verilog of a module and the values of its ports in each simulated clock cycle, sampled just before the rising clock
/// edge.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Name of the module in the Verilog.
    pub name: &'static str,
    /// Verilog of the module. Tests alter it to check that the comparison detects the difference.
    pub verilog: String,
    /// Name of the clock port, or `None` for a combinational module.
    pub(super) clock: Option<&'static str>,
    /// Ports other than the clock.
    pub(super) ports: Vec<Port>,
    /// Values of `ports`, as one line per cycle with one hexadecimal number per port.
    pub(super) cycles: Vec<String>,
}

impl Trace {
    /// Returns the sorted names and directions of the ports, which identify the module in a larger circuit.
    pub fn signature(&self) -> Vec<String> {
        let mut signature: Vec<_> = self.ports.iter().map(|port| label(&port.name, port.is_input)).collect();
        signature.extend(self.clock.map(|clock| label(clock, true)));
        signature.sort();
        signature
    }

    /// Returns the names of the outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.ports.iter().filter(|port| !port.is_input).map(|port| port.name.as_str())
    }

    /// Returns the names of the outputs that had the same value in all cycles. For these outputs, a comparison proves
    /// little.
    pub fn constant_outputs(&self) -> Vec<&str> {
        let rows: Vec<Vec<_>> = self.cycles.iter().map(|line| line.split(' ').collect()).collect();
        let is_constant = |at: usize| rows.iter().all(|row| row[at] == rows[0][at]);
        let outputs = self.ports.iter().enumerate().filter(|(_, port)| !port.is_input);
        outputs.filter(|(at, _)| is_constant(*at)).map(|(_, port)| port.name.as_str()).collect()
    }
}

fn label(name: &str, is_input: bool) -> String {
    format!("{} {name}", if is_input { "in" } else { "out" })
}

/// Simulates a module for `cycles` clock cycles. `drive` sets all inputs except the clock, and `tick` sets the clock.
pub(super) fn record<B: Block>(
    (name, clock): (&'static str, Option<&'static str>),
    mut block: B,
    (cycles, seed): (usize, u64),
    drive: impl Fn(&mut B, &mut Draws),
    tick: impl Fn(&mut B, bool),
) -> Trace {
    block.connect_all();
    let verilog = generate::module(name, &block);
    let mut draws = Draws::new(seed);
    let mut trace = Trace { name, verilog, clock, ports: Vec::new(), cycles: Vec::with_capacity(cycles) };
    for _ in 0..cycles {
        tick(&mut block, false);
        drive(&mut block, &mut draws);
        settle(name, &mut block);
        let mut reader = Reader::default();
        block.accept(name, &mut reader);
        let (ports, values): (Vec<_>, Vec<_>) =
            reader.found.into_iter().filter(|(port, _)| Some(port.name.as_str()) != clock).unzip();
        trace.ports = ports;
        trace.cycles.push(values.join(" "));
        tick(&mut block, true);
        settle(name, &mut block);
        draws.next_cycle();
    }
    trace
}

fn settle<B: Block>(name: &str, block: &mut B) {
    assert!(simulate(block, MOST_ITERATIONS), "{name} does not settle");
}

/// Probe that reads the ports of the outermost module.
#[derive(Default)]
struct Reader {
    depth: usize,
    found: Vec<(Port, String)>,
}

impl Probe for Reader {
    fn visit_start_scope(&mut self, _name: &str, _node: &dyn Block) {
        self.depth += 1;
    }

    fn visit_end_scope(&mut self, _name: &str, _node: &dyn Block) {
        self.depth -= 1;
    }

    fn visit_atom(&mut self, name: &str, signal: &dyn Atom) {
        if self.depth != 1 || !signal.kind().is_parameter() {
            return;
        }
        let is_input = signal.kind() == AtomKind::InputParameter;
        let literal = format!("{:x}", signal.verilog());
        // The literal has a form such as 32'h1f.
        let digits = literal.split_once('h').map_or(literal.as_str(), |(_, digits)| digits);
        self.found.push((Port { name: name.to_owned(), bits: signal.bits(), is_input }, digits.to_owned()));
    }
}

/// Returns the distinct signatures of the modules in a circuit, each with the hierarchical name of one instance.
pub fn signatures(name: &str, block: &dyn Block) -> Vec<(String, Vec<String>)> {
    let mut walker = Walker::default();
    block.accept(name, &mut walker);
    walker.found
}

#[derive(Default)]
struct Walker {
    open: Vec<(String, Vec<String>)>,
    found: Vec<(String, Vec<String>)>,
}

impl Probe for Walker {
    fn visit_start_scope(&mut self, name: &str, _node: &dyn Block) {
        self.open.push((name.to_owned(), Vec::new()));
    }

    fn visit_end_scope(&mut self, _name: &str, _node: &dyn Block) {
        let path = self.open.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
        let (_, mut signature) = self.open.pop().expect("scopes are balanced");
        signature.sort();
        if !self.found.iter().any(|(_, known)| *known == signature) {
            self.found.push((path, signature));
        }
    }

    fn visit_atom(&mut self, name: &str, signal: &dyn Atom) {
        if signal.kind().is_parameter() {
            let (_, signature) = self.open.last_mut().expect("a signal is in a module");
            signature.push(label(name, signal.kind() == AtomKind::InputParameter));
        }
    }
}
