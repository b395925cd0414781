//! Tests that the parts of a vector stay in agreement in a deterministic simulation: real sessions and real switch
//! cores, a virtual clock, and a network that loses, duplicates and reorders packets. The switches of one or both parts
//! restart.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use iswitch::worker::session::{Session, SessionConfig};
use iswitch_protocol::wire::{Class, JoinRepr, NameRepr};
use iswitch_protocol::{Instant, VectorLayout};
use iswitch_switch::{Config, Endpoint, Keys, PortId, SECRET_LEN_BYTES, Switch};

const JOB: u32 = 3;
const MEMBERS: usize = 3;
const PARTS: usize = 2;
const CALLS: u32 = 25;
const SEGMENT_FLOATS: u16 = 2;
/// Number of floats in each part: five segments.
const LEN: u32 = 9;
const SEEDS: u64 = 150;
/// Number of simulation steps after which a run counts as stuck.
const MAX_STEPS: u32 = 200_000;

/// Pseudo-random number generator (xorshift) whose output is the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn has(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }
}

/// Packet in flight, from a member to its switch or in the opposite direction.
#[derive(Clone)]
struct Packet {
    part: usize,
    member: usize,
    to_switch: bool,
    class: Class,
    payload: Vec<u8>,
    stride: usize,
}

/// A worker: its sessions, its current call, and the parts that have finished this call.
struct Member {
    sessions: Vec<Session>,
    call: u32,
    done: [bool; PARTS],
    is_in_call: bool,
}

struct World {
    random: Random,
    now_ns: u64,
    boots: u64,
    switches: Vec<Switch>,
    members: Vec<Member>,
    wire: Vec<Packet>,
}

fn endpoint(member: usize) -> Endpoint {
    let local = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 254), 7711);
    let peer = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, member as u8 + 1), 5000);
    Endpoint { port: PortId(0), peer, local, peer_mac: [0; 6], local_mac: [0; 6] }
}

