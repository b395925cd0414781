//! The parts of the netlist from yosys's `write_json` that the report needs.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Connection of one bit of a pin or port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Bit {
    /// A net, identified by its number.
    Net(usize),
    /// The constant `0`, `1`, `x` or `z`.
    Constant(char),
}

impl Bit {
    /// Returns the number of the net, or `None` for a constant.
    pub fn net(self) -> Option<usize> {
        match self {
            Self::Net(net) => Some(net),
            Self::Constant(_) => None,
        }
    }
}

/// Direction of a cell's pin or of a module's port, as seen from the cell or module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Into the cell or module.
    Input,
    /// Out of the cell or module.
    Output,
    /// Bidirectional. The accelerator has no such pins or ports.
    Inout,
}

/// A port of the top module.
#[derive(Clone, Debug, Deserialize)]
pub struct Port {
    /// Direction as seen from the module: an input carries a signal into it.
    pub direction: Direction,
    /// Connections of the port's bits, least significant bit first.
    pub bits: Vec<Bit>,
}

/// An instance of a primitive of the device.
#[derive(Clone, Debug, Deserialize)]
pub struct Cell {
    /// Name of the primitive, such as `LUT6`.
    #[serde(rename = "type")]
    pub primitive: String,
    /// Directions of the pins, by name.
    #[serde(default)]
    pub port_directions: BTreeMap<String, Direction>,
    /// Connections of the bits of each pin, least significant bit first, by pin name.
    #[serde(default)]
    pub connections: BTreeMap<String, Vec<Bit>>,
}

/// The bits of a named signal.
#[derive(Clone, Debug, Deserialize)]
pub struct NetName {
    /// 1 if yosys generated the name, 0 if the name comes from the source.
    #[serde(default)]
    pub hide_name: u8,
    /// Bits of the signal, least significant bit first.
    pub bits: Vec<Bit>,
}

/// A flattened module.
#[derive(Clone, Debug, Deserialize)]
pub struct Netlist {
    /// Ports by name.
    #[serde(default)]
    pub ports: BTreeMap<String, Port>,
    /// Cells by name.
    #[serde(default)]
    pub cells: BTreeMap<String, Cell>,
    /// Signals by name.
    #[serde(default)]
    pub netnames: BTreeMap<String, NetName>,
}

#[derive(Deserialize)]
struct Design {
    modules: BTreeMap<String, Netlist>,
}

/// Reason why a netlist could not be read.
#[derive(Debug, thiserror::Error)]
pub enum NetlistError {
    /// The text is not a JSON netlist as written by yosys.
    #[error("invalid netlist: {0}")]
    Json(#[from] serde_json::Error),
    /// The design does not contain the requested module.
    #[error("the netlist has no module {0}")]
    NoModule(String),
}

impl Netlist {
    /// Returns the module with the given name from the output of `write_json`.
    pub fn parse(json: &str, module: &str) -> Result<Self, NetlistError> {
        let mut design: Design = serde_json::from_str(json)?;
        let mut netlist =
            design.modules.remove(module).ok_or_else(|| NetlistError::NoModule(module.to_owned()))?;
        // These cells record the modules that existed before flattening; they are not circuits.
        netlist.cells.retain(|_, cell| cell.primitive != "$scopeinfo");
        Ok(netlist)
    }
}
