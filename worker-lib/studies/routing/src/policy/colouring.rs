//! Edge colouring: the policy of a controller that sees all packets and spreads each class over the last stage.
//!
//! The packets of the second-to-last stage are the edges of a bipartite multigraph of switches and classes. A colour is
//! a switch of the last stage. All edges of a switch must have different colours, because each link carries one packet.
//! All edges of a class should have different colours, because each last-stage switch releases one packet of a class
//! per slot. If no vertex has more than N edges, N colours are enough (Koenig, 1916; Slepian and Duguid for Clos
//! networks). A class with more packets is divided into vertices of at most N edges. Colours are then mapped to
//! switches so that few packets of the same class are already queued at the switch to which a packet is sent.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::{Policy, decide};
use crate::network::{Decision, Decisions, Queues, Routing, Shape};

const NONE: usize = usize::MAX;

/// Policy that spreads classes evenly over the last stage. At earlier stages, packets take random links, because the
/// choice makes no difference there.
#[derive(Clone, Debug)]
pub struct Colouring {
    decisions: Decisions,
    rng: ChaCha8Rng,
    drawn: Routing,
    packets: Vec<Decision>,
}

impl Colouring {
    /// Creates the policy. `rng` determines the random links.
    pub fn new(shape: Shape, rng: ChaCha8Rng) -> Self {
        Self { decisions: Decisions::new(shape), rng, drawn: Routing::idle(shape), packets: Vec::new() }
    }
}

impl Policy for Colouring {
    fn route(&mut self, queues: &Queues, routing: &mut Routing) {
        let shape = queues.shape();
        let last = shape.boundaries() - 1;
        let Self { decisions, rng, drawn, packets } = self;
        drawn.clear();
        packets.clear();
        decide(decisions, queues, drawn, |decision, idle| {
            if decision.stage == last {
                packets.push(decision);
            }
            rng.random_range(0..idle.len())
        });
        drawn.hops().filter(|hop| usize::from(hop.stage) < last).for_each(|hop| routing.set(hop));
        let graph = Graph::coloured(packets, shape.switches());
        let switch_of = graph.assign(queues);
        for (packet, colour) in packets.iter().zip(&graph.colours) {
            routing.set(packet.over(switch_of[*colour] as u16));
        }
    }
}

/// Bipartite multigraph with a proper edge colouring.
struct Graph {
    size: usize,
    /// Edges, as `(switch, class vertex)`. The vertices of class j are j, j + N, j + 2N and so on.
    edges: Vec<(usize, usize)>,
    /// Colour of each edge.
    colours: Vec<usize>,
    /// Edge of each colour at each switch, as `[switch, colour]`.
    at_switch: Vec<usize>,
    /// Edge of each colour at each class vertex, as `[class vertex, colour]`.
    at_class: Vec<usize>,
}

impl Graph {
    fn coloured(packets: &[Decision], size: usize) -> Self {
        let mut degrees = vec![0; size];
        let vertex = |packet: &Decision| {
            let degree = &mut degrees[packet.class];
            *degree += 1;
            (packet.switch, packet.class + size * ((*degree - 1) / size))
        };
        let edges: Vec<_> = packets.iter().map(vertex).collect();
        let vertices = edges.iter().map(|(_, class)| class + 1).max().unwrap_or(0).max(size);
        let mut graph = Self {
            size,
            colours: vec![NONE; edges.len()],
            edges,
            at_switch: vec![NONE; size * size],
            at_class: vec![NONE; vertices * size],
        };
        (0..graph.edges.len()).for_each(|edge| graph.colour(edge));
        graph
    }

