//! The accelerator's RTL in lock-step with the switch core.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use hdl::accelerator::Build;
use hdl::generate;
use hdl::host::HOST_PORT;
use hdl::simulation::{Command, Device, Frame, Report, RustDevice, Verilated};
use iswitch_harness::requirements;
use iswitch_testbench::lockstep::{recover, run};

/// Compiles the accelerator with Verilator, once for all tests, and returns the path of the simulation.
pub(crate) fn verilated(build: Build) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verilated").join(hdl::report::name(build));
    Verilated::build(&generate::accelerator(build), &directory).unwrap()
}

/// Number of packets, enough for every kind of packet and a reset.
const PACKETS: u64 = 300;

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

#[test]
fn workers_recover_from_loss_with_exact_sums() {
    // rust-hdl would take minutes for one job.
    if !requirements::programs("workers_recover_from_loss_with_exact_sums", &["verilator"]) {
        return;
    }
    let build = Build::Slots128;
    let mut device = Verilated::start(&verilated(build)).unwrap();
    let outcome = recover(&mut device, build, 5, 2).unwrap_or_else(|error| panic!("{error:#}"));
    let counts = [outcome.sums, outcome.lost, outcome.helps, outcome.repeated];
    assert!(counts.iter().all(|count| *count > 0) && outcome.jobs == 5, "{outcome}");
}

/// Board that changes one bit of one result: of a repeated one, or of one for all members.
struct Faulty {
    device: Verilated,
    repeated: bool,
}

impl Device for Faulty {
    type Error = <Verilated as Device>::Error;

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
    // rust-hdl would take a minute.
    if !requirements::programs("a_single_wrong_bit_is_detected", &["verilator"]) {
        return;
    }
    let program = verilated(Build::Slots128);
    for (repeated, expected) in [(false, "has a wrong byte at offset"), (true, "repeated result")] {
        let mut device = Faulty { device: Verilated::start(&program).unwrap(), repeated };
        let error = run(&mut device, Build::Slots128, PACKETS, 0, |_| {}).unwrap_err();
        assert!(format!("{error:#}").contains(expected), "{error:#}");
    }
}
