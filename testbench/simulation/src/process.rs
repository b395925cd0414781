//! Processes that crash, pause and start late, and whose clocks jump.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch::worker::Path;
use iswitch::worker::protocol::Failure;
use iswitch_protocol::limits::{MAX_JUMBO_PAYLOAD_BYTES, datagram_truesize};
use iswitch_protocol::wire::{Class, Status};
use iswitch_protocol::{Instant, Round};
use iswitch_switch::{Config, JobStatus, Keys, Switch};

use super::addresses::worker_address;
use super::checker::{Checker, Delivered, Rule, Violation, Witness, mix, violated};
use super::wires::LinkEnds;
use super::worker::{Options, Outcome, Request, Worker};

/// Time that a training loop waits before it retries a halted job.
const HALT_PATIENCE: Duration = Duration::from_millis(4);
/// Time that a training loop waits before it retries a refused Join.
const JOIN_PATIENCE: Duration = Duration::from_millis(20);

/// A packet that arrived at a paused process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) packet: u32,
    /// Link on which the packet arrived.
    pub(super) link: LinkEnds,
    /// Group to which the packet was sent, if any.
    pub(super) group: Option<SocketAddrV4>,
    pub(super) len: usize,
}

/// State common to all processes.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// Offset of the process's clock from virtual time, in nanoseconds.
    clock_offset: i64,
    pub(super) pauses: u32,
    /// Packets that arrived during a pause: the socket's receive buffer.
    pub(super) backlog: VecDeque<Waiting>,
    backlog_bytes: usize,
    /// Time of the next wake-up, in virtual time.
    wake: Option<Instant>,
    /// Time before which the process does not wake, in virtual time.
    pub(super) busy_until: Instant,
}

/// Memory that the kernel charges for the page fragments of a super-frame in addition to its data, in bytes.
const SUPERFRAME_OVERHEAD_BYTES: usize = 4096;

/// Returns the bytes of the receive buffer that the kernel charges for a datagram or a super-frame.
fn charge(len: usize) -> usize {
    if len <= MAX_JUMBO_PAYLOAD_BYTES { datagram_truesize(len) } else { len + SUPERFRAME_OVERHEAD_BYTES }
}

impl Process {
    /// Returns the time that the process's clock shows at the virtual time `now`.
    pub(super) fn clock(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos().saturating_add_signed(self.clock_offset))
    }

    pub(super) fn turn_clock(&mut self, by: i64) {
        self.clock_offset += by;
        self.wake = None;
    }

    /// Stores a datagram in the receive buffer. Returns false if the buffer is full.
    pub(super) fn keep(&mut self, waiting: Waiting, buffer_bytes: usize) -> bool {
        let held = charge(waiting.len);
        // The kernel accepts a datagram as long as any buffer space is free.
        let fits = self.backlog_bytes < buffer_bytes;
        if fits {
            self.backlog_bytes += held;
            self.backlog.push_back(waiting);
        }
        fits
    }

    pub(super) fn next_waiting(&mut self) -> Option<Waiting> {
        let waiting = self.backlog.pop_front()?;
        self.backlog_bytes -= charge(waiting.len);
        Some(waiting)
    }

    /// Returns the time at which to wake the process for a deadline on its clock, or `None` if an earlier wake-up is
    /// already scheduled.
    pub(super) fn schedule(&mut self, now: Instant, deadline: Option<Instant>) -> Option<Instant> {
        let deadline = deadline?.as_nanos().saturating_add_signed(-self.clock_offset);
        let at = Instant::from_nanos(deadline).max(now).max(self.busy_until);
        if self.wake.is_some_and(|wake| wake <= at) {
            return None;
        }
        self.wake = Some(at);
        self.wake
    }

    /// Returns whether the process is due at `now`. Returns false for a wake-up that has been superseded.
    pub(super) fn wakes(&mut self, now: Instant) -> bool {
        self.wake.take_if(|wake| *wake <= now).is_some()
    }

    /// Ends the process and discards its pending packets; the machine's clock keeps its offset.
    pub(super) fn kill(&mut self) {
        *self = Self { clock_offset: self.clock_offset, ..Self::default() };
    }
}

/// A machine that runs a switch.
#[derive(Debug)]
pub(super) struct SwitchNode {
    pub(super) process: Process,
    /// The switch process; `None` while it is down.
    pub(super) switch: Option<Switch>,
    /// Index of the parent switch; `None` for the root.
    pub(super) parent: Option<usize>,
    /// For the root, the epoch of the current or last job; for any other switch, its boot id.
    pub(super) boot: u64,
    /// Whether the threshold H is pinned.
    pub(super) is_pinned: bool,
}

impl SwitchNode {
    pub(super) fn new(parent: Option<usize>) -> Self {
        Self { process: Process::default(), switch: None, parent, boot: 0, is_pinned: false }
    }

