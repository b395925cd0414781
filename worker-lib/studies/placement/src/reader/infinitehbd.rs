//! Reader of the fault trace of `InfiniteHBD` (Shou et al., SIGCOMM 2025; github.com/stepfun-ai/InfiniteHBD-Trace).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::node_trace::NodeTrace;
use iswitch_study::StudyError;
use iswitch_study::table::read;

const DAY: f64 = 86_400.0;
/// Resolution of the trace's times in seconds: 1e-4 days. An outage with equal start and end times is taken to last
/// this long.
const RESOLUTION: f64 = 1e-4 * DAY;

/// Event of the trace. Its other fields, such as `fault_type`, are ignored.
#[derive(Deserialize)]
struct Event {
    node_id: String,
    #[serde(rename = "event_time")]
    time: f64,
    #[serde(rename = "event_type")]
    kind: String,
}

/// Reads `fault_trace.json`: a list of events with `node_id`, `event_time` in days and `event_type`, which is
/// `fault_start` or `fault_end`, in any order. A node counts as failed while more of its faults have started than
/// ended. The period lasts from time 0 to the last event; a fault without an end lasts until the end of the period.
///
/// # Errors
/// Fails if the file cannot be read or is not such a list, or a fault ends without having started. The error gives the
/// index of the event, counted from 0, and the invalid field.
pub fn read_infinitehbd(path: &Path) -> Result<NodeTrace, StudyError> {
    let text = read(path)?;
    let events: Vec<Event> = serde_json::from_str(&text).map_err(|error| StudyError::file(path, error))?;
    let mut of_node: BTreeMap<&str, Vec<(f64, bool, usize)>> = BTreeMap::new();
    let mut last = 0.0_f64;
    for (number, event) in events.iter().enumerate() {
        let fail = |field: &str, value: &dyn std::fmt::Display, expected: &str| {
            StudyError::file(path, format!("event {number}: {field} is {value}, expected {expected}"))
        };
        if !(event.time.is_finite() && event.time >= 0.0) {
            return Err(fail("event_time", &event.time, "a number of days >= 0"));
        }
        let is_start = match event.kind.as_str() {
            "fault_start" => true,
            "fault_end" => false,
            other => return Err(fail("event_type", &format!("{other:?}"), "fault_start or fault_end")),
        };
        let time = event.time * DAY;
        last = last.max(time);
        of_node.entry(&event.node_id).or_default().push((time, is_start, number));
    }
    let length = last + RESOLUTION;
    let nodes = of_node.into_values().map(|events| {
        outages(events, length).map_err(|number| {
            let reason = "event_type is fault_end, but the node has no open fault";
            StudyError::file(path, format!("event {number}: {reason}"))
        })
    });
    let nodes = nodes.collect::<Result<_, _>>()?;
    NodeTrace::new(nodes, length).map_err(|error| StudyError::file(path, error))
}

/// Returns the outages of a node. If an event ends a fault that has not started, fails with the index of this event.
fn outages(mut events: Vec<(f64, bool, usize)>, length: f64) -> Result<Vec<(f64, f64)>, usize> {
    // Among events at the same time, starts come before ends.
    events.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let (mut outages, mut open, mut begin) = (Vec::new(), 0_usize, 0.0);
    for (time, is_start, number) in events {
        if is_start {
            if open == 0 {
                begin = time;
            }
            open += 1;
        } else {
            open = open.checked_sub(1).ok_or(number)?;
            if open == 0 {
                outages.push((begin, time.max(begin + RESOLUTION)));
            }
        }
    }
    if open > 0 {
        outages.push((begin, length));
    }
    Ok(outages)
}
