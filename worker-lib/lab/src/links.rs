//! Rate and delay of links, emulated with the kernel's queueing disciplines.

use std::str::FromStr;
use std::time::Duration;

use crate::LabError;
use crate::namespace::Namespace;

/// Minimum burst of a shaper, in bytes. It must exceed the 68,130 bytes that tbf counts for a TCP super-frame of 64
/// KiB, which include the headers of its 45 segments. The kernel splits a larger super-frame into its segments before
/// queueing it: with a burst of 68,000 bytes, all TCP traffic was sent as single segments, which took five times as
/// much CPU time and thereby concealed the effect of the rate. The rate also has little effect on vectors that are not
/// much longer than the burst.
const MIN_BURST_BYTES: f64 = 72_000.0;
/// Burst of a shaper, expressed as its transmission time at the shaper's rate, in seconds. A smaller burst would reduce
/// the rate, because the resolution of the kernel's timers is limited.
const BURST_SECONDS: f64 = 50e-6;
/// Queue limit of a shaper, in bytes. It exceeds the amount of data that any program has in flight, so that the shaper
/// drops nothing. If the limit were a few hundred kilobytes, as in a real switch port, a parameter server that uses TCP
/// would have to wait for retransmission timers.
const QUEUE_BYTES: u64 = 64 << 20;
/// Queue limit of the delay emulation, in packets. A super-frame counts as one packet.
const QUEUE_PACKETS: u64 = 100_000;

/// Returns the arguments of `tc qdisc add dev INTERFACE root` that limit the egress rate of an interface.
pub fn shaper(bits_per_s: f64) -> Vec<String> {
    let burst_bytes = (bits_per_s / 8.0 * BURST_SECONDS).max(MIN_BURST_BYTES);
    let words = format!("tbf rate {bits_per_s:.0}bit burst {burst_bytes:.0} limit {QUEUE_BYTES}");
    words.split(' ').map(str::to_owned).collect()
}

/// Rate of a link, which is the same in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bits per second.
    pub bits_per_s: f64,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bits_per_s = number(text, &[("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)]);
        let rate = bits_per_s.map(|bits_per_s| Self { bits_per_s });
        rate.ok_or_else(|| "expected a rate such as 1gbit or 100mbit".to_owned())
    }
}

/// Time that a frame needs to traverse a link. It is the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay(pub Duration);

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = number(text, &[("us", 1e-6), ("ms", 1e-3)]).filter(|seconds| *seconds <= 10.0);
        let delay = seconds.map(|seconds| Self(Duration::from_secs_f64(seconds)));
        delay.ok_or_else(|| "expected a delay such as 100us or 5ms, at most 10000ms".to_owned())
    }
}

/// Parses a positive number with a unit.
fn number(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (digits, scale) = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    let number: f64 = digits.parse().ok()?;
    (number > 0.0 && number.is_finite()).then_some(number * scale)
}

/// Properties of the links. They are the same for all links and in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Links {
    /// Rate of each link; `None` if links are as fast as the machine allows.
    pub rate: Option<Rate>,
    /// Emulated delay of each link, in addition to the delay of the machine itself.
    pub delay: Option<Delay>,
}

impl Links {
    /// Limits the rate of an interface's egress traffic, and delays this traffic.
    ///
    /// # Errors
    /// Fails if the kernel lacks a required queueing discipline.
    pub fn shape(self, namespace: &Namespace, interface: &str) -> Result<(), LabError> {
        let mut parent = ["root", "handle", "1:"].as_slice();
        if let Some(rate) = self.rate {
            add(namespace, interface, parent, &shaper(rate.bits_per_s))?;
            parent = &["parent", "1:1", "handle", "10:"];
        }
        let Some(Delay(delay)) = self.delay else { return Ok(()) };
        let words = format!("netem delay {}us limit {QUEUE_PACKETS}", delay.as_micros());
        let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
        add(namespace, interface, parent, &words).map_err(|error| match error {
            LabError::Command { command, reason } if reason.contains("Specified qdisc kind is unknown") => {
                let reason =
                    "this kernel cannot delay packets: it lacks netem (CONFIG_NET_SCH_NETEM, module sch_netem)";
                LabError::Command { command, reason: reason.to_owned() }
            }
            error => error,
        })
    }
}

fn add(namespace: &Namespace, interface: &str, parent: &[&str], words: &[String]) -> Result<(), LabError> {
    let mut command = namespace.command("tc");
    command.args(["qdisc", "add", "dev", interface]).args(parent).args(words);
    crate::process::run(&mut command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_delays_have_units() {
        assert_eq!("2.5gbit".parse(), Ok(Rate { bits_per_s: 2.5e9 }));
        assert_eq!("100mbit".parse(), Ok(Rate { bits_per_s: 1e8 }));
        assert_eq!("100us".parse(), Ok(Delay(Duration::from_micros(100))));
        assert_eq!("5ms".parse(), Ok(Delay(Duration::from_millis(5))));
        for bad in ["", "1", "gbit", "-1gbit", "0mbit", "nangbit", "infgbit", "1ms"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad:?}");
        }
        for bad in ["", "1", "us", "1s", "0ms", "10001ms", "1gbit"] {
            assert!(bad.parse::<Delay>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_burst_holds_a_super_frame() {
        assert_eq!(shaper(1e9).join(" "), "tbf rate 1000000000bit burst 72000 limit 67108864");
        assert_eq!(shaper(1e11)[4], "625000");
    }
}
