//! Asynchronous updates with replayed local computation: the times of the paper's table 5.

use std::time::Duration;

use iswitch_figure::Bar;
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

use super::paper::STALENESS_BOUND;
use super::replay::{Scene, scaling_table};
use crate::contest::{Contest, Markdown, Progress, Row, Spread, Standings};
use crate::peers::{Links, Network, plot};
use iswitch_harness::binaries;
use iswitch_harness::cluster::{PortKind, SOON};
use iswitch_harness::process::Process;

const TIMEOUT: Duration = Duration::from_secs(300);
const SERVER_PORT: u16 = 7803;
const GRADIENTS: (f64, f64) = (60.0, 4000.0);

/// Method that combines gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
pub enum Method {
    /// Parameter server that applies each gradient on arrival. It is the first contender, with which the switch is
    /// compared.
    #[strum(to_string = "asynchronous parameter server")]
    Server,
    /// Switch whose threshold equals the number of workers.
    #[strum(to_string = "iswitchd, raw ports, asynchronous")]
    Switch,
}

/// Result of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AsyncRun {
    /// Number of model updates that were counted.
    pub updates: f64,
    /// Number of gradients that the counted updates contain.
    pub gradients: f64,
    /// Time in which the counted updates occurred, in seconds.
    pub seconds: f64,
    /// Histogram of the gradients of all workers by staleness when committed: 0 to S updates.
    pub staleness: Vec<u64>,
    /// Histogram of the gradients of all workers by staleness when applied. With the server, gradients are committed
    /// and applied at the same time.
    pub at_update: Vec<u64>,
    /// Number of gradients that were skipped because they were too stale.
    pub skipped: u64,
}

impl AsyncRun {
    fn of(lines: &[Value]) -> Self {
        let first = &lines[0];
        let number =
            |field: &str| first[field].as_f64().unwrap_or_else(|| panic!("no number {field} in {first}"));
        let staleness = sum(lines, "staleness");
        let inclusion = sum(lines, "inclusion");
        Self {
            updates: number("updates"),
            gradients: number("gradients"),
            seconds: number("seconds"),
            at_update: if inclusion.is_empty() { staleness.clone() } else { inclusion },
            staleness,
            skipped: lines.iter().filter_map(|line| line["skipped"].as_u64()).sum(),
        }
    }

    fn us_per_gradient(&self) -> f64 {
        1e6 * self.seconds / self.gradients
    }

    fn us_per_update(&self) -> f64 {
        1e6 * self.seconds / self.updates
    }
}

/// Adds the histograms of several workers.
fn sum(lines: &[Value], field: &str) -> Vec<u64> {
    let mut total = Vec::new();
    for counts in lines.iter().filter_map(|line| line[field].as_array()) {
        total.resize(total.len().max(counts.len()), 0);
        for (total, count) in total.iter_mut().zip(counts) {
            *total += count.as_u64().unwrap_or_default();
        }
    }
    while total.last() == Some(&0) && total.len() > STALENESS_BOUND as usize + 1 {
        total.pop();
    }
    total
}

/// Returns the mean staleness of a histogram.
pub(super) fn mean(histogram: &[u64]) -> f64 {
    let weighted: f64 = (0_u32..).zip(histogram).map(|(stale, count)| f64::from(stale) * *count as f64).sum();
    weighted / histogram.iter().sum::<u64>().max(1) as f64
}

/// Measurements of one scene: a model with its replayed computation.
#[derive(Clone, Debug)]
pub struct AsyncReplay {
    /// Replayed scene.
    pub scene: Scene,
    /// Properties of the links.
    pub links: Links,
    /// Number of workers.
    pub workers: usize,
    /// Number of racks; `None` if all workers are connected to one switch.
    pub racks: Option<usize>,
    /// Runs of each method.
    pub standings: Standings<Method, AsyncRun>,
}

