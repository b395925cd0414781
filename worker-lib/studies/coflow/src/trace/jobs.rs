//! Files of jobs: coflows, their dependencies and arrivals, as JSON.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::collective::Collective;
use crate::workload::{Coflow, Dependencies, Flow, Job};
use iswitch_study::StudyError;
use iswitch_study::error::above_zero;
use iswitch_study::table::read;

/// Jobs of a file, sorted by arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// Number of ingress ports of the fabric, equal to the number of egress ports.
    pub ports: usize,
    /// All jobs.
    pub jobs: Vec<Job>,
}

/// Content of a job file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    ports: usize,
    jobs: Vec<JobEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobEntry {
    #[serde(default)]
    arrival_s: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline_s: Option<f64>,
    coflows: Vec<CoflowEntry>,
}

/// Coflow, described either by a list of flows or by a collective operation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CoflowEntry {
    /// Ingress port, egress port and bytes of each flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flows: Option<Vec<(usize, usize, f64)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collective: Option<CollectiveEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    starts_after: Vec<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    finishes_after: Vec<usize>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CollectiveEntry {
    kind: Collective,
    hosts: Vec<usize>,
    bytes: f64,
}

impl JobFile {
    /// Reads a job file. `ports` is the number of ports; each of the `jobs` has an `arrival_s` and `coflows`, and
    /// each coflow has either `flows` or a `collective` with its `kind`, `hosts` and `bytes`. docs/coflow.md contains
    /// an example.
    ///
    /// A flow is given as its ingress port, its egress port and its bytes. `starts_after` and `finishes_after` list
    /// coflows of the same job by their index in `coflows`, starting from 0; `deadline_s` is measured from the arrival
    /// of the job.
    ///
    /// # Errors
    /// Fails if the file cannot be read or if its content is invalid. In the latter case, the error names the job, the
    /// coflow and the field.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        Self::parse(path, &read(path)?)
    }

    /// Parses the content of a job file. `path` is used only in error messages.
    ///
    /// # Errors
    /// Fails if the text is invalid.
    pub fn parse(path: &Path, text: &str) -> Result<Self, StudyError> {
        let Content { ports, jobs } =
            serde_json::from_str(text).map_err(|error| StudyError::file(path, error))?;
        if jobs.is_empty() {
            return Err(StudyError::file(path, "jobs is empty, expected at least 1 job"));
        }
        let mut parsed = Vec::new();
        for (number, entry) in jobs.into_iter().enumerate() {
            parsed.push(entry.job(number, ports).map_err(|reason| StudyError::file(path, reason))?);
        }
        parsed.sort_by(|a, b| a.arrival.total_cmp(&b.arrival));
        Ok(Self { ports, jobs: parsed })
    }

    /// Returns the content of a job file with these jobs, in which every coflow is written as a list of flows.
    pub fn to_text(&self) -> String {
        let content = Content { ports: self.ports, jobs: self.jobs.iter().map(JobEntry::of).collect() };
        serde_json::to_string(&content).expect("finite numbers and lists are valid JSON")
    }
}

impl JobEntry {
    fn of(job: &Job) -> Self {
        let entry = |(coflow, dependencies): (&Coflow, &Dependencies)| CoflowEntry {
            flows: Some(coflow.flows().iter().map(|flow| (flow.from, flow.to, flow.size)).collect()),
            collective: None,
            starts_after: dependencies.starts_after.clone(),
            finishes_after: dependencies.finishes_after.clone(),
        };
        Self {
            arrival_s: job.arrival,
            deadline_s: job.deadline,
            coflows: job.coflows().iter().zip(job.dependencies()).map(entry).collect(),
        }
    }

    fn job(self, number: usize, ports: usize) -> Result<Job, String> {
        let mut coflows = Vec::new();
        let mut dependencies = Vec::new();
        for (at, entry) in self.coflows.into_iter().enumerate() {
            let in_coflow = |reason| format!("jobs[{number}].coflows[{at}]: {reason}");
            let (coflow, of_coflow) = entry.coflow(ports).map_err(in_coflow)?;
            coflows.push(coflow);
            dependencies.push(of_coflow);
        }
        let in_job = |error: StudyError| format!("jobs[{number}]: {error}");
        let mut job = Job::new(self.arrival_s, coflows, dependencies).map_err(in_job)?;
        job.deadline =
            self.deadline_s.map(|it| above_zero("deadline_s", it, "seconds")).transpose().map_err(in_job)?;
        Ok(job)
    }
}

