//! Client side of the control socket: an operator's tool sends one line to a daemon over a Unix socket and receives one
//! line of JSON in return.

mod command;
mod table;

pub use command::Command;

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::Value;

/// Time within which a client must send its request and read the answer.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the default path of the control socket, on which the daemon listens and to which iswitchctl connects. For an
/// ordinary user, the path is in `XDG_RUNTIME_DIR`; if that variable is not set, returns `None`.
pub fn default_control_socket() -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;

    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let directory = if is_root { Some("/run".into()) } else { std::env::var_os("XDG_RUNTIME_DIR") };
    directory.map(|directory| PathBuf::from(directory).join("iswitchd.sock"))
}

/// Read-only requests of the control socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Request {
    /// State of the switch: version, uptime, ports, numbers of jobs and members, parents, awaited workers
    Status,
    /// Counters of the switch, of its card, and of each port
    Counters,
    /// Jobs and their members
    Jobs,
    /// Consistent snapshot of status, counters and jobs
    Snapshot,
    /// Latest events of each job, as lines of JSON
    Flight,
    /// Settings in force, and where each value comes from
    Config,
}

impl Request {
    /// Parses a line as a request. Returns `None` if the line is not the name of a request.
    pub fn parse(line: &str) -> Option<Self> {
        <Self as ValueEnum>::from_str(line, false).ok()
    }

    /// Returns the names of all requests. To make a request, a client sends its name as a line.
    pub(crate) fn names() -> Vec<String> {
        Self::value_variants().iter().copied().map(Self::name).collect()
    }

    /// Returns the name of this request, which a client sends as a line to make the request.
    fn name(self) -> String {
        let value = self.to_possible_value().expect("every request should have a name");
        value.get_name().to_owned()
    }

    /// Renders the answer to this request as human-readable text.
    pub fn text(self, answer: Value) -> String {
        match (self, answer) {
            (Self::Status, Value::Object(mut status)) => {
                let [parents, waiting] = ["parents", "waiting"].map(|key| status.remove(key));
                let mut text = table::render(&Value::Object(status));
                items(parents.as_ref()).filter_map(parent_line).for_each(|line| text.push_str(&line));
                items(waiting.as_ref()).for_each(|member| text.push_str(&waiting_line(member)));
                text
            }
            (Self::Flight, Value::Array(lines)) => lines_of(&lines),
            (Self::Config, Value::Array(settings)) => {
                table::render(&settings.into_iter().map(with_flat_value).collect())
            }
            (_, answer) => table::render(&answer),
        }
    }
}

/// Renders the values as JSON, one value per line.
pub fn lines_of(values: &[Value]) -> String {
    values.iter().fold(String::new(), |text, value| text + &value.to_string() + "\n")
}

