//! Bytes of the packets in flight, in reused buffers.

use iswitch_protocol::wire::Class;

/// A datagram, or a super-frame of datagrams of `stride` bytes.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) class: Class,
    pub(super) bytes: Vec<u8>,
    pub(super) stride: usize,
}

/// The packets in flight.
#[derive(Debug, Default)]
pub(super) struct Packets {
    slots: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    pub(super) fn add(&mut self, class: Class, payload: &[u8], stride: usize) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Packet { class, bytes: Vec::new(), stride });
            self.slots.len() as u32 - 1
        });
        let packet = &mut self.slots[slot as usize];
        packet.bytes.clear();
        packet.bytes.extend_from_slice(payload);
        (packet.class, packet.stride) = (class, stride);
        slot
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Packet {
        &mut self.slots[slot as usize]
    }

    /// Takes the bytes of a packet out of its slot; [`Self::give_back`] puts the buffer back.
    pub(super) fn take(&mut self, slot: u32) -> Packet {
        let packet = &mut self.slots[slot as usize];
        Packet { class: packet.class, bytes: std::mem::take(&mut packet.bytes), stride: packet.stride }
    }

    pub(super) fn give_back(&mut self, slot: u32, packet: Packet) {
        self.slots[slot as usize].bytes = packet.bytes;
        self.free.push(slot);
    }

    pub(super) fn discard(&mut self, slot: u32) {
        self.free.push(slot);
    }
}
