//! Synchronous iterations with replayed local computation, which reproduce the paper's figures 4 and 12, and its figure
//! 15 for racks.

use std::time::Duration;

use iswitch::aggregate::Style;
use iswitch_figure::{Axis, Bar, Line, LineChart, Paint, Quantity};
use serde_json::{Value, json};

use super::paper::Model;
use crate::contest::{Markdown, Progress, Spread};
use crate::peers::{Contender, Links, Load, Network, Rate, Run, Runs, Table, Tools, measure, plot};
use iswitch_harness::cluster::PortKind;

/// Contenders. The first one, the parameter server as in the paper, is the reference for all others.
pub const CONTENDERS: [Contender; 5] = [
    Contender::ParameterServer(Style::Paper),
    Contender::switch(PortKind::Raw),
    Contender::ParameterServer(Style::Pipelined),
    Contender::Ring(Style::Paper),
    Contender::Ring(Style::Pipelined),
];

const ROUNDS: (f64, f64) = (6.0, 500.0);

/// Origin of the replayed computation time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Computation time derived from the paper.
    Paper,
    /// Computation time of this project's own algorithms.
    Own,
}

impl Origin {
    /// Returns a description of the origin.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "the paper's",
            Self::Own => "this project's own",
        }
    }

    /// Returns the part of a file name that identifies the origin.
    pub fn slug(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Own => "own",
        }
    }
}

/// Model and computation to replay.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Model whose vector and speed-ups are used.
    pub model: Model,
    /// Origin of the computation time.
    pub origin: Origin,
    /// Computation time of an iteration, before stretching.
    pub compute: Duration,
    /// Factor by which the computation time is multiplied: the factor by which the links are slower than the paper's.
    pub stretch: u32,
}

impl Scene {
    /// Returns a description of the computation: its origin and its factor, such as `the paper's, 10 times as long`.
    pub(super) fn computation(&self) -> String {
        let stretched =
            if self.stretch > 1 { format!(", {} times as long", self.stretch) } else { String::new() };
        format!("{}{stretched}", self.origin.name())
    }

    /// Returns the computation as a part of a title, such as `the paper's computation times multiplied by 10`.
    pub(super) fn computation_times(&self) -> String {
        let stretched =
            if self.stretch > 1 { format!(" multiplied by {}", self.stretch) } else { String::new() };
        format!("{} computation times{stretched}", self.origin.name())
    }

    fn load(&self, rate: Rate, workers: usize, seconds: f64) -> Load {
        let compute = self.compute * self.stretch;
        let bytes = f64::from(self.model.floats) * size_of::<f32>() as f64;
        let slowest_s = compute.as_secs_f64() + 2.0 * workers as f64 * rate.seconds_for(bytes);
        let rounds = (seconds / slowest_s).clamp(ROUNDS.0, ROUNDS.1) as usize;
        Load { floats: self.model.floats, rounds, warm_up: 2, compute }
    }

    /// Measures all contenders in alternating turns. A turn of the slowest contender takes about `seconds` seconds.
    ///
    /// # Panics
    /// Panics if a sum is wrong or does not arrive, or if the rate of the links is not limited.
    pub fn measure(
        self,
        network: &Network,
        contenders: &[Contender],
        turns: usize,
        seconds: f64,
        progress: &Progress,
    ) -> Replay {
        let rate = network.links().rate.expect("links of a replay must be shaped");
        let load = self.load(rate, network.worker_count(), seconds);
        let tools = Tools::none();
        Replay { scene: self, table: measure(network, &tools, contenders, load, turns, progress) }
    }
}

/// Measurements of one scene.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Replayed scene.
    pub scene: Scene,
    /// Runs of the contenders, the paper's parameter server first.
    pub table: Table,
}

impl Replay {
    /// Returns the iteration time of the first contender divided by that of a contender in the same turn.
    pub fn speed_up(&self, row: &Runs) -> Spread {
        self.table.standings.reference().ratio_to(row, |run| run.iteration_us)
    }

