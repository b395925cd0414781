//! Checks of the path to a switch and back. The packets do not change the state of the switch: they are Joins that only
//! query, and data from a non-member.

use std::net::SocketAddrV4;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iswitch_protocol::Key;
use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::{DEFAULT_SEGMENT_FLOATS, PROTOCOL_VERSION, TOS_MASK, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::control::{ACK_LEN_BYTES, JOIN_LEN_BYTES};
use iswitch_protocol::wire::{
    AckRepr, Action, Classifier, ControlBody, ControlPacket, ControlRepr, JoinRepr, Status, emit_seg,
};
use iswitch_protocol::{Round, Seg, SegmentIndex, part};

use super::finding::Report;
use super::path_mtu::{HEADERS_LEN_BYTES, check_path_mtu};
use super::probe::{Answer, Patience, Probe, Silence};

/// Number of consecutive requests that measure packet loss.
const LOSS_PROBES: u32 = 50;
/// Minimum number of unanswered requests that is reported as loss: a single unanswered request may be due to a busy
/// machine.
const LOSS_MIN: u32 = 2;

/// Check of a switch: its address and the parameters of the requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct SwitchCheck<'a> {
    pub(super) address: SocketAddrV4,
    pub(super) job: u32,
    pub(super) key: Option<&'a Key>,
    pub(super) classifier: Classifier,
    /// Maximum length of a packet that the path has to carry, in bytes.
    pub(super) mtu_bytes: usize,
    pub(super) patience: Patience,
}

