//! Aggregators of a job's gradients. This module contains the options that select an aggregator, and starts or joins
//! the aggregator.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use iswitch::aggregate::{
    ParameterServer, ParameterServerClient, ParameterServerOptions, Ring, RingOptions, ServeError, Style,
};
use iswitch::{ElementTypes, GradientAggregator, JoinOptions, Label, Loopback, Worker};
use iswitch_learn::algorithms::async_server::AsyncServer;
use iswitch_learn::algorithms::trainer::World;
use iswitch_protocol::limits::{MAX_JOB_NAME_LEN_BYTES, MAX_OWNER_LEN_BYTES};
use iswitch_runtime::embedded::EmbeddedSwitch;
use serde::Deserialize;

use crate::asynchronous::Run;
use crate::switch::{self, KeyArgs, SIBLINGS_TIMEOUT};

/// Component that sums gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Aggregator {
    /// A switch between the workers
    Switch,
    /// A parameter server to which all workers send their gradients
    Ps,
    /// A ring all-reduce among the workers
    Ring,
    /// No aggregation: a single worker
    Local,
}

impl fmt::Display for Aggregator {
    /// Writes the aggregator as a value of `--aggregator`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().expect("no aggregator is hidden");
        f.write_str(value.get_name())
    }
}

/// Options that specify the aggregator and its address.
#[derive(Args, Clone, Debug)]
pub struct GroupArgs {
    /// Aggregator that sums the gradients [default: switch; local for a single worker]
    #[arg(long, value_enum)]
    pub(crate) aggregator: Option<Aggregator>,
    /// Address of the switch to join, or addresses of several switches
    ///
    /// This process is then one worker of the job; its rank comes from --rank or the launcher. If the first switch
    /// fails, the workers move to the next one and continue there with the sums that they already have. All workers of
    /// the job must name the same switches in the same order. A job with several switches never continues without one
    /// of its workers.
    #[arg(
        long, value_name = "HOST:PORT,...", env = "ISWITCH_SWITCH", value_delimiter = ',', value_parser = resolve
    )]
    pub switch: Vec<SocketAddrV4>,
    /// Address of the parameter server to join, with --aggregator ps
    ///
    /// This process is then one worker of the job; its rank comes from --rank or the launcher.
    #[arg(long, value_name = "HOST:PORT", value_parser = resolve)]
    pub server: Option<SocketAddrV4>,
    /// Address on which to listen as the parameter server, with --aggregator ps
    ///
    /// This process then serves --workers workers as their parameter server, and does not train.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "server")]
    pub serve: Option<SocketAddrV4>,
    /// Addresses of the workers of a ring, in rank order, with --aggregator ring
    ///
    /// This process is then one worker of the ring; its rank comes from --rank or the launcher.
    #[arg(long, value_name = "ADDR:PORT,...", value_delimiter = ',')]
    members: Option<Vec<SocketAddrV4>>,
    /// Run the parameter server or ring as in the paper, without pipelining
    ///
    /// With this option, each step of an aggregation completes before the next one begins. By default, partial results
    /// are forwarded while the rest of the data is still arriving.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) paper_style: Option<bool>,
    /// Job number at the switch
    ///
    /// The switch aggregates the workers of each job number separately.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub job: u32,
    /// Name of the job in the switch status [default: ALGORITHM-ENVIRONMENT]
    ///
    /// The switch shows its operator the name and the owner of the job, and the rank and host name of each worker. The
    /// owner is the value of ISWITCH_JOB_OWNER or, if that is not set, of USER. A name may contain at most 32 bytes of
    /// printable UTF-8.
    #[arg(long, value_name = "TEXT", env = "ISWITCH_JOB_NAME")]
    job_name: Option<Label<MAX_JOB_NAME_LEN_BYTES>>,
    /// Name of the job if the user chooses none.
    #[arg(skip)]
    default_name: Label<MAX_JOB_NAME_LEN_BYTES>,
    /// Key options of the job.
    #[command(flatten)]
    pub key: KeyArgs,
}

