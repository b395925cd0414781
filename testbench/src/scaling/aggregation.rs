//! Simulation of a tree of switches: segments travel up the tree, each switch sums the segments of its children, and
//! the sums travel down.
//!
//! The simulation follows every super-frame of every worker, from its transmission to the sum; with hardware switches,
//! it follows every packet. If all workers begin at once, all children of a switch with the same number of workers
//! below them behave identically. The simulation then follows one of them, which represents all (a folded tree, see
//! [`Nodes::add`]). A switch sends the copies of a sum one after another, and the simulated child is the one that
//! receives the last copy.

use super::costs::{Costs, Line, to_picos};
use super::resources::{Link, Processes};
use super::topology::Tree;
use super::wire::Framing;
use super::{Algorithm, Picos, Scenario};
use iswitch_simulation::queue::Queue;

/// Worker or switch.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: Option<usize>,
    /// Number of children of the same parent that this node represents, including itself.
    copies: usize,
    up: Link,
    down: Link,
}

/// Nodes of a tree, each before its children.
#[derive(Debug, Default)]
struct Nodes {
    all: Vec<Node>,
    children: Vec<Vec<usize>>,
    /// Indices of the workers in `all`, by rank.
    workers: Vec<usize>,
}

impl Nodes {
    /// Adds a switch with the given number of workers below it, and all nodes below it. For a worker, `level` is
    /// `None`.
    fn add(&mut self, tree: &Tree, level: Option<usize>, workers: usize, folded: bool, node: Node) {
        let at = self.all.len();
        self.all.push(node);
        self.children.push(Vec::new());
        if let Some(parent) = node.parent {
            self.children[parent].push(at);
        }
        let Some(level) = level else { return self.workers.push(at) };
        let (below, capacity) = match level.checked_sub(1) {
            Some(below) => (Some(below), tree.capacity(below)),
            None => (None, 1),
        };
        let (full, rest) = (workers / capacity, workers % capacity);
        let child = Node { parent: Some(at), copies: 1, ..node };
        if folded && full > 0 {
            self.add(tree, below, capacity, folded, Node { copies: full, ..child });
        } else {
            (0..full).for_each(|_| self.add(tree, below, capacity, folded, child));
        }
        if rest > 0 {
            self.add(tree, below, rest, folded, child);
        }
    }
}

/// Event of the simulation.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A worker is ready to send.
    Ready(usize),
    /// A worker's processor has handed a super-frame to its network card.
    Sent(usize, usize),
    /// A part of a contribution has arrived from a node at its parent.
    Up(usize, usize),
    /// A part of the sum has arrived at a node from its parent.
    Down(usize, usize),
    /// A worker has received and processed a super-frame of the sum.
    Taken(usize),
}

/// Unit that is sent at once: a super-frame, or one of its packets if switches handle them one by one.
#[derive(Clone, Copy, Debug)]
struct Part {
    bytes: usize,
    wire_bytes: usize,
    frame: usize,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    bytes: usize,
    first_part: usize,
    parts: usize,
}

/// Progress of a worker in sending its vector and receiving the sum.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    sent: usize,
    taken: usize,
    is_sending: bool,
}

/// Processing times of a switch.
#[derive(Clone, Copy, Debug)]
enum Switch {
    /// Daemon: processing times of each incoming part of a contribution (`add`), each incoming part of a sum (`pass`),
    /// and each outgoing part (`emit`).
    Daemon { add: Line, pass: Line, emit: Line },
    /// Hardware, in which the ports work in parallel.
    Hardware { picos_per_byte: f64, latency: Picos },
}

impl Switch {
    fn of(algorithm: Algorithm, costs: &Costs) -> Self {
        if algorithm == Algorithm::Hardware {
            let picos_per_byte = super::resources::SECOND / costs.hardware.bytes_per_s;
            return Self::Hardware { picos_per_byte, latency: to_picos(costs.hardware.latency_ns) };
        }
        Self::Daemon {
            add: costs.switch_frame.receive.plus(costs.switch_add),
            pass: costs.switch_frame.receive.plus(costs.switch_emit),
            emit: costs.switch_frame.send,
        }
    }
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    switch: Switch,
    nodes: Nodes,
    processes: Processes,
    frames: Vec<Frame>,
    parts: Vec<Part>,
    window_frames: usize,
    progress: Vec<Progress>,
    /// For each node: at a switch, the number of contributions to each part; at a worker, the number of parts of each
    /// super-frame that have arrived.
    counts: Vec<Vec<u32>>,
    queue: Queue<Event, Picos>,
    end: Picos,
}

