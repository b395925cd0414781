//! Routing agent that routes the packets of one slot for each request, like the agent in the paper's test network.
//! Requests and answers are JSON lines.
//!
//! | request | answer |
//! |---|---|
//! | `{"queues": [[[n, ...], ...], ...], "slot": 7}` | `{"links": [[[c, ...], ...], ...], "slot": 7}` |
//! | `{"describe": true}` or `{"describe": GREETING}` | `{"policy": "jsq", "stages": 3, "switches": 16}` |
//! | anything else | `{"error": "..."}` |
//!
//! `queues[stage][switch][class]` is the length of a queue after the slot's arrivals. `links[stage][switch][link]` is
//! the class of the packet that takes the link to switch `link` of the next stage, or null if the link is idle.
//! `slot` is optional; if present, it is returned unchanged. The greeting is the one that an [external
//! policy](super::policy::external) receives, so the agent can serve as the program of such a policy.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::network::{Queues, Routing, Shape};
use super::policy::Policy;
use super::policy::external::{STUDY, check_len};
use iswitch_study::StudyError;
use iswitch_study::external::Describe;

/// Maximum queue length that a request may contain, in packets.
pub const QUEUE_LEN_MAX: u32 = 1 << 30;

/// Maximum length of a number in a request, in bytes, including a comma and some margin.
const NUMBER_LEN_BYTES: usize = 16;
const REST_LEN_BYTES: usize = 4096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    queues: Option<Vec<Vec<Vec<u32>>>>,
    #[serde(default)]
    describe: Describe,
    slot: Option<Json>,
}

#[derive(Serialize)]
struct Description<'a> {
    policy: &'a str,
    stages: usize,
    switches: usize,
}

#[derive(Serialize)]
struct Answer {
    links: Vec<Vec<Vec<Option<usize>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<Json>,
}

/// Routing agent of one network.
pub struct Agent {
    name: String,
    policy: Box<dyn Policy>,
    queues: Queues,
    routing: Routing,
}

impl Agent {
    /// Creates an agent that routes a network of size `shape` with `policy`; `name` is the policy's name in answers.
    pub fn new(name: String, policy: Box<dyn Policy>, shape: Shape) -> Self {
        Self { name, policy, queues: Queues::empty(shape), routing: Routing::idle(shape) }
    }

    /// Returns the maximum length of a request, in bytes.
    pub fn request_len_max_bytes(shape: Shape) -> usize {
        shape.queues() * NUMBER_LEN_BYTES + REST_LEN_BYTES
    }