/// Vectors that the workers of a group sum.
#[derive(Clone, Copy, Debug)]
pub struct Vectors {
    /// Number of floats in a vector.
    pub len: usize,
    /// Element types of the packets between the workers and the switch.
    pub elements: ElementTypes,
}

impl Vectors {
    /// Returns vectors of `len` floats in packets with 32-bit elements.
    pub const fn wide(len: usize) -> Self {
        Self { len, elements: ElementTypes::F32 }
    }

    fn gradient_len(self) -> anyhow::Result<u32> {
        u32::try_from(self.len)
            .with_context(|| format!("the network has {} parameters, expected fewer than 2^32", self.len))
    }
}

/// Loopback address with port 0, which binds to any free port.
pub const ANY_PORT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// Maximum time that a parameter server or a ring member waits for data from another member. It is long enough for the
/// slowest worker to step its environments.
const PEER_TIMEOUT: Duration = Duration::from_secs(300);

impl GroupArgs {
    /// Returns the aggregator that the user has chosen, or the default for a job with `workers` workers.
    pub fn aggregator(&self, workers: usize) -> Aggregator {
        self.aggregator.unwrap_or(if workers > 1 || self.has_switch() {
            Aggregator::Switch
        } else {
            Aggregator::Local
        })
    }

    /// Returns whether the address of a switch is given.
    pub fn has_switch(&self) -> bool {
        !self.switch.is_empty()
    }

    /// Returns whether the address of an aggregator to join is given. If it is, this process is one worker of a group.
    pub fn is_configured(&self) -> bool {
        self.has_switch() || self.server.is_some() || self.members.is_some()
    }

    /// Rejects options that conflict with each other.
    pub fn check(&self, workers: usize) -> anyhow::Result<()> {
        let aggregator = self.aggregator(workers);
        let given = [
            ("--switch", self.has_switch(), Aggregator::Switch),
            ("--server", self.server.is_some(), Aggregator::Ps),
            ("--serve", self.serve.is_some(), Aggregator::Ps),
            ("--members", self.members.is_some(), Aggregator::Ring),
        ];
        for (name, is_given, expected) in given {
            // The address of the switch may come from an environment variable, so it is ignored if the job uses another
            // aggregator.
            if is_given && aggregator != expected && name != "--switch" {
                bail!("{name} requires --aggregator {expected}, but this job uses {aggregator}");
            }
        }
        if aggregator == Aggregator::Local && workers > 1 {
            bail!(
                "--aggregator local runs a single process, but --workers is above 1; give --workers 1: batch sizes \
                 are totals over all workers, so a single worker trains with the same batch sizes"
            );
        }
        Ok(())
    }

    fn style(&self) -> Style {
        if self.paper_style.unwrap_or(false) { Style::Paper } else { Style::Pipelined }
    }