    pub(super) fn start(&mut self, config: Config, keys: Keys) {
        self.process.kill();
        self.boot = config.boot;
        self.is_pinned = false;
        self.switch = Some(Switch::with_keys(config, keys));
    }

    /// Ends the process if it is running.
    pub(super) fn crash(&mut self) {
        self.switch = None;
        self.process.kill();
    }

    /// Returns the status of the job, if it exists.
    pub(super) fn job(&self, job: u32) -> Option<JobStatus> {
        self.switch.as_ref()?.jobs().find(|status| status.job == job)
    }
}

/// Parameters of the training loops.
#[derive(Clone, Copy, Debug)]
pub(super) struct Training {
    /// Mean time to compute a gradient.
    pub(super) compute: Duration,
    /// Number of rounds after which a worker begins no further round.
    pub(super) rounds: Option<u32>,
    /// One gradient in `poison_one_in`, on average, contains a NaN when it is first contributed; zero disables NaNs.
    pub(super) poison_one_in: u64,
    /// Whether the switch may refuse correct segments, which is possible if corruption can pass the checksums.
    pub(super) excuses_refusals: bool,
    /// Whether every round waits for all its members, which is the case if the scenario contains neither SetH nor
    /// FBcast.
    pub(super) waits_for_all: bool,
}

/// A worker's machine and its training loop.
#[derive(Debug)]
pub(super) struct WorkerNode {
    pub(super) process: Process,
    /// The worker process; `None` while none runs.
    pub(super) worker: Option<Worker>,
    /// Index among the workers.
    pub(super) index: usize,
    /// Life number, unique over all workers: that of the running process or, if none runs, of the last one.
    pub(super) life: usize,
    pub(super) udp_port: u16,
    /// Index of the switch that the worker uses.
    pub(super) switch: usize,
    /// Time at which the next gradient is ready, on the process's clock.
    begin_at: Option<Instant>,
    /// Number of the current gradient. The worker continues with the next gradient once this one is summed, or once the
    /// other members have completed rounds without this worker.
    gradient: u64,
    /// Whether the gradient was refused because of its NaN.
    was_refused: bool,
    rejoins: u64,
    /// Number of rounds delivered since the process started. `delivered_since_heal` is the number of those delivered
    /// since the faults ended.
    pub(super) delivered: u32,
    pub(super) delivered_since_heal: u32,
    /// Whether a new process of this worker will be started.
    pub(super) will_start: bool,
    /// Time at which the last process ended.
    pub(super) ended_at: Instant,
}

/// Actions of a worker node that the report counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) delivered: u64,
    pub(super) rejoins: u64,
    pub(super) repeated: u64,
    pub(super) poisoned: u64,
}

impl WorkerNode {
    pub(super) fn new(index: usize, switch: usize) -> Self {
        Self {
            process: Process::default(),
            worker: None,
            switch,
            index,
            life: 0,
            udp_port: 0,
            begin_at: None,
            gradient: 0,
            was_refused: false,
            rejoins: 0,
            delivered: 0,
            delivered_since_heal: 0,
            will_start: false,
            ended_at: Instant::default(),
        }
    }

    pub(super) fn start(&mut self, now: Instant, life: usize, udp_port: u16, options: Options) {
        self.process.kill();
        self.worker = Some(Worker::new(options, self.process.clock(now)));
        (self.life, self.udp_port) = (life, udp_port);
        (self.begin_at, self.gradient, self.was_refused, self.rejoins) = (None, 0, false, 0);
        (self.delivered, self.delivered_since_heal) = (0, 0);
    }

    /// Ends the process if it is running.
    pub(super) fn crash(&mut self, now: Instant) {
        if self.worker.take().is_some() {
            self.process.kill();
            self.ended_at = now;
        }
    }

    /// Returns the number of the current gradient.
    pub(super) fn gradient(&self) -> u64 {
        self.gradient
    }

    pub(super) fn address(&self) -> SocketAddrV4 {
        worker_address(self.index, self.udp_port)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let worker = self.worker.as_ref()?.poll_timeout();
        worker.into_iter().chain(self.begin_at).min()
    }

    pub(super) fn request(&mut self, now: Instant, request: Request) {
        let clock = self.process.clock(now);
        if let Some(worker) = &mut self.worker {
            worker.request(clock, request);
            if request == Request::Leave {
                self.begin_at = None;
            }
        }
    }

    pub(super) fn handle_datagrams(
        &mut self,
        now: Instant,
        path: Path,
        class: Class,
        payload: &[u8],
        stride: usize,
    ) {
        let clock = self.process.clock(now);
        if let Some(worker) = &mut self.worker {
            worker.handle_datagrams(clock, path, class, payload, stride);
        }
    }

