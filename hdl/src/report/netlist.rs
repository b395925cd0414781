//! The netlist that yosys writes with `write_json`, as far as it is needed here.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What a pin is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Bit {
    /// A net, by its number.
    Net(usize),
    /// `0`, `1`, `x` or `z`.
    Constant(char),
}

impl Bit {
    /// The net's number.
    pub fn net(self) -> Option<usize> {
        match self {
            Self::Net(net) => Some(net),
            Self::Constant(_) => None,
        }
    }
}

/// Which way a signal goes, seen from the cell or the module that has the pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Into it.
    Input,
    /// Out of it.
    Output,
    /// Both; the accelerator has none.
    Inout,
}

/// A port of the top module, lowest bit first.
#[derive(Clone, Debug, Deserialize)]
pub struct Port {
    /// Seen from inside the module's border: an input brings a signal in.
    pub direction: Direction,
    /// What the bits are connected to.
    pub bits: Vec<Bit>,
}

/// An instance of a primitive of the device.
#[derive(Clone, Debug, Deserialize)]
pub struct Cell {
    /// Name of the primitive, such as `LUT6`.
    #[serde(rename = "type")]
    pub primitive: String,
    /// Pins by name.
    #[serde(default)]
    pub port_directions: BTreeMap<String, Direction>,
    /// Bits of each pin, lowest first.
    #[serde(default)]
    pub connections: BTreeMap<String, Vec<Bit>>,
}

/// Bits that have a name.
#[derive(Clone, Debug, Deserialize)]
pub struct NetName {
    /// 1 if yosys made it up.
    #[serde(default)]
    pub hide_name: u8,
    /// The nets, lowest bit first.
    pub bits: Vec<Bit>,
}

/// A flat module.
#[derive(Clone, Debug, Deserialize)]
pub struct Netlist {
    /// Its ports by name.
    #[serde(default)]
    pub ports: BTreeMap<String, Port>,
    /// Its cells by name.
    #[serde(default)]
    pub cells: BTreeMap<String, Cell>,
    /// Its nets by name.
    #[serde(default)]
    pub netnames: BTreeMap<String, NetName>,
}

#[derive(Deserialize)]
struct Design {
    modules: BTreeMap<String, Netlist>,
}

/// Why a text is not a netlist with that module.
#[derive(Debug, thiserror::Error)]
pub enum NetlistError {
    /// It is not what yosys writes.
    #[error("the netlist: {0}")]
    Json(#[from] serde_json::Error),
    /// It has other modules only.
    #[error("the netlist has no module {0}")]
    NoModule(String),
}

impl Netlist {
    /// The module of that name in the output of `write_json`.
    pub fn parse(json: &str, module: &str) -> Result<Self, NetlistError> {
        let mut design: Design = serde_json::from_str(json)?;
        let mut netlist =
            design.modules.remove(module).ok_or_else(|| NetlistError::NoModule(module.to_owned()))?;
        // What modules there were before they were made flat: notes, not circuits.
        netlist.cells.retain(|_, cell| cell.primitive != "$scopeinfo");
        Ok(netlist)
    }
}
