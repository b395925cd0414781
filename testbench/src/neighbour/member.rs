//! A member that sends arbitrary packets.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::{
    DEFAULT_CONTROL_TOS, DEFAULT_DATA_TOS, MAX_BITMAP_LEN_BYTES, MAX_SUPERFRAME_LEN_BYTES, SEG_LEN_BYTES,
    TRAILER_LEN_BYTES,
};
use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::wire::{ControlBody, ControlPacket, ControlRepr, JoinRepr, Status, emit_seg};
use iswitch_protocol::{Key, Round, Seg, SegmentIndex};
use iswitch_socket::{Options, UdpSocket};

/// Maximum time to wait for an answer, which is long enough for a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which a request is repeated.
const REPEAT_AFTER: Duration = Duration::from_millis(200);

/// Attacker's member: its socket, and the job that it joins.
#[derive(Debug)]
pub(crate) struct Member {
    socket: UdpSocket,
    switch: SocketAddrV4,
    job: u32,
    requests: u32,
    buffer: Vec<u8>,
}

impl Member {
    /// Opens a socket, which the switch does not know yet.
    pub(crate) fn open(switch: SocketAddrV4, job: u32) -> Result<Self, String> {
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let open = || {
            let socket = UdpSocket::bind(any, &Options::default())?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|error: std::io::Error| error.to_string())?;
        Ok(Self { socket, switch, job, requests: 0, buffer: vec![0; MAX_SUPERFRAME_LEN_BYTES] })
    }

    /// Joins the job, and returns the round to start from.
    pub(crate) fn join(&mut self, mut join: JoinRepr) -> Result<Round, Status> {
        let begin = Instant::now();
        while begin.elapsed() < ANSWER_TIMEOUT {
            self.control(ControlBody::Join(join));
            let asked = Instant::now();
            while asked.elapsed() < REPEAT_AFTER {
                match self.answer() {
                    Some((Status::Success, round, _)) => return Ok(round),
                    Some((Status::Challenge, _, nonce)) => {
                        join.nonce = nonce;
                        break;
                    }
                    Some((status, ..)) => return Err(status),
                    None => {}
                }
            }
        }
        Err(Status::UnknownMember)
    }

    /// Returns the status, the round and the history of the next packet, or `None` if no packet arrives within
    /// [`REPEAT_AFTER`] or the packet is not an Ack of the latest request.
    fn answer(&mut self) -> Option<(Status, Round, u64)> {
        let _ = self.socket.wait_readable(Some(REPEAT_AFTER));
        let received = self.socket.recv(&mut self.buffer).ok()?;
        let packet = ControlPacket::new_checked(&self.buffer[..received.len]).ok()?;
        let repr = ControlRepr::parse(&packet).ok()?;
        match repr.body {
            ControlBody::Ack(ack) if repr.request == self.requests => {
                Some((ack.status, ack.round, ack.history))
            }
            _ => None,
        }
    }

    /// Sends a request.
    pub(crate) fn control(&mut self, body: ControlBody<'_>) {
        let packet = self.request(body, 0);
        self.send(DEFAULT_CONTROL_TOS, &packet);
    }

    /// Sends a request signed with a key.
    pub(crate) fn signed_control(&mut self, key: &Key, body: ControlBody<'_>) {
        let mut packet = self.request(body, TRAILER_LEN_BYTES);
        key.sign(Direction::ToSwitch, NO_SESSION, self.requests.into(), &mut packet);
        self.send(DEFAULT_CONTROL_TOS, &packet);
    }

    /// Returns the packet of the next request, followed by `more` zero bytes.
    fn request(&mut self, body: ControlBody<'_>, more: usize) -> Vec<u8> {
        self.requests += 1;
        let repr = ControlRepr { job: self.job, request: self.requests, body };
        let mut packet = vec![0; repr.buffer_len() + more];
        repr.emit(&mut packet);
        packet
    }

    /// Sends a contribution of zeros.
    pub(crate) fn contribute(&self, round: Round, index: u32, floats: u16) {
        let mut packet = vec![0; SEG_LEN_BYTES + usize::from(floats) * size_of::<f32>()];
        let index = SegmentIndex::new(index).expect("the index must fit into 24 bits");
        emit_seg(&mut packet, Seg { index, round, contributions: 1 });
        self.send(DEFAULT_DATA_TOS, &packet);
    }

    fn send(&self, tos: u8, packet: &[u8]) {
        // A packet that the network does not accept is lost, as on any wire.
        let _ = self.socket.send(tos, Some(self.switch), None, packet, packet.len());
    }

    /// Discards all received packets.
    pub(crate) fn drain(&mut self) {
        while self.socket.recv(&mut self.buffer).is_ok() {}
    }
}

/// Bitmap that selects all segments of a range.
pub(crate) const ALL: [u8; MAX_BITMAP_LEN_BYTES] = [0xff; MAX_BITMAP_LEN_BYTES];

/// Returns the range of the first `count` segments of a round.
pub(crate) fn first(round: Round, count: u32) -> RangeRepr {
    RangeRepr { round, first: 0, count }
}
