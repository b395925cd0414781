//! Lower bound on the number of queued packets under any policy.
//!
//! A switch between the first and the last stage receives at most N packets per slot, one over each link, and sends all
//! of them in the next slot. Each stage except the last therefore holds the same number of packets under every policy
//! that leaves no link idle while a packet waits for it. It also holds packets of the same classes under all policies
//! that send packets in the order that the Markov decision process (MDP) prescribes.
//! ([`MaxWeight`](super::policy::MaxWeight) chooses another order if more than N packets wait.)
//!
//! At the last stage, the N queues of a class have N exits. If these queues are pooled into one queue that releases up
//! to N packets per slot, at least as many packets leave as with any division among the queues. Therefore, the pooled
//! queue never holds more packets than the N queues together. A policy that spreads each class evenly over the switches
//! attains the bound. A bipartite edge colouring ([`Colouring`](super::policy::Colouring)) would attain it if no
//! packets were left over from earlier slots.

use super::network::{Queues, Routing, Shape};

/// Pooled queues of the last stage, which receive the packets that a policy sends to that stage.
#[derive(Clone, Debug)]
pub struct PooledBound {
    shape: Shape,
    /// Lengths of the pooled queues, by class.
    pooled: Vec<u64>,
}

impl PooledBound {
    /// Creates the bound for an empty network.
    pub fn new(shape: Shape) -> Self {
        Self { shape, pooled: vec![0; shape.switches()] }
    }

    /// Returns a lower bound on the number of packets in the network under any policy. `queues` contains the queues
    /// under some policy, which determine the number of packets in the stages before the last.
    pub fn total(&self, queues: &Queues) -> u64 {
        let before_last: u64 = (0..self.shape.boundaries()).map(|stage| queues.stage_total(stage)).sum();
        before_last + self.pooled.iter().sum::<u64>()
    }

    /// Ends a slot: releases packets from the pooled queues, then adds the packets that `routing` sends to the last
    /// stage.
    pub fn end_slot(&mut self, routing: &Routing) {
        let exits = self.shape.switches() as u64;
        self.pooled.iter_mut().for_each(|len| *len = len.saturating_sub(exits));
        let last = self.shape.boundaries() - 1;
        let arriving = routing.hops().filter(|hop| usize::from(hop.stage) == last);
        arriving.for_each(|hop| self.pooled[usize::from(hop.class)] += 1);
    }
}
