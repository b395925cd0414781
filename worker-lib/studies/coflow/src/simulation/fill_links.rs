//! Progressive filling in a fabric with racks, in which a flow may use two links in addition to its two ports.
//!
//! The rate of a flow is its weight multiplied by the lowest level of all resources that it uses.

use super::fill::{EQUAL, Filling, Member, Phase, Ports, Weight};

/// Resources that a flow uses.
#[derive(Clone, Copy, Debug)]
struct Path {
    resources: [usize; 4],
    len: usize,
}

impl Path {
    fn resources(&self) -> &[usize] {
        &self.resources[..self.len]
    }
}

impl<P: Ports> Member<'_, P> {
    /// Calls `visit` for each flow whose weight is not 0, with the resources that it uses and the weight.
    fn for_each_path<W: Weight>(self, mut visit: impl FnMut(Path, f64)) {
        let links = self.table.links();
        self.table.for_each(|from, to, left| {
            let weight = W::of(left);
            if weight == 0.0 {
                return;
            }
            let mut path = Path { resources: [self.port(from), self.port(to), 0, 0], len: 2 };
            for link in links.iter().flat_map(|links| links.between(from, to)) {
                path.resources[path.len] = self.port(link);
                path.len += 1;
            }
            visit(path, weight);
        });
    }
}