/// Measures both methods in alternating turns of about `seconds` seconds each.
///
/// # Panics
/// Panics if a run fails, or if the rate of the links is not limited.
pub fn measure(
    scene: Scene,
    network: &Network,
    turns: usize,
    seconds: f64,
    progress: &Progress,
) -> AsyncReplay {
    let workers = network.worker_count();
    let rate = network.links().rate.expect("links of a replay must be shaped");
    let wire_s = rate.seconds_for(f64::from(scene.model.floats) * size_of::<f32>() as f64);
    let compute = scene.compute * scene.stretch;
    let per_gradient_s = (compute.as_secs_f64() / workers as f64).max(wire_s);
    let gradients = (seconds / per_gradient_s).clamp(GRADIENTS.0, GRADIENTS.1) as u64;
    let job = Job { network, floats: scene.model.floats, compute, gradients };
    let contest = Contest::new(Method::iter(), turns).titled(scene.model.name);
    let standings = contest.hold(progress, |method, _| match method {
        Method::Server => job.with_server(),
        Method::Switch => job.with_switch(),
    });
    AsyncReplay { scene, links: network.links(), workers, racks: network.rack_count(), standings }
}

struct Job<'a> {
    network: &'a Network,
    floats: u32,
    compute: Duration,
    gradients: u64,
}

impl Job<'_> {
    fn arguments(&self) -> Vec<String> {
        let Self { network, floats, compute, gradients } = self;
        let all = format!(
            "--workers {} --floats {floats} --compute-us {} --gradients {gradients} --staleness {STALENESS_BOUND}",
            network.worker_count(),
            compute.as_micros()
        );
        all.split_whitespace().map(str::to_owned).collect()
    }

    fn workers(&self, at: impl Fn(usize) -> [String; 2]) -> Vec<Value> {
        let spawn = |rank: usize| {
            let mut command = self.network.workers()[rank].command(binaries::async_times());
            command.args(self.arguments()).args(at(rank)).args(["--rank", &rank.to_string()]);
            Process::spawn(&format!("worker {rank}"), &mut command)
        };
        let processes: Vec<_> = (0..self.network.worker_count()).map(spawn).collect();
        processes.into_iter().map(|process| last_json(&process.wait_success(TIMEOUT))).collect()
    }

    fn with_server(&self) -> AsyncRun {
        let address = format!("{}:{SERVER_PORT}", self.network.server_address());
        let mut command = self.network.server().command(binaries::async_times());
        command.args(self.arguments()).args(["--serve", &address]);
        let mut server = Process::spawn("parameter server", &mut command);
        server.wait_for("ready: ", SOON);
        self.workers(|_| ["--server".to_owned(), address.clone()]);
        AsyncRun::of(&[last_json(&server.wait_success(TIMEOUT))])
    }

    fn with_switch(&self) -> AsyncRun {
        let daemons = self.network.start_switches(PortKind::Raw, &[]);
        let lines = self.workers(|rank| ["--switch".to_owned(), self.network.switch_of(rank).to_string()]);
        daemons.into_iter().rev().for_each(|daemon| drop(daemon.stop()));
        let is_same = lines.iter().all(|line| line["digest"] == lines[0]["digest"]);
        assert!(is_same, "the models of the workers differ: {lines:?}");
        AsyncRun::of(&lines)
    }
}

fn last_json(output: &str) -> Value {
    serde_json::from_str(output.lines().last().unwrap_or_default()).expect("the last line must be JSON")
}

/// Returns a table for one scene: the rate of gradients applied to the model, by the numbers of workers and racks.
pub fn scaling_text(replays: &[AsyncReplay]) -> String {
    let first = &replays[0];
    let heads = replays.iter().map(|replay| (replay.workers, replay.racks));
    let rows = first.standings.rows.iter().enumerate().map(|(at, row)| {
        let of = |replay: &AsyncReplay| {
            replay.standings.rows[at].spread(|run| replay.over_one_worker(run)).text(2)
        };
        [row.contender.to_string()].into_iter().chain(replays.iter().map(of)).collect()
    });
    let title = format!("{}, asynchronous, S = {STALENESS_BOUND}, in racks", first.scene.model.name);
    scaling_table(&title, &first.scene, first.links, heads, rows)
}

