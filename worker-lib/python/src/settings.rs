//! Settings of a worker. Each setting is taken from an argument or, if the argument is omitted, from an environment
//! variable.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt::Display;
use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use iswitch::{ElementTypes, JoinOptions, Label, key_file};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Value of the `switch` setting for which rank 0 starts a private switch.
const AUTO: &str = "auto";
/// Port of the switch if none is given.
const DEFAULT_PORT: u16 = 7711;
/// Default time for which the switch may be silent before a call fails, in seconds. It is long enough for the switch
/// to restart, and short enough for an error to be reported within five seconds.
const DEFAULT_SWITCH_TIMEOUT_S: f64 = 3.0;
/// Default time to wait for the other workers, in seconds; equal to the default timeout of PyTorch's process groups.
const DEFAULT_TIMEOUT_S: f64 = 1800.0;
/// Upper bound of both timeouts, in seconds: one year, which the clock can represent without overflow.
const LONGEST_TIMEOUT_S: f64 = 31_536_000.0;
/// Description of a valid timeout.
const EXPECTED_SECONDS: &str = "a number of seconds above 0";

/// Addresses of switches: one text in which they are separated by commas, or a sequence of texts.
#[derive(FromPyObject)]
pub(crate) enum Switches {
    Listed(String),
    Separate(Vec<String>),
}

impl FromStr for Switches {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::Listed(text.to_owned()))
    }
}

impl Switches {
    /// Returns whether the user asks for a private switch.
    fn is_auto(&self) -> bool {
        matches!(self, Self::Listed(text) if text == AUTO)
    }

    fn resolve(&self) -> PyResult<Vec<SocketAddrV4>> {
        match self {
            Self::Listed(text) => text.split(',').map(|switch| resolve(switch.trim())).collect(),
            Self::Separate(all) => all.iter().map(|switch| resolve(switch)).collect(),
        }
    }
}

/// Arguments as received from Python.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) switch: Option<Switches>,
    pub(crate) rank: Option<u16>,
    pub(crate) world_size: Option<u16>,
    pub(crate) job: Option<u32>,
    pub(crate) timeout: Option<f64>,
    pub(crate) switch_timeout: Option<f64>,
    pub(crate) segment_floats: Option<u16>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) tag_data: Option<bool>,
    pub(crate) non_finite: Option<String>,
    pub(crate) wire: Option<String>,
    pub(crate) threads: Option<u8>,
    pub(crate) name: Option<String>,
    pub(crate) owner: Option<String>,
}

fn bad(message: impl Display) -> PyErr {
    PyValueError::new_err(message.to_string())
}

/// Returns the argument, or else the parsed environment variable, or else `None`.
fn given<T: FromStr>(argument: Option<T>, variable: &str, expected: &str) -> PyResult<Option<T>> {
    if argument.is_some() {
        return Ok(argument);
    }
    let Some(text) = std::env::var(variable).ok().filter(|text| !text.is_empty()) else { return Ok(None) };
    let parsed = text.parse().map_err(|_| bad(format!("{variable} is {text:?}, expected {expected}")));
    parsed.map(Some)
}

fn required<T: FromStr>(argument: Option<T>, name: &str, variable: &str, expected: &str) -> PyResult<T> {
    let missing = || bad(format!("neither {name} nor {variable} is set, expected {expected}"));
    given(argument, variable, expected)?.ok_or_else(missing)
}

fn duration(argument: Option<f64>, name: &str, variable: &str, default: f64) -> PyResult<Duration> {
    to_duration(given(argument, variable, EXPECTED_SECONDS)?.unwrap_or(default), name)
}

/// Converts a number of seconds from the setting or argument `name` to a duration.
///
/// # Errors
/// A `ValueError` if the number is not above 0.
pub(crate) fn to_duration(seconds: f64, name: &str) -> PyResult<Duration> {
    if seconds.is_nan() || seconds <= 0.0 {
        return Err(bad(format!("{name} is {seconds}, expected {EXPECTED_SECONDS}")));
    }
    Ok(Duration::from_secs_f64(seconds.min(LONGEST_TIMEOUT_S)))
}

/// Resolves `HOST` or `HOST:PORT` to an IPv4 address and a port.
fn resolve(switch: &str) -> PyResult<SocketAddrV4> {
    let expected = "HOST or HOST:PORT with an IPv4 address";
    let (host, port) = match switch.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| format!("port {port:?}"))),
        None => (switch, Ok(DEFAULT_PORT)),
    };
    let found = port.and_then(|port| (host, port).to_socket_addrs().map_err(|error| error.to_string()));
    let problem = match found {
        Ok(mut addresses) => {
            let address = addresses.find_map(|address| match address {
                SocketAddr::V4(address) => Some(address),
                SocketAddr::V6(_) => None,
            });
            match address {
                Some(address) => return Ok(address),
                None => "no IPv4 address".to_owned(),
            }
        }
        Err(problem) => problem,
    };
    Err(bad(format!("switch is {switch:?}, expected {expected}: {problem}")))
}

