//! Switches, queues and links, and what happens to them in a slot.

use std::fmt;

use iswitch_study::StudyError;

/// Switches of a stage, at most: a class is written in 16 bits, and a slot's work grows with the cube.
pub const SWITCHES_MAX: usize = 256;
/// Stages, at most.
pub const STAGES_MAX: usize = 16;

/// Size of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    stages: usize,
    switches: usize,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stages of {} switches", self.stages, self.switches)
    }
}

impl Shape {
    /// `stages` of so many `switches`, each with as many queues.
    ///
    /// # Errors
    /// With fewer than two stages or no switches, or more than [`STAGES_MAX`] or [`SWITCHES_MAX`].
    pub fn new(stages: usize, switches: usize) -> Result<Self, StudyError> {
        if !(2..=STAGES_MAX).contains(&stages) {
            return Err(StudyError::field("stages", stages, format!("2 to {STAGES_MAX}")));
        }
        if !(1..=SWITCHES_MAX).contains(&switches) {
            return Err(StudyError::field("switches", switches, format!("1 to {SWITCHES_MAX}")));
        }
        Ok(Self { stages, switches })
    }

    /// Stages.
    pub fn stages(self) -> usize {
        self.stages
    }

    /// Switches of a stage, classes, and links that leave a switch.
    pub fn switches(self) -> usize {
        self.switches
    }

    /// Pairs of neighbouring stages, between which packets need routes.
    pub fn boundaries(self) -> usize {
        self.stages - 1
    }

    /// Links between two stages, and queues of a stage: N^2.
    pub fn links(self) -> usize {
        self.switches * self.switches
    }

    /// Queues of all stages.
    pub fn queues(self) -> usize {
        self.stages * self.links()
    }
}

/// Lengths of all queues, in packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queues {
    shape: Shape,
    /// `[stage, switch, class]`
    lens: Vec<u32>,
}

impl Queues {
    /// Of an empty network.
    pub fn empty(shape: Shape) -> Self {
        Self { shape, lens: vec![0; shape.queues()] }
    }

    /// The network's size.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Lengths at one switch, by class.
    pub fn at(&self, stage: usize, switch: usize) -> &[u32] {
        let start = self.index(stage, switch, 0);
        &self.lens[start..start + self.shape.switches]
    }

    /// Length of one queue.
    pub fn len(&self, stage: usize, switch: usize, class: usize) -> u32 {
        self.lens[self.index(stage, switch, class)]
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.lens.iter().all(|len| *len == 0)
    }

    /// Lengths of a stage, `[switch, class]`.
    pub fn stage(&self, stage: usize) -> &[u32] {
        &self.lens[stage * self.shape.links()..(stage + 1) * self.shape.links()]
    }

    /// All lengths, `[stage, switch, class]`.
    pub fn all(&self) -> &[u32] {
        &self.lens
    }

    /// To be set from outside; `[stage, switch, class]`.
    pub fn all_mut(&mut self) -> &mut [u32] {
        &mut self.lens
    }

    /// Packets in the network.
    pub fn total(&self) -> u64 {
        self.lens.iter().map(|len| u64::from(*len)).sum()
    }

    /// Packets in a stage.
    pub fn stage_total(&self, stage: usize) -> u64 {
        self.stage(stage).iter().map(|len| u64::from(*len)).sum()
    }

    /// Packets that arrive at the first stage, `[switch, class]`.
    pub fn arrive(&mut self, arrivals: &[u32]) {
        self.lens[..arrivals.len()].iter_mut().zip(arrivals).for_each(|(len, more)| *len += more);
    }

    /// One packet of each queue of the last stage that has one leaves.
    pub fn leave(&mut self) {
        let last = self.shape.boundaries() * self.shape.links();
        self.lens[last..].iter_mut().for_each(|len| *len = len.saturating_sub(1));
    }

    /// A packet goes over a link.
    pub fn apply(&mut self, hop: Hop) {
        let (stage, class) = (usize::from(hop.stage), usize::from(hop.class));
        let from = self.index(stage, usize::from(hop.switch), class);
        let to = self.index(stage + 1, usize::from(hop.link), class);
        self.lens[from] -= 1;
        self.lens[to] += 1;
    }

    /// Becomes equal to `other`, of the same shape, without an allocation.
    pub fn copy_from(&mut self, other: &Self) {
        self.lens.copy_from_slice(&other.lens);
    }

    fn index(&self, stage: usize, switch: usize, class: usize) -> usize {
        (stage * self.shape.switches + switch) * self.shape.switches + class
    }
}

