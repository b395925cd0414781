//! Configuration files of training runs, in TOML. `iswitch train --config FILE` reads such a file, and each run writes
//! one to its run directory.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use iswitch::ElementTypes;
use iswitch_learn::algorithms::trainer::Algorithm;
use iswitch_protocol::limits::MAX_MEMBERS;
use iswitch_storage::RealDisk;
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use crate::asynchronous::STALENESS_MAX;
use crate::group::Aggregator;
use crate::{hyper, number};

/// Name of the file in a run directory.
pub const CONFIG_FILE: &str = "config.toml";
/// Value in the file for a hyper-parameter that is not set. TOML has no null.
const NONE: &str = "none";
/// Version of this workspace's programs.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Configuration file of a training run.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    path: PathBuf,
    text: String,
    entries: Entries,
}

/// Entries of the file. All entries except the algorithm are optional.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    version: Option<String>,
    algorithm: Spanned<String>,
    env: Option<String>,
    workers: Option<Spanned<u16>>,
    aggregator: Option<Aggregator>,
    paper_style: Option<bool>,
    wire: Option<Spanned<String>>,
    #[serde(rename = "async")]
    is_async: Option<bool>,
    staleness: Option<Spanned<u32>>,
    checkpoint_every: Option<u64>,
    env_threads: Option<Spanned<u16>>,
    #[serde(default)]
    hyper_parameters: BTreeMap<String, Spanned<toml::Value>>,
}