    /// Returns the speed-up of the switch over the server if only links and computation take time. The server's link
    /// carries one vector from each worker and then one vector to each worker. With the switch, a worker waits for one
    /// vector only.
    pub fn wire_bound(&self) -> Option<f64> {
        let compute_us = self.table.load.compute.as_secs_f64() * 1e6;
        let wire_us = self.table.wire_us()?;
        Some((compute_us + 2.0 * self.table.workers as f64 * wire_us) / (compute_us + wire_us))
    }

    /// Returns the iteration time of the paper's parameter server, multiplied by the stretch factor, divided by the
    /// iteration time of a contender.
    fn beside_paper(&self, row: &Runs) -> f64 {
        let paper_us = self.scene.model.iteration().total_ms() * 1e3 * f64::from(self.scene.stretch);
        paper_us / iteration_us(row).median
    }

    /// Returns a title: the scene, the workers and the links.
    pub fn title(&self) -> String {
        let scene = &self.scene;
        format!("{}, {}, {}", scene.model.name, scene.computation_times(), self.table.setting())
    }

    /// Returns the part of a file name that identifies the measurement.
    pub fn slug(&self) -> String {
        let Scene { model, origin, .. } = self.scene;
        let name = model.name.to_lowercase();
        format!("study-{name}-{}-{}", origin.slug(), self.table.links.slug())
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let mut rows = Markdown::new([
            "",
            "iteration, ms",
            "computation (replayed), ms",
            "aggregation (real), ms",
            "aggregation share",
            "share of the wire limit",
            "speed-up",
            "speed-up over the paper's server",
        ]);
        self.table.standings.rows.iter().for_each(|row| rows.row(self.cells(row)));
        let bound = self.wire_bound().map_or_else(String::new, |bound| {
            format!("The links cap the switch's speed-up over the server at {bound:.2}.\n")
        });
        format!(
            "### {}\n\n{}\n{bound}The paper reports a speed-up of {:.2} for its switch over its server, measured on \
             the authors' machines.\n",
            self.title(),
            rows.text(),
            self.scene.model.speed_up
        )
    }

    fn cells(&self, row: &Runs) -> [String; 8] {
        let (iteration, aggregation) = (iteration_us(row), aggregation_us(row));
        let wire_us = self.table.wire_us();
        [
            row.contender.to_string(),
            iteration.scaled(1e-3).text(2),
            format!("{:.2}", row.spread(|run| run.compute_us).median / 1e3),
            aggregation.scaled(1e-3).text(2),
            format!("{:.1} %", 100.0 * aggregation.median / iteration.median),
            wire_us.map_or_else(String::new, |us| format!("{:.0} %", 100.0 * us / aggregation.median)),
            self.speed_up(row).text(2),
            match self.scene.origin {
                Origin::Paper => format!("{:.2}", self.beside_paper(row)),
                Origin::Own => String::new(),
            },
        ]
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let row = |row: &Runs| {
            json!({
                "contender": row.contender.to_string(),
                "iteration_us": iteration_us(row).json(),
                "compute_us": row.spread(|run| run.compute_us).json(),
                "aggregation_us": aggregation_us(row).json(),
                "speed_up": self.speed_up(row).json(),
                "paper_server_over_this":
                    (self.scene.origin == Origin::Paper).then(|| self.beside_paper(row)),
            })
        };
        let Scene { model, origin, compute, stretch } = self.scene;
        json!({
            "part": "replay", "model": model.name, "floats": model.floats, "computation": origin.slug(),
            "compute_us": compute.as_secs_f64() * 1e6, "stretch": stretch, "workers": self.table.workers,
            "racks": self.table.racks, "rounds": self.table.load.rounds, "wire_us": self.table.wire_us(),
            "bits_per_s": self.table.links.rate.map(|rate| rate.bits_per_s),
            "paper_speed_up": model.speed_up, "wire_bound": self.wire_bound(),
            "rows": self.table.standings.json(row),
        })
    }

