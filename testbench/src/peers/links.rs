//! Properties of the cables of a network: rate and delay.

use std::str::FromStr;
use std::time::Duration;

use iswitch_harness::netns::Namespace;
use iswitch_harness::process::run;
use iswitch_harness::shaper;

/// Rate of a link in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bits per second.
    pub bits_per_s: f64,
}

impl Rate {
    /// Returns the time, in seconds, for which the given number of bytes, without headers, occupies a link.
    pub fn seconds_for(self, bytes: f64) -> f64 {
        bytes * 8.0 / self.bits_per_s
    }

    /// Returns a text such as `1 Gbit/s`.
    pub fn text(self) -> String {
        format!("{} Gbit/s", self.bits_per_s / 1e9)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix("gbit").and_then(|number| number.parse::<f64>().ok());
        let gigabits = number.filter(|number| *number > 0.0 && number.is_finite());
        gigabits
            .map(|gigabits| Self { bits_per_s: gigabits * 1e9 })
            .ok_or_else(|| format!("rate is {text:?}, expected a rate such as 1gbit"))
    }
}

/// Properties of all cables, in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Links {
    /// Rate; `None` if only the machine limits it.
    pub rate: Option<Rate>,
    /// Delay of a frame; `None` if only the machine delays it. The frames are delayed by a relay in user space, which
    /// turns off super-frames. See `iswitch_testbench::wire_relay`.
    pub delay: Option<Duration>,
}

impl Links {
    /// Returns a description of the links.
    pub fn text(self) -> String {
        let rate = self.rate.map_or_else(|| "links as fast as the machine".to_owned(), Rate::text);
        self.delay.map_or(rate.clone(), |delay| format!("{rate}, {} us one way", delay.as_micros()))
    }

    /// Returns the part of a file name that identifies the links.
    pub fn slug(self) -> String {
        let rate =
            self.rate.map_or_else(|| "unshaped".to_owned(), |rate| format!("{}gbit", rate.bits_per_s / 1e9));
        self.delay.map_or(rate.clone(), |delay| format!("{rate}-{}us", delay.as_micros()))
    }
}

/// Limits the rate at which frames leave through an interface.
pub(crate) fn shape(namespace: &Namespace, interface: &str, rate: Rate) {
    let mut command = namespace.command("tc");
    command.args(["qdisc", "add", "dev", interface, "root"]).args(shaper(rate.bits_per_s));
    run(&mut command);
}

/// Selects Reno as TCP congestion control, regardless of the machine's default, because it is the only algorithm that
/// every kernel has and allows in a namespace. Without loss, Reno is as fast as the other algorithms, except that BBR,
/// which paces its packets, takes a fifth longer when several workers send to one server.
pub(crate) fn choose_congestion_control(namespace: &Namespace) {
    namespace.run(["sh", "-c", "echo reno >/proc/sys/net/ipv4/tcp_congestion_control"]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_rates_are_parsed() {
        assert_eq!("1gbit".parse(), Ok(Rate { bits_per_s: 1e9 }));
        assert_eq!("2.5gbit".parse::<Rate>().unwrap().text(), "2.5 Gbit/s");
        for bad in ["", "gbit", "0gbit", "-1gbit", "1mbit", "nangbit", "infgbit"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad:?}");
        }
        assert!((Rate { bits_per_s: 1e9 }.seconds_for(125e6) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn links_have_slugs_and_descriptions() {
        let rate = Some(Rate { bits_per_s: 1e10 });
        assert_eq!(Links::default().slug(), "unshaped");
        let links = Links { rate, delay: Some(Duration::from_micros(50)) };
        assert_eq!(
            (links.slug().as_str(), links.text().as_str()),
            ("10gbit-50us", "10 Gbit/s, 50 us one way")
        );
    }
}
