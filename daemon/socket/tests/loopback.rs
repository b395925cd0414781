//! Tests of the socket on the loopback interface.

use std::io;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::Command;
use std::time::{Duration, Instant};

use iswitch_protocol::limits::{MAX_JUMBO_PAYLOAD_BYTES, MAX_SUPERFRAME_LEN_BYTES, datagram_truesize};
use iswitch_socket::{Options, UdpSocket};

const TOS: u8 = 0x1c;
const STRIDE: usize = 1472;
const SOON: Option<Duration> = Some(Duration::from_secs(5));

fn localhost(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

fn socket(offload: bool) -> UdpSocket {
    let options = Options { offload, ..Options::default() };
    UdpSocket::bind(localhost(0), &options).unwrap()
}

/// Receives until `len` bytes have arrived. Returns these bytes, and the number of receive calls that returned more
/// than one datagram.
fn gather(socket: &UdpSocket, len: usize) -> (Vec<u8>, usize) {
    let mut buffer = vec![0; MAX_SUPERFRAME_LEN_BYTES];
    let (mut all, mut superframes) = (Vec::new(), 0);
    while all.len() < len {
        assert!(socket.wait_readable(SOON).unwrap(), "{} of {len} bytes arrived", all.len());
        let received = socket.recv(&mut buffer).unwrap();
        assert_eq!(received.tos, Some(TOS));
        assert!(!received.truncated);
        if received.len > received.stride {
            assert_eq!(received.stride, STRIDE);
            superframes += 1;
        } else {
            assert!(received.len <= STRIDE);
        }
        all.extend_from_slice(&buffer[..received.len]);
    }
    (all, superframes)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 256) as u8).collect()
}

#[test]
fn superframes_of_any_size_arrive_whole() {
    // Payloads of one full datagram, of one short datagram, of 44 datagrams, of more than 64 datagrams, and of more
    // than 65,507 bytes with a short last datagram.
    for len in [STRIDE, 9, 44 * STRIDE, 70 * STRIDE, 100 * STRIDE + 5] {
        let (here, there) = (socket(true), socket(true));
        let payload = pattern(len);
        let sent = here.send(TOS, Some(there.local_addr().unwrap()), None, &payload, STRIDE).unwrap();
        assert_eq!(sent, len);
        let (all, superframes) = gather(&there, len);
        assert!(all == payload, "{len} bytes should arrive in order");
        if superframes == 0 && len > STRIDE {
            eprintln!("NOTE: this kernel moves no super-frames over loopback");
        }
    }
}

#[test]
fn many_small_datagrams_are_split_by_count() {
    let (here, there) = (socket(true), socket(false));
    let payload = pattern(130 * 20);
    here.send(TOS, Some(there.local_addr().unwrap()), None, &payload, 20).unwrap();
    let mut buffer = [0; 64];
    for datagram in payload.chunks(20) {
        assert!(there.wait_readable(SOON).unwrap());
        let received = there.recv(&mut buffer).unwrap();
        assert_eq!((received.len, received.stride), (20, 20));
        assert_eq!(&buffer[..20], datagram);
    }
}

#[test]
fn without_offload_datagrams_arrive_individually() {
    for (sends, receives) in [(false, true), (true, false), (false, false)] {
        let (here, there) = (socket(sends), socket(receives));
        let payload = pattern(44 * STRIDE);
        here.send(TOS, Some(there.local_addr().unwrap()), None, &payload, STRIDE).unwrap();
        let (all, superframes) = gather(&there, payload.len());
        assert!(all == payload);
        assert!(receives || superframes == 0);
    }
}

