//! Results on a fabric of equal ports, which must not change: they are compared bit by bit with recorded ones.

use iswitch_coflow::bound::Bound;
use iswitch_coflow::policy::PolicySpec;
use iswitch_coflow::simulation::{Fabric, Rates, simulate};
use iswitch_coflow::workload::{Coflow, Dependencies, Flow, Job};
use sha2::{Digest as _, Sha256};

const PORTS: usize = 8;
const CAPACITY: f64 = 1.25e8;
/// First bytes of the digest of all results. No computation of the workload or of the results depends on the platform.
const RECORDED: u64 = 0x9898_70c6_e7e7_60aa;

/// Pseudo-random numbers: a linear congruential generator, whose low bits are not used.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn coflow(&mut self) -> Coflow {
        let widest = 2 + self.below(12);
        let flows = 1 + self.below(widest);
        let mut port = || self.below(PORTS as u64) as usize;
        let ports: Vec<_> = (0..flows).map(|_| (port(), port())).collect();
        let flow = |(from, to)| Flow { from, to, size: (1 + self.below(1_000_000)) as f64 * 1234.5 };
        Coflow::new(PORTS, ports.into_iter().map(flow).collect()).unwrap()
    }

    fn job(&mut self, arrival: f64) -> Job {
        let count = 1 + self.below(4) as usize;
        let coflows = (0..count).map(|_| self.coflow()).collect();
        let after = |number: usize, numbers: &mut Self| Dependencies {
            starts_after: (0..number).filter(|_| numbers.below(2) == 0).collect(),
            finishes_after: Vec::new(),
        };
        Job::new(arrival, coflows, (0..count).map(|number| after(number, self)).collect()).unwrap()
    }
}

#[test]
fn results_on_equal_ports_are_those_of_earlier_versions() {
    let mut hash = Sha256::new();
    for seed in 0..6 {
        let mut numbers = Numbers(seed);
        let jobs: Vec<Job> = (0..30).map(|number| numbers.job(f64::from(number) * 1.5)).collect();
        for rates in [Rates::Backfill, Rates::Blocking] {
            let fabric = Fabric { rates, ..Fabric::new(PORTS, CAPACITY) };
            let Bound { isolated, port, relaxation: _ } = Bound::of(&jobs, &fabric);
            [isolated, port].iter().for_each(|bound| hash.update(bound.to_bits().to_le_bytes()));
            for policy in PolicySpec::all() {
                let mut policy = policy.build(CAPACITY);
                let outcome = simulate(&jobs, &fabric, policy.as_mut(), &mut |_, _| {}).unwrap();
                let times = outcome.coflow_times.iter().chain(&outcome.job_times);
                times.for_each(|time| hash.update(time.to_bits().to_le_bytes()));
                hash.update(outcome.decisions.to_le_bytes());
            }
        }
    }
    let digest = u64::from_be_bytes(hash.finalize()[..8].try_into().unwrap());
    assert_eq!(digest, RECORDED, "{digest:#018x}");
}