    /// Returns the option that a worker needs to join the aggregator, if that option is missing.
    pub fn missing(&self, workers: usize) -> Option<&'static str> {
        match self.aggregator(workers) {
            Aggregator::Switch if !self.has_switch() => Some("--switch ADDR:PORT"),
            Aggregator::Ps if self.server.is_none() => Some("--server ADDR:PORT"),
            Aggregator::Ring if self.members.is_none() => Some("--members ADDR:PORT,..."),
            _ => None,
        }
    }

    /// Returns a copy of the options with `name`, truncated if it is too long, as the default name of the job.
    #[must_use]
    pub fn with_default_name(&self, name: &str) -> Self {
        Self { default_name: Label::lossy(name), ..self.clone() }
    }

    /// Returns the options with which a worker joins the switch to sum `vectors`. A `supervised` worker waits for the
    /// other workers for at most [`SIBLINGS_TIMEOUT`], because their parent process starts all of them together.
    pub fn switch_options(
        &self,
        world: World,
        vectors: Vectors,
        supervised: bool,
    ) -> anyhow::Result<JoinOptions> {
        let (switch, standbys) = self.switch.split_first().context("--switch is required")?;
        let gradient_len = vectors.gradient_len()?;
        let rank = u16::try_from(world.rank).context("--rank does not fit in 16 bits")?;
        let workers = u16::try_from(world.size).context("--workers does not fit in 16 bits")?;
        let siblings = supervised.then_some(SIBLINGS_TIMEOUT);
        let mut options =
            switch::options(*switch, self.job, (rank, workers), gradient_len, siblings, &self.key)?;
        options.standbys = standbys.to_vec();
        options.name.job = self.job_name.unwrap_or(self.default_name);
        options.name.owner = owner();
        options.name.rank = Some(rank);
        Ok(options.with_elements(vectors.elements))
    }

    /// Returns the options of a parameter server for `workers` workers, whose vectors have `len` floats.
    pub fn server_options(
        &self,
        server: SocketAddrV4,
        workers: usize,
        len: usize,
    ) -> anyhow::Result<ParameterServerOptions> {
        Ok(ParameterServerOptions {
            server,
            workers: u16::try_from(workers).context("--workers does not fit in 16 bits")?,
            gradient_len: Vectors::wide(len).gradient_len()?,
            style: self.style(),
            timeout: PEER_TIMEOUT,
        })
    }

    /// Serves as the parameter server for `workers` workers at `address`. Returns when all workers have left or `stop`
    /// is set.
    pub fn serve_sums(
        &self,
        address: SocketAddrV4,
        workers: usize,
        len: usize,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        let rounds = ParameterServer::bind(self.server_options(address, workers, len)?)?.run(stop)?;
        eprintln!("iswitch: parameter server: {rounds} rounds summed");
        Ok(())
    }

    /// Joins the aggregator as the worker with the rank in `world`. `vectors` describes the vectors to sum. The effect
    /// of `supervised` is documented at [`Self::switch_options`].
    pub fn join(
        &self,
        world: World,
        vectors: Vectors,
        supervised: bool,
    ) -> anyhow::Result<Box<dyn GradientAggregator>> {
        let len = vectors.len;
        let rank = u16::try_from(world.rank).context("--rank does not fit in 16 bits")?;
        match self.aggregator(world.size) {
            Aggregator::Local => Ok(Box::new(Loopback::alone(len))),
            Aggregator::Switch => {
                Ok(Box::new(Worker::join(self.switch_options(world, vectors, supervised)?)?))
            }
            Aggregator::Ps => {
                let server = self.server.context("--server is required")?;
                let options = self.server_options(server, world.size, len)?;
                Ok(Box::new(ParameterServerClient::join(&options, rank)?))
            }
            Aggregator::Ring => {
                let members = self.members.clone().context("--members is required")?;
                if members.len() != world.size {
                    bail!(
                        "--members has {} addresses, expected {}, one per worker",
                        members.len(),
                        world.size
                    );
                }
                let (style, gradient_len) = (self.style(), vectors.gradient_len()?);
                let options = RingOptions { members, rank, gradient_len, style, timeout: PEER_TIMEOUT };
                Ok(Box::new(Ring::join(&options)?))
            }
        }
    }

    /// Starts the aggregator that the child processes join.
    pub fn host(&self, workers: usize, len: usize) -> anyhow::Result<Host> {
        match self.aggregator(workers) {
            Aggregator::Switch => Ok(Host::Switch(
                switch::start_embedded_switch(&self.key, workers, len)
                    .context("cannot start the embedded switch")?,
            )),
            Aggregator::Ps => {
                let server = self.server_options(ANY_PORT, workers, len)?;
                Ok(Host::Server(Server::start(server)?))
            }
            Aggregator::Ring => Ok(Host::Ring(free_addresses(workers)?)),
            Aggregator::Local => Ok(Host::Ring(Vec::new())),
        }
    }
}