    /// Draws a bar for each contender: the computation time followed by the aggregation time.
    pub fn figure(&self) -> String {
        let name = self.scene.model.name;
        let title = format!("Time of a training iteration: {name}, {}", self.table.setting());
        let computation = self.scene.computation();
        let note =
            format!("Light part: computation ({computation}). Whole bar: {}.", self.table.standings.note());
        plot::bar_chart(title, note, "Iteration time", self.bars(), None)
    }

    fn bars(&self) -> Vec<Bar> {
        let bar = |row: &Runs| {
            let compute_us = row.spread(|run| run.compute_us).median;
            let is_switch = matches!(row.contender, Contender::Switch(..));
            plot::bar(row.contender.to_string(), compute_us, iteration_us(row), is_switch)
        };
        self.table.standings.rows.iter().map(bar).collect()
    }
}

fn iteration_us(row: &Runs) -> Spread {
    row.spread(|run| run.iteration_us)
}

fn aggregation_us(row: &Runs) -> Spread {
    row.spread(|run| run.iteration_us - run.compute_us)
}

/// Returns the speed-ups by number of workers, as Markdown: gradients per second, divided by those of a single worker
/// that does not aggregate.
pub fn scaling_text(replays: &[Replay]) -> String {
    let first = &replays[0];
    let heads = replays.iter().map(|replay| (replay.table.workers, replay.table.racks));
    let rows = first.table.standings.rows.iter().enumerate().map(|(at, row)| {
        let of = |replay: &Replay| {
            replay.table.standings.rows[at].spread(|run| replay.over_one_worker(run)).text(2)
        };
        [row.contender.to_string()].into_iter().chain(replays.iter().map(of)).collect()
    });
    let title = format!("{} in racks", first.scene.model.name);
    scaling_table(&title, &first.scene, first.table.links, heads, rows)
}

/// Returns a table of gradients per second by numbers of workers and racks. The first cell of each row names the
/// method.
pub(super) fn scaling_table(
    title: &str,
    scene: &Scene,
    links: Links,
    heads: impl Iterator<Item = (usize, Option<usize>)>,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let Scene { origin, stretch, .. } = scene;
    let heads = heads.map(|(workers, racks)| format!("{workers} in {} racks", racks.unwrap_or(0)));
    let mut table = Markdown::new([String::new()].into_iter().chain(heads));
    rows.for_each(|row| table.row(row));
    format!(
        "### {title}, {stretch} times {} computation times (replayed), {}: gradients per second relative to one \
         worker\n\n{}",
        origin.name(),
        links.text(),
        table.text()
    )
}

/// Draws the values of [`scaling_text`] by number of workers, with a line for each contender.
pub fn scaling_figure(replays: &[Replay]) -> String {
    let first = &replays[0];
    let workers = || replays.iter().map(|replay| replay.table.workers as f64);
    let line = |(at, row): (usize, &Runs)| {
        let spreads = replays
            .iter()
            .map(|replay| replay.table.standings.rows[at].spread(|run| replay.over_one_worker(run)));
        let spreads: Vec<Spread> = spreads.collect();
        let (paint, is_dashed) = match row.contender {
            Contender::ParameterServer(style) => (Paint::GREEN, style == Style::Pipelined),
            Contender::Ring(style) => (Paint::YELLOW, style == Style::Pipelined),
            _ => (Paint::BLUE, false),
        };
        Line {
            width_px: if matches!(row.contender, Contender::Switch(..)) { 3 } else { 2 },
            is_dashed,
            spreads: spreads.iter().map(|spread| spread.ends()).collect(),
            ..Line::new(
                row.contender.to_string(),
                paint,
                workers().zip(spreads.iter().map(|spread| spread.median)).collect(),
            )
        }
    };
    let proportional = Line {
        width_px: 1,
        ..Line::new("proportional", Paint::GREY, workers().map(|it| (it, it)).collect())
    };
    let lines = first.table.standings.rows.iter().enumerate().map(line);
    LineChart {
        title: format!(
            "Gradients per second by workers: {}, workers in racks, {}",
            first.scene.model.name,
            first.table.links.text()
        ),
        note: format!(
            "Points: {}. Computation: {}.",
            first.table.standings.note(),
            first.scene.computation()
        ),
        x: Axis {
            label: |workers| format!("{workers:.0}"),
            ticks: workers().collect(),
            ..Axis::linear(Quantity::plain("Workers"))
        },
        y: Axis {
            includes: vec![0.0],
            ..Axis::linear(Quantity::plain("Gradients per second, relative to one worker alone"))
        },
        lines: [proportional].into_iter().chain(lines).collect(),
        references: Vec::new(),
    }
    .draw()
}