impl ConfigFile {
    /// Reads a file and checks all of its entries except the hyper-parameters, whose names depend on the algorithm.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is not TOML, or has an unknown key or an invalid value. The error names the
    /// line.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("configuration file {}", path.display()))?;
        let entries = toml::from_str(&text).map_err(|error| {
            let message = error.message().trim().replace('\n', "; ");
            fail(path, &text, &error.span().unwrap_or_default(), message)
        })?;
        let file = Self { path: path.to_owned(), text, entries };
        if let Some(version) = file.entries.version.as_deref().filter(|version| *version != VERSION) {
            tracing::warn!(
                file = %path.display(),
                version,
                "another version of iSwitch wrote the file; this is version {VERSION}"
            );
        }
        file.workers()?;
        file.wire()?;
        file.staleness()?;
        file.env_threads()?;
        Ok(file)
    }

    /// Returns the name of the algorithm.
    pub fn algorithm(&self) -> &str {
        self.entries.algorithm.get_ref()
    }

    /// Rejects a file whose algorithm is not `expected`.
    ///
    /// # Errors
    /// Fails if the file's algorithm is not `expected`.
    pub fn check_algorithm(&self, expected: &str) -> anyhow::Result<()> {
        let algorithm = &self.entries.algorithm;
        if algorithm.get_ref() == expected {
            return Ok(());
        }
        Err(self.fail(
            &algorithm.span(),
            format!("algorithm is {:?}, expected {expected:?}", algorithm.get_ref()),
        ))
    }

    /// Returns the id of the environment.
    pub fn env(&self) -> Option<&str> {
        self.entries.env.as_deref()
    }

    /// Returns the number of workers.
    ///
    /// # Errors
    /// Fails if the number is out of range.
    pub fn workers(&self) -> anyhow::Result<Option<u16>> {
        let expected = format!("1 to {MAX_MEMBERS}");
        let is_valid = |workers: u16| (1..=MAX_MEMBERS).contains(&usize::from(workers));
        self.checked("workers", self.entries.workers.as_ref(), is_valid, &expected)
    }

    /// Returns the aggregator, and whether it works as in the paper, that is, without pipelining.
    pub fn aggregator(&self) -> (Option<Aggregator>, Option<bool>) {
        (self.entries.aggregator, self.entries.paper_style)
    }

    /// Returns the element types of the packets.
    ///
    /// # Errors
    /// Fails if the element types are unknown.
    pub fn wire(&self) -> anyhow::Result<Option<ElementTypes>> {
        let Some(wire) = &self.entries.wire else { return Ok(None) };
        let types = wire.get_ref().parse();
        types
            .map(Some)
            .map_err(|error| self.fail(&wire.span(), format!("wire is {:?}: {error}", wire.get_ref())))
    }

    /// Returns whether the run is asynchronous.
    pub fn is_async(&self) -> Option<bool> {
        self.entries.is_async
    }

    /// Returns the staleness bound.
    ///
    /// # Errors
    /// Fails if the bound is out of range.
    pub fn staleness(&self) -> anyhow::Result<Option<u32>> {
        let expected = format!("0 to {STALENESS_MAX}");
        self.checked("staleness", self.entries.staleness.as_ref(), |bound| bound <= STALENESS_MAX, &expected)
    }

    /// Returns the interval between checkpoints.
    pub fn checkpoint_every(&self) -> Option<u64> {
        self.entries.checkpoint_every
    }

    /// Returns the number of threads or processes that step a worker's environments.
    ///
    /// # Errors
    /// Fails if the number is 0.
    pub fn env_threads(&self) -> anyhow::Result<Option<u16>> {
        let expected = format!("1 to {}", u16::MAX);
        self.checked("env_threads", self.entries.env_threads.as_ref(), |threads| threads >= 1, &expected)
    }

    /// Returns a copy of the preset in which the file's hyper-parameters replace those of the preset.
    ///
    /// # Errors
    /// Fails if a hyper-parameter is unknown or has the wrong type. The error names the line.
    pub fn apply<A: Algorithm>(&self, preset: &A) -> anyhow::Result<A> {
        let mut config = serde_json::to_value(preset)?;
        for (name, value) in &self.entries.hyper_parameters {
            let at = value.span();
            let json = to_json(value.get_ref());
            let setting = format!("{name} = {}", value.get_ref());
            hyper::set(&mut config, name, json)
                .map_err(|error| self.fail(&at, iswitch_manual::describe(error.as_ref())))?;
            A::deserialize(&config).map_err(|error| self.fail(&at, format!("{setting}: {error}")))?;
        }
        Ok(serde_json::from_value(config)?)
    }

    /// Returns all entries by name, each with its value as written in TOML. The names of hyper-parameters are not
    /// qualified with their section, and the program version is omitted.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let mut table: toml::Table = toml::from_str(&self.text).unwrap_or_default();
        table.remove("version");
        let parameters = table.remove("hyper_parameters");
        let parameters = parameters.and_then(|value| value.as_table().cloned()).unwrap_or_default();
        table.into_iter().chain(parameters).map(|(name, value)| (name, value.to_string())).collect()
    }

    fn checked<T: Copy + Display>(
        &self,
        name: &str,
        value: Option<&Spanned<T>>,
        is_valid: impl Fn(T) -> bool,
        expected: &str,
    ) -> anyhow::Result<Option<T>> {
        match value {
            Some(value) if !is_valid(*value.get_ref()) => {
                Err(self.fail(&value.span(), format!("{name} is {}, expected {expected}", value.get_ref())))
            }
            value => Ok(value.map(|value| *value.get_ref())),
        }
    }

    fn fail(&self, at: &Range<usize>, reason: impl Display) -> anyhow::Error {
        fail(&self.path, &self.text, at, reason)
    }
}

fn fail(path: &Path, text: &str, at: &Range<usize>, reason: impl Display) -> anyhow::Error {
    let line = 1 + text.get(..at.start).unwrap_or_default().matches('\n').count();
    anyhow!("{}, line {line}: {reason}", path.display())
}

