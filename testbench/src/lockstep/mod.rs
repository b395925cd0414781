//! The accelerator in lock-step with the switch core: both receive the same packets, and every result is compared.
//!
//! One seed determines the whole run. Jobs follow one another; for each job, the core determines which results must
//! appear, and which packets must be dropped and why.

mod oracle;
mod stream;

use std::fmt;

use anyhow::{Context, Result, ensure};
use hdl::accelerator::Build;
use hdl::accelerator::records::event;
use hdl::accelerator::registers::offset;
use hdl::host::HOST_PORT;
use hdl::simulation::{Command, Device, Frame, Pause};
use iswitch_switch::DropReason;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use oracle::Oracle;
use stream::{Sent, Stream};

const PAUSES: [Pause; 4] = [Pause::Percent(0), Pause::Percent(35), Pause::Percent(70), Pause::Fourth];

/// Numbers of compared items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Outcome {
    /// Number of frames that were sent to the accelerator.
    pub packets: u64,
    /// Number of results of the accelerator, all equal to those of the core.
    pub results: u64,
    /// Number of frames that are not for the accelerator, all forwarded unchanged and in order.
    pub ordinary: u64,
    /// Number of contributions that the accelerator and the core dropped for the same reason, and malformed
    /// contributions, which never reach the core.
    pub dropped: u64,
    /// Number of jobs.
    pub jobs: u64,
    /// Number of resets of the board in the middle of a frame.
    pub resets: u64,
    /// Number of clock cycles of the simulated board.
    pub cycles: u64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { packets, results, ordinary, dropped, jobs, resets, cycles } = self;
        write!(
            f,
            "{packets} packets, {jobs} jobs, {resets} resets, {cycles} cycles: {results} results, {dropped} drops \
             and {ordinary} ordinary frames, no difference"
        )
    }
}

/// Sends at least the given number of packets, and compares the output.
///
/// # Errors
/// Fails at the first difference. The error contains the seed of the job in which it occurred.
pub fn run<D: Device>(
    device: &mut D,
    build: Build,
    packets: u64,
    seed: u64,
    mut progress: impl FnMut(&Outcome),
) -> Result<Outcome>
where
    D::Error: std::error::Error + Send + Sync + 'static,
{
    let mut outcome = Outcome::default();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    while outcome.packets < packets {
        let job_seed = random.random();
        let limit = usize::try_from(packets - outcome.packets).unwrap_or(usize::MAX);
        run_job(device, build, limit, job_seed, &mut outcome)
            .with_context(|| format!("job {job_seed:#x}"))?;
        progress(&outcome);
    }
    Ok(outcome)
}

fn run_job<D: Device>(
    device: &mut D,
    build: Build,
    limit: usize,
    seed: u64,
    outcome: &mut Outcome,
) -> Result<()>
where
    D::Error: std::error::Error + Send + Sync + 'static,
{
    let mut stream = Stream::new(build, seed);
    let (source, sink) = (PAUSES[stream.below(4)], PAUSES[stream.below(4)]);
    // The reset of the counters takes sixteen cycles, so it comes first.
    let mut commands = vec![Command::Pauses(source, sink), Command::Write(offset::RESET, 1)];
    let writes = stream.setup().writes()?;
    commands.extend(writes.into_iter().map(|(at, value)| Command::Write(at, value)));
    let mut oracle = Oracle::new(stream.setup())?;
    let frames = stream.frames(limit.min(stream.most_packets()), &mut oracle);
    outcome.packets += frames.len() as u64;
    let ordinary: Vec<_> = frames.iter().filter_map(Sent::forwarded).collect();
    commands.extend(frames.into_iter().map(Sent::command));
    let report = device.run(&commands)?;
    compare(&report.frames, &oracle.results, stream.setup().result_ports(), &ordinary)?;
    compare_counters(device, &oracle, stream.malformed(), ordinary.len() as u64)?;
    outcome.jobs += 1;
    outcome.results += oracle.results.len() as u64;
    outcome.ordinary += ordinary.len() as u64;
    outcome.dropped += oracle.dropped() + stream.malformed();
    outcome.cycles += report.cycles;
    if stream.below(4) == 0 {
        let (frame, beats) = stream.half_a_frame();
        let report = device.run(&[Command::Reset(frame, beats)])?;
        ensure!(
            report.frames.is_empty(),
            "the board sent {} frames after a reset, expected none",
            report.frames.len()
        );
        outcome.resets += 1;
    }
    Ok(())
}