impl Filling {
    /// Does the same as [`Filling::fill`] for flows that may use links between racks.
    ///
    /// Each round visits all flows and recomputes all sums of weights, so no rounding errors accumulate. The lowest
    /// level of an open resource is always that of a bottleneck, so each round finds at least one.
    pub(super) fn fill_linked<'a, W: Weight, P: Ports + 'a>(
        &mut self,
        members: &(impl Iterator<Item = Member<'a, P>> + Clone),
        (free, least): (&mut [f64], f64),
    ) -> bool {
        self.clear(free, least);
        self.weigh_paths::<W, _>(members.clone());
        let mut highest: f64 = 0.0;
        while self.set_all_levels(free) {
            self.lowest_of_paths::<W, _>(members.clone());
            for (resource, lowest) in self.lowest.iter().enumerate() {
                if self.weights[resource] > 0.0 && self.levels[resource] <= lowest * (1.0 + EQUAL) {
                    self.phases[resource] = Phase::New;
                    free[resource] = 0.0;
                    highest = highest.max(self.levels[resource]);
                }
            }
            self.fix_paths::<W, _>(members.clone(), free);
            for phase in &mut self.phases {
                if *phase == Phase::New {
                    *phase = Phase::Fixed;
                }
            }
            self.weigh_paths::<W, _>(members.clone());
        }
        for (level, phase) in self.levels.iter_mut().zip(&self.phases) {
            if *phase == Phase::Open {
                *level = highest;
            }
        }
        highest > 0.0
    }

    /// Computes, for each resource, the sum of the weights of its flows whose resources are all open.
    fn weigh_paths<'a, W: Weight, P: Ports + 'a>(&mut self, members: impl Iterator<Item = Member<'a, P>>) {
        let Self { phases, weights, .. } = self;
        weights.fill(0.0);
        for member in members {
            member.for_each_path::<W>(|path, weight| {
                if path.resources().iter().all(|resource| phases[*resource] == Phase::Open) {
                    path.resources().iter().for_each(|resource| weights[*resource] += weight);
                }
            });
        }
    }

    /// Computes the level of each open resource. Returns whether there are flows whose resources are all open.
    fn set_all_levels(&mut self, free: &[f64]) -> bool {
        for (resource, free) in free.iter().enumerate() {
            if self.phases[resource] == Phase::Open {
                let weight = self.weights[resource];
                self.levels[resource] =
                    if weight > 0.0 { (free / weight).min(f64::MAX) } else { f64::INFINITY };
            }
        }
        self.weights.iter().any(|weight| *weight > 0.0)
    }

    /// Sets, for each resource, the lowest level of the open resources with which it shares a flow.
    fn lowest_of_paths<'a, W: Weight, P: Ports + 'a>(
        &mut self,
        members: impl Iterator<Item = Member<'a, P>>,
    ) {
        let Self { phases, levels, lowest, .. } = self;
        lowest.fill(f64::INFINITY);
        for member in members {
            member.for_each_path::<W>(|path, _| {
                let resources = path.resources();
                if resources.iter().all(|resource| phases[*resource] == Phase::Open) {
                    let of_path = resources.iter().map(|it| levels[*it]).fold(f64::INFINITY, f64::min);
                    resources.iter().for_each(|it| lowest[*it] = lowest[*it].min(of_path));
                }
            });
        }
    }

    /// Fixes the rates of the flows that use a new bottleneck, and subtracts these rates from the free capacities of
    /// the open resources.
    fn fix_paths<'a, W: Weight, P: Ports + 'a>(
        &mut self,
        members: impl Iterator<Item = Member<'a, P>>,
        free: &mut [f64],
    ) {
        let Self { phases, levels, pinned, .. } = self;
        for member in members {
            member.for_each_path::<W>(|path, weight| {
                let resources = path.resources();
                if resources.iter().any(|resource| phases[*resource] == Phase::Fixed) {
                    return;
                }
                let new = resources.iter().copied().filter(|resource| phases[*resource] == Phase::New);
                let Some(bottleneck) = new.min_by(|a, b| levels[*a].total_cmp(&levels[*b])) else { return };
                let rate = levels[bottleneck] * weight;
                pinned[bottleneck] += rate;
                for resource in resources.iter().filter(|resource| phases[**resource] == Phase::Open) {
                    free[*resource] = (free[*resource] - rate).max(0.0);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fill::{Local, Remaining, Same};
    use super::super::table::Table;
    use super::super::{Fabric, Rack, Rates};
    use super::*;
    use crate::inputs::GBIT;
    use crate::workload::{Coflow, Flow};
    use proptest::prelude::*;

    const PORTS: usize = 6;

    /// Returns a fabric with two racks of two ports each; two ports have no rack.
    fn fabric(gbit: &[f64], uplinks: (f64, f64)) -> Fabric {
        let rack = |name: &str, ports: [usize; 2], gbit| Rack {
            name: name.to_owned(),
            ports: ports.to_vec(),
            uplink_gbit: gbit,
            downlink_gbit: gbit,
        };
        let racks = [rack("a", [0, 1], uplinks.0), rack("b", [2, 3], uplinks.1)];
        Fabric::of_rates(&gbit[..PORTS], &gbit[PORTS..], &racks, Rates::Backfill).unwrap()
    }

    /// Returns the max-min fair rate of each flow, computed one bottleneck at a time. Each flow is given as the list of
    /// its resources and its weight.
    fn one_by_one(flows: &[(Vec<usize>, f64)], mut free: Vec<f64>) -> Vec<f64> {
        let mut rates = vec![None; flows.len()];
        while rates.contains(&None) {
            let level = |resource: usize| {
                let open = flows
                    .iter()
                    .zip(&rates)
                    .filter(|((path, _), rate)| rate.is_none() && path.contains(&resource));
                let weight: f64 = open.map(|((_, weight), _)| weight).sum();
                if weight > 0.0 { free[resource] / weight } else { f64::INFINITY }
            };
            let levels: Vec<f64> = (0..free.len()).map(level).collect();
            let next = (0..free.len()).min_by(|a, b| levels[*a].total_cmp(&levels[*b])).unwrap();
            for ((path, weight), rate) in flows.iter().zip(&mut rates) {
                if rate.is_none() && path.contains(&next) {
                    *rate = Some(levels[next] * weight);
                    path.iter().for_each(|resource| free[*resource] -= levels[next] * weight);
                }
            }
        }
        rates.into_iter().flatten().collect()
    }

    fn check<W: Weight>(fabric: &Fabric, flows: &[(usize, usize, f64)]) {
        let flow =
            |(from, to, weight): &(usize, usize, f64)| Flow { from: *from, to: *to, size: weight * GBIT };
        let coflow = Coflow::new(PORTS, flows.iter().map(flow).collect()).unwrap();
        let loads = fabric.loads(&coflow);
        let table = Table::new(&coflow, fabric, &loads);
        let mut free: Vec<f64> = loads.iter().map(|(resource, _)| fabric.relative(*resource)).collect();
        let mut filling = Filling::default();
        let members = std::iter::once(Member { table: &table, counts: &[], ports: Local });
        filling.fill_linked::<W, _>(&members, (&mut free, 0.0));
        let mut got = Vec::new();
        let of_links = table.links().map(|links| &**links);
        table.for_each(|from, to, left| {
            got.push(W::of(left) * super::super::table::lowest(of_links, filling.levels(), from, to));
        });
        let mut sorted = flows.to_vec();
        sorted.sort_by_key(|(from, _, _)| *from);
        let path = |(from, to, weight): &(usize, usize, f64)| {
            let resources = [*from, PORTS + to].into_iter().chain(fabric.links(*from, *to)).collect();
            (resources, W::of(weight * GBIT / fabric.capacity))
        };
        let paths: Vec<_> = sorted.iter().map(path).collect();
        let free = (0..fabric.resources()).map(|it| fabric.relative(it)).collect();
        let want = one_by_one(&paths, free);
        let near = got.iter().zip(&want).all(|(got, want)| (got - want).abs() < 1e-9 * want.max(1e-3));
        assert!(near, "{got:?}, expected {want:?}");
    }

    proptest! {
        #[test]
        fn rates_match_those_found_one_bottleneck_at_a_time(
            flows in prop::collection::vec((0..PORTS, 0..PORTS, 0.1..10.0), 1..30),
            gbit in prop::collection::vec(0.5..4.0, 2 * PORTS),
            uplinks in (0.2..5.0, 0.2..5.0),
        ) {
            let fabric = fabric(&gbit, uplinks);
            check::<Same>(&fabric, &flows);
            check::<Remaining>(&fabric, &flows);
        }
    }
}
