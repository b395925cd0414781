//! Flows of a coflow, which can be accessed by ingress port and by egress port.

use std::sync::Arc;

use super::fabric::{Fabric, NONE};
use crate::workload::Coflow;

/// Entry of an egress port for one of its flows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Number of the flow.
    pub(super) flow: u32,
    /// Ingress port.
    pub(super) from: u32,
}

/// Links between racks that the flows of a coflow use. Ports and links are indices of the coflow's resources.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// Rack of each port, or [`NONE`].
    racks: Vec<u32>,
    /// Link of each port, or [`NONE`].
    links: Vec<u32>,
}

impl Links {
    /// Returns the links that a flow uses.
    pub(super) fn between(&self, from: usize, to: usize) -> impl Iterator<Item = usize> + use<> {
        let is_within = self.racks[from] == self.racks[to];
        let pair = if is_within { [NONE; 2] } else { [self.links[from], self.links[to]] };
        pair.into_iter().filter(|link| *link != NONE).map(|link| link as usize)
    }
}

/// Returns the lowest value of the resources that a flow uses. `values` has one value for each resource of a coflow.
pub(super) fn lowest(links: Option<&Links>, values: &[f64], from: usize, to: usize) -> f64 {
    let lowest = values[from].min(values[to]);
    match links {
        None => lowest,
        Some(links) => links.between(from, to).map(|link| values[link]).fold(lowest, f64::min),
    }
}

/// Flows of a coflow, sorted by ingress port. Ports are indices of the coflow's ports, with ingress ports first. A
/// complete flow remains in the table with 0 bytes until more than half of the flows are complete, so that loops over
/// flows need no branches.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Egress port of each flow.
    to: Vec<u32>,
    /// Remaining time of each flow in seconds at the full rate of a port, divided by the scale of the coflow.
    left: Vec<f64>,
    /// Index of the first flow of each ingress port, followed by the number of flows.
    rows: Vec<u32>,
    /// Flows by egress port.
    entries: Vec<Entry>,
    /// Index of the first entry of each egress port, followed by the number of entries.
    columns: Vec<u32>,
    /// Number of flows that are not complete.
    open: usize,
    /// Links between racks; `None` if no flow uses one.
    links: Option<Arc<Links>>,
}

impl Table {
    /// Creates the table of a coflow before any of its bytes are sent. `loads` are the resources of `fabric` that the
    /// coflow uses.
    pub(super) fn new(coflow: &Coflow, fabric: &Fabric, loads: &[(usize, f64)]) -> Self {
        let ports = fabric.ports;
        let mut local = vec![NONE; fabric.resources()];
        loads.iter().enumerate().for_each(|(at, (port, _))| local[*port] = at as u32);
        let ingress = loads.iter().take_while(|(port, _)| *port < ports).count();
        let both = loads.iter().take_while(|(port, _)| *port < 2 * ports).count();
        let mut flows: Vec<(u32, u32, f64)> = coflow
            .flows()
            .iter()
            .map(|flow| (local[flow.from], local[ports + flow.to], flow.size / fabric.capacity))
            .collect();
        // Files list most coflows in this order, for which a stable sort takes linear time.
        flows.sort_by_key(|(from, _, _)| *from);
        let mut table = Self::of((ingress, both - ingress), &flows);
        if loads.len() > both {
            let of_ports = || loads[..both].iter().map(|(port, _)| *port);
            let links = of_ports().map(|port| fabric.link(port));
            let links = links.map(|link| local.get(link as usize).copied().unwrap_or(NONE)).collect();
            let racks = of_ports().map(|port| fabric.rack(port % ports)).collect();
            table.links = Some(Arc::new(Links { racks, links }));
        }
        table
    }

    /// Creates a table of flows, which must be sorted by ingress port. Each flow is given as its ingress port, its
    /// egress port and its remaining time in seconds. The egress ports are numbered from `ingress`, the number of
    /// ingress ports.
    pub(super) fn of((ingress, egress): (usize, usize), flows: &[(u32, u32, f64)]) -> Self {
        let mut rows = vec![0; ingress + 1];
        let mut columns = vec![0; egress + 1];
        for (from, to, _) in flows {
            rows[*from as usize + 1] += 1;
            columns[*to as usize - ingress + 1] += 1;
        }
        for begins in [&mut rows, &mut columns] {
            (1..begins.len()).for_each(|at| begins[at] += begins[at - 1]);
        }
        let mut next = columns.clone();
        let mut entries = vec![Entry { flow: 0, from: 0 }; flows.len()];
        for (flow, (from, to, _)) in (0..).zip(flows) {
            let place = &mut next[*to as usize - ingress];
            entries[*place as usize] = Entry { flow, from: *from };
            *place += 1;
        }
        Self {
            to: flows.iter().map(|(_, to, _)| *to).collect(),
            left: flows.iter().map(|(_, _, left)| *left).collect(),
            rows,
            entries,
            columns,
            open: flows.len(),
            links: None,
        }
    }

