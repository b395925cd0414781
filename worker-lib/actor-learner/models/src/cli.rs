//! Commands of `iswitch-models`, which other programs can embed.

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

/// Subcommand of `iswitch-models`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve models that other processes publish
    ///
    /// Runs the server of a learner as a separate process.
    Serve(ServeArgs),
    /// Cache the models of a learner for nearby actors
    Cell(CellArgs),
    /// Publish a file as a version of a model
    Publish(PublishArgs),
    /// Read the latest version of a model
    Fetch(FetchArgs),
    /// Print a configuration that makes nginx a cell
    ///
    /// nginx with this configuration serves the same purpose as `cell`.
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

/// Arguments shared by all servers.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// Listening address: ADDRESS:PORT or unix:PATH
    ///
    /// Repeatable.
    #[arg(long, required = true)]
    listen: Vec<Listen>,
    /// Maximum number of concurrent connections
    #[arg(long, default_value_t = CONNECTIONS_MAX, value_parser = clap::value_parser!(usize))]
    connections_max: usize,
    /// Timeout for a reader that receives nothing, in milliseconds
    ///
    /// If a reader receives nothing for this long, the server disconnects it.
    #[arg(long, default_value_t = millis(STALL_TIMEOUT), value_parser = clap::value_parser!(u64).range(1..))]
    stall_ms: u64,
    /// Minimum rate of a reader, in bytes per second
    ///
    /// The server disconnects a reader that delays a response for longer than the response would take at this rate,
    /// plus --stall-ms.
    #[arg(long, default_value_t = READER_BYTES_PER_S_MIN, value_parser = clap::value_parser!(u64).range(1..))]
    reader_bytes_per_s_min: u64,
    /// File with the bearer token that readers must send
    ///
    /// The file contains one line. Without this option, clients need no token to read models.
    #[arg(long, value_name = "FILE")]
    read_token_file: Option<PathBuf>,
    /// PEM file with the certificate chain for TLS
    ///
    /// The server's own certificate comes first. With this option, all TCP addresses require TLS; without it, no
    /// connection is encrypted.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the private key of --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// PEM file with the CA certificates of clients
    ///
    /// With this option, the server serves only clients that present a certificate issued by one of these CAs.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    client_ca: Option<PathBuf>,
    /// Run without the sandbox
    ///
    /// The process keeps all its privileges and installs no system-call filter.
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

    /// Warns if tokens would be sent over a network without encryption.
    fn warn(&self, access: &Access) {
        let has_token = access.read.is_some() || access.publish.is_some();
        let is_exposed = |listen: &Listen| matches!(listen, Listen::Tcp(at) if !at.ip().is_loopback());
        if has_token && access.tls.is_none() && self.listen.iter().any(is_exposed) {
            eprintln!(
                "iswitch-models: tokens are sent unencrypted and can be read on the network; use --tls-cert and \
                 --tls-key"
            );
        }
    }

    /// Serves in the sandbox until SIGTERM or SIGINT. Prints the listening addresses once the server accepts
    /// connections.
    fn run(
        &self,
        confinement: &Confinement,
        start: impl AsyncFnOnce(Vec<Reserved>) -> std::io::Result<Server>,
    ) -> anyhow::Result<()> {
        let reserved = Reserved::all(&self.listen)?;
        // Enter the sandbox before the runtime starts its threads, so that the threads inherit the restrictions.
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

/// Credentials of a client, and the CAs that the client trusts.
#[derive(Clone, Debug, Args)]
pub struct CredentialArgs {
    /// File with the bearer token to send to the learner or the cells
    ///
    /// The file contains one line. Without this option, requests carry no token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM file with the CA certificates of https:// endpoints
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// PEM file with the client's certificate chain for https:// endpoints
    ///
    /// The client's own certificate comes first. It is presented to endpoints that request a certificate.
    #[arg(long, value_name = "FILE", requires_all = ["key", "ca"])]
    cert: Option<PathBuf>,
    /// PEM file with the private key of --cert
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
    /// Clients that may publish: nobody, unix or everywhere
    ///
    /// With nobody, no client may publish. With unix, clients that connect to a Unix socket of the server may publish.
    /// With everywhere, any client that can reach the server may publish.
    #[arg(long, default_value = "unix")]
    publish_from: PublishFrom,
    /// File with the bearer token that publishers must send
    ///
    /// The file contains one line. The token is required in addition to what --publish-from allows.
    #[arg(long, value_name = "FILE")]
    publish_token_file: Option<PathBuf>,
    /// Number of versions to keep of each model
    #[arg(long, default_value_t = VERSIONS_KEPT as u64, value_parser = clap::value_parser!(u64).range(2..))]
    versions_kept: u64,
    /// Maximum size of a model, in bytes
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
                "iswitch-models: any client that can reach the server may publish; to require a token, pass \
                 --publish-token-file"
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
    /// Address of a learner or another cell
    ///
    /// HOST:PORT, https://HOST:PORT or unix:PATH. Repeatable; the first address is preferred.
    #[arg(long, required = true)]
    upstream: Vec<Endpoint>,
    /// Maximum size of the cached models, in bytes
    #[arg(long, default_value_t = CELL_CAPACITY_BYTES, value_parser = clap::value_parser!(u64).range(1..))]
    capacity_bytes: u64,
    /// Maximum size of a model, in bytes
    #[arg(long, default_value_t = OBJECT_LEN_MAX_BYTES, value_parser = clap::value_parser!(u64).range(1..))]
    object_bytes_max: u64,
    /// Maximum age of a version while upstream is unreachable, in milliseconds
    ///
    /// While upstream cannot be reached, the cell continues to serve the version that was last known to be the latest,
    /// but only for this long. After that, it responds with status 504.
    #[arg(long, default_value_t = millis(MODEL_AGE_MAX), value_parser = clap::value_parser!(u64).range(1..))]
    model_age_max_ms: u64,
    /// Timeout for an upstream server that sends nothing, in milliseconds
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
    /// Address of the learner: HOST:PORT, https://HOST:PORT or unix:PATH
    #[arg(long)]
    learner: Endpoint,
    /// Name of the model
    #[arg(long)]
    name: ModelName,
    /// Version of the model, greater than all earlier versions
    #[arg(long)]
    version: u64,
    /// File with the content of the model
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
    /// Address of a cell or a learner
    ///
    /// HOST:PORT, https://HOST:PORT or unix:PATH. Repeatable; the first address is preferred.
    #[arg(long, required = true)]
    from: Vec<Endpoint>,
    /// Name of the model
    #[arg(long)]
    name: ModelName,
    /// File to write the model to
    ///
    /// Each version replaces the whole file atomically and is flushed to disk.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Continue with each newer version until interrupted
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
                        written.with_context(|| format!("cannot write {}", output.display()))?;
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
    /// Listening address of nginx: PORT, ADDRESS:PORT or unix:PATH
    #[arg(long)]
    listen: String,
    /// Address of a learner or another cell: HOST:PORT or unix:PATH
    ///
    /// Repeatable. If the first one fails, nginx tries the others.
    #[arg(long, required = true)]
    upstream: Vec<Endpoint>,
    /// Absolute path of a directory for the cache
    #[arg(long)]
    directory: PathBuf,
    /// Maximum size of the models on disk, in bytes
    #[arg(long, default_value_t = CELL_CAPACITY_BYTES)]
    capacity_bytes: u64,
    /// Number of nginx worker processes
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
