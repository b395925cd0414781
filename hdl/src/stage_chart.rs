//! Gantt chart of the accelerator's stages, drawn from a Value Change Dump.

use std::io::{self, Read};

use iswitch_figure::{Axis, GanttChart, GanttRow, Quantity, Span};
use vcd::{Command, IdCode, Parser};

use crate::simulation::{CYCLE_PS, FrameSpan};

/// Frames of the run that the dump records.
pub(crate) struct Frames<'a> {
    /// Spans of the frames at the input, in order: one contribution per worker, with an ordinary frame before the last
    /// contribution.
    pub(crate) entered: &'a [FrameSpan],
    /// Spans at the output: first that of the ordinary frame, then that of the result.
    pub(crate) left: [FrameSpan; 2],
    /// Number of bursts in a contribution.
    pub(crate) bursts: usize,
}

/// A stage of the accelerator and the condition under which it is active.
struct Stage {
    name: &'static str,
    /// Pairs of a signal, named relative to the top module, and a value. The stage is active in the cycles in which
    /// every signal has its value.
    condition: &'static [(&'static str, &'static str)],
    owner: Owner,
}

/// Rule that assigns an active cycle of a stage to a frame.
#[derive(Clone, Copy)]
enum Owner {
    /// The cycle belongs to the frame at the input.
    Entering,
    /// The cycle belongs to the frame at the output.
    Leaving,
    /// The n-th interval in which the stage is active belongs to the n-th contribution.
    Interval,
    /// The n-th active cycle belongs to the n-th frame to arrive.
    Decision,
    /// The stage processes one burst per active cycle; the cycle belongs to the contribution of this burst.
    Burst,
    /// The cycle belongs to the contribution of the burst at the head of the burst queue.
    NextBurst,
    /// The cycle belongs to the result.
    Result,
}

const POP: &str = "datapath.bursts.pop";
/// State register of the Seg counter, which handles two requests at once. `Read` and `Compare` are steps of the newer
/// request; in these states, the counter judges and decides the older request.
const STATE: &str = "datapath.counter.state.q";
/// Condition under which the frame that the Seg counter weighs, judges or decides is a contribution rather than an
/// ordinary frame.
const DECIDES_DATA: [(&str, &str); 2] =
    [("datapath.counter.has_deciding.q", "1"), ("datapath.counter.decides_ordinary.q", "0")];

const fn stage(
    name: &'static str,
    condition: &'static [(&'static str, &'static str)],
    owner: Owner,
) -> Stage {
    Stage { name, condition, owner }
}

/// Stages in the order in which a contribution passes them.
const STAGES: [Stage; 14] = [
    stage("input", &[("s_axis_tvalid", "1"), ("s_axis_tready", "1")], Owner::Entering),
    stage("Seg counter: weigh", &[(STATE, "Weigh"), DECIDES_DATA[0], DECIDES_DATA[1]], Owner::Interval),
    stage("Seg counter: judge", &[(STATE, "Read"), DECIDES_DATA[0], DECIDES_DATA[1]], Owner::Interval),
    stage("Seg counter: decide", &[(STATE, "Compare"), DECIDES_DATA[0], DECIDES_DATA[1]], Owner::Interval),
    stage("decision", &[("datapath.decisions.push", "1")], Owner::Decision),
    stage("burst separated", &[("datapath.separator.burst_push", "1")], Owner::Burst),
    stage("burst waits (hazard)", &[("datapath.hazard", "1")], Owner::NextBurst),
    stage("burst enters loop", &[(POP, "1")], Owner::Burst),
    stage("sum complete", &[("datapath.accumulator.sum_push", "1")], Owner::Result),
    stage("result: prepare", &[("datapath.output_module.state.q", "Prepare")], Owner::Result),
    stage("result: head", &[("datapath.output_module.state.q", "Head")], Owner::Result),
    stage("result: body", &[("datapath.output_module.state.q", "Body")], Owner::Result),
    stage("result: tail", &[("datapath.output_module.state.q", "Tail")], Owner::Result),
    stage("output", &[("m_axis_tvalid", "1"), ("m_axis_tready", "1")], Owner::Leaving),
];

