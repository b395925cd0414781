//! Errors in packets. A single enum serves as the error, the drop reason, the metric label and the log field.

use core::fmt;

/// Reason why a packet is not a valid iSwitch packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum WireError {
    /// The packet is shorter than the format requires.
    Truncated,
    /// The packet is longer than the format allows.
    Overlong,
    /// The payload of a data packet does not consist of a whole number of elements.
    MisalignedPayload,
    /// The protocol version of a control packet is not supported.
    WrongVersion,
    /// A control packet has an action code that the specification does not assign.
    UnknownAction,
    /// A field of a control packet holds a value that the specification does not assign.
    BadValue,
    /// The packet is a fragment of an IPv4 packet.
    Fragment,
    /// The IPv4 header is inconsistent, or its checksum is wrong.
    BadIpHeader,
    /// The UDP checksum is wrong or absent.
    BadChecksum,
}

impl WireError {
    /// All variants, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Truncated,
        Self::Overlong,
        Self::MisalignedPayload,
        Self::WrongVersion,
        Self::UnknownAction,
        Self::BadValue,
        Self::Fragment,
        Self::BadIpHeader,
        Self::BadChecksum,
    ];

    /// Returns the label of the variant's counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Overlong => "overlong",
            Self::MisalignedPayload => "misaligned_payload",
            Self::WrongVersion => "wrong_version",
            Self::UnknownAction => "unknown_action",
            Self::BadValue => "bad_value",
            Self::Fragment => "fragment",
            Self::BadIpHeader => "bad_ip_header",
            Self::BadChecksum => "bad_checksum",
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for WireError {}
