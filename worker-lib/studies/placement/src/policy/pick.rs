//! Rules that pick GPUs without regard to expected times.

use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;

use super::{Order, Placer, spread};
use crate::cluster::Level;
use crate::state::State;

/// Default threshold of [`Rule::Match`], in GPU-seconds: four GPU-days.
pub const MATCH_THRESHOLD: f64 = 4.0 * 86_400.0;

/// Rule that determines which free GPUs a job gets.
#[derive(Clone, Debug)]
pub enum Rule {
    /// Random GPUs; all sets of free GPUs are equally likely.
    Random(Box<ChaCha8Rng>),
    /// GPUs with the lowest ids.
    FirstFit,
    /// GPUs on as few nodes as possible. The last node is the one with the fewest free GPUs that still suffices
    /// (consolidated best fit).
    BestFit,
    /// GPUs in as few racks as possible and, within these racks, on as few nodes as possible: [`pack`].
    Pack,
    /// GPUs spread evenly over racks and nodes: [`spread`](super::spread).
    Spread,
    /// GPUs that have worked for the longest time since their last repair.
    Rested,
    /// GPUs with the lowest estimated failure rates.
    Reliable,
    /// GPUs with the lowest estimated failure rates for jobs of at least this many GPU-seconds, and GPUs with the
    /// highest rates for other jobs.
    Match(f64),
}

/// Placer that combines an order of the queue with a rule that picks GPUs.
#[derive(Clone, Debug)]
pub struct ByRule {
    order: Order,
    rule: Rule,
}

impl ByRule {
    /// Creates a placer from an order and a rule.
    pub fn new(order: Order, rule: Rule) -> Self {
        Self { order, rule }
    }
}

impl Placer for ByRule {
    fn order(&mut self, state: &State<'_>, queue: &mut [usize]) {
        self.order.sort(state, queue);
    }

    fn place(&mut self, state: &State<'_>, job: usize, size: usize, picks: &mut Vec<usize>) {
        match &mut self.rule {
            Rule::Random(rng) => {
                let free: Vec<usize> = state.free_gpus().collect();
                picks.extend(free.sample(rng, size));
            }
            Rule::FirstFit => picks.extend(state.free_gpus().take(size)),
            Rule::BestFit => consolidate(state, size, picks),
            Rule::Pack => pack(state, size, picks),
            Rule::Spread => spread(state, size, picks),
            Rule::Rested => by_number(state, size, picks, |gpu| state.gpus[gpu].up_since),
            Rule::Reliable => most_reliable(state, size, picks),
            Rule::Match(threshold) => {
                let is_big = state.job(job).gpu_seconds() >= *threshold;
                by_rate(state, size, if is_big { 1.0 } else { -1.0 }, picks);
            }
        }
    }
}

/// Adds the `size` free GPUs with the lowest estimated failure rates to `picks`; if rates are equal, GPUs with lower
/// ids come first.
pub fn most_reliable(state: &State<'_>, size: usize, picks: &mut Vec<usize>) {
    by_rate(state, size, 1.0, picks);
}

fn by_rate(state: &State<'_>, size: usize, sign: f64, picks: &mut Vec<usize>) {
    by_number(state, size, picks, |gpu| sign * state.rate(gpu));
}

/// Adds to `picks` the `size` free GPUs with the lowest values of `number`; if values are equal, GPUs with lower ids
/// come first.
pub(super) fn by_number(
    state: &State<'_>,
    size: usize,
    picks: &mut Vec<usize>,
    number: impl Fn(usize) -> f64,
) {
    let mut free: Vec<(f64, usize)> = state.free_gpus().map(|gpu| (number(gpu), gpu)).collect();
    if size < free.len() {
        free.select_nth_unstable_by(size, compare);
        free.truncate(size);
    }
    free.sort_unstable_by(compare);
    picks.extend(free.into_iter().map(|(_, gpu)| gpu));
}

fn compare(a: &(f64, usize), b: &(f64, usize)) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

/// Adds `size` free GPUs on as few nodes as possible to `picks`. The nodes with the most free GPUs come first, and all
/// of their free GPUs are taken, as long as the job needs that many. The rest are taken from the node with the fewest
/// free GPUs among those that have enough.
pub fn consolidate(state: &State<'_>, size: usize, picks: &mut Vec<usize>) {
    consolidate_in(state, Level::Node, state.free_gpus(), size, picks);
}

/// Adds `size` free GPUs in as few racks as possible to `picks`. Racks are chosen in the same way as [`consolidate`]
/// chooses nodes. Within the last rack, the GPUs are on as few nodes as possible.
pub fn pack(state: &State<'_>, size: usize, picks: &mut Vec<usize>) {
    consolidate_in(state, Level::Rack, state.free_gpus(), size, picks);
}

/// Adds `size` of the given GPUs to `picks`, in as few failure domains of `level` as possible. The ids of the GPUs must
/// be in ascending order.
fn consolidate_in(
    state: &State<'_>,
    level: Level,
    gpus: impl Iterator<Item = usize>,
    size: usize,
    picks: &mut Vec<usize>,
) {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut last = None;
    for gpu in gpus {
        let domain = state.cluster().domain_of(level, gpu);
        if last != Some(domain) {
            groups.push(Vec::new());
            last = Some(domain);
        }
        groups.last_mut().expect("the list must not be empty after a push").push(gpu);
    }
    // The sort is stable: of domains with the same number of GPUs, the one with the lowest index comes first.
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let mut left = size;
    let mut first = 0;
    while left > 0 && first < groups.len() {
        let enough = groups[first..].iter().take_while(|group| group.len() >= left).count();
        // Use the smallest domain that suffices (the first of several with the same size), or the largest if none
        // suffices.
        let group = match enough.checked_sub(1).map(|at| groups[first + at].len()) {
            Some(len) => groups[first..].iter().find(|group| group.len() == len).unwrap_or(&groups[first]),
            None => &groups[first],
        };
        let some = left.min(group.len());
        if some < group.len() && level != Level::Node {
            consolidate_in(state, Level::Node, &mut group.iter().copied(), some, picks);
        } else {
            picks.extend(&group[..some]);
        }
        left -= some;
        first += 1;
    }
}
