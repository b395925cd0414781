//! Recovery time of each kind of process: the time from SIGKILL until the replacement process does the same work.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use iswitch_models::{BlockingModelClient, ClientOptions, Endpoint};
use iswitch_replay::client::ClientConfig;
use iswitch_replay::client::blocking::ReplayClient;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

use crate::contest::{Contest, Markdown, Progress, Row, Standings};
use iswitch_harness::binaries;
use iswitch_harness::process::{self, Process};
use iswitch_harness::{scratch, wait};

/// Kind of process that the benchmark kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    /// Actor process. It has recovered once the shard stores new items.
    #[strum(to_string = "actor process")]
    Actors,
    /// Cell (model cache). It has recovered once it reports the latest policy.
    Cell,
    /// Replay shard. It has recovered once it has restored its items and answers requests.
    Shard,
    /// Learner. It has recovered once it has published a policy newer than the last one before the kill.
    Learner,
}

impl Kind {
    /// Returns the subcommand of `iswitch` that the process runs.
    fn subcommand(self) -> &'static str {
        match self {
            Self::Actors => "actors",
            Self::Cell => "cell",
            Self::Shard => "replay",
            Self::Learner => "learner",
        }
    }
}

/// Timeout of each wait, which even a slow machine does not reach.
const HANGS: Duration = Duration::from_secs(120);
/// Pause between two kills.
const PAUSE: Duration = Duration::from_secs(2);

/// Recovery times of each kind of process, in milliseconds.
#[derive(Clone, Debug)]
pub struct Table {
    standings: Standings<Kind, f64>,
    malformed: u64,
}

/// Kills a process of each kind `kills` times, during one open-ended training run of DQN on `CartPole-v1`. The items of
/// the shard survive a restart of its process.
///
/// # Panics
/// Panics if a process does not recover, or if an item differs from what an actor inserted.
pub fn measure(kills: usize, progress: &Progress) -> Table {
    let directory = scratch::directory();
    let mut command = process::command(binaries::iswitch());
    command.args(["actor-learner", "dqn", "--steps", "1000000000", "--quiet", "--json"]);
    command.args(["--actors", "2", "--replay-durability", "write", "--checkpoint-every", "1", "--out"]);
    command.arg(directory.path().join("run"));
    let parent = Process::spawn("iswitch actor-learner", &mut command);
    let mut run = Run::find(&parent);
    let standings = Contest::new(Kind::iter(), kills).hold(progress, |kind, turn| {
        std::thread::sleep(PAUSE);
        let time_ms = run.kill(*kind).as_secs_f64() * 1e3;
        turn.report(format!("recovered after {time_ms:.0} ms"));
        time_ms
    });
    let finished = parent.stop(Signal::TERM, HANGS);
    let result: Value = serde_json::from_str(&finished.stdout).expect(&finished.stdout);
    let malformed = result["replay"]["malformed"].as_u64().expect("`malformed` must be a number");
    assert_eq!(malformed, 0, "{result}");
    Table { standings, malformed }
}

/// Processes of a run, and clients to query them.
struct Run {
    parent: u32,
    cell: Endpoint,
    learner: BlockingModelClient,
    shard: ReplayClient,
}

impl Run {
    /// Waits until all processes have started, and finds their addresses.
    fn find(parent: &Process) -> Self {
        let argument = |kind: Kind, name: &str| {
            wait("all processes", || {
                let (_, line) = children(parent.id(), kind).into_iter().next()?;
                let at = line.iter().position(|word| word == name)?;
                line.get(at + 1).cloned()
            })
        };
        let endpoint =
            |address: String| address.parse::<Endpoint>().expect("the argument must be an address");
        let learner = endpoint(argument(Kind::Cell, "--upstream"));
        let shard = format!("http://{}", argument(Kind::Shard, "--listen"));
        let name = "policy".parse().expect("`policy` must be a valid name");
        let options = ClientOptions::default();
        let wait = Duration::from_millis(1);
        let config = ClientConfig { wait, patience: wait, ..ClientConfig::new([shard]) };
        Self {
            parent: parent.id(),
            cell: endpoint(argument(Kind::Cell, "--listen")),
            learner: BlockingModelClient::new(name, &[learner], options)
                .expect("the model client must be created"),
            shard: ReplayClient::new(config).expect("the replay client must be created"),
        }
    }

