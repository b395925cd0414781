//! Inputs of a simulation: either jobs that are drawn at random from coflows and shapes, which are read from files or
//! generated, or jobs that are the same in every draw.

use std::path::PathBuf;

use super::generate::{JobSource, synthetic_shape, synthetic_trace};
use super::simulation::{Fabric, GBIT_RANGE, Rates};
use super::trace::{Arrival, CoflowTrace, FabricFile, Shape, read_shapes};
use super::workload::Job;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::StudyError;

/// 1 Gbit/s, in bytes per second.
pub const GBIT: f64 = 125e6;
/// Default number of ingress ports, and of egress ports.
pub const PORTS: usize = 20;
/// Maximum number of ports of a synthetic trace.
pub const SYNTHETIC_PORTS_MAX: usize = 512;
/// Number of coflows in a synthetic trace, as in the FB2010 benchmark. The numbers of shapes and nodes below are those
/// of TPC-H.
const SYNTHETIC_COFLOWS: usize = 526;
const SYNTHETIC_SHAPES: usize = 22;
const SYNTHETIC_NODES: (usize, usize) = (2, 18);
/// Numbers of the random streams. The synthetic trace and shapes have a stream that does not depend on the draw.
const JOBS_STREAM: usize = 0;
const SYNTHETIC_STREAM: usize = 2;

/// Sources of the coflows and of the shapes of jobs, and properties of the fabric.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// Path of a trace in the format of the coflow benchmark (FB2010). If `None`, synthetic coflows are generated.
    pub trace: Option<PathBuf>,
    /// Path of a job-shape file. If `None`, each job is a single coflow if `trace` is given, and has a synthetic
    /// shape otherwise.
    pub dags: Option<PathBuf>,
    /// Number of ports for synthetic coflows, at most [`SYNTHETIC_PORTS_MAX`]. If `trace` is given, the file determines
    /// the number of ports; with a [`FabricInput`] that describes a fabric, that fabric does.
    pub ports: usize,
    /// Capacity of each port, in Gbit/s, unless a fabric description specifies it.
    pub capacity_gbit: f64,
    /// Model of the rates of flows.
    pub rates: Rates,
    /// Fabric.
    pub fabric: FabricInput,
}

/// Fabric description.
#[derive(Clone, Debug, Default)]
pub enum FabricInput {
    /// Equal ports; nothing else limits flows.
    #[default]
    Equal,
    /// TOML file, which [`FabricFile`] reads.
    File(PathBuf),
    /// Fabric of a training run, whose model of rates is replaced by that of the inputs. If its ports are equal and
    /// nothing else limits flows, it may have any number of ports.
    Trained(Fabric),
}

impl Default for Inputs {
    /// Returns synthetic coflows and shapes on a fabric with [`PORTS`] ports, each of 1 Gbit/s.
    fn default() -> Self {
        Self {
            trace: None,
            dags: None,
            ports: PORTS,
            capacity_gbit: 1.0,
            rates: Rates::default(),
            fabric: FabricInput::Equal,
        }
    }
}

impl Inputs {
    /// Reads or generates the coflows, and returns them with the fabric.
    ///
    /// # Errors
    /// Fails if a file cannot be read, a number is out of range, or the described fabric does not have as many ports as
    /// the coflows.
    pub fn coflows(&self) -> Result<(CoflowTrace, Fabric), StudyError> {
        let described = self.described()?;
        let trace = match &self.trace {
            Some(path) => CoflowTrace::read(path)?,
            None => synthetic(described.as_ref().map_or(self.ports, |fabric| fabric.ports))?,
        };
        let fabric = self.matching(described, trace.ports)?;
        Ok((trace, fabric))
    }

    /// Returns the fabric for jobs on the given number of ports.
    ///
    /// # Errors
    /// Fails if the capacity is out of range, if the fabric file cannot be read, or if the described fabric has a
    /// different number of ports.
    pub fn fabric(&self, ports: usize) -> Result<Fabric, StudyError> {
        self.matching(self.described()?, ports)
    }

    /// Returns the described fabric, or a fabric with `ports` equal ports if none is described.
    ///
    /// # Errors
    /// Fails if the capacity is out of range, or if the fabric file cannot be read.
    pub fn any_fabric(&self, ports: usize) -> Result<Fabric, StudyError> {
        Ok(match self.described()? {
            Some(fabric) => fabric,
            None => self.matching(None, ports)?,
        })
    }

