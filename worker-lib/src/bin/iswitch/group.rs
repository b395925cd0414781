//! What sums the gradients of a job, and where its workers meet.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use iswitch::aggregate::{
    ParameterServer, ParameterServerClient, ParameterServerOptions, Ring, RingOptions, ServeError, Style,
};
use iswitch::algorithms::trainer::Place;
use iswitch::{GradientAggregator, Loopback};
use iswitch_daemon::embedded::EmbeddedSwitch;

use crate::switch::{self, KeyArgs, SIBLINGS_TIMEOUT};

/// What sums gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Aggregator {
    /// A switch between the workers.
    Switch,
    /// A parameter server that all workers send to.
    Ps,
    /// All-reduce around a ring of the workers.
    Ring,
    /// Nothing: a single worker.
    Local,
}

/// Where workers meet.
#[derive(Args, Clone, Debug)]
pub(crate) struct GroupArgs {
    /// What sums the gradients [default: switch; local for a single worker].
    #[arg(long, value_enum)]
    aggregator: Option<Aggregator>,
    /// Switch to join. This process is then one worker, whose place --rank or the launcher tells.
    #[arg(long, value_name = "ADDR:PORT", env = "ISWITCH_SWITCH")]
    pub(crate) switch: Option<SocketAddrV4>,
    /// Parameter server to join (`iswitch serve`), with --aggregator ps. This process is then one worker.
    #[arg(long, value_name = "ADDR:PORT")]
    server: Option<SocketAddrV4>,
    /// Where the workers of a ring listen, by rank, with --aggregator ring. This process is then one of them.
    #[arg(long, value_name = "ADDR:PORT,...", value_delimiter = ',')]
    members: Option<Vec<SocketAddrV4>>,
    /// Parameter server and ring as in the paper, each step complete before the next one; by default they are pipelined.
    #[arg(long)]
    paper_style: bool,
    /// Number of the job at the switch; jobs of different numbers do not meet.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) job: u32,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// Bytes of the others are waited for this long: the slowest may act for a while.
const PEER_TIMEOUT: Duration = Duration::from_secs(300);

impl GroupArgs {
    pub(crate) fn aggregator(&self, workers: usize) -> Aggregator {
        self.aggregator.unwrap_or(if workers > 1 || self.switch.is_some() {
            Aggregator::Switch
        } else {
            Aggregator::Local
        })
    }

    /// Whether this process is told where its group meets.
    pub(crate) fn is_told(&self) -> bool {
        self.switch.is_some() || self.server.is_some() || self.members.is_some()
    }

    /// Refuses settings that contradict each other.
    pub(crate) fn check(&self, workers: usize) -> anyhow::Result<()> {
        let aggregator = self.aggregator(workers);
        let given = [
            ("--switch", self.switch.is_some(), Aggregator::Switch),
            ("--server", self.server.is_some(), Aggregator::Ps),
            ("--members", self.members.is_some(), Aggregator::Ring),
        ];
        for (name, is_given, expected) in given {
            // The switch may come from the environment.
            if is_given && aggregator != expected && name != "--switch" {
                bail!("{name} is for --aggregator {expected:?}, this job has {aggregator:?}");
            }
        }
        if aggregator == Aggregator::Local && workers > 1 {
            bail!(
                "--aggregator local is one process: give --workers 1; sizes are over all workers, so it learns the same"
            );
        }
        Ok(())
    }

    fn style(&self) -> Style {
        if self.paper_style { Style::Paper } else { Style::Pipelined }
    }

    /// What a worker's option is missing, by name, if it is one of several and not told where they meet.
    pub(crate) fn missing(&self, workers: usize) -> Option<&'static str> {
        match self.aggregator(workers) {
            Aggregator::Switch if self.switch.is_none() => Some("--switch ADDR:PORT"),
            Aggregator::Ps if self.server.is_none() => Some("--server ADDR:PORT"),
            Aggregator::Ring if self.members.is_none() => Some("--members ADDR:PORT,..."),
            _ => None,
        }
    }

