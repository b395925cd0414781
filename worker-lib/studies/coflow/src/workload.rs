//! Coflows and the jobs that they make up.

use iswitch_study::StudyError;

/// Ports of a side that a fabric has at most.
pub const PORTS_MAX: usize = 65_536;
/// Bytes that a flow may have: what lies beyond would overflow in sums, or be nothing when divided by a capacity.
const SIZES: std::ops::RangeInclusive<f64> = 1e-6..=1e18;

/// Bytes from an ingress to an egress port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Ingress port.
    pub from: usize,
    /// Egress port.
    pub to: usize,
    /// In bytes.
    pub size: f64,
}

/// Flows that are over together.
#[derive(Clone, Debug, PartialEq)]
pub struct Coflow {
    /// Ingress ports of its fabric.
    ports: usize,
    flows: Vec<Flow>,
    /// Bytes at each port that has any, ingress ports first, egress ports from the number of ports on; ascending.
    loads: Vec<(usize, f64)>,
}

impl Coflow {
    /// Of flows over a fabric of so many ports.
    ///
    /// # Errors
    /// If there are none, a port is not one of the fabric, the fabric is too large, or a size is no size.
    pub fn new(ports: usize, flows: Vec<Flow>) -> Result<Self, StudyError> {
        if !(1..=PORTS_MAX).contains(&ports) {
            return Err(StudyError::field("ports of a fabric", ports, format!("1 to {PORTS_MAX}")));
        }
        if flows.is_empty() {
            return Err(StudyError::field("flows of a coflow", 0, "at least 1"));
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

    /// Ingress ports, and as many egress ports, of the fabric that it is for.
    pub fn ports(&self) -> usize {
        self.ports
    }

    /// All flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Bytes at each port that has any; egress ports come after all ingress ports.
    pub fn loads(&self) -> &[(usize, f64)] {
        &self.loads
    }

    /// Bytes at its busiest port: over the capacity, the time that it needs alone (its effective bottleneck; Varys,
    /// section 4).
    pub fn bottleneck(&self) -> f64 {
        self.loads.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max)
    }

    /// Bytes of all flows.
    pub fn size(&self) -> f64 {
        self.flows.iter().map(|flow| flow.size).sum()
    }
}

/// What a coflow of a job waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Coflows of the job that must be complete before it starts.
    pub starts_after: Vec<usize>,
    /// Coflows of the job that must be complete before it can be: the last of its bytes wait for them.
    pub finishes_after: Vec<usize>,
}

/// A graph of coflows.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// In seconds.
    pub arrival: f64,
    /// Seconds after the arrival by which it should be complete.
    pub deadline: Option<f64>,
    coflows: Vec<Coflow>,
    dependencies: Vec<Dependencies>,
    /// Coflows that wait for each coflow before they start.
    followers: Vec<Vec<usize>>,
    /// All coflows, none before one that it waits for.
    order: Vec<usize>,
}

impl Job {
    /// Of coflows, with what each waits for.
    ///
    /// # Errors
    /// If there are none, a coflow waits for one that is not there, or coflows wait for each other.
    pub fn new(
        arrival: f64,
        coflows: Vec<Coflow>,
        dependencies: Vec<Dependencies>,
    ) -> Result<Self, StudyError> {
        let count = coflows.len();
        if count == 0 || dependencies.len() != count {
            return Err(StudyError::field(
                "coflows of a job",
                count,
                "at least 1, each with its dependencies",
            ));
        }
        if !(arrival.is_finite() && arrival >= 0.0) {
            return Err(StudyError::field("arrival of a job", arrival, "a number of seconds of at least 0"));
        }
        let all = |of: &Dependencies| [of.starts_after.clone(), of.finishes_after.clone()].concat();
        let waits_for: Vec<Vec<usize>> = dependencies.iter().map(all).collect();
        if let Some(unknown) = waits_for.iter().flatten().find(|other| **other >= count) {
            return Err(StudyError::field(
                "coflow that is waited for",
                unknown,
                format!("0 to {}", count - 1),
            ));
        }
        let order = order(&waits_for)?;
        let mut followers = vec![Vec::new(); count];
        for (coflow, dependencies) in dependencies.iter().enumerate() {
            dependencies.starts_after.iter().for_each(|before| followers[*before].push(coflow));
        }
        Ok(Self { arrival, deadline: None, coflows, dependencies, followers, order })
    }