    fn described(&self) -> Result<Option<Fabric>, StudyError> {
        Ok(match &self.fabric {
            FabricInput::Equal => None,
            FabricInput::File(path) => {
                Some(FabricFile::read(path)?.fabric(path, self.capacity_gbit, self.rates)?)
            }
            FabricInput::Trained(fabric) => Some(Fabric { rates: self.rates, ..fabric.clone() }),
        })
    }

    /// Returns the described fabric for jobs on `ports` ports.
    fn matching(&self, described: Option<Fabric>, ports: usize) -> Result<Fabric, StudyError> {
        let expected = format!("{ports}, as in the jobs");
        match (described, &self.fabric) {
            (Some(fabric), _) if fabric.ports == ports => Ok(fabric),
            (Some(fabric), FabricInput::File(path)) => {
                Err(StudyError::file(path, StudyError::field("ports", fabric.ports, expected)))
            }
            (Some(fabric), _) if fabric.network.is_none() => Ok(Fabric { ports, ..fabric }),
            (Some(fabric), _) => {
                Err(StudyError::field("ports of the training run's fabric", fabric.ports, expected))
            }
            (None, _) if !GBIT_RANGE.contains(&self.capacity_gbit) => {
                Err(StudyError::field("capacity", self.capacity_gbit, "0.001 to 1000000 Gbit/s"))
            }
            (None, _) => Ok(Fabric { rates: self.rates, ..Fabric::new(ports, self.capacity_gbit * GBIT) }),
        }
    }

    /// Returns a source that draws jobs with the coflows of a trace.
    ///
    /// # Errors
    /// Fails if the shape file cannot be read, or if the trace has no coflows.
    pub fn jobs(&self, trace: CoflowTrace) -> Result<JobSource, StudyError> {
        let shapes = match &self.dags {
            Some(path) => read_shapes(path)?,
            None if self.trace.is_some() => vec![Shape { nodes: 1, edges: Vec::new() }],
            None => synthetic_shapes(),
        };
        let coflows = trace.arrivals.into_iter().map(|arrival| arrival.coflow).collect();
        JobSource::new(shapes, coflows)
    }
}

fn synthetic(ports: usize) -> Result<CoflowTrace, StudyError> {
    if !(1..=SYNTHETIC_PORTS_MAX).contains(&ports) {
        return Err(StudyError::field("ports", ports, format!("1 to {SYNTHETIC_PORTS_MAX}")));
    }
    let mut rng = stream(0, Purpose::Arrivals, SYNTHETIC_STREAM);
    synthetic_trace(ports, SYNTHETIC_COFLOWS, 1.0, &mut rng)
}

fn synthetic_shapes() -> Vec<Shape> {
    let mut rng = stream(1, Purpose::Arrivals, SYNTHETIC_STREAM);
    let (least, most) = SYNTHETIC_NODES;
    (0..SYNTHETIC_SHAPES).map(|at| synthetic_shape(least + at % (most - least + 1), 2, &mut rng)).collect()
}

/// Jobs of every draw, either fixed or random.
#[derive(Clone, Debug)]
pub enum JobDraws {
    /// Jobs that are the same in each draw, and a description of them.
    Fixed(Vec<Job>, &'static str),
    /// Jobs that are drawn at random.
    Drawn {
        /// Source of the jobs.
        source: JobSource,
        /// Number of jobs in a draw.
        count: usize,
        /// Mean time between arrivals, in seconds; if it is 0, all jobs arrive at once.
        interarrival: f64,
    },
}

impl JobDraws {
    /// Creates fixed jobs from a trace. Each job is a single coflow. If `is_batch`, all jobs arrive at time 0;
    /// otherwise, they arrive at the times in the trace.
    ///
    /// # Errors
    /// Fails if the trace has no coflows.
    pub fn of_trace(trace: CoflowTrace, is_batch: bool) -> Result<Self, StudyError> {
        let job = |Arrival { time, coflow }| Job::single(if is_batch { 0.0 } else { time }, coflow);
        let jobs = trace.arrivals.into_iter().map(job).collect::<Result<Vec<_>, _>>()?;
        if jobs.is_empty() {
            return Err(StudyError::field("number of coflows in the trace", 0, "at least 1"));
        }
        Ok(Self::Fixed(jobs, "coflows from a trace"))
    }

    /// Returns the jobs of a draw, sorted by arrival.
    pub fn jobs(&self, draw: u64) -> Vec<Job> {
        match self {
            Self::Fixed(jobs, _) => jobs.clone(),
            Self::Drawn { source, count, interarrival } => {
                source.draw(*count, *interarrival, &mut stream(draw, Purpose::Arrivals, JOBS_STREAM))
            }
        }
    }
}