/// If the value of a setting is a list, replaces it with text, so that the setting fits into one row of a table.
fn with_flat_value(mut setting: Value) -> Value {
    if let Some(list) = setting["value"].as_array() {
        let words: Vec<_> = list.iter().map(|word| word.as_str().unwrap_or_default()).collect();
        setting["value"] = if words.is_empty() { Value::Null } else { words.join(" ").into() };
    }
    setting
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

/// Returns a line that describes the problem with a parent, or `None` if there is no problem.
fn parent_line(parent: &Value) -> Option<String> {
    let (job, address) = (&parent["job"], parent["address"].as_str().unwrap_or("-"));
    if parent["lost"] == true {
        let seconds = parent["silent_ms"].as_f64().unwrap_or(0.0) / 1000.0;
        return Some(format!(
            "job {job}: the parent {address} has not answered for {seconds:.1} s; the job makes no progress until it \
             does\n"
        ));
    }
    let refusal = parent["refusal"].as_str()?;
    Some(format!("job {job}: the parent {address} refuses this switch: {refusal}\n"))
}

fn waiting_line(member: &Value) -> String {
    let seconds = member["waited_ms"].as_f64().unwrap_or(0.0) / 1000.0;
    let text = |key: &str| member[key].as_str().map(|text| text.escape_debug().to_string());
    let name = text("name").map_or(String::new(), |name| format!(" ({name})"));
    let rank = member["rank"].as_u64().map(|rank| format!("rank {rank}"));
    let host = text("host").map(|host| format!("on {host}"));
    let who: Vec<_> = rank.into_iter().chain(host).collect();
    let who = if who.is_empty() { String::new() } else { who.join(" ") + ", " };
    let address = member["address"].as_str().unwrap_or("-");
    format!(
        "job {}{name} has been waiting for member {} ({who}{address}) for {seconds:.1} s: {} of {} segments missing\n",
        member["job"], member["member"], member["missing_segments"], member["segments"]
    )
}

/// Sends a request to the daemon that listens on `path`, and returns its answer.
pub fn ask(path: &Path, request: Request) -> io::Result<Value> {
    send(path, &request.name())
}

/// Sends a command to the daemon that listens on `path`, and returns its answer.
pub fn command(path: &Path, command: Command) -> io::Result<Value> {
    send(path, &command.to_string())
}

/// Sends one line to the daemon, and returns its answer.
fn send(path: &Path, line: &str) -> io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    // The daemon serves one client at a time, so this client may have to wait for others.
    stream.set_read_timeout(Some(10 * CLIENT_TIMEOUT))?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let value: Value = serde_json::from_str(&answer)?;
    match value.get("error").and_then(Value::as_str) {
        Some(error) => Err(io::Error::other(error.to_owned())),
        None => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_status_shows_members_awaited_by_a_round() {
        let answer = json!({
            "jobs": 1,
            "waiting": [{
                "job": 5, "round": 12, "member": 2, "address": "10.9.0.3:5000", "waited_ms": 1234,
                "missing_segments": 17, "segments": 28,
            }],
        });
        let line = "job 5 has been waiting for member 2 (10.9.0.3:5000) for 1.2 s: 17 of 28 segments missing";
        assert_eq!(Request::Status.text(answer.clone()), format!("jobs  1\n{line}\n"));
        let mut named = answer;
        for (key, value) in [("name", json!("ppo")), ("rank", json!(2)), ("host", json!("gpu\x1b07"))] {
            named["waiting"][0][key] = value;
        }
        let begin =
            "job 5 (ppo) has been waiting for member 2 (rank 2 on gpu\\u{1b}07, 10.9.0.3:5000) for 1.2 s";
        assert!(Request::Status.text(named.clone()).contains(begin), "{}", Request::Status.text(named));
    }

    #[test]
    fn each_setting_has_one_row() {
        let setting =
            |setting: &str, value: Value| json!({ "setting": setting, "value": value, "from": "default" });
        let settings =
            [setting("udp", json!(["a:1", "b:2"])), setting("user", Value::Null), setting("port", json!([]))];
        let expected = "\
setting  value    from
udp      a:1 b:2  default
user     -        default
port     -        default
";
        assert_eq!(Request::Config.text(json!(settings)), expected);
    }

    #[test]
    fn the_status_shows_lost_and_refusing_parents() {
        let parent = |job, lost, refusal: Option<&str>| {
            json!({
                "job": job, "address": "10.8.0.254:7711", "silent_ms": 1234, "lost": lost, "refusal": refusal,
            })
        };
        let refused = parent(7, false, Some("levels of switches (expected 8)"));
        let parents = [parent(5, true, None), parent(6, false, None), refused];
        let expected = "\
jobs  3
job 5: the parent 10.8.0.254:7711 has not answered for 1.2 s; the job makes no progress until it does
job 7: the parent 10.8.0.254:7711 refuses this switch: levels of switches (expected 8)
";
        assert_eq!(Request::Status.text(json!({ "jobs": 3, "parents": parents })), expected);
    }
}
