//! Budget of results that each member may request again (requirement F-3).

use rust_hdl::prelude::*;

use crate::primitives::LutRam;

/// Number of cycles between two additions to the budget in the absence of results: about 5 ms at 200 MHz.
pub const TICK_CYCLES: u64 = 1 << 20;
/// Number of results that each result of the job and each tick restore to the budget of each member.
pub const RESULTS_PER_INCOME: u64 = 8;

/// Counts how much of its budget each member has spent. A request spends one result; each result of the job and each
/// tick restore eight results of every member.
///
/// The members take turns: the count of each member is updated once every eight cycles.
#[derive(LogicBlock, Default)]
pub struct Budget {
    pub clock: Signal<In, Clock>,
    /// Restores the full budget of each member. Must stay high for at least eight cycles.
    pub clear: Signal<In, Bit>,
    /// Budget of each member, in results.
    pub limit: Signal<In, Bits<16>>,
    /// High in a cycle in which `member` spends one result. Two such cycles of one member must be at least eleven
    /// cycles apart.
    pub spends: Signal<In, Bit>,
    pub member: Signal<In, Bits<3>>,
    /// High in a cycle in which a result of the job, which goes to all members, is completed.
    pub earns: Signal<In, Bit>,
    /// Bitmap of the members that have spent their budget. It is up to date eleven cycles after a request.
    pub exhausted: Signal<Out, Bits<8>>,
    spent: LutRam<Bits<16>, 3>,
    /// Member whose count is read. The count is written in the next cycle.
    at: DFF<Bits<3>>,
    was_at: DFF<Bits<3>>,
    held: DFF<Bits<16>>,
    pending: DFF<Bits<8>>,
    has_spent: DFF<Bit>,
    has_earned: DFF<Bit>,
    /// Number of results and ticks that are credited to each member in the current turn, and the number of those that
    /// have arrived since the turn began.
    income: DFF<Bits<4>>,
    earned: DFF<Bits<4>>,
    ticks: DFF<Bits<20>>,
    /// Count of the member that had its turn in the previous cycle, to be compared with the budget, and the one-hot
    /// code of this member.
    written: DFF<Bits<16>>,
    checks: DFF<Bits<8>>,
    is_exhausted: DFF<Bits<8>>,
    /// One-hot codes of `at` and `was_at`.
    own: Signal<Local, Bits<8>>,
    was_own: DFF<Bits<8>>,
    others: Signal<Local, Bits<8>>,
    spender: Signal<Local, Bits<8>>,
    gains: Signal<Local, Bit>,
    less: Signal<Local, Bits<16>>,
    /// Number that is subtracted from the count in `held`: the income, less the request of the member. It is -1 if the
    /// member has a request but no income.
    change: DFF<Bits<16>>,
    next_less: Signal<Local, Bits<16>>,
    count: Signal<Local, Bits<16>>,
}

impl Logic for Budget {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, at, was_at, held, pending, has_spent, income, earned, ticks, is_exhausted);
        dff_setup!(self, clock, was_own, has_earned, written, checks, change);
        clock!(self, clock, spent);
        self.ticks.d.next = self.ticks.q.val() + 1;
        self.has_earned.d.next = self.earns.val();
        self.gains.next = self.has_earned.q.val() | self.ticks.q.val().all();
        if self.gains.val() & !self.earned.q.val().all() {
            self.earned.d.next = self.earned.q.val() + 1;
        }
        self.own.next = 0.into();
        self.spender.next = 0.into();
        for i in 0..8 {
            if self.at.q.val() == i {
                self.own.next = (1_u64 << i).to_bits();
            }
            if (self.member.val() == i) & self.spends.val() {
                self.spender.next = (1_u64 << i).to_bits();
            }
        }
        self.at.d.next = self.at.q.val() + 1;
        self.was_at.d.next = self.at.q.val();
        self.was_own.d.next = self.own.val();
        self.spent.read_address.next = self.at.q.val();
        self.held.d.next = self.spent.read_data.val();
        self.has_spent.d.next = (self.pending.q.val() & self.own.val()).any();
        self.pending.d.next = (self.pending.q.val() & !self.own.val()) | self.spender.val();
        if self.was_at.q.val().all() {
            self.income.d.next = self.earned.q.val();
            self.earned.d.next = 0.into();
            if self.gains.val() {
                self.earned.d.next = 1.into();
            }
        }
        self.less.next = bit_cast::<16, 4>(self.income.q.val()) << 3;
        self.next_less.next = bit_cast::<16, 4>(self.income.d.val()) << 3;
        self.change.d.next = self.next_less.val();
        if self.has_spent.d.val() {
            self.change.d.next = self.next_less.val() - 1;
        }
        self.count.next = 0.into();
        if self.has_spent.q.val() {
            self.count.next = 1.into();
        }
        if self.held.q.val() > self.less.val() {
            self.count.next = self.held.q.val() - self.change.q.val();
        }
        if self.clear.val() {
            self.count.next = 0.into();
            self.pending.d.next = 0.into();
            self.ticks.d.next = 0.into();
        }
        self.spent.write_address.next = self.was_at.q.val();
        self.spent.write_data.next = self.count.val();
        self.spent.write_enable.next = true;
        self.written.d.next = self.count.val();
        self.checks.d.next = self.was_own.q.val();
        self.others.next = !self.checks.q.val();
        self.is_exhausted.d.next = self.is_exhausted.q.val() & self.others.val();
        if self.written.q.val() >= self.limit.val() {
            self.is_exhausted.d.next = self.is_exhausted.q.val() | self.checks.q.val();
        }
        self.exhausted.next = self.is_exhausted.q.val();
    }
}
