//! Learned placement: networks that place jobs, and their training.
//!
//! The patent's network identifies a GPU by its index in the output, so it fits only one cluster. The shared network
//! scores one GPU, one waiting job or one running job at a time, from its features, and therefore works for clusters of
//! any size. Its output is added to the values on which the rule [`Saving`](super::policy::Saving) bases its decisions.
//! Before any training, the output is 0, so the decisions are those of the rule.
//!
//! | module | content |
//! |---|---|
//! | [`config`] | hyper-parameters |
//! | [`features`] | input features of the shared network |
//! | [`score`] | probabilities of random choices and their gradients |
//! | [`shared_net`], [`shared_placer`] | the shared network and its placer |
//! | [`patent_net`], [`patent_placer`] | the patent's networks and their placer |
//! | [`replay`] | the patent's replay buffer |
//! | [`episodes`] | scenarios for training and tests |
//! | [`training`] | training of both networks with one or more workers, and the files of a training run |

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

/// Trained policy: hyper-parameters and parameters of a network.
#[derive(Clone, Debug)]
pub struct Trained {
    config: PlacementConfig,
    parameters: Arc<[f32]>,
}

impl Trained {
    /// Creates a policy from a configuration and the parameters of its network.
    ///
    /// # Panics
    /// Panics if the number of parameters does not match the network.
    pub fn new(config: PlacementConfig, parameters: Arc<[f32]>) -> Self {
        assert_eq!(
            parameters.len(),
            config.parameter_count(),
            "the number of parameters must match the network"
        );
        Self { config, parameters }
    }

    /// Returns the hyper-parameters.
    pub fn config(&self) -> &PlacementConfig {
        &self.config
    }

    /// Creates a placer for a cluster. The placer does not explore: it always takes the choice that the network rates
    /// best.
    ///
    /// # Errors
    /// Fails if the network was created for a different number of GPUs than the cluster has.
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