    /// Of one coflow that waits for nothing.
    ///
    /// # Errors
    /// If the arrival is not a time.
    pub fn single(arrival: f64, coflow: Coflow) -> Result<Self, StudyError> {
        Self::new(arrival, vec![coflow], vec![Dependencies::default()])
    }

    /// All coflows.
    pub fn coflows(&self) -> &[Coflow] {
        &self.coflows
    }

    /// What each coflow waits for.
    pub fn dependencies(&self) -> &[Dependencies] {
        &self.dependencies
    }

    /// Coflows that start after the given one.
    pub fn followers(&self, coflow: usize) -> &[usize] {
        &self.followers[coflow]
    }

    /// All coflows, none before one that it waits for.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// For each coflow the most bytes on a way from it to an end of the job, its own included, where each counts with
    /// its busiest port: what it and those after it need at least.
    pub fn paths(&self) -> Vec<f64> {
        let mut paths = vec![0.0; self.coflows.len()];
        for coflow in self.order.iter().rev() {
            let after = self.followers[*coflow].iter().map(|follower| paths[*follower]).fold(0.0, f64::max);
            paths[*coflow] = after + self.coflows[*coflow].bottleneck();
        }
        paths
    }
}

/// Coflows that wait for each other.
#[derive(Debug, thiserror::Error)]
#[error("coflows wait for each other: {}", .0.iter().map(usize::to_string).collect::<Vec<_>>().join(" -> "))]
pub struct Cycle(
    /// Numbers of the coflows within their job, the first one again at the end.
    pub Vec<usize>,
);

impl From<Cycle> for StudyError {
    fn from(cycle: Cycle) -> Self {
        Self::Own(Box::new(cycle))
    }
}

/// An order in which nothing comes before what it waits for.
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

/// One of the cycles among coflows that still wait.
fn cycle(waits_for: &[Vec<usize>], open: &[usize]) -> Vec<usize> {
    let mut seen = vec![usize::MAX; open.len()];
    let mut way = Vec::new();
    let mut at = open.iter().position(|waiting| *waiting > 0).unwrap_or(0);
    while seen[at] == usize::MAX {
        seen[at] = way.len();
        way.push(at);
        // One that waits for nothing open would have been put in order.
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
    fn loads_are_sums_over_flows() {
        let flows = [(0, 1, 2.0), (0, 0, 3.0), (1, 1, 5.0)].map(|(from, to, size)| Flow { from, to, size });
        let coflow = Coflow::new(2, flows.to_vec()).unwrap();
        assert_eq!(coflow.loads(), [(0, 5.0), (1, 5.0), (2, 3.0), (3, 7.0)]);
        assert_eq!((coflow.bottleneck(), coflow.size()), (7.0, 10.0));
    }

    #[test]
    fn paths_are_the_longest_ways_to_the_end() {
        // 0 and 1 before 2, 2 before 3.
        let job = job(&[&[], &[], &[0, 1], &[2]]).unwrap();
        assert_eq!(job.paths(), [8.0, 9.0, 7.0, 4.0]);
        assert_eq!(job.followers(0), [2]);
    }

    #[test]
    fn cycles_are_named() {
        let text = |waits_for: &[&[usize]]| job(waits_for).unwrap_err().to_string();
        assert_eq!(text(&[&[0]]), "coflows wait for each other: 0 -> 0");
        assert_eq!(text(&[&[], &[0, 3], &[1], &[2]]), "coflows wait for each other: 2 -> 3 -> 1 -> 2");
        assert_eq!(text(&[&[4]]), "coflow that is waited for is 4, expected 0 to 0");
    }

    #[test]
    fn flows_that_cannot_be_are_named() {
        let text = |from, to, size| Coflow::new(3, vec![Flow { from, to, size }]).unwrap_err().to_string();
        assert_eq!(text(3, 0, 1.0), "ingress port is 3, expected 0 to 2");
        assert_eq!(text(0, 7, 1.0), "egress port is 7, expected 0 to 2");
        assert_eq!(text(0, 0, 0.0), "size of a flow is 0, expected 1e-6 to 1e18 bytes");
    }

    proptest! {
        #[test]
        fn an_order_or_a_true_cycle(waits_for in prop::collection::vec(prop::collection::vec(0..6_usize, 0..3), 6)) {
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
