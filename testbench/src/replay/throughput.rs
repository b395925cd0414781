//! Insert rate of one shard, and of one Reverb server, with actors that never pause. The traffic uses the loopback
//! interface of this machine, so that the CPU cores are the bottleneck.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::reverb::{Reverb, Sampler};
use crate::contest::{ActorPool, Contest, Latencies, Markdown, Progress, Row, Spread, Standings};
use crate::peers::series::bytes_text;

use iswitch_harness::binaries;
use iswitch_harness::cluster::SOON;
use iswitch_harness::process::{Process, command};

const WARM_UP: Duration = Duration::from_secs(1);
const TURN_TIMEOUT: Duration = Duration::from_secs(120);
/// Total size of the items that the table stores, in bytes.
const TABLE_BYTES: usize = 512 << 20;

/// Client and server that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum Pair {
    /// Client of this project and `replayd`.
    #[strum(to_string = "replayd")]
    Own,
    /// Client of this project and a Reverb server.
    #[strum(to_string = "Reverb, with the client of this project")]
    OwnToReverb,
    /// Client and server of Reverb.
    #[strum(to_string = "Reverb, with its own client")]
    Reverb,
}

/// Parameters of a measurement with actors that insert without a pause.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Length of an item in bytes.
    pub len_bytes: usize,
    /// Number of actors, each with one insert in flight.
    pub actors: usize,
    /// Number of interleaved measurements of each pair.
    pub turns: usize,
    /// Duration of the measurement in a turn.
    pub measured: Duration,
}

/// Inserts per second of each pair.
#[derive(Clone, Debug)]
pub struct Throughput {
    /// Load of the measurements.
    pub load: Load,
    /// Insert rates, `replayd` first.
    pub standings: Standings<Pair, f64>,
}

/// Measures each pair in each turn.
///
/// # Panics
/// Panics if an insert fails.
pub fn measure(reverb: Option<&Reverb>, load: Load, progress: &Progress) -> Throughput {
    let pairs = [Some(Pair::Own), reverb.map(|_| Pair::OwnToReverb), reverb.map(|_| Pair::Reverb)];
    let contest = Contest::new(pairs.into_iter().flatten(), load.turns);
    let contest = contest.titled(format!("{} bytes", load.len_bytes));
    let standings = contest
        .hold(progress, |pair, _| one_turn(*pair, reverb, load).count() as f64 / load.measured.as_secs_f64());
    Throughput { load, standings }
}

/// Runs one turn with a new server whose table is empty.
fn one_turn(pair: Pair, reverb: Option<&Reverb>, load: Load) -> Latencies {
    let items = TABLE_BYTES / load.len_bytes;
    let (mut server, address) = match (pair, reverb) {
        (Pair::OwnToReverb | Pair::Reverb, Some(reverb)) => {
            let mut server = reverb.start(0, items, Sampler::Uniform, |python: &Path| command(python));
            let address = format!("127.0.0.1:{}", Reverb::port(&mut server));
            (server, address)
        }
        _ => start_own(items),
    };
    let bytes = load.len_bytes.to_string();
    let [warm_up_s, measured_s] = [WARM_UP, load.measured].map(|time| time.as_secs_f64().to_string());
    let latencies = if let (Pair::Reverb, Some(reverb)) = (pair, reverb) {
        let mut command = reverb.script("writers.py");
        command.args([address, load.actors.to_string(), bytes, warm_up_s, measured_s]);
        Latencies::printed([Process::spawn("actors", &mut command).wait_success(TURN_TIMEOUT)])
    } else {
        let scheme = if pair == Pair::Own { "http" } else { "reverb" };
        let actor_pool = ActorPool { actors: load.actors, processes: 1, timeout: TURN_TIMEOUT };
        actor_pool.run(|| {
            let mut command = command(binaries::replay_writers());
            command.args(["--shards", &format!("{scheme}://{address}"), "--bytes", &bytes]);
            command.args(["--warm-up-s", &warm_up_s, "--measured-s", &measured_s]);
            // Reverb's own client has a thread for each actor, so it is not the bottleneck. With two threads, this
            // client is not the bottleneck either.
            command.args(["--threads", "2"]);
            command
        })
    };
    server.kill(SOON);
    latencies
}

fn start_own(items: usize) -> (Process, String) {
    let mut command = command(binaries::replayd());
    command.args(["--listen", "127.0.0.1:0", "--json", "--memory-max", "1GiB"]);
    command.args(["--table", &format!("name=t,capacity={items}")]);
    let mut server = Process::spawn("replayd", &mut command);
    server.wait_for("}", SOON);
    let ready: Value = serde_json::from_str(server.stdout().trim()).expect("the output must be JSON");
    let address = ready["listening"][0].as_str().expect("an address must be printed").to_owned();
    (server, address)
}

impl Throughput {
    /// Returns the insert rate of the first pair divided by that of the pair in `row` in the same turn.
    pub fn gain(&self, row: &Row<Pair, f64>) -> Spread {
        self.standings.reference().ratio_to(row, |rate| *rate)
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let Load { len_bytes, actors, .. } = self.load;
        let mut rows = Markdown::new(["", "inserts/s", "MB/s", "speed-up of replayd"]);
        for row in &self.standings.rows {
            let rate = row.spread(|rate| *rate);
            let megabytes = rate.scaled(len_bytes as f64 / 1e6);
            let gain = self.gain(row).text(2);
            rows.row([row.contender.to_string(), rate.text(0), megabytes.text(0), gain]);
        }
        let len = bytes_text(len_bytes as f64);
        format!("### {actors} actors, {len}, one server, without pauses\n\n{}", rows.text())
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let row = |row: &Row<Pair, f64>| {
            json!({
                "contender": row.contender.to_string(), "inserts_per_s": row.spread(|rate| *rate).json(),
                "gain": self.gain(row).json(),
            })
        };
        json!({
            "actors": self.load.actors, "len_bytes": self.load.len_bytes, "rows": self.standings.json(row),
        })
    }
}
