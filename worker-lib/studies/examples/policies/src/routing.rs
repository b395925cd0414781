//! Routing: the class with the most packets at a switch takes the link to the shortest queue.

use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_routing::StudyError;
use iswitch_routing::measure::measure;
use iswitch_routing::network::{Hop, Queues, Routing, Shape};
use iswitch_routing::policy::{Fill, Policy, PolicySpec};
use iswitch_routing::rates::{Arrivals, Rates};

use super::{Figures, mean};

const LOAD: f64 = 0.8;
const SLOTS: u64 = 200;

/// Routes the packets of the longest queues first. A packet takes the idle link to the switch at which the queue of its
/// class is shortest; of several such links, the one with the lowest number.
struct LongestFirst;

impl Policy for LongestFirst {
    fn route(&mut self, queues: &Queues, routing: &mut Routing) {
        let shape = queues.shape();
        for stage in 0..shape.boundaries() {
            for switch in 0..shape.switches() {
                route_switch(queues, (stage, switch), routing);
            }
        }
    }
}

fn route_switch(queues: &Queues, (stage, switch): (usize, usize), routing: &mut Routing) {
    let mut waiting = queues.at(stage, switch).to_vec();
    let mut idle: Vec<usize> = (0..waiting.len()).collect();
    while !idle.is_empty() {
        let class =
            (0..waiting.len()).rev().max_by_key(|class| waiting[*class]).expect("a switch has classes");
        if waiting[class] == 0 {
            break;
        }
        waiting[class] -= 1;
        let behind = |at: &usize| queues.len(stage + 1, idle[*at], class);
        let at = (0..idle.len()).min_by_key(behind).expect("a link is idle");
        let (stage, switch, class, link) =
            (stage as u16, switch as u16, class as u16, idle.remove(at) as u16);
        routing.set(Hop { stage, switch, class, link });
    }
}

/// Compares the policy's mean delay, in slots, with those of random links and join-the-shortest-queue.
pub(crate) fn compare(draws: u64) -> Result<Figures, StudyError> {
    let shape = Shape::new(3, 8)?;
    let delay = |policy: &dyn Fn(u64) -> Box<dyn Policy>| {
        mean(draws, |draw| {
            let rates = Rates::uniform(shape, LOAD, draw)?;
            let mut arrivals = Arrivals::new(&rates, stream(draw, Purpose::Arrivals, 0));
            let mut policy = policy(draw);
            Ok(measure(policy.as_mut(), &rates, &mut arrivals, SLOTS, &mut |_, _, _| {})?.delay)
        })
    };
    let ours = |spec: PolicySpec| move |draw| spec.build(shape, Fill::Random, draw);
    Ok(vec![
        ("longest-first", delay(&|_| Box::new(LongestFirst))?),
        ("rand", delay(&ours(PolicySpec::Random))?),
        ("jsq", delay(&ours(PolicySpec::JoinShortestQueue))?),
    ])
}
