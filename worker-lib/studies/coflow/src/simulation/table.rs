//! Flows of a coflow, which can be accessed by ingress port and by egress port.

use std::sync::Arc;

use super::fabric::{Fabric, NONE};
use super::grid::Grid;
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

/// Flows of a coflow, sorted by ingress port; those of a matrix are also sorted by egress port. Ports are indices of
/// the coflow's ports, with ingress ports first. A complete flow remains in the table with 0 bytes for some time, so
/// that loops over flows need no branches.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Number of ingress ports.
    ingress: usize,
    /// Number of egress ports.
    egress: usize,
    flows: Flows,
    /// Number of flows that are not complete.
    open: usize,
    /// Links between racks; `None` if no flow uses one.
    links: Option<Arc<Links>>,
}

/// Remaining times of flows, in seconds at the full rate of a port, divided by the scale of the coflow.
#[derive(Clone, Debug)]
pub(super) enum Flows {
    /// List of flows.
    List(List),
    /// Matrix with one line for each egress port and one column for each ingress port, if most pairs of ports have a
    /// flow.
    Grid(Grid),
}

/// List of flows, at most half of which are complete.
#[derive(Clone, Debug)]
pub(super) struct List {
    /// Remaining time of each flow.
    left: Vec<f64>,
    index: Arc<Index>,
}

/// Flows of a list by port.
#[derive(Debug)]
struct Index {
    /// Egress port of each flow.
    to: Vec<u32>,
    /// Index of the first flow of each ingress port, followed by the number of flows.
    rows: Vec<u32>,
    /// Flows by egress port.
    entries: Vec<Entry>,
    /// Index of the first entry of each egress port, followed by the number of entries.
    columns: Vec<u32>,
}

/// A matrix is replaced with a list once its size exceeds this multiple of the number of its incomplete flows.
const SPARSE: usize = 8;

impl Table {
    /// Creates the table of a coflow before any of its bytes are sent. `loads` are the resources of `fabric` that the
    /// coflow uses.
    pub(super) fn new(coflow: &Coflow, fabric: &Fabric, loads: &[(usize, f64)]) -> Self {
        let ports = fabric.ports;
        let mut local = vec![NONE; fabric.resources()];
        loads.iter().enumerate().for_each(|(at, (port, _))| local[*port] = at as u32);
        let ingress = loads.iter().take_while(|(port, _)| *port < ports).count();
        let both = loads.iter().take_while(|(port, _)| *port < 2 * ports).count();
        let flows: Vec<(u32, u32, f64)> = coflow
            .flows()
            .iter()
            .map(|flow| (local[flow.from], local[ports + flow.to], flow.size / fabric.capacity))
            .collect();
        if loads.len() == both {
            return Self::of((ingress, both - ingress), flows);
        }
        let of_ports = || loads[..both].iter().map(|(port, _)| *port);
        let links = of_ports().map(|port| fabric.link(port));
        let links = links.map(|link| local.get(link as usize).copied().unwrap_or(NONE)).collect();
        let racks = of_ports().map(|port| fabric.rack(port % ports)).collect();
        let table = Self::of_list((ingress, both - ingress), flows);
        Self { links: Some(Arc::new(Links { racks, links })), ..table }
    }

    /// Creates a table of flows, each of which is given as its ingress port, its egress port and its remaining time in
    /// seconds. The egress ports are numbered from `ingress`, the number of ingress ports.
    pub(super) fn of((ingress, egress): (usize, usize), flows: Vec<(u32, u32, f64)>) -> Self {
        let Some(grid) = Grid::of((ingress, egress), &flows) else {
            return Self::of_list((ingress, egress), flows);
        };
        Self { ingress, egress, flows: Flows::Grid(grid), open: flows.len(), links: None }
    }

