//! Resources that process one request at a time, in order of arrival: links and processors.

use super::Picos;

/// Picoseconds in a second.
pub(super) const SECOND: f64 = 1e12;

/// Properties of a cable, which are the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cable {
    pub(super) picos_per_byte: Picos,
    pub(super) delay: Picos,
}

/// One direction of a cable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    cable: Cable,
    busy_until: Picos,
}

impl Link {
    pub(super) fn new(cable: Cable) -> Self {
        Self { cable, busy_until: 0 }
    }

    /// Sends a number of bytes, and returns the time at which the last byte arrives at the other end.
    pub(super) fn carry(&mut self, now: Picos, wire_bytes: usize) -> Picos {
        self.busy_until = self.busy_until.max(now) + wire_bytes as Picos * self.cable.picos_per_byte;
        self.busy_until + self.cable.delay
    }
}

/// Single-threaded processes, either each on its own machine or all on the cores of one machine.
#[derive(Clone, Debug)]
pub(super) struct Processes {
    busy_until: Vec<Picos>,
    /// Times at which the cores become free; empty if each process has its own machine.
    cores: Vec<Picos>,
    wake: Picos,
}

impl Processes {
    pub(super) fn new(count: usize, shared_cores: Option<usize>, wake: Picos) -> Self {
        Self { busy_until: vec![0; count], cores: vec![0; shared_cores.unwrap_or(0)], wake }
    }

    /// Schedules work that the process starts without an external event, as soon as its current work is done. Returns
    /// the time at which the new work is done.
    pub(super) fn run(&mut self, process: usize, now: Picos, cost: Picos) -> Picos {
        let ready = self.busy_until[process].max(now);
        let start = self.take_core(ready, cost);
        self.busy_until[process] = start + cost;
        start + cost
    }

    /// Schedules work that is triggered by an arrival. If the process is idle, it must first wake up.
    pub(super) fn react(&mut self, process: usize, now: Picos, cost: Picos) -> Picos {
        let is_idle = self.busy_until[process] < now;
        self.run(process, if is_idle { now + self.wake } else { now }, cost)
    }

    /// Reserves a core for work that is ready at `ready`, and returns the time at which the work begins. Of the free
    /// cores, it takes the one that became free last, so that the others remain available for work that was ready
    /// earlier.
    fn take_core(&mut self, ready: Picos, cost: Picos) -> Picos {
        let free = self.cores.iter_mut().filter(|free| **free <= ready).max();
        let core = match free {
            Some(core) => core,
            None => match self.cores.iter_mut().min() {
                Some(core) => core,
                None => return ready,
            },
        };
        let start = ready.max(*core);
        *core = start + cost;
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_sends_packets_one_after_another() {
        let mut link = Link::new(Cable { picos_per_byte: 800, delay: 1_000 });
        assert_eq!([link.carry(0, 10), link.carry(0, 10), link.carry(50_000, 10)], [9_000, 17_000, 59_000]);
    }

    #[test]
    fn processes_wait_for_their_earlier_work_and_for_free_cores() {
        let mut own = Processes::new(3, None, 7);
        assert_eq!([own.run(0, 0, 10), own.run(0, 5, 10), own.run(1, 5, 10)], [10, 20, 15]);
        // Only an idle process has to wake up.
        assert_eq!([own.react(0, 15, 10), own.react(2, 15, 10)], [30, 32]);
        let mut shared = Processes::new(3, Some(2), 0);
        assert_eq!([shared.run(0, 0, 10), shared.run(1, 0, 10), shared.run(2, 0, 10)], [10, 10, 20]);
    }
}
