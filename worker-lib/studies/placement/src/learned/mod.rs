//! Learned placement: networks that place jobs, and their training.
//!
//! The patent's network knows GPUs by their place in its output, so it is for one cluster. The shared one scores one
//! GPU, one waiting job and one running job at a time, by what is known of each, so it is for clusters of any size; it
//! is added to the rule [`Saving`](super::policy::Saving), and before any training it does as that rule does.
//!
//! | module | content |
//! |---|---|
//! | [`config`] | hyper-parameters |
//! | [`features`] | what the shared network sees |
//! | [`score`] | probabilities of random choices and their gradients |
//! | [`shared_net`], [`shared_placer`] | the shared network, and the placer that it is in |
//! | [`patent_net`], [`patent_placer`] | the same of the patent |
//! | [`replay`] | the patent's replay buffer |
//! | [`episodes`] | the scenarios of a training |
//! | [`training`] | both trainings, with one or more workers, and their files |

mod actor_critic;
pub mod config;
pub mod episodes;
pub mod features;
pub mod patent_net;
pub mod patent_placer;
mod reinforce;
pub mod replay;
pub mod score;
pub mod shared_net;
pub mod shared_placer;
pub mod training;

use std::sync::Arc;

use super::Cluster;
use super::policy::Placer;
use config::{Network, PlacementConfig};
use iswitch_study::StudyError;
use patent_net::PatentNet;
use patent_placer::PatentPlacer;
use shared_net::SharedNet;
use shared_placer::SharedPlacer;

/// A trained policy: what a placer needs.
#[derive(Clone, Debug)]
pub struct Trained {
    config: PlacementConfig,
    parameters: Arc<[f32]>,
}

impl Trained {
    /// With `parameters` of the network that `config` says.
    ///
    /// # Panics
    /// If there are more or fewer than the network has.
    pub fn new(config: PlacementConfig, parameters: Arc<[f32]>) -> Self {
        assert_eq!(parameters.len(), config.parameter_count(), "parameters");
        Self { config, parameters }
    }

    /// Its hyper-parameters.
    pub fn config(&self) -> &PlacementConfig {
        &self.config
    }

    /// A fresh placer for a cluster, that takes the best choice each time.
    ///
    /// # Errors
    /// If the network is for a cluster with another number of GPUs.
    pub fn placer(&self, cluster: &Cluster) -> Result<Box<dyn Placer>, StudyError> {
        let parameters = Arc::clone(&self.parameters);
        match self.config.network {
            Network::Shared => {
                Ok(Box::new(SharedPlacer::new(SharedNet::new(), parameters, self.config.suspends)))
            }
            Network::Patent => {
                self.config.check_gpus(cluster.gpus())?;
                Ok(Box::new(PatentPlacer::new(PatentNet::new(self.config.gpus), parameters)))
            }
        }
    }
}
