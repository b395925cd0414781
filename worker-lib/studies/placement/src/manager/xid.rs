//! Failures of GPUs in kernel logs: the `NVRM: Xid` lines of NVIDIA's driver.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::Managed;
use crate::failure::{Belief, RATE_MAX, YEAR};
use crate::rates::Shrinkage;
use iswitch_study::StudyError;
use iswitch_study::error::above_zero;
use iswitch_study::table::read;

/// Xids that indicate a failure of a GPU, its memory, its `NVLink` or its firmware, rather than an error of the program
/// that used the GPU (NVIDIA, "Xid Errors"): double-bit memory errors (48), failed remapping of a row (64), an `NVLink`
/// error (74), a GPU that has fallen off the bus (79), too many single-bit errors (92), an uncontained memory error
/// (95), firmware errors (119, 120), an unrecovered memory error (140), and a failed initialisation (143).
pub const HARDWARE_FAILURES: [u32; 10] = [48, 64, 74, 79, 92, 95, 119, 120, 140, 143];

const DAY: f64 = 86_400.0;

/// Number of GPU failures on each node, according to the log. At most one failure per GPU and day is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XidCounts {
    /// Number of failures by the name of the node.
    pub by_node: BTreeMap<String, u32>,
    /// Number of Xid lines whose code does not count as a failure.
    pub others: usize,
}

/// Reads the lines of all nodes' kernel logs, as `journalctl --dmesg --output short-iso` prints them:
/// `2026-11-20T03:12:44+0000 gpu07 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=..., GPU has fallen off the bus.` Lines
/// without `NVRM: Xid` are ignored. Only the Xids in `codes` count as failures. The failure of a GPU causes many lines,
/// so all lines about the same GPU on the same date count as one failure.
///
/// # Errors
/// Fails if the file cannot be read, or an Xid line lacks a date, a host name, a PCI address or an Xid code.
pub fn read_xids(path: &Path, codes: &[u32]) -> Result<XidCounts, StudyError> {
    let text = read(path)?;
    let mut counts = XidCounts::default();
    let mut seen = HashSet::new();
    for (at, line) in text.lines().enumerate() {
        let Some((head, tail)) = line.split_once("NVRM: Xid (") else { continue };
        let expected = "expected TIME HOST kernel: NVRM: Xid (PCI:ADDRESS): CODE, ...";
        let event = event(head, tail)
            .ok_or_else(|| StudyError::line(path, at + 1, format!("the line is {line:?}, {expected}")))?;
        if !codes.contains(&event.code) {
            counts.others += 1;
        } else if seen.insert((event.date, event.host, event.device)) {
            *counts.by_node.entry(event.host.to_owned()).or_default() += 1;
        }
    }
    Ok(counts)
}

struct Event<'a> {
    date: &'a str,
    host: &'a str,
    device: &'a str,
    code: u32,
}

/// Parses an Xid line: `head` is the part before `NVRM: Xid (`, `tail` the part after it. Returns `None` if the line is
/// incomplete.
fn event<'a>(head: &'a str, tail: &'a str) -> Option<Event<'a>> {
    let mut words = head.split_whitespace();
    let (time, host) = (words.next()?, words.next()?);
    let date = time.split_once('T')?.0;
    let digits = date.split('-').map(str::len);
    let (device, rest) = tail.split_once("): ")?;
    let code = rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()?;
    let is_complete = digits.eq([4, 2, 2]) && device.starts_with("PCI:");
    is_complete.then_some(Event { date, host, device, code })
}

impl XidCounts {
    /// Returns the failure rate of each node's GPUs in failures per year, estimated by empirical Bayes as in
    /// [`RatePool`](crate::rates::RatePool): `(e + shape) / (y + shape / m)` where e is the number of failures in y
    /// GPU-years of the node and m is the mean rate of all nodes. Without any failures, all rates are 0.
    ///
    /// # Errors
    /// Fails if the number of days is not above 0, or the log names a host that is not among the nodes.
    pub fn rates(&self, managed: &Managed, days: f64) -> Result<Vec<f64>, StudyError> {
        let years = above_zero("days of observation", days, "days")? * DAY / YEAR;
        let known = managed.by_name();
        if let Some(host) = self.by_node.keys().find(|host| !known.contains_key(host.as_str())) {
            return Err(StudyError::field("host of an Xid", host, "the name of a node with GPUs"));
        }
        let events: u32 = self.by_node.values().sum();
        let gpus: usize = managed.nodes.iter().map(|node| node.gpus).sum();
        if events == 0 {
            return Ok(vec![0.0; managed.nodes.len()]);
        }
        let mean = f64::from(events) / (gpus as f64 * years);
        let shape = Shrinkage::default().shape;
        let rate = |name: &str, gpus: usize| {
            let events = self.by_node.get(name).copied().unwrap_or_default();
            Belief::shrunk(f64::from(events), gpus as f64 * years, shape, mean).rate().min(RATE_MAX)
        };
        Ok(managed.nodes.iter().map(|node| rate(&node.name, node.gpus)).collect())
    }
}
