//! Progressive filling: max-min fair rates of flows that share ports (Bertsekas and Gallager, "Data Networks", section
//! 6.5.2), with weights.

/// Flow that waits for a rate.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: u32,
    to: u32,
    weight: f64,
    /// Number of the flow in the order in which flows were added.
    number: u32,
}

/// Relative difference below which two levels are equal.
const EQUAL: f64 = 1e-12;

/// Computation of max-min fair rates, with its buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Filling {
    edges: Vec<Edge>,
    rates: Vec<f64>,
    /// Sum of the weights of the flows without a rate, at each port.
    weights: Vec<f64>,
    /// Rate per unit of weight at which each port would be busy.
    levels: Vec<f64>,
    /// Lowest level of the ports with which each port shares a flow.
    lowest: Vec<f64>,
}

impl Filling {
    /// Removes all flows.
    pub(super) fn clear(&mut self) {
        self.edges.clear();
    }

    /// Returns whether there are no flows.
    pub(super) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// Adds a flow with a weight above 0. Rates of flows that share a busy port, and have no other, are in the ratio of
    /// their weights.
    pub(super) fn add(&mut self, from: u32, to: u32, weight: f64) {
        let number = self.edges.len() as u32;
        self.edges.push(Edge { from, to, weight, number });
    }

    /// Assigns each flow its max-min fair rate within the free capacities, and subtracts the rates from these. Returns
    /// the rates in the order in which the flows were added, as shares of a port.
    ///
    /// A port whose level does not exceed that of any port with which it shares a flow is the bottleneck of its flows,
    /// and fixes their rates. There is always such a port, and usually there are many: few rounds are necessary, where
    /// the textbook's algorithm has one round for each port.
    pub(super) fn fill(&mut self, free: &mut [f64]) -> &[f64] {
        self.weigh(free.len());
        self.rates.clear();
        self.rates.resize(self.edges.len(), 0.0);
        while !self.edges.is_empty() {
            self.find_bottlenecks(free);
            self.weights.fill(0.0);
            let Self { edges, rates, weights, levels, .. } = self;
            let mut open = 0;
            for at in 0..edges.len() {
                let edge = edges[at];
                let (from, to) = (edge.from as usize, edge.to as usize);
                // A port that is no bottleneck in this round has the level infinity.
                let level = levels[from].min(levels[to]);
                if level.is_infinite() {
                    weights[from] += edge.weight;
                    weights[to] += edge.weight;
                    edges[open] = edge;
                    open += 1;
                } else {
                    let rate = level * edge.weight;
                    free[from] = (free[from] - rate).max(0.0);
                    free[to] = (free[to] - rate).max(0.0);
                    rates[edge.number as usize] = rate;
                }
            }
            edges.truncate(open);
        }
        &self.rates
    }

    fn weigh(&mut self, ports: usize) {
        for buffer in [&mut self.weights, &mut self.levels, &mut self.lowest] {
            buffer.clear();
            buffer.resize(ports, 0.0);
        }
        for edge in &self.edges {
            self.weights[edge.from as usize] += edge.weight;
            self.weights[edge.to as usize] += edge.weight;
        }
    }

    /// Computes the level of each port that is a bottleneck of its flows, and sets that of the others to infinity.
    fn find_bottlenecks(&mut self, free: &[f64]) {
        let Self { edges, weights, levels, lowest, .. } = self;
        for ((level, weight), free) in levels.iter_mut().zip(&*weights).zip(free) {
            // A level must be finite even if the weight is so small that the quotient overflows.
            *level = if *weight > 0.0 { (free / weight).min(f64::MAX) } else { f64::INFINITY };
        }
        lowest.copy_from_slice(levels);
        for Edge { from, to, .. } in edges {
            let (from, to) = (*from as usize, *to as usize);
            lowest[from] = lowest[from].min(levels[to]);
            lowest[to] = lowest[to].min(levels[from]);
        }
        for (level, lowest) in levels.iter_mut().zip(lowest) {
            if *level > *lowest * (1.0 + EQUAL) {
                *level = f64::INFINITY;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the rate of each flow, and the capacities that stay free.
    fn fill(flows: &[(u32, u32, f64)], mut free: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
        let mut filling = Filling::default();
        flows.iter().for_each(|(from, to, weight)| filling.add(*from, *to, *weight));
        (filling.fill(&mut free).to_vec(), free)
    }

    #[test]
    fn a_flow_gets_what_slower_flows_leave() {
        // Ports 0 and 1 are ingress ports, 2 and 3 egress ports. Two flows share port 0, and the second shares port 3
        // with a third one. Port 0 gives 1/2 to each of its flows, so the third flow has the other half of port 3.
        let (rates, free) = fill(&[(0, 2, 1.0), (0, 3, 1.0), (1, 3, 1.0)], vec![1.0; 4]);
        assert_eq!((rates, free), (vec![0.5; 3], vec![0.0, 0.5, 0.5, 0.0]));
        // Three flows share port 0, with 1/3 each; 2/3 of port 3 remain for the flow from port 1.
        let flows = [(0, 2, 1.0), (0, 2, 1.0), (0, 3, 1.0), (1, 3, 1.0)];
        let (rates, _) = fill(&flows, vec![1.0; 4]);
        assert!((rates[3] - 2.0 / 3.0).abs() < 1e-15 && (rates[0] - 1.0 / 3.0).abs() < 1e-15, "{rates:?}");
    }

    #[test]
    fn rates_at_a_busy_port_are_in_the_ratio_of_weights() {
        assert_eq!(fill(&[(0, 2, 3.0), (0, 3, 1.0)], vec![1.0, 1.0, 1.0, 1.0]).0, [0.75, 0.25]);
        // Port 2 has 0.5, so the first flow leaves 0.5 to the other.
        assert_eq!(fill(&[(0, 2, 3.0), (0, 3, 1.0)], vec![1.0, 1.0, 0.5, 1.0]).0, [0.5, 0.5]);
    }

    proptest! {
        /// Max-min fairness: each flow has a busy port at which no flow has a higher rate per weight.
        #[test]
        fn each_flow_has_a_bottleneck(
            flows in prop::collection::vec((0..5_u32, 5..10_u32, 0.1..10.0), 1..40),
            capacities in prop::collection::vec(0.01..1.0, 10),
        ) {
            let (rates, free) = fill(&flows, capacities);
            for (flow, rate) in flows.iter().zip(&rates) {
                let is_bottleneck = |port: u32| {
                    let has = |other: &(u32, u32, f64)| other.0 == port || other.1 == port;
                    let others = flows.iter().zip(&rates).filter(|(other, _)| has(other));
                    let highest = others.map(|(other, rate)| rate / other.2).fold(0.0, f64::max);
                    free[port as usize] < 1e-9 && highest <= rate / flow.2 * (1.0 + 1e-9)
                };
                prop_assert!(is_bottleneck(flow.0) || is_bottleneck(flow.1), "{flows:?}: {rates:?}");
            }
        }
    }
}
