//! Servers for programs that are not asynchronous.

use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use crate::cell::CellOptions;
use crate::counters::Stats;
use crate::learner::LearnerOptions;
use crate::{Endpoint, Listen, ModelStore, Server, cell, learner};

/// Threads of a server: it copies little and computes less.
const THREADS: usize = 2;

/// A server in threads of its own. Dropping ends it.
#[derive(Debug)]
pub struct Background {
    // Dropped first, while its runtime is there.
    server: Server,
    _runtime: Runtime,
}

impl Background {
    /// As [`learner::serve`]. The store stays with the caller, who publishes into it.
    ///
    /// # Errors
    /// As there, or if there can be no more threads.
    pub fn learner(store: Arc<ModelStore>, listen: &[Listen], options: LearnerOptions) -> io::Result<Self> {
        let runtime = runtime()?;
        Ok(Self { server: runtime.block_on(learner::serve(store, listen, options))?, _runtime: runtime })
    }

    /// As [`cell::serve`].
    ///
    /// # Errors
    /// As there, or if there can be no more threads.
    pub fn cell(upstream: &[Endpoint], listen: &[Listen], options: CellOptions) -> io::Result<Self> {
        let runtime = runtime()?;
        Ok(Self { server: runtime.block_on(cell::serve(upstream, listen, options))?, _runtime: runtime })
    }

    /// Where it listens, in the order asked for, with the ports that were chosen.
    pub fn listens(&self) -> &[Listen] {
        self.server.listens()
    }

    /// What it has done.
    pub fn stats(&self) -> Stats {
        self.server.stats()
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(THREADS).thread_name("models").enable_all().build()
}