/// Configuration of a run, which [`Self::text`] writes as a file.
#[derive(Clone, Debug)]
pub struct Configuration<'a, A> {
    /// Id of the environment.
    pub env: &'a str,
    /// Hyper-parameters.
    pub hyper_parameters: &'a A,
    /// Number of workers.
    pub workers: usize,
    /// Aggregator, if the user has chosen one.
    pub aggregator: Option<Aggregator>,
    /// Whether the aggregator works as in the paper, that is, without pipelining.
    pub paper_style: bool,
    /// Element types of packets.
    pub wire: ElementTypes,
    /// Staleness bound, if the run is asynchronous.
    pub staleness: Option<u32>,
    /// Interval between checkpoints, if the user has chosen one.
    pub checkpoint_every: Option<u64>,
    /// Number of threads or processes that step a worker's environments, if the user has chosen one.
    pub env_threads: Option<u16>,
}

impl<A: Algorithm> Configuration<'_, A> {
    /// Writes the file into a run directory.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, directory: &Path) -> anyhow::Result<()> {
        let path = directory.join(CONFIG_FILE);
        let written = iswitch_storage::replace(&RealDisk, &path, self.text()?.as_bytes());
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns the text of the file. Each hyper-parameter is preceded by its description.
    ///
    /// # Errors
    /// Fails if the hyper-parameters cannot be represented.
    pub fn text(&self) -> anyhow::Result<String> {
        let mut text = String::from(
            "# Configuration of a training run. To start the run: iswitch train --config FILE\n# Options on the \
             command line override the file.\n",
        );
        let string = |text: &str| toml::Value::from(text).to_string();
        let entries = [
            ("version", Some(string(VERSION))),
            ("algorithm", Some(string(A::NAME))),
            ("env", Some(string(self.env))),
            ("workers", Some(self.workers.to_string())),
            ("aggregator", self.aggregator.map(|aggregator| string(&aggregator.to_string()))),
            ("paper_style", self.paper_style.then(|| true.to_string())),
            ("wire", Some(string(&self.wire.to_string()))),
            ("async", Some(self.staleness.is_some().to_string())),
            ("staleness", self.staleness.map(|bound| bound.to_string())),
            ("checkpoint_every", self.checkpoint_every.map(|every| every.to_string())),
            ("env_threads", self.env_threads.map(|threads| threads.to_string())),
        ];
        for (name, value) in entries.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            writeln!(text, "{name} = {value}")?;
        }
        text += "\n[hyper_parameters]\n";
        // Convert the values through text, which contains the shortest decimal representation of each binary32 number.
        // A direct conversion would print each number with binary64 precision.
        let values: Value = serde_json::from_str(&serde_json::to_string(self.hyper_parameters)?)?;
        for (name, description) in A::descriptions() {
            writeln!(text, "# {}\n{name} = {}", description.trim(), to_toml(&values[*name]))?;
        }
        Ok(text)
    }
}

/// Converts the value of a hyper-parameter. A string may contain a number, as in `"1_000_000"`, or [`NONE`].
fn to_json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) if text == NONE => Value::Null,
        toml::Value::String(text) => number::value(text),
        toml::Value::Array(values) => values.iter().map(to_json).collect(),
        toml::Value::Table(table) => {
            table.iter().map(|(name, value)| (name.clone(), to_json(value))).collect()
        }
        // A float such as 1e6 becomes an integer, as on the command line.
        other => number::value(&other.to_string()),
    }
}