fn value(member: usize, call: u32) -> f32 {
    (1 << (8 * member)) as f32 * call as f32
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            now_ns: 1,
            boots: 0,
            switches: Vec::new(),
            members: Vec::new(),
            wire: Vec::new(),
        };
        world.switches = (0..PARTS).map(|_| world.start_switch()).collect();
        world.members = (0..MEMBERS).map(|member| world.start_member(member)).collect();
        world
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ns)
    }

    fn start_switch(&mut self) -> Switch {
        self.boots += 1;
        // The rounds of each incarnation have different numbers.
        let boot = self.random.below(1 << 24) << 40 | self.boots;
        // Nonces of an earlier run must not admit a Join that was delayed in the network.
        let secret = std::array::from_fn::<_, SECRET_LEN_BYTES, _>(|_| self.random.below(256) as u8);
        let config = Config { boot, lease_ms: 60_000, memory_bytes: 1 << 16, ..Config::default() };
        Switch::with_keys(config, Keys::new(secret))
    }

    fn start_member(&mut self, member: usize) -> Member {
        let instance = member as u32 + 1;
        let config = SessionConfig {
            job: JOB,
            layout: VectorLayout::new(LEN, SEGMENT_FLOATS).unwrap(),
            parts: PARTS,
            join: JoinRepr { part: true, instance, ..JoinRepr::worker(LEN, SEGMENT_FLOATS, MEMBERS as u16) },
            recv_buffer_bytes: 1 << 20,
            heartbeats: true,
            name: NameRepr::UNKNOWN,
        };
        let sessions = (0..PARTS).map(|_| Session::new(config, self.now())).collect();
        Member { sessions, call: 0, done: [false; PARTS], is_in_call: false }
    }

    /// Collects the packets that all nodes send.
    fn collect(&mut self) {
        let now = self.now();
        let mut sent = Vec::new();
        for (at, member) in self.members.iter_mut().enumerate() {
            let vector = vec![value(at, member.call); LEN as usize];
            for (part, session) in member.sessions.iter_mut().enumerate() {
                let mut payload = Vec::new();
                while let Some((class, stride)) = session.poll_transmit(now, &vector, &mut payload) {
                    let payload = payload.clone();
                    sent.push(Packet { part, member: at, to_switch: true, class, payload, stride });
                }
            }
        }
        for (part, switch) in self.switches.iter_mut().enumerate() {
            while let Some(transmit) = switch.poll_transmit() {
                for to in transmit.recipients() {
                    let member = usize::from(to.peer.ip().octets()[3]) - 1;
                    let (payload, stride) = (transmit.payload.to_vec(), transmit.stride);
                    sent.push(Packet {
                        part,
                        member,
                        to_switch: false,
                        class: transmit.class,
                        payload,
                        stride,
                    });
                }
            }
        }
        for packet in sent {
            if self.random.has(50) {
                continue;
            }
            if self.random.has(50) {
                self.wire.push(packet.clone());
            }
            self.wire.push(packet);
        }
    }

    fn deliver(&mut self) {
        let at = self.random.below(self.wire.len() as u64) as usize;
        let Packet { part, member, to_switch, class, payload, stride } = self.wire.swap_remove(at);
        let now = self.now();
        if to_switch {
            self.switches[part].handle_datagrams(now, &endpoint(member), class, &payload, stride);
        } else {
            self.members[member].sessions[part].handle_datagrams(now, class, &payload, stride);
        }
    }

    fn advance(&mut self) {
        self.now_ns += Duration::from_micros(200).as_nanos() as u64;
        let now = self.now();
        self.switches.iter_mut().for_each(|switch| switch.handle_timeout(now));
        let sessions = self.members.iter_mut().flat_map(|member| &mut member.sessions);
        for session in sessions.filter(|session| session.poll_timeout().is_some_and(|at| at <= now)) {
            session.handle_timeout(now);
        }
    }

    /// Begins and ends the calls of the members, and checks every sum and every turn.
    fn follow(&mut self) {
        let now = self.now();
        for member in &mut self.members {
            if !member.is_in_call && member.call < CALLS {
                let are_admitted = member.sessions.iter().all(|session| session.membership().is_some());
                if !are_admitted {
                    continue;
                }
                for session in &mut member.sessions {
                    assert_eq!(session.turn(), Some(member.call), "all parts must be at the same vector");
                    session.begin_round(now);
                }
                (member.is_in_call, member.done) = (true, [false; PARTS]);
            }
            for (part, session) in member.sessions.iter_mut().enumerate() {
                let Some(outcome) = session.take_outcome() else { continue };
                let finished = outcome.expect("no round is lost");
                let expected: f32 = (0..MEMBERS).map(|other| value(other, member.call)).sum();
                assert_eq!((finished.fewest, finished.most), (MEMBERS as u16, MEMBERS as u16));
                assert!(session.sum().iter().all(|x| *x == expected), "part {part} of call {}", member.call);
                assert_eq!(session.turn(), Some(member.call + 1));
                member.done[part] = true;
            }
            if member.is_in_call && member.done == [true; PARTS] {
                member.is_in_call = false;
                member.call += 1;
            }
        }
    }

    fn run(&mut self, restarts: u32) {
        let mut left = restarts;
        for _ in 0..MAX_STEPS {
            self.collect();
            if self.wire.is_empty() || self.random.has(20) {
                self.advance();
            } else {
                self.deliver();
            }
            self.follow();
            let has_begun = self.members.iter().any(|member| member.call > 0);
            if left > 0 && has_begun && self.random.has(2) {
                left -= 1;
                let (part, both) = (self.random.below(PARTS as u64) as usize, self.random.has(500));
                for at in (0..PARTS).filter(|at| both || *at == part) {
                    self.switches[at] = self.start_switch();
                }
            }
            if self.members.iter().all(|member| member.call == CALLS) {
                return;
            }
        }
        let calls: Vec<_> = self.members.iter().map(|member| (member.call, member.done)).collect();
        panic!("stuck at {calls:?}");
    }
}

#[test]
fn parts_stay_at_the_same_vector_through_loss_and_restarts() {
    for seed in 1..=SEEDS {
        let restarts = (seed % 7) as u32;
        let outcome = std::panic::catch_unwind(|| World::new(seed).run(restarts));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}
