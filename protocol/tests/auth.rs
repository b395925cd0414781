//! Authentication of packets: which packets a key accepts and which it rejects.

use iswitch_protocol::Key;
use iswitch_protocol::auth::{Conversation, Direction, KeyError, NO_SESSION};
use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, MAX_KEY_LEN_BYTES, MIN_KEY_LEN_BYTES, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{Action, ControlBody, ControlPacket, ControlRepr};
use iswitch_protocol::{Round, auth::TagKey};
use proptest::prelude::*;

const TO_SWITCH: Direction = Direction::ToSwitch;

fn key(byte: u8) -> Key {
    Key::new(&[byte; MIN_KEY_LEN_BYTES]).unwrap()
}

fn help() -> ControlRepr<'static> {
    let range = RangeRepr { round: Round::new(9), first: 100, count: 12 };
    let wanted = SegmentSetRepr { range, bitmap: &[0b1000_0001, 0b1010] };
    ControlRepr { job: 7, request: 3, body: ControlBody::Help(wanted) }
}

fn signed(key: &Key, context: u64, counter: u64) -> Vec<u8> {
    let mut packet = vec![0; help().buffer_len() + TRAILER_LEN_BYTES];
    help().emit(&mut packet);
    key.sign(TO_SWITCH, context, counter, &mut packet);
    packet
}

fn verify(key: &Key, direction: Direction, context: u64, bytes: &[u8]) -> Option<u64> {
    key.verify(direction, context, &ControlPacket::new_checked(bytes).ok()?)
}

#[test]
fn signing_does_not_change_the_meaning_of_a_packet() {
    let packet = signed(&key(1), 5, 77);
    assert_eq!(verify(&key(1), TO_SWITCH, 5, &packet), Some(77));
    assert_eq!(ControlRepr::parse(&ControlPacket::new_checked(&packet).unwrap()), Ok(help()));
}

#[test]
fn another_key_direction_or_session_is_refused() {
    let packet = signed(&key(1), 5, 77);
    assert_eq!(verify(&key(2), TO_SWITCH, 5, &packet), None);
    assert_eq!(verify(&key(1), Direction::ToMember, 5, &packet), None);
    assert_eq!(verify(&key(1), TO_SWITCH, NO_SESSION, &packet), None);
    let mut bare = vec![0; help().buffer_len()];
    help().emit(&mut bare);
    assert_eq!(verify(&key(1), TO_SWITCH, 5, &bare), None);
}

/// The tag is the HMAC-SHA256 of direction, context, packet and counter, truncated to 128 bits.
#[test]
fn the_tag_matches_the_specification() {
    use hmac::{Hmac, KeyInit, Mac};

    let packet = signed(&key(1), 5, 77);
    let (signed, tag) = packet.split_at(packet.len() - 16);
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&[1; MIN_KEY_LEN_BYTES]).unwrap();
    mac.update(&[1]);
    mac.update(&5u64.to_le_bytes());
    mac.update(signed);
    assert_eq!(mac.finalize().into_bytes()[..16], *tag);
    assert_eq!(signed[signed.len() - 8..], 77u64.to_le_bytes());
}

#[test]
fn keys_are_parsed_from_hex_digits() {
    let digits = "000102030405060708090A0b0c0d0e0f\n";
    let bytes: Vec<u8> = (0..16).collect();
    let packet = signed(&Key::new(&bytes).unwrap(), 5, 1);
    assert_eq!(verify(&Key::from_hex(digits.as_bytes()).unwrap(), TO_SWITCH, 5, &packet), Some(1));
    for text in ["", "00", &"0".repeat(2 * MAX_KEY_LEN_BYTES + 2)] {
        assert_eq!(Key::from_hex(text.as_bytes()).unwrap_err(), KeyError::Length(text.len() / 2));
    }
    for text in
        [&digits.trim()[1..], &digits.replace('c', " "), &digits.replace('0', "g"), &digits.replace('A', "+")]
    {
        assert_eq!(Key::from_hex(text.as_bytes()).unwrap_err(), KeyError::NotHex, "{text}");
    }
}

#[test]
fn a_key_is_never_shown() {
    let key = Key::new(b"a key that nobody may see").unwrap();
    assert_eq!(format!("{key:?} {:?}", key.result_key(1, 2)), "Key TagKey");
}

