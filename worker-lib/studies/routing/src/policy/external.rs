//! External routing policies: programs that answer each slot with one line of JSON.
//!
//! | request | answer |
//! |---|---|
//! | `{"describe": {"version": 1, "study": "routing", "policy": "mine", "seed": 1, "stages": 3, "switches": 16}}` | `{}` |
//! | `{"queues": [[[n, ...], ...], ...], "slot": 0}` | `{"links": [[[c, ...], ...], ...], "slot": 0}` |
//!
//! The first line is the greeting of the run. All further requests, and their answers, have the form that
//! [`agent`](crate::agent) describes; slots are numbered from 0. `slot` is optional in an answer.

use serde::{Deserialize, Serialize};

use super::Policy;
use crate::network::{Hop, Queues, Routing, Shape};
use iswitch_study::StudyError;
use iswitch_study::external::{External, Program};

/// Name of the study in greetings.
pub const STUDY: &str = "routing";

/// Maximum length of a class in an answer, in bytes, including a comma and some spaces.
const CLASS_LEN_BYTES: usize = 16;
const REST_LEN_BYTES: usize = 4096;
const FORM: &str = r#"{"links": [[[class or null, ...], ...], ...]}"#;

#[derive(Serialize)]
struct Setting {
    stages: usize,
    switches: usize,
}

#[derive(Serialize)]
struct Request<'a> {
    queues: Vec<Vec<&'a [u32]>>,
    slot: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    links: Vec<Vec<Vec<Option<i64>>>>,
    slot: Option<u64>,
}

/// Policy whose program assigns the links.
#[derive(Debug)]
pub struct ExternalPolicy {
    program: Program,
    slot: u64,
    failure: Option<StudyError>,
}

impl ExternalPolicy {
    /// Starts the program of a policy for one run on a network of size `shape`. `seed` is the seed of the run.
    ///
    /// # Errors
    /// Fails if the program does not start or does not accept the greeting.
    pub fn start(external: &External, shape: Shape, seed: u64) -> Result<Self, StudyError> {
        let setting = Setting { stages: shape.stages(), switches: shape.switches() };
        let answer_len = shape.boundaries() * shape.links() * CLASS_LEN_BYTES + REST_LEN_BYTES;
        let program = external.start(STUDY, seed, &setting, answer_len)?;
        Ok(Self { program, slot: 0, failure: None })
    }

    fn try_route(&mut self, queues: &Queues, routing: &mut Routing) -> Result<(), StudyError> {
        let shape = queues.shape();
        let of_stage = |stage| (0..shape.switches()).map(|switch| queues.at(stage, switch)).collect();
        let lens = (0..shape.stages()).map(of_stage).collect();
        let slot = self.slot;
        let answer: Answer = self.program.ask(&Request { queues: lens, slot }, FORM)?;
        self.slot += 1;
        let checked = match answer.slot {
            Some(other) if other != slot => Err(StudyError::field("slot", other, slot.to_string())),
            _ => assign(&answer.links, routing).and_then(|()| routing.check(queues)),
        };
        checked.map_err(|error| self.program.error(&error))
    }
}

impl Policy for ExternalPolicy {
    fn route(&mut self, queues: &Queues, routing: &mut Routing) {
        self.failure = self.try_route(queues, routing).err();
    }

    fn failure(&mut self) -> Option<StudyError> {
        self.failure.take()
    }
}

/// Assigns the links of an answer, which are the classes by stage, switch and link.
fn assign(links: &[Vec<Vec<Option<i64>>>], routing: &mut Routing) -> Result<(), StudyError> {
    let shape = routing.shape();
    check_len("links", links.len(), shape.boundaries(), "stages")?;
    for (stage, switches) in links.iter().enumerate() {
        check_len(&format!("links[{stage}]"), switches.len(), shape.switches(), "switches")?;
        for (switch, classes) in switches.iter().enumerate() {
            check_len(&format!("links[{stage}][{switch}]"), classes.len(), shape.switches(), "links")?;
            for (link, class) in classes.iter().enumerate() {
                let Some(class) = *class else { continue };
                if !(0..shape.switches() as i64).contains(&class) {
                    let field = format!("links[{stage}][{switch}][{link}]");
                    let expected = format!("a class from 0 to {}, or null", shape.switches() - 1);
                    return Err(StudyError::field(field, class, expected));
                }
                let (stage, switch, link) = (stage as u16, switch as u16, link as u16);
                routing.set(Hop { stage, switch, class: class as u16, link });
            }
        }
    }
    Ok(())
}

/// Checks the length of a list of a request or an answer. `what` names its elements.
pub(crate) fn check_len(field: &str, len: usize, expected: usize, what: &str) -> Result<(), StudyError> {
    if len == expected {
        return Ok(());
    }
    Err(StudyError::field(format!("length of {field}"), len, format!("{expected} {what}")))
}
