//! The accelerator's RTL in lock-step with the switch core.

use clap::ValueEnum as _;
use hdl::accelerator::Build;
use hdl::simulation::{Command, Device, Frame, Report, RustDevice};
use iswitch_testbench::lockstep::run;

/// Number of packets, enough for every kind of packet and a reset.
const PACKETS: u64 = 600;

#[test]
fn the_accelerator_behaves_like_the_core() {
    for (seed, build) in Build::value_variants().iter().copied().enumerate() {
        let outcome = run(&mut RustDevice::new(build), build, PACKETS, seed as u64, |_| {});
        let outcome = outcome.unwrap_or_else(|error| panic!("{build:?}: {error:#}"));
        assert_eq!(outcome.packets, PACKETS);
        assert!(outcome.results > 0 && outcome.dropped > 0 && outcome.ordinary > 0, "{outcome}");
    }
}

/// Board that changes one bit of one result.
struct Faulty(RustDevice);

impl Device for Faulty {
    type Error = <RustDevice as Device>::Error;

    fn run(&mut self, commands: &[Command]) -> Result<Report, Self::Error> {
        let mut report = self.0.run(commands)?;
        let result = report.frames.iter_mut().rfind(|frame: &&mut Frame| frame.destination != 0);
        if let Some(byte) = result.and_then(|frame| frame.bytes.last_mut()) {
            *byte ^= 1;
        }
        Ok(report)
    }

    fn read(&mut self, offset: u16) -> Result<u32, Self::Error> {
        self.0.read(offset)
    }
}

#[test]
fn a_single_wrong_bit_is_detected() {
    let mut device = Faulty(RustDevice::new(Build::Slots128));
    let error = run(&mut device, Build::Slots128, PACKETS, 0, |_| {}).unwrap_err();
    assert!(format!("{error:#}").contains("has a wrong byte at offset"), "{error:#}");
}
