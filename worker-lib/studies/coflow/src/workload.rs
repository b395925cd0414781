//! Coflows, and jobs that consist of coflows.

use iswitch_study::StudyError;

/// Maximum number of ingress ports of a fabric; the maximum number of egress ports is the same.
pub const PORTS_MAX: usize = 65_536;
/// Valid sizes of a flow, in bytes. Sums of larger sizes could overflow; smaller sizes would vanish when divided by a
/// capacity.
pub(super) const SIZES: std::ops::RangeInclusive<f64> = 1e-6..=1e18;

/// Flow of bytes from an ingress to an egress port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Ingress port.
    pub from: usize,
    /// Egress port.
    pub to: usize,
    /// Size, in bytes.
    pub size: f64,
}

/// Set of flows. It is complete when all its flows are complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Coflow {
    /// Number of ingress ports of the fabric for which the coflow was created.
    ports: usize,
    flows: Vec<Flow>,
    /// Ports at which the coflow has bytes to send or receive, in ascending order, and the number of bytes at each.
    /// Egress port `p` has the number `ports + p`.
    loads: Vec<(usize, f64)>,
}

impl Coflow {
    /// Creates a coflow for a fabric with `ports` ingress ports and as many egress ports.
    ///
    /// # Errors
    /// Fails if there are no flows, if a port does not exist, if the fabric is too large, or if the size of a flow is
    /// out of range.
    pub fn new(ports: usize, flows: Vec<Flow>) -> Result<Self, StudyError> {
        if !(1..=PORTS_MAX).contains(&ports) {
            return Err(StudyError::field("number of ports of a fabric", ports, format!("1 to {PORTS_MAX}")));
        }
        if flows.is_empty() {
            return Err(StudyError::field("number of flows of a coflow", 0, "at least 1"));
        }
        let mut loads = vec![0.0; 2 * ports];
        for flow in &flows {
            for (name, port) in [("ingress port", flow.from), ("egress port", flow.to)] {
                if port >= ports {
                    return Err(StudyError::field(name, port, format!("0 to {}", ports.saturating_sub(1))));
                }
            }
            if !SIZES.contains(&flow.size) {
                return Err(StudyError::field("size of a flow", flow.size, "1e-6 to 1e18 bytes"));
            }
            loads[flow.from] += flow.size;
            loads[ports + flow.to] += flow.size;
        }
        let loads = loads.into_iter().enumerate().filter(|(_, bytes)| *bytes > 0.0).collect();
        Ok(Self { ports, flows, loads })
    }

    /// Returns the number of ingress ports of the fabric for which the coflow was created, which equals the number of
    /// egress ports.
    pub fn ports(&self) -> usize {
        self.ports
    }

    /// Returns all flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Returns the ports at which the coflow has bytes to send or receive, and the number of bytes at each. Egress port
    /// `p` has the number `ports + p`.
    pub fn loads(&self) -> &[(usize, f64)] {
        &self.loads
    }

    /// Returns the number of bytes at the coflow's busiest port. Divided by the capacity of a port, this is the
    /// isolated time of the coflow (its effective bottleneck; Varys, section 4).
    pub fn bottleneck(&self) -> f64 {
        self.loads.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max)
    }

    /// Returns the total number of bytes of all flows.
    pub fn size(&self) -> f64 {
        self.flows.iter().map(|flow| flow.size).sum()
    }
}

/// Dependencies of a coflow on other coflows of its job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Indices of the coflows that must complete before this coflow can start.
    pub starts_after: Vec<usize>,
    /// Indices of the coflows that must complete before this coflow can complete.
    pub finishes_after: Vec<usize>,
}

/// Directed acyclic graph of coflows.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Time of arrival, in seconds.
    pub arrival: f64,
    /// Deadline of the job, in seconds from its arrival; `None` if the job has no deadline.
    pub deadline: Option<f64>,
    coflows: Vec<Coflow>,
    dependencies: Vec<Dependencies>,
    /// For each coflow, the coflows that cannot start before it completes.
    followers: Vec<Vec<usize>>,
    /// Indices of all coflows in topological order.
    order: Vec<usize>,
}

