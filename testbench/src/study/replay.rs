//! Synchronous iterations with the local computation replayed: the paper's figures 4 and 12, and 15 over racks.

use std::fmt::Write as _;
use std::time::Duration;

use iswitch::aggregate::Style;
use iswitch_figure::Bar;
use serde_json::{Value, json};

use super::paper::Model;
use crate::peers::{Contender, Load, Network, Rate, Run, Table, Tools, measure, plot};
use crate::spread::Spread;
use iswitch_harness::cluster::PortKind;

/// What is compared; the parameter server as in the paper is what the others are measured by.
pub const CONTENDERS: [Contender; 5] = [
    Contender::ParameterServer(Style::Paper),
    Contender::Switch(PortKind::Raw),
    Contender::ParameterServer(Style::Pipelined),
    Contender::Ring(Style::Paper),
    Contender::Ring(Style::Pipelined),
];

const ROUNDS: (f64, f64) = (6.0, 500.0);

/// Whose computation is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The paper's.
    Paper,
    /// This project's own.
    Own,
}

impl Origin {
    /// Whose it is.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "the paper's",
            Self::Own => "this project's own",
        }
    }

    /// For the name of a file.
    pub fn slug(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Own => "own",
        }
    }
}

/// What is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Whose vector and whose speed-ups.
    pub model: Model,
    /// Whose computation.
    pub origin: Origin,
    /// How long that takes, before stretching.
    pub compute: Duration,
    /// How many times as long it takes here, as links are that much slower than they would be.
    pub stretch: u32,
}

impl Scene {
    fn load(&self, rate: Rate, workers: usize, seconds: f64) -> Load {
        let compute = self.compute * self.stretch;
        let bytes = f64::from(self.model.floats) * size_of::<f32>() as f64;
        let slowest_s = compute.as_secs_f64() + 2.0 * workers as f64 * rate.seconds_for(bytes);
        let rounds = (seconds / slowest_s).clamp(ROUNDS.0, ROUNDS.1) as usize;
        Load { floats: self.model.floats, rounds, warm_up: 2, compute }
    }

    /// All contenders in turns, each for about so many seconds with the slowest.
    ///
    /// # Panics
    /// If a sum is wrong, or does not come, or links have no rate.
    pub fn measure(
        self,
        network: &Network,
        contenders: &[Contender],
        turns: usize,
        seconds: f64,
        progress: &dyn Fn(&str),
    ) -> Replay {
        let rate = network.links().rate.expect("links of a replay are shaped");
        let load = self.load(rate, network.worker_count(), seconds);
        let tools = Tools::none();
        Replay { scene: self, table: measure(network, &tools, contenders, load, turns, progress) }
    }
}

/// What was measured of one scene.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What was replayed.
    pub scene: Scene,
    /// Runs of the contenders, the paper's parameter server first.
    pub table: Table,
}

impl Replay {
    /// How many times as long as a contender the first one takes, turn by turn.
    pub fn speed_up(&self, runs: &[Run]) -> Spread {
        let (_, server) = &self.table.rows[0];
        Spread::of(runs.iter().zip(server).map(|(run, server)| server.iteration_us / run.iteration_us))
    }

    /// The speed-up where nothing but links and computation takes time: the server's link carries a vector of each
    /// worker in, and then one to each out; a worker of the switch waits for one.
    pub fn wire_bound(&self) -> Option<f64> {
        let compute_us = self.table.load.compute.as_secs_f64() * 1e6;
        let wire_us = self.table.wire_us()?;
        Some((compute_us + 2.0 * self.table.workers as f64 * wire_us) / (compute_us + wire_us))
    }

    /// Time of the paper's own server, stretched as these are, over that of a contender: another machine's.
    fn beside_paper(&self, runs: &[Run]) -> f64 {
        let paper_us = self.scene.model.iteration().total_ms() * 1e3 * f64::from(self.scene.stretch);
        paper_us / iteration_us(runs).median
    }

