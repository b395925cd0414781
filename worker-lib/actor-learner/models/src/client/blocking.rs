//! Client for programs that are not asynchronous.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::{ClientOptions, ClientStats, Endpoint, Model, ModelClient, ModelError, Sink};
use crate::{Manifest, ModelName};

/// A blocking variant of [`ModelClient`], with its own runtime in the calling thread.
#[derive(Debug)]
pub struct BlockingModelClient {
    runtime: Runtime,
    client: ModelClient,
}

impl BlockingModelClient {
    /// Creates a client; see [`ModelClient::new`].
    ///
    /// # Errors
    /// Fails if there are no endpoints, or if the runtime cannot be created.
    pub fn new(name: ModelName, endpoints: &[Endpoint], options: ClientOptions) -> io::Result<Self> {
        let client = ModelClient::new(name, endpoints, options).map_err(io::Error::other)?;
        Ok(Self { runtime: Builder::new_current_thread().enable_all().build()?, client })
    }

    /// Returns the latest version; see [`ModelClient::latest`].
    ///
    /// # Errors
    /// Returns the errors of [`ModelClient::latest`].
    pub fn latest(&mut self) -> Result<Manifest, ModelError> {
        self.runtime.block_on(self.client.latest())
    }

    /// Reads a newer version if there is one; see [`ModelClient::poll`].
    ///
    /// # Errors
    /// Returns the errors of [`ModelClient::poll`].
    pub fn poll(&mut self) -> Result<Option<Model>, ModelError> {
        self.runtime.block_on(self.client.poll())
    }

    /// Waits for a newer version and reads it; see [`ModelClient::wait_newer`].
    ///
    /// # Errors
    /// Returns the errors of [`ModelClient::wait_newer`].
    pub fn wait_newer(&mut self, wait: Duration) -> Result<Option<Model>, ModelError> {
        self.runtime.block_on(self.client.wait_newer(wait))
    }

    /// Reads one version into a sink; see [`ModelClient::fetch`].
    ///
    /// # Errors
    /// Returns the errors of [`ModelClient::fetch`].
    pub fn fetch(&mut self, manifest: &Manifest, sink: &mut dyn Sink) -> Result<Duration, ModelError> {
        self.runtime.block_on(self.client.fetch(manifest, sink))
    }

    /// Returns the manifest of the version that was read last; see [`ModelClient::current`].
    pub fn current(&self) -> Option<&Manifest> {
        self.client.current()
    }

    /// Returns the age of the current version; see [`ModelClient::model_age`].
    pub fn model_age(&self) -> Option<Duration> {
        self.client.model_age()
    }

    /// Returns the statistics of the client; see [`ModelClient::stats`].
    pub fn stats(&self) -> ClientStats {
        self.client.stats()
    }
}