    /// Returns the answer to one request line, without a newline.
    pub fn answer(&mut self, line: &str) -> String {
        let answer = self.try_answer(line);
        answer.unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string())
    }

    fn try_answer(&mut self, line: &str) -> Result<String, StudyError> {
        let request: Request = serde_json::from_str(line)
            .map_err(|error| StudyError::field("request", error, "{\"queues\": [[[n, ...], ...], ...]}"))?;
        let shape = self.queues.shape();
        match request.queues {
            Some(queues) => {
                self.fill(&queues)?;
                self.routing.clear();
                self.policy.route(&self.queues, &mut self.routing);
                self.policy.failure().map_or(Ok(()), Err)?;
                let answer = Answer { links: self.links(), slot: request.slot };
                Ok(serde_json::to_string(&answer).expect("the links can be written as JSON"))
            }
            None if request.describe.is_asked() => {
                let fields = [("stages", shape.stages()), ("switches", shape.switches())];
                request.describe.check(STUDY, &fields)?;
                let (stages, switches) = (shape.stages(), shape.switches());
                let description = Description { policy: &self.name, stages, switches };
                Ok(serde_json::to_string(&description).expect("the description can be written as JSON"))
            }
            None => Err(StudyError::field(
                "request",
                line.trim(),
                "an object with queues, or {\"describe\": true}",
            )),
        }
    }

    fn fill(&mut self, given: &[Vec<Vec<u32>>]) -> Result<(), StudyError> {
        let shape = self.queues.shape();
        check_len("queues", given.len(), shape.stages(), "stages")?;
        for (stage, switches) in given.iter().enumerate() {
            check_len(&format!("queues[{stage}]"), switches.len(), shape.switches(), "switches")?;
            for (switch, lens) in switches.iter().enumerate() {
                check_len(&format!("queues[{stage}][{switch}]"), lens.len(), shape.switches(), "numbers")?;
                if let Some(class) = lens.iter().position(|len| *len > QUEUE_LEN_MAX) {
                    let field = format!("queues[{stage}][{switch}][{class}]");
                    return Err(StudyError::field(field, lens[class], format!("at most {QUEUE_LEN_MAX}")));
                }
            }
        }
        let numbers = given.iter().flatten().flatten();
        self.queues.all_mut().iter_mut().zip(numbers).for_each(|(len, number)| *len = *number);
        Ok(())
    }

    fn links(&self) -> Vec<Vec<Vec<Option<usize>>>> {
        let shape = self.routing.shape();
        let of_switch = |stage, switch| {
            (0..shape.switches()).map(|link| self.routing.class(stage, switch, link)).collect()
        };
        let of_stage = |stage| (0..shape.switches()).map(|switch| of_switch(stage, switch)).collect();
        (0..shape.boundaries()).map(of_stage).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::{Fill, PolicySpec};
    use super::*;

    fn agent() -> Agent {
        let shape = Shape::new(2, 2).unwrap();
        Agent::new("jsq".to_owned(), PolicySpec::JoinShortestQueue.build(shape, Fill::Rule, 1), shape)
    }

    #[test]
    fn packets_take_the_links_chosen_by_the_policy() {
        let line = r#"{"queues": [[[0, 1], [0, 0]], [[0, 3], [0, 0]]], "slot": 7}"#;
        assert_eq!(agent().answer(line), r#"{"links":[[[null,1],[null,null]]],"slot":7}"#);
        let described = agent().answer(r#"{"describe": true}"#);
        assert_eq!(described, r#"{"policy":"jsq","stages":2,"switches":2}"#);
        let greeting =
            r#"{"describe": {"version": 1, "study": "routing", "seed": 3, "stages": 2, "switches": 2}}"#;
        assert_eq!(agent().answer(greeting), described);
        let other = agent().answer(&greeting.replace(r#""stages": 2"#, r#""stages": 3"#));
        assert_eq!(other, r#"{"error":"describe.stages is 3, expected 2"}"#);
    }

    #[test]
    fn a_bad_request_is_reported_and_the_next_one_is_answered() {
        let mut agent = agent();
        let stage = "[[0,0],[0,0]]";
        for (line, error) in [
            ("{}".to_owned(), r#"request is {}, expected an object with queues, or {"describe": true}"#),
            (format!(r#"{{"queues":[{stage}]}}"#), "length of queues is 1, expected 2 stages"),
            (format!(r#"{{"queues":[{stage},[[0,0]]]}}"#), "length of queues[1] is 1, expected 2 switches"),
            (
                format!(r#"{{"queues":[{stage},[[0,0],[0]]]}}"#),
                "length of queues[1][1] is 1, expected 2 numbers",
            ),
        ] {
            let answer: Json = serde_json::from_str(&agent.answer(&line)).unwrap();
            assert_eq!(answer["error"], error);
        }
        for line in ["", "nonsense", r#"{"queues":[[[-1]]]}"#, r#"{"queue":[]}"#] {
            let answer: Json = serde_json::from_str(&agent.answer(line)).unwrap();
            assert!(answer["error"].as_str().unwrap().starts_with("request is "), "{answer}");
        }
        assert!(agent.answer(&format!(r#"{{"queues":[{stage},{stage}]}}"#)).starts_with(r#"{"links""#));
    }
}