impl Job {
    /// Creates a job from coflows and their dependencies.
    ///
    /// # Errors
    /// Fails if there are no coflows, if `dependencies` does not have exactly one element for each coflow, if the
    /// arrival is not a valid time, if a dependency does not exist, or if the dependencies form a cycle.
    pub fn new(
        arrival: f64,
        coflows: Vec<Coflow>,
        dependencies: Vec<Dependencies>,
    ) -> Result<Self, StudyError> {
        let count = coflows.len();
        if count == 0 || dependencies.len() != count {
            return Err(StudyError::field(
                "number of coflows of a job",
                count,
                "at least 1, and one list of dependencies for each coflow",
            ));
        }
        if !(arrival.is_finite() && arrival >= 0.0) {
            return Err(StudyError::field("arrival of a job", arrival, "a number of seconds >= 0"));
        }
        let all = |of: &Dependencies| [of.starts_after.clone(), of.finishes_after.clone()].concat();
        let waits_for: Vec<Vec<usize>> = dependencies.iter().map(all).collect();
        if let Some(unknown) = waits_for.iter().flatten().find(|other| **other >= count) {
            return Err(StudyError::field("dependency of a coflow", unknown, format!("0 to {}", count - 1)));
        }
        let order = order(&waits_for)?;
        let mut followers = vec![Vec::new(); count];
        for (coflow, dependencies) in dependencies.iter().enumerate() {
            dependencies.starts_after.iter().for_each(|before| followers[*before].push(coflow));
        }
        Ok(Self { arrival, deadline: None, coflows, dependencies, followers, order })
    }

    /// Creates a job of a single coflow.
    ///
    /// # Errors
    /// Fails if the arrival is not a valid time.
    pub fn single(arrival: f64, coflow: Coflow) -> Result<Self, StudyError> {
        Self::new(arrival, vec![coflow], vec![Dependencies::default()])
    }

    /// Returns all coflows.
    pub fn coflows(&self) -> &[Coflow] {
        &self.coflows
    }

    /// Returns the dependencies of each coflow.
    pub fn dependencies(&self) -> &[Dependencies] {
        &self.dependencies
    }

    /// Returns the coflows that cannot start before `coflow` completes.
    pub fn followers(&self, coflow: usize) -> &[usize] {
        &self.followers[coflow]
    }

    /// Returns all coflows in topological order: each coflow comes after the coflows on which it depends.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the length of the longest path from each coflow to the end of the job, in bytes. The length of a path is
    /// the sum of the bottlenecks of its coflows, including the first one.
    pub fn paths(&self) -> Vec<f64> {
        self.paths_of(Coflow::bottleneck)
    }

    /// Returns the length of the longest path from each coflow to the end of the job. The length of a path is the sum
    /// of the lengths of its coflows, including the first one; `length` returns the length of a coflow.
    pub(super) fn paths_of(&self, length: impl Fn(&Coflow) -> f64) -> Vec<f64> {
        let mut paths = vec![0.0; self.coflows.len()];
        for coflow in self.order.iter().rev() {
            let after = self.followers[*coflow].iter().map(|follower| paths[*follower]).fold(0.0, f64::max);
            paths[*coflow] = after + length(&self.coflows[*coflow]);
        }
        paths
    }
}

/// Error for coflows whose dependencies form a cycle.
#[derive(Debug, thiserror::Error)]
#[error("coflows wait for each other: {}", .0.iter().map(usize::to_string).collect::<Vec<_>>().join(" -> "))]
pub struct Cycle(
    /// Indices of the coflows in the cycle, within their job; the first one is repeated at the end.
    pub Vec<usize>,
);

impl From<Cycle> for StudyError {
    fn from(cycle: Cycle) -> Self {
        Self::Own(Box::new(cycle))
    }
}

/// Returns a topological order, in which each coflow comes after the coflows for which it waits.
pub(super) fn order(waits_for: &[Vec<usize>]) -> Result<Vec<usize>, Cycle> {
    let mut open: Vec<usize> = waits_for.iter().map(Vec::len).collect();
    let mut before = vec![Vec::new(); waits_for.len()];
    for (coflow, others) in waits_for.iter().enumerate() {
        others.iter().for_each(|other| before[*other].push(coflow));
    }
    let mut order: Vec<usize> = (0..waits_for.len()).filter(|coflow| open[*coflow] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for follower in &before[order[next]] {
            open[*follower] -= 1;
            if open[*follower] == 0 {
                order.push(*follower);
            }
        }
        next += 1;
    }
    if order.len() == waits_for.len() { Ok(order) } else { Err(Cycle(cycle(waits_for, &open))) }
}