    /// Colours an edge. If no colour is free at both ends of the edge, two colours are first swapped along a path that
    /// starts at one end.
    fn colour(&mut self, edge: usize) {
        let (switch, class) = self.edges[edge];
        let free =
            |row: &[usize]| row.iter().position(|edge| *edge == NONE).expect("a vertex has at most N edges");
        let a = free(&self.at_switch[switch * self.size..][..self.size]);
        let b = free(&self.at_class[class * self.size..][..self.size]);
        if self.at_class[class * self.size + a] != NONE {
            self.swap_colours(class, a, b);
        }
        self.put(edge, a);
    }

    /// Swaps colours `a` and `b` on the path of edges of these colours that starts at a class vertex. The path cannot
    /// reach the switch of the edge that is being coloured, because `a` is free there.
    fn swap_colours(&mut self, class: usize, a: usize, b: usize) {
        let mut path = Vec::new();
        let (mut vertex, mut at_class, mut colour) = (class, true, a);
        loop {
            let table = if at_class { &self.at_class } else { &self.at_switch };
            let edge = table[vertex * self.size + colour];
            if edge == NONE {
                break;
            }
            path.push(edge);
            vertex = if at_class { self.edges[edge].0 } else { self.edges[edge].1 };
            at_class = !at_class;
            colour = if colour == a { b } else { a };
        }
        for edge in &path {
            let ((switch, class), colour) = (self.edges[*edge], self.colours[*edge]);
            self.at_switch[switch * self.size + colour] = NONE;
            self.at_class[class * self.size + colour] = NONE;
        }
        for edge in path {
            let colour = if self.colours[edge] == a { b } else { a };
            self.put(edge, colour);
        }
    }

    fn put(&mut self, edge: usize, colour: usize) {
        let (switch, class) = self.edges[edge];
        self.colours[edge] = colour;
        self.at_switch[switch * self.size + colour] = edge;
        self.at_class[class * self.size + colour] = edge;
    }

    /// Returns the switch of the last stage for each colour. First, each colour gets the best switch that is still
    /// free. Then, pairs of colours swap their switches as long as this reduces the number of queued packets of the
    /// same class ahead of the routed packets.
    fn assign(&self, queues: &Queues) -> Vec<usize> {
        let size = self.size;
        let last = queues.shape().boundaries();
        // Number of packets in a queue of the last stage after the exits of this slot.
        let left = |switch: usize, class: usize| i64::from(queues.len(last, switch, class).saturating_sub(1));
        let mut met = vec![0; size * size];
        for ((_, class), colour) in self.edges.iter().zip(&self.colours) {
            (0..size).for_each(|switch| met[colour * size + switch] += left(switch, class % size));
        }
        let mut is_free = vec![true; size];
        let mut switch_of: Vec<usize> = (0..size)
            .map(|colour| {
                let free = (0..size).filter(|switch| is_free[*switch]);
                let best = free.min_by_key(|switch| met[colour * size + switch]).unwrap_or(colour);
                is_free[best] = false;
                best
            })
            .collect();
        let mut improved = true;
        while improved {
            improved = false;
            for a in 0..size {
                for b in 0..a {
                    let now = met[a * size + switch_of[a]] + met[b * size + switch_of[b]];
                    if met[a * size + switch_of[b]] + met[b * size + switch_of[a]] < now {
                        switch_of.swap(a, b);
                        improved = true;
                    }
                }
            }
        }
        switch_of
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_switch_or_class_uses_a_colour_twice(
            rows in prop::collection::vec(prop::collection::vec(0..6_usize, 0..=6), 6),
        ) {
            let packets: Vec<_> = rows
                .iter()
                .enumerate()
                .flat_map(|(switch, classes)| {
                    classes.iter().map(move |class| Decision { stage: 0, switch, class: *class, is_fill: false })
                })
                .collect();
            let graph = Graph::coloured(&packets, 6);
            let mut seen = std::collections::BTreeSet::new();
            for ((switch, class), colour) in graph.edges.iter().zip(&graph.colours) {
                prop_assert!(*colour < 6);
                prop_assert!(seen.insert((true, *switch, *colour)) && seen.insert((false, *class, *colour)));
            }
        }
    }
}