/// Draws the activity of all stages in the first `cycles` clock cycles as SVG.
///
/// # Errors
/// Fails if the dump cannot be read or lacks a signal.
pub(crate) fn draw(dump: impl Read, title: String, frames: &Frames<'_>, cycles: u64) -> io::Result<String> {
    let mut dump = Parser::new(dump);
    let header = dump.parse_header()?;
    let code = |signal: &str| {
        let path: Vec<&str> = ["uut"].into_iter().chain(signal.split('.')).collect();
        let missing = || io::Error::new(io::ErrorKind::InvalidData, format!("no signal {signal}"));
        header.find_var(&path).map(|signal| signal.code).ok_or_else(missing)
    };
    let mut values: Vec<(IdCode, &str, bool)> = Vec::new();
    let mut conditions = Vec::new();
    for Stage { condition, .. } in &STAGES {
        let first = values.len();
        for (signal, value) in *condition {
            values.push((code(signal)?, value, false));
        }
        conditions.push(first..values.len());
    }
    let mut active: Vec<Vec<bool>> = vec![Vec::new(); STAGES.len()];
    let mut sample = |values: &[(IdCode, &str, bool)], until_ps: u64| {
        // The value of a signal in a cycle is its value before the rising edge in the middle of the cycle.
        while active[0].len() < cycles as usize
            && active[0].len() as u64 * CYCLE_PS + CYCLE_PS / 2 <= until_ps
        {
            for (active, condition) in active.iter_mut().zip(&conditions) {
                active.push(values[condition.clone()].iter().all(|(.., holds)| *holds));
            }
        }
    };
    for command in dump {
        let (changed, now) = match command? {
            Command::Timestamp(ps) => {
                sample(&values, ps);
                continue;
            }
            Command::ChangeScalar(changed, value) => (changed, value.to_string()),
            Command::ChangeString(changed, value) => (changed, value),
            _ => continue,
        };
        for (_, value, holds) in values.iter_mut().filter(|(signal, ..)| *signal == changed) {
            *holds = now == *value;
        }
    }
    sample(&values, u64::MAX);
    Ok(chart(title, frames, &active).draw())
}

fn chart(title: String, frames: &Frames<'_>, active: &[Vec<bool>]) -> GanttChart {
    let contributions = frames.entered.len() - 1;
    let names = (0..contributions).map(|number| format!("contribution {number}"));
    let pops = STAGES.iter().position(|stage| stage.condition[0].0 == POP).expect("a stage pops bursts");
    let rows = STAGES.iter().zip(active).map(|(stage, cycles)| GanttRow {
        name: stage.name.to_owned(),
        spans: frames.spans(stage.owner, cycles, &active[pops]),
        outages: Vec::new(),
    });
    GanttChart {
        title,
        note: "Bars: the stage is active. Colours: the frame that it processes.".to_owned(),
        x: Axis {
            includes: vec![0.0],
            ..Axis::linear(Quantity::new("Time", format!("cycles of {} ns", CYCLE_PS / 1000)))
        },
        outage: None,
        series: names.chain(["ordinary frame".to_owned(), "result".to_owned()]).collect(),
        rows: rows.collect(),
    }
}