fn to_toml(value: &Value) -> toml::Value {
    match value {
        Value::Null => NONE.into(),
        Value::Bool(value) => (*value).into(),
        // TOML cannot represent integers above 2^63 - 1.
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.to_string().into(),
            (None, None) => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => values.iter().map(to_toml).collect::<Vec<_>>().into(),
        Value::Object(entries) => {
            toml::Value::Table(entries.iter().map(|(name, value)| (name.clone(), to_toml(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use iswitch_learn::algorithms::dqn::DqnConfig;
    use iswitch_learn::algorithms::ppo::PpoConfig;

    use super::*;

    fn read(text: &str) -> anyhow::Result<ConfigFile> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.toml");
        std::fs::write(&path, text).unwrap();
        ConfigFile::read(&path)
    }

    fn configuration<'a, A>(env: &'static str, hyper_parameters: &'a A) -> Configuration<'a, A> {
        Configuration {
            env,
            hyper_parameters,
            workers: 3,
            aggregator: Some(Aggregator::Ps),
            paper_style: false,
            wire: ElementTypes::F32,
            staleness: Some(2),
            checkpoint_every: None,
            env_threads: Some(5),
        }
    }

    #[test]
    fn a_written_file_is_read_back_exactly() {
        let mut ppo = PpoConfig::preset("PlanarHopper-v0");
        ppo.seed = u64::MAX;
        ppo.clip_range_value = None;
        ppo.learning_rate = 1.234_567_8e-5;
        let file = read(&configuration("PlanarHopper-v0", &ppo).text().unwrap()).unwrap();
        assert_eq!(file.apply(&PpoConfig::preset("PlanarHopper-v0")).unwrap(), ppo);
        assert_eq!((file.algorithm(), file.env()), ("ppo", Some("PlanarHopper-v0")));
        assert_eq!((file.workers().unwrap(), file.wire().unwrap()), (Some(3), Some(ElementTypes::F32)));
        assert_eq!((file.is_async(), file.staleness().unwrap()), (Some(true), Some(2)));
        assert_eq!(file.aggregator(), (Some(Aggregator::Ps), None));
        assert_eq!(file.env_threads().unwrap(), Some(5));
        assert_eq!(file.to_map()["learning_rate"], "0.000012345678");
        let other = DqnConfig::preset("Pong-v5");
        let file = read(&configuration("Pong-v5", &other).text().unwrap()).unwrap();
        assert_eq!(file.apply(&DqnConfig::preset("CartPole-v1")).unwrap(), other);
    }

    #[test]
    fn errors_name_the_file_the_line_and_the_key() {
        let errors = [
            (
                "algorithm = 'ppo'\n\nworker = 4\n",
                "run.toml, line 3: unknown field `worker`, expected one of",
            ),
            ("algorithm = 'ppo'\nworkers = 0\n", "run.toml, line 2: workers is 0, expected 1 to "),
            ("algorithm = 'ppo'\nwire = 'f8'\n", "run.toml, line 2: wire is \"f8\": "),
            ("algorithm = 'ppo'\nenv_threads = 0\n", "line 2: env_threads is 0, expected 1 to 65535"),
            ("algorithm = 'ppo'\nstaleness = 1001\n", "line 2: staleness is 1001, expected 0 to 1000"),
            (
                "algorithm = 'ppo'\naggregator = 'tree'\n",
                "line 2: unknown variant `tree`, expected one of `switch`",
            ),
            ("algorithm = 'ppo'\nenv =\n", "run.toml, line 2: "),
            ("env = 'CartPole-v1'\n", "missing field `algorithm`"),
        ];
        for (text, expected) in errors {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
        let preset = PpoConfig::preset("CartPole-v1");
        let errors = [
            ("gamma = 0.9\ngama = 0.9", "line 4: gama: no such hyper-parameter; expected one of "),
            ("epochs = 1.5", "line 3: epochs = 1.5: invalid type"),
        ];
        for (parameters, expected) in errors {
            let file = read(&format!("algorithm = 'ppo'\n[hyper_parameters]\n{parameters}\n")).unwrap();
            let error = format!("{:#}", file.apply(&preset).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn numbers_may_be_written_as_on_the_command_line() {
        let text =
            "algorithm = 'ppo'\n[hyper_parameters]\ntotal_steps = 2e6\nrollout_steps = 4_096\nepochs = '8'\n";
        let config = read(text).unwrap().apply(&PpoConfig::preset("CartPole-v1")).unwrap();
        assert_eq!((config.total_steps, config.rollout_steps, config.epochs), (2_000_000, 4096, 8));
    }
}
