//! Names of nets and cells for people: those of the source, not those that synthesis made up.

use super::netlist::{Bit, Cell, Direction, Netlist};

/// A name for each net.
pub(super) struct Names<'a> {
    by_net: Vec<Option<&'a str>>,
}

impl<'a> Names<'a> {
    /// Looks at all names of a netlist.
    pub(super) fn new(netlist: &'a Netlist) -> Self {
        let named = netlist.netnames.values().flat_map(|name| &name.bits);
        let connected = netlist.cells.values().flat_map(|cell| cell.connections.values().flatten());
        let ports = netlist.ports.values().flat_map(|port| &port.bits);
        let highest = named.chain(connected).chain(ports).filter_map(|bit| bit.net()).max();
        let mut names = Self { by_net: vec![None; highest.map_or(0, |highest| highest + 1)] };
        for (name, net) in netlist.netnames.iter().filter(|(_, net)| net.hide_name == 0) {
            for net in net.bits.iter().filter_map(|bit| bit.net()) {
                names.offer(net, name);
            }
        }
        names
    }

    /// A register's own name is the best, then the shortest.
    fn offer(&mut self, net: usize, name: &'a str) {
        let rank = |name: &str| (name.strip_suffix(".q").is_none(), name.len());
        let kept = &mut self.by_net[net];
        if kept.is_none_or(|kept| rank(name) < rank(kept)) {
            *kept = Some(name);
        }
    }

    /// Nets have numbers below this.
    pub(super) fn net_count(&self) -> usize {
        self.by_net.len()
    }

    /// What a net is called.
    pub(super) fn of(&self, net: usize) -> String {
        self.by_net[net].map_or_else(|| format!("net {net}"), readable)
    }

    /// The module in which a net has its name; none for a net of the top.
    pub(super) fn module_of(&self, net: usize) -> Option<String> {
        let readable = readable(self.by_net[net]?);
        readable.rsplit_once('.').map(|(module, _)| module.to_owned())
    }

    /// A register is called by what it drives, another cell by its own name without what synthesis appended.
    pub(super) fn of_cell(&self, name: &str, cell: &Cell) -> String {
        let mut outputs = cell
            .connections
            .iter()
            .filter(|(pin, _)| cell.port_directions.get(*pin) == Some(&Direction::Output));
        let driven = outputs.find_map(|(_, bits)| bits.iter().find_map(|&bit| Bit::net(bit)));
        match driven.and_then(|net| self.by_net[net]) {
            Some(driven) => readable(driven),
            None => readable(name.trim_end_matches(|c: char| c == '.' || c.is_ascii_digit())),
        }
    }
}

/// Signals of the source are joined to their modules by `$`; a register's output is called as the register.
fn readable(name: &str) -> String {
    let name = name.strip_suffix(".q").unwrap_or(name);
    name.replace('$', ".")
}