impl AsyncReplay {
    /// Returns the rate of gradients applied to the model, divided by that of a single worker that only computes.
    pub fn over_one_worker(&self, run: &AsyncRun) -> f64 {
        let compute = self.scene.compute * self.scene.stretch;
        run.gradients / run.seconds * compute.as_secs_f64()
    }

    /// Returns the server's time per applied gradient, divided by that of the method in the same turn.
    pub fn speed_up(&self, row: &Row<Method, AsyncRun>) -> Spread {
        self.standings.reference().ratio_to(row, AsyncRun::us_per_gradient)
    }

    /// Returns a title: the scene, the workers and the links.
    pub fn title(&self) -> String {
        let links = self.links.text();
        let racks = self.racks.map_or(String::new(), |racks| format!(" in {racks} racks"));
        format!(
            "{}, asynchronous, S = {STALENESS_BOUND}, {}, {} workers{racks}, {links}",
            self.scene.model.name,
            self.scene.computation_times(),
            self.workers
        )
    }

    /// Returns the part of a file name that identifies the measurement.
    pub fn slug(&self) -> String {
        let Scene { model, origin, .. } = self.scene;
        format!("study-async-{}-{}-{}", model.name.to_lowercase(), origin.slug(), self.links.slug())
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let mut rows = Markdown::new([
            "",
            "updates/s",
            "gradients/s",
            "ms per applied gradient",
            "mean staleness when committed",
            "mean staleness when applied",
            "share of gradients applied with a staleness of 0, 1, 2, 3 or more updates",
            "skipped as too stale",
            "speed-up per gradient",
        ]);
        for row in &self.standings.rows {
            let per = |value: fn(&AsyncRun) -> f64| row.spread(value);
            let too_stale = per(|run| 100.0 * run.skipped as f64 / (run.skipped as f64 + run.gradients));
            rows.row([
                row.contender.to_string(),
                per(|run| run.updates / run.seconds).text(1),
                per(|run| run.gradients / run.seconds).text(1),
                per(AsyncRun::us_per_gradient).scaled(1e-3).text(3),
                format!("{:.2}", per(|run| mean(&run.staleness)).median),
                format!("{:.2}", per(|run| mean(&run.at_update)).median),
                shares(&row.runs),
                format!("{:.1} %", too_stale.median),
                self.speed_up(row).text(2),
            ]);
        }
        format!(
            "### {}\n\n{}\nThe paper reports that training reaches the same return {:.2} times as fast with its switch \
             as with its server, on the authors' machines.\nPart of this speed-up arises because training with the \
             paper's switch takes fewer iterations.\n",
            self.title(),
            rows.text(),
            self.scene.model.async_speed_up
        )
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let row = |row: &Row<Method, AsyncRun>| {
            let of = |value: fn(&AsyncRun) -> f64| row.spread(value).json();
            let runs = &row.runs;
            json!({
                "method": row.contender.to_string(), "updates_s": of(|run| run.updates / run.seconds),
                "gradients_s": of(|run| run.gradients / run.seconds),
                "us_per_gradient": of(AsyncRun::us_per_gradient), "us_per_update": of(AsyncRun::us_per_update),
                "staleness": of(|run| mean(&run.staleness)), "staleness_at_update": of(|run| mean(&run.at_update)),
                "histogram": runs.iter().map(|run| run.staleness.clone()).collect::<Vec<_>>(),
                "histogram_at_update": runs.iter().map(|run| run.at_update.clone()).collect::<Vec<_>>(),
                "skipped": runs.iter().map(|run| run.skipped).collect::<Vec<_>>(),
                "speed_up_per_gradient": self.speed_up(row).json(),
            })
        };
        json!({
            "part": "replay-async", "model": self.scene.model.name, "floats": self.scene.model.floats,
            "computation": self.scene.origin.slug(), "compute_us": self.scene.compute.as_secs_f64() * 1e6,
            "stretch": self.scene.stretch, "workers": self.workers, "racks": self.racks,
            "staleness_bound": STALENESS_BOUND,
            "bits_per_s": self.links.rate.map(|rate| rate.bits_per_s),
            "paper_speed_up": self.scene.model.async_speed_up,
            "rows": self.standings.json(row),
        })
    }

