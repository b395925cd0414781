//! MaxWeight, also known as backpressure.

use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::Policy;
use super::heuristics::least;
use crate::network::{Hop, Queues, Routing, Shape};

/// Policy in which each link takes a packet of the class with the largest difference in queue length between the two
/// ends of the link (Tassiulas and Ephremides, 1992). The lengths are those at the beginning of the slot. Links are
/// served in random order until no packet remains. Unlike in the original, a packet is sent even if the queue to which
/// the link leads is at least as long as the packet's current queue.
#[derive(Clone, Debug)]
pub struct MaxWeight {
    rng: ChaCha8Rng,
    links: Vec<u16>,
    /// Number of packets of a switch that have no link yet, by class.
    remaining: Vec<u32>,
    /// Classes with packets that have no link yet.
    classes: Vec<usize>,
}

impl MaxWeight {
    /// Creates the policy. `rng` determines the order of the links and breaks ties.
    pub fn new(shape: Shape, rng: ChaCha8Rng) -> Self {
        let links = (0..shape.switches() as u16).collect();
        Self { rng, links, remaining: Vec::new(), classes: Vec::new() }
    }

    fn route_switch(&mut self, queues: &Queues, stage: usize, switch: usize, routing: &mut Routing) {
        let lens = queues.at(stage, switch);
        self.remaining.clear();
        self.remaining.extend_from_slice(lens);
        self.links.shuffle(&mut self.rng);
        for link in &self.links {
            self.classes.clear();
            self.classes.extend((0..lens.len()).filter(|class| self.remaining[*class] > 0));
            if self.classes.is_empty() {
                break;
            }
            let behind = queues.at(stage + 1, usize::from(*link));
            let weight = |class: &usize| i64::from(behind[*class]) - i64::from(lens[*class]);
            let class = self.classes[least(self.classes.iter().map(weight), &mut self.rng)];
            self.remaining[class] -= 1;
            let (stage, switch, class) = (stage as u16, switch as u16, class as u16);
            routing.set(Hop { stage, switch, class, link: *link });
        }
    }
}

impl Policy for MaxWeight {
    fn route(&mut self, queues: &Queues, routing: &mut Routing) {
        let shape = queues.shape();
        for stage in 0..shape.boundaries() {
            (0..shape.switches()).for_each(|switch| self.route_switch(queues, stage, switch, routing));
        }
    }
}