    /// Returns the number of items that the shard stores, and the number of items ever inserted.
    fn items(&self) -> Option<(u64, u64)> {
        let described = self.shard.describe().pop()?.ok()?;
        let table = described.tables.into_iter().find(|table| table.name == "experience")?;
        Some((table.extent?.size, table.inserts))
    }

    fn latest(&mut self) -> Option<u64> {
        Some(self.learner.latest().ok()?.version)
    }

    /// Kills a process, and returns the time until its replacement does the same work.
    fn kill(&mut self, kind: Kind) -> Duration {
        let ids = |run: &Self| -> BTreeSet<u32> {
            children(run.parent, kind).into_iter().map(|(id, _)| id).collect()
        };
        let before = wait("a process to kill", || Some(ids(self)).filter(|ids| ids.len() == 1));
        let (size, _) = wait("a shard", || self.items());
        let version = self.latest();
        let began = Instant::now();
        let victim = *before.first().expect("one process must exist");
        let victim =
            Pid::from_raw(i32::try_from(victim).expect("an id fits into i32")).expect("an id is positive");
        kill_process(victim, Signal::KILL).expect("the process must accept the signal");
        wait("another process", || Some(ids(self)).filter(|now| now.len() == 1 && *now != before));
        match kind {
            Kind::Actors => {
                // By now, the shard has received everything that the killed process had sent.
                let (_, inserts) = wait("a shard", || self.items());
                wait("more items", || self.items().filter(|(_, now)| *now > inserts));
            }
            Kind::Cell => {
                let name = "policy".parse().expect("`policy` must be a valid name");
                let options = ClientOptions::default();
                let cell = std::slice::from_ref(&self.cell);
                let mut client =
                    BlockingModelClient::new(name, cell, options).expect("the client must be created");
                wait("the cell", || client.latest().ok());
            }
            Kind::Shard => {
                // The shard must have restored the acknowledged items, up to its capacity. The count may also include
                // items that have arrived since the restart.
                let (restored, _) = wait("the shard", || self.items());
                assert!(restored >= size, "only {restored} of {size} items were restored");
            }
            Kind::Learner => _ = wait("a newer policy", || self.latest().filter(|now| Some(*now) > version)),
        }
        began.elapsed()
    }
}

fn wait<T>(what: &str, find: impl FnMut() -> Option<T>) -> T {
    wait::until_some(what, HANGS, find)
}

/// Returns the process id and the command line of each process of a kind that `parent` has started.
fn children(parent: u32, kind: Kind) -> Vec<(u32, Vec<String>)> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let ids: Vec<u32> = lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect();
    let words = |id: u32| -> Vec<String> {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    };
    let all = ids.into_iter().map(|id| (id, words(id)));
    all.filter(|(_, words)| words.get(1).is_some_and(|word| word == kind.subcommand())).collect()
}

impl Table {
    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let mut rows = Markdown::new(["killed process", "kills", "recovery time, ms"]);
        for row in &self.standings.rows {
            let back_ms = row.spread(|time_ms| *time_ms).text(0);
            rows.row([row.contender.to_string(), row.runs.len().to_string(), back_ms]);
        }
        format!("{}\nItems that differ from what an actor inserted: {}\n", rows.text(), self.malformed)
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let row = |row: &Row<Kind, f64>| {
            let times_ms = row.spread(|time_ms| *time_ms).json();
            json!({ "killed": row.contender.subcommand(), "kills": row.runs.len(), "back_after_ms": times_ms })
        };
        json!({ "rows": self.standings.json(row), "malformed": self.malformed })
    }
}
