//! Syntax of an interface that is served as a port: `eth0`, or `xdp:eth0,driver,copy`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Prefix of an interface that is served through AF_XDP.
const XDP_PREFIX: &str = "xdp:";

/// Interface to serve, and how to serve it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// Name of the interface.
    pub interface: String,
    /// AF_XDP modes; `None` selects a packet socket.
    pub xdp: Option<XdpModes>,
}

/// Requested modes of an AF_XDP port. If a mode is not given, the port tries both of its values, the faster one first.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct XdpModes {
    /// Attachment point of the XDP program.
    pub attach: Option<AttachMode>,
    /// Method of moving frames to and from the memory of the sockets.
    pub copy: Option<CopyMode>,
}

/// Attachment point of an XDP program.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum AttachMode {
    /// The driver of the interface runs the program before the rest of the kernel sees a frame.
    Driver,
    /// The receive path of the kernel runs the program. This works with any driver.
    Generic,
}

/// Method of moving frames to and from the memory of an AF_XDP socket.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum CopyMode {
    /// The device accesses the memory of the socket directly.
    ZeroCopy,
    /// The kernel copies each frame to or from the memory of the socket.
    Copy,
}

impl AttachMode {
    /// Returns the name of the mode in a [`PortSpec`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Generic => "generic",
        }
    }
}

impl CopyMode {
    /// Returns the name of the mode in a [`PortSpec`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::ZeroCopy => "zerocopy",
            Self::Copy => "copy",
        }
    }
}

impl XdpModes {
    /// Returns the attachment points to try, in order.
    pub(super) fn attach_modes(self) -> Vec<AttachMode> {
        match (self.attach, self.copy) {
            (Some(mode), _) => vec![mode],
            // Only driver mode supports zero-copy.
            (None, Some(CopyMode::ZeroCopy)) => vec![AttachMode::Driver],
            (None, _) => vec![AttachMode::Driver, AttachMode::Generic],
        }
    }

    /// Returns the copy modes to try for this attachment point, in order.
    pub(super) fn copy_modes(self, attach: AttachMode) -> Vec<CopyMode> {
        match (self.copy, attach) {
            (Some(mode), _) => vec![mode],
            (None, AttachMode::Driver) => vec![CopyMode::ZeroCopy, CopyMode::Copy],
            (None, AttachMode::Generic) => vec![CopyMode::Copy],
        }
    }

    fn parse(words: &str) -> Result<Self, String> {
        let mut modes = Self::default();
        for word in words.split(',') {
            let is_new = match word {
                "driver" => modes.attach.replace(AttachMode::Driver).is_none(),
                "generic" => modes.attach.replace(AttachMode::Generic).is_none(),
                "zerocopy" => modes.copy.replace(CopyMode::ZeroCopy).is_none(),
                "copy" => modes.copy.replace(CopyMode::Copy).is_none(),
                _ => return Err("modes after the comma: driver or generic, and zerocopy or copy".to_owned()),
            };
            if !is_new {
                return Err(
                    "at most one of driver and generic, and at most one of zerocopy and copy".to_owned()
                );
            }
        }
        if modes == (Self { attach: Some(AttachMode::Generic), copy: Some(CopyMode::ZeroCopy) }) {
            return Err("zerocopy with driver, or copy with generic".to_owned());
        }
        Ok(modes)
    }
}

impl FromStr for PortSpec {
    /// Description of the expected syntax.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (interface, xdp) = match text.strip_prefix(XDP_PREFIX) {
            None => (text, None),
            Some(rest) => match rest.split_once(',') {
                None => (rest, Some(XdpModes::default())),
                Some((interface, words)) => (interface, Some(XdpModes::parse(words)?)),
            },
        };
        // The names that Linux allows, except for those with characters that would need escaping in an ingress rule.
        let is_name = !interface.is_empty()
            && interface.len() < libc::IFNAMSIZ
            && interface.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:\"\\".contains(&byte));
        if !is_name {
            return Err("an interface name, optionally with the prefix xdp:".to_owned());
        }
        Ok(Self { interface: interface.to_owned(), xdp })
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, xdp } = self;
        let Some(XdpModes { attach, copy }) = xdp else { return f.write_str(interface) };
        write!(f, "{XDP_PREFIX}{interface}")?;
        let words = [attach.map(AttachMode::name), copy.map(CopyMode::name)];
        words.into_iter().flatten().try_for_each(|word| write!(f, ",{word}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PortSpec, String> {
        text.parse()
    }

    #[test]
    fn a_printed_port_parses_to_the_same_port() {
        for text in ["eth0", "a,b", "xdp:eth0", "xdp:eth0,generic", "xdp:eth0,copy", "xdp:e,driver,zerocopy"]
        {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("xdp:eth0,copy,driver").unwrap().to_string(), "xdp:eth0,driver,copy");
        assert_eq!(parse("xdp").unwrap(), PortSpec { interface: "xdp".to_owned(), xdp: None });
    }

    #[test]
    fn an_invalid_port_is_refused_with_the_expected_syntax() {
        for (text, part) in [
            ("", "an interface name"),
            ("xdp:", "an interface name"),
            ("xdp:xdp:eth0", "an interface name"),
            ("eth0:1", "an interface name"),
            ("xdp:a-name-that-is-far-too-long", "an interface name"),
            ("xdp:eth0,", "driver or generic"),
            ("xdp:eth0,fast", "driver or generic"),
            ("xdp:eth0,driver,generic", "at most one of driver and generic"),
            ("xdp:eth0,copy,copy", "at most one of zerocopy and copy"),
            ("xdp:eth0,generic,zerocopy", "zerocopy with driver, or copy with generic"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_fastest_xdp_mode_is_tried_first() {
        let modes = |text: &str| parse(text).unwrap().xdp.unwrap();
        let open = modes("xdp:e");
        assert_eq!(open.attach_modes(), [AttachMode::Driver, AttachMode::Generic]);
        assert_eq!(open.copy_modes(AttachMode::Driver), [CopyMode::ZeroCopy, CopyMode::Copy]);
        assert_eq!(open.copy_modes(AttachMode::Generic), [CopyMode::Copy]);
        assert_eq!(modes("xdp:e,zerocopy").attach_modes(), [AttachMode::Driver]);
        assert_eq!(modes("xdp:e,copy").copy_modes(AttachMode::Driver), [CopyMode::Copy]);
    }
}
