//! External policies: programs in any language that answer each decision of a run with one line of JSON.
//!
//! A run starts the program, sends a [greeting](Greeting) that describes the run, and then one request for each
//! decision. Each request is one line of JSON on the program's standard input, and the program answers it with one line
//! of JSON on its standard output, an object. If the object has the `error` key, the run fails with this error. The
//! studies define the requests and answers, in their modules `policy::external`.

mod program;

use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::StudyError;
pub use program::Program;

/// Version of the protocol, the value of `version` in a greeting.
pub const VERSION: u64 = 1;
/// Environment variable of the program that contains the seed of the run.
pub const SEED_VARIABLE: &str = "ISWITCH_SEED";
/// Default time limit for an answer, in seconds.
pub const ANSWER_TIMEOUT_S: f64 = 60.0;
/// Maximum length of the name of an external policy, in bytes.
pub const NAME_LEN_MAX_BYTES: usize = 64;
/// Maximum time limit for an answer, in seconds (one week).
const ANSWER_TIMEOUT_MAX_S: f64 = 604_800.0;

/// Help on external policies for the list of policies that a command accepts.
pub const EXTERNAL_HELP: &str = "NAME=COMMAND (an external policy: sh runs COMMAND, which reads each decision as a \
    line of JSON on its standard input and answers it with a line of JSON on its standard output; the guide describes \
    the requests under \"Policies of your own\")";

/// Arguments of the commands that run external policies.
#[derive(Args, Clone, Copy, Debug)]
pub struct ExternalArgs {
    /// Maximum time for an answer from an external policy, in seconds
    ///
    /// If the program of a policy NAME=COMMAND does not answer a request within this time, the command fails.
    #[arg(long, value_name = "SECONDS", default_value_t = ANSWER_TIMEOUT_S, value_parser = parse_timeout)]
    answer_timeout: f64,
}

fn parse_timeout(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (1e-3..=ANSWER_TIMEOUT_MAX_S).contains(seconds));
    seconds.ok_or_else(|| format!("expected 0.001 to {ANSWER_TIMEOUT_MAX_S} seconds"))
}

impl ExternalArgs {
    /// Returns the time limit for an answer.
    pub fn answer_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.answer_timeout)
    }
}

/// External policy as named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    name: String,
    command: String,
    answer_timeout: Duration,
}

impl External {
    /// Creates an external policy. `name` is its name in results, and `sh -c` runs `command`. The time limit for an
    /// answer is [`ANSWER_TIMEOUT_S`].
    ///
    /// # Errors
    /// Fails if the name does not consist of lower-case letters, digits and single hyphens between them, if it is
    /// longer than [`NAME_LEN_MAX_BYTES`], or if the command is empty.
    pub fn new(name: &str, command: &str) -> Result<Self, StudyError> {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if name.len() > NAME_LEN_MAX_BYTES || !name.split('-').all(is_word) {
            let expected = format!(
                "at most {NAME_LEN_MAX_BYTES} lower-case letters and digits, with single hyphens between them"
            );
            return Err(StudyError::field("name of an external policy", format!("{name:?}"), expected));
        }
        if command.trim().is_empty() {
            let expected = "a command that sh can run";
            return Err(StudyError::field(
                format!("command of policy {name}"),
                format!("{command:?}"),
                expected,
            ));
        }
        let answer_timeout = Duration::from_secs_f64(ANSWER_TIMEOUT_S);
        Ok(Self { name: name.to_owned(), command: command.to_owned(), answer_timeout })
    }

    /// Parses `NAME=COMMAND`. Returns `None` if `text` contains no equals sign. `is_own` returns whether a policy of
    /// the study has a given name.
    ///
    /// # Errors
    /// Returns the errors of [`Self::new`], and fails if a policy of the study has the name.
    pub fn parse(text: &str, is_own: impl Fn(&str) -> bool) -> anyhow::Result<Option<Self>> {
        let Some((name, command)) = text.split_once('=') else { return Ok(None) };
        let external = Self::new(name, command)?;
        if is_own(name) {
            bail!("name of an external policy is {name}, a built-in policy; expected another name");
        }
        Ok(Some(external))
    }

    /// Returns the name of the policy in results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the error for a command that accepts only policies of the study.
    pub fn refusal(&self, command: &str) -> anyhow::Error {
        anyhow!(
            "policy is {}={}, expected a policy of iSwitch, because `{command}` does not run external policies",
            self.name,
            self.command
        )
    }

    /// Sets the time limit for an answer.
    pub fn set_answer_timeout(&mut self, timeout: Duration) {
        self.answer_timeout = timeout;
    }

