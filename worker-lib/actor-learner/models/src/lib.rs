//! Model distribution: versioned models over HTTP, from a learner through caches to thousands of actors.
//!
//! The learner publishes immutable objects `/models/NAME/VERSION` and a small pointer `/models/NAME/latest` from a
//! [`ModelStore`] ([`learner::serve`]). Any HTTP cache can stand between the learner and the actors of a cell: the
//! built-in one ([`cell::serve`]), which has no dependencies, or nginx ([`nginx::NginxCell`]). Actors use a
//! [`ModelClient`] to read from their cell, or from other cells or the learner if the cell fails. Menger (Yazdanbakhsh
//! and Chen, Google AI blog 2020) uses such caches between its learner and its actors. See docs/models.md.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use std::sync::Arc;
//!
//! use iswitch_models::{ClientOptions, Endpoint, ModelClient, ModelStore, StoreOptions, cell, learner};
//!
//! let store = Arc::new(ModelStore::new(StoreOptions::default()));
//! let any = ["127.0.0.1:0".parse()?];
//! let learner = learner::serve(Arc::clone(&store), &any, Default::default()).await?;
//! let upstream: Endpoint = learner.listens()[0].to_string().parse()?;
//! let cell = cell::serve(&[upstream.clone()], &any, Default::default()).await?;
//!
//! let name: iswitch_models::ModelName = "ppo".parse()?;
//! store.publish(&name, 1, vec![1, 2, 3].into())?;
//! let endpoints = [cell.listens()[0].to_string().parse()?, upstream];
//! let mut actor = ModelClient::new(name, &endpoints, ClientOptions::default())?;
//! let model = actor.poll().await?.expect("the first poll returns the latest version");
//! assert_eq!((model.manifest.version, &model.bytes[..]), (1, &[1, 2, 3][..]));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod arriving;
pub mod cell;
#[cfg(feature = "cli")]
pub mod cli;
pub mod client;
mod counters;
mod http;
pub mod limits;
mod manifest;
mod name;
pub mod nginx;
pub mod runtime;
mod server;
mod store;
#[cfg(feature = "tls")]
pub mod tls;
mod token;

/// Server of the learner.
pub mod learner {
    pub use crate::server::learner::{LearnerOptions, PublishFrom, serve};
}

pub use bytes::Bytes;
pub use client::blocking::BlockingModelClient;
pub use client::{
    ClientOptions, ClientStats, Credentials, Endpoint, Model, ModelClient, ModelError, Pointer, Sink, Times,
    publish,
};
pub use counters::Stats;
pub use manifest::{BadDigest, Manifest, Sha256Digest, Verification, Verifier};
pub use name::{BadName, ModelName};
pub use server::{Access, Listen, Patience, Server, ServerOptions};
pub use store::{Found, ModelStore, Object, PublishError, StoreOptions};
pub use token::{Token, TokenError};

/// Documentation test that compiles the Rust code in docs/models.md.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/models.md")]
struct ModelsPage;
