//! Recovery from loss in lock-step: workers that lose packets drive the accelerator and the switch core alike.
//!
//! Each contribution, each Help and each delivery of a result is lost with some probability, or reaches the switch
//! twice. Workers recover with Help. The core also answers for the host: its Ack names the contributions that are
//! missing. The accelerator must repeat the same results as the core, its tables must name the same missing
//! contributions, and each worker must receive the exact sum of every segment of every round.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::{Context, Result, ensure};
use hdl::accelerator::Build;
use hdl::accelerator::registers::offset;
use hdl::adder::add;
use hdl::host::{HEADER_LEN_BYTES, HOST_PORT, JobSetup, Member, PACE_10G, contribution, member_frame};
use hdl::simulation::{Command, Device, Frame};
use iswitch_protocol::limits::MAX_BITMAP_LEN_BYTES;
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{Class, ControlBody, ControlPacket, ControlRepr};
use iswitch_protocol::{Round, Seg, SegmentIndex, VectorLayout};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::oracle::Oracle;
use super::stream::HELP_SEGMENTS;
use super::{is_repeat, serve_requests};

/// Loss of packets in each direction, in percent. The probability of a duplicate is the same.
const LOSS_PERCENT: u32 = 10;
/// Rounds of a job.
const ROUNDS: u32 = 4;
/// Maximum distance of a segment from the first one whose result a worker lacks. It is smaller than the number of
/// slots.
const WINDOW_SEGMENTS: u32 = 100;
/// Length of a Help, which is at least that of its Ack, in bytes (C-4).
const MIN_HELP_LEN_BYTES: usize = 60 + HELP_SEGMENTS as usize / 8 + 12;
/// Number of late contributions that may wait in the accelerator. Each duplicate can be one.
const MOST_LATE: usize = 16;
/// Steps of a job after which a worker that lacks results counts as stuck.
const MOST_STEPS: u32 = 10_000;

/// Numbers of compared items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Recovered {
    /// Jobs in which each worker received every sum.
    pub jobs: u64,
    /// Sums that workers received, all of them exact.
    pub sums: u64,
    /// Contributions, Helps and deliveries of results that were lost.
    pub lost: u64,
    /// Helps that reached the switch. For each of them, the bitmap of the core equals that of the accelerator's tables.
    pub helps: u64,
    /// Results that the accelerator sent to one member again, all equal to those of the core.
    pub repeated: u64,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { jobs, sums, lost, helps, repeated } = self;
        write!(
            f,
            "{jobs} jobs, {lost} packets lost, {helps} Helps, {repeated} repeated results: {sums} sums, all exact"
        )
    }
}

/// Runs the given number of jobs with packet loss.
///
/// # Errors
/// Fails at the first difference. The error contains the seed of the job in which it occurred.
pub fn recover<D: Device>(device: &mut D, build: Build, jobs: u64, seed: u64) -> Result<Recovered>
where
    D::Error: std::error::Error + Send + Sync + 'static,
{
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut done = Recovered::default();
    for _ in 0..jobs {
        let job_seed = random.random();
        let mut job = Job::start(device, build, job_seed)?;
        job.run(device, &mut done).with_context(|| format!("job {job_seed:#x}"))?;
        done.jobs += 1;
    }
    Ok(done)
}

/// Worker of the job.
struct Worker {
    round: Round,
    /// Segments of the round whose result has arrived.
    has: Vec<bool>,
    /// Segments of the round that the worker has sent, and need not send again yet.
    sent: Vec<bool>,
}

/// Sum of a segment, from the contributions that reached the switch.
struct Sum {
    round: Round,
    bits: Vec<u32>,
    contributors: u8,
}

struct Job {
    random: ChaCha8Rng,
    setup: JobSetup,
    build: Build,
    oracle: Oracle,
    workers: Vec<Worker>,
    /// Sums of each segment in the even and the odd round.
    sums: [Vec<Sum>; 2],
    request: u32,
}

