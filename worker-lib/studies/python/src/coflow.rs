//! The function `iswitch._studies.coflow`.

use std::path::PathBuf;

use iswitch_coflow::environment::{CoflowEnvironment, parse_sharing};
use iswitch_coflow::inputs::{FabricInput, Inputs, JobDraws, PORTS};
use iswitch_coflow::simulation::{Fabric, Rates};
use iswitch_coflow::trace::JobFile;
use pyo3::prelude::*;

use crate::environment::Simulator;
use crate::errors::{bad, check_exist, named, to_python};

/// Default number of jobs of an episode.
const JOBS: usize = 20;
/// Default mean time between arrivals, in seconds.
const INTERARRIVAL_S: f64 = 20.0;

/// Arguments that select the jobs.
struct JobArguments {
    jobs: Option<usize>,
    interarrival_s: Option<f64>,
    job_file: Option<PathBuf>,
    has_ports: bool,
}

/// Returns a simulator of a fabric in which an agent chooses the order of coflows.
#[pyfunction]
#[pyo3(signature = (
    *, jobs, interarrival_s, trace, dags, job_file, fabric_file, ports, capacity_gbit, rates, sharing, candidates
))]
#[expect(clippy::too_many_arguments, reason = "they are Python keyword arguments")]
pub(crate) fn coflow(
    jobs: Option<usize>,
    interarrival_s: Option<f64>,
    trace: Option<PathBuf>,
    dags: Option<PathBuf>,
    job_file: Option<PathBuf>,
    fabric_file: Option<PathBuf>,
    ports: Option<usize>,
    capacity_gbit: f64,
    rates: &str,
    sharing: &str,
    candidates: usize,
) -> PyResult<Simulator> {
    check_exist(&[
        ("trace", &trace),
        ("dags", &dags),
        ("job_file", &job_file),
        ("fabric_file", &fabric_file),
    ])?;
    let rates = named::<Rates>("rates", rates)?;
    let arguments = JobArguments { jobs, interarrival_s, job_file, has_ports: ports.is_some() };
    if let Some(ports) = ports.filter(|_| fabric_file.is_some()) {
        return Err(bad("ports", ports, "None, because fabric_file specifies the number of ports"));
    }
    let fabric = fabric_file.map_or(FabricInput::Equal, FabricInput::File);
    let inputs = Inputs { trace, dags, ports: ports.unwrap_or(PORTS), capacity_gbit, rates, fabric };
    let (jobs, fabric) = arguments.load(&inputs)?;
    let sharing = parse_sharing(sharing).map_err(to_python)?;
    CoflowEnvironment::new(jobs, fabric, sharing, candidates).map(Simulator::new).map_err(to_python)
}

impl JobArguments {
    fn load(&self, inputs: &Inputs) -> PyResult<(JobDraws, Fabric)> {
        self.check(inputs)?;
        if let Some(path) = &self.job_file {
            let JobFile { ports, jobs } = JobFile::read(path).map_err(to_python)?;
            let fabric = inputs.fabric(ports).map_err(to_python)?;
            return Ok((JobDraws::Fixed(jobs, "jobs from a file"), fabric));
        }
        let (trace, fabric) = inputs.coflows().map_err(to_python)?;
        let jobs = if self.is_trace_alone(inputs) {
            JobDraws::of_trace(trace, self.interarrival_s == Some(0.0)).map_err(to_python)?
        } else {
            JobDraws::Drawn {
                source: inputs.jobs(trace).map_err(to_python)?,
                count: self.jobs.unwrap_or(JOBS),
                interarrival: self.interarrival_s.unwrap_or(INTERARRIVAL_S),
            }
        };
        Ok((jobs, fabric))
    }

    /// Returns whether each coflow of the trace is a separate job; otherwise, jobs are drawn at random.
    fn is_trace_alone(&self, inputs: &Inputs) -> bool {
        inputs.trace.is_some() && inputs.dags.is_none() && self.jobs.is_none()
    }

    fn check(&self, inputs: &Inputs) -> PyResult<()> {
        let given = [
            ("trace", inputs.trace.is_some()),
            ("dags", inputs.dags.is_some()),
            ("ports", self.has_ports),
            ("jobs", self.jobs.is_some()),
            ("interarrival_s", self.interarrival_s.is_some()),
        ];
        if self.job_file.is_some()
            && let Some((argument, _)) = given.iter().find(|(_, is_given)| *is_given)
        {
            return Err(bad(argument, "given", "None, because job_file contains the jobs"));
        }
        if self.has_ports && inputs.trace.is_some() {
            return Err(bad("ports", inputs.ports, "None, because the trace determines the number of ports"));
        }
        match self.interarrival_s.filter(|seconds| self.is_trace_alone(inputs) && *seconds != 0.0) {
            Some(seconds) => {
                let expected = "0 or None, because the trace contains the arrival times; to draw random arrival \
                                times, set jobs";
                Err(bad("interarrival_s", seconds, expected))
            }
            None => Ok(()),
        }
    }
}