    /// What was replayed, and between whom.
    pub fn title(&self) -> String {
        let Scene { model, origin, stretch, .. } = self.scene;
        let Table { workers, racks, links, .. } = &self.table;
        let racks = racks.map_or_else(String::new, |racks| format!(" in {racks} racks"));
        let stretched =
            if stretch > 1 { format!(", computation {stretch} times as long") } else { String::new() };
        format!(
            "{}, {} computation, {workers} workers{racks}, {}{stretched}",
            model.name,
            origin.name(),
            links.text()
        )
    }

    /// For the name of a file.
    pub fn slug(&self) -> String {
        let Scene { model, origin, .. } = self.scene;
        let name = model.name.to_lowercase();
        format!("study-{name}-{}-{}", origin.slug(), self.table.links.slug())
    }

    /// For people, as Markdown.
    pub fn text(&self) -> String {
        let mut text = format!("### {}\n\n", self.title());
        text += "| | iteration, ms | computation (replayed), ms | aggregation (real), ms | part of it | of the wire \
                 limit | speed-up | the paper's server over this |\n|---|---|---|---|---|---|---|---|\n";
        for (contender, runs) in &self.table.rows {
            let (iteration, compute) =
                (iteration_us(runs), Spread::of(runs.iter().map(|run| run.compute_us)));
            let aggregation = aggregation_us(runs);
            let wire = self
                .table
                .wire_us()
                .map_or_else(String::new, |us| format!("{:.0} %", 100.0 * us / aggregation.median));
            let beside = match self.scene.origin {
                Origin::Paper => format!("{:.2}", self.beside_paper(runs)),
                Origin::Own => String::new(),
            };
            let _ = writeln!(
                text,
                "| {contender} | {} | {:.2} | {} | {:.1} % | {wire} | {} | {beside} |",
                iteration.scaled(1e-3).text(2),
                compute.median / 1e3,
                aggregation.scaled(1e-3).text(2),
                100.0 * aggregation.median / iteration.median,
                self.speed_up(runs).text(2),
            );
        }
        let bound = self.wire_bound().map_or_else(String::new, |bound| {
            format!("Links alone allow the switch {bound:.2} over a server that only waits for its link. ")
        });
        let paper = self.scene.model.speed_up;
        let _ = writeln!(text, "\n{bound}The paper's, over its own server on its machines: {paper:.2}.");
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let row = |(contender, runs): &(Contender, Vec<Run>)| {
            json!({
                "contender": contender.to_string(),
                "iteration_us": iteration_us(runs).json(),
                "compute_us": Spread::of(runs.iter().map(|run| run.compute_us)).json(),
                "aggregation_us": aggregation_us(runs).json(),
                "speed_up": self.speed_up(runs).json(),
                "paper_server_over_this":
                    (self.scene.origin == Origin::Paper).then(|| self.beside_paper(runs)),
            })
        };
        let Scene { model, origin, compute, stretch } = self.scene;
        json!({
            "part": "replay", "model": model.name, "floats": model.floats, "computation": origin.slug(),
            "compute_us": compute.as_secs_f64() * 1e6, "stretch": stretch, "workers": self.table.workers,
            "racks": self.table.racks, "rounds": self.table.load.rounds, "wire_us": self.table.wire_us(),
            "bits_per_s": self.table.links.rate.map(|rate| rate.bits_per_s),
            "paper_speed_up": model.speed_up, "wire_bound": self.wire_bound(),
            "rows": self.table.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    /// One bar for each contender: computation, and aggregation after it.
    pub fn bars(&self) -> Vec<Bar> {
        let bar = |(contender, runs): &(Contender, Vec<Run>)| {
            let compute_us = Spread::of(runs.iter().map(|run| run.compute_us)).median;
            let is_switch = matches!(contender, Contender::Switch(_));
            plot::bar(contender.to_string(), compute_us, iteration_us(runs), is_switch)
        };
        self.table.rows.iter().map(bar).collect()
    }

    /// The same with whole iterations in the place of sums, for a series of such tables.
    pub fn iterations(&self) -> Table {
        let mut table = self.table.clone();
        for run in table.rows.iter_mut().flat_map(|(_, runs)| runs) {
            run.us_p50 = run.iteration_us;
        }
        table
    }
}

fn iteration_us(runs: &[Run]) -> Spread {
    Spread::of(runs.iter().map(|run| run.iteration_us))
}

fn aggregation_us(runs: &[Run]) -> Spread {
    Spread::of(runs.iter().map(|run| run.iteration_us - run.compute_us))
}

/// Speed-ups over numbers of workers, as Markdown: how many times as many gradients per second as one worker alone,
/// which aggregates nothing.
pub fn scaling_text(replays: &[Replay]) -> String {
    let first = &replays[0];
    let Scene { model, origin, stretch, .. } = first.scene;
    let mut text = format!(
        "### {} in racks, {} computation (replayed) times {stretch}, {}: gradients per second, of those of one worker \
         alone\n\n|",
        model.name,
        origin.name(),
        first.table.links.text()
    );
    for replay in replays {
        let _ = write!(text, " | {} in {} racks", replay.table.workers, replay.table.racks.unwrap_or(0));
    }
    let _ = writeln!(text, " |\n|---|{}", "---|".repeat(replays.len()));
    for (row, (contender, _)) in first.table.rows.iter().enumerate() {
        let _ = write!(text, "| {contender}");
        for replay in replays {
            let speed_up = Spread::of(replay.table.rows[row].1.iter().map(|run| replay.over_one_worker(run)));
            let _ = write!(text, " | {}", speed_up.text(2));
        }
        text += " |\n";
    }
    text
}

impl Replay {
    /// Gradients per second of all workers over those of one that only computes.
    pub fn over_one_worker(&self, run: &Run) -> f64 {
        self.table.workers as f64 * run.compute_us / run.iteration_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Links;

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
        let rows = vec![
            (CONTENDERS[0], vec![run(160e3, 80e3), run(176e3, 80e3), run(200e3, 80e3)]),
            (CONTENDERS[1], vec![run(100e3, 80e3), run(88e3, 80e3), run(80e3, 80e3)]),
        ];
        let links = Links { rate: Some(rate), delay: None };
        let table = Table { load: scene.load(rate, 4, 1.0), links, workers: 4, racks: None, rows };
        Replay { scene, table }
    }

    #[test]
    fn speed_ups_are_of_the_same_turn() {
        let replay = replay();
        let speed_up = replay.speed_up(&replay.table.rows[1].1);
        assert_eq!((speed_up.least, speed_up.median, speed_up.greatest), (1.6, 2.0, 2.5));
        let text = replay.text();
        // 17.6 ms, ten times as long, over 88 ms.
        assert!(
            text.contains("| 88.00 (80.00 to 100.00) | 80.00 | 8.00 (0.00 to 20.00) | 9.1 % |"),
            "{text}"
        );
        assert!(text.contains("| 2.00 (1.60 to 2.50) | 2.00 |"), "{text}");
        // 80 ms, and 323.8 us for 40,476 bytes, eight times or once.
        assert!(text.contains("Links alone allow the switch 1.03 over"), "{text}");
        let json = replay.json();
        assert_eq!(json["rows"][0]["speed_up"]["median"], 1.0);
        assert_eq!(json["rows"][1]["aggregation_us"]["median"], 8e3);
    }

    #[test]
    fn scaling_counts_gradients() {
        let replay = replay();
        assert_eq!(replay.over_one_worker(&run(160.0, 80.0)), 2.0);
        let text = scaling_text(&[replay]);
        assert!(text.contains("| iswitchd, raw ports | 3.64 (3.20 to 4.00) |"), "{text}");
    }

    #[test]
    fn stretched_computation_is_what_workers_wait_for() {
        let replay = replay();
        assert_eq!(replay.table.load.compute, Duration::from_millis(80));
        assert_eq!(replay.table.load.rounds, 12, "a second of 80 ms and 2.6 ms each");
        assert_eq!(replay.bars()[1].end, 88e3);
        assert_eq!(replay.iterations().rows[1].1[0].us_p50, 100e3);
    }
}
