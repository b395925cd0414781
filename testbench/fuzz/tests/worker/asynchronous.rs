//! Fuzz target: a worker of an asynchronous job.

use std::time::Duration;

use iswitch::worker::asynchronous::{AsyncProtocol, Sum};
use iswitch::worker::auth::Authenticator;
use iswitch::worker::session::SessionConfig;
use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::wire::{ControlBody, Mode};
use iswitch_protocol::{Instant, Round};

use crate::turn::{Scenario, Turn};
use crate::upstream::{self, JOB, Upstream};

/// Maximum number of packets that the worker sends after one call.
const MAX_TRANSMITS: usize = 10_000;

struct World {
    protocol: AsyncProtocol,
    upstream: Upstream,
    now: Instant,
    vector: Vec<f32>,
    buffer: Vec<u8>,
    /// Aggregate whose sum is expected next; `None` after a failure.
    expected: Option<Round>,
}

impl World {
    fn new(scenario: &Scenario) -> Self {
        let layout = upstream::layout(scenario);
        let config = SessionConfig {
            job: JOB,
            layout,
            parts: 1,
            join: upstream::join(scenario, Mode::Asynchronous),
            recv_buffer_bytes: usize::from(scenario.recv_buffer_bytes),
            heartbeats: scenario.heartbeats,
            name: upstream::name(scenario),
        };
        let now = Instant::from_nanos(1_000_000);
        let mut protocol = AsyncProtocol::new(config, now);
        if let Some(key) = upstream::key(scenario) {
            protocol = protocol.with_key(Authenticator::new(key, 1000));
        }
        let vector = (0..layout.gradient_len()).map(|i| i as f32 + 0.5).collect();
        Self { protocol, upstream: Upstream::new(scenario), now, vector, buffer: Vec::new(), expected: None }
    }

    fn perform(&mut self, turn: &Turn) {
        match turn {
            Turn::Begin => {
                if self.protocol.is_ready() {
                    self.protocol.submit(self.now, &self.vector);
                }
            }
            Turn::Take => self.take(),
            Turn::Order(kind) => self.order(*kind),
            Turn::Sleep { ms } => self.sleep(Duration::from_millis(u64::from(*ms))),
            _ => {
                let at = self.place(turn);
                if let Some(said) = self.upstream.say(turn, at) {
                    self.protocol.handle_datagrams(self.now, said.class, &said.bytes, said.stride);
                }
            }
        }
        self.settle();
    }

    /// Returns the number to which a turn's offset is added: the next aggregate, or a fixed round for the first Join.
    fn place(&self, turn: &Turn) -> Round {
        match (turn, self.protocol.membership()) {
            (Turn::Join(_), None) => Round::new(7),
            _ => self.protocol.next_aggregate(),
        }
    }

    /// Takes all available sums, and checks that they are in order and consist of results that were sent.
    fn take(&mut self) {
        while let Some(Sum { aggregate, vector, .. }) = self.protocol.take_sum() {
            assert!(self.expected.is_none_or(|expected| expected == aggregate), "sums must be in order");
            self.expected = Some(aggregate.next());
            self.upstream.check_sum(aggregate, &vector, |_| None);
            self.protocol.recycle(vector);
        }
        if self.protocol.take_failure().is_some() {
            self.expected = None;
        }
        let _ = (self.protocol.take_submission(), self.protocol.take_divergence());
        let _ = self.protocol.take_order_outcome();
    }

    fn order(&mut self, kind: u8) {
        let aggregate = self.protocol.next_aggregate();
        match kind {
            0 => self.protocol.order(self.now, ControlBody::SetH { threshold: 1 }),
            1 => self.protocol.order(self.now, ControlBody::RESET),
            2 => {
                let range = RangeRepr { round: aggregate, first: 0, count: 1 };
                self.protocol.order(self.now, ControlBody::FBcast(range));
            }
            _ => self.protocol.send_digest(aggregate, 7),
        }
    }

    fn sleep(&mut self, duration: Duration) {
        let end = self.now.plus(duration);
        while let Some(due) = self.protocol.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.protocol.handle_timeout(self.now);
            self.settle();
            assert!(
                self.protocol.poll_timeout().is_none_or(|next| next > self.now),
                "the driver would never sleep"
            );
        }
        self.now = end;
    }

    /// Performs the driver's work after each call.
    fn settle(&mut self) {
        for _ in 0..MAX_TRANSMITS {
            let Some((class, stride)) = self.protocol.poll_transmit(self.now, &mut self.buffer) else {
                return;
            };
            self.upstream.hear(class, &self.buffer, stride, Some(&self.vector));
        }
        panic!("the worker must stop sending");
    }
}

/// Checks that, whatever packets the switch sends, nothing panics, sums are in order and equal the results that were
/// sent, and no deadline that has been handled is still due.
pub(crate) fn run(scenario: &Scenario) {
    let mut world = World::new(scenario);
    scenario.turns.iter().for_each(|turn| world.perform(turn));
    world.take();
    world.sleep(Duration::from_secs(3));
}
