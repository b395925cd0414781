//! Static timing analysis of a netlist before place and route.
//!
//! The analysis excludes no false paths. Only signals that depend solely on constants start no path.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cells::{CLOCK_TO_Q_NS, InputRole, Kind, PASS_NS, SETUP_NS, net_ns};
use super::names::Names;
use super::netlist::{Cell, Direction, Netlist};

/// Reason why a timing analysis failed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The model has no delays for a primitive.
    #[error("the timing model has no entry for primitive {primitive} (of cell {cell})")]
    UnknownPrimitive {
        /// Name of the primitive.
        primitive: String,
        /// Name of the first cell found with this primitive.
        cell: String,
    },
    /// The model has no entry for an input pin of a primitive.
    #[error("the timing model has no entry for pin {pin} of primitive {primitive}")]
    UnknownPin {
        /// Name of the primitive.
        primitive: String,
        /// Name of the pin that has no entry in the model.
        pin: String,
    },
    /// A net has no driver.
    #[error("the net {0} has no driver, expected one")]
    NoDriver(String),
    /// A net has two drivers.
    #[error("the net {0} has two drivers, expected one")]
    TwoDrivers(String),
    /// The netlist contains a combinational loop.
    #[error("the netlist contains a combinational loop: {}", .0.join(" <- "))]
    Loop(Vec<String>),
}

/// Worst path to an endpoint, or to a group of endpoints that have the same name and differ only by their bit index.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Path {
    /// Delay in nanoseconds, including clock-to-output delay and set-up time.
    pub delay_ns: f64,
    /// Number of combinational cells on the path, such as LUTs, carry blocks and wide multiplexers.
    pub levels: usize,
    /// Register, memory or port at the start of the path.
    pub from: String,
    /// Endpoint of the path: the name of a register or memory followed by that of its pin, or `output` and the name of
    /// a port.
    pub to: String,
    /// Modules along the path, in order. A module is missing if synthesis removed the names of all its nets on the
    /// path.
    pub through: Vec<String>,
    /// Fan-out of each net along the path, in order.
    pub fan_outs: Vec<usize>,
    /// Number of endpoints with the name `to` whose delay exceeds the budget.
    pub over_budget: usize,
}

/// Result of a timing analysis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// Delay of the longest path, in nanoseconds.
    pub worst_ns: f64,
    /// Number of endpoints: input pins and bits of output ports at which a path ends.
    pub endpoints: usize,
    /// Number of endpoints whose delay exceeds the budget.
    pub over_budget: usize,
    /// Worst paths, one per endpoint name, in descending order of delay.
    pub paths: Vec<Path>,
}

/// Driver of a net.
#[derive(Clone, Copy)]
enum Driver<'a> {
    Port,
    Pin { kind: Kind, cell: &'a Cell, pin: &'a str, bit: usize },
}

#[derive(Clone, Copy, Default)]
struct Arrival {
    at_ns: f64,
    from: Option<usize>,
    levels: usize,
    /// Whether a path reaches the net. No path reaches a net that depends only on constants.
    is_reached: bool,
}

struct Endpoint {
    delay_ns: f64,
    net: usize,
    name: String,
}

struct Graph<'a> {
    netlist: &'a Netlist,
    names: Names<'a>,
    net_scale: f64,
    cells: Vec<(&'a str, &'a Cell, Kind)>,
    drivers: Vec<Option<Driver<'a>>>,
    fan_out: Vec<usize>,
}

/// Analyses the timing of a netlist, with all net delays multiplied by `net_scale`.
///
/// The result lists at most `most` of the worst paths and counts the endpoints whose delay exceeds `budget_ns`.
pub fn analyse(
    netlist: &Netlist,
    net_scale: f64,
    budget_ns: f64,
    most: usize,
) -> Result<Timing, TimingError> {
    let graph = Graph::new(netlist, net_scale)?;
    let arrivals = graph.arrivals()?;
    let mut endpoints = graph.endpoints(&arrivals)?;
    endpoints.sort_by(|a, b| b.delay_ns.total_cmp(&a.delay_ns).then_with(|| a.name.cmp(&b.name)));
    Ok(Timing {
        worst_ns: endpoints.first().map_or(0.0, |worst| worst.delay_ns),
        endpoints: endpoints.len(),
        over_budget: endpoints.iter().filter(|endpoint| endpoint.delay_ns > budget_ns).count(),
        paths: graph.worst_paths(&endpoints, &arrivals, budget_ns, most),
    })
}

impl<'a> Graph<'a> {
    fn new(netlist: &'a Netlist, net_scale: f64) -> Result<Self, TimingError> {
        let mut cells = Vec::with_capacity(netlist.cells.len());
        for (name, cell) in &netlist.cells {
            let kind = Kind::of(&cell.primitive).ok_or_else(|| TimingError::UnknownPrimitive {
                primitive: cell.primitive.clone(),
                cell: name.clone(),
            })?;
            cells.push((name.as_str(), cell, kind));
        }
        let names = Names::new(netlist);
        let nets = names.net_count();
        let mut graph =
            Self { netlist, names, net_scale, cells, drivers: vec![None; nets], fan_out: vec![0; nets] };
        graph.connect_ports()?;
        graph.connect_cells()?;
        Ok(graph)
    }