#[test]
fn gathered_sends_and_scattered_receives_preserve_datagrams() {
    for offload in [true, false] {
        let (here, there) = (socket(offload), socket(offload));
        here.connect(there.local_addr().unwrap()).unwrap();
        // The payload needs more than one call, and its last datagram is shorter than the others.
        let payload = pattern(70 * STRIDE - 100);
        let in_two = |datagram| <[u8]>::split_at(datagram, 8).into();
        let datagrams: Vec<_> =
            payload.chunks(STRIDE).map(in_two).map(|parts: [&[u8]; 2]| parts.map(io::IoSlice::new)).collect();
        assert_eq!(here.send_gathered(TOS, &datagrams).unwrap(), 70);
        let (mut all, mut head) = (Vec::new(), [0; 8]);
        while all.len() < payload.len() {
            assert!(there.wait_readable(SOON).unwrap());
            let (mut body, mut rest) = (vec![0; STRIDE - 8], vec![0; MAX_SUPERFRAME_LEN_BYTES]);
            let mut buffers = [&mut head[..], &mut body, &mut rest].map(io::IoSliceMut::new);
            let received = there.recv_scattered(&mut buffers).unwrap();
            assert!(!received.truncated && (received.stride == STRIDE || received.len < STRIDE));
            let together = [&head[..], &body, &rest].concat();
            all.extend_from_slice(&together[..received.len]);
        }
        assert!(all == payload);
        assert_eq!(here.send_gathered(TOS, &[]).unwrap(), 0);
    }
}

#[test]
fn a_wildcard_socket_reports_and_selects_its_local_address() {
    let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
    let switch = UdpSocket::bind(any, &Options::default()).unwrap();
    let worker = socket(true);
    let second = Ipv4Addr::new(127, 0, 0, 2);
    let to = SocketAddrV4::new(second, switch.local_addr().unwrap().port());
    worker.send(TOS, Some(to), None, b"hello", 5).unwrap();
    let mut buffer = [0; 64];
    let received = switch.recv(&mut buffer).unwrap();
    assert_eq!(received.destination, second);
    assert_eq!(received.source, worker.local_addr().unwrap());
    switch.send(TOS, Some(received.source), Some(received.destination), b"there", 5).unwrap();
    assert_eq!(worker.recv(&mut buffer).unwrap().source, to);
}

