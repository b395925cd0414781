//! Checks of the path to another machine and back. The peer reports what arrived, so each direction is checked
//! separately.

use std::net::SocketAddrV4;

use iswitch_protocol::limits::TOS_MASK;
use iswitch_protocol::wire::Classifier;

use super::echo::{ECHO_LEN_BYTES, Echo};
use super::finding::Report;
use super::path_mtu::{HEADERS_LEN_BYTES, check_path_mtu};
use super::probe::{Answer, Patience, Probe, Silence};
use super::switch::{check_tos_back, nanos_since_1970};

/// Maximum difference between the clocks of two machines whose logs can still be compared, in nanoseconds.
const CLOCK_SKEW_MAX_NANOS: u64 = 1_000_000_000;

/// Check of a peer: its address and the parameters of the questions.
#[derive(Debug)]
pub(super) struct PeerCheck {
    pub(super) address: SocketAddrV4,
    pub(super) classifier: Classifier,
    /// Maximum length of a packet that the path has to carry, in bytes.
    pub(super) mtu_bytes: usize,
    pub(super) patience: Patience,
}

impl PeerCheck {
    pub(super) fn run(&self, report: &mut Report) {
        let first = Probe::connect(self.address, self.patience).and_then(|mut probe| {
            let answer = ask(&mut probe, 0, ECHO_LEN_BYTES, ECHO_LEN_BYTES)?;
            Ok((probe, answer))
        });
        let (mut probe, answer) = match first {
            Ok(first) => first,
            Err(silence) => return self.report_silence(report, &silence),
        };
        let round_trip = answer.round_trip.as_secs_f64() * 1e6;
        report.ok("peer-reachable", format!("{} answers after {round_trip:.0} us", self.address));
        check_clock(report, &answer);
        let Classifier { control_tos, data_tos, .. } = self.classifier;
        check_tos(report, &mut probe, ["peer-control-there", "peer-control-back"], control_tos);
        check_tos(report, &mut probe, ["peer-data-there", "peer-data-back"], data_tos);
        let lens = || ECHO_LEN_BYTES..self.mtu_bytes - HEADERS_LEN_BYTES;
        let there = |probe: &mut Probe, len| ask(probe, 0, len, ECHO_LEN_BYTES);
        check_path_mtu(report, "peer-mtu-there", &mut probe, lens(), there);
        // The return direction can be measured only if the longest question arrives.
        if there(&mut probe, lens().end).is_ok() {
            let back = |probe: &mut Probe, len| ask(probe, 0, lens().end, len);
            check_path_mtu(report, "peer-mtu-back", &mut probe, lens(), back);
        }
    }

    fn report_silence(&self, report: &mut Report, silence: &Silence) {
        let address = self.address;
        let detail = match silence {
            Silence::NoRoute(error) | Silence::Other(error) => format!("{address}: {error}"),
            Silence::Refused => format!("no program listens on UDP {address}"),
            Silence::Forbidden => "a firewall on this machine blocks the request".to_owned(),
            Silence::Timeout | Silence::TooLong { .. } => format!("{address} does not answer"),
        };
        let port = address.port();
        let fix = format!(
            "run iswitchctl doctor --answer 0.0.0.0:{port} on the peer, and allow UDP port {port} in the firewalls on \
             the path"
        );
        report.failed("peer-reachable", detail, fix);
    }
}

/// Sends a question of `len` bytes that requests an answer of `answer_len` bytes with the same ToS.
fn ask(probe: &mut Probe, tos: u8, len: usize, answer_len: usize) -> Result<Answer, Silence> {
    let request = nanos_since_1970();
    let question = Echo { tos, len_bytes: answer_len as u16, request, unix_nanos: request }.question(len);
    probe.ask(tos, &question, |bytes| Echo::parse_answer(bytes).is_some_and(|echo| echo.request == request))
}

fn check_tos(report: &mut Report, probe: &mut Probe, [there, back]: [&'static str; 2], tos: u8) {
    let Ok(answer) = ask(probe, tos, ECHO_LEN_BYTES, ECHO_LEN_BYTES) else {
        return report.failed(
            there,
            format!("packets sent with ToS {tos:#04x} are not answered, but packets sent with ToS 0 are"),
            "configure every device on the path to pass packets with this ToS in both directions",
        );
    };
    match Echo::parse_answer(&answer.payload) {
        Some(echo) if echo.tos & TOS_MASK != tos => report.failed(
            there,
            format!(
                "packets sent with ToS {tos:#04x} arrive at the peer with ToS {:#04x}; a switch would ignore them",
                echo.tos
            ),
            "configure every device on the path to keep the DSCP (trust dscp, no set dscp rules), or configure \
             iswitchd and the workers with ToS values that arrive unchanged (--control-tos, --data-tos)",
        ),
        _ => report.ok(there, format!("packets sent with ToS {tos:#04x} arrive with the same ToS")),
    }
    check_tos_back(report, back, answer.tos, tos);
}

/// Checks the difference between the clocks. Sessions do not depend on it, but comparisons of logs and dumps from
/// several machines do.
fn check_clock(report: &mut Report, answer: &Answer) {
    let Some(echo) = Echo::parse_answer(&answer.payload) else { return };
    // The peer read its clock about halfway through the round trip, so it is compared with the local time at that
    // moment.
    let ours = nanos_since_1970() - answer.round_trip.as_nanos() as u64 / 2;
    let skew = ours.abs_diff(echo.unix_nanos);
    let seconds = skew as f64 / 1e9;
    if skew > CLOCK_SKEW_MAX_NANOS {
        let fix = "run an NTP client (chrony or systemd-timesyncd) on both machines";
        report.warning(
            "peer-clock",
            format!(
                "the clocks differ by {seconds:.1} s, so timestamps in the logs of the two machines cannot be compared"
            ),
            fix,
        );
    } else {
        report.ok("peer-clock", format!("the clocks differ by {seconds:.3} s"));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns the report on an answer from a machine whose clock is ahead of the local clock by `ahead`.
    fn found(ahead: Duration) -> Report {
        let question = Echo { tos: 0, len_bytes: ECHO_LEN_BYTES as u16, request: 1, unix_nanos: 0 };
        let (mut payload, tos) = question.answer(0, ECHO_LEN_BYTES);
        let theirs = nanos_since_1970() + ahead.as_nanos() as u64;
        payload[16..].copy_from_slice(&theirs.to_le_bytes());
        let mut report = Report::default();
        check_clock(&mut report, &Answer { payload, tos, round_trip: Duration::ZERO });
        report
    }

    #[test]
    fn differing_clocks_cause_a_warning() {
        assert!(found(Duration::ZERO).is_healthy(true));
        let skewed = found(Duration::from_secs(3600));
        // Sums do not depend on clocks, so this is only a warning.
        assert!(skewed.is_healthy(false) && !skewed.is_healthy(true));
        assert!(skewed.text().contains("the clocks differ by 3600.0 s"), "{}", skewed.text());
    }
}
