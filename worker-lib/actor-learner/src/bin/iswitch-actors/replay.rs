//! `iswitch replay`: runs a replay shard with the tables that the run needs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use iswitch_actor_learner::{Job, tables};
use iswitch_models::Endpoint;
use iswitch_replay::cli::{ServeArgs, addresses, run};
use iswitch_replay::server::ShardConfig;

use super::ChildArgs;
use super::access::ModelAccess;

/// Arguments of `iswitch replay`.
#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// Addresses of the first learner or of cells
    ///
    /// Each address is HOST:PORT, https://HOST:PORT or unix:PATH. The shard starts once the description of the run has
    /// been published at one of them.
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',', required = true)]
    models: Vec<Endpoint>,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    model_access: ModelAccess,
    #[command(flatten)]
    child: ChildArgs,
}

impl ReplayArgs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        // Until the shard starts, there is no state to save, so signals terminate the process immediately. Once it has
        // started, the shard handles the signals.
        let never = Arc::new(AtomicBool::new(false));
        self.child.follow_parent(&never);
        let credentials = self.model_access.credentials(&self.models)?;
        let Some(job) = Job::read(&self.models, &credentials, &never)? else { return Ok(()) };
        let json = self.serve.json;
        let mut options = self.serve.options();
        if options.listen.is_empty() {
            options.listen.push("127.0.0.1:7800".to_owned());
        }
        let listen = addresses(&options.listen)?;
        let tables = tables(&job.demand, job.shards.len())?;
        let config = ShardConfig { tables, ..options.config()? };
        // No sandbox is used, because it requires a single-threaded process, but this process starts several threads
        // before it listens.
        run(config.resolve()?, &listen, json, false)
    }
}