/// A packet on its way from a stage to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Stage that it leaves.
    pub stage: u16,
    /// Switch that it leaves.
    pub switch: u16,
    /// Its class.
    pub class: u16,
    /// Switch of the next stage, to which the link leads.
    pub link: u16,
}

/// Marks a link without a packet.
const IDLE: u16 = u16::MAX;

/// Which packets go over which links in a slot: the vector of all actions of the MDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    shape: Shape,
    /// `[boundary, switch, link]`: the packet's class.
    classes: Vec<u16>,
}

impl Routing {
    /// All links idle.
    pub fn idle(shape: Shape) -> Self {
        Self { shape, classes: vec![IDLE; shape.boundaries() * shape.links()] }
    }

    /// The network's size.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Makes all links idle.
    pub fn clear(&mut self) {
        self.classes.fill(IDLE);
    }

    /// Class of the packet on a link.
    pub fn class(&self, stage: usize, switch: usize, link: usize) -> Option<usize> {
        let class = self.classes[(stage * self.shape.switches + switch) * self.shape.switches + link];
        (class != IDLE).then_some(usize::from(class))
    }

    /// Puts a packet on a link.
    pub fn set(&mut self, hop: Hop) {
        let row = usize::from(hop.stage) * self.shape.switches + usize::from(hop.switch);
        self.classes[row * self.shape.switches + usize::from(hop.link)] = hop.class;
    }

    /// Puts these packets on links, and no others.
    pub fn replace(&mut self, hops: &[Hop]) {
        self.clear();
        hops.iter().for_each(|hop| self.set(*hop));
    }

    /// All packets on links: by stage, switch, link.
    pub fn hops(&self) -> impl Iterator<Item = Hop> {
        let switches = self.shape.switches;
        let busy = self.classes.iter().enumerate().filter(|(_, class)| **class != IDLE);
        busy.map(move |(at, class)| Hop {
            stage: (at / switches / switches) as u16,
            switch: (at / switches % switches) as u16,
            class: *class,
            link: (at % switches) as u16,
        })
    }

    /// Whether these queues can send so, and no packet stays that a link is idle for.
    ///
    /// # Errors
    /// The first switch where it is not so.
    pub fn check(&self, queues: &Queues) -> Result<(), StudyError> {
        let mut sent = vec![0_u32; self.shape.switches];
        for stage in 0..self.shape.boundaries() {
            for switch in 0..self.shape.switches {
                sent.fill(0);
                let classes = (0..self.shape.switches).filter_map(|link| self.class(stage, switch, link));
                classes.for_each(|class| sent[class] += 1);
                let lens = queues.at(stage, switch);
                let name = |what: &str| format!("{what} of stage {stage}, switch {switch}");
                if let Some(class) = (0..sent.len()).find(|class| sent[*class] > lens[*class]) {
                    let field = name(&format!("packets sent from class {class}"));
                    return Err(StudyError::field(field, sent[class], format!("at most {}", lens[class])));
                }
                let waiting: u64 = lens.iter().map(|len| u64::from(*len)).sum();
                let possible = waiting.min(self.shape.switches as u64);
                let busy: u64 = sent.iter().map(|count| u64::from(*count)).sum();
                if busy < possible {
                    return Err(StudyError::field(name("links in use"), busy, possible.to_string()));
                }
            }
        }
        Ok(())
    }
}

/// A packet that needs a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Stage that it leaves.
    pub stage: usize,
    /// Switch that it leaves.
    pub switch: usize,
    /// Its class.
    pub class: usize,
    /// Whether it is not the head of its queue, but takes a link that no head needs.
    pub is_fill: bool,
}

impl Decision {
    /// The packet goes over this link.
    pub fn over(self, link: u16) -> Hop {
        Hop { stage: self.stage as u16, switch: self.switch as u16, class: self.class as u16, link }
    }
}

/// All packets of a slot that need links, in the order of the MDP.
#[derive(Clone, Debug)]
pub struct Decisions {
    shape: Shape,
    stage: usize,
    switch: usize,
    class: usize,
    /// Packets of the switch's queues that have no link yet, by class.
    remaining: Vec<u32>,
    idle: Vec<u16>,
    /// Whether the switch's queues have been read.
    is_loaded: bool,
    is_fill: bool,
    /// Whether a packet was found since class 0.
    found: bool,
}