    /// Does the same as [`Self::of`], but always creates a list.
    fn of_list((ingress, egress): (usize, usize), mut flows: Vec<(u32, u32, f64)>) -> Self {
        // Files list most coflows in this order, for which a stable sort takes linear time.
        flows.sort_by_key(|(from, _, _)| *from);
        let mut rows = vec![0; ingress + 1];
        let mut columns = vec![0; egress + 1];
        for (from, to, _) in &flows {
            rows[*from as usize + 1] += 1;
            columns[*to as usize - ingress + 1] += 1;
        }
        for begins in [&mut rows, &mut columns] {
            (1..begins.len()).for_each(|at| begins[at] += begins[at - 1]);
        }
        let mut next = columns.clone();
        let mut entries = vec![Entry { flow: 0, from: 0 }; flows.len()];
        for (flow, (from, to, _)) in (0..).zip(&flows) {
            let place = &mut next[*to as usize - ingress];
            entries[*place as usize] = Entry { flow, from: *from };
            *place += 1;
        }
        let to = flows.iter().map(|(_, to, _)| *to).collect();
        let left = flows.iter().map(|(_, _, left)| *left).collect();
        let list = List { left, index: Arc::new(Index { to, rows, entries, columns }) };
        Self { ingress, egress, flows: Flows::List(list), open: flows.len(), links: None }
    }

    /// Returns a table of the incomplete flows that is a list.
    #[cfg(test)]
    pub(super) fn to_list(&self) -> Self {
        let mut open = Vec::new();
        self.for_each(|from, to, left| {
            if left > 0.0 {
                open.push((from as u32, to as u32, left));
            }
        });
        Self::of_list((self.ingress, self.egress), open)
    }

    /// Returns the number of ingress ports.
    pub(super) fn ingress(&self) -> usize {
        self.ingress
    }

    /// Returns the number of egress ports.
    pub(super) fn egress(&self) -> usize {
        self.egress
    }

    /// Returns the remaining times of the flows.
    pub(super) fn flows(&self) -> &Flows {
        &self.flows
    }

    /// Returns the remaining times of the flows, which can be modified.
    pub(super) fn flows_mut(&mut self) -> &mut Flows {
        &mut self.flows
    }

    /// Returns the links between racks; `None` if no flow uses one.
    pub(super) fn links(&self) -> Option<&Arc<Links>> {
        self.links.as_ref()
    }

    /// Calls `visit` for each flow with its ingress port, its egress port and its remaining time, in seconds before the
    /// scale is applied. Flows have the order of the table. A matrix may also contain pairs of ports without a flow,
    /// whose remaining time is 0.
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize, usize, f64)) {
        for from in 0..self.ingress {
            self.for_each_at(from, |to, left| visit(from, to, left));
        }
    }

    /// Calls `visit` for each flow at port `local` with the other port of the flow and its remaining time, as in
    /// [`Self::for_each`].
    pub(super) fn for_each_at(&self, local: usize, mut visit: impl FnMut(usize, f64)) {
        let Self { ingress, egress, .. } = *self;
        match &self.flows {
            Flows::Grid(grid) if local < ingress => {
                (0..egress).for_each(|line| visit(ingress + line, grid.at(local, line)));
            }
            Flows::Grid(grid) => {
                let line = grid.line(local - ingress)[..ingress].iter().enumerate();
                line.for_each(|(from, left)| visit(from, *left));
            }
            Flows::List(list) if local < ingress => {
                let (to, left) = list.row(local);
                to.iter().zip(left).for_each(|(to, left)| visit(*to as usize, *left));
            }
            Flows::List(list) => {
                for entry in list.column(local - ingress) {
                    visit(entry.from as usize, list.left[entry.flow as usize]);
                }
            }
        }
    }

    /// Returns the number of flows that are not complete.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// Counts `flows` further flows as complete. The caller must have set their remaining times to 0.
    pub(super) fn complete(&mut self, flows: usize) {
        self.open -= flows;
        let is_sparse = match &self.flows {
            Flows::List(list) => 2 * self.open < list.left.len(),
            Flows::Grid(grid) => SPARSE * self.open < grid.slots(),
        };
        if flows == 0 || !is_sparse {
            return;
        }
        let mut open = Vec::with_capacity(self.open);
        self.for_each(|from, to, left| {
            if left > 0.0 {
                open.push((from as u32, to as u32, left));
            }
        });
        let links = self.links.take();
        *self = Self { links, ..Self::of_list((self.ingress, self.egress), open) };
    }
}

impl List {
    /// Returns the egress ports and the remaining times of the flows at an ingress port, in seconds before the scale is
    /// applied.
    pub(super) fn row(&self, from: usize) -> (&[u32], &[f64]) {
        let range = self.index.row(from);
        (&self.index.to[range.clone()], &self.left[range])
    }