/// Compares the frames that left the accelerator with the expected ones. A frame whose destination includes a network
/// port is a result; all other frames are ordinary or control packets.
fn compare(got: &[Frame], results: &[Vec<u8>], ports: u8, ordinary: &[Frame]) -> Result<()> {
    let is_result = |frame: &&Frame| frame.destination & !HOST_PORT != 0;
    let (sums, others): (Vec<_>, Vec<_>) = got.iter().partition(is_result);
    for (at, (got, expected)) in sums.iter().zip(results).enumerate() {
        ensure!(
            got.destination == ports,
            "result {at} goes to the ports {:#x}, expected {ports:#x}",
            got.destination
        );
        if got.bytes != *expected {
            let (len, expected_len) = (got.bytes.len(), expected.len());
            let byte = got.bytes.iter().zip(expected).position(|(a, b)| a != b);
            let byte = byte.unwrap_or(len.min(expected_len));
            anyhow::bail!(
                "result {at} has a wrong byte at offset {byte}; the result has {len} bytes, expected {expected_len}"
            );
        }
    }
    ensure!(sums.len() == results.len(), "{} results, expected {}", sums.len(), results.len());
    ensure!(
        others.iter().copied().eq(ordinary),
        "the ordinary frames differ from those sent: {} arrived, expected {}",
        others.len(),
        ordinary.len()
    );
    Ok(())
}

/// Compares the drop counters of the core and the accelerator. The core keeps results longer than the accelerator, so
/// it counts some packets as late that the accelerator counts as stale. Therefore, the sum of the two counters is
/// compared.
fn compare_counters<D: Device>(device: &mut D, oracle: &Oracle, malformed: u64, ordinary: u64) -> Result<()>
where
    D::Error: std::error::Error + Send + Sync + 'static,
{
    let counters = oracle.counters();
    let drops = |reasons: &[DropReason]| reasons.iter().map(|reason| counters.drops(*reason)).sum::<u64>();
    let expected: [(&[u64], u64); 11] = [
        (&[event::ORDINARY, event::CONTROL], ordinary),
        (&[event::SUMMED, event::COMPLETED], counters.contributions),
        (&[event::COMPLETED], counters.results),
        (&[event::UNKNOWN_MEMBER], drops(&[DropReason::UnknownMember, DropReason::RateLimited])),
        (&[event::MALFORMED], malformed),
        (&[event::SEG_OUT_OF_RANGE], drops(&[DropReason::SegOutOfRange])),
        (&[event::LENGTH_MISMATCH], drops(&[DropReason::LengthMismatch])),
        (&[event::BAD_WEIGHT], drops(&[DropReason::BadWeight])),
        (&[event::DUPLICATE], drops(&[DropReason::Duplicate])),
        (&[event::LATE, event::STALE_ROUND], drops(&[DropReason::Late, DropReason::StaleRound])),
        (&[event::EARLY_ROUND], drops(&[DropReason::EarlyRound])),
    ];
    for (codes, expected) in expected {
        let mut got = 0;
        for code in codes {
            got += u64::from(device.read(offset::COUNTERS + 4 * *code as u16)?);
        }
        let names: Vec<_> = codes.iter().map(|code| event::NAMES[*code as usize]).collect();
        ensure!(got == expected, "counter {}: {got}, expected {expected}", names.join(" + "));
    }
    Ok(())
}