fn tag_keys() -> [TagKey; 6] {
    let (one, two) = (key(1), key(2));
    let other_runs = [one.result_key(6, 2), one.result_key(5, 3), two.result_key(5, 2)];
    let [a, b, c] = other_runs;
    [one.result_key(5, 2), one.contribution_key(5), one.contribution_key(6), a, b, c]
}

proptest! {
    #[test]
    fn altered_signed_packets_are_refused(context: u64, counter: u64, bit in 0..8 * 62usize) {
        let packet = signed(&key(1), context, counter);
        prop_assert_eq!(verify(&key(1), TO_SWITCH, context, &packet), Some(counter));
        let mut changed = packet.clone();
        let bit = bit % (8 * packet.len());
        changed[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(verify(&key(1), TO_SWITCH, context, &changed), None);
        for len in 0..packet.len() {
            prop_assert_eq!(verify(&key(1), TO_SWITCH, context, &packet[..len]), None);
        }
    }

    #[test]
    fn altered_tagged_packets_are_refused(floats in proptest::collection::vec(any::<u8>(), 4..200), bit: usize) {
        let mut packet = floats.clone();
        packet.extend([0; DATA_TAG_LEN_BYTES]);
        let keys = tag_keys();
        keys[0].sign(&mut packet);
        prop_assert_eq!(keys[0].verify(&packet), Some(&floats[..]));
        for other in &keys[1..] {
            prop_assert_eq!(other.verify(&packet), None);
        }
        let bit = bit % (8 * packet.len());
        packet[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(keys[0].verify(&packet), None);
        prop_assert_eq!(keys[0].verify(&packet[..bit / 8]), None);
    }

    #[test]
    fn arbitrary_bytes_neither_verify_nor_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        prop_assert_eq!(verify(&key(1), TO_SWITCH, 0, &bytes), None);
        prop_assert_eq!(key(1).result_key(1, 1).verify(&bytes), None);
    }
}

const FIRST: u64 = 100;
const NONCE: u64 = 7;

fn from_switch(context: u64, counter: u64) -> Vec<u8> {
    let halt = ControlRepr { job: 1, request: 0, body: ControlBody::Halt };
    let mut packet = vec![0; halt.buffer_len() + TRAILER_LEN_BYTES];
    halt.emit(&mut packet);
    key(1).sign(Direction::ToMember, context, counter, &mut packet);
    packet
}

fn accept(member: &mut Conversation, context: u64, counter: u64) -> bool {
    let bytes = from_switch(context, counter);
    member.accept(&key(1), &ControlPacket::new_checked(&bytes).unwrap())
}

#[test]
fn answers_without_a_session_must_echo_an_unused_request_counter() {
    let mut member = Conversation::new(FIRST);
    assert!(!accept(&mut member, NO_SESSION, FIRST), "no request with this counter has been sent");
    assert_eq!(
        [Action::Join, Action::Help, Action::Join].map(|action| member.next(action).1),
        [100, 101, 102]
    );
    assert!(!accept(&mut member, NO_SESSION, FIRST - 1), "the counter belongs to an earlier process");
    assert!(!accept(&mut member, NO_SESSION, FIRST + 3), "the counter has not been used yet");
    assert!(accept(&mut member, NO_SESSION, FIRST + 1));
    assert!(!accept(&mut member, NO_SESSION, FIRST + 1), "the answer is repeated");
    assert!(!accept(&mut member, NO_SESSION, FIRST), "the counter is older than the last one");
}

#[test]
fn counters_must_increase_within_a_session() {
    let mut member = Conversation::new(FIRST);
    assert!(!accept(&mut member, NONCE, 5), "the session belongs to another member");
    member.open_session(NONCE);
    assert!(accept(&mut member, NONCE, 5));
    member.open_session(NONCE);
    assert!(!accept(&mut member, NONCE, 5), "the counter was already used in this session");
    assert!(!accept(&mut member, NONCE, 4));
    assert!(accept(&mut member, NONCE, 6));
    member.open_session(NONCE + 1);
    assert!(!accept(&mut member, NONCE, 7), "the session has ended");
    assert!(accept(&mut member, NONCE + 1, 1));
    assert_eq!(member.next(Action::Leave), (NONCE + 1, FIRST));
    assert_eq!(member.next(Action::Join), (NO_SESSION, FIRST + 1));
}
