//! How much one shard takes from actors that never pause, beside one Reverb server: on this machine's loop-back, where
//! no link but the cores are the limit.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::Run;
use super::reverb::{Reverb, Sampler};
use crate::peers::series::bytes_text;
use crate::spread::Spread;
use iswitch_harness::binaries;
use iswitch_harness::cluster::SOON;
use iswitch_harness::process::{Process, command};

const WARM_UP: Duration = Duration::from_secs(1);
const HEAD_START: Duration = Duration::from_millis(500);
const TURN_TIMEOUT: Duration = Duration::from_secs(120);
/// Items of the table, in bytes.
const TABLE_BYTES: usize = 512 << 20;

/// Who inserts into what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// Our client and `replayd`.
    Own,
    /// Our client and a Reverb server.
    OwnToReverb,
    /// Reverb's own client and server.
    Reverb,
}

impl Pair {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Own => "replayd",
            Self::OwnToReverb => "Reverb, from our client",
            Self::Reverb => "Reverb, from its own client",
        }
    }
}

/// Inserts per second of each pair, turn by turn, for items of one length.
#[derive(Clone, Debug)]
pub struct Throughput {
    /// Bytes of an item.
    pub len_bytes: usize,
    /// Each with one insert under way.
    pub actors: usize,
    /// The pairs.
    pub rows: Vec<(Pair, Vec<f64>)>,
}

/// Lets each pair take its turns of so long, each time in another order.
///
/// # Panics
/// If an insert fails.
pub fn measure(
    reverb: Option<&Reverb>,
    len_bytes: usize,
    actors: usize,
    turns: usize,
    measured: Duration,
) -> Throughput {
    let pairs = [Some(Pair::Own), reverb.map(|_| Pair::OwnToReverb), reverb.map(|_| Pair::Reverb)];
    let mut rows: Vec<_> = pairs.into_iter().flatten().map(|pair| (pair, Vec::new())).collect();
    for turn in 0..turns {
        for place in 0..rows.len() {
            let at = (place + turn) % rows.len();
            let (pair, rates) = &mut rows[at];
            let run = Run::of(one_turn(*pair, reverb, len_bytes, actors, measured));
            rates.push(run.inserts as f64 / measured.as_secs_f64());
        }
    }
    Throughput { len_bytes, actors, rows }
}

/// With a server of its own, which holds nothing yet.
fn one_turn(
    pair: Pair,
    reverb: Option<&Reverb>,
    len_bytes: usize,
    actors: usize,
    measured: Duration,
) -> Vec<f64> {
    let items = TABLE_BYTES / len_bytes;
    let (mut server, address) = match (pair, reverb) {
        (Pair::OwnToReverb | Pair::Reverb, Some(reverb)) => {
            let mut server = reverb.start(0, items, Sampler::Uniform, |python: &Path| command(python));
            let address = format!("127.0.0.1:{}", Reverb::port(&mut server));
            (server, address)
        }
        _ => start_own(items),
    };
    let [actors, bytes] = [actors, len_bytes].map(|number| number.to_string());
    let [warm_up_s, measured_s] = [WARM_UP, measured].map(|time| time.as_secs_f64().to_string());
    let mut writers = if let (Pair::Reverb, Some(reverb)) = (pair, reverb) {
        let mut command = reverb.script("writers.py");
        command.args([address, actors, bytes, warm_up_s, measured_s]);
        command
    } else {
        let scheme = if pair == Pair::Own { "http" } else { "reverb" };
        let start = SystemTime::now() + HEAD_START;
        let start_ms = start.duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis();
        let mut command = command(binaries::replay_writers());
        command.args(["--shards", &format!("{scheme}://{address}"), "--start-unix-ms"]);
        command.args([&start_ms.to_string(), "--actors", &actors, "--bytes", &bytes]);
        command.args(["--warm-up-s", &warm_up_s, "--measured-s", &measured_s]);
        // Reverb's own client has a thread for each actor; ours is not to be what is measured either.
        command.args(["--threads", "2"]);
        command
    };
    let latencies = latencies_ms(&Process::spawn("actors", &mut writers).wait_success(TURN_TIMEOUT));
    server.kill(SOON);
    latencies
}

fn start_own(items: usize) -> (Process, String) {
    let mut command = command(binaries::replayd());
    command.args(["--listen", "127.0.0.1:0", "--json", "--memory-max", "1GiB"]);
    command.args(["--table", &format!("name=t,capacity={items}")]);
    let mut server = Process::spawn("replayd", &mut command);
    server.wait_for("}", SOON);
    let ready: Value = serde_json::from_str(server.stdout().trim()).expect("a JSON line");
    let address = ready["listening"][0].as_str().expect("an address").to_owned();
    (server, address)
}

/// What a program of actors has printed.
pub(super) fn latencies_ms(output: &str) -> Vec<f64> {
    let line: Value = serde_json::from_str(output.lines().last().unwrap_or_default()).expect("a JSON line");
    let all = line["latencies_ms"].as_array().expect("a list");
    all.iter().map(|latency| latency.as_f64().expect("a number")).collect()
}

impl Throughput {
    /// How many times as much as this pair the first one inserts in the same turn.
    pub fn gain(&self, rates: &[f64]) -> Spread {
        let (_, own) = &self.rows[0];
        Spread::of(own.iter().zip(rates).map(|(own, rate)| own / rate))
    }

    /// For people, as Markdown.
    pub fn text(&self) -> String {
        let title = format!("{} actors, {}", self.actors, bytes_text(self.len_bytes as f64));
        let mut text = format!(
            "### {title}, one server, without pause\n\n| | inserts/s | MB/s | replayd is so many times as fast |\n\
             |---|---|---|---|\n"
        );
        for (pair, rates) in &self.rows {
            let rate = Spread::of(rates.iter().copied());
            let megabytes = rate.scaled(self.len_bytes as f64 / 1e6);
            let (name, gain) = (pair.text(), self.gain(rates).text(2));
            let _ = writeln!(text, "| {name} | {} | {} | {gain} |", rate.text(0), megabytes.text(0));
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let row = |(pair, rates): &(Pair, Vec<f64>)| {
            json!({
                "contender": pair.text(), "inserts_per_s": Spread::of(rates.iter().copied()).json(),
                "gain": self.gain(rates).json(),
            })
        };
        json!({
            "actors": self.actors, "len_bytes": self.len_bytes,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}