    fn connect_ports(&mut self) -> Result<(), TimingError> {
        for port in self.netlist.ports.values() {
            for net in port.bits.iter().filter_map(|bit| bit.net()) {
                match port.direction {
                    Direction::Output => self.fan_out[net] += 1,
                    Direction::Input | Direction::Inout => self.drive(net, Driver::Port)?,
                }
            }
        }
        Ok(())
    }

    fn connect_cells(&mut self) -> Result<(), TimingError> {
        for (_, cell, kind) in self.cells.clone() {
            for (pin, bit, net) in pins(cell, Direction::Output) {
                self.drive(net, Driver::Pin { kind, cell, pin, bit })?;
            }
            for (pin, _, net) in pins(cell, Direction::Input) {
                if role(kind, cell, pin)? != InputRole::Clock {
                    self.fan_out[net] += 1;
                }
            }
        }
        Ok(())
    }

    fn drive(&mut self, net: usize, driver: Driver<'a>) -> Result<(), TimingError> {
        match self.drivers[net].replace(driver) {
            None => Ok(()),
            Some(_) => Err(TimingError::TwoDrivers(self.names.of(net))),
        }
    }

    /// Returns the delay in nanoseconds from a net's driver to an input pin of a cell of the given kind. Dedicated
    /// connections, such as those between the blocks of a carry chain, count as having no delay.
    fn net_delay_ns(&self, net: usize, kind: Kind, pin: &str) -> f64 {
        let outside_ns = net_ns(self.fan_out[net]) * self.net_scale;
        let Some(Driver::Pin { kind: from, pin: from_pin, .. }) = self.drivers[net] else {
            return outside_ns + pass_ns(kind, pin);
        };
        let is_alone = self.fan_out[net] == 1;
        let is_direct = match (from, kind, pin) {
            (Kind::Carry, Kind::Carry, "CI") => from_pin == "CO",
            (Kind::Lut(_), Kind::Carry, "S") | (Kind::Lut(_) | Kind::WideMux, Kind::WideMux, "I0" | "I1") => {
                is_alone
            }
            (Kind::Lut(_) | Kind::WideMux, Kind::FlipFlop, "D") => is_alone,
            (Kind::Carry, Kind::FlipFlop, "D") => is_alone && from_pin == "O",
            _ => false,
        };
        if is_direct { 0.0 } else { outside_ns + pass_ns(kind, pin) }
    }

    /// Returns the nets on which a net depends combinationally, each with the delay in nanoseconds from its driver to
    /// the output of the cell that drives `net`.
    fn fan_in(&self, net: usize) -> Vec<(usize, f64)> {
        let Some(Driver::Pin { kind, cell, pin, bit }) = self.drivers[net] else { return Vec::new() };
        pins(cell, Direction::Input)
            .filter_map(|(from_pin, from_bit, from)| {
                let arc_ns = kind.arc_ns((from_pin, from_bit), (pin, bit))?;
                Some((from, self.net_delay_ns(from, kind, from_pin) + arc_ns))
            })
            .collect()
    }

    /// Computes the arrival times of all nets in topological order, so that each net follows the nets on which it
    /// depends.
    fn arrivals(&self) -> Result<Vec<Arrival>, TimingError> {
        let count = self.drivers.len();
        let fan_in: Vec<_> = (0..count).map(|net| self.fan_in(net)).collect();
        let mut waits: Vec<_> = fan_in.iter().map(Vec::len).collect();
        let mut followers = vec![Vec::new(); count];
        for (net, sources) in fan_in.iter().enumerate() {
            sources.iter().for_each(|&(from, _)| followers[from].push(net));
        }
        let mut ready: Vec<_> = (0..count).filter(|&net| waits[net] == 0).collect();
        let mut arrivals = vec![Arrival::default(); count];
        let mut done = 0;
        while let Some(net) = ready.pop() {
            done += 1;
            arrivals[net] = self.arrival(net, &fan_in[net], &arrivals);
            for &follower in &followers[net] {
                waits[follower] -= 1;
                if waits[follower] == 0 {
                    ready.push(follower);
                }
            }
        }
        if done == count { Ok(arrivals) } else { Err(self.find_loop(&fan_in, &waits)) }
    }

    fn arrival(&self, net: usize, sources: &[(usize, f64)], arrivals: &[Arrival]) -> Arrival {
        let mut latest = match self.drivers[net] {
            Some(Driver::Port) => launched(CLOCK_TO_Q_NS),
            Some(Driver::Pin { kind, .. }) => kind.launch_ns().map_or_else(Arrival::default, launched),
            None => Arrival::default(),
        };
        for &(from, delay_ns) in sources.iter().filter(|(from, _)| arrivals[*from].is_reached) {
            let at_ns = arrivals[from].at_ns + delay_ns;
            if !latest.is_reached || at_ns > latest.at_ns {
                latest =
                    Arrival { at_ns, from: Some(from), levels: arrivals[from].levels + 1, is_reached: true };
            }
        }
        latest
    }

