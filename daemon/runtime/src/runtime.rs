//! The loop between the ports and the core: in one thread, it waits for packets, receives them, passes them to the
//! core, and sends the core's packets.

use std::io;
use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch_protocol::wire::Class;
use iswitch_protocol::{Instant, Label, Round};
use iswitch_socket::{PollSet, Spin};

use crate::card::CardDriver;
use crate::clock::MonotonicClock;
use crate::flight::JobFlight;
use crate::handle::{Command, Inquiries, PortCommand};
pub use crate::handle::{Handle, MakePort};
use crate::port::{GroupReach, Port};
use crate::snapshot::{PortSnapshot, Snapshot};
use crate::stalls::Stalls;
use iswitch_switch::{Config, Event, GroupPorts, Keys, PortId, Report, Switch};

/// Maximum number of receive calls on one port before the next port gets its turn.
const RECEIVES_PER_TURN: usize = 64;
/// Default time to poll for packets before blocking. It is longer than the pause between two packets of a round, and
/// short enough to leave the CPU core to other processes between rounds.
pub const DEFAULT_SPIN: Duration = Duration::from_micros(50);
/// Maximum number of consecutive turns in which the loop does not check for requests from other threads because packets
/// keep arriving.
const TURNS_WITHOUT_POLL: u32 = 64;
/// Interval at which ports are maintained, and drops and faults are logged.
pub const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of events logged per maintenance interval. Without a limit, anyone who can send packets to the
/// switch could fill the disk.
const EVENTS_PER_INTERVAL: u32 = 100;

/// Callback for a stalled job, with the job's flight records.
type OnStall = Box<dyn FnMut(&Event, JobFlight) + Send>;

/// Switch with its ports, ready to run.
pub struct Runtime {
    switch: Switch,
    boot: u64,
    /// Ports by [`PortId`]; `None` for a port that has been removed.
    ports: Vec<Option<Box<dyn Port>>>,
    clock: MonotonicClock,
    spin: Spin,
    poll: PollSet,
    inquiries: Inquiries,
    next_maintenance: Instant,
    /// Callback that runs once per maintenance interval.
    heartbeat: Option<Box<dyn FnMut() + Send>>,
    /// Callback that receives the event that reveals a stall, and the job's flight records.
    on_stall: Option<OnStall>,
    stalls: Stalls,
    events_left: u32,
    events_muted: u64,
    /// Card that sums the rounds, if there is one.
    card: Option<CardDriver>,
}

impl Runtime {
    /// Returns a runtime whose switch serves `ports`, and a handle to the runtime. The [`PortId`] of a port is its
    /// index in `ports`.
    ///
    /// The size of the smallest receive buffer among the ports replaces `config.recv_buffer_bytes`. Before the loop
    /// blocks, it polls for packets for up to `spin`, as long as that pays off; see [`Spin`].
    pub fn new(config: Config, ports: Vec<Box<dyn Port>>, spin: Duration) -> io::Result<(Self, Handle)> {
        Self::with_keys(config, Keys::default(), ports, spin)
    }

    /// Returns a runtime like [`Self::new`], whose switch also has the keys of jobs.
    pub fn with_keys(
        mut config: Config,
        keys: Keys,
        ports: Vec<Box<dyn Port>>,
        spin: Duration,
    ) -> io::Result<(Self, Handle)> {
        if let Some(bytes) = ports.iter().map(|port| port.recv_buffer_bytes()).min() {
            config.recv_buffer_bytes = bytes;
        }
        let ports: Vec<_> = ports.into_iter().map(Some).collect();
        let (inquiries, handle) = Inquiries::new()?;
        let mut switch = Switch::with_keys(config, keys);
        switch.set_group_ports(&group_ports(&ports));
        let runtime = Self {
            switch,
            boot: config.boot,
            ports,
            clock: MonotonicClock::start(),
            spin: Spin::new(spin),
            poll: PollSet::new(),
            inquiries,
            next_maintenance: Instant::default(),
            heartbeat: None,
            on_stall: None,
            stalls: Stalls::new(),
            events_left: EVENTS_PER_INTERVAL,
            events_muted: 0,
            card: None,
        };
        Ok((runtime, handle))
    }