/// Returns the time that one sum takes.
pub(super) fn run(scenario: &Scenario, algorithm: Algorithm, folded: bool) -> Picos {
    let tree = scenario.tree();
    let link = Link::new(scenario.cable());
    let root = Node { parent: None, copies: 1, up: link, down: link };
    let mut nodes = Nodes::default();
    nodes.add(&tree, Some(tree.levels() - 1), scenario.workers, folded, root);
    let framing = Framing::segments(scenario.superframe_segments);
    let (frames, parts) = cut(framing, scenario.bytes(), algorithm == Algorithm::Hardware);
    let count = nodes.all.len();
    let counts = nodes
        .children
        .iter()
        .map(|children| vec![0; if children.is_empty() { frames.len() } else { parts.len() }]);
    Simulation {
        scenario,
        switch: Switch::of(algorithm, &scenario.costs),
        counts: counts.collect(),
        nodes,
        processes: Processes::new(
            count * scenario.threads(),
            scenario.shared_cores,
            to_picos(scenario.costs.wake_ns),
        ),
        window_frames: (scenario.window_segments() / framing.packets).max(1),
        frames,
        parts,
        progress: vec![Progress::default(); count],
        queue: Queue::new(),
        end: 0,
    }
    .run()
}

fn cut(framing: Framing, bytes: usize, by_packet: bool) -> (Vec<Frame>, Vec<Part>) {
    let (mut frames, mut parts) = (Vec::new(), Vec::new());
    for (frame, bytes) in framing.frames(bytes).enumerate() {
        let first_part = parts.len();
        if by_packet {
            let of = |bytes| Part { bytes, wire_bytes: framing.wire_bytes(bytes), frame };
            parts.extend(framing.packets(bytes).map(of));
        } else {
            parts.push(Part { bytes, wire_bytes: framing.message_wire_bytes(bytes), frame });
        }
        frames.push(Frame { bytes, first_part, parts: parts.len() - first_part });
    }
    (frames, parts)
}

