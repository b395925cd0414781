//! The `testbench core` subcommand: compares the switch core with plain additions of the same bytes.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use iswitch_simulation::core_load::{Adder, Load, LoadMode, Reference, Shape};
use iswitch_testbench::contest::{Contest, Markdown, Progress, Spread, Standings};
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

use crate::core_threads;

/// Number of segments whose data fit into the second-level cache: the sums of two rounds, one incoming super-frame and
/// one outgoing super-frame.
const CACHED_SEGMENTS: usize = 44;
const USUAL_MEMBERS: usize = 4;
const SIZES: [usize; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];
const MEMBERS: [usize; 6] = [2, 4, 8, 16, 32, 64];
/// Duration of one turn. A turn runs as many rounds as fit into this time. It reports the median time of a round,
/// because the kernel may interrupt some rounds.
const TURN: Duration = Duration::from_millis(5);

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of interleaved measurements of the core and of each plain addition
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    turns: u32,
    /// Run only the measurements in which several threads share a vector
    #[arg(long)]
    only_threads: bool,
    /// Number of segments of the longest vector
    ///
    /// A vector of 1000000 segments takes 8 GB of memory.
    #[arg(long, default_value_t = 100_000)]
    max_segments: usize,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Contender whose time is measured.
#[derive(Clone, Copy, Debug, strum::Display)]
enum Timed {
    #[strum(to_string = "core")]
    Core,
    #[strum(to_string = "plain add")]
    PlainAdd,
    #[strum(to_string = "SIMD add")]
    SimdAdd,
}

/// Times per contribution to one segment, in nanoseconds: those of the core, the plain addition and the SIMD addition.
struct Row {
    shape: Shape,
    standings: Standings<Timed, f64>,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let tables = [
        ("modes", shapes(LoadMode::iter().map(|mode| Shape::new(mode, USUAL_MEMBERS, CACHED_SEGMENTS)))),
        (
            "members",
            shapes(MEMBERS.map(|members| Shape::new(LoadMode::Synchronous, members, CACHED_SEGMENTS))),
        ),
        (
            "segments",
            shapes(SIZES.map(|segments| Shape::new(LoadMode::Synchronous, USUAL_MEMBERS, segments))),
        ),
    ];
    let mut result = Vec::new();
    for (name, shapes) in tables.into_iter().filter(|_| !options.only_threads) {
        let rows = shapes.into_iter().filter(|shape| shape.segments <= options.max_segments);
        let rows: Vec<_> = rows.map(|shape| measure(shape, options.turns)).collect();
        if !options.json {
            print_table(name, &rows);
        }
        result.push((name.to_owned(), rows.iter().map(Row::json).collect()));
    }
    let threads = core_threads::Table::measure(options.turns);
    if !options.json {
        threads.print();
    }
    result.push(("threads".to_owned(), threads.json()));
    if options.json {
        println!("{}", Value::Object(result.into_iter().collect()));
    }
    ExitCode::SUCCESS
}

fn shapes(shapes: impl IntoIterator<Item = Shape>) -> Vec<Shape> {
    shapes.into_iter().collect()
}

fn measure(shape: Shape, turns: u32) -> Row {
    eprintln!("{}, {} members, {} segments", shape.mode, shape.members, shape.segments);
    let mut load = Load::new(shape);
    let mut reference = Reference::new(shape);
    // The warm-up touches all memory, because the kernel allocates pages on first access.
    let warm_up = (0..4).map(|_| time_core(&mut load)).last().unwrap_or(TURN);
    (0..2).for_each(|_| reference.run(load.frames(), Adder::PLAIN));
    let rounds = (TURN.as_nanos() / warm_up.as_nanos().max(1)).clamp(1, 100_000) as usize;
    let contest = Contest::new([Timed::Core, Timed::PlainAdd, Timed::SimdAdd], turns as usize);
    let standings = contest.hold(&Progress::silent(), |timed, _| {
        let times = (0..rounds).map(|_| match timed {
            Timed::Core => time_core(&mut load),
            Timed::PlainAdd => time_adds(&mut reference, &load, Adder::PLAIN),
            Timed::SimdAdd => time_adds(&mut reference, &load, Adder::CORE),
        });
        Spread::of(times.map(|time| time.as_nanos() as f64)).median / shape.contributions() as f64
    });
    load.check(4 + turns as usize * rounds);
    Row { shape, standings }
}

/// Returns the time of one round, excluding the time to write the round number into the packets.
fn time_core(load: &mut Load) -> Duration {
    load.prepare();
    let begin = Instant::now();
    load.run();
    begin.elapsed()
}

fn time_adds(reference: &mut Reference, load: &Load, adder: Adder) -> Duration {
    let begin = Instant::now();
    reference.run(load.frames(), adder);
    begin.elapsed()
}

impl Row {
    /// Returns the nanoseconds per contribution of the core, the plain addition and the SIMD addition.
    fn times(&self) -> [Spread; 3] {
        [0, 1, 2].map(|at| self.standings.rows[at].spread(|ns| *ns))
    }

    /// Returns, for each of the two additions, the core's time divided by the time of the addition in the same turn.
    fn ratios(&self) -> [Spread; 2] {
        [1, 2].map(|at| self.standings.reference().ratio_to(&self.standings.rows[at], |ns| *ns))
    }

    /// Returns the rate at which the core sums payload, in GB/s (10^9 bytes per second).
    fn gigabytes_per_s(&self) -> f64 {
        self.shape.payload_bytes() as f64 / self.times()[0].median
    }

    fn json(&self) -> Value {
        let ([core, plain, simd], [to_plain, to_simd]) = (self.times(), self.ratios());
        json!({
            "mode": self.shape.mode.name(), "members": self.shape.members, "segments": self.shape.segments,
            "floats": self.shape.floats, "core_ns": core.json(), "plain_add_ns": plain.json(),
            "simd_add_ns": simd.json(), "to_plain_add": to_plain.json(),
            "to_simd_add": to_simd.json(), "gigabytes_per_s": self.gigabytes_per_s(),
        })
    }
}

fn print_table(name: &str, rows: &[Row]) {
    println!("\nBy {name}; time per packet of one member: median (minimum to maximum)\n");
    let mut table = Markdown::new([
        "mode",
        "members",
        "segments",
        "core, ns",
        "GB/s",
        "plain add, ns",
        "SIMD add, ns",
        "core / plain add",
        "core / SIMD add",
    ]);
    for row in rows {
        let Shape { mode, members, segments, .. } = row.shape;
        let ([core, plain, simd], [to_plain, to_simd]) = (row.times(), row.ratios());
        table.row([
            mode.to_string(),
            members.to_string(),
            segments.to_string(),
            core.text(1),
            format!("{:.1}", row.gigabytes_per_s()),
            plain.text(1),
            simd.text(1),
            to_plain.text(2),
            to_simd.text(2),
        ]);
    }
    print!("{}", table.text());
}