    /// Returns the same as [`Self::row`]; the times can be modified.
    pub(super) fn row_mut(&mut self, from: usize) -> (&[u32], &mut [f64]) {
        let range = self.index.row(from);
        (&self.index.to[range.clone()], &mut self.left[range])
    }

    /// Returns the flows at an egress port, where 0 is the first one.
    fn column(&self, column: usize) -> &[Entry] {
        let Index { entries, columns, .. } = &*self.index;
        &entries[columns[column] as usize..columns[column + 1] as usize]
    }
}

impl Index {
    fn row(&self, from: usize) -> std::ops::Range<usize> {
        self.rows[from] as usize..self.rows[from + 1] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the incomplete flows, once as found by rows and once as found by columns.
    fn flows(table: &Table) -> [Vec<(u32, u32, f64)>; 2] {
        let (mut by_row, mut by_column) = (Vec::new(), Vec::new());
        for from in 0..table.ingress() {
            table.for_each_at(from, |to, left| by_row.push((from as u32, to as u32, left)));
        }
        for to in table.ingress()..table.ingress() + table.egress() {
            table.for_each_at(to, |from, left| by_column.push((from as u32, to as u32, left)));
        }
        by_column.sort_by_key(|(from, to, _)| (*from, *to));
        [by_row, by_column].map(|flows| flows.into_iter().filter(|(_, _, left)| *left > 0.0).collect())
    }

    /// Completes the flows of an ingress port to its first `columns` egress ports.
    fn complete(table: &mut Table, from: usize, columns: usize) {
        let mut left = Vec::new();
        table.for_each_at(from, |_, seconds| left.push(seconds));
        match table.flows_mut() {
            Flows::List(list) => list.row_mut(from).1[..columns].fill(0.0),
            Flows::Grid(grid) => (0..columns).for_each(|line| grid.clear(line, from)),
        }
        table.complete(left[..columns].iter().filter(|left| **left > 0.0).count());
    }

    #[test]
    fn rows_and_columns_have_the_same_flows() {
        let all = [(0, 2, 1.0), (0, 3, 2.0), (1, 2, 3.0), (1, 4, 4.0)];
        let mut table = Table::of((2, 3), vec![all[2], all[0], all[1], all[3]]);
        assert_eq!(flows(&table), [all.to_vec(), all.to_vec()]);
        complete(&mut table, 0, 2);
        assert_eq!((table.open(), flows(&table)), (2, [all[2..].to_vec(), all[2..].to_vec()]));
        complete(&mut table, 1, 1);
        assert_eq!((table.open(), flows(&table)), (1, [all[3..].to_vec(), all[3..].to_vec()]));
    }

    #[test]
    fn a_matrix_becomes_a_list_when_most_of_its_flows_are_complete() {
        // 12 ingress and four egress ports; one pair has no flow.
        let pairs = (0..12).flat_map(|from| (12..16).map(move |to| (from, to)));
        let all: Vec<_> = pairs.map(|(from, to)| (from, to, f64::from(from + to))).skip(1).collect();
        let mut table = Table::of((12, 4), all.clone());
        assert!(matches!(table.flows(), Flows::Grid(_)));
        assert_eq!(flows(&table), [all.clone(), all.clone()]);
        (0..10).for_each(|from| complete(&mut table, from, 4));
        assert!(matches!(table.flows(), Flows::Grid(_)));
        complete(&mut table, 10, 1);
        assert!(matches!(table.flows(), Flows::List(_)));
        assert_eq!((table.open(), flows(&table)), (7, [all[40..].to_vec(), all[40..].to_vec()]));
    }

    #[test]
    fn two_flows_between_the_same_ports_are_kept_apart() {
        let mut all: Vec<_> = (0..32).map(|flow| (flow / 4, 8 + flow % 4, 1.0)).collect();
        assert!(matches!(Table::of((8, 4), all.clone()).flows(), Flows::Grid(_)));
        all.push(all[5]);
        let table = Table::of((8, 4), all);
        assert!(matches!(table.flows(), Flows::List(_)));
        assert_eq!(flows(&table)[0].len(), 33);
    }
}