impl Frames<'_> {
    /// Returns the bars of a stage. A bar covers consecutive active cycles that belong to the same frame. `active` and
    /// `pops` indicate for each cycle whether the stage is active and whether a burst leaves the burst queue.
    fn spans(&self, owner: Owner, active: &[bool], pops: &[bool]) -> Vec<Span> {
        let contributions = self.entered.len() - 1;
        let (ordinary, result) = (contributions, contributions + 1);
        // The ordinary frame arrives before the last contribution.
        let arrived = |number: usize| match number {
            _ if number + 1 == contributions => ordinary,
            _ if number == contributions => number - 1,
            _ => number,
        };
        let contribution = |number: usize| number.min(contributions - 1);
        let in_cycle =
            |spans: &[FrameSpan], cycle: usize| spans.iter().position(|span| cycle as u64 <= span.last_cycle);
        let mut spans: Vec<Span> = Vec::new();
        let (mut count, mut intervals, mut popped) = (0, 0, 0);
        for (cycle, is_active) in active.iter().enumerate() {
            let was_active = cycle > 0 && active[cycle - 1];
            if *is_active {
                let series = match owner {
                    Owner::Entering => arrived(in_cycle(self.entered, cycle).unwrap_or(contributions)),
                    Owner::Leaving if in_cycle(&self.left, cycle) == Some(0) => ordinary,
                    Owner::Leaving | Owner::Result => result,
                    Owner::Interval => contribution(intervals),
                    Owner::Decision => arrived(count.min(contributions)),
                    Owner::Burst => contribution(count / self.bursts),
                    Owner::NextBurst => contribution(popped / self.bursts),
                };
                let (begin, end) = (cycle as f64, cycle as f64 + 1.0);
                match spans.last_mut().filter(|span| span.end == begin && span.series == series) {
                    Some(span) => span.end = end,
                    None => spans.push(Span { begin, end, part: (0.0, 1.0), series }),
                }
                count += 1;
            } else if was_active {
                intervals += 1;
            }
            popped += usize::from(pops[cycle]);
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(first_cycle: u64, last_cycle: u64) -> FrameSpan {
        FrameSpan { first_cycle, last_cycle }
    }

    /// Two contributions of one burst each, and the ordinary frame between them.
    fn series(owner: Owner, active: &str, pops: &str) -> Vec<(f64, f64, usize)> {
        let entered = [span(0, 1), span(2, 2), span(3, 4)];
        let frames = Frames { entered: &entered, left: [span(5, 5), span(7, 8)], bursts: 1 };
        let cycles = |text: &str| -> Vec<bool> { text.chars().map(|cycle| cycle == '1').collect() };
        let spans = frames.spans(owner, &cycles(active), &cycles(pops));
        spans.into_iter().map(|span| (span.begin, span.end, span.series)).collect()
    }

    #[test]
    fn bars_belong_to_frames() {
        let (ordinary, result) = (2, 3);
        let input = series(Owner::Entering, "11111", "00000");
        assert_eq!(input, [(0.0, 2.0, 0), (2.0, 3.0, ordinary), (3.0, 5.0, 1)]);
        assert_eq!(
            series(Owner::Leaving, "000001011", "000000000"),
            [(5.0, 6.0, ordinary), (7.0, 9.0, result)]
        );
        assert_eq!(series(Owner::Interval, "01101", "00000"), [(1.0, 3.0, 0), (4.0, 5.0, 1)]);
        assert_eq!(
            series(Owner::Decision, "01011", "00000"),
            [(1.0, 2.0, 0), (3.0, 4.0, ordinary), (4.0, 5.0, 1)]
        );
        assert_eq!(series(Owner::Burst, "011", "011"), [(1.0, 2.0, 0), (2.0, 3.0, 1)]);
        assert_eq!(series(Owner::NextBurst, "101", "010"), [(0.0, 1.0, 0), (2.0, 3.0, 1)]);
        assert_eq!(series(Owner::Result, "011", "000"), [(1.0, 3.0, result)]);
    }

    #[test]
    fn a_dump_without_the_signals_is_rejected() {
        let entered = [span(0, 0), span(1, 1)];
        let frames = Frames { entered: &entered, left: [span(2, 2), span(3, 3)], bursts: 1 };
        let dump = "$timescale 1 ps $end\n$scope module uut $end\n$upscope $end\n$enddefinitions $end\n";
        let error = draw(dump.as_bytes(), String::new(), &frames, 5).unwrap_err();
        assert!(error.to_string().contains("no signal s_axis_tvalid"), "{error}");
    }
}
