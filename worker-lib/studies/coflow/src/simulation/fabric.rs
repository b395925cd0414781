//! Fabrics: ports of equal or unequal rates, and racks whose ports share links to the core.

use std::borrow::Cow;
use std::sync::Arc;

use super::Rates;
use crate::inputs::GBIT;
use crate::workload::{Coflow, Job, PORTS_MAX};
use iswitch_study::StudyError;
use iswitch_study::error::check_range;

/// Valid rates of a port or a link, in Gbit/s.
pub const GBIT_RANGE: std::ops::RangeInclusive<f64> = 1e-3..=1e6;
/// Marks a port without a rack, or without a link that could limit its flows.
pub(super) const NONE: u32 = u32::MAX;

/// Fabric: ports at which flows enter and leave, and the links of racks, if any. Nothing else limits flows.
///
/// Anything that limits flows is called a resource. Resources are numbered: first the ingress ports, then the egress
/// ports, then the links of racks.
#[derive(Clone, Debug, PartialEq)]
pub struct Fabric {
    /// Number of ingress ports, equal to the number of egress ports.
    pub ports: usize,
    /// Capacity of each port, in bytes per second; with a `network`, the capacity of the slowest resource.
    pub capacity: f64,
    /// Model of the rates of flows.
    pub rates: Rates,
    /// Unequal ports and racks; `None` if all ports have the same capacity and nothing else limits flows.
    pub network: Option<Arc<Network>>,
}

/// Rates of unequal ports, and racks. [`Fabric::of_rates`] creates it.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Rate of each resource, as a multiple of the fabric's capacity.
    pub(super) relative: Vec<f64>,
    /// Rack of each port, with shape `[ports]`, or [`NONE`].
    pub(super) racks: Vec<u32>,
    /// Link that a flow uses when it leaves the rack of its ingress port or enters that of its egress port, with shape
    /// `[2 * ports]`; [`NONE`] if the port has no rack or if the link is never the bottleneck.
    pub(super) links: Vec<u32>,
}

/// Rack of ports that share a link to the core and a link from the core. Flows within the rack use neither.
#[derive(Clone, Debug, PartialEq)]
pub struct Rack {
    /// Name, for error messages.
    pub name: String,
    /// Numbers of the ports. For each number, both the ingress port and the egress port are in the rack.
    pub ports: Vec<usize>,
    /// Rate, in Gbit/s, of the link to the core. All flows that leave the rack share this link.
    pub uplink_gbit: f64,
    /// Rate, in Gbit/s, of the link from the core. All flows that enter the rack share this link.
    pub downlink_gbit: f64,
}

impl Fabric {
    /// Creates a fabric of equal ports with per-flow rates and backfilling. `capacity` is in bytes per second.
    pub const fn new(ports: usize, capacity: f64) -> Self {
        Self { ports, capacity, rates: Rates::Backfill, network: None }
    }

    /// Creates a fabric from the rates of its ingress ports and of its egress ports, both with shape `[ports]` and in
    /// Gbit/s, and from its racks. If all ports have the same rate and no link can limit flows, the result is the same
    /// as that of [`Self::new`].
    ///
    /// # Errors
    /// Fails if the numbers of ingress and egress ports differ, if a rate is out of range, if a rack contains an
    /// unknown port, or if a port is in two racks.
    pub fn of_rates(
        ingress_gbit: &[f64],
        egress_gbit: &[f64],
        racks: &[Rack],
        rates: Rates,
    ) -> Result<Self, StudyError> {
        let ports = ingress_gbit.len();
        if !(1..=PORTS_MAX).contains(&ports) {
            return Err(StudyError::field("ports of a fabric", ports, format!("1 to {PORTS_MAX}")));
        }
        if egress_gbit.len() != ports {
            let expected = format!("{ports}, the number of ingress ports");
            return Err(StudyError::field("number of egress ports", egress_gbit.len(), expected));
        }
        let mut all = Vec::with_capacity(2 * ports);
        for (side, gbit) in [("ingress_gbit", ingress_gbit), ("egress_gbit", egress_gbit)] {
            for (port, gbit) in gbit.iter().enumerate() {
                all.push(check_range(format!("{side} of port {port}"), *gbit, GBIT_RANGE, "Gbit/s")?);
            }
        }
        let mut network = Network { relative: all, racks: vec![NONE; ports], links: vec![NONE; 2 * ports] };
        for (number, rack) in racks.iter().enumerate() {
            network.add(number, rack, racks)?;
        }
        let slowest = network.relative.iter().copied().fold(f64::INFINITY, f64::min);
        network.relative.iter_mut().for_each(|rate| *rate /= slowest);
        let is_uniform =
            network.relative.len() == 2 * ports && network.relative.iter().all(|rate| *rate == 1.0);
        let network = (!is_uniform).then(|| Arc::new(network));
        Ok(Self { ports, capacity: slowest * GBIT, rates, network })
    }