    /// Starts the program for a run, and sends the greeting. `study` is the name of the study, `seed` determines the
    /// random choices of the run, `setting` contains the further fields of the greeting, and no answer may be longer
    /// than `answer_len_max_bytes`.
    ///
    /// # Errors
    /// Fails if the program cannot be started, or if it does not answer the greeting with an object or answers with an
    /// error.
    pub fn start(
        &self,
        study: &str,
        seed: u64,
        setting: &impl Serialize,
        answer_len_max_bytes: usize,
    ) -> Result<Program, StudyError> {
        #[derive(Serialize)]
        struct Request<'a, S> {
            describe: Greeted<'a, S>,
        }
        #[derive(Serialize)]
        struct Greeted<'a, S> {
            version: u64,
            study: &'a str,
            policy: &'a str,
            seed: u64,
            #[serde(flatten)]
            setting: &'a S,
        }
        let mut program = Program::spawn(self, seed, answer_len_max_bytes)?;
        let describe = Greeted { version: VERSION, study, policy: &self.name, seed, setting };
        let _: Map<String, Json> = program.ask(&Request { describe }, "an object such as {}")?;
        Ok(program)
    }
}

/// Value of `describe` in a request to a service: `true`, or the greeting of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Describe {
    /// Request for a description of the service, if true.
    Flag(bool),
    /// Greeting of a run.
    Greeting(Greeting),
}

/// Greeting of a run, the first request to an external policy: `{"describe": GREETING}`.
#[derive(Clone, Debug, Deserialize)]
pub struct Greeting {
    /// Version of the protocol: [`VERSION`].
    pub version: u64,
    /// Name of the study.
    pub study: String,
    /// Further fields: `policy`, `seed` and the setting of the run.
    #[serde(flatten)]
    pub setting: Map<String, Json>,
}

impl Default for Describe {
    fn default() -> Self {
        Self::Flag(false)
    }
}

impl Describe {
    /// Returns whether a description of the service is requested.
    pub fn is_asked(&self) -> bool {
        !matches!(self, Self::Flag(false))
    }

    /// Checks that the service can serve the run that a greeting describes: a run of `study` in which each of
    /// `fields` has the given value.
    ///
    /// # Errors
    /// Names the first field that does not have the given value.
    pub fn check(&self, study: &str, fields: &[(&str, usize)]) -> Result<(), StudyError> {
        let Self::Greeting(greeting) = self else { return Ok(()) };
        if greeting.version != VERSION {
            return Err(StudyError::field("describe.version", greeting.version, VERSION.to_string()));
        }
        if greeting.study != study {
            return Err(StudyError::field("describe.study", &greeting.study, study));
        }
        for (name, value) in fields {
            let given = greeting.setting.get(*name).unwrap_or(&Json::Null);
            if given.as_u64() != Some(*value as u64) {
                return Err(StudyError::field(format!("describe.{name}"), given, value.to_string()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_command_are_separated_by_the_first_equals_sign() {
        let parse = |text: &str| External::parse(text, |name| name == "jsq");
        assert!(parse("jsq").unwrap().is_none());
        let external = parse("mine-2=A=b ./policy --x=1").unwrap().unwrap();
        assert_eq!((external.name(), external.command.as_str()), ("mine-2", "A=b ./policy --x=1"));
        let error = |text: &str| parse(text).unwrap_err().to_string();
        let expected = "at most 64 lower-case letters and digits, with single hyphens between them";
        for name in ["", "Mine", "a_b", "-a", "a-", "a--b", "runs/a", &"a".repeat(65)] {
            let text = format!("name of an external policy is {name:?}, expected {expected}");
            assert_eq!(error(&format!("{name}=true")), text);
        }
        assert_eq!(error("a= "), r#"command of policy a is " ", expected a command that sh can run"#);
        let text = "name of an external policy is jsq, a built-in policy; expected another name";
        assert_eq!(error("jsq=true"), text);
    }

    #[test]
    fn a_greeting_must_fit_the_service() {
        let check = |json: &str| -> Result<bool, String> {
            let describe: Describe = serde_json::from_str(json).unwrap();
            describe.check("routing", &[("stages", 3)]).map_err(|error| error.to_string())?;
            Ok(describe.is_asked())
        };
        assert_eq!(check("false"), Ok(false));
        assert_eq!(check("true"), Ok(true));
        assert_eq!(check(r#"{"version": 1, "study": "routing", "stages": 3, "more": 1}"#), Ok(true));
        for (json, error) in [
            (r#"{"version": 2, "study": "routing"}"#, "describe.version is 2, expected 1"),
            (r#"{"version": 1, "study": "coflow"}"#, "describe.study is coflow, expected routing"),
            (r#"{"version": 1, "study": "routing"}"#, "describe.stages is null, expected 3"),
            (r#"{"version": 1, "study": "routing", "stages": 4}"#, "describe.stages is 4, expected 3"),
        ] {
            assert_eq!(check(json), Err(error.to_owned()));
        }
    }
}