    /// Makes a card sum the rounds of one job.
    pub fn with_card(&mut self, card: CardDriver) {
        self.card = Some(card);
    }

    /// Sets a callback that runs about once a second as long as the loop makes progress.
    pub fn on_heartbeat(&mut self, heartbeat: impl FnMut() + Send + 'static) {
        self.heartbeat = Some(Box::new(heartbeat));
    }

    /// Sets a callback that receives the flight records of a job when the job stalls; see [`Event::is_stall`].
    pub fn on_stall(&mut self, dump: impl FnMut(&Event, JobFlight) + Send + 'static) {
        self.on_stall = Some(Box::new(dump));
    }

    /// Runs until [`Handle::stop`] is called or every handle is dropped. Returns the final state.
    ///
    /// # Errors
    /// Fails if waiting fails. Errors of a port are counted and logged instead.
    pub fn run(mut self) -> io::Result<Snapshot> {
        let mut last_packet = Instant::default();
        let mut turns_since_poll = 0;
        loop {
            let now = self.clock.now();
            if self.next_maintenance <= now {
                self.maintain(now);
            }
            let spins = self.spin.goes_on(now.since(last_packet));
            // While spinning, try all ports directly: asking first which of them are ready costs another system call.
            let tries_all = spins && turns_since_poll < TURNS_WITHOUT_POLL;
            turns_since_poll = if tries_all { turns_since_poll + 1 } else { 0 };
            if !tries_all {
                let timeout = if spins { Duration::ZERO } else { self.until_deadline(now) };
                if self.wait(timeout)? && self.is_woken() && self.inquiries.take() {
                    self.maintain(self.clock.now());
                    return snapshot(&self.switch, self.boot, &self.ports, self.clock, self.card.as_mut());
                }
            }
            let begin = self.clock.now();
            if self.receive(tries_all)? {
                self.spin.note(begin.since(last_packet));
                last_packet = self.clock.now();
            } else if tries_all {
                // The processes that send the next packet may be waiting for this CPU core.
                std::thread::yield_now();
            }
            let now = self.clock.now();
            if self.switch.poll_timeout().is_some_and(|deadline| deadline <= now) {
                self.switch.handle_timeout(now);
                self.settle(now)?;
            }
            if self.inquiries.due().is_some_and(|due| due <= now) {
                self.answer()?;
            }
            self.log_events();
        }
    }

    fn until_deadline(&self, now: Instant) -> Duration {
        let deadlines = self.switch.poll_timeout().into_iter().chain(self.inquiries.due());
        deadlines.fold(self.next_maintenance, Instant::min).since(now)
    }