/// Returns the owner of this process's jobs from the environment variables; empty if they do not name one.
fn owner() -> Label<MAX_OWNER_LEN_BYTES> {
    let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let owner = variable("ISWITCH_JOB_OWNER").or_else(|| variable("USER"));
    Label::lossy(&owner.unwrap_or_default())
}

/// Resolves `HOST:PORT`, where HOST is an IPv4 address or a name that resolves to one.
fn resolve(text: &str) -> Result<SocketAddrV4, String> {
    let found = text.to_socket_addrs().map_err(|error| format!("{error}, expected HOST:PORT"))?;
    let mut found = found.filter_map(|address| match address {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    });
    found.next().ok_or_else(|| "the host has no IPv4 address".to_owned())
}

/// Returns loopback addresses whose ports are free.
pub fn free_addresses(count: usize) -> anyhow::Result<Vec<SocketAddrV4>> {
    // Keep all listeners open at the same time, so that their ports differ.
    let listeners: Vec<_> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<_, _>>()
        .context("cannot find free ports")?;
    let port = |listener: &TcpListener| Ok(listener.local_addr()?.port());
    let ports: Vec<u16> = listeners.iter().map(port).collect::<std::io::Result<_>>()?;
    Ok(ports.into_iter().map(|port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).collect())
}

/// Aggregator that the child processes join. It runs until this value is dropped.
pub enum Host {
    /// A switch in this process.
    Switch(EmbeddedSwitch),
    /// A parameter server in this process.
    Server(Server),
    /// The addresses of the members of a ring. The child processes form the ring without this process.
    Ring(Vec<SocketAddrV4>),
    /// An asynchronous parameter server in this process.
    AsyncServer(AsyncHost),
}

/// Asynchronous parameter server in a thread. It also displays the job's progress and prints its result.
pub struct AsyncHost {
    address: SocketAddrV4,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl AsyncHost {
    /// Starts the parameter server of a run.
    pub fn start(run: Run) -> anyhow::Result<Self> {
        let server = AsyncServer::bind(ANY_PORT, run.vector_shape().len(), run.staleness())?;
        let address = ipv4(server.local_addr()?)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let serve = move || run.serve(server, &stopped);
        let thread = std::thread::Builder::new().name("server".to_owned()).spawn(serve)?;
        Ok(Self { address, stop, thread: Some(thread) })
    }
}

impl Drop for AsyncHost {
    fn drop(&mut self) {
        // The server stops on its own only when the run is complete, which never happens if all workers have failed.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            eprintln!("iswitch: parameter server: {}", iswitch_manual::describe(error.as_ref()));
        }
    }
}

fn ipv4(address: SocketAddr) -> anyhow::Result<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        other @ SocketAddr::V6(_) => {
            bail!("the parameter server listens at {other}, expected an IPv4 address")
        }
    }
}

impl Host {
    /// Returns the command-line options with which a child process joins the aggregator.
    pub fn arguments(&self) -> [String; 2] {
        match self {
            Self::Switch(switch) => ["--switch".to_owned(), switch.address().to_string()],
            Self::Server(server) => ["--server".to_owned(), server.address.to_string()],
            Self::AsyncServer(server) => ["--server".to_owned(), server.address.to_string()],
            Self::Ring(members) => {
                let members: Vec<_> = members.iter().map(SocketAddrV4::to_string).collect();
                ["--members".to_owned(), members.join(",")]
            }
        }
    }
}

/// Synchronous parameter server in a thread.
pub struct Server {
    address: SocketAddrV4,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<u64, ServeError>>>,
}

impl Server {
    fn start(options: ParameterServerOptions) -> anyhow::Result<Self> {
        let server = ParameterServer::bind(options).context("cannot start the parameter server")?;
        let address = ipv4(server.local_addr()?)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || server.run(&stopped);
        let thread = std::thread::Builder::new().name("server".to_owned()).spawn(run)?;
        Ok(Self { address, stop, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            eprintln!("iswitch: parameter server: {error}");
        }
    }
}