    /// Finds a combinational loop among the nets that the topological sort could not order. Each of them depends on
    /// another of them, so following these dependencies backwards leads into a loop.
    fn find_loop(&self, fan_in: &[Vec<(usize, f64)>], waits: &[usize]) -> TimingError {
        let back = |net: usize| fan_in[net].iter().map(|&(from, _)| from).find(|&from| waits[from] > 0);
        let mut visited = Vec::new();
        let mut net = waits.iter().position(|&count| count > 0);
        while let Some(at) = net {
            if let Some(start) = visited.iter().position(|&seen| seen == at) {
                visited.drain(..start);
                break;
            }
            visited.push(at);
            net = back(at);
        }
        TimingError::Loop(visited.into_iter().map(|net| self.names.of(net)).collect())
    }

    fn endpoints(&self, arrivals: &[Arrival]) -> Result<Vec<Endpoint>, TimingError> {
        let mut endpoints = Vec::new();
        for &(name, cell, kind) in &self.cells {
            for (pin, _, net) in pins(cell, Direction::Input) {
                if self.drivers[net].is_none() {
                    return Err(TimingError::NoDriver(self.names.of(net)));
                }
                let InputRole::Ends(setup_ns) = role(kind, cell, pin)? else { continue };
                if arrivals[net].is_reached {
                    let delay_ns = arrivals[net].at_ns + self.net_delay_ns(net, kind, pin) + setup_ns;
                    let name = format!("{}.{pin}", self.names.of_cell(name, cell));
                    endpoints.push(Endpoint { delay_ns, net, name });
                }
            }
        }
        let outputs = self.netlist.ports.iter().filter(|(_, port)| port.direction == Direction::Output);
        for (name, port) in outputs {
            for net in port.bits.iter().filter_map(|bit| bit.net()).filter(|&net| arrivals[net].is_reached) {
                let outside_ns = net_ns(self.fan_out[net]) * self.net_scale;
                let delay_ns = arrivals[net].at_ns + outside_ns + SETUP_NS;
                endpoints.push(Endpoint { delay_ns, net, name: format!("output {name}") });
            }
        }
        Ok(endpoints)
    }

    /// Groups the sorted endpoints by name and returns the worst path of each group, for at most `most` groups, worst
    /// first.
    fn worst_paths(
        &self,
        sorted: &[Endpoint],
        arrivals: &[Arrival],
        budget_ns: f64,
        most: usize,
    ) -> Vec<Path> {
        let mut over: BTreeMap<&str, usize> = BTreeMap::new();
        let mut worst: Vec<&Endpoint> = Vec::new();
        for endpoint in sorted {
            let count = over.entry(&endpoint.name).or_insert_with(|| {
                worst.push(endpoint);
                0
            });
            *count += usize::from(endpoint.delay_ns > budget_ns);
        }
        worst.truncate(most);
        worst
            .into_iter()
            .map(|endpoint| self.path(endpoint, arrivals, over[endpoint.name.as_str()]))
            .collect()
    }

    fn path(&self, endpoint: &Endpoint, arrivals: &[Arrival], over_budget: usize) -> Path {
        let mut through: Vec<String> = Vec::new();
        let mut net = endpoint.net;
        let mut fan_outs = vec![self.fan_out[net]];
        while let Some(from) = arrivals[net].from {
            if let Some(module) = self.names.module_of(net)
                && through.last() != Some(&module)
            {
                through.push(module);
            }
            net = from;
            fan_outs.push(self.fan_out[net]);
        }
        through.reverse();
        fan_outs.reverse();
        Path {
            delay_ns: endpoint.delay_ns,
            levels: arrivals[endpoint.net].levels,
            from: self.names.of(net),
            to: endpoint.name.clone(),
            through,
            fan_outs,
            over_budget,
        }
    }
}

fn launched(at_ns: f64) -> Arrival {
    Arrival { at_ns, from: None, levels: 0, is_reached: true }
}

/// Returns the delay in nanoseconds of the LUT that passes a signal on to a pin with no other input path, or 0 for any
/// other pin.
fn pass_ns(kind: Kind, pin: &str) -> f64 {
    match (kind, pin) {
        (Kind::Carry, "S") | (Kind::WideMux, "I0" | "I1") => PASS_NS,
        _ => 0.0,
    }
}

fn role(kind: Kind, cell: &Cell, pin: &str) -> Result<InputRole, TimingError> {
    kind.input_role(pin)
        .ok_or_else(|| TimingError::UnknownPin { primitive: cell.primitive.clone(), pin: pin.to_owned() })
}

/// Returns the pin name, bit index and net of each bit of a cell's pins with the given direction. Bits connected to
/// constants are omitted.
fn pins(cell: &Cell, direction: Direction) -> impl Iterator<Item = (&str, usize, usize)> {
    let is_wanted = move |pin: &str| cell.port_directions.get(pin) == Some(&direction);
    cell.connections.iter().filter(move |(pin, _)| is_wanted(pin)).flat_map(|(pin, bits)| {
        bits.iter().enumerate().filter_map(move |(at, bit)| Some((pin.as_str(), at, bit.net()?)))
    })
}