impl SwitchCheck<'_> {
    /// Runs the checks from the simplest request to the longest, and stops if no further check can succeed.
    pub(super) fn run(&self, report: &mut Report) {
        let mut probe = match Probe::connect(self.address, self.patience) {
            Ok(probe) => probe,
            Err(silence) => return self.report_silence(report, &silence),
        };
        let answer = match self.ask(&mut probe, JOIN_LEN_BYTES + self.trailer_len()) {
            Ok(answer) => answer,
            Err(silence) => return self.report_silence(report, &silence),
        };
        let round_trip = answer.round_trip.as_secs_f64() * 1e6;
        report.ok("reachable", format!("{} answers after {round_trip:.0} us", self.address));
        if !check_version(report, &answer) {
            return;
        }
        self.check_key(report, &answer);
        check_tos_back(report, "tos-control-back", answer.tos, self.classifier.control_tos);
        self.check_threads(report, &mut probe);
        self.check_data_tos(report);
        self.check_path_mtu(report, &mut probe);
        self.check_loss(report);
    }

    fn trailer_len(&self) -> usize {
        self.key.map_or(0, |_| TRAILER_LEN_BYTES)
    }

    /// Returns a Join of `len` bytes that only queries and admits no member. If `part` is true, the Join also asks how
    /// many threads the switch has.
    fn question(&self, len: usize, part: bool) -> Vec<u8> {
        let padding_len = (len - JOIN_LEN_BYTES - self.trailer_len()) as u16;
        let join =
            JoinRepr { query: true, part, padding_len, ..JoinRepr::worker(1, DEFAULT_SEGMENT_FLOATS, 1) };
        // A request id of zero would request no Ack; any other id works.
        let request = nanos_since_1970() as u32 | 1;
        let repr = ControlRepr { job: self.job, request, body: ControlBody::Join(join) };
        let mut bytes = vec![0; len];
        repr.emit(&mut bytes[..repr.buffer_len()]);
        if let Some(key) = self.key {
            key.sign(Direction::ToSwitch, NO_SESSION, nanos_since_1970(), &mut bytes);
        }
        bytes
    }

    fn ask(&self, probe: &mut Probe, len: usize) -> Result<Answer, Silence> {
        self.ask_with(probe, &self.question(len, false))
    }

    fn ask_with(&self, probe: &mut Probe, question: &[u8]) -> Result<Answer, Silence> {
        let is_answer = |bytes: &[u8]| {
            let packet = ControlPacket::new_checked(bytes).ok();
            packet.is_some_and(|packet| {
                packet.action_code() == Action::Ack as u8 && packet.request() == request_of(question)
            })
        };
        probe.ask(self.classifier.control_tos, question, is_answer)
    }

    fn report_silence(&self, report: &mut Report, silence: &Silence) {
        let address = self.address;
        let (detail, fix) = match silence {
            Silence::Refused => (
                format!("no program listens on UDP {address}"),
                "start iswitchd on that machine, or correct the port; if iswitchd uses raw ports (--port), a device on \
                 the path may clear the ToS: to find out, run iswitchctl doctor --answer 0.0.0.0:7712 there and \
                 iswitchctl doctor --peer here"
                    .to_owned(),
            ),
            Silence::NoRoute(error) => (
                format!("no route to {address}: {error}"),
                format!("run ip route get {} to see the route that this machine would use", address.ip()),
            ),
            Silence::Forbidden => (
                "a firewall on this machine blocks the request".to_owned(),
                format!("check the rules with nft list ruleset, and allow outgoing UDP packets to {address}"),
            ),
            Silence::Timeout => (
                format!("{address} does not answer"),
                format!(
                    "check that iswitchd runs there with the ToS values of this command (--control-tos, --data-tos), \
                     and allow UDP port {} in the firewalls on the path, in both directions; to find out whether a \
                     device clears the ToS, run iswitchctl doctor --answer 0.0.0.0:7712 there and iswitchctl doctor \
                     --peer here",
                    address.port()
                ),
            ),
            Silence::TooLong { path_mtu_bytes } => (
                format!("the path MTU of {path_mtu_bytes} bytes is too small for a Join"),
                "raise the MTU of the links on the path".to_owned(),
            ),
            Silence::Other(error) => (format!("cannot query {address}: {error}"), "correct the address".to_owned()),
        };
        report.failed("reachable", detail, fix);
    }

    fn check_key(&self, report: &mut Report, answer: &Answer) {
        let job = self.job;
        match (ack_of(&answer.payload), self.key) {
            (Some(AckRepr { status: Status::NotAuthentic, expected: 0, .. }), _) => report.failed(
                "key",
                format!("job {job} has no key on the switch, but --key-file was given here"),
                "start iswitchd with --key-file, or the workers without it",
            ),
            (Some(AckRepr { status: Status::NotAuthentic, .. }), None) => report.failed(
                "key",
                format!("job {job} has a key on the switch, but no --key-file was given here"),
                "pass the key file of the job to this command and to every worker with --key-file PATH",
            ),
            (Some(AckRepr { status: Status::NotAuthentic, .. }), Some(_)) => report.failed(
                "key",
                format!("the switch's key for job {job} differs from the key in --key-file"),
                "copy the key file of iswitchd (its --key-file) to this machine",
            ),
            (_, None) => report.ok("key", format!("job {job} has no key")),
            (_, Some(key)) => {
                let packet = ControlPacket::new_checked(&answer.payload).ok();
                match packet.and_then(|packet| key.verify(Direction::ToMember, NO_SESSION, &packet)) {
                    Some(_) => report.ok("key", format!("the switch and this machine have the same key for job {job}")),
                    None => report.failed(
                        "key",
                        "the answer is not authenticated with the job's key: another host answers in place of the \
                         switch",
                        "find the host that uses the address of the switch",
                    ),
                }
            }
        }
    }

    /// Checks that all threads of the switch are reachable, each on its own UDP port.
    fn check_threads(&self, report: &mut Report, probe: &mut Probe) {
        const CHECK: &str = "threads";
        let question = self.question(JOIN_LEN_BYTES + self.trailer_len(), true);
        let Ok(answer) = self.ask_with(probe, &question) else { return };
        let count = ack_of(&answer.payload).map_or(1, |ack| usize::from(ack.parts));
        let others = || (1..count).filter_map(|at| part::address(self.address, at));
        let is_silent = |address: &SocketAddrV4| {
            let other = SwitchCheck { address: *address, ..*self };
            let asked = Probe::connect(other.address, self.patience)
                .and_then(|mut probe| other.ask(&mut probe, JOIN_LEN_BYTES + self.trailer_len()));
            asked.is_err()
        };
        let silent: Vec<_> = others().filter(is_silent).map(|address| address.port().to_string()).collect();
        let first = self.address.port();
        let last = others().next_back().map_or(first, |address| address.port());
        match silent.is_empty() {
            _ if count == 1 => {}
            true => report.ok(CHECK, format!("{count} threads answer on UDP ports {first} to {last}")),
            false => report.failed(
                CHECK,
                format!("the threads on UDP ports {} do not answer", silent.join(", ")),
                format!("allow UDP ports {first} to {last} in the firewalls on the path, in both directions"),
            ),
        }
    }

    /// Checks that packets with the ToS of data reach the switch with this ToS. The probe is a data packet from a
    /// non-member, which the switch refuses.
    fn check_data_tos(&self, report: &mut Report) {
        const CHECK: &str = "tos-data-there";
        let seg = Seg { index: SegmentIndex::default(), round: Round::default(), contributions: 1 };
        // The packet is as long as an Ack, because a switch's answer to an unproven address is never longer than the
        // packet that it answers.
        let mut data = vec![0; ACK_LEN_BYTES];
        emit_seg(&mut data, seg);
        let is_answer = |bytes: &[u8]| ack_of(bytes).is_some_and(|ack| ack.status == Status::UnknownMember);
        let tos = self.classifier.data_tos;
        let asked = Probe::connect(self.address, self.patience)
            .and_then(|mut probe| probe.ask(tos, &data, is_answer));
        match asked {
            Ok(_) => report.ok(CHECK, format!("packets sent with ToS {tos:#04x} arrive with the same ToS")),
            Err(_) => report.failed(
                CHECK,
                format!("packets with the control ToS are answered, but packets with the data ToS {tos:#04x} are not"),
                "configure every device on the path to pass packets with this ToS (trust dscp), or set another \
                 --data-tos on iswitchd and the workers",
            ),
        }
    }

    fn check_path_mtu(&self, report: &mut Report, probe: &mut Probe) {
        let longest = self.mtu_bytes - HEADERS_LEN_BYTES;
        let shortest = JOIN_LEN_BYTES + self.trailer_len();
        let carries = |probe: &mut Probe, len: usize| self.ask(probe, len);
        check_path_mtu(report, "path-mtu", probe, shortest..longest, carries);
    }

    fn check_loss(&self, report: &mut Report) {
        const CHECK: &str = "loss";
        let patience = Patience { tries: 1, ..self.patience };
        let Ok(mut probe) = Probe::connect(self.address, patience) else { return };
        let len = JOIN_LEN_BYTES + self.trailer_len();
        let answers = (0..LOSS_PROBES).map(|_| self.ask(&mut probe, len));
        let mut times: Vec<_> = answers.filter_map(|answer| Some(answer.ok()?.round_trip)).collect();
        times.sort();
        let lost = LOSS_PROBES - times.len() as u32;
        let median = times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6);
        if lost < LOSS_MIN {
            return report.ok(
                CHECK,
                format!("{lost} of {LOSS_PROBES} requests unanswered, median round trip {median:.0} us"),
            );
        }
        report.warning(
            CHECK,
            format!("{lost} of {LOSS_PROBES} requests unanswered"),
            "packet loss slows down aggregation, but sums stay exact: check ip -s link on both machines and the \
             counters of the devices between them",
        );
    }
}