impl Simulation<'_> {
    fn run(mut self) -> Picos {
        // In a folded tree, all workers begin at once.
        for (worker, start) in self.nodes.workers.iter().zip(self.scenario.starts()) {
            self.queue.push(start, Event::Ready(*worker));
        }
        while let Some((now, event)) = self.queue.pop() {
            match event {
                Event::Ready(worker) => self.send_next(worker, now),
                Event::Sent(worker, frame) => {
                    let Frame { first_part, parts, .. } = self.frames[frame];
                    (first_part..first_part + parts).for_each(|part| self.send_up(worker, part, now));
                    self.progress[worker].is_sending = false;
                    self.send_next(worker, now);
                }
                Event::Up(child, part) => self.add(child, part, now),
                Event::Down(node, part) if self.nodes.children[node].is_empty() => {
                    self.collect(node, part, now);
                }
                Event::Down(node, part) => self.pass_on(node, part, now),
                Event::Taken(worker) => {
                    self.progress[worker].taken += 1;
                    self.end = self.end.max(now);
                    self.send_next(worker, now);
                }
            }
        }
        self.end
    }

    fn send_next(&mut self, worker: usize, now: Picos) {
        let Progress { sent, taken, is_sending } = self.progress[worker];
        if is_sending || sent == self.frames.len() || sent - taken >= self.window_frames {
            return;
        }
        let cost = self.scenario.costs.superframe.send.of(self.frames[sent].bytes);
        let done = self.processes.run(self.process(worker, 0), now, cost);
        self.progress[worker] = Progress { sent: sent + 1, taken, is_sending: true };
        self.queue.push(done, Event::Sent(worker, sent));
    }

    fn send_up(&mut self, node: usize, part: usize, now: Picos) {
        let arrival = self.nodes.all[node].up.carry(now, self.parts[part].wire_bytes);
        self.queue.push(arrival, Event::Up(node, part));
    }

    /// Adds a contribution at a switch. If the sum is now complete, sends it to the parent or, at the root, to the
    /// children.
    fn add(&mut self, child: usize, part: usize, now: Picos) {
        let Node { parent, copies, .. } = self.nodes.all[child];
        let Some(node) = parent else { return };
        self.counts[node][part] += copies as u32;
        let children = &self.nodes.children[node];
        let all: usize = children.iter().map(|child| self.nodes.all[*child].copies).sum();
        let is_complete = self.counts[node][part] == all as u32;
        let done = self.take_in(node, part, now, |add, _| add, copies);
        if !is_complete {
            return;
        }
        let bytes = self.parts[part].bytes;
        let is_root = self.nodes.all[node].parent.is_none();
        let Switch::Daemon { emit, .. } = self.switch else {
            return if is_root { self.fan_out(node, part, done) } else { self.send_up(node, part, done) };
        };
        let summed =
            self.processes.run(self.process(node, part), done, self.scenario.costs.switch_emit.of(bytes));
        if is_root {
            return self.fan_out(node, part, summed);
        }
        let sent = self.processes.run(self.process(node, part), summed, emit.of(bytes));
        self.send_up(node, part, sent);
    }

    /// Returns the time at which a switch has processed a part from its parent, or from the given number of children.
    fn take_in(
        &mut self,
        node: usize,
        part: usize,
        now: Picos,
        line: fn(Line, Line) -> Line,
        copies: usize,
    ) -> Picos {
        let bytes = self.parts[part].bytes;
        match self.switch {
            Switch::Daemon { add, pass, .. } => self.processes.react(
                self.process(node, part),
                now,
                copies as Picos * line(add, pass).of(bytes),
            ),
            Switch::Hardware { picos_per_byte, latency } => {
                now + (picos_per_byte * bytes as f64).round() as Picos + latency
            }
        }
    }

    /// Returns the process that handles a part. The threads of a switch share the parts of a vector, and workers send
    /// to the threads in turn. A worker is one process.
    fn process(&self, node: usize, part: usize) -> usize {
        let threads = self.scenario.threads();
        node * threads + part % threads
    }

    /// Passes a sum from the parent of a switch on to the children of the switch.
    fn pass_on(&mut self, node: usize, part: usize, now: Picos) {
        let done = self.take_in(node, part, now, |_, pass| pass, 1);
        self.fan_out(node, part, done);
    }

    fn fan_out(&mut self, node: usize, part: usize, now: Picos) {
        let Part { bytes, wire_bytes, .. } = self.parts[part];
        let mut sent = now;
        for at in 0..self.nodes.children[node].len() {
            let child = self.nodes.children[node][at];
            if let Switch::Daemon { emit, .. } = self.switch {
                let copies = self.nodes.all[child].copies as Picos;
                sent = self.processes.run(self.process(node, part), now, copies * emit.of(bytes));
            }
            let arrival = self.nodes.all[child].down.carry(sent, wire_bytes);
            self.queue.push(arrival, Event::Down(child, part));
        }
    }

    /// Collects a part at a worker's network card. The worker's processor takes whole super-frames.
    fn collect(&mut self, worker: usize, part: usize, now: Picos) {
        let frame = self.parts[part].frame;
        let Frame { bytes, parts, .. } = self.frames[frame];
        self.counts[worker][frame] += 1;
        if self.counts[worker][frame] == parts as u32 {
            let done = self.processes.react(
                self.process(worker, 0),
                now,
                self.scenario.costs.superframe.receive.of(bytes),
            );
            self.queue.push(done, Event::Taken(worker));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(scenario: &Scenario, algorithm: Algorithm) -> [Picos; 2] {
        [true, false].map(|folded| run(scenario, algorithm, folded))
    }

    fn scenarios() -> impl Iterator<Item = Scenario> {
        let shapes = [(1, 3, 64), (4, 4, 2), (12, 3, 64), (26, 3, 3), (100, 8, 5), (300, 32, 32)];
        let sizes = [10_119, 40_327, 200_000];
        let all = shapes.into_iter().flat_map(move |shape| sizes.map(|floats| (shape, floats)));
        all.flat_map(|((workers, rack, radix), floats)| {
            [Costs::ZERO, Costs::measured()].map(|costs| Scenario {
                rack,
                radix,
                switch_buffer_bytes: 1 << 40,
                ..Scenario::new(workers, floats, costs)
            })
        })
    }

    #[test]
    fn one_simulated_child_represents_all_identical_children() {
        for scenario in scenarios() {
            for algorithm in [Algorithm::Daemon, Algorithm::Hardware] {
                let [folded, unfolded] = both(&scenario, algorithm);
                // If two children with different numbers of workers share a processor, it serves them in a different
                // order.
                let tolerance = if algorithm == Algorithm::Daemon { 0.02 } else { 0.0 };
                let off = (folded as f64 / unfolded as f64 - 1.0).abs();
                assert!(off <= tolerance, "{algorithm}, {scenario:?}: {folded} for {unfolded}");
            }
        }
    }

    /// The first child of a switch receives its sum before the last one, and continues to send while the last one is
    /// still waiting.
    #[test]
    fn folding_identical_children_is_accurate_with_windows() {
        for scenario in scenarios() {
            let scenario = Scenario { switch_buffer_bytes: 16 << 20, superframe_segments: 8, ..scenario };
            for algorithm in [Algorithm::Daemon, Algorithm::Hardware] {
                let [folded, unfolded] = both(&scenario, algorithm);
                let ratio = folded as f64 / unfolded as f64;
                println!("{algorithm} {} {} {ratio}", scenario.workers, scenario.floats);
                assert!((0.95..1.05).contains(&ratio), "{algorithm}, {scenario:?}: {folded} for {unfolded}");
            }
        }
    }
}
