//! Commands of `iswitch-models`, for other commands to embed.

mod sandbox;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use iswitch_manual::{output, print_line};
use iswitch_storage::RealDisk;
use tokio::signal::unix::{SignalKind, signal};

use sandbox::Confinement;

use crate::cell::CellOptions;
use crate::learner::{LearnerOptions, PublishFrom};
use crate::limits::{
    CELL_CAPACITY_BYTES, CONNECTIONS_MAX, MODEL_AGE_MAX, OBJECT_LEN_MAX_BYTES, READER_BYTES_PER_S_MIN,
    STALL_TIMEOUT, VERSIONS_KEPT, WAIT_MAX,
};
use crate::manifest::millis;
use crate::nginx::NginxCell;
use crate::server::{Reserved, learner};
use crate::tls::{Identity, TlsClient, TlsServer};
use crate::{
    Access, BlockingModelClient, ClientOptions, Credentials, Endpoint, Listen, ModelName, ModelStore,
    Patience, Server, ServerOptions, StoreOptions, Times, Token, cell, publish,
};

/// What can be done with models.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serves models that other processes publish: a learner's end of its own
    Serve(ServeArgs),
    /// Caches the models of a learner for the actors near it
    Cell(CellArgs),
    /// Publishes a file as a version of a model
    Publish(PublishArgs),
    /// Reads the latest version of a model
    Fetch(FetchArgs),
    /// Prints the configuration with which nginx does what `cell` does
    NginxConfig(NginxArgs),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns an error to be shown to the user.
    pub fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Serve(args) => args.run(),
            Self::Cell(args) => args.run(),
            Self::Publish(args) => args.run(),
            Self::Fetch(args) => args.run(),
            Self::NginxConfig(args) => args.run(),
        }
    }
}

/// What every server allows.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// Where to listen: ADDRESS:PORT or unix:PATH; repeatable
    #[arg(long, required = true)]
    listen: Vec<Listen>,
    /// Connections that are served at once
    #[arg(long, default_value_t = CONNECTIONS_MAX, value_parser = clap::value_parser!(usize))]
    connections_max: usize,
    /// A reader that takes nothing for so many milliseconds is cut off
    #[arg(long, default_value_t = millis(STALL_TIMEOUT), value_parser = clap::value_parser!(u64).range(1..))]
    stall_ms: u64,
    /// So is one that takes its answer more slowly than this
    #[arg(long, default_value_t = READER_BYTES_PER_S_MIN, value_parser = clap::value_parser!(u64).range(1..))]
    reader_bytes_per_s_min: u64,
    /// Token that readers show: a file of one line [default: everyone reads]
    #[arg(long, value_name = "FILE")]
    read_token_file: Option<PathBuf>,
    /// Certificates for TLS at all TCP addresses, in PEM, the own one first [default: no TLS]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the first certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve only clients with a certificate of this authority: its certificates in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    client_ca: Option<PathBuf>,
    /// Keep all privileges, and install no filter of system calls
    #[arg(long)]
    no_sandbox: bool,
}

impl ServerArgs {
    fn options(&self) -> anyhow::Result<ServerOptions> {
        let stall = Duration::from_millis(self.stall_ms);
        let patience = Patience { stall, bytes_per_s_min: self.reader_bytes_per_s_min };
        let identity = identity(self.tls_cert.as_ref(), self.tls_key.as_ref());
        let tls =
            identity.map(|identity| TlsServer::new(&identity, self.client_ca.as_deref())).transpose()?;
        let access = Access { read: token(self.read_token_file.as_ref())?, publish: None, tls };
        let connections_max = self.connections_max;
        Ok(ServerOptions { connections_max, patience, access, ..ServerOptions::default() })
    }

    /// Warns about tokens that would be sent over a network without encryption.
    fn warn(&self, access: &Access) {
        let has_token = access.read.is_some() || access.publish.is_some();
        let is_exposed = |listen: &Listen| matches!(listen, Listen::Tcp(at) if !at.ip().is_loopback());
        if has_token && access.tls.is_none() && self.listen.iter().any(is_exposed) {
            eprintln!("iswitch-models: tokens are readable on the network without --tls-cert and --tls-key");
        }
    }