/// Checks that an answer arrived with the ToS with which it was sent.
pub(super) fn check_tos_back(report: &mut Report, check: &'static str, arrived: u8, sent: u8) {
    if arrived & TOS_MASK == sent {
        return report.ok(check, format!("answers arrive with ToS {sent:#04x}"));
    }
    report.failed(
        check,
        format!("answers sent with ToS {sent:#04x} arrive with ToS {arrived:#04x}; workers ignore such answers"),
        "configure every device on the path to keep the DSCP (trust dscp, no set dscp rules), or configure iswitchd \
         and the workers with ToS values that arrive unchanged (--control-tos, --data-tos)",
    );
}

/// Checks the protocol version. Returns `false` if no further check can succeed.
fn check_version(report: &mut Report, answer: &Answer) -> bool {
    let theirs = match ack_of(&answer.payload) {
        Some(AckRepr { status: Status::WrongVersion, expected, .. }) => expected,
        Some(_) => {
            report.ok("version", format!("protocol version {PROTOCOL_VERSION}"));
            return true;
        }
        None => ControlPacket::new_checked(&answer.payload).map_or(0, |packet| packet.version()).into(),
    };
    let which = if theirs < PROTOCOL_VERSION.into() { "the switch" } else { "this machine" };
    report.failed(
        "version",
        format!("the switch uses protocol version {theirs}; this machine uses version {PROTOCOL_VERSION}"),
        format!("install the same release on both machines; {which} has the older release"),
    );
    false
}

fn ack_of(bytes: &[u8]) -> Option<AckRepr<'_>> {
    match ControlRepr::parse(&ControlPacket::new_checked(bytes).ok()?).ok()?.body {
        ControlBody::Ack(ack) => Some(ack),
        _ => None,
    }
}

fn request_of(bytes: &[u8]) -> u32 {
    ControlPacket::new_checked(bytes).map_or(0, |packet| packet.request())
}

pub(super) fn nanos_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos() as u64
}
