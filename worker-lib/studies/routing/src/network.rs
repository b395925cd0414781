//! Switches, queues and links, and their changes in a slot.

use std::fmt;

use iswitch_study::StudyError;

/// Maximum number of switches per stage. A class is stored in 16 bits, and the work per slot grows with the cube of
/// this number.
pub const SWITCHES_MAX: usize = 256;
/// Maximum number of stages.
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
    /// Creates the size of a network that has `stages` stages of `switches` switches each. Each switch has as many
    /// queues as a stage has switches.
    ///
    /// # Errors
    /// Fails if `stages` is not from 2 to [`STAGES_MAX`], or `switches` is not from 1 to [`SWITCHES_MAX`].
    pub fn new(stages: usize, switches: usize) -> Result<Self, StudyError> {
        if !(2..=STAGES_MAX).contains(&stages) {
            return Err(StudyError::field("stages", stages, format!("2 to {STAGES_MAX}")));
        }
        if !(1..=SWITCHES_MAX).contains(&switches) {
            return Err(StudyError::field("switches", switches, format!("1 to {SWITCHES_MAX}")));
        }
        Ok(Self { stages, switches })
    }

    /// Returns the number of stages.
    pub fn stages(self) -> usize {
        self.stages
    }

    /// Returns N: the number of switches per stage, which is also the number of classes and the number of links that
    /// leave a switch.
    pub fn switches(self) -> usize {
        self.switches
    }

    /// Returns the number of pairs of neighbouring stages, between which packets need links.
    pub fn boundaries(self) -> usize {
        self.stages - 1
    }

    /// Returns N^2: the number of links between two stages, which is also the number of queues per stage.
    pub fn links(self) -> usize {
        self.switches * self.switches
    }

    /// Returns the number of queues in all stages together.
    pub fn queues(self) -> usize {
        self.stages * self.links()
    }
}

/// Lengths of all queues, in packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queues {
    shape: Shape,
    /// Length of each queue, as `[stage, switch, class]`.
    lens: Vec<u32>,
}

impl Queues {
    /// Creates the queues of an empty network.
    pub fn empty(shape: Shape) -> Self {
        Self { shape, lens: vec![0; shape.queues()] }
    }

    /// Returns the size of the network.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the lengths of the queues of one switch, by class.
    pub fn at(&self, stage: usize, switch: usize) -> &[u32] {
        let start = self.index(stage, switch, 0);
        &self.lens[start..start + self.shape.switches]
    }

    /// Returns the length of one queue.
    pub fn len(&self, stage: usize, switch: usize, class: usize) -> u32 {
        self.lens[self.index(stage, switch, class)]
    }

    /// Returns whether all queues are empty.
    pub fn is_empty(&self) -> bool {
        self.lens.iter().all(|len| *len == 0)
    }

    /// Returns the queue lengths of a stage, as `[switch, class]`.
    pub fn stage(&self, stage: usize) -> &[u32] {
        &self.lens[stage * self.shape.links()..(stage + 1) * self.shape.links()]
    }

    /// Returns all queue lengths, as `[stage, switch, class]`.
    pub fn all(&self) -> &[u32] {
        &self.lens
    }

    /// Returns all queue lengths for modification, as `[stage, switch, class]`.
    pub fn all_mut(&mut self) -> &mut [u32] {
        &mut self.lens
    }

    /// Returns the number of packets in the network.
    pub fn total(&self) -> u64 {
        self.lens.iter().map(|len| u64::from(*len)).sum()
    }

    /// Returns the number of packets in a stage.
    pub fn stage_total(&self, stage: usize) -> u64 {
        self.stage(stage).iter().map(|len| u64::from(*len)).sum()
    }

    /// Adds the packets that arrive at the first stage. `arrivals` contains the number of packets for each queue, as
    /// `[switch, class]`.
    pub fn arrive(&mut self, arrivals: &[u32]) {
        self.lens[..arrivals.len()].iter_mut().zip(arrivals).for_each(|(len, more)| *len += more);
    }

    /// Removes one packet from each non-empty queue of the last stage.
    pub fn leave(&mut self) {
        let last = self.shape.boundaries() * self.shape.links();
        self.lens[last..].iter_mut().for_each(|len| *len = len.saturating_sub(1));
    }

    /// Moves one packet over a link.
    pub fn apply(&mut self, hop: Hop) {
        let (stage, class) = (usize::from(hop.stage), usize::from(hop.class));
        let from = self.index(stage, usize::from(hop.switch), class);
        let to = self.index(stage + 1, usize::from(hop.link), class);
        self.lens[from] -= 1;
        self.lens[to] += 1;
    }

    /// Copies the lengths of `other`, which must have the same shape, without allocating.
    pub fn copy_from(&mut self, other: &Self) {
        self.lens.copy_from_slice(&other.lens);
    }

    fn index(&self, stage: usize, switch: usize, class: usize) -> usize {
        (stage * self.shape.switches + switch) * self.shape.switches + class
    }
}

/// Transmission of a packet over a link, from one stage to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Stage that the packet leaves.
    pub stage: u16,
    /// Switch that the packet leaves.
    pub switch: u16,
    /// Class of the packet.
    pub class: u16,
    /// Link that the packet takes: the number of the switch of the next stage to which the link leads.
    pub link: u16,
}

/// Class number that marks a link without a packet.
const IDLE: u16 = u16::MAX;