    /// Returns the number of resources: ingress ports, egress ports, and links that can limit flows.
    pub fn resources(&self) -> usize {
        self.network.as_ref().map_or(2 * self.ports, |network| network.relative.len())
    }

    /// Returns the capacity of a resource, as a multiple of the fabric's capacity.
    ///
    /// # Panics
    /// Panics if the resource does not exist.
    pub fn relative(&self, resource: usize) -> f64 {
        self.network.as_ref().map_or(1.0, |network| network.relative[resource])
    }

    /// Returns the links between racks that a flow from an ingress to an egress port uses.
    pub fn links(&self, from: usize, to: usize) -> impl Iterator<Item = usize> + use<> {
        let pair = match &self.network {
            Some(network) if network.racks[from] != network.racks[to] => {
                [network.links[from], network.links[self.ports + to]]
            }
            _ => [NONE; 2],
        };
        pair.into_iter().filter(|link| *link != NONE).map(|link| link as usize)
    }

    /// Returns the rack of a port, or `None` if it has none.
    pub fn rack_of(&self, port: usize) -> Option<usize> {
        Some(self.rack(port)).filter(|rack| *rack != NONE).map(|rack| rack as usize)
    }

    /// Returns the link that the flows at a port use when they leave or enter its rack, or `None` if no such link can
    /// limit them. `resource` is the number of the port among the resources.
    pub fn link_of(&self, resource: usize) -> Option<usize> {
        Some(self.link(resource)).filter(|link| *link != NONE).map(|link| link as usize)
    }

    /// Returns the resources that a coflow uses, in ascending order, and the number of its bytes at each of them.
    pub fn loads<'a>(&self, coflow: &'a Coflow) -> Cow<'a, [(usize, f64)]> {
        let links = self.resources() - 2 * self.ports;
        if links == 0 {
            return Cow::Borrowed(coflow.loads());
        }
        let mut bytes = vec![0.0; links];
        for flow in coflow.flows() {
            self.links(flow.from, flow.to).for_each(|link| bytes[link - 2 * self.ports] += flow.size);
        }
        let of_links = bytes.into_iter().enumerate().filter(|(_, bytes)| *bytes > 0.0);
        let of_links = of_links.map(|(link, bytes)| (2 * self.ports + link, bytes));
        Cow::Owned(coflow.loads().iter().copied().chain(of_links).collect())
    }

    /// Returns the resources that a coflow uses, in ascending order, and the time that the coflow needs at each of them
    /// at full rate, in seconds.
    pub fn times(&self, coflow: &Coflow) -> Vec<(usize, f64)> {
        let time =
            |(resource, bytes): &(usize, f64)| (*resource, bytes / self.relative(*resource) / self.capacity);
        self.loads(coflow).iter().map(time).collect()
    }

    /// Returns the isolated time of a coflow: the time that it needs at its busiest resource, in seconds.
    pub fn isolated(&self, coflow: &Coflow) -> f64 {
        self.equivalent(coflow) / self.capacity
    }

    /// Returns the time along the longest path from each coflow of a job to the end of the job, in seconds. The time of
    /// a path is the sum of the isolated times of its coflows, including the first one.
    pub fn paths(&self, job: &Job) -> Vec<f64> {
        let mut paths = self.paths_bytes(job);
        paths.iter_mut().for_each(|path| *path /= self.capacity);
        paths
    }

    /// Returns the same as [`Self::paths`], as the number of bytes that a resource with the fabric's capacity would
    /// send in this time.
    pub(crate) fn paths_bytes(&self, job: &Job) -> Vec<f64> {
        job.paths_of(|coflow| self.equivalent(coflow))
    }

    /// Returns the number of bytes that a resource with the fabric's capacity would send in the isolated time of a
    /// coflow.
    fn equivalent(&self, coflow: &Coflow) -> f64 {
        let bytes = |(resource, bytes): &(usize, f64)| bytes / self.relative(*resource);
        self.loads(coflow).iter().map(bytes).fold(0.0, f64::max)
    }

    /// Sets `free` to the capacity of each resource, as a multiple of the fabric's capacity.
    pub(super) fn fill_free(&self, free: &mut Vec<f64>) {
        free.clear();
        match &self.network {
            Some(network) => free.extend_from_slice(&network.relative),
            None => free.resize(2 * self.ports, 1.0),
        }
    }

    /// Returns the rack of a port, or [`NONE`].
    pub(super) fn rack(&self, port: usize) -> u32 {
        self.network.as_ref().map_or(NONE, |network| network.racks[port])
    }

    /// Returns the link that flows use when they leave or enter the rack of a port, or [`NONE`]. `resource` is the
    /// number of the port among the resources.
    pub(super) fn link(&self, resource: usize) -> u32 {
        self.network.as_ref().map_or(NONE, |network| network.links[resource])
    }
}