#[test]
fn connected_socket_reports_a_refusal() {
    let gone = socket(true).local_addr().unwrap();
    let worker = socket(true);
    worker.connect(gone).unwrap();
    worker.send(TOS, None, None, b"hello", 5).unwrap();
    assert!(worker.wait_readable(SOON).unwrap());
    let error = worker.recv(&mut [0; 64]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn waiting_without_traffic_lasts_for_the_timeout() {
    let quiet = socket(true);
    for timeout in [100, 1500].map(Duration::from_micros) {
        let start = Instant::now();
        assert!(!quiet.wait_readable(Some(timeout)).unwrap());
        assert!(start.elapsed() >= timeout);
    }
}

#[test]
fn bad_arguments_are_refused() {
    let error = socket(true).send(TOS, Some(localhost(1)), None, b"x", 0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let taken = socket(true);
    let error = UdpSocket::bind(taken.local_addr().unwrap(), &Options::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn truncation_by_a_short_buffer_is_reported() {
    let (here, there) = (socket(true), socket(true));
    here.send(TOS, Some(there.local_addr().unwrap()), None, &[7; 100], 100).unwrap();
    let received = there.recv(&mut [0; 10]).unwrap();
    assert!(received.truncated);
    assert_eq!(received.len, 10);
}

#[test]
fn full_receive_buffer_drops_and_counts() {
    let here = socket(true);
    let options = Options { recv_buffer_bytes: 5_000, ..Options::default() };
    let there = UdpSocket::bind(localhost(0), &options).unwrap();
    assert_eq!(there.recv_drops().unwrap(), 0);
    for _ in 0..50 {
        here.send(TOS, Some(there.local_addr().unwrap()), None, &[0; 1000], 1000).unwrap();
    }
    let drops = there.recv_drops().unwrap();
    assert!((20..50).contains(&drops), "{drops}");
}

#[test]
fn the_kernel_charges_no_more_for_a_datagram_than_windows_assume() {
    const DATAGRAMS: usize = 8;
    let options = Options { recv_buffer_bytes: 1 << 20, ..Options::default() };
    for len in [0, 60, 86, 87, 408, 1472, 1480, 1622, 1623, 4000, 8972, MAX_JUMBO_PAYLOAD_BYTES] {
        let (here, there) = (socket(false), UdpSocket::bind(localhost(0), &options).unwrap());
        for _ in 0..DATAGRAMS {
            here.send(TOS, Some(there.local_addr().unwrap()), None, &vec![7; len], len.max(1)).unwrap();
        }
        let charged = there.recv_charged_bytes().unwrap();
        assert!(charged >= DATAGRAMS * len, "{charged} bytes charged for {DATAGRAMS} datagrams of {len}");
        let assumed = DATAGRAMS * datagram_truesize(len);
        assert!(
            charged <= assumed,
            "{charged} bytes charged for {DATAGRAMS} datagrams of {len}, not {assumed}"
        );
    }
}

#[test]
fn the_reported_receive_buffer_is_the_size_granted_by_the_kernel() {
    let options = Options { recv_buffer_bytes: 100_000, ..Options::default() };
    let given = UdpSocket::bind(localhost(0), &options).unwrap().recv_buffer_bytes().unwrap();
    assert!(given >= 100_000, "{given}");
}

/// Runs an ignored test of this file in a network namespace whose loopback interface is set up by a shell script.
///
/// The namespace is needed because an ordinary loopback interface does not show the behaviour under test: its MTU
/// exceeds every datagram, and it releases the sender's buffer immediately.
fn in_namespace(test: &str, setup: &str) {
    let run = |script: &str| {
        let exe = std::env::current_exe().unwrap();
        // On Debian, the PATH of ordinary users does not contain the directory of tc.
        let script = format!("PATH=$PATH:/usr/sbin:/sbin; {script}");
        let unshare = ["--user", "--map-root-user", "--net", "sh", "-c", &script];
        Command::new("unshare").args(unshare).arg(exe).arg(test).output()
    };
    if !run(setup).is_ok_and(|output| output.status.success()) {
        let line = format!("SKIPPED {test}: no unprivileged network namespaces here, or no ip and tc");
        assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
        // Bypasses the output capture of the test harness, so that the line is visible.
        let _ = writeln!(io::stderr(), "{line}");
        return;
    }
    let output = run(&format!("{setup} && exec \"$0\" --ignored --exact --nocapture \"$1\"")).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn datagram_beyond_the_mtu_is_refused_not_fragmented() {
    in_namespace("inside_mtu_1500", "ip link set lo mtu 1500 up");
}

#[test]
#[ignore = "run in a namespace by datagram_beyond_the_mtu_is_refused_not_fragmented"]
fn inside_mtu_1500() {
    let (here, there) = (socket(true), socket(true));
    let to = Some(there.local_addr().unwrap());
    for len in [1473, 1473 * 10] {
        let error = here.send(TOS, to, None, &pattern(len), 1473).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE), "{error}");
    }
    // The socket still sends super-frames after the refusal.
    here.send(TOS, to, None, &pattern(44 * STRIDE), STRIDE).unwrap();
    let (_, superframes) = gather(&there, 44 * STRIDE);
    assert!(superframes > 0);
}

#[test]
fn full_send_buffer_sends_less_and_never_blocks() {
    in_namespace(
        "inside_slow_link",
        "ip link set lo up && tc qdisc add dev lo root tbf rate 8mbit burst 100kb limit 100mb",
    );
}

#[test]
#[ignore = "run in a namespace by full_send_buffer_sends_less_and_never_blocks"]
fn inside_slow_link() {
    let options = Options { send_buffer_bytes: 200_000, ..Options::default() };
    let here = UdpSocket::bind(localhost(0), &options).unwrap();
    here.set_nonblocking(true).unwrap();
    let there = socket(true);
    let to = Some(there.local_addr().unwrap());
    let payload = pattern(40 * MAX_SUPERFRAME_LEN_BYTES);
    let sent = here.send(TOS, to, None, &payload, STRIDE).unwrap();
    assert!(0 < sent && sent < payload.len() && sent.is_multiple_of(STRIDE), "{sent}");
    assert_eq!(
        here.send(TOS, to, None, &payload, STRIDE).unwrap() % STRIDE,
        0,
        "a full send buffer should not be an error"
    );
    let (all, _) = gather(&there, sent);
    assert!(all[..sent] == payload[..sent], "the bytes that were sent should arrive");
}