    /// Draws a bar for each method: the time per applied gradient.
    pub fn figure(&self) -> String {
        let (name, links) = (self.scene.model.name, self.links.text());
        let title = format!(
            "Time per gradient: {name}, asynchronous, S = {STALENESS_BOUND}, {} workers, {links}",
            self.workers
        );
        let note = format!("Computation: {}. Bars: {}.", self.scene.computation(), self.standings.note());
        plot::bar_chart(title, note, "Time per gradient", self.bars(), None)
    }

    fn bars(&self) -> Vec<Bar> {
        let bar = |row: &Row<Method, AsyncRun>| {
            let us = row.spread(AsyncRun::us_per_gradient);
            plot::bar(row.contender.to_string(), 0.0, us, row.contender == Method::Switch)
        };
        self.standings.rows.iter().map(bar).collect()
    }
}

/// Returns the percentages of the gradients of all runs, by staleness.
fn shares(runs: &[AsyncRun]) -> String {
    let mut counts = [0_u64; STALENESS_BOUND as usize + 1];
    for (stale, count) in runs.iter().flat_map(|run| run.at_update.iter().enumerate()) {
        counts[stale.min(STALENESS_BOUND as usize)] += count;
    }
    let total = counts.iter().sum::<u64>().max(1) as f64;
    counts.map(|count| format!("{:.0} %", 100.0 * count as f64 / total)).join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::paper::Model;
    use super::super::replay::Origin;
    use super::*;

    #[test]
    fn histograms_of_all_workers_are_merged() {
        let lines = [
            json!({ "updates": 10, "gradients": 40, "seconds": 2.0, "skipped": 1,
                    "staleness": [1, 2, 0, 0], "inclusion": [0, 1, 2, 0, 0, 0] }),
            json!({ "updates": 10, "gradients": 40, "seconds": 2.0, "skipped": 2,
                    "staleness": [3, 0, 0, 0], "inclusion": [0, 3, 0, 0, 1, 0] }),
        ];
        let run = AsyncRun::of(&lines);
        assert_eq!(
            (run.staleness.as_slice(), run.at_update.as_slice()),
            (&[4, 2, 0, 0][..], &[0, 4, 2, 0, 1][..])
        );
        assert_eq!((run.skipped, run.us_per_gradient(), run.us_per_update()), (3, 5e4, 2e5));
        assert_eq!((mean(&run.staleness), mean(&[])), (1.0 / 3.0, 0.0));
        assert_eq!(shares(&[run]), "0 %, 57 %, 29 %, 14 %");
        let of_server = AsyncRun::of(
            &lines[..1]
                .iter()
                .cloned()
                .map(|mut line| {
                    line.as_object_mut().unwrap().remove("inclusion");
                    line
                })
                .collect::<Vec<_>>(),
        );
        assert_eq!(of_server.at_update, [1, 2, 0, 0]);
    }

    #[test]
    fn speed_ups_are_computed_per_gradient() {
        let run = |gradients| AsyncRun { updates: 10.0, gradients, seconds: 1.0, ..AsyncRun::default() };
        let scene = Scene {
            model: Model::named("A2C").unwrap(),
            origin: Origin::Paper,
            compute: Duration::from_millis(14),
            stretch: 1,
        };
        let rows = [(Method::Server, vec![run(10.0)]), (Method::Switch, vec![run(25.0)])];
        let standings = rows.into_iter().collect();
        let links = Links::default();
        let replay = AsyncReplay { scene, links, workers: 4, racks: Some(2), standings };
        assert_eq!(replay.speed_up(&replay.standings.rows[1]).median, 2.5);
        assert!(replay.text().contains("| 40.000 (40.000 to 40.000) |"), "{}", replay.text());
        assert_eq!(replay.json()["rows"][0]["us_per_gradient"]["median"], 1e5);
        // A worker alone computes a gradient in 14 ms.
        let text = scaling_text(&[replay]);
        assert!(text.contains("| | 4 in 2 racks |"), "{text}");
        assert!(text.contains("| iswitchd, raw ports, asynchronous | 0.35 (0.35 to 0.35) |"), "{text}");
    }
}
