//! How an interface that is to be a port is named: `eth0`, or `xdp:eth0,driver,copy`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What stands before the name of an interface that is to be served through AF_XDP.
const XDP_PREFIX: &str = "xdp:";

/// An interface to serve, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// Name of the interface.
    pub interface: String,
    /// Through AF_XDP instead of a packet socket.
    pub xdp: Option<XdpModes>,
}

/// What is asked of an AF_XDP port. What is left open is tried, the faster one first.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct XdpModes {
    /// Where the program runs.
    pub attach: Option<AttachMode>,
    /// Who copies frames.
    pub copy: Option<CopyMode>,
}

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum AttachMode {
    /// In the interface's driver, before the kernel has made anything of a frame.
    Driver,
    /// In the kernel's receive path, with any driver.
    Generic,
}

/// How frames get to and from the memory of an AF_XDP socket.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum CopyMode {
    /// The device reads and writes it.
    ZeroCopy,
    /// The kernel copies.
    Copy,
}

impl AttachMode {
    /// Its name in a [`PortSpec`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Generic => "generic",
        }
    }
}

impl CopyMode {
    /// Its name in a [`PortSpec`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::ZeroCopy => "zerocopy",
            Self::Copy => "copy",
        }
    }
}

impl XdpModes {
    /// Where to run the program, in the order in which that is tried.
    pub(super) fn attach_modes(self) -> Vec<AttachMode> {
        match (self.attach, self.copy) {
            (Some(mode), _) => vec![mode],
            // Only drivers know zero-copy.
            (None, Some(CopyMode::ZeroCopy)) => vec![AttachMode::Driver],
            (None, _) => vec![AttachMode::Driver, AttachMode::Generic],
        }
    }

    /// How to move frames with a program that runs there, in the order in which that is tried.
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
                _ => return Err("driver or generic, and zerocopy or copy, after the comma".to_owned()),
            };
            if !is_new {
                return Err("driver or generic once, and zerocopy or copy once".to_owned());
            }
        }
        if modes == (Self { attach: Some(AttachMode::Generic), copy: Some(CopyMode::ZeroCopy) }) {
            return Err("generic with copy, or zerocopy with driver".to_owned());
        }
        Ok(modes)
    }
}

impl FromStr for PortSpec {
    /// What was expected.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (interface, xdp) = match text.strip_prefix(XDP_PREFIX) {
            None => (text, None),
            Some(rest) => match rest.split_once(',') {
                None => (rest, Some(XdpModes::default())),
                Some((interface, words)) => (interface, Some(XdpModes::parse(words)?)),
            },
        };
        // What Linux allows, less the quote that an ingress rule's text could not hold.
        let is_name = !interface.is_empty()
            && interface.len() < libc::IFNAMSIZ
            && interface.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:\"\\".contains(&byte));
        if !is_name {
            return Err("the name of a network interface, or xdp: and the name of one".to_owned());
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
    fn what_is_written_is_read() {
        for text in ["eth0", "a,b", "xdp:eth0", "xdp:eth0,generic", "xdp:eth0,copy", "xdp:e,driver,zerocopy"]
        {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("xdp:eth0,copy,driver").unwrap().to_string(), "xdp:eth0,driver,copy");
        assert_eq!(parse("xdp").unwrap(), PortSpec { interface: "xdp".to_owned(), xdp: None });
    }

    #[test]
    fn nonsense_is_refused_with_what_was_expected() {
        for (text, part) in [
            ("", "the name of a network interface"),
            ("xdp:", "the name of a network interface"),
            ("xdp:xdp:eth0", "the name of a network interface"),
            ("eth0:1", "the name of a network interface"),
            ("xdp:a-name-that-is-far-too-long", "the name of a network interface"),
            ("xdp:eth0,", "driver or generic"),
            ("xdp:eth0,fast", "driver or generic"),
            ("xdp:eth0,driver,generic", "once"),
            ("xdp:eth0,copy,copy", "once"),
            ("xdp:eth0,generic,zerocopy", "zerocopy with driver"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_faster_way_is_tried_first() {
        let modes = |text: &str| parse(text).unwrap().xdp.unwrap();
        let open = modes("xdp:e");
        assert_eq!(open.attach_modes(), [AttachMode::Driver, AttachMode::Generic]);
        assert_eq!(open.copy_modes(AttachMode::Driver), [CopyMode::ZeroCopy, CopyMode::Copy]);
        assert_eq!(open.copy_modes(AttachMode::Generic), [CopyMode::Copy]);
        assert_eq!(modes("xdp:e,zerocopy").attach_modes(), [AttachMode::Driver]);
        assert_eq!(modes("xdp:e,copy").copy_modes(AttachMode::Driver), [CopyMode::Copy]);
    }
}