impl Job {
    /// Configures a random job.
    fn start<D: Device>(device: &mut D, build: Build, seed: u64) -> Result<Self>
    where
        D::Error: std::error::Error + Send + Sync + 'static,
    {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let slots = build.slots();
        // In one job of four, segments share slots.
        let segments = match random.random_range(0..4) {
            0 => random.random_range(slots + 1..=2 * slots + 9),
            _ => random.random_range(1..=20),
        };
        let segment_floats: u16 = random.random_range(1..=20);
        let last = random.random_range(1..=u32::from(segment_floats));
        let gradient_len = (segments - 1) * u32::from(segment_floats) + last;
        let layout = VectorLayout::new(gradient_len, segment_floats).context("the sizes are in range")?;
        let count = random.random_range(2..=4_u8);
        let members = (0..count).map(|number| Member {
            address: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 10 + number), 4000),
            is_switch: false,
            port: 1 << (2 * number),
        });
        let base = Round::new(random.random());
        let setup = JobSetup {
            id: 9,
            layout,
            base,
            threshold: count,
            members: members.collect(),
            pace: PACE_10G,
            forwards_strangers: false,
        };
        let writes = setup.writes()?.into_iter().map(|(at, value)| Command::Write(at, value));
        device.run(&writes.collect::<Vec<_>>())?;
        let blank = || vec![false; segments as usize];
        let worker = |_| Worker { round: base, has: blank(), sent: blank() };
        let sums = || (0..segments).map(|_| Sum { round: base, bits: Vec::new(), contributors: 0 }).collect();
        let (oracle, workers, sums) =
            (Oracle::new(&setup)?, (0..count).map(worker).collect(), [sums(), sums()]);
        Ok(Self { random, setup, build, oracle, workers, sums, request: 1 })
    }

    fn run<D: Device>(&mut self, device: &mut D, done: &mut Recovered) -> Result<()>
    where
        D::Error: std::error::Error + Send + Sync + 'static,
    {
        let end = self.setup.base.plus(ROUNDS);
        for _ in 0..MOST_STEPS {
            if self.workers.iter().all(|worker| worker.round == end) {
                return Ok(());
            }
            let contributions = self.contribute(end, done);
            self.step(device, &contributions, done)?;
            for number in 0..self.workers.len() {
                if self.workers[number].round != end {
                    self.help(device, number, done)?;
                }
            }
        }
        anyhow::bail!("a worker still lacks results after {MOST_STEPS} steps")
    }

    fn is_lost(&mut self, done: &mut Recovered) -> bool {
        let is_lost = self.random.random_range(0..100) < LOSS_PERCENT;
        done.lost += u64::from(is_lost);
        is_lost
    }

    /// Returns the contributions from all workers that reach the switch, each with the number of its sender.
    fn contribute(&mut self, end: Round, done: &mut Recovered) -> Vec<(usize, Vec<u8>)> {
        let mut arriving = Vec::new();
        for number in 0..self.workers.len() {
            let round = self.workers[number].round;
            let Some(first) = self.workers[number].has.iter().position(|has| !has).filter(|_| round != end)
            else {
                continue;
            };
            let window = first + WINDOW_SEGMENTS as usize;
            for index in first..window.min(self.workers[number].has.len()) {
                if self.workers[number].has[index] || self.workers[number].sent[index] {
                    continue;
                }
                self.workers[number].sent[index] = true;
                let payload = self.contribution(number, index as u32);
                let copies = 1 + usize::from(self.random.random_range(0..100) < LOSS_PERCENT);
                if !self.is_lost(done) {
                    arriving.extend(vec![(number, payload); copies]);
                }
            }
        }
        arriving
    }

    /// Returns a worker's contribution to a segment of its round, which is always the same.
    fn contribution(&self, number: usize, index: u32) -> Vec<u8> {
        let index = SegmentIndex::new(index).expect("the index is in the vector");
        let round = self.workers[number].round;
        let range = self.setup.layout.range(index);
        let float = |at: usize| {
            let salt = at as u32 ^ round.get().wrapping_mul(0x9e37) ^ (number as u32) << 20;
            let bits = salt.wrapping_mul(0x9e37_79b1);
            bits & 0x87ff_ffff | 0x3800_0000
        };
        contribution(Seg { index, round, contributions: 1 }, &range.map(float).collect::<Vec<_>>())
    }

    /// Sends contributions to both switches, and delivers the results from the accelerator.
    fn step<D: Device>(
        &mut self,
        device: &mut D,
        arriving: &[(usize, Vec<u8>)],
        done: &mut Recovered,
    ) -> Result<()>
    where
        D::Error: std::error::Error + Send + Sync + 'static,
    {
        let mut commands = Vec::new();
        let mut duplicates = 0;
        for (at, (number, payload)) in arriving.iter().enumerate() {
            duplicates += usize::from(at > 0 && arriving[at - 1] == arriving[at]);
            if duplicates == MOST_LATE {
                commands.push(Command::Drain);
                duplicates = 0;
            }
            let Member { address, port, .. } = self.setup.members[*number];
            self.add(*number, payload);
            self.oracle.data(address, payload);
            let bytes = member_frame(address, Class::Data, payload);
            commands.push(Command::Send(Frame { bytes, source: port, destination: 0 }));
        }
        let mut report = device.run(&commands)?;
        serve_requests(device, &mut report.frames)?;
        self.deliver(&report.frames, done)
    }

    /// Adds a contribution to the sum of its segment, by the rules of section 5 of the specification.
    fn add(&mut self, number: usize, payload: &[u8]) {
        let seg = Seg::from_bytes(payload[..8].try_into().expect("a Seg has eight bytes"));
        let sum = &mut self.sums[seg.round.parity()][seg.index.get() as usize];
        let floats =
            payload[8..].chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")));
        if sum.round.is_before(seg.round) || sum.contributors == 0 {
            *sum = Sum { round: seg.round, bits: vec![0; payload.len() / 4 - 2], contributors: 0 };
        }
        if sum.round == seg.round && sum.contributors >> number & 1 == 0 {
            sum.contributors |= 1 << number;
            sum.bits = sum.bits.iter().zip(floats).map(|(a, b)| add(*a, b)).collect();
        }
    }

    /// Compares the accelerator's results with those of the core, and delivers them to the workers.
    fn deliver(&mut self, frames: &[Frame], done: &mut Recovered) -> Result<()> {
        let (repeats, results): (Vec<&Frame>, Vec<&Frame>) =
            frames.iter().partition(|frame| is_repeat(frame));
        let expected = std::mem::take(&mut self.oracle.results);
        let results: Vec<_> =
            results.into_iter().filter(|frame| frame.destination & !HOST_PORT != 0).collect();
        ensure!(
            results.iter().map(|frame| &frame.bytes).eq(&expected),
            "{} results from the accelerator differ from {} from the core",
            results.len(),
            expected.len()
        );
        let mut got: Vec<_> = repeats.iter().map(|frame| (frame.destination, frame.bytes.clone())).collect();
        let expected = std::mem::take(&mut self.oracle.repeats);
        let port_of = |to| self.setup.members.iter().find(|it| it.address == to).map_or(0, |it| it.port);
        let mut expected: Vec<_> = expected.into_iter().map(|it| (port_of(it.to), it.bytes)).collect();
        got.sort();
        expected.sort();
        ensure!(
            got == expected,
            "{} repeated results from the accelerator differ from {} from the core",
            got.len(),
            expected.len()
        );
        done.repeated += got.len() as u64;
        for frame in results.into_iter().chain(repeats) {
            for number in 0..self.workers.len() {
                if frame.destination & self.setup.members[number].port != 0 && !self.is_lost(done) {
                    self.take(number, &frame.bytes[HEADER_LEN_BYTES - 8..], done)?;
                }
            }
        }
        Ok(())
    }

    /// Delivers a result to a worker, which continues with the next round when it has all results.
    fn take(&mut self, number: usize, payload: &[u8], done: &mut Recovered) -> Result<()> {
        let seg = Seg::from_bytes(payload[..8].try_into().expect("a Seg has eight bytes"));
        let (worker, index) = (&mut self.workers[number], seg.index.get() as usize);
        if seg.round != worker.round || worker.has[index] {
            return Ok(());
        }
        let sum = &self.sums[seg.round.parity()][index];
        let bytes: Vec<u8> = sum.bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        ensure!(
            sum.round == seg.round && payload[8..8 + bytes.len()] == bytes,
            "the sum of segment {index} in round {} is not exact",
            seg.round.get()
        );
        done.sums += 1;
        worker.has[index] = true;
        if worker.has.iter().all(|has| *has) {
            worker.round = worker.round.next();
            worker.has.fill(false);
            worker.sent.fill(false);
        }
        Ok(())
    }

    /// Sends a Help for the first results that a worker lacks, and lets the worker send what the Ack names.
    fn help<D: Device>(&mut self, device: &mut D, number: usize, done: &mut Recovered) -> Result<()>
    where
        D::Error: std::error::Error + Send + Sync + 'static,
    {
        if self.is_lost(done) {
            return Ok(());
        }
        let Worker { round, has, .. } = &self.workers[number];
        let (round, Member { address, port, .. }) = (*round, self.setup.members[number]);
        let Some(first) = has.iter().position(|has| !has) else { return Ok(()) };
        let count = (has.len() - first).min(HELP_SEGMENTS as usize);
        let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
        for at in (0..count).filter(|at| !has[first + at]) {
            bitmap[at / 8] |= 1 << (at % 8);
        }
        let range = RangeRepr { round, first: first as u32, count: count as u32 };
        let wanted = SegmentSetRepr::of(range, &bitmap);
        self.request += 1;
        let repr = ControlRepr { job: self.setup.id, request: self.request, body: ControlBody::Help(wanted) };
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes);
        // The Ack from the core is not longer than the Help.
        bytes.resize(bytes.len().max(MIN_HELP_LEN_BYTES), 0);
        self.oracle.control_bytes(address, &bytes);
        let frame = member_frame(address, Class::Control, &bytes);
        let mut report =
            device.run(&[Command::Send(Frame { bytes: frame, source: port, destination: 0 })])?;
        serve_requests(device, &mut report.frames)?;
        let forwarded = report.frames.iter().filter(|frame| frame.destination == HOST_PORT).count();
        ensure!(forwarded == 1, "{forwarded} Helps reached the host, expected 1");
        done.helps += 1;
        let missing = self.missing_at_the_core()?;
        for index in wanted.indices() {
            let is_missing = self.is_missing(device, number, round, index)?;
            let of_core = missing.contains(&index);
            ensure!(
                is_missing == of_core,
                "the accelerator and the core disagree on whether segment {index} is missing: accelerator's tables \
                 {is_missing}, core {of_core}"
            );
        }
        for index in missing {
            self.workers[number].sent[index as usize] = false;
        }
        self.deliver(&report.frames, done)
    }

    /// Returns the segments whose contributions are missing according to the last Ack from the core.
    fn missing_at_the_core(&mut self) -> Result<Vec<u32>> {
        let ack = self.oracle.take_answer().context("the core did not answer a Help")?;
        let repr = ControlRepr::parse(&ControlPacket::new_checked(&ack[..])?)?;
        let ControlBody::Ack(ack) = repr.body else { anyhow::bail!("the core answered {:?}", repr.body) };
        let missing = ack.missing.with_context(|| format!("the core refused a Help: {:?}", ack.status))?;
        Ok(missing.indices().collect())
    }

    /// Returns whether the accelerator would accept a worker's contribution, according to its tables.
    fn is_missing<D: Device>(&self, device: &mut D, number: usize, round: Round, index: u32) -> Result<bool>
    where
        D::Error: std::error::Error + Send + Sync + 'static,
    {
        device.run(&[Command::Write(offset::SLOT, index % self.build.slots())])?;
        let state = device.read(offset::SLOT_STATE)?;
        let current = (device.read(offset::SLOT_ROUND)?, device.read(offset::SLOT_SEGMENT)?);
        let next_round = Round::new(device.read(offset::ROUND_NEXT)?);
        let unfinished =
            device.read(if round.parity() == 0 { offset::ROUND_EVEN } else { offset::ROUND_ODD })?;
        let (is_open, is_done) = (state & 1 != 0, state & 2 != 0);
        if current == (round.get(), index) && (is_open || is_done) {
            return Ok(is_open && state >> (8 + number) & 1 == 0);
        }
        // The segment may begin if the slot contains the finished preceding segment or is still empty, and if the
        // segment's round is open or may be opened.
        let slots = self.build.slots();
        let before = if index >= slots {
            (round.get(), index - slots)
        } else {
            let last = self.setup.layout.segment_count() - 1;
            (round.previous().get(), index + (last - index) / slots * slots)
        };
        let is_empty = !is_open && !is_done;
        let follows = is_done && current == before || is_empty && round == self.setup.base && index < slots;
        Ok(follows && (round != next_round || unfinished == 0))
    }
}
