//! Waveforms of a rust-hdl simulation.

use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use std::rc::Rc;

use rust_hdl::core::vcd_probe::{VCDProbe, write_vcd_change, write_vcd_dump, write_vcd_header};
use rust_hdl::prelude::*;

use super::CYCLE_PS;

/// A Value Change Dump that is being written.
pub(super) struct Trace {
    probe: Option<VCDProbe<Sink>>,
    sink: Sink,
    now_ps: u64,
}

impl Trace {
    pub(super) fn begin(to: Box<dyn Write>, top: &dyn Block) -> io::Result<Self> {
        let sink = Sink(Rc::new(RefCell::new(State { to: BufWriter::new(to), failed: None })));
        let mut probe = write_vcd_header(sink.clone(), top);
        probe.timestamp(0)?;
        Ok(Self { probe: Some(write_vcd_dump(probe, top)), sink, now_ps: 0 })
    }

    /// Records the signals that have changed and advances the time by half a clock cycle.
    pub(super) fn half_cycle(&mut self, top: &dyn Block) {
        if let Some(probe) = self.probe.take() {
            let mut probe = write_vcd_change(probe, top);
            self.now_ps += CYCLE_PS / 2;
            // The sink stores the error.
            let _ = probe.timestamp(self.now_ps);
            self.probe = Some(probe);
        }
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        drop(self.probe.take());
        let mut state = self.sink.0.borrow_mut();
        match state.failed.take() {
            Some(error) => Err(error),
            None => state.to.flush(),
        }
    }
}

/// Writer whose writes always succeed, because rust-hdl panics on a write error. The writer stores the first error,
/// which [`Trace::end`] returns.
#[derive(Clone)]
struct Sink(Rc<RefCell<State>>);

struct State {
    to: BufWriter<Box<dyn Write>>,
    failed: Option<io::Error>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        if state.failed.is_none()
            && let Err(error) = state.to.write_all(bytes)
        {
            state.failed = Some(error);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
