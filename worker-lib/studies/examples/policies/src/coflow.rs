//! Coflow scheduling: the coflow that uses the fewest ports is sent first (narrowest coflow first; Chowdhury, Zhong,
//! Stoica 2014, section 5.1).

use iswitch_coflow::StudyError;
use iswitch_coflow::inputs::{Inputs, JobDraws};
use iswitch_coflow::policy::{Policy, PolicySpec, Sharing};
use iswitch_coflow::simulation::{State, simulate};

use super::{Figures, mean};

const JOBS: usize = 50;
const INTERARRIVAL_S: f64 = 10.0;

/// Sends the coflow with the fewest busy ports first; of several such coflows, the one that became ready first.
struct NarrowestFirst;

impl Policy for NarrowestFirst {
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
        // The coflows are in the order in which they became ready, and the sort is stable.
        ready.sort_by_key(|coflow| state.needs(*coflow).filter(|(_, seconds)| *seconds > 0.0).count());
        Sharing::Madd
    }
}

/// Compares the policy's mean job completion time, in seconds, with those of first-in-first-out and Varys.
pub(crate) fn compare(draws: u64) -> Result<Figures, StudyError> {
    let inputs = Inputs::default();
    let (trace, fabric) = inputs.coflows()?;
    let jobs = JobDraws::Drawn { source: inputs.jobs(trace)?, count: JOBS, interarrival: INTERARRIVAL_S };
    let time = |policy: &dyn Fn() -> Box<dyn Policy>| {
        mean(draws, |draw| {
            let times = simulate(&jobs.jobs(draw), &fabric, policy().as_mut(), &mut |_, _| {})?.job_times;
            Ok(times.iter().sum::<f64>() / times.len() as f64)
        })
    };
    let ours = |spec: PolicySpec| {
        let capacity = fabric.capacity;
        move || spec.build(capacity)
    };
    Ok(vec![
        ("narrowest-first", time(&|| Box::new(NarrowestFirst))?),
        ("fifo", time(&ours(PolicySpec::Fifo))?),
        ("sebf", time(&ours(PolicySpec::Sebf))?),
    ])
}
