//! Independent program for the rates of individual flows. It shares no code with the simulator: it has its own reader
//! for files of the coflow benchmark, stores each flow separately, and fills ports one at a time.

/// Flow from an ingress to an egress port. Ingress and egress ports are numbered separately.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefFlow {
    pub(super) ingress: usize,
    pub(super) egress: usize,
    /// Remaining time in seconds at the full rate of a port.
    pub(super) left: f64,
    rate: f64,
}

impl RefFlow {
    pub(super) fn new(ingress: usize, egress: usize, left: f64) -> Self {
        Self { ingress, egress, left, rate: 0.0 }
    }
}

/// Coflow with its arrival time, in seconds.
#[derive(Clone, Debug)]
pub(super) struct RefCoflow {
    pub(super) arrival: f64,
    pub(super) flows: Vec<RefFlow>,
}

/// Scheduling rule of the independent program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RefRule {
    /// Max-min fair rates of all flows.
    Fair,
    /// First in, first out; MADD and backfilling.
    Fifo,
    /// Smallest effective bottleneck first; MADD and backfilling.
    Sebf,
    /// Ten queues. A coflow's queue is determined by the time, in seconds, that the bytes that it has sent take at full
    /// rate. The limit of each queue is ten times that of the preceding one. Within a queue, coflows are served first
    /// in, first out. The flows of a coflow share all capacity that is available to the coflow at max-min fair rates.
    Aalo {
        /// Limit of the first queue, in seconds at the full rate of a port.
        limit: f64,
    },
}

/// Reads a file of the coflow benchmark. Each port has a capacity of 1 Gbit/s. Returns the number of ports and the
/// coflows.
pub(super) fn read(text: &str) -> (usize, Vec<RefCoflow>) {
    let mut lines = text.lines();
    let ports = lines.next().unwrap().split(' ').next().unwrap().parse().unwrap();
    let coflow = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let mappers: usize = fields[2].parse().unwrap();
        let sources: Vec<usize> = fields[3..3 + mappers].iter().map(|port| port.parse().unwrap()).collect();
        let mut flows = Vec::new();
        for reducer in &fields[4 + mappers..] {
            let (port, megabytes) = reducer.split_once(':').unwrap();
            let seconds = megabytes.parse::<f64>().unwrap() / 125.0 / mappers as f64;
            let port = port.parse().unwrap();
            flows.extend(sources.iter().map(|source| RefFlow::new(*source, port, seconds)));
        }
        RefCoflow { arrival: fields[1].parse::<f64>().unwrap() / 1000.0, flows }
    };
    (ports, lines.filter(|line| !line.is_empty()).map(coflow).collect())
}

/// Share of each port that is still free.
struct Free {
    ingress: Vec<f64>,
    egress: Vec<f64>,
}

const NOTHING: f64 = 1e-6;

/// Returns the completion time of each coflow, measured from its arrival. Rates are recomputed whenever a coflow
/// arrives or ends, and also when a flow ends if at least `step` seconds have passed since the last computation.
pub(super) fn completion_times(ports: usize, coflows: &[RefCoflow], rule: RefRule, step: f64) -> Vec<f64> {
    let mut coflows = coflows.to_vec();
    let mut done = vec![f64::NAN; coflows.len()];
    let mut sent = vec![0.0; coflows.len()];
    let mut now = 0.0;
    while done.iter().any(|time| time.is_nan()) {
        let mut open: Vec<usize> =
            (0..coflows.len()).filter(|at| done[*at].is_nan() && coflows[*at].arrival <= now).collect();
        if rule == RefRule::Sebf {
            let key = |at: &usize| longest(ports, &coflows[*at].flows, None);
            open.sort_by(|a, b| key(a).total_cmp(&key(b)));
        }
        if let RefRule::Aalo { limit } = rule {
            open.sort_by_key(|at| queue(sent[*at], limit));
        }
        rates(ports, &mut coflows, &open, rule);
        let arrivals = coflows.iter().map(|coflow| coflow.arrival - now).filter(|wait| *wait > 0.0);
        let mut next = arrivals.fold(f64::INFINITY, f64::min);
        for at in &open {
            if let RefRule::Aalo { limit } = rule {
                let rate: f64 = coflows[*at].flows.iter().map(|flow| flow.rate).sum();
                let queue = queue(sent[*at], limit);
                if rate > 0.0 && queue < 9 {
                    next = next.min((limit * 10_f64.powi(queue) - sent[*at]) / rate + 1e-9 * limit);
                }
            }
            let ends = || coflows[*at].flows.iter().map(|flow| flow.left / flow.rate);
            next = next.min(ends().fold(0.0, f64::max)).min(ends().fold(f64::INFINITY, f64::min).max(step));
        }
        now += next;
        for at in open {
            let coflow = &mut coflows[at];
            sent[at] += coflow.flows.iter().map(|flow| flow.left.min(flow.rate * next)).sum::<f64>();
            coflow.flows.iter_mut().for_each(|flow| flow.left -= flow.rate * next * (1.0 + 1e-10));
            coflow.flows.retain(|flow| flow.left > 0.0);
            if coflow.flows.is_empty() {
                done[at] = now - coflow.arrival;
            }
        }
    }
    done
}