    /// Waits for packets and questions. Returns whether anything is ready.
    fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        self.poll.clear();
        for port in &self.ports {
            match port {
                Some(port) => self.poll.push(port.as_fd()),
                None => self.poll.push_nothing(),
            };
        }
        self.poll.push(self.inquiries.as_fd());
        self.poll.wait(Some(timeout))
    }

    fn is_woken(&self) -> bool {
        self.poll.is_ready(self.ports.len())
    }

    /// Carries out all pending commands, then answers all pending questions.
    fn answer(&mut self) -> io::Result<()> {
        while let Some(command) = self.inquiries.next_command() {
            // A failed send is ignored: the caller may have given up.
            match command {
                Command::Order(order, outcome) => {
                    let _ = outcome.try_send(self.switch.obey(self.clock.now(), order));
                }
                Command::Port(command, outcome) => {
                    let _ = outcome.try_send(self.change_port(command));
                }
            }
            self.settle(self.clock.now())?;
        }
        let Self { inquiries, switch, boot, ports, clock, card, .. } = self;
        inquiries.answer(
            || clock.now(),
            || snapshot(switch, *boot, ports, *clock, card.as_mut()),
            || JobFlight::all(switch, *boot, clock.now()),
        )
    }

    /// Brings the card into step with the core, and sends everything that the core has queued.
    fn send_queued(&mut self) -> io::Result<()> {
        if let Some(card) = &mut self.card {
            card.sync(&mut self.switch).map_err(io::Error::other)?;
        }
        transmit(&mut self.switch, &mut self.ports, self.card.as_ref());
        Ok(())
    }

    /// Works like [`Self::send_queued`], and then lets the card process its frames.
    fn settle(&mut self, now: Instant) -> io::Result<()> {
        self.send_queued()?;
        match &mut self.card {
            Some(card) => card.turn(now, &mut self.switch, &mut self.ports).map_err(io::Error::other),
            None => Ok(()),
        }
    }

    /// Carries out a command about a port. Returns the number of members that reach the switch through the port; 0 if
    /// the port is new or unknown.
    fn change_port(&mut self, command: PortCommand) -> usize {
        let find = |ports: &[Option<Box<dyn Port>>], name: &str| {
            ports.iter().position(|port| port.as_ref().is_some_and(|port| port.name() == name))
        };
        match command {
            PortCommand::Add(make) => {
                let at = self.ports.iter().position(Option::is_none).unwrap_or(self.ports.len());
                if at == self.ports.len() {
                    self.ports.push(None);
                }
                self.ports[at] = Some(make(PortId(at as u8)));
            }
            PortCommand::CountMembers(name) => {
                return find(&self.ports, &name).map_or(0, |at| self.switch.members_on(PortId(at as u8)));
            }
            PortCommand::Remove(name) => {
                let Some(at) = find(&self.ports, &name) else { return 0 };
                self.ports[at] = None;
            }
        }
        self.switch.set_group_ports(&group_ports(&self.ports));
        0
    }

    /// Receives from each port, or, if `from_all` is false, only from those that are known to be ready. Returns whether
    /// anything arrived.
    fn receive(&mut self, from_all: bool) -> io::Result<bool> {
        let mut any = false;
        for index in 0..self.ports.len() {
            if !from_all && !self.poll.is_ready(index) {
                continue;
            }
            for _ in 0..RECEIVES_PER_TURN {
                let Some(arrival) = self.ports[index].as_mut().and_then(|port| port.recv()) else { break };
                any = true;
                let now = self.clock.now();
                match (arrival, &mut self.card) {
                    (Ok(datagrams), Some(card)) if card.serves(datagrams.from.port) => {
                        card.take(&datagrams.from, datagrams.class, datagrams.payload, datagrams.stride);
                        continue;
                    }
                    (Ok(datagrams), _) => self.switch.handle_datagrams(
                        now,
                        &datagrams.from,
                        datagrams.class,
                        datagrams.payload,
                        datagrams.stride,
                    ),
                    (Err(error), _) => self.switch.handle_invalid(now, error),
                }
                self.send_queued()?;
            }
        }
        if any && let Some(card) = &mut self.card {
            card.turn(self.clock.now(), &mut self.switch, &mut self.ports).map_err(io::Error::other)?;
        }
        Ok(any)
    }

    fn log_events(&mut self) {
        while let Some(report) = self.switch.poll_report() {
            self.dump_if_stall(&report.event);
            if self.events_left == 0 {
                self.events_muted += 1;
                continue;
            }
            self.events_left -= 1;
            log(&report);
        }
    }

    fn dump_if_stall(&mut self, event: &Event) {
        let Some(dump) = &mut self.on_stall else { return };
        let now = self.clock.now();
        let Some(job) = self.stalls.admit(now, event) else { return };
        if let Some(flight) = JobFlight::of(&self.switch, self.boot, now, job) {
            dump(event, flight);
        }
    }

    fn maintain(&mut self, now: Instant) {
        for port in self.ports.iter_mut().flatten() {
            port.maintain();
        }
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat();
        }
        if self.events_muted > 0 {
            tracing::warn!(count = self.events_muted, "events not logged because of the rate limit");
        }
        self.events_left = EVENTS_PER_INTERVAL;
        self.events_muted = 0;
        self.stalls.refill();
        self.next_maintenance = now.plus(MAINTENANCE_INTERVAL);
    }
}

