//! The parts of the netlist from yosys's `write_json` that the report needs.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Connection of a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Bit {
    /// A net, identified by its number.
    Net(usize),
    /// `0`, `1`, `x` or `z`.
    Constant(char),
}

impl Bit {
    /// Returns the number of the net.
    pub fn net(self) -> Option<usize> {
        match self {
            Self::Net(net) => Some(net),
            Self::Constant(_) => None,
        }
    }
}

/// Direction of a signal as seen from the cell or module with the pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Into the cell or module.
    Input,
    /// Out of the cell or module.
    Output,
    /// Both directions; the accelerator has no such pins.
    Inout,
}

/// A port of the top module, lowest bit first.
#[derive(Clone, Debug, Deserialize)]
pub struct Port {
    /// Direction as seen from inside the module: an input brings a signal in.
    pub direction: Direction,
    /// Connections of the bits.
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
    /// Bits of each pin, lowest first.
    #[serde(default)]
    pub connections: BTreeMap<String, Vec<Bit>>,
}

/// A group of named bits.
#[derive(Clone, Debug, Deserialize)]
pub struct NetName {
    /// Equals 1 if yosys generated the name.
    #[serde(default)]
    pub hide_name: u8,
    /// Bits of the group, lowest first.
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
    /// Named nets.
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
    /// The text is not yosys output.
    #[error("invalid netlist: {0}")]
    Json(#[from] serde_json::Error),
    /// The design does not contain the module.
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