    /// Serves in the sandbox until SIGTERM or SIGINT. Prints the addresses once the server accepts connections.
    fn run(
        &self,
        confinement: &Confinement,
        start: impl AsyncFnOnce(Vec<Reserved>) -> std::io::Result<Server>,
    ) -> anyhow::Result<()> {
        let reserved = Reserved::all(&self.listen)?;
        // Enter the sandbox before the runtime starts its threads, because they inherit the restrictions.
        let sandbox = if self.no_sandbox { None } else { Some(confinement.enter()?) };
        runtime()?.block_on(async {
            let mut ends = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
            let server = start(reserved).await?;
            if let Some(sandbox) = sandbox {
                confinement.filter(sandbox);
            }
            for listen in server.listens() {
                print_line!("listening at {listen}")?;
            }
            print_line!("ready")?;
            let [interrupt, terminate] = &mut ends;
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            Ok(())
        })
    }
}

/// What a client shows to servers, and which servers it believes.
#[derive(Clone, Debug, Args)]
pub struct CredentialArgs {
    /// Token to show to the learner or to cells: a file of one line
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificates of the authority of https:// endpoints, in PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Own certificates for https:// endpoints that ask for one, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["key", "ca"])]
    cert: Option<PathBuf>,
    /// Key of the first own certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl CredentialArgs {
    fn read(&self) -> anyhow::Result<Credentials> {
        let identity = identity(self.cert.as_ref(), self.key.as_ref());
        let tls = self.ca.as_ref().map(|ca| TlsClient::new(ca, identity.as_ref())).transpose()?;
        Ok(Credentials { token: token(self.token_file.as_ref())?, tls })
    }
}

fn token(file: Option<&PathBuf>) -> anyhow::Result<Option<Token>> {
    file.map(|path| Token::read(path).with_context(|| path.display().to_string())).transpose()
}

fn identity(certificates: Option<&PathBuf>, key: Option<&PathBuf>) -> Option<Identity> {
    let (certificates, key) = (certificates?.clone(), key?.clone());
    Some(Identity { certificates, key })
}

/// Arguments of `serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Who may publish: nobody, unix (who can open a Unix socket of the server) or everywhere
    #[arg(long, default_value = "unix")]
    publish_from: PublishFrom,
    /// Token that who publishes shows as well: a file of one line
    #[arg(long, value_name = "FILE")]
    publish_token_file: Option<PathBuf>,
    /// Versions of each model that are kept
    #[arg(long, default_value_t = VERSIONS_KEPT as u64, value_parser = clap::value_parser!(u64).range(2..))]
    versions_kept: u64,
    /// Bytes of the largest model
    #[arg(long, default_value_t = OBJECT_LEN_MAX_BYTES, value_parser = clap::value_parser!(u64).range(1..))]
    object_bytes_max: u64,
}

impl ServeArgs {
    fn run(&self) -> anyhow::Result<()> {
        let store = Arc::new(ModelStore::new(StoreOptions {
            versions_kept: self.versions_kept as usize,
            object_len_max_bytes: self.object_bytes_max,
            ..StoreOptions::default()
        }));
        let (mut server, publish_from) = (self.server.options()?, self.publish_from);
        server.access.publish = token(self.publish_token_file.as_ref())?;
        self.server.warn(&server.access);
        if publish_from == PublishFrom::Everywhere && server.access.publish.is_none() {
            eprintln!(
                "iswitch-models: everyone who reaches the server may publish without --publish-token-file"
            );
        }
        let options = LearnerOptions { server, publish_from, ..LearnerOptions::default() };
        let confinement = sandbox::of_learner(&self.server.listen);
        self.server.run(&confinement, async |reserved| learner::serve_at(store, reserved, options).await)
    }
}

/// Arguments of `cell`.
#[derive(Clone, Debug, Args)]
pub struct CellArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// A learner or another cell: HOST:PORT or unix:PATH; repeatable, the preferred one first
    #[arg(long, required = true)]
    upstream: Vec<Endpoint>,
    /// Bytes of models that are kept
    #[arg(long, default_value_t = CELL_CAPACITY_BYTES, value_parser = clap::value_parser!(u64).range(1..))]
    capacity_bytes: u64,
    /// Bytes of the largest model
    #[arg(long, default_value_t = OBJECT_LEN_MAX_BYTES, value_parser = clap::value_parser!(u64).range(1..))]
    object_bytes_max: u64,
    /// While upstream cannot be reached, a version known as the latest so many milliseconds ago is served; then 504
    #[arg(long, default_value_t = millis(MODEL_AGE_MAX), value_parser = clap::value_parser!(u64).range(1..))]
    model_age_max_ms: u64,
    /// Upstream may send nothing for so many milliseconds
    #[arg(long, default_value_t = millis(Times::default().stall), value_parser = clap::value_parser!(u64).range(1..))]
    upstream_stall_ms: u64,
    #[command(flatten)]
    credentials: CredentialArgs,
}

