//! The member table, which compares the sender of a packet with all members in parallel.

use rust_hdl::prelude::*;

/// Table of up to eight members, each identified by its IPv4 address and UDP port in network byte order.
#[derive(LogicBlock, Default)]
pub struct MemberTable {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Writes `data` to `row`. If `writes_port` is clear, `data` is the IPv4 address of the member. If it is set,
    /// `data` contains the UDP port (bits 15 to 0), the valid flag (bit 16), the switch flag (bit 17) and the port of
    /// the board (bits 31 to 24).
    pub write: Signal<In, Bit>,
    pub row: Signal<In, Bits<3>>,
    pub writes_port: Signal<In, Bit>,
    pub data: Signal<In, Bits<32>>,
    /// Sender to look up: the IPv4 address as two half-words, and the UDP port, all in stream order. `known` and
    /// `member` are valid one cycle later.
    pub address0: Signal<In, Bits<16>>,
    pub address1: Signal<In, Bits<16>>,
    pub port: Signal<In, Bits<16>>,
    pub known: Signal<Out, Bit>,
    pub member: Signal<Out, Bits<3>>,
    /// Bitmap of the rows in use. `switches` is the bitmap of the rows whose member is a switch.
    pub members: Signal<Out, Bits<8>>,
    pub switches: Signal<Out, Bits<8>>,
    /// Ports of the board that lead to the rows in use, as bits of `tuser`.
    pub all_ports: Signal<Out, Bits<8>>,
    /// Port of the board that leads to the row `asker`, one cycle later.
    pub asker: Signal<In, Bits<3>>,
    pub asker_port: Signal<Out, Bits<8>>,
    address0s: [DFF<Bits<16>>; 8],
    address1s: [DFF<Bits<16>>; 8],
    ports: [DFF<Bits<16>>; 8],
    board_ports: [DFF<Bits<8>>; 8],
    collected: DFF<Bits<8>>,
    chosen_port: DFF<Bits<8>>,
    joined: [Signal<Local, Bits<8>>; 9],
    valid: DFF<Bits<8>>,
    is_switch: DFF<Bits<8>>,
    equal: [DFF<Bit>; 8],
    chosen: Signal<Local, Bits<8>>,
    others: Signal<Local, Bits<8>>,
    kept_valid: Signal<Local, Bits<8>>,
    kept_switch: Signal<Local, Bits<8>>,
}

impl Logic for MemberTable {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid, is_switch, collected, chosen_port);
        self.chosen.next = 0.into();
        for i in 0..8 {
            if self.row.val() == i {
                self.chosen.next = (1_u64 << i).to_bits();
            }
        }
        self.others.next = !self.chosen.val();
        self.kept_valid.next = self.valid.q.val() & self.others.val();
        self.kept_switch.next = self.is_switch.q.val() & self.others.val();
        if self.write.val() & self.writes_port.val() {
            self.valid.d.next = self.kept_valid.val();
            self.is_switch.d.next = self.kept_switch.val();
            if self.data.val().get_bit(16) {
                self.valid.d.next = self.kept_valid.val() | self.chosen.val();
            }
            if self.data.val().get_bit(17) {
                self.is_switch.d.next = self.kept_switch.val() | self.chosen.val();
            }
        }
        self.joined[0].next = 0.into();
        self.chosen_port.d.next = 0.into();
        self.known.next = false;
        self.member.next = 0.into();
        for i in 0..8 {
            self.address0s[i].clock.next = self.clock.val();
            self.address1s[i].clock.next = self.clock.val();
            self.ports[i].clock.next = self.clock.val();
            self.equal[i].clock.next = self.clock.val();
            self.board_ports[i].clock.next = self.clock.val();
            self.board_ports[i].d.next = self.board_ports[i].q.val();
            self.address0s[i].d.next = self.address0s[i].q.val();
            self.address1s[i].d.next = self.address1s[i].q.val();
            self.ports[i].d.next = self.ports[i].q.val();
            if self.write.val() & self.chosen.val().get_bit(i) & self.writes_port.val() {
                self.ports[i].d.next = self.data.val().get_bits::<16>(0);
                self.board_ports[i].d.next = self.data.val().get_bits::<8>(24);
            }
            if self.asker.val() == i.to_bits() {
                self.chosen_port.d.next = self.board_ports[i].q.val();
            }
            self.joined[i + 1].next = self.joined[i].val();
            if self.valid.q.val().get_bit(i) {
                self.joined[i + 1].next = self.joined[i].val() | self.board_ports[i].q.val();
            }
            if self.write.val() & self.chosen.val().get_bit(i) & !self.writes_port.val() {
                self.address0s[i].d.next = self.data.val().get_bits::<16>(0);
                self.address1s[i].d.next = self.data.val().get_bits::<16>(16);
            }
            self.equal[i].d.next = self.valid.q.val().get_bit(i)
                & (self.address0s[i].q.val() == self.address0.val())
                & (self.address1s[i].q.val() == self.address1.val())
                & (self.ports[i].q.val() == self.port.val());
            if self.equal[i].q.val() {
                self.known.next = true;
                self.member.next = i.to_bits();
            }
        }
        if self.reset.val() {
            self.valid.d.next = 0.into();
        }
        self.collected.d.next = self.joined[8].val();
        self.all_ports.next = self.collected.q.val();
        self.asker_port.next = self.chosen_port.q.val();
        self.members.next = self.valid.q.val();
        self.switches.next = self.is_switch.q.val();
    }
}