/// Assignment of packets to links in a slot: the vector of all actions of the Markov decision process (MDP).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    shape: Shape,
    /// Class of the packet on each link, as `[boundary, switch, link]`.
    classes: Vec<u16>,
}

impl Routing {
    /// Creates a routing in which all links are idle.
    pub fn idle(shape: Shape) -> Self {
        Self { shape, classes: vec![IDLE; shape.boundaries() * shape.links()] }
    }

    /// Returns the size of the network.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Makes all links idle.
    pub fn clear(&mut self) {
        self.classes.fill(IDLE);
    }

    /// Returns the class of the packet on a link, or `None` if the link is idle.
    pub fn class(&self, stage: usize, switch: usize, link: usize) -> Option<usize> {
        let class = self.classes[(stage * self.shape.switches + switch) * self.shape.switches + link];
        (class != IDLE).then_some(usize::from(class))
    }

    /// Assigns a packet to a link.
    pub fn set(&mut self, hop: Hop) {
        let row = usize::from(hop.stage) * self.shape.switches + usize::from(hop.switch);
        self.classes[row * self.shape.switches + usize::from(hop.link)] = hop.class;
    }

    /// Replaces all assignments with `hops`.
    pub fn replace(&mut self, hops: &[Hop]) {
        self.clear();
        hops.iter().for_each(|hop| self.set(*hop));
    }

    /// Returns all packets that are assigned to links, in order of stage, switch and link.
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

    /// Checks that each assigned packet is in the queue from which it is sent, and that no packet waits at a switch
    /// with an idle link.
    ///
    /// # Errors
    /// Fails if an assignment is invalid; the error names the first such switch.
    pub fn check(&self, queues: &Queues) -> Result<(), StudyError> {
        let mut sent = vec![0_u32; self.shape.switches];
        for stage in 0..self.shape.boundaries() {
            for switch in 0..self.shape.switches {
                sent.fill(0);
                let classes = (0..self.shape.switches).filter_map(|link| self.class(stage, switch, link));
                classes.for_each(|class| sent[class] += 1);
                let lens = queues.at(stage, switch);
                let name = |what: &str| format!("number of {what} at stage {stage}, switch {switch}");
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

/// Packet that needs a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Stage that the packet leaves.
    pub stage: usize,
    /// Switch that the packet leaves.
    pub switch: usize,
    /// Class of the packet.
    pub class: usize,
    /// Whether the packet is not the head of its queue and can therefore use only a link that no head of a queue needs.
    pub is_fill: bool,
}

impl Decision {
    /// Returns the transmission of the packet over this link.
    pub fn over(self, link: u16) -> Hop {
        Hop { stage: self.stage as u16, switch: self.switch as u16, class: self.class as u16, link }
    }
}

/// Iterator over the packets of a slot that need links, in the order of the MDP.
#[derive(Clone, Debug)]
pub struct Decisions {
    shape: Shape,
    stage: usize,
    switch: usize,
    class: usize,
    /// Number of packets in the switch's queues that have no link yet, by class.
    remaining: Vec<u32>,
    idle: Vec<u16>,
    /// Whether `remaining` and `idle` describe the current switch.
    is_loaded: bool,
    is_fill: bool,
    /// Whether the current pass over the classes has found a packet that needs a link.
    found: bool,
}

impl Decisions {
    /// Creates the iterator at the beginning of a slot.
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

    /// Moves the iterator back to the beginning of a slot.
    pub fn restart(&mut self) {
        (self.stage, self.switch, self.is_loaded) = (0, 0, false);
    }

    /// Returns the next packet. `start` contains the queues after arrivals and must be the same in all calls for a
    /// slot. A link must have been assigned to the previous packet.
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

    /// Returns the idle links of the current packet's switch, in ascending order.
    pub fn idle(&self) -> &[u16] {
        &self.idle
    }

    /// Assigns the link at `position` in the list of idle links to the current packet, and returns this link.
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

/// Ends a slot: applies the exits, then the transmissions. In this order, a packet cannot move twice in a slot.
pub fn end_slot(queues: &mut Queues, routing: &Routing) {
    queues.leave();
    routing.hops().for_each(|hop| queues.apply(hop));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_shapes_are_refused() {
        let text = |stages, switches| Shape::new(stages, switches).unwrap_err().to_string();
        assert_eq!(text(3, 0), "switches is 0, expected 1 to 256");
        assert_eq!(text(1, 4), "stages is 1, expected 2 to 16");
    }

    #[test]
    fn head_packets_are_routed_first_and_others_fill_idle_links() {
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
    fn a_packet_moves_one_hop_per_slot_and_leaves_after_the_last_hop() {
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
    fn invalid_routings_are_reported_by_field() {
        let shape = Shape::new(2, 2).unwrap();
        let mut queues = Queues::empty(shape);
        queues.arrive(&[1, 0, 0, 0]);
        let mut routing = Routing::idle(shape);
        let text = routing.check(&queues).unwrap_err().to_string();
        assert_eq!(text, "number of links in use at stage 0, switch 0 is 0, expected 1");
        (0..2).for_each(|link| routing.set(Hop { stage: 0, switch: 0, class: 0, link }));
        let text = routing.check(&queues).unwrap_err().to_string();
        assert_eq!(text, "number of packets sent from class 0 at stage 0, switch 0 is 2, expected at most 1");
    }
}
