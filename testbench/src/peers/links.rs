//! What the cables of a network are like: how fast, and how long.

use std::str::FromStr;
use std::time::Duration;

use iswitch_harness::netns::Namespace;
use iswitch_harness::process::run;
use iswitch_harness::shaper;

/// Bits per second of each link, each way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bits per second.
    pub bits_per_s: f64,
}

impl Rate {
    /// How long so many bytes occupy a link, headers not counted.
    pub fn seconds_for(self, bytes: f64) -> f64 {
        bytes * 8.0 / self.bits_per_s
    }

    /// Such as `1 Gbit/s`.
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
            .ok_or_else(|| format!("{text:?}, expected such as 1gbit"))
    }
}

/// What all cables are like, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Links {
    /// How fast they are, if not as fast as the machine.
    pub rate: Option<Rate>,
    /// How long a frame is on its way, if not only as long as the machine takes. A relay in user space holds it back,
    /// and passes on single frames: see `iswitch_testbench::wire_relay`.
    pub delay: Option<Duration>,
}

impl Links {
    /// For people.
    pub fn text(self) -> String {
        let rate = self.rate.map_or_else(|| "links as fast as the machine".to_owned(), Rate::text);
        self.delay.map_or(rate.clone(), |delay| format!("{rate}, {} us one way", delay.as_micros()))
    }

    /// For the name of a file.
    pub fn slug(self) -> String {
        let rate =
            self.rate.map_or_else(|| "unshaped".to_owned(), |rate| format!("{}gbit", rate.bits_per_s / 1e9));
        self.delay.map_or(rate.clone(), |delay| format!("{rate}-{}us", delay.as_micros()))
    }
}

/// Limits what leaves through an interface.
pub(crate) fn shape(namespace: &Namespace, interface: &str, rate: Rate) {
    let mut command = namespace.command("tc");
    command.args(["qdisc", "add", "dev", interface, "root"]).args(shaper(rate.bits_per_s));
    run(&mut command);
}

/// Lets TCP use Reno whatever the machine's own choice is: the only one that each kernel has and allows in a namespace.
/// Where nothing is lost it is not slower than others; BBR, which paces, takes a fifth longer for what several workers
/// send to one server.
pub(crate) fn choose_congestion_control(namespace: &Namespace) {
    namespace.run(["sh", "-c", "echo reno >/proc/sys/net/ipv4/tcp_congestion_control"]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        assert_eq!("1gbit".parse(), Ok(Rate { bits_per_s: 1e9 }));
        assert_eq!("2.5gbit".parse::<Rate>().unwrap().text(), "2.5 Gbit/s");
        for bad in ["", "gbit", "0gbit", "-1gbit", "1mbit", "nangbit", "infgbit"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad:?}");
        }
        assert!((Rate { bits_per_s: 1e9 }.seconds_for(125e6) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn links_have_names() {
        let rate = Some(Rate { bits_per_s: 1e10 });
        assert_eq!(Links::default().slug(), "unshaped");
        let links = Links { rate, delay: Some(Duration::from_micros(50)) };
        assert_eq!(
            (links.slug().as_str(), links.text().as_str()),
            ("10gbit-50us", "10 Gbit/s, 50 us one way")
        );
    }
}
