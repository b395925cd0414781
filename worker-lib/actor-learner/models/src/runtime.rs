//! Servers that run in background threads, for programs that are not asynchronous.

use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use crate::cell::CellOptions;
use crate::counters::Stats;
use crate::learner::LearnerOptions;
use crate::{Endpoint, Listen, ModelStore, Server, cell, learner};

/// Number of threads of a server. Two are enough, because a server does little work other than I/O.
const THREADS: usize = 2;

/// Server that runs in its own threads. Dropping it stops the server.
#[derive(Debug)]
pub struct Background {
    // This field comes before the runtime, because it must be dropped first.
    server: Server,
    _runtime: Runtime,
}

impl Background {
    /// Starts [`learner::serve`]. The caller keeps the store and publishes models into it.
    ///
    /// # Errors
    /// Returns the errors of [`learner::serve`], or fails if the threads cannot be started.
    pub fn learner(store: Arc<ModelStore>, listen: &[Listen], options: LearnerOptions) -> io::Result<Self> {
        let runtime = runtime()?;
        Ok(Self { server: runtime.block_on(learner::serve(store, listen, options))?, _runtime: runtime })
    }

    /// Starts [`cell::serve`].
    ///
    /// # Errors
    /// Returns the errors of [`cell::serve`], or fails if the threads cannot be started.
    pub fn cell(upstream: &[Endpoint], listen: &[Listen], options: CellOptions) -> io::Result<Self> {
        let runtime = runtime()?;
        Ok(Self { server: runtime.block_on(cell::serve(upstream, listen, options))?, _runtime: runtime })
    }

    /// Returns the addresses on which the server listens, in the requested order and with the actual ports.
    pub fn listens(&self) -> &[Listen] {
        self.server.listens()
    }

    /// Returns the statistics of the server.
    pub fn stats(&self) -> Stats {
        self.server.stats()
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(THREADS).thread_name("models").enable_all().build()
}
