//! Writer for pcapng files (draft-ietf-opsawg-pcapng), the format that Wireshark and tshark read.

use std::io::{self, Write};
use std::time::Duration;

use iswitch_socket::capture::Captured;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const STATISTICS: u32 = 5;
const LINKTYPE_ETHERNET: u16 = 1;

// Option codes.
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;
const STATISTICS_DROPS: u16 = 5;
/// Value of the option that sets the resolution of timestamps: the unit is 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writer of the blocks of a pcapng file. All integers are little-endian, and all blocks and options are padded to 32
/// bits.
#[derive(Debug)]
pub(super) struct Writer<W> {
    out: W,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a file with a description of the interfaces. Packets refer to an interface by its index in `interfaces`.
    pub(super) fn begin(out: W, interfaces: &[&str], snap_len: usize) -> io::Result<Self> {
        let mut writer = Self { out, block: Vec::new() };
        writer.word(BYTE_ORDER);
        writer.half(1);
        writer.half(0);
        // The length of the section is not known.
        writer.word(u32::MAX);
        writer.word(u32::MAX);
        writer.option(USER_APPLICATION, concat!("iswitchctl ", env!("CARGO_PKG_VERSION")).as_bytes());
        writer.end_options();
        writer.flush_block(SECTION_HEADER)?;
        for name in interfaces {
            writer.half(LINKTYPE_ETHERNET);
            writer.half(0);
            writer.word(snap_len as u32);
            writer.option(INTERFACE_NAME, name.as_bytes());
            writer.option(INTERFACE_RESOLUTION, &[NANOSECONDS]);
            writer.end_options();
            writer.flush_block(INTERFACE)?;
        }
        Ok(writer)
    }

    /// Adds a packet that was captured on an interface.
    pub(super) fn packet(&mut self, interface: usize, captured: &Captured, bytes: &[u8]) -> io::Result<()> {
        self.word(interface as u32);
        self.time(captured.since_1970);
        self.word(bytes.len() as u32);
        self.word(captured.full_len as u32);
        self.block.extend(bytes);
        self.pad();
        let direction: u32 = if captured.is_outgoing { 2 } else { 1 };
        self.option(PACKET_FLAGS, &direction.to_le_bytes());
        self.end_options();
        self.flush_block(PACKET)
    }

    /// Records the number of packets lost on an interface.
    pub(super) fn statistics(&mut self, interface: usize, now: Duration, drops: u64) -> io::Result<()> {
        self.word(interface as u32);
        self.time(now);
        self.option(STATISTICS_DROPS, &drops.to_le_bytes());
        self.end_options();
        self.flush_block(STATISTICS)
    }

    /// Flushes the output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn half(&mut self, value: u16) {
        self.block.extend(value.to_le_bytes());
    }

    fn word(&mut self, value: u32) {
        self.block.extend(value.to_le_bytes());
    }

    /// Writes a time as two 32-bit words, the upper half first.
    fn time(&mut self, time: Duration) {
        let nanos = time.as_nanos() as u64;
        self.word((nanos >> 32) as u32);
        self.word(nanos as u32);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.half(code);
        self.half(value.len() as u16);
        self.block.extend(value);
        self.pad();
    }

    fn end_options(&mut self) {
        self.word(0);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes the current block. The length of a block both precedes and follows its body.
    fn flush_block(&mut self, kind: u32) -> io::Result<()> {
        let len = (self.block.len() + 12) as u32;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&len.to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.block.clear();
        self.out.write_all(&len.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_words_with_their_length_at_both_ends() {
        let mut file = Vec::new();
        let mut writer = Writer::begin(&mut file, &["eth1", "e0"], 65_536).unwrap();
        let since_1970 = Duration::new(1_700_000_000, 123_456_789);
        let captured = Captured { len: 5, full_len: 9, is_outgoing: true, since_1970 };
        writer.packet(1, &captured, b"abcde").unwrap();
        writer.statistics(0, since_1970, 3).unwrap();
        let mut kinds = Vec::new();
        let mut rest = &file[..];
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let len = word(4) as usize;
            assert_eq!(len % 4, 0);
            assert_eq!(word(len - 4) as usize, len);
            kinds.push(word(0));
            rest = &rest[len..];
        }
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE, INTERFACE, PACKET, STATISTICS]);
    }
}