    /// Joins as one worker. Vectors have `len` floats; `supervised` workers start together.
    pub(crate) fn join(
        &self,
        place: Place,
        len: usize,
        supervised: bool,
    ) -> anyhow::Result<Box<dyn GradientAggregator>> {
        let gradient_len = u32::try_from(len).context("the network has more than 2^32 parameters")?;
        let rank = u16::try_from(place.rank).context("--rank does not fit in 16 bits")?;
        let workers = u16::try_from(place.workers).context("--workers does not fit in 16 bits")?;
        match self.aggregator(place.workers) {
            Aggregator::Local => Ok(Box::new(Loopback::alone(len))),
            Aggregator::Switch => {
                let switch = self.switch.context("--switch is needed")?;
                let siblings = supervised.then_some(SIBLINGS_TIMEOUT);
                switch::join(switch, self.job, (rank, workers), gradient_len, siblings, &self.key)
            }
            Aggregator::Ps => {
                let options = ParameterServerOptions {
                    server: self.server.context("--server is needed")?,
                    workers,
                    gradient_len,
                    style: self.style(),
                    timeout: PEER_TIMEOUT,
                };
                Ok(Box::new(ParameterServerClient::join(&options, rank)?))
            }
            Aggregator::Ring => {
                let members = self.members.clone().context("--members is needed")?;
                if members.len() != place.workers {
                    bail!("--members names {} workers, the job has {workers}", members.len());
                }
                let style = self.style();
                let options = RingOptions { members, rank, gradient_len, style, timeout: PEER_TIMEOUT };
                Ok(Box::new(Ring::join(&options)?))
            }
        }
    }

    /// Starts what the workers of this process's children meet at.
    pub(crate) fn host(&self, workers: usize, len: usize) -> anyhow::Result<Host> {
        match self.aggregator(workers) {
            Aggregator::Switch => Ok(Host::Switch(
                switch::start_embedded_switch(&self.key).context("starting the embedded switch")?,
            )),
            Aggregator::Ps => {
                let options = ParameterServerOptions {
                    server: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
                    workers: u16::try_from(workers)?,
                    gradient_len: u32::try_from(len)?,
                    style: self.style(),
                    timeout: PEER_TIMEOUT,
                };
                Ok(Host::Server(Server::start(options)?))
            }
            Aggregator::Ring => Ok(Host::Ring(free_addresses(workers)?)),
            Aggregator::Local => Ok(Host::Ring(Vec::new())),
        }
    }
}

/// Addresses of the loop-back interface that nobody listens at.
fn free_addresses(count: usize) -> anyhow::Result<Vec<SocketAddrV4>> {
    // All at once, so that they differ.
    let listeners: Vec<_> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<_, _>>()
        .context("finding free ports")?;
    let port = |listener: &TcpListener| Ok(listener.local_addr()?.port());
    let ports: Vec<u16> = listeners.iter().map(port).collect::<std::io::Result<_>>()?;
    Ok(ports.into_iter().map(|port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).collect())
}

/// What children of this process meet at, for as long as it lives.
pub(crate) enum Host {
    Switch(EmbeddedSwitch),
    Server(Server),
    Ring(Vec<SocketAddrV4>),
}

impl Host {
    /// What a child is told of it.
    pub(crate) fn arguments(&self) -> [String; 2] {
        match self {
            Self::Switch(switch) => ["--switch".to_owned(), switch.address().to_string()],
            Self::Server(server) => ["--server".to_owned(), server.address.to_string()],
            Self::Ring(members) => {
                let members: Vec<_> = members.iter().map(SocketAddrV4::to_string).collect();
                ["--members".to_owned(), members.join(",")]
            }
        }
    }
}

/// A parameter server in a thread.
pub(crate) struct Server {
    address: SocketAddrV4,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<u64, ServeError>>>,
}

impl Server {
    fn start(options: ParameterServerOptions) -> anyhow::Result<Self> {
        let server = ParameterServer::bind(options).context("starting the parameter server")?;
        let address = match server.local_addr()? {
            std::net::SocketAddr::V4(address) => address,
            other @ std::net::SocketAddr::V6(_) => {
                bail!("the parameter server listens at {other}, expected IPv4")
            }
        };
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
