//! Table of `testbench core` for vectors that are divided among threads, each with a switch core of its own.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use iswitch_protocol::limits::MAX_PARTS;
use iswitch_simulation::core_load::{Load, LoadMode, Shape};
use iswitch_testbench::contest::{Contest, Markdown, Progress, Spread, Standings};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Number of segments of the vector, whose length is 6.4 MB, as in the paper's largest model.
const SEGMENTS: usize = 4_610;
const MEMBERS: usize = 4;
/// Duration of one turn.
const TURN: Duration = Duration::from_millis(100);

/// Threads that each sum one part of the vector.
struct Team {
    loads: Vec<Load>,
    rounds: usize,
}

/// Time of a turn per packet of the whole vector, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Time from the start of the first thread to the end of the last one.
    elapsed: f64,
    /// Processor time of the thread that used the most. Other processes on the machine affect this time only by
    /// displacing data from the caches.
    processor: f64,
}

impl Team {
    fn new(threads: usize) -> Self {
        let segments = |at: usize| SEGMENTS * (at + 1) / threads - SEGMENTS * at / threads;
        let shape = |at| Shape::new(LoadMode::Synchronous, MEMBERS, segments(at));
        let mut team = Self { loads: (0..threads).map(|at| Load::new(shape(at))).collect(), rounds: 1 };
        // The warm-up touches all memory, because the kernel allocates pages on first access.
        let warm_up = (0..4).map(|_| team.run()).last().map_or(0.0, |times| times.elapsed);
        let round_ns = warm_up * (SEGMENTS * MEMBERS) as f64;
        team.rounds = ((TURN.as_nanos() as f64 / round_ns.max(1.0)) as usize).clamp(1, 10_000);
        team
    }

    /// Runs a number of rounds in all threads at the same time. As in a daemon, no thread waits for another.
    fn run(&mut self) -> Times {
        let (rounds, start) = (self.rounds, Barrier::new(self.loads.len()));
        let spent = thread::scope(|scope| {
            let run = |load| scope.spawn(|| run_rounds(load, rounds, &start));
            let threads: Vec<_> = self.loads.iter_mut().map(run).collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread of the load")).collect::<Vec<_>>()
        });
        let packets = (rounds * SEGMENTS * MEMBERS) as f64;
        let begin = spent.iter().map(|(begin, ..)| *begin).min();
        let end = spent.iter().map(|(_, end, _)| *end).max();
        let elapsed = begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end - begin);
        let processor = spent.iter().map(|(.., processor)| *processor).max().unwrap_or_default();
        let per_packet = |time: Duration| time.as_nanos() as f64 / packets;
        Times { elapsed: per_packet(elapsed), processor: per_packet(processor) }
    }
}

fn run_rounds(load: &mut Load, rounds: usize, start: &Barrier) -> (Instant, Instant, Duration) {
    start.wait();
    let (begin, before) = (Instant::now(), processor_time());
    for _ in 0..rounds {
        load.prepare();
        load.run();
    }
    (begin, Instant::now(), processor_time().saturating_sub(before))
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Times with 1, 2, 4, ... threads, measured in interleaved turns.
pub(crate) struct Table {
    standings: Standings<usize, Times>,
}

impl Table {
    /// Measures 1, 2, 4, ... threads, up to the number of cores.
    pub(crate) fn measure(turns: u32) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let counts: Vec<_> =
            (0..=MAX_PARTS.ilog2()).map(|power| 1 << power).filter(|count| *count <= cores).collect();
        eprintln!("{SEGMENTS} segments, {MEMBERS} members, {counts:?} threads");
        let mut teams: Vec<_> = counts.iter().map(|count| Team::new(*count)).collect();
        let contest = Contest::new(counts.clone(), turns as usize);
        let standings = contest.hold(&Progress::silent(), |count, _| {
            let team = counts.iter().position(|other| other == count).unwrap_or_default();
            teams[team].run()
        });
        Self { standings }
    }

    /// For row `at`, returns the time and the speed-up over one thread: the first pair is for the elapsed time, the
    /// second for the processor time.
    fn row(&self, at: usize) -> [(Spread, Spread); 2] {
        let (row, one) = (&self.standings.rows[at], self.standings.reference());
        let of = |time: fn(&Times) -> f64| (row.spread(time), one.ratio_to(row, time));
        [of(|times| times.elapsed), of(|times| times.processor)]
    }

    pub(crate) fn print(&self) {
        println!(
            "\nTime per packet in ns for one member, by number of threads: median (minimum to maximum)\n"
        );
        let mut table = Markdown::new([
            "threads",
            "elapsed",
            "one thread / elapsed",
            "processor time of the busiest thread",
            "one thread / processor time",
        ]);
        for at in 0..self.standings.rows.len() {
            let [(elapsed, faster), (processor, faster_alone)] = self.row(at);
            let count = self.standings.rows[at].contender.to_string();
            table.row([count, elapsed.text(1), faster.text(2), processor.text(1), faster_alone.text(2)]);
        }
        print!("{}", table.text());
    }

    pub(crate) fn json(&self) -> Value {
        let row = |at: usize| {
            let [(elapsed, faster), (processor, faster_alone)] = self.row(at);
            json!({
                "threads": self.standings.rows[at].contender, "segments": SEGMENTS, "members": MEMBERS,
                "elapsed_ns": elapsed.json(), "speed_up": faster.json(),
                "processor_ns": processor.json(), "speed_up_of_processor_time": faster_alone.json(),
            })
        };
        (0..self.standings.rows.len()).map(row).collect::<Vec<_>>().into()
    }
}
