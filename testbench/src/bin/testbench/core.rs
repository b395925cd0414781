//! `testbench core`: the switch core beside plain adds of the same bytes.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use iswitch_simulation::core_load::{Adder, Load, LoadMode, Reference, Shape};
use iswitch_testbench::spread::Spread;
use serde_json::{Value, json};

/// Segments that lie in the second-level cache with their packets: sums of two rounds, a super-frame in and one out.
const CACHED_SEGMENTS: usize = 44;
const USUAL_MEMBERS: usize = 4;
const SIZES: [usize; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];
const MEMBERS: [usize; 6] = [2, 4, 8, 16, 32, 64];
/// A turn of each has as many rounds as fit, and counts the one in the middle: others may be interrupted.
const TURN: Duration = Duration::from_millis(5);

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Turns of the core and of each plain add, one after the other
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    turns: u32,
    /// Segments of the longest vector; 1000000 of them take 8 GB of memory
    #[arg(long, default_value_t = 100_000)]
    max_segments: usize,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Nanoseconds of one contribution to one segment, and what they are of the references' in the same turn.
struct Row {
    shape: Shape,
    core: Spread,
    plain: Spread,
    simd: Spread,
    to_plain: Spread,
    to_simd: Spread,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let tables = [
        ("modes", shapes(LoadMode::ALL.map(|mode| Shape::new(mode, USUAL_MEMBERS, CACHED_SEGMENTS)))),
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
    for (name, shapes) in tables {
        let rows = shapes.into_iter().filter(|shape| shape.segments <= options.max_segments);
        let rows: Vec<_> = rows.map(|shape| measure(shape, options.turns)).collect();
        if !options.json {
            print_table(name, &rows);
        }
        result.push((name.to_owned(), rows.iter().map(Row::json).collect()));
    }
    if options.json {
        println!("{}", Value::Object(result.into_iter().collect()));
    }
    ExitCode::SUCCESS
}

fn shapes<const N: usize>(shapes: [Shape; N]) -> Vec<Shape> {
    shapes.into()
}

fn measure(shape: Shape, turns: u32) -> Row {
    eprintln!("{}, {} members, {} segments", shape.mode, shape.members, shape.segments);
    let mut load = Load::new(shape);
    let mut reference = Reference::new(shape);
    // Memory is taken from the system when it is first touched.
    let warm_up = (0..4).map(|_| time_core(&mut load)).last().unwrap_or(TURN);
    (0..2).for_each(|_| reference.run(load.frames(), Adder::PLAIN));
    let rounds = (TURN.as_nanos() / warm_up.as_nanos().max(1)).clamp(1, 100_000) as usize;
    let per_packet = |times: &mut dyn FnMut() -> Duration| {
        let times = (0..rounds).map(|_| times().as_nanos() as f64);
        Spread::of(times).median / shape.contributions() as f64
    };
    let times: Vec<_> = (0..turns)
        .map(|_| {
            let core = per_packet(&mut || time_core(&mut load));
            let mut adds = |adder| per_packet(&mut || time_adds(&mut reference, &load, adder));
            (core, adds(Adder::PLAIN), adds(Adder::CORE))
        })
        .collect();
    load.check(4 + turns as usize * rounds);
    let spread = |value: fn(&(f64, f64, f64)) -> f64| Spread::of(times.iter().map(value));
    Row {
        shape,
        core: spread(|(core, _, _)| *core),
        plain: spread(|(_, plain, _)| *plain),
        simd: spread(|(_, _, simd)| *simd),
        to_plain: spread(|(core, plain, _)| core / plain),
        to_simd: spread(|(core, _, simd)| core / simd),
    }
}

/// The time of one round, without that of writing its number into the packets.
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
    /// Bytes of payload that the core sums in a second, in units of 10^9.
    fn gigabytes_per_s(&self) -> f64 {
        self.shape.payload_bytes() as f64 / self.core.median
    }

    fn json(&self) -> Value {
        json!({
            "mode": self.shape.mode.name(), "members": self.shape.members, "segments": self.shape.segments,
            "floats": self.shape.floats, "core_ns": self.core.json(), "plain_add_ns": self.plain.json(),
            "simd_add_ns": self.simd.json(), "to_plain_add": self.to_plain.json(),
            "to_simd_add": self.to_simd.json(), "gigabytes_per_s": self.gigabytes_per_s(),
        })
    }
}

fn print_table(name: &str, rows: &[Row]) {
    println!("\nBy {name}; nanoseconds for one packet of one member: median (least to greatest)\n");
    println!(
        "| mode | members | segments | core | GB/s | plain add | SIMD add | core / plain | core / SIMD |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for row in rows {
        let Shape { mode, members, segments, .. } = row.shape;
        println!(
            "| {mode} | {members} | {segments} | {} | {:.1} | {} | {} | {} | {} |",
            row.core.text(1),
            row.gigabytes_per_s(),
            row.plain.text(1),
            row.simd.text(1),
            row.to_plain.text(2),
            row.to_simd.text(2)
        );
    }
}
