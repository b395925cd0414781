//! Edge colouring: how a controller that sees all packets spreads each class over the last stage.
//!
//! The packets of the last stage but one are the edges of a bipartite multigraph of switches and classes. A colour is a
//! switch of the last stage: at a switch all colours differ, since each link carries one packet; at a class they
//! should, since each switch lets one packet of a class out. Where no vertex has more than N edges N colours are enough
//! (Koenig, 1916; Slepian and Duguid for Clos networks). A class with more packets is cut into vertices of N. Colours
//! then go to switches so that packets meet few of their class that are left there.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::{Policy, decide};
use crate::network::{Decision, Decisions, Queues, Routing, Shape};

const NONE: usize = usize::MAX;

/// Spreads classes evenly over the last stage; before it packets go over any link, which is as good as another.
#[derive(Clone, Debug)]
pub struct Colouring {
    decisions: Decisions,
    rng: ChaCha8Rng,
    drawn: Routing,
    packets: Vec<Decision>,
}

impl Colouring {
    /// With the draws of `rng`.
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

/// A bipartite multigraph with a proper edge colouring.
struct Graph {
    size: usize,
    /// `(switch, class vertex)`; the vertices of class j are j, j + N, j + 2N and so on.
    edges: Vec<(usize, usize)>,
    /// By edge.
    colours: Vec<usize>,
    /// `[switch, colour]` and `[class vertex, colour]`: the edge.
    at_switch: Vec<usize>,
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

    /// Gives an edge a colour; if none is free at both ends, swaps two colours along a path from one of them.
    fn colour(&mut self, edge: usize) {
        let (switch, class) = self.edges[edge];
        let free = |row: &[usize]| row.iter().position(|edge| *edge == NONE).expect("at most N edges");
        let a = free(&self.at_switch[switch * self.size..][..self.size]);
        let b = free(&self.at_class[class * self.size..][..self.size]);
        if self.at_class[class * self.size + a] != NONE {
            self.swap_colours(class, a, b);
        }
        self.put(edge, a);
    }

    /// Swaps colours `a` and `b` on the path of edges of these colours that starts at a class vertex. It cannot come
    /// back to the switch where `a` is free.
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

    /// The switch of the last stage for each colour: first the best one that is left, then pairs change for as long as
    /// fewer packets are met.
    fn assign(&self, queues: &Queues) -> Vec<usize> {
        let size = self.size;
        let last = queues.shape().boundaries();
        // Packets that this slot's exits leave behind.
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
        fn neither_switches_nor_classes_meet_a_colour_twice(
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
