//! The switch core in the role of the oracle: it determines what the accelerator must do.

use std::net::SocketAddrV4;

use anyhow::{Result, ensure};
use hdl::host::{JobSetup, result_frame};
use iswitch_protocol::Instant;
use iswitch_protocol::limits::ROUND_BITS;
use iswitch_protocol::wire::control::{Status, answer_challenge};
use iswitch_protocol::wire::{Class, ControlBody, ControlPacket, ControlRepr, JoinRepr};
use iswitch_switch::{Config, Counters, Endpoint, NonFinite, PortId, Switch};

/// Result that is sent to one member again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    pub(super) to: SocketAddrV4,
    /// Frame with the result.
    pub(super) bytes: Vec<u8>,
}

/// Switch core with a job that all members have joined.
pub(super) struct Oracle {
    switch: Switch,
    now_ns: u64,
    job: u32,
    /// Frames with the results, in order.
    pub(super) results: Vec<Vec<u8>>,
    /// Results that are sent to one member again, in order.
    pub(super) repeats: Vec<Repeat>,
    /// Last control packet from the core, which may be a challenge to a member or an Ack.
    challenge: Option<Vec<u8>>,
}

fn endpoint(peer: SocketAddrV4) -> Endpoint {
    Endpoint {
        port: PortId(0),
        peer,
        local: hdl::host::RESULT_ADDRESSES.source,
        peer_mac: [0; 6],
        local_mac: [0; 6],
    }
}

impl Oracle {
    pub(super) fn new(setup: &JobSetup) -> Result<Self> {
        let boot = u64::from(setup.base.get()) << (u64::BITS - ROUND_BITS) | 1;
        let config = Config {
            boot,
            lease_ms: u32::MAX,
            slow_ms: u32::MAX,
            memory_bytes: 4 << 20,
            non_finite: NonFinite::Sum,
            ..Config::default()
        };
        let switch = Switch::new(config);
        let mut oracle = Self {
            switch,
            now_ns: 1,
            job: setup.id,
            results: Vec::new(),
            repeats: Vec::new(),
            challenge: None,
        };
        let workers = setup.members.len() as u16;
        for (number, member) in setup.members.iter().enumerate() {
            let layout = &setup.layout;
            let join = JoinRepr {
                instance: number as u32 + 1,
                ..JoinRepr::worker(layout.gradient_len(), layout.segment_floats(), workers)
            };
            oracle.control(member.address, 1, ControlBody::Join(join));
        }
        let job = oracle.switch.jobs().next();
        ensure!(job.is_some(), "the core must admit the job");
        ensure!(oracle.dropped() == 0, "the core must admit all members");
        Ok(oracle)
    }

    /// Passes a control packet to the core, and returns the packet.
    pub(super) fn control(&mut self, from: SocketAddrV4, request: u32, body: ControlBody<'_>) -> Vec<u8> {
        let repr = ControlRepr { job: self.job, request, body };
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes);
        self.receive(from, Class::Control, &bytes);
        if self.challenge.take().is_some_and(|challenge| answer_challenge(&mut bytes, &challenge)) {
            self.receive(from, Class::Control, &bytes);
        }
        bytes
    }

    /// Passes a control packet, which may be malformed, to the core.
    pub(super) fn control_bytes(&mut self, from: SocketAddrV4, bytes: &[u8]) {
        self.receive(from, Class::Control, bytes);
    }

    /// Removes and returns the last control packet from the core.
    pub(super) fn take_answer(&mut self) -> Option<Vec<u8>> {
        self.challenge.take()
    }

    /// Removes the last control packet from the core, and returns its status if it is an Ack.
    pub(super) fn take_status(&mut self) -> Option<Status> {
        let packet = self.take_answer()?;
        let repr = ControlRepr::parse(&ControlPacket::new_checked(&packet[..]).ok()?).ok()?;
        if let ControlBody::Ack(ack) = repr.body { Some(ack.status) } else { None }
    }

    /// Passes a contribution to the core.
    pub(super) fn data(&mut self, from: SocketAddrV4, payload: &[u8]) {
        self.receive(from, Class::Data, payload);
    }

    fn receive(&mut self, from: SocketAddrV4, class: Class, payload: &[u8]) {
        self.now_ns += 1_000_000;
        let now = Instant::from_nanos(self.now_ns);
        self.switch.handle_datagrams(now, &endpoint(from), class, payload, payload.len());
        self.drain();
        while self.switch.poll_timeout().is_some_and(|due| due <= now) {
            self.switch.handle_timeout(now);
            self.drain();
        }
        while self.switch.poll_event().is_some() {}
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.switch.poll_transmit() {
            if transmit.class == Class::Control {
                self.challenge = Some(transmit.payload.to_vec());
            }
            if transmit.class != Class::Data {
                continue;
            }
            // A job has at least two members, and a result goes to all of them.
            let frames = transmit.payload.chunks(transmit.stride).map(result_frame);
            let recipients: Vec<_> = transmit.recipients().collect();
            match *recipients {
                [to] => self.repeats.extend(frames.map(|bytes| Repeat { to: to.peer, bytes })),
                _ => self.results.extend(frames),
            }
        }
    }

    pub(super) fn counters(&self) -> &Counters {
        self.switch.counters()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.switch.counters().dropped()
    }
}