impl CoflowEntry {
    /// Returns a coflow without dependencies. Each flow is given as its ingress port, its egress port and its bytes.
    pub(crate) fn of_flows(flows: Vec<(usize, usize, f64)>) -> Self {
        Self { flows: Some(flows), collective: None, starts_after: Vec::new(), finishes_after: Vec::new() }
    }

    /// Returns the number of flows that the coflow will have.
    pub(crate) fn flow_count(&self) -> usize {
        let of_collective = self.collective.as_ref().map_or(0, |it| it.kind.flow_count(it.hosts.len()));
        self.flows.as_ref().map_or(of_collective, Vec::len)
    }

    /// Returns the coflow for a fabric with `ports` ports, and its dependencies.
    ///
    /// # Errors
    /// Returns a message if the entry does not have exactly one of `flows` and `collective`, or if a flow is invalid.
    pub(crate) fn coflow(self, ports: usize) -> Result<(Coflow, Dependencies), String> {
        let flows = match (self.flows, self.collective) {
            (Some(flows), None) => {
                Ok(flows.into_iter().map(|(from, to, size)| Flow { from, to, size }).collect())
            }
            (None, Some(CollectiveEntry { kind, hosts, bytes })) => kind.flows(&hosts, bytes),
            _ => return Err("expected exactly one of flows and collective".to_owned()),
        };
        let coflow = flows.and_then(|flows| Coflow::new(ports, flows)).map_err(|error| error.to_string())?;
        let Self { starts_after, finishes_after, .. } = self;
        Ok((coflow, Dependencies { starts_after, finishes_after }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<JobFile, StudyError> {
        JobFile::parse(Path::new("jobs.json"), text)
    }

    #[test]
    fn a_written_file_gives_the_same_jobs() {
        let file = parse(
            r#"{"ports": 4, "jobs": [{"arrival_s": 2.5, "deadline_s": 9, "coflows": [
                {"flows": [[0, 1, 1e9], [2, 1, 5e8]]},
                {"collective": {"kind": "ring-all-reduce", "hosts": [0, 1, 3], "bytes": 3e8}, "starts_after": [0]}
            ]}, {"coflows": [{"flows": [[3, 3, 7]]}]}]}"#,
        )
        .unwrap();
        assert_eq!(file.jobs.iter().map(|job| job.arrival).collect::<Vec<_>>(), [0.0, 2.5]);
        let job = &file.jobs[1];
        assert_eq!((job.deadline, job.followers(0)), (Some(9.0), [1].as_slice()));
        assert_eq!(job.coflows()[1].flows()[2], Flow { from: 3, to: 0, size: 4e8 });
        assert_eq!(parse(&file.to_text()).unwrap(), file);
    }

    #[test]
    fn errors_name_the_field() {
        let error = |coflow: &str| {
            let text = format!(r#"{{"ports": 2, "jobs": [{{"coflows": [{coflow}]}}]}}"#);
            parse(&text).unwrap_err().to_string()
        };
        for (coflow, want) in [
            ("{}", "jobs.json: jobs[0].coflows[0]: expected exactly one of flows and collective"),
            (r#"{"flows": [[0, 2, 1]]}"#, "jobs.json: jobs[0].coflows[0]: egress port is 2, expected 0 to 1"),
            (
                r#"{"flows": [[0, 1, 1]], "starts_after": [0]}"#,
                "jobs.json: jobs[0]: coflows wait for each other: 0 -> 0",
            ),
        ] {
            assert_eq!(error(coflow), want);
        }
        let text = error(r#"{"flow": []}"#);
        assert!(text.contains("unknown field `flow`") && text.contains("line 1"), "{text}");
        let text = parse(r#"{"ports": 2, "jobs": []}"#).unwrap_err().to_string();
        assert_eq!(text, "jobs.json: jobs is empty, expected at least 1 job");
        let late = r#"{"ports": 2, "jobs": [{"deadline_s": 0, "coflows": [{"flows": [[0, 1, 1]]}]}]}"#;
        assert_eq!(
            parse(late).unwrap_err().to_string(),
            "jobs.json: jobs[0]: deadline_s is 0, expected a number of seconds above 0"
        );
    }
}
