//! Tests of the embedded switch on the loopback interface, with plain UDP sockets as members.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use iswitch_protocol::limits::{
    DEFAULT_CONTROL_TOS, DEFAULT_DATA_TOS, MAX_CONTROL_LEN_BYTES, MAX_SUPERFRAME_LEN_BYTES,
};
use iswitch_protocol::wire::control::answer_challenge;
use iswitch_protocol::wire::{
    AckRepr, ControlBody, ControlPacket, ControlRepr, DataPacket, JoinRepr, Status, emit_seg,
};
use iswitch_protocol::{Round, Seg, SegmentIndex};
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};
use iswitch_socket::{Options, UdpSocket};
use iswitch_switch::Config;

const LOCALHOST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
const FLOATS: usize = 366;
const SEGMENTS: usize = 100;
const STRIDE: usize = 8 + FLOATS * 4;
const JOB: u32 = 7;

struct Member {
    socket: UdpSocket,
}

impl Member {
    fn connect(switch: SocketAddrV4) -> Self {
        Self::connect_from(LOCALHOST, switch)
    }

    fn connect_from(local: SocketAddrV4, switch: SocketAddrV4) -> Self {
        let socket = UdpSocket::bind(local, &Options::default()).unwrap();
        socket.connect(switch).unwrap();
        Self { socket }
    }

    fn send_join(&self, instance: u32) {
        self.send_join_of(instance, 2);
    }

    /// Sends a Join, then sends it again with the nonce from the challenge that the switch returned.
    fn send_join_of(&self, instance: u32, workers: u16) {
        let join =
            JoinRepr { instance, ..JoinRepr::worker((FLOATS * SEGMENTS) as u32, FLOATS as u16, workers) };
        let repr = ControlRepr { job: JOB, request: 1, body: ControlBody::Join(join) };
        let mut join = vec![0; repr.buffer_len()];
        let len = repr.emit(&mut join);
        self.socket.send(DEFAULT_CONTROL_TOS, None, None, &join, len).unwrap();
        let mut challenge = [0; MAX_CONTROL_LEN_BYTES];
        assert!(self.socket.wait_readable(Some(Duration::from_secs(5))).unwrap());
        let received = self.socket.recv(&mut challenge).unwrap();
        assert!(answer_challenge(&mut join, &challenge[..received.len]));
        self.socket.send(DEFAULT_CONTROL_TOS, None, None, &join, len).unwrap();
    }