impl Network {
    /// Adds a rack. Rates are in Gbit/s until all racks have been added.
    fn add(&mut self, number: usize, rack: &Rack, racks: &[Rack]) -> Result<(), StudyError> {
        let name = &rack.name;
        let ports = self.racks.len();
        for port in &rack.ports {
            let Some(of_port) = self.racks.get_mut(*port) else {
                let expected = format!("0 to {}", ports - 1);
                return Err(StudyError::field(format!("port of rack {name}"), port, expected));
            };
            if *of_port != NONE {
                let expected =
                    format!("a port that is not in rack {} as well", racks[*of_port as usize].name);
                return Err(StudyError::field(format!("port of rack {name}"), port, expected));
            }
            *of_port = number as u32;
        }
        let sides = [("uplink_gbit", rack.uplink_gbit, 0), ("downlink_gbit", rack.downlink_gbit, ports)];
        for (field, gbit, offset) in sides {
            let gbit = check_range(format!("{field} of rack {name}"), gbit, GBIT_RANGE, "Gbit/s")?;
            let of_ports: f64 = rack.ports.iter().map(|port| self.relative[offset + port]).sum();
            // A link that is at least as fast as all ports of the rack together never limits flows.
            if gbit < of_ports {
                let link = self.relative.len() as u32;
                rack.ports.iter().for_each(|port| self.links[offset + port] = link);
                self.relative.push(gbit);
            }
        }
        Ok(())
    }

    /// Returns the number of links that can limit flows.
    pub fn links(&self) -> usize {
        self.relative.len() - self.links.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Flow;

    fn rack(name: &str, ports: &[usize], gbit: f64) -> Rack {
        Rack { name: name.to_owned(), ports: ports.to_vec(), uplink_gbit: gbit, downlink_gbit: gbit }
    }

    fn of(gbit: &[f64], racks: &[Rack]) -> Result<Fabric, StudyError> {
        Fabric::of_rates(gbit, gbit, racks, Rates::Backfill)
    }

    #[test]
    fn equal_ports_with_links_that_never_limit_flows_are_a_plain_fabric() {
        let racks = [rack("a", &[0, 1], 20.0), rack("b", &[2], 15.0)];
        assert_eq!(of(&[10.0; 4], &racks).unwrap(), Fabric::new(4, 10.0 * GBIT));
    }

    #[test]
    fn only_flows_between_racks_use_links() {
        let fabric = of(&[2.0; 5], &[rack("a", &[0, 1], 1.0), rack("b", &[2, 3], 3.0)]).unwrap();
        let links = |from, to| fabric.links(from, to).collect::<Vec<_>>();
        assert_eq!((fabric.resources(), fabric.capacity), (14, GBIT));
        assert_eq!((links(0, 1), links(0, 0), links(4, 4)), (vec![], vec![], vec![]));
        // Links 10 and 11 are the uplink and the downlink of rack a; 12 and 13 are those of rack b. Port 4 has no rack.
        assert_eq!((links(0, 3), links(3, 0)), (vec![10, 13], vec![12, 11]));
        assert_eq!((links(1, 4), links(4, 2)), (vec![10], vec![13]));
        let coflow = [(0, 3, 1e9), (1, 0, 2e9), (1, 4, 4e9)].map(|(from, to, size)| Flow { from, to, size });
        let coflow = Coflow::new(5, coflow.to_vec()).unwrap();
        let loads = [(0, 1e9), (1, 6e9), (5, 2e9), (8, 1e9), (9, 4e9), (10, 5e9), (13, 1e9)];
        assert_eq!(fabric.loads(&coflow).into_owned(), loads);
        // 5 GB at the uplink of 1 Gbit/s take longer than 6 GB at a port of 2 Gbit/s.
        assert_eq!(fabric.isolated(&coflow), 40.0);
    }

    #[test]
    fn invalid_fabrics_are_refused_by_name() {
        let text = |gbit: &[f64], racks: &[Rack]| of(gbit, racks).unwrap_err().to_string();
        for (got, want) in [
            (text(&[1.0, 0.0], &[]), "ingress_gbit of port 1 is 0, expected 0.001 to 1000000 Gbit/s"),
            (text(&[], &[]), "ports of a fabric is 0, expected 1 to 65536"),
            (text(&[1.0; 2], &[rack("a", &[2], 1.0)]), "port of rack a is 2, expected 0 to 1"),
            (
                text(&[1.0; 2], &[rack("a", &[0, 1], 1.0), rack("b", &[1], 1.0)]),
                "port of rack b is 1, expected a port that is not in rack a as well",
            ),
            (
                text(&[1.0; 2], &[rack("a", &[0], -1.0)]),
                "uplink_gbit of rack a is -1, expected 0.001 to 1000000 Gbit/s",
            ),
        ] {
            assert_eq!(got, want);
        }
        let uneven = Fabric::of_rates(&[1.0; 2], &[1.0; 3], &[], Rates::Backfill).unwrap_err().to_string();
        assert_eq!(uneven, "number of egress ports is 3, expected 2, the number of ingress ports");
    }
}