impl CellArgs {
    fn run(&self) -> anyhow::Result<()> {
        let stall = Duration::from_millis(self.upstream_stall_ms);
        let server = self.server.options()?;
        self.server.warn(&server.access);
        let options = CellOptions {
            server,
            credentials: self.credentials.read()?,
            times: Times { stall, ..Times::default() },
            capacity_bytes: self.capacity_bytes,
            object_len_max_bytes: self.object_bytes_max,
            model_age_max: Duration::from_millis(self.model_age_max_ms),
            ..CellOptions::default()
        };
        let confinement = sandbox::of_cell(&self.server.listen, &self.upstream);
        self.server
            .run(&confinement, async |reserved| cell::serve_at(&self.upstream, reserved, options).await)
    }
}

/// Arguments of `publish`.
#[derive(Clone, Debug, Args)]
pub struct PublishArgs {
    /// The learner: HOST:PORT or unix:PATH
    #[arg(long)]
    learner: Endpoint,
    /// The model
    #[arg(long)]
    name: ModelName,
    /// Its version: greater than all before
    #[arg(long)]
    version: u64,
    /// The model
    file: PathBuf,
    #[command(flatten)]
    credentials: CredentialArgs,
}

impl PublishArgs {
    fn run(&self) -> anyhow::Result<()> {
        let bytes = std::fs::read(&self.file).with_context(|| self.file.display().to_string())?;
        let options = ClientOptions { credentials: self.credentials.read()?, ..ClientOptions::default() };
        let publishing = publish(&self.learner, &self.name, self.version, bytes.into(), &options);
        let manifest = runtime()?.block_on(publishing)?;
        print_line!("{}", serde_json::to_string(&manifest)?)?;
        Ok(())
    }
}

/// Arguments of `fetch`.
#[derive(Clone, Debug, Args)]
pub struct FetchArgs {
    /// A cell or a learner: HOST:PORT or unix:PATH; repeatable, the preferred one first
    #[arg(long, required = true)]
    from: Vec<Endpoint>,
    /// The model
    #[arg(long)]
    name: ModelName,
    /// Replaces this file whole with each version, flushed to the disk
    #[arg(long)]
    output: Option<PathBuf>,
    /// Goes on with each newer version until it is ended
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    credentials: CredentialArgs,
}

impl FetchArgs {
    fn run(&self) -> anyhow::Result<()> {
        let options = ClientOptions { credentials: self.credentials.read()?, ..ClientOptions::default() };
        let mut client = BlockingModelClient::new(self.name.clone(), &self.from, options)?;
        loop {
            match if self.follow { client.wait_newer(WAIT_MAX) } else { client.poll() } {
                Ok(Some(model)) => {
                    if let Some(output) = &self.output {
                        let written = iswitch_storage::replace(&RealDisk, output, &model.bytes);
                        written.with_context(|| format!("writing {}", output.display()))?;
                    }
                    let latency_ms = model.latency.as_secs_f64() * 1e3;
                    let mut line = serde_json::to_value(&model.manifest)?;
                    line["latency_ms"] = latency_ms.into();
                    if !print_line!("{line}")? && self.output.is_none() {
                        return Ok(());
                    }
                }
                Ok(None) => {}
                Err(error) if self.follow => {
                    eprintln!("iswitch-models: {error}");
                    std::thread::sleep(crate::limits::RETRY_AFTER);
                }
                Err(error) => return Err(error.into()),
            }
            if !self.follow {
                return Ok(());
            }
        }
    }
}

/// Arguments of `nginx-config`.
#[derive(Clone, Debug, Args)]
pub struct NginxArgs {
    /// Where nginx is to listen: PORT, ADDRESS:PORT or unix:PATH
    #[arg(long)]
    listen: String,
    /// A learner or another cell: HOST:PORT or unix:PATH; repeatable, the others are asked when the first fails
    #[arg(long, required = true)]
    upstream: Vec<Endpoint>,
    /// The whole path of a directory for the cache
    #[arg(long)]
    directory: PathBuf,
    /// Bytes of models on its disk
    #[arg(long, default_value_t = CELL_CAPACITY_BYTES)]
    capacity_bytes: u64,
    /// Processes
    #[arg(long, default_value_t = 2)]
    workers: usize,
}

impl NginxArgs {
    fn run(&self) -> anyhow::Result<()> {
        let Self { listen, upstream, directory, capacity_bytes, workers } = self.clone();
        let text = NginxCell { listen, upstream, directory, capacity_bytes, workers }.render()?;
        output::print(format_args!("{text}"))?;
        Ok(())
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
