//! The accelerator in lock-step with the switch core: both receive the same packets, and every result is compared.
//!
//! One seed determines the whole run. Jobs follow one another; for each job, the core determines which results must
//! appear, and which packets must be dropped and why.

mod oracle;
mod recovery;
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
pub use recovery::{Recovered, recover};
use stream::{HELP_SEGMENTS, Sent, Stream};

const PAUSES: [Pause; 4] = [Pause::Percent(0), Pause::Percent(35), Pause::Percent(70), Pause::Fourth];

/// Bit of the register STATUS that is set while results are being sent or requested.
const BUSY: u32 = 1 << 11;
/// Number of times that a board is drained before it counts as stuck. In a working board, all request queues are empty
/// long before that.
const MOST_DRAINS: u32 = 100;

/// Numbers of compared items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Outcome {
    /// Number of frames that were sent to the accelerator.
    pub packets: u64,
    /// Number of results of the accelerator, all equal to those of the core.
    pub results: u64,
    /// Number of results that the accelerator sent to one member again, all equal to those of the core.
    pub repeated: u64,
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
        let Self { packets, results, repeated, ordinary, dropped, jobs, resets, cycles } = self;
        write!(
            f,
            "{packets} packets, {jobs} jobs, {resets} resets, {cycles} cycles: {results} results, {repeated} repeated \
             results, {dropped} drops and {ordinary} ordinary frames, no difference"
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
    // The reset of the counters takes 32 cycles, so it comes first.
    let mut commands = vec![Command::Pauses(source, sink), Command::Write(offset::RESET, 1)];
    let writes = stream.setup().writes()?;
    commands.extend(writes.into_iter().map(|(at, value)| Command::Write(at, value)));
    let mut oracle = Oracle::new(stream.setup())?;
    let frames = stream.frames(limit.min(stream.most_packets()), &mut oracle);
    outcome.packets += frames.len() as u64;
    let ordinary: Vec<_> = frames.iter().filter_map(Sent::forwarded).collect();
    commands.extend(frames.into_iter().flat_map(Sent::commands));
    let mut report = device.run(&commands)?;
    serve_requests(device, &mut report.frames)?;
    let (repeats, others): (Vec<_>, Vec<_>) = report.frames.iter().partition(|frame| is_repeat(frame));
    compare(&others, &oracle.results, stream.setup().result_ports(), &ordinary)?;
    compare_repeats(&repeats, &oracle, &stream)?;
    compare_counters(device, &oracle, stream.malformed(), ordinary.len() as u64)?;
    compare_late(device, &oracle, &stream, repeats.len() as u64)?;
    outcome.jobs += 1;
    outcome.results += oracle.results.len() as u64;
    outcome.repeated += repeats.len() as u64;
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

/// Runs the board until it has served all requests for results, and appends the frames that leave it.
///
/// The board sends nothing while it determines that a requested result has not been kept. If many such requests are
/// waiting, the board counts as drained before it has served them.
fn serve_requests<D: Device>(device: &mut D, frames: &mut Vec<Frame>) -> Result<()>
where
    D::Error: std::error::Error + Send + Sync + 'static,
{
    for _ in 0..MOST_DRAINS {
        if device.read(offset::STATUS)? & BUSY == 0 {
            return Ok(());
        }
        frames.extend(device.run(&[])?.frames);
    }
    anyhow::bail!("requests for results are still waiting after the board was drained {MOST_DRAINS} times")
}

/// Returns whether a frame is a result for one member. Other results also go to the host, and only results have network
/// ports as their destination.
fn is_repeat(frame: &Frame) -> bool {
    frame.destination & HOST_PORT == 0 && frame.destination != 0
}

/// Compares the results that are sent to one member again. Unless the order of requests and contributions is fixed,
/// each must be a result of the job, and go to a member.
fn compare_repeats(got: &[&Frame], oracle: &Oracle, stream: &Stream) -> Result<()> {
    let is_of_a_member = |frame: &Frame| stream.setup().members.iter().any(|it| it.port == frame.destination);
    for (at, frame) in got.iter().enumerate() {
        let is_right = if stream.repeats_exactly() {
            let repeat = oracle.repeats.get(at);
            repeat.is_some_and(|it| (stream.port_of(it.to), &it.bytes) == (frame.destination, &frame.bytes))
        } else {
            is_of_a_member(frame) && oracle.results.contains(&frame.bytes)
        };
        ensure!(
            is_right,
            "repeated result {at}, sent to the ports {:#x}, differs from that of the core",
            frame.destination
        );
    }
    let (repeats, expected) = (got.len(), oracle.repeats.len());
    ensure!(
        repeats == expected || !stream.repeats_exactly(),
        "the board sent {repeats} repeated results, expected {expected}"
    );
    Ok(())
}

/// Compares the frames that left the accelerator, except repeated results, with the expected ones. A frame whose
/// destination includes a network port is a result; all other frames are ordinary or control packets.
fn compare(got: &[&Frame], results: &[Vec<u8>], ports: u8, ordinary: &[Frame]) -> Result<()> {
    let is_result = |frame: &&Frame| frame.destination & !HOST_PORT != 0;
    let (sums, others): (Vec<&Frame>, Vec<&Frame>) = got.iter().copied().partition(is_result);
    for (at, (got, expected)) in sums.iter().zip(results).enumerate() {
        ensure!(
            got.destination == ports,
            "result {at} goes to port mask {:#x}, expected {ports:#x}",
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
    ensure!(sums.len() == results.len(), "the board sent {} results, expected {}", sums.len(), results.len());
    ensure!(
        others.iter().copied().eq(ordinary),
        "the ordinary frames differ from those sent: {} arrived, expected {}",
        others.len(),
        ordinary.len()
    );
    Ok(())
}

/// Compares the counters of late contributions and of requests for results. Each late contribution is a request, and
/// so is each segment that a Help names; each request is either served, or counted as unanswered or skipped. A Help
/// for which there is no room counts as one skipped request, regardless of how many segments it names, even if it
/// names none.
///
/// If segments share slots, the core keeps results longer than the accelerator. The core then counts some
/// contributions as late that the accelerator counts as stale.
fn compare_late<D: Device>(device: &mut D, oracle: &Oracle, stream: &Stream, repeats: u64) -> Result<()>
where
    D::Error: std::error::Error + Send + Sync + 'static,
{
    let mut read = |offset| device.read(offset).map(u64::from);
    let late = read(counter_at(event::LATE))?;
    let repeated = read(counter_at(event::REPEATED))?;
    let (unanswered, skipped) = (read(counter_at(event::UNANSWERED))?, read(offset::SKIPPED)?);
    let expected = oracle.counters().drops(DropReason::Late);
    ensure!(late == expected || stream.is_large(), "the counter late is {late}, expected {expected}");
    ensure!(repeated == repeats, "the counter repeated is {repeated}, expected {repeats}");
    let requested = late + stream.requested();
    let served = repeated + unanswered;
    ensure!(
        served <= requested && requested - served <= skipped * u64::from(HELP_SEGMENTS),
        "{requested} requested results, but {repeated} repeated, {unanswered} unanswered and {skipped} skipped"
    );
    Ok(())
}

fn counter_at(code: u64) -> u16 {
    offset::COUNTERS + 4 * code as u16
}

/// Compares the other counters of the core and the accelerator. For late and stale contributions, only the sum of both
/// counters is compared.
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
            got += u64::from(device.read(counter_at(*code))?);
        }
        let names: Vec<_> = codes.iter().map(|code| event::NAMES[*code as usize]).collect();
        ensure!(got == expected, "the counter {} is {got}, expected {expected}", names.join(" + "));
    }
    Ok(())
}
