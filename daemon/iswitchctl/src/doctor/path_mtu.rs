//! Measures the MTU of a path, even if no router reports it.

use iswitch_protocol::limits::{IPV4_HEADER_LEN_BYTES, SEG_LEN_BYTES, UDP_HEADER_LEN_BYTES};

use super::finding::Report;
use super::probe::{Answer, Probe, Silence};

/// Length of the headers in front of the UDP payload, in bytes.
pub(super) const HEADERS_LEN_BYTES: usize = IPV4_HEADER_LEN_BYTES + UDP_HEADER_LEN_BYTES;

/// Measures the maximum length of packets on a path. Packets with `lens.start` bytes after the headers must be known to
/// pass; packets with `lens.end` bytes are expected to pass.
pub(super) fn check_path_mtu(
    report: &mut Report,
    check: &'static str,
    probe: &mut Probe,
    lens: std::ops::Range<usize>,
    carries: impl Fn(&mut Probe, usize) -> Result<Answer, Silence>,
) {
    let expected = lens.end + HEADERS_LEN_BYTES;
    match carries(probe, lens.end) {
        Ok(_) => return report.ok(check, format!("packets of {expected} bytes pass")),
        Err(Silence::TooLong { path_mtu_bytes }) => return fail_mtu(report, check, path_mtu_bytes, expected),
        Err(_) => {}
    }
    // In the meantime, the kernel may have learned the MTU from a router.
    let known = probe.path_mtu_bytes().filter(|mtu| *mtu < expected);
    if let Some(mtu) = known {
        return fail_mtu(report, check, mtu, expected);
    }
    let (mut passes, mut fails) = (lens.start, lens.end);
    while fails - passes > 1 {
        let len = usize::midpoint(passes, fails);
        if carries(probe, len).is_ok() {
            passes = len;
        } else {
            fails = len;
        }
    }
    let passes = passes + HEADERS_LEN_BYTES;
    report.failed(
        check,
        format!(
            "packets longer than {passes} bytes are lost without an ICMP error; packets of up to {expected} bytes \
             should arrive"
        ),
        format!(
            "a link on the path has an MTU of {passes} bytes, and the ICMP error that reports it is dropped: allow \
             ICMP type 3 code 4, and raise the MTU of the link"
        ),
    );
}

fn fail_mtu(report: &mut Report, check: &'static str, mtu_bytes: usize, expected: usize) {
    let floats = mtu_bytes.saturating_sub(HEADERS_LEN_BYTES + SEG_LEN_BYTES) / size_of::<f32>();
    report.failed(
        check,
        format!("the path MTU is {mtu_bytes} bytes, expected at least {expected}"),
        format!(
            "raise the MTU of every link on the path to {expected}, or set segment_floats to {floats} on all workers \
             of the job"
        ),
    );
}