impl Arguments {
    /// Returns the options with which the worker joins. If the element types of all packets are set, also returns these
    /// types.
    ///
    /// # Errors
    /// A `ValueError` that names the missing or invalid argument or variable. For a private switch, also the errors of
    /// `iswitch._auto.address`.
    pub(crate) fn resolve(self, py: Python<'_>) -> PyResult<(JoinOptions, Option<ElementTypes>)> {
        let expected = "HOST:PORT of iswitchd, or auto if all workers run on this machine";
        let switch = required(self.switch, "switch", "ISWITCH_SWITCH", expected)?;
        let workers: u16 = required(self.world_size, "world_size", "WORLD_SIZE", "the number of workers")?;
        let rank: u16 = required(self.rank, "rank", "RANK", "this worker's number, starting from 0")?;
        if workers == 0 || rank >= workers {
            return Err(bad(format!(
                "rank is {rank} and world_size is {workers}, expected 0 <= rank < world_size"
            )));
        }
        let timeout = duration(self.timeout, "timeout", "ISWITCH_TIMEOUT", DEFAULT_TIMEOUT_S)?;
        let sends_non_finite = sends_non_finite(self.non_finite)?;
        let key_file: Option<PathBuf> = given(self.key_file, "ISWITCH_KEY_FILE", "a path")?;
        let switches = if switch.is_auto() {
            vec![resolve(&private_switch(py, rank, timeout, sends_non_finite, key_file.as_deref())?)?]
        } else {
            switch.resolve()?
        };
        let (first, standbys) =
            switches.split_first().ok_or_else(|| bad("switch is empty, expected at least one address"))?;
        let mut options = JoinOptions::new(*first, workers, 0);
        options.standbys = standbys.to_vec();
        options.rank = rank;
        options.name.rank = Some(rank);
        options.name.job = label(self.name, "name", "ISWITCH_JOB_NAME")?.or(run_id());
        options.name.owner = label(self.owner, "owner", "ISWITCH_JOB_OWNER")?;
        options.job = given(self.job, "ISWITCH_JOB", "a number below 2^32")?.unwrap_or(0);
        (options.workers_timeout, options.round_timeout) = (Some(timeout), Some(timeout));
        let variable = "ISWITCH_SWITCH_TIMEOUT";
        options.switch_timeout =
            duration(self.switch_timeout, "switch_timeout", variable, DEFAULT_SWITCH_TIMEOUT_S)?;
        options.connect_timeout = options.switch_timeout;
        let elements = given(self.wire, "ISWITCH_WIRE", "text")?;
        let parse =
            |wire: String| wire.parse().map_err(|expected| bad(format!("wire is {wire:?}, {expected}")));
        let elements: Option<ElementTypes> = elements.map(parse).transpose()?;
        options = options.with_elements(elements.unwrap_or_default());
        if let Some(floats) =
            given(self.segment_floats, "ISWITCH_SEGMENT_FLOATS", "a number from 1 to 65535")?
        {
            options.segment_floats = floats;
        }
        options.threads = threads(self.threads)?;
        options.sends_non_finite = sends_non_finite;
        options.tag_data =
            given(self.tag_data.map(u8::from), "ISWITCH_TAG_DATA", "0 or 1")?.unwrap_or(0) != 0;
        Ok((with_key(options, key_file)?, elements))
    }
}

/// Returns the address of the job's private switch on this machine. On rank 0, this call starts the switch with the
/// settings of rank 0.
fn private_switch(
    py: Python<'_>,
    rank: u16,
    timeout: Duration,
    sends_non_finite: bool,
    key_file: Option<&Path>,
) -> PyResult<String> {
    let mut options = Vec::new();
    if sends_non_finite {
        options.push(OsString::from("--non-finite=sum"));
    }
    if let Some(path) = key_file {
        let mut option = OsString::from("--key-file=");
        option.push(path);
        options.push(option);
    }
    let address = py.import("iswitch._auto")?.getattr("address")?;
    address.call1((rank, timeout.as_secs_f64(), options))?.extract()
}

/// Returns a text that the switch shows to operators; empty if neither the argument nor the environment variable is
/// set.
fn label<const N: usize>(argument: Option<String>, name: &str, variable: &str) -> PyResult<Label<N>> {
    let Some(text) = given(argument, variable, "text")? else { return Ok(Label::EMPTY) };
    text.parse().map_err(|error| bad(format!("{name} is {text:?}: {error}")))
}

/// Returns the id of the run that torchrun has started; empty if torchrun uses its default id or did not start this
/// process.
fn run_id<const N: usize>() -> Label<N> {
    let id = std::env::var("TORCHELASTIC_RUN_ID").ok().filter(|id| id != "none");
    Label::lossy(&id.unwrap_or_default())
}

fn threads(argument: Option<u8>) -> PyResult<usize> {
    let expected = "a number from 1 to 16";
    match given(argument, "ISWITCH_THREADS", expected)? {
        Some(threads @ (0 | 17..)) => Err(bad(format!("threads is {threads}, expected {expected}"))),
        // Zero lets the worker decide.
        other => Ok(other.unwrap_or(0).into()),
    }
}

fn sends_non_finite(word: Option<String>) -> PyResult<bool> {
    match given(word, "ISWITCH_NON_FINITE", "refuse or sum")?.as_deref() {
        None | Some("refuse") => Ok(false),
        Some("sum") => Ok(true),
        Some(other) => Err(bad(format!("non_finite is {other:?}, expected \"refuse\" or \"sum\""))),
    }
}

fn with_key(options: JoinOptions, path: Option<PathBuf>) -> PyResult<JoinOptions> {
    let Some(path) = path else { return Ok(options) };
    let key = key_file::read(&path).map_err(|error| bad(format!("key_file {}: {error}", path.display())))?;
    let tag_data = options.tag_data;
    Ok(JoinOptions { tag_data: false, ..options }.with_key(key, tag_data))
}