impl Replay {
    /// Returns the gradients per second of all workers, divided by those of a worker that only computes.
    pub fn over_one_worker(&self, run: &Run) -> f64 {
        self.table.workers as f64 * run.compute_us / run.iteration_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(iteration_us: f64, compute_us: f64) -> Run {
        Run {
            us_p50: iteration_us - compute_us,
            us_p99: iteration_us,
            iteration_us,
            compute_us,
            worker_cpu_s_per_gb: 0.0,
            switch_cpu_s_per_gb: 0.0,
            worker_peak_kib: 0,
            switch_peak_kib: 0,
        }
    }

    fn replay() -> Replay {
        let scene = Scene {
            model: Model::named("PPO").unwrap(),
            origin: Origin::Paper,
            compute: Duration::from_millis(8),
            stretch: 10,
        };
        let rate: Rate = "1gbit".parse().unwrap();
        let rows = [
            (CONTENDERS[0], vec![run(160e3, 80e3), run(176e3, 80e3), run(200e3, 80e3)]),
            (CONTENDERS[1], vec![run(100e3, 80e3), run(88e3, 80e3), run(80e3, 80e3)]),
        ];
        let links = Links { rate: Some(rate), delay: None };
        let standings = rows.into_iter().collect();
        let table = Table { load: scene.load(rate, 4, 1.0), links, workers: 4, racks: None, standings };
        Replay { scene, table }
    }

    #[test]
    fn speed_ups_compare_runs_of_the_same_turn() {
        let replay = replay();
        let speed_up = replay.speed_up(&replay.table.standings.rows[1]);
        assert_eq!((speed_up.least, speed_up.median, speed_up.greatest), (1.6, 2.0, 2.5));
        let text = replay.text();
        // The ratio is 17.6 ms, stretched ten times, divided by 88 ms.
        assert!(
            text.contains("| 88.00 (80.00 to 100.00) | 80.00 | 8.00 (0.00 to 20.00) | 9.1 % |"),
            "{text}"
        );
        assert!(text.contains("| 2.00 (1.60 to 2.50) | 2.00 |"), "{text}");
        // The bound is 80 ms of computation plus the time of 40,476 bytes on the link (323.8 us), eight times for the
        // server and once for the switch.
        assert!(text.contains("cap the switch's speed-up over the server at 1.03."), "{text}");
        let json = replay.json();
        assert_eq!(json["rows"][0]["speed_up"]["median"], 1.0);
        assert_eq!(json["rows"][1]["aggregation_us"]["median"], 8e3);
    }

    #[test]
    fn scaling_is_measured_in_gradients() {
        let replay = replay();
        assert_eq!(replay.over_one_worker(&run(160.0, 80.0)), 2.0);
        let text = scaling_text(std::slice::from_ref(&replay));
        assert!(text.contains("| iswitchd, raw ports | 3.64 (3.20 to 4.00) |"), "{text}");
        let svg = scaling_figure(&[replay]);
        for text in
            ["PPO, workers in racks, 1 Gbit/s", "median of 3 runs", "proportional", "iswitchd, raw ports"]
        {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
    }

    #[test]
    fn workers_wait_for_the_stretched_computation_time() {
        let replay = replay();
        assert_eq!(replay.table.load.compute, Duration::from_millis(80));
        assert_eq!(replay.table.load.rounds, 12, "one second must hold 12 rounds of 80 ms and 2.6 ms");
        assert_eq!(replay.bars()[1].end, 88e3);
    }
}