    /// Returns the group that the process is subscribed to, if any.
    pub(super) fn group(&self) -> Option<SocketAddrV4> {
        self.worker.as_ref().and_then(Worker::group)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, training: &Training, witness: &Witness) {
        let clock = self.process.clock(now);
        let Some(worker) = &mut self.worker else { return };
        worker.handle_timeout(clock);
        if self.begin_at.is_none_or(|begin_at| clock < begin_at) {
            return;
        }
        self.begin_at = None;
        let gradient = worker.contribution_mut();
        witness.fill(self.life, self.gradient, gradient);
        if training.poisons(self.life, self.gradient) && !self.was_refused {
            let at = self.gradient as usize % gradient.len();
            gradient[at] = f32::NAN;
        }
        worker.begin_round(clock);
    }

    /// Lets the training loop react to the outcome of its worker.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        training: &Training,
        checker: &mut Checker,
    ) -> Result<Progress, Violation> {
        let clock = self.process.clock(now);
        let mut progress = Progress::default();
        while let Some(outcome) = self.worker.as_mut().and_then(Worker::poll_outcome) {
            match outcome {
                Outcome::Joined => self.begin_at = Some(clock),
                Outcome::Finished(finished) => {
                    self.check(finished.round, training, checker)?;
                    progress.delivered += 1;
                    self.delivered += 1;
                    self.delivered_since_heal += 1;
                    let goes_on = training.rounds.is_none_or(|rounds| self.delivered < rounds);
                    let compute = training.compute_time(self.life, self.gradient);
                    self.begin_at = goes_on.then(|| clock.plus(compute));
                    self.take_next_gradient();
                }
                Outcome::Failed(failure) => {
                    progress.repeated += 1;
                    self.begin_at = Some(clock.plus(self.react(failure, training, checker)?));
                    progress.poisoned += u64::from(self.was_refused);
                }
                Outcome::Refused(status) => {
                    Self::tolerate(status, training)?;
                    self.begin_at = Some(clock.plus(JOIN_PATIENCE));
                }
                Outcome::Left => self.crash(now),
            }
        }
        let rejoins = self.worker.as_ref().map_or(self.rejoins, Worker::rejoins);
        progress.rejoins = rejoins - self.rejoins;
        self.rejoins = rejoins;
        Ok(progress)
    }

    fn take_next_gradient(&mut self) {
        self.gradient += 1;
        self.was_refused = false;
    }

    /// Returns the time to wait before the worker repeats the round. The worker keeps its gradient unless the other
    /// members have completed rounds without this worker.
    fn react(
        &mut self,
        failure: Failure,
        training: &Training,
        checker: &mut Checker,
    ) -> Result<Duration, Violation> {
        match failure {
            Failure::Halted => Ok(HALT_PATIENCE),
            Failure::StaleRound(_) => {
                let boot = self.worker.as_ref().map_or(0, Worker::boot);
                checker.missed(self.life, boot, training.waits_for_all)?;
                self.take_next_gradient();
                Ok(Duration::ZERO)
            }
            Failure::Missed(_) => {
                // The sum belongs to another run of the switch, or was completed while the worker was not a member.
                checker.missed(self.life, 0, false)?;
                self.take_next_gradient();
                Ok(Duration::ZERO)
            }
            Failure::Refused(Status::NonFinite) if training.poison_one_in > 0 => {
                self.was_refused = true;
                Ok(Duration::ZERO)
            }
            Failure::JoinRefused(status, _) => {
                Self::tolerate(status, training)?;
                Ok(JOIN_PATIENCE)
            }
            _ if training.excuses_refusals => Ok(HALT_PATIENCE),
            Failure::Refused(_) | Failure::Forgotten => {
                violated(Rule::Refusal, format!("life {} failed: {failure:?}", self.life))
            }
        }
    }

    /// Accepts JobFull, which may occur until the lease of a dead member expires, and any refusal that undetected
    /// corruption may cause.
    fn tolerate(status: Status, training: &Training) -> Result<(), Violation> {
        if status == Status::JobFull || training.excuses_refusals {
            return Ok(());
        }
        violated(Rule::Refusal, format!("a Join was refused: {}", status.name()))
    }

    fn check(&self, round: Round, training: &Training, checker: &mut Checker) -> Result<(), Violation> {
        let Some(worker) = &self.worker else { return Ok(()) };
        let (vector, contributions) = worker.sum();
        let waits_for_all = training.waits_for_all;
        let given = Delivered { boot: worker.boot(), round, vector, contributions, waits_for_all };
        checker.delivered(self.life, &given)
    }
}

impl Training {
    /// Returns the time to compute a gradient, between 0.5 and 1.5 times the mean.
    fn compute_time(&self, life: usize, gradient: u64) -> Duration {
        let share = mix(gradient << 8 | life as u64) % 1024;
        self.compute / 2 + self.compute * share as u32 / 1024
    }

    fn poisons(&self, life: usize, gradient: u64) -> bool {
        self.poison_one_in > 0 && mix(gradient << 16 | life as u64).is_multiple_of(self.poison_one_in)
    }
}
