//! The accelerator's RTL in lock-step with the switch core.

use clap::ValueEnum as _;
use hdl::accelerator::Build;
use hdl::host::HOST_PORT;
use hdl::simulation::{Command, Device, Frame, Report, RustDevice};
use iswitch_testbench::lockstep::{recover, run};

/// Number of packets, enough for every kind of packet and a reset.
const PACKETS: u64 = 600;

#[test]
fn the_accelerator_behaves_like_the_core() {
    for (seed, build) in Build::value_variants().iter().copied().enumerate() {
        let outcome = run(&mut RustDevice::new(build), build, PACKETS, seed as u64, |_| {});
        let outcome = outcome.unwrap_or_else(|error| panic!("{build:?}: {error:#}"));
        assert_eq!(outcome.packets, PACKETS);
        let compared = [outcome.results, outcome.repeated, outcome.dropped, outcome.ordinary];
        assert!(compared.iter().all(|count| *count > 0), "{outcome}");
    }
}

/// Seed of the first build, whose job with loss has few segments. CI also runs larger jobs, with Verilator.
const FIRST_LOSSY_SEED: u64 = 2;

#[test]
fn workers_recover_from_loss_with_exact_sums() {
    for (seed, build) in (FIRST_LOSSY_SEED..).zip(Build::value_variants().iter().copied()) {
        let outcome = recover(&mut RustDevice::new(build), build, 1, seed);
        let outcome = outcome.unwrap_or_else(|error| panic!("{build:?}: {error:#}"));
        let counts = [outcome.sums, outcome.lost, outcome.helps, outcome.repeated];
        assert!(counts.iter().all(|count| *count > 0) && outcome.jobs == 1, "{outcome}");
    }
}

/// Board that changes one bit of one result: of a repeated one, or of one for all members.
struct Faulty {
    device: RustDevice,
    repeated: bool,
}

impl Device for Faulty {
    type Error = <RustDevice as Device>::Error;

    fn run(&mut self, commands: &[Command]) -> Result<Report, Self::Error> {
        let mut report = self.device.run(commands)?;
        // Results for all members also go to the host.
        let is_chosen = |frame: &&mut Frame| {
            frame.destination & !HOST_PORT != 0 && (frame.destination & HOST_PORT == 0) == self.repeated
        };
        let result = report.frames.iter_mut().rfind(is_chosen);
        if let Some(byte) = result.and_then(|frame| frame.bytes.last_mut()) {
            *byte ^= 1;
        }
        Ok(report)
    }

    fn read(&mut self, offset: u16) -> Result<u32, Self::Error> {
        self.device.read(offset)
    }
}

#[test]
fn a_single_wrong_bit_is_detected() {
    for (repeated, expected) in [(false, "has a wrong byte at offset"), (true, "repeated result")] {
        let mut device = Faulty { device: RustDevice::new(Build::Slots128), repeated };
        let error = run(&mut device, Build::Slots128, PACKETS, 0, |_| {}).unwrap_err();
        assert!(format!("{error:#}").contains(expected), "{error:#}");
    }
}
