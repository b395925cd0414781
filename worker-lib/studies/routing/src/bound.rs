//! What no policy can fall below.
//!
//! A switch of a later stage gets at most N packets a slot, one over each link, and sends them all on in the next. So
//! all stages but the last hold as many packets under every policy that leaves no link idle for which there is a
//! packet, and of the same classes if switches send in the order of the MDP ([`MaxWeight`](super::policy::MaxWeight)
//! chooses another one where more than N packets wait). At the last stage the N queues of a class have N exits. Pooled
//! into one queue that loses up to N packets a slot, they lose at least as many as they do in any division; so the
//! pooled queues hold no more. Spreading a class evenly over the switches attains it, and a bipartite edge colouring
//! ([`Colouring`](super::policy::Colouring)) does so but for what is left from slots before.

use super::network::{Queues, Routing, Shape};

/// Pooled queues of the last stage, driven by what a policy sends there.
#[derive(Clone, Debug)]
pub struct PooledBound {
    shape: Shape,
    /// By class.
    pooled: Vec<u64>,
}

impl PooledBound {
    /// Of an empty network.
    pub fn new(shape: Shape) -> Self {
        Self { shape, pooled: vec![0; shape.switches()] }
    }

    /// Packets that are in the network under any policy at least, when `queues` are so under one policy.
    pub fn total(&self, queues: &Queues) -> u64 {
        let before_last: u64 = (0..self.shape.boundaries()).map(|stage| queues.stage_total(stage)).sum();
        before_last + self.pooled.iter().sum::<u64>()
    }

    /// Ends a slot with the packets that go to the last stage.
    pub fn end_slot(&mut self, routing: &Routing) {
        let exits = self.shape.switches() as u64;
        self.pooled.iter_mut().for_each(|len| *len = len.saturating_sub(exits));
        let last = self.shape.boundaries() - 1;
        let arriving = routing.hops().filter(|hop| usize::from(hop.stage) == last);
        arriving.for_each(|hop| self.pooled[usize::from(hop.class)] += 1);
    }
}