    /// Receives packets until an Ack arrives, and returns the result of `take` for it.
    fn ack<T>(&self, take: impl Fn(&AckRepr<'_>) -> T) -> T {
        let mut buffer = vec![0; MAX_SUPERFRAME_LEN_BYTES];
        loop {
            assert!(self.socket.wait_readable(Some(Duration::from_secs(5))).unwrap());
            let received = self.socket.recv(&mut buffer).unwrap();
            if received.tos == Some(DEFAULT_CONTROL_TOS) {
                let packet = ControlPacket::new_checked(&buffer[..received.len]).unwrap();
                let repr = ControlRepr::parse(&packet).unwrap();
                if let ControlBody::Ack(ack) = repr.body {
                    return take(&ack);
                }
            }
        }
    }

    fn contribute(&self, round: Round, value: f32) {
        let mut payload = vec![0; SEGMENTS * STRIDE];
        for (index, packet) in payload.chunks_mut(STRIDE).enumerate() {
            let index = SegmentIndex::new(index as u32).unwrap();
            let floats = emit_seg(packet, Seg { index, round, contributions: 1 });
            floats.chunks_mut(4).for_each(|float| float.copy_from_slice(&value.to_le_bytes()));
        }
        let sent = self.socket.send(DEFAULT_DATA_TOS, None, None, &payload, STRIDE).unwrap();
        assert_eq!(sent, payload.len());
    }

    /// Receives the results of all segments and checks that each float is `value`.
    fn expect(&self, round: Round, value: f32) {
        self.expect_of(round, value, 2);
    }

    fn expect_of(&self, round: Round, value: f32, contributions: u16) {
        let mut buffer = vec![0; MAX_SUPERFRAME_LEN_BYTES];
        let mut seen = [false; SEGMENTS];
        while seen.contains(&false) {
            assert!(self.socket.wait_readable(Some(Duration::from_secs(5))).unwrap());
            let received = self.socket.recv(&mut buffer).unwrap();
            if received.tos == Some(DEFAULT_CONTROL_TOS) {
                // The notice that the job is complete.
                continue;
            }
            assert_eq!(received.tos, Some(DEFAULT_DATA_TOS));
            for bytes in buffer[..received.len].chunks(received.stride) {
                let packet = DataPacket::new_checked(bytes).unwrap();
                assert_eq!((packet.seg().round, packet.seg().contributions), (round, contributions));
                assert!(packet.floats().all(|float| float.to_bits() == value.to_bits()));
                seen[packet.seg().index.get() as usize] = true;
            }
        }
    }
}

#[test]
fn two_members_get_the_sum() {
    let switch = EmbeddedSwitch::start(LOCALHOST, &EmbeddedOptions::default()).unwrap();
    let members = [Member::connect(switch.address()), Member::connect(switch.address())];
    for (instance, member) in members.iter().enumerate() {
        member.send_join(instance as u32);
    }
    let rounds = members.each_ref().map(|member| {
        member.ack(|ack| {
            assert_eq!(ack.status, Status::Success);
            assert!(ack.window > 0 && ack.boot != 0);
            ack.round
        })
    });
    assert_eq!(rounds[0], rounds[1]);
    let mut round = rounds[0];
    for step in 0..20 {
        members[0].contribute(round, 1.5);
        members[1].contribute(round, step as f32);
        for member in &members {
            member.expect(round, 1.5 + step as f32);
        }
        round = round.next();
    }
    let snapshot = switch.snapshot().unwrap();
    assert_eq!(snapshot.traffic.get("results"), 20 * SEGMENTS as u64);
    assert_eq!(snapshot.drops.total(), 0, "{:?}", snapshot.drops);
    assert_eq!(snapshot.jobs.len(), 1);
    assert_eq!(snapshot.jobs[0].members.len(), 2);
    let port = &snapshot.ports[0].counters;
    // The results, two challenges, two Acks, and the notice to the member that joined first.
    assert_eq!(port.get("sent_datagrams"), 2 * snapshot.traffic.get("results") + 5);
    assert_eq!(port.get("send_errors") + port.get("send_full") + port.get("receive_errors"), 0);
}

#[test]
fn ordered_sums_have_the_same_bits_for_any_arrival_order() {
    let config = Config { ordered: true, ..Config::default() };
    let options = EmbeddedOptions { config, ..EmbeddedOptions::default() };
    let switch = EmbeddedSwitch::start(LOCALHOST, &options).unwrap();
    // Members with equal ranks are ordered by address, independently of the order of their Joins.
    let members = [3, 2, 1].map(|host| {
        let local = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, host), 0);
        Member::connect_from(local, switch.address())
    });
    for member in &members {
        member.send_join_of(1, 3);
    }
    let rounds = members.each_ref().map(|member| member.ack(|ack| ack.round));
    let mut round = rounds[0];
    for arrival in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for at in arrival {
            members[at].contribute(round, [1.0, -1e8, 1e8][at]);
        }
        for member in &members {
            member.expect_of(round, 1e8 - 1e8 + 1.0, 3);
        }
        round = round.next();
    }
}

#[test]
fn untagged_datagrams_do_not_reach_the_core() {
    let switch = EmbeddedSwitch::start(LOCALHOST, &EmbeddedOptions::default()).unwrap();
    let stranger = Member::connect(switch.address());
    stranger.socket.send(0, None, None, &[0; 3000], 1000).unwrap();
    stranger.send_join(1);
    stranger.ack(|ack| assert_eq!(ack.status, Status::Success));
    let snapshot = switch.snapshot().unwrap();
    assert_eq!(snapshot.ports[0].counters.get("untagged"), 3);
    assert_eq!(snapshot.traffic.get("control_received"), 2);
    assert_eq!(snapshot.traffic.get("data_received"), 0);
}

#[test]
fn dropping_the_switch_ends_its_thread_and_frees_its_address() {
    let switch = EmbeddedSwitch::start(LOCALHOST, &EmbeddedOptions::default()).unwrap();
    let address = switch.address();
    let taken = EmbeddedSwitch::start(address, &EmbeddedOptions::default()).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    drop(switch);
    // A program that another test starts inherits the socket until it calls `exec`.
    let is_free = || EmbeddedSwitch::start(address, &EmbeddedOptions::default()).is_ok();
    let begun = Instant::now();
    while !is_free() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(10));
    }
}
