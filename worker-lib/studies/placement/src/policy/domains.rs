//! Rules that choose GPUs by failure domain.

use super::Placer;
use super::pick::by_number;
use crate::cluster::Level;
use crate::state::State;

/// Adds `size` free GPUs to `picks`, spread evenly over racks and then over nodes.
pub fn spread(state: &State<'_>, size: usize, picks: &mut Vec<usize>) {
    let cluster = state.cluster();
    // Order the GPUs so that the nodes take turns, and then reorder them so that the racks take turns.
    let mut of_node = vec![0_usize; cluster.nodes().len()];
    let mut turns: Vec<(usize, usize, usize)> = Vec::with_capacity(state.free);
    for gpu in state.free_gpus() {
        let node = cluster.node_of(gpu);
        turns.push((of_node[node], node, gpu));
        of_node[node] += 1;
    }
    turns.sort_unstable();
    let mut of_rack = vec![0_usize; cluster.domains(Level::Rack).len()];
    let mut rotated: Vec<(usize, usize, usize)> = Vec::with_capacity(turns.len());
    for (_, _, gpu) in turns {
        let rack = cluster.domain_of(Level::Rack, gpu);
        rotated.push((of_rack[rack], rack, gpu));
        of_rack[rack] += 1;
    }
    rotated.sort_unstable();
    picks.extend(rotated.into_iter().take(size).map(|(_, _, gpu)| gpu));
}

/// Failure rate, as a multiple of the mean rate of the cluster's GPUs, at or above which [`DrainLemons`] may take a GPU
/// out of service.
const LEMON: f64 = 2.0;
/// Maximum share of a cluster's GPUs that [`DrainLemons`] takes out of service.
const LEMONS_MAX: f64 = 0.1;

/// Placer that avoids the GPUs with the highest estimated failure rates: it excludes at most a tenth of the cluster,
/// and only GPUs whose rate is at least twice the mean. Other GPUs are used in the order of their ids. A job that needs
/// more GPUs than the others provide also gets some of the excluded ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct DrainLemons;

impl Placer for DrainLemons {
    fn place(&mut self, state: &State<'_>, _job: usize, size: usize, picks: &mut Vec<usize>) {
        let is_lemon = lemons(state);
        let healthy = is_lemon.iter().filter(|is_lemon| !**is_lemon).count();
        let free: Vec<usize> = state.free_gpus().filter(|gpu| !is_lemon[*gpu]).collect();
        if free.len() >= size {
            picks.extend(&free[..size]);
        } else if size > healthy {
            by_number(state, size, picks, |gpu| f64::from(u8::from(is_lemon[gpu])));
        }
    }
}

/// Returns, for each GPU, whether [`DrainLemons`] takes it out of service.
fn lemons(state: &State<'_>) -> Vec<bool> {
    let gpus = state.gpus.len();
    let rates: Vec<f64> = (0..gpus).map(|gpu| state.rate(gpu)).collect();
    let mean = rates.iter().sum::<f64>() / gpus as f64;
    let mut worst: Vec<usize> = (0..gpus).filter(|gpu| rates[*gpu] >= LEMON * mean && mean > 0.0).collect();
    worst.sort_by(|a, b| rates[*b].total_cmp(&rates[*a]).then(a.cmp(b)));
    let mut is_lemon = vec![false; gpus];
    worst.into_iter().take((gpus as f64 * LEMONS_MAX) as usize).for_each(|gpu| is_lemon[gpu] = true);
    is_lemon
}
