//! What arrives at the workers, and what they send.

use std::net::SocketAddrV4;

use iswitch_protocol::wire::Class;
use iswitch_protocol::{Round, Seg};

use super::super::addresses::worker_address;
use super::super::checker::{Violation, mix};
use super::super::packets::Packet;
use super::super::process::Progress;
use super::super::swarm::Node;
use super::super::transcript::{describe, is_heartbeat};
use super::super::wires::Direction;
use super::super::worker::Options;
use super::super::{Happening, JOB};
use super::World;

const FIRST_UDP_PORT: u16 = 5000;

impl World<'_> {
    pub(super) fn give_worker(
        &mut self,
        worker: usize,
        slot: u32,
        peer: SocketAddrV4,
    ) -> Result<(), Violation> {
        let packet = self.wires.packets.take(slot);
        let Packet { class, bytes, stride } = &packet;
        if !is_heartbeat(*class, bytes) {
            let text = || format!("-> {peer}: {}", describe(*class, bytes, *stride));
            self.transcript.note(self.now, text);
        }
        self.workers[worker].handle_datagrams(self.now, *class, bytes, *stride);
        self.wires.packets.give_back(slot, packet);
        self.flush_worker(worker)?;
        self.schedule(Node::Worker(worker));
        Ok(())
    }

    /// Lets the training loop react, and sends what the worker has to send.
    pub(super) fn flush_worker(&mut self, worker: usize) -> Result<(), Violation> {
        let node = &mut self.workers[worker];
        let Progress { delivered, rejoins, repeated, poisoned } =
            node.advance(self.now, &self.training, &mut self.checker)?;
        self.report.rounds += delivered;
        self.report.segments += delivered * u64::from(self.checker.segments());
        self.report.rejoins += rejoins;
        self.report.repeated_rounds += repeated;
        self.report.poisoned += poisoned;
        let (clock, address) = (node.process.clock(self.now), node.address());
        if delivered > 0 {
            self.transcript.note(self.now, || format!("{address} has its sum"));
        }
        let node = &mut self.workers[worker];
        let (life, gradient) = (node.life, node.gradient());
        let Some(protocol) = &mut node.worker else { return Ok(()) };
        while let Some((class, stride)) = protocol.poll_transmit(clock, &mut self.buffer) {
            let datagrams = self.buffer.len().div_ceil(stride.max(1)) as u64;
            match class {
                Class::Data => self.report.data_packets += datagrams,
                Class::Control => self.report.control_packets += datagrams,
            }
            if class == Class::Data {
                // All packets of a super-frame are of the same round.
                let seg = self.buffer.first_chunk().map(|bytes| Seg::from_bytes(*bytes));
                let round = seg.map_or(Round::default(), |seg| seg.round);
                let (boot, supplies) = (protocol.boot(), protocol.supplies(round));
                self.checker.offered(life, (boot, round), gradient, supplies)?;
                let is_newest = self.named.is_none_or(|named| named.is_before(round));
                if boot == self.switches[0].boot && is_newest {
                    self.named = Some(round);
                }
            }
            self.wires.send(self.now, Direction::Up, &[address], class, &self.buffer, stride);
        }
        Ok(())
    }

    /// A process that takes over a UDP port waits until nothing sent from it is under way, as TCP does
    /// (RFC 9293 section 3.4.3).
    pub(super) fn start_worker(&mut self, worker: usize, new_port: bool) -> Result<(), Violation> {
        let quiet_time = self.scenario.link.max_lifetime();
        let node = &mut self.workers[worker];
        if !node.will_start {
            return Ok(());
        }
        node.crash(self.now);
        let is_first = node.udp_port == 0;
        let quiet_until = node.ended_at.plus(quiet_time);
        if !is_first && !new_port && self.now < quiet_until {
            let again = Happening::StartWorker { worker, new_port };
            self.wires.queue.push(quiet_until, again);
            return Ok(());
        }
        node.will_start = false;
        let life = self.next_life;
        self.next_life += 1;
        let udp_port = if is_first || new_port { FIRST_UDP_PORT + life as u16 } else { node.udp_port };
        let options = Options {
            job: JOB,
            layout: self.checker.layout(),
            workers: if self.scenario.declared { self.scenario.workers as u16 } else { 0 },
            recv_buffer_bytes: self.scenario.worker_buffer_bytes,
            instance: mix(self.seed ^ (life as u64) << 40) as u32,
            protection: self.scenario.protection,
        };
        node.start(self.now, life, udp_port, options);
        self.lives.insert(worker_address(worker, udp_port), life);
        self.note(|| format!("worker {worker} starts as life {life} at port {udp_port}"));
        self.flush_worker(worker)?;
        self.schedule(Node::Worker(worker));
        Ok(())
    }
}