    /// Returns the number of ingress ports.
    pub(super) fn ingress(&self) -> usize {
        self.rows.len() - 1
    }

    /// Returns the number of egress ports.
    pub(super) fn egress(&self) -> usize {
        self.columns.len() - 1
    }

    /// Returns the links between racks; `None` if no flow uses one.
    pub(super) fn links(&self) -> Option<&Arc<Links>> {
        self.links.as_ref()
    }

    /// Calls `visit` for each flow with its ingress port, its egress port and its remaining time, in seconds before the
    /// scale is applied. Flows have the order of the table.
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize, usize, f64)) {
        for from in 0..self.ingress() {
            let (to, left) = self.row(from);
            to.iter().zip(left).for_each(|(to, left)| visit(from, *to as usize, *left));
        }
    }

    /// Returns the number of flows that are not complete.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// Returns the egress ports and the remaining times of the flows at an ingress port, in seconds before the scale is
    /// applied.
    pub(super) fn row(&self, from: usize) -> (&[u32], &[f64]) {
        let range = self.rows[from] as usize..self.rows[from + 1] as usize;
        (&self.to[range.clone()], &self.left[range])
    }

    /// Returns the egress ports and the remaining times of the flows at an ingress port, in seconds before the scale is
    /// applied; the times can be modified.
    pub(super) fn row_mut(&mut self, from: usize) -> (&[u32], &mut [f64]) {
        let range = self.rows[from] as usize..self.rows[from + 1] as usize;
        (&self.to[range.clone()], &mut self.left[range])
    }

    /// Returns the flows at an egress port.
    pub(super) fn column(&self, to: usize) -> &[Entry] {
        let column = to - self.ingress();
        &self.entries[self.columns[column] as usize..self.columns[column + 1] as usize]
    }

    /// Returns the remaining time of a flow, in seconds before the scale is applied.
    pub(super) fn left(&self, flow: u32) -> f64 {
        self.left[flow as usize]
    }

    /// Counts `flows` further flows as complete. The caller must have set their remaining times to 0.
    pub(super) fn complete(&mut self, flows: usize) {
        self.open -= flows;
        if flows > 0 && 2 * self.open < self.left.len() {
            let rows = (0..self.ingress()).map(|from| (from, self.row(from)));
            let all = rows.flat_map(|(from, (to, left))| {
                to.iter().zip(left).map(move |(to, left)| (from as u32, *to, *left))
            });
            let open: Vec<_> = all.filter(|(_, _, left)| *left > 0.0).collect();
            let links = self.links.take();
            *self = Self { links, ..Self::of((self.ingress(), self.egress()), &open) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all flows, once as found by rows and once as found by columns.
    fn flows(table: &Table) -> [Vec<(u32, u32, f64)>; 2] {
        let mut by_row = Vec::new();
        for from in 0..table.ingress() {
            let (to, left) = table.row(from);
            by_row.extend(to.iter().zip(left).map(|(to, left)| (from as u32, *to, *left)));
        }
        let mut by_column = Vec::new();
        for to in table.ingress()..table.ingress() + table.egress() {
            let entries = table.column(to).iter();
            by_column.extend(entries.map(|entry| (entry.from, to as u32, table.left(entry.flow))));
        }
        by_column.sort_by_key(|(from, to, _)| (*from, *to));
        [by_row, by_column]
    }

    #[test]
    fn rows_and_columns_have_the_same_flows() {
        let all = [(0, 2, 1.0), (0, 3, 2.0), (1, 2, 3.0), (1, 4, 4.0)];
        let mut table = Table::of((2, 3), &all);
        assert_eq!(flows(&table), [all.to_vec(), all.to_vec()]);
        table.row_mut(0).1.fill(0.0);
        table.complete(2);
        assert_eq!((table.open(), flows(&table)[0].len()), (2, 4));
        table.row_mut(1).1[0] = 0.0;
        table.complete(1);
        assert_eq!((table.open(), flows(&table)), (1, [all[3..].to_vec(), all[3..].to_vec()]));
    }
}