/// Returns a cycle among the coflows that cannot be ordered. `open` has, for each coflow, the number of coflows for
/// which it still waits; a coflow whose number is 0 has been ordered.
fn cycle(waits_for: &[Vec<usize>], open: &[usize]) -> Vec<usize> {
    let mut seen = vec![usize::MAX; open.len()];
    let mut way = Vec::new();
    let mut at = open.iter().position(|waiting| *waiting > 0).unwrap_or(0);
    while seen[at] == usize::MAX {
        seen[at] = way.len();
        way.push(at);
        // A coflow that still waits depends on at least one other coflow that still waits; otherwise, it would be in
        // the order.
        at = waits_for[at].iter().copied().find(|other| open[*other] > 0).unwrap_or(at);
    }
    let mut cycle: Vec<usize> = way[seen[at]..].iter().rev().copied().collect();
    cycle.push(cycle[0]);
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coflow(size: f64) -> Coflow {
        Coflow::new(2, vec![Flow { from: 0, to: 1, size }]).unwrap()
    }

    fn job(waits_for: &[&[usize]]) -> Result<Job, StudyError> {
        let dependencies =
            |of: &&[usize]| Dependencies { starts_after: of.to_vec(), finishes_after: Vec::new() };
        let coflows = (1..=waits_for.len()).map(|size| coflow(size as f64)).collect();
        Job::new(0.0, coflows, waits_for.iter().map(dependencies).collect())
    }

    #[test]
    fn port_loads_are_sums_over_flows() {
        let flows = [(0, 1, 2.0), (0, 0, 3.0), (1, 1, 5.0)].map(|(from, to, size)| Flow { from, to, size });
        let coflow = Coflow::new(2, flows.to_vec()).unwrap();
        assert_eq!(coflow.loads(), [(0, 5.0), (1, 5.0), (2, 3.0), (3, 7.0)]);
        assert_eq!((coflow.bottleneck(), coflow.size()), (7.0, 10.0));
    }

    #[test]
    fn paths_are_the_longest_remaining_paths() {
        // Coflows 0 and 1 precede 2, which precedes 3.
        let job = job(&[&[], &[], &[0, 1], &[2]]).unwrap();
        assert_eq!(job.paths(), [8.0, 9.0, 7.0, 4.0]);
        assert_eq!(job.followers(0), [2]);
    }

    #[test]
    fn errors_name_the_dependency_cycle() {
        let text = |waits_for: &[&[usize]]| job(waits_for).unwrap_err().to_string();
        assert_eq!(text(&[&[0]]), "coflows wait for each other: 0 -> 0");
        assert_eq!(text(&[&[], &[0, 3], &[1], &[2]]), "coflows wait for each other: 2 -> 3 -> 1 -> 2");
        assert_eq!(text(&[&[4]]), "dependency of a coflow is 4, expected 0 to 0");
    }

    #[test]
    fn invalid_flows_are_reported_by_field() {
        let text = |from, to, size| Coflow::new(3, vec![Flow { from, to, size }]).unwrap_err().to_string();
        assert_eq!(text(3, 0, 1.0), "ingress port is 3, expected 0 to 2");
        assert_eq!(text(0, 7, 1.0), "egress port is 7, expected 0 to 2");
        assert_eq!(text(0, 0, 0.0), "size of a flow is 0, expected 1e-6 to 1e18 bytes");
    }

    proptest! {
        #[test]
        fn the_order_or_cycle_is_valid(waits_for in prop::collection::vec(prop::collection::vec(0..6_usize, 0..3), 6)) {
            match order(&waits_for) {
                Ok(order) => {
                    let place = |coflow: usize| order.iter().position(|other| *other == coflow).unwrap();
                    for (coflow, others) in waits_for.iter().enumerate() {
                        prop_assert!(others.iter().all(|other| place(*other) < place(coflow)));
                    }
                }
                Err(Cycle(cycle)) => {
                    prop_assert!(cycle.len() > 1 && cycle.first() == cycle.last());
                    prop_assert!(cycle.windows(2).all(|pair| waits_for[pair[1]].contains(&pair[0])));
                }
            }
        }
    }
}