fn queue(sent: f64, limit: f64) -> i32 {
    (0..9).find(|queue| sent < limit * 10_f64.powi(*queue)).unwrap_or(9)
}

/// Returns the longest time that the flows need at any port. Each port has its free capacity or, if `free` is `None`,
/// its full capacity.
fn longest(ports: usize, flows: &[RefFlow], free: Option<&Free>) -> f64 {
    let (mut ingress, mut egress) = (vec![0.0; ports], vec![0.0; ports]);
    for flow in flows {
        ingress[flow.ingress] += flow.left;
        egress[flow.egress] += flow.left;
    }
    if let Some(free) = free {
        let divide = |(need, free): (&mut f64, &f64)| {
            if *need > 0.0 {
                *need = if *free < NOTHING { f64::INFINITY } else { *need / free };
            }
        };
        ingress.iter_mut().zip(&free.ingress).for_each(divide);
        egress.iter_mut().zip(&free.egress).for_each(divide);
    }
    ingress.into_iter().chain(egress).fold(0.0, f64::max)
}

fn rates(ports: usize, coflows: &mut [RefCoflow], open: &[usize], rule: RefRule) {
    let mut free = Free { ingress: vec![1.0; ports], egress: vec![1.0; ports] };
    open.iter().for_each(|at| coflows[*at].flows.iter_mut().for_each(|flow| flow.rate = 0.0));
    if rule == RefRule::Fair {
        let mut all: Vec<_> = Vec::new();
        for (at, coflow) in coflows.iter_mut().enumerate() {
            if open.contains(&at) {
                all.extend(coflow.flows.iter_mut().map(|flow| (1.0, flow)));
            }
        }
        return fill(&mut all, &mut free);
    }
    for at in open.iter().filter(|_| matches!(rule, RefRule::Fifo | RefRule::Sebf)) {
        let seconds = longest(ports, &coflows[*at].flows, Some(&free));
        if seconds.is_infinite() {
            continue;
        }
        for flow in &mut coflows[*at].flows {
            flow.rate = flow.left / seconds;
            free.ingress[flow.ingress] -= flow.rate;
            free.egress[flow.egress] -= flow.rate;
        }
    }
    for at in open {
        let is_fair = matches!(rule, RefRule::Aalo { .. });
        let weigh = |flow: &mut RefFlow| if is_fair { 1.0 } else { flow.left };
        let flows = coflows[*at].flows.iter_mut();
        let mut waiting: Vec<_> = flows.map(|flow| (weigh(flow), flow)).collect();
        waiting
            .retain(|(_, flow)| free.ingress[flow.ingress] > NOTHING && free.egress[flow.egress] > NOTHING);
        fill(&mut waiting, &mut free);
    }
}

/// Adds max-min fair rates to flows with weights: increases all rates together until a port is busy, fixes the rates of
/// the flows at this port, and repeats with the remaining flows.
fn fill(flows: &mut [(f64, &mut RefFlow)], free: &mut Free) {
    let ports = free.ingress.len();
    let (mut of_ingress, mut of_egress) = (vec![Vec::new(); ports], vec![Vec::new(); ports]);
    // For each port, the sum of the weights of the flows whose rates are not fixed, and the number of these flows.
    let (mut into, mut out_of) = (vec![(0.0, 0); ports], vec![(0.0, 0); ports]);
    for (number, (weight, flow)) in flows.iter().enumerate() {
        of_ingress[flow.ingress].push(number);
        of_egress[flow.egress].push(number);
        into[flow.ingress].0 += *weight;
        out_of[flow.egress].0 += *weight;
        into[flow.ingress].1 += 1;
        out_of[flow.egress].1 += 1;
    }
    let mut is_fixed = vec![false; flows.len()];
    loop {
        let mut lowest = (f64::INFINITY, 0, false);
        for port in 0..ports {
            for (is_egress, free, (weight, count)) in
                [(false, free.ingress[port], into[port]), (true, free.egress[port], out_of[port])]
            {
                if count > 0 && free / weight < lowest.0 {
                    lowest = (free / weight, port, is_egress);
                }
            }
        }
        let (level, port, is_egress) = lowest;
        if level.is_infinite() {
            return;
        }
        let list = std::mem::take(if is_egress { &mut of_egress[port] } else { &mut of_ingress[port] });
        for number in list {
            if std::mem::replace(&mut is_fixed[number], true) {
                continue;
            }
            let (weight, flow) = &mut flows[number];
            let rate = level.max(0.0) * *weight;
            flow.rate += rate;
            free.ingress[flow.ingress] -= rate;
            free.egress[flow.egress] -= rate;
            into[flow.ingress].0 -= *weight;
            out_of[flow.egress].0 -= *weight;
            into[flow.ingress].1 -= 1;
            out_of[flow.egress].1 -= 1;
        }
    }
}
