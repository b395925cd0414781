//! The client for programs that are not asynchronous.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::{ClientOptions, ClientStats, Endpoint, Model, ModelClient, ModelError, Sink};
use crate::{Manifest, ModelName};

/// As [`ModelClient`], on a runtime of its own in the calling thread.
#[derive(Debug)]
pub struct BlockingModelClient {
    runtime: Runtime,
    client: ModelClient,
}

impl BlockingModelClient {
    /// As [`ModelClient::new`].
    ///
    /// # Errors
    /// Without endpoints, or if the operating system has no room for another runtime.
    pub fn new(name: ModelName, endpoints: &[Endpoint], options: ClientOptions) -> io::Result<Self> {
        let client = ModelClient::new(name, endpoints, options).map_err(io::Error::other)?;
        Ok(Self { runtime: Builder::new_current_thread().enable_all().build()?, client })
    }

    /// As [`ModelClient::latest`].
    ///
    /// # Errors
    /// As there.
    pub fn latest(&mut self) -> Result<Manifest, ModelError> {
        self.runtime.block_on(self.client.latest())
    }

    /// As [`ModelClient::poll`].
    ///
    /// # Errors
    /// As there.
    pub fn poll(&mut self) -> Result<Option<Model>, ModelError> {
        self.runtime.block_on(self.client.poll())
    }

    /// As [`ModelClient::wait_newer`].
    ///
    /// # Errors
    /// As there.
    pub fn wait_newer(&mut self, wait: Duration) -> Result<Option<Model>, ModelError> {
        self.runtime.block_on(self.client.wait_newer(wait))
    }

    /// As [`ModelClient::fetch`].
    ///
    /// # Errors
    /// As there.
    pub fn fetch(&mut self, manifest: &Manifest, sink: &mut dyn Sink) -> Result<Duration, ModelError> {
        self.runtime.block_on(self.client.fetch(manifest, sink))
    }

    /// As [`ModelClient::current`].
    pub fn current(&self) -> Option<&Manifest> {
        self.client.current()
    }

    /// As [`ModelClient::model_age`].
    pub fn model_age(&self) -> Option<Duration> {
        self.client.model_age()
    }

    /// As [`ModelClient::stats`].
    pub fn stats(&self) -> ClientStats {
        self.client.stats()
    }
}
