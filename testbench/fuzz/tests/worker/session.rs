//! Fuzz target: a worker of a synchronous job.

use std::time::Duration;

use iswitch::worker::Path;
use iswitch::worker::auth::Authenticator;
use iswitch::worker::session::{Session, SessionConfig};
use iswitch_protocol::Instant;
use iswitch_protocol::wire::{ControlBody, Mode};

use crate::turn::{Scenario, Turn};
use crate::upstream::{self, JOB, Upstream};

/// Maximum number of packets that the worker sends after one call.
const MAX_TRANSMITS: usize = 10_000;

struct World {
    session: Session,
    upstream: Upstream,
    now: Instant,
    contribution: Vec<f32>,
    buffer: Vec<u8>,
}

impl World {
    fn new(scenario: &Scenario) -> Self {
        let layout = upstream::layout(scenario);
        let config = SessionConfig {
            job: JOB,
            layout,
            parts: 1,
            join: upstream::join(scenario, Mode::Synchronous),
            recv_buffer_bytes: usize::from(scenario.recv_buffer_bytes),
            heartbeats: scenario.heartbeats,
            name: upstream::name(scenario),
        };
        let now = Instant::from_nanos(1_000_000);
        let mut session = Session::new(config, now);
        if let Some(key) = upstream::key(scenario) {
            session = session.with_key(Authenticator::new(key, 1000));
        }
        let contribution = (0..layout.gradient_len()).map(|i| i as f32 + 0.5).collect();
        let upstream = Upstream::new(scenario);
        Self { session, upstream, now, contribution, buffer: Vec::new() }
    }

    fn perform(&mut self, turn: &Turn) {
        match turn {
            Turn::Begin => self.session.begin_round(self.now),
            Turn::Take => self.session.abandon_round(),
            Turn::Order(kind) => self.order(*kind),
            Turn::Sleep { ms } => self.sleep(Duration::from_millis(u64::from(*ms))),
            _ => {
                if let Some(said) = self.upstream.say(turn, self.session.round()) {
                    let path = Path::Unicast;
                    self.session.handle_scattered(self.now, path, said.class, &said.bytes, said.stride);
                }
            }
        }
        self.settle();
    }

    fn order(&mut self, kind: u8) {
        let body = match kind {
            0 => ControlBody::Leave,
            1 => ControlBody::SetH { threshold: 1 },
            _ => ControlBody::Halt,
        };
        let id = self.session.begin_request();
        let (class, stride) = self.session.emit(id, body, &mut self.buffer);
        self.upstream.hear(class, &self.buffer, stride, None);
    }

    fn sleep(&mut self, duration: Duration) {
        let end = self.now.plus(duration);
        while let Some(due) = self.session.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.session.handle_timeout(self.now);
            self.settle();
            assert!(
                self.session.poll_timeout().is_none_or(|next| next > self.now),
                "the driver would never sleep"
            );
        }
        self.now = end;
    }

    /// Performs the driver's work after each call.
    fn settle(&mut self) {
        let _ = self.session.take_acknowledgement();
        if let Some(Ok(finished)) = self.session.take_outcome() {
            let contributions = self.session.contributions();
            let counted = |index: u32| Some(contributions[index as usize]);
            self.upstream.check_sum(finished.round, self.session.sum(), counted);
            assert_eq!(finished.fewest, *contributions.iter().min().expect("the vector must have a segment"));
            assert_eq!(finished.most, *contributions.iter().max().expect("the vector must have a segment"));
        }
        assert!(self.session.remaining() <= self.upstream.layout.segment_count() as usize);
        for _ in 0..MAX_TRANSMITS {
            let sent = self.session.poll_transmit(self.now, &self.contribution, &mut self.buffer);
            let Some((class, stride)) = sent else { return };
            // A worker that supplies a sum sends the sum instead of its own contribution, so the floats are not
            // checked.
            self.upstream.hear(class, &self.buffer, stride, None);
        }
        panic!("the worker must stop sending");
    }
}

/// Checks that, whatever packets the switch sends, nothing panics, a round ends with the results that were sent, and no
/// deadline that has been handled is still due.
pub(crate) fn run(scenario: &Scenario) {
    let mut world = World::new(scenario);
    scenario.turns.iter().for_each(|turn| world.perform(turn));
    world.sleep(Duration::from_secs(3));
}
