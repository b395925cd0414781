//! Section 8, A-2: tags are compared in constant time. The test counts the instructions of a verification under
//! Valgrind, because, unlike a duration, the count does not depend on other processes.

use std::io::Write as _;
use std::process::Command;

use iswitch_protocol::Key;
use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::{MIN_KEY_LEN_BYTES, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::{ControlBody, ControlPacket, ControlRepr};

/// Environment variable that holds the index of the tag byte that the process under Valgrind alters.
const ALTERED: &str = "ISWITCH_TEST_ALTERED_BYTE";
/// Length of a tag, in bytes.
const TAG_LEN_BYTES: usize = 16;

/// Verifies a packet. Valgrind finds this function by its name.
#[inline(never)]
fn watched_verification(key: &Key, packet: &ControlPacket<'_>) -> Option<u64> {
    key.verify(Direction::ToSwitch, NO_SESSION, packet)
}

/// Verifies a packet in which one byte of the tag is wrong.
fn refuse(altered: usize) {
    let key = Key::new(&[1; MIN_KEY_LEN_BYTES]).unwrap();
    let leave = ControlRepr { job: 7, request: 3, body: ControlBody::Leave };
    let mut packet = vec![0; leave.buffer_len() + TRAILER_LEN_BYTES];
    leave.emit(&mut packet);
    key.sign(Direction::ToSwitch, NO_SESSION, 5, &mut packet);
    let at = packet.len() - TAG_LEN_BYTES + altered;
    packet[at] ^= 1;
    let packet = ControlPacket::new_checked(&packet).unwrap();
    assert_eq!(watched_verification(&key, &packet), None);
}

/// Runs this test program under Valgrind with one wrong tag byte, and returns the number of instructions that the
/// verification executes.
fn instructions(altered: usize) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("callgrind.out");
    let mut command = Command::new("valgrind");
    command.args(["-q", "--tool=callgrind", "--toggle-collect=*watched_verification*"]);
    command.arg(format!("--callgrind-out-file={}", path.display()));
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "tags_are_compared_in_constant_time"]);
    let output = command.env(ALTERED, format!("{altered:02}")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let profile = std::fs::read_to_string(path).unwrap();
    let total = profile.lines().find_map(|line| line.strip_prefix("totals: "));
    total.expect("the profile must have totals").trim().parse().unwrap()
}

#[test]
fn tags_are_compared_in_constant_time() {
    if let Some(altered) = std::env::var_os(ALTERED) {
        return refuse(altered.to_str().unwrap().parse().unwrap());
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        let line = "SKIPPED constant-time tag comparison: valgrind is not installed\n";
        assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
        // Written directly, because the test harness captures the output of the print macros.
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return;
    }
    let counts = [0, TAG_LEN_BYTES / 2, TAG_LEN_BYTES - 1].map(instructions);
    assert!(counts[0] > 1000, "the verification must be in the profile, but it has {counts:?} instructions");
    assert!(
        counts.iter().all(|count| *count == counts[0]),
        "the wrong byte matters: {counts:?} instructions"
    );
}
