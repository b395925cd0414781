//! Simulates a plan: every packet of every message on the links, and every super-frame on the processors of both ends.
//!
//! The network between the hosts has no bottleneck: a packet competes with others only on the first and on the last
//! link, and each switch between them receives the whole packet before it forwards it.

use std::collections::VecDeque;

use super::costs::to_picos;
use super::plan::{Message, NOTHING, Plan};
use super::resources::{Cable, Link, Processes};
use super::wire::Framing;
use super::{Picos, Scenario};
use iswitch_simulation::queue::Queue;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A gate opens.
    Open(u32),
    /// The processor of a host has handed a super-frame to its network card.
    Sent(u32),
    /// A packet with the given number of payload bytes arrives at the last switch before the receiver.
    Forwarded(u32, u32),
    /// The last packet of a super-frame has arrived at its receiver.
    Arrived(u32),
    /// A host has received and processed a super-frame.
    Received(u32),
}

/// Super-frame in flight.
#[derive(Clone, Copy, Debug)]
struct Frame {
    message: Message,
    bytes: u32,
    packets_missing: u32,
    is_last: bool,
}

/// Unsent part of a message at a host.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    message: Message,
    sent: u32,
}

#[derive(Clone, Debug)]
struct Host {
    up: Link,
    down: Link,
    outgoing: VecDeque<Outgoing>,
    is_sending: bool,
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    framing: Framing,
    cable: Cable,
    starts: Vec<Picos>,
    plan: Plan,
    hosts: Vec<Host>,
    processes: Processes,
    frames: Vec<Frame>,
    free: Vec<u32>,
    queue: Queue<Event, Picos>,
    end: Picos,
}

/// Returns the time until all messages of the plan have been received.
pub(super) fn run(scenario: &Scenario, plan: Plan) -> Picos {
    let cable = scenario.cable();
    let link = Link::new(cable);
    let host = Host { up: link, down: link, outgoing: VecDeque::new(), is_sending: false };
    let wake = to_picos(scenario.costs.wake_ns);
    let mut simulation = Simulation {
        scenario,
        framing: Framing::stream(),
        cable,
        starts: scenario.starts(),
        hosts: vec![host; plan.hosts],
        processes: Processes::new(plan.hosts, scenario.shared_cores, wake),
        plan,
        frames: Vec::new(),
        free: Vec::new(),
        queue: Queue::new(),
        end: 0,
    };
    for gate in (0..).zip(&simulation.plan.gates).filter(|(_, gate)| gate.missing == 0).map(|(at, _)| at) {
        simulation.queue.push(0, Event::Open(gate));
    }
    simulation.run()
}

impl Simulation<'_> {
    fn run(mut self) -> Picos {
        while let Some((now, event)) = self.queue.pop() {
            match event {
                Event::Open(gate) => self.open(gate, now),
                Event::Sent(frame) => self.leave(frame, now),
                Event::Forwarded(frame, bytes) => self.forward(frame, bytes, now),
                Event::Arrived(frame) => self.arrive(frame, now),
                Event::Received(frame) => self.receive(frame, now),
            }
        }
        self.end
    }

    fn open(&mut self, gate: u32, now: Picos) {
        let messages = std::mem::take(&mut self.plan.gates[gate as usize].messages);
        if let Some(from) = messages.first().map(|message| message.from as usize) {
            // A host cannot contribute before it has begun.
            let start = self.starts.get(from).copied().unwrap_or(0);
            if start > now {
                self.plan.gates[gate as usize].messages = messages;
                return self.queue.push(start, Event::Open(gate));
            }
            let outgoing = messages.into_iter().map(|message| Outgoing { message, sent: 0 });
            self.hosts[from].outgoing.extend(outgoing);
            self.send_next(from, now);
        }
        for follower in self.plan.gates[gate as usize].followers.into_iter().flatten() {
            self.count_down(follower, now);
        }
    }

    fn count_down(&mut self, gate: u32, now: Picos) {
        let missing = &mut self.plan.gates[gate as usize].missing;
        *missing -= 1;
        if *missing == 0 {
            self.open(gate, now);
        }
    }

    /// Sends one super-frame at a time, so that received super-frames are processed in between.
    fn send_next(&mut self, host: usize, now: Picos) {
        if self.hosts[host].is_sending {
            return;
        }
        let Some(next) = self.hosts[host].outgoing.front_mut() else { return };
        let most = (self.framing.payload_bytes * self.framing.packets) as u32;
        let (message, bytes) = (next.message, most.min(next.message.bytes - next.sent));
        next.sent += bytes;
        let is_last = next.sent == message.bytes;
        if is_last {
            self.hosts[host].outgoing.pop_front();
        }
        self.hosts[host].is_sending = true;
        let done = self.processes.run(host, now, self.scenario.costs.stream.send.of(bytes as usize));
        let packets_missing = self.framing.packets(bytes as usize).count() as u32;
        let frame = Frame { message, bytes, packets_missing, is_last };
        let place = self.free.pop().unwrap_or_else(|| {
            self.frames.push(frame);
            self.frames.len() as u32 - 1
        });
        self.frames[place as usize] = frame;
        self.queue.push(done, Event::Sent(place));
    }

    fn leave(&mut self, frame: u32, now: Picos) {
        let Frame { message, bytes, .. } = self.frames[frame as usize];
        let from = message.from as usize;
        // A shorter packet behind a full one waits for it at each switch.
        let largest = self.framing.payload_bytes.min(message.bytes as usize);
        let largest = self.framing.wire_bytes(largest) as Picos * self.cable.picos_per_byte;
        let between = Picos::from(message.hops.saturating_sub(2)) * (self.cable.delay + largest);
        for payload in self.framing.packets(bytes as usize) {
            let wire_bytes = self.framing.wire_bytes(payload);
            let at_switch = self.hosts[from].up.carry(now, wire_bytes);
            self.queue.push(at_switch + between, Event::Forwarded(frame, payload as u32));
        }
        self.hosts[from].is_sending = false;
        self.send_next(from, now);
    }

    fn forward(&mut self, frame: u32, payload: u32, now: Picos) {
        let place = &mut self.frames[frame as usize];
        let wire_bytes = self.framing.wire_bytes(payload as usize);
        let arrival = self.hosts[place.message.to as usize].down.carry(now, wire_bytes);
        place.packets_missing -= 1;
        if place.packets_missing == 0 {
            self.queue.push(arrival, Event::Arrived(frame));
        }
    }

    fn arrive(&mut self, frame: u32, now: Picos) {
        let Frame { message, bytes, .. } = self.frames[frame as usize];
        let costs = &self.scenario.costs;
        let receive = costs.stream.receive;
        let cost = if message.is_added { receive.plus(costs.worker_add) } else { receive };
        let done = self.processes.react(message.to as usize, now, cost.of(bytes as usize));
        self.queue.push(done, Event::Received(frame));
    }

    fn receive(&mut self, frame: u32, now: Picos) {
        let Frame { message, is_last, .. } = self.frames[frame as usize];
        self.free.push(frame);
        self.end = self.end.max(now);
        // The super-frames of a message arrive in order.
        if is_last && message.opens != NOTHING {
            self.count_down(message.opens, now);
        }
    }
}