impl Decisions {
    /// Of a slot's beginning.
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            stage: 0,
            switch: 0,
            class: 0,
            remaining: vec![0; shape.switches],
            idle: Vec::with_capacity(shape.switches),
            is_loaded: false,
            is_fill: false,
            found: false,
        }
    }

    /// Back to a slot's beginning.
    pub fn restart(&mut self) {
        (self.stage, self.switch, self.is_loaded) = (0, 0, false);
    }

    /// The next packet. `start` are the queues after arrivals, the same at each call of a slot; the packet before must
    /// have taken its link.
    pub fn next(&mut self, start: &Queues) -> Option<Decision> {
        while self.stage < self.shape.boundaries() {
            if !self.is_loaded {
                self.load(start);
            }
            while self.class < self.shape.switches && !self.idle.is_empty() {
                let class = self.class;
                self.class += 1;
                if self.remaining[class] > 0 {
                    self.remaining[class] -= 1;
                    self.found = true;
                    let Self { stage, switch, is_fill, .. } = *self;
                    return Some(Decision { stage, switch, class, is_fill });
                }
            }
            if self.found && !self.idle.is_empty() {
                (self.class, self.found, self.is_fill) = (0, false, true);
            } else {
                self.leave_switch();
            }
        }
        None
    }

    /// Links of the present packet's switch that no packet has taken, ascending.
    pub fn idle(&self) -> &[u16] {
        &self.idle
    }

    /// The present packet takes the idle link at that position.
    pub fn take(&mut self, position: usize) -> u16 {
        self.idle.remove(position)
    }

    fn load(&mut self, start: &Queues) {
        self.remaining.copy_from_slice(start.at(self.stage, self.switch));
        self.idle.clear();
        self.idle.extend(0..self.shape.switches as u16);
        (self.class, self.found, self.is_fill, self.is_loaded) = (0, false, false, true);
    }

    fn leave_switch(&mut self) {
        self.is_loaded = false;
        self.switch += 1;
        if self.switch == self.shape.switches {
            self.switch = 0;
            self.stage += 1;
        }
    }
}

/// Ends a slot: exits, then hops. Neither sees the other, for a packet moves once.
pub fn end_slot(queues: &mut Queues, routing: &Routing) {
    queues.leave();
    routing.hops().for_each(|hop| queues.apply(hop));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_checked() {
        let text = |stages, switches| Shape::new(stages, switches).unwrap_err().to_string();
        assert_eq!(text(3, 0), "switches is 0, expected 1 to 256");
        assert_eq!(text(1, 4), "stages is 1, expected 2 to 16");
    }

    #[test]
    fn heads_come_first_then_further_packets_for_as_long_as_a_link_is_idle() {
        let shape = Shape::new(3, 3).unwrap();
        let mut queues = Queues::empty(shape);
        queues.arrive(&[2, 0, 5, 0, 0, 0, 1, 0, 0]);
        let mut decisions = Decisions::new(shape);
        let mut order = Vec::new();
        while let Some(decision) = decisions.next(&queues) {
            decisions.take(0);
            order.push((decision.switch, decision.class, decision.is_fill));
        }
        assert_eq!(order, [(0, 0, false), (0, 2, false), (0, 0, true), (2, 0, false)]);
    }

    #[test]
    fn a_packet_moves_one_hop_a_slot_and_leaves_after_the_last() {
        let shape = Shape::new(3, 2).unwrap();
        let mut queues = Queues::empty(shape);
        queues.arrive(&[0, 1, 0, 0]);
        for (stage, switch) in [(0, 0), (1, 1)] {
            let mut routing = Routing::idle(shape);
            routing.set(Hop { stage, switch, class: 1, link: 1 });
            routing.check(&queues).unwrap();
            end_slot(&mut queues, &routing);
            assert_eq!(queues.len(usize::from(stage) + 1, 1, 1), 1);
        }
        end_slot(&mut queues, &Routing::idle(shape));
        assert!(queues.is_empty());
    }

    #[test]
    fn routings_that_cannot_be_are_named() {
        let shape = Shape::new(2, 2).unwrap();
        let mut queues = Queues::empty(shape);
        queues.arrive(&[1, 0, 0, 0]);
        let mut routing = Routing::idle(shape);
        let text = routing.check(&queues).unwrap_err().to_string();
        assert_eq!(text, "links in use of stage 0, switch 0 is 0, expected 1");
        (0..2).for_each(|link| routing.set(Hop { stage: 0, switch: 0, class: 0, link }));
        let text = routing.check(&queues).unwrap_err().to_string();
        assert_eq!(text, "packets sent from class 0 of stage 0, switch 0 is 2, expected at most 1");
    }
}