/// Logs an event as a human-readable message with machine-readable fields.
fn log(report: &Report) {
    let Report { event, name: stated } = report;
    let (job_name, owner, host) = (known(&stated.job), known(&stated.owner), known(&stated.host));
    let rank = stated.rank;
    let (name, job, member, reason) = (event.name(), event.job(), event.member(), event.reason());
    let (round, address) = (event.round().map(Round::get), event.address().map(tracing::field::display));
    let (limit, value) = event.exceeded().map(|it| (it.limit.name(), it.value)).unzip();
    // A field that is `None` is not logged.
    macro_rules! log_at {
        ($level:ident) => {
            tracing::$level!(
                event = name,
                job,
                job_name,
                owner,
                member,
                rank,
                host,
                address,
                round,
                reason,
                limit,
                value,
                "{report}"
            )
        };
    }
    match event {
        Event::JoinRefused { .. }
        | Event::Slow { .. }
        | Event::Recovered { .. }
        | Event::EventsLost { .. }
        | Event::Diverged { .. }
        | Event::ParentLost { .. }
        | Event::ParentRefused { .. }
        | Event::JobForgotten { .. }
        | Event::JobInterrupted { .. }
        | Event::GaveWay { .. } => log_at!(warn),
        _ => log_at!(info),
    }
}

/// Returns the text of a label for a field of the log, or `None` if it is empty.
fn known<const N: usize>(label: &Label<N>) -> Option<&str> {
    (!label.is_empty()).then(|| label.as_str())
}

/// Returns the ports through which the switch sends to groups. If one port of a bridge sends a packet to a group, the
/// packet reaches the hosts behind all ports of the bridge, so only the first of these ports sends.
fn group_ports(ports: &[Option<Box<dyn Port>>]) -> GroupPorts {
    let reach =
        |port: &Option<Box<dyn Port>>| port.as_ref().map_or(GroupReach::Nowhere, |port| port.group_reach());
    let reaches: Vec<_> = ports.iter().map(reach).collect();
    let mut groups = GroupPorts::NONE;
    for (at, reach) in reaches.iter().enumerate() {
        let id = PortId(at as u8);
        let through = match reach {
            GroupReach::Nowhere => None,
            GroupReach::Port => Some(id),
            GroupReach::Bridge(_) => {
                reaches.iter().position(|other| other == reach).map(|first| PortId(first as u8))
            }
        };
        groups = groups.with(id, through);
    }
    groups
}

/// Returns the state of the switch, its card and its ports.
///
/// # Errors
/// Fails if the card does.
fn snapshot(
    switch: &Switch,
    boot: u64,
    ports: &[Option<Box<dyn Port>>],
    clock: MonotonicClock,
    card: Option<&mut CardDriver>,
) -> io::Result<Snapshot> {
    let now = clock.now();
    let card = card.map(|card| card.snapshot(now)).transpose().map_err(io::Error::other)?;
    let ports = ports.iter().flatten().map(|port| PortSnapshot::of(port.as_ref())).collect();
    Ok(Snapshot::of(switch, boot, Duration::from_nanos(now.as_nanos()), ports, card))
}

/// Sends everything that the core has queued, except the results that a card has already sent to the group of its job.
pub(crate) fn transmit(switch: &mut Switch, ports: &mut [Option<Box<dyn Port>>], card: Option<&CardDriver>) {
    let is_sent_by_card = |to: SocketAddrV4| card.is_some_and(|card| card.sends_to(to));
    while let Some(transmit) = switch.poll_transmit() {
        for to in transmit.recipients() {
            if transmit.class == Class::Data && is_sent_by_card(to.peer) {
                continue;
            }
            if let Some(Some(port)) = ports.get_mut(usize::from(to.port.0)) {
                port.send(to, transmit.class, transmit.payload, transmit.stride);
            }
        }
    }
}
