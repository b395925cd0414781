//! Classification of packets as control or data, by ToS and UDP port.

use crate::limits::{DEFAULT_CONTROL_TOS, DEFAULT_DATA_TOS, DEFAULT_PORT, TOS_MASK};

/// Class of a packet, as determined by its ToS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A control packet.
    Control,
    /// A data packet.
    Data,
}

/// Classifier that distinguishes iSwitch packets from ordinary traffic by ToS and UDP port (requirement W-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classifier {
    /// ToS of control packets; the two low-order bits are zero.
    pub control_tos: u8,
    /// ToS of data packets; the two low-order bits are zero. It differs from `control_tos`.
    pub data_tos: u8,
    /// UDP port of the switch.
    pub udp_port: u16,
}

impl Default for Classifier {
    fn default() -> Self {
        Self { control_tos: DEFAULT_CONTROL_TOS, data_tos: DEFAULT_DATA_TOS, udp_port: DEFAULT_PORT }
    }
}

impl Classifier {
    /// Returns the class of packets with this ToS byte, or `None` for ordinary traffic. The ECN bits are ignored (W-2).
    pub fn class_of(&self, tos: u8) -> Option<Class> {
        match tos & TOS_MASK {
            tos if tos == self.control_tos => Some(Class::Control),
            tos if tos == self.data_tos => Some(Class::Data),
            _ => None,
        }
    }

    /// Returns the ToS byte of a class.
    #[inline]
    pub fn tos_of(&self, class: Class) -> u8 {
        match class {
            Class::Control => self.control_tos,
            Class::Data => self.data_tos,
        }
    }
}
