//! Attacks on a shared switch. Each attack continues at a fixed rate until it is stopped.

use std::collections::VecDeque;
use std::fmt;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use iswitch_protocol::limits::{MAX_MEMBERS, MAX_RANGE_SEGMENTS, MIN_KEY_LEN_BYTES};
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{ControlBody, JoinRepr, Mode};
use iswitch_protocol::{Key, Round};

use super::Target;
use super::member::{ALL, Member, first};
use crate::storm::{Kind, Storm};

/// Job of the attacker.
const JOB: u32 = 66;
/// Number of segments of a job that occupies nearly all memory of a daemon with default options. The next constant is
/// the number of floats in each segment.
const LARGE_SEGMENTS: u32 = 500_000;
const LARGE_SEGMENT_FLOATS: u16 = 60;
/// Number of floats in a segment whose data packet is 32 bytes long.
const SHORT_SEGMENT_FLOATS: u16 = 6;
/// Number of segments of the first asynchronous job that is tried. Whenever a job is refused, the number is halved; the
/// memory that remains is sufficient for other jobs.
const ASYNC_SEGMENTS: u32 = 1_000_000;
/// Number of segments of a job that requests all of them at once. The next constant is the number of floats in each
/// segment.
const HELP_SEGMENTS: u32 = MAX_RANGE_SEGMENTS;
const SEGMENT_FLOATS: u16 = 366;
/// Number of forged frames that are sent between two checks of the stop flag.
const FORGED_AT_ONCE: u64 = 1000;
/// Number of packets after which the attacker discards the answers that it has received.
const SENT_BETWEEN_DRAINS: u64 = 32;
/// Time between two bursts.
const TICK: Duration = Duration::from_millis(1);
/// Maximum number of connections to the daemon that the attacker keeps open. If it opens more, it closes the oldest
/// one.
const CONNECTIONS: usize = 49;
/// Time that a client of the daemon waits for a connection.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(3);

/// Attack by a tenant, a non-member or a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Attack {
    /// Joins from one member to a large job, each with a new instance number, so that each restarts the member.
    Rejoins,
    /// Short packets to a large asynchronous job. Each packet begins a new vector.
    AsyncVectors,
    /// Scrapes of the metrics while a large job waits for 63 members.
    Scrapes,
    /// Status queries to the control socket while a large job waits for 63 members.
    Questions,
    /// Requests for 1,024 results that the member has already received.
    Helps,
    /// Joins that are refused, while no process reads the daemon's log.
    Log,
    /// Joins from many forged addresses, sent once the victim aggregates.
    ForgedJoins,
    /// Joins from many forged addresses, sent before the victim joins, while the victim is still a non-member.
    ForgedJoinsFirst,
    /// Contributions to a large job, alternating with Resets of that job.
    Resets,
    /// FBcasts of 1,024 segments of a large job.
    #[strum(to_string = "fbcasts")]
    FBcasts,
}

impl Attack {
    /// Returns the name for the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the number of packets or requests per second.
    pub const fn rate(self) -> u64 {
        match self {
            Self::Rejoins => 500,
            Self::AsyncVectors => 3000,
            Self::Scrapes | Self::Questions => 49,
            Self::Log => 300,
            Self::ForgedJoins | Self::ForgedJoinsFirst => 20_000,
            Self::Helps | Self::Resets | Self::FBcasts => 1000,
        }
    }

    /// Returns whether the victim must aggregate before the attack begins.
    pub(super) const fn is_later(self) -> bool {
        matches!(self, Self::ForgedJoins)
    }

    /// Attacks until `stop` is set. Sends a message to `begin` once the attack is prepared. Returns the achieved rate,
    /// in packets or requests per second.
    pub(super) fn run(self, target: &Target, stop: &AtomicBool, begin: &Sender<()>) -> Result<f64, String> {
        let mut act: Box<dyn FnMut(u64)> = match self {
            Self::Rejoins => rejoins(target)?,
            Self::AsyncVectors => async_vectors(target)?,
            Self::Scrapes => scrapes(target)?,
            Self::Questions => questions(target)?,
            Self::Helps => helps(target)?,
            Self::Log => refused_joins(target)?,
            Self::Resets => resets(target)?,
            Self::FBcasts => fbcasts(target)?,
            Self::ForgedJoins | Self::ForgedJoinsFirst => return forge(self.rate(), stop, begin),
        };
        let _ = begin.send(());
        Ok(pace(self.rate(), stop, &mut act))
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}/s", self.name(), self.rate())
    }
}

/// Calls `act` with 0, 1, 2, ... at `rate` calls per second until `stop` is set. Returns the achieved number of calls
/// per second.
fn pace(rate: u64, stop: &AtomicBool, act: &mut dyn FnMut(u64)) -> f64 {
    let begin = Instant::now();
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        if done < (begin.elapsed().as_secs_f64() * rate as f64) as u64 {
            act(done);
            done += 1;
        } else {
            std::thread::sleep(TICK);
        }
    }
    done as f64 / begin.elapsed().as_secs_f64()
}

/// Returns a Join, with the given instance number, to a large job that waits for no other members.
fn large_join(instance: u32) -> JoinRepr {
    let gradient_len = LARGE_SEGMENTS * u32::from(LARGE_SEGMENT_FLOATS);
    JoinRepr { instance, ..JoinRepr::worker(gradient_len, LARGE_SEGMENT_FLOATS, 0) }
}

fn joined(target: &Target, join: JoinRepr) -> Result<(Member, Round), String> {
    let mut member = Member::open(target.switch, JOB)?;
    let round =
        member.join(join).map_err(|status| format!("the switch refused the attacker's Join: {status:?}"))?;
    Ok((member, round))
}

/// Discards received answers from time to time, because packets that arrive at a full receive buffer cost the kernel
/// more time.
fn drain_sometimes(member: &mut Member, number: u64) {
    if number.is_multiple_of(SENT_BETWEEN_DRAINS) {
        member.drain();
    }
}

type Act = Box<dyn FnMut(u64)>;

fn rejoins(target: &Target) -> Result<Act, String> {
    let (mut member, _) = joined(target, large_join(1))?;
    let (other, round) = joined(target, large_join(1))?;
    other.contribute(round, 0, LARGE_SEGMENT_FLOATS);
    Ok(Box::new(move |number| {
        // The closure owns `other`, so that the socket of the second member stays open.
        let _ = &other;
        // A Join that is refused or rate-limited has already cost the switch time.
        let _ = member.join(large_join(2 + number as u32));
        drain_sometimes(&mut member, number);
    }))
}

fn async_vectors(target: &Target) -> Result<Act, String> {
    let mut segments = ASYNC_SEGMENTS;
    let mut member = loop {
        let gradient_len = segments * u32::from(SHORT_SEGMENT_FLOATS);
        let join = JoinRepr::worker(gradient_len, SHORT_SEGMENT_FLOATS, 1);
        match joined(target, JoinRepr { mode: Mode::Asynchronous, instance: 1, ..join }) {
            Ok((member, _)) => break member,
            Err(error) if segments == 1 => return Err(error),
            // The job becomes as large as the memory allows.
            Err(_) => segments /= 2,
        }
    };
    Ok(Box::new(move |number| {
        member.contribute(Round::new(number as u32 + 1), 0, SHORT_SEGMENT_FLOATS);
        drain_sometimes(&mut member, number);
    }))
}

/// Returns the members of a large job, one of which has contributed.
fn waiting_members(target: &Target) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    let mut last = Round::default();
    for instance in 1..=MAX_MEMBERS as u32 {
        let (member, round) = joined(target, large_join(instance))?;
        members.push(member);
        last = round;
    }
    members[0].contribute(last, 0, LARGE_SEGMENT_FLOATS);
    Ok(members)
}

fn scrapes(target: &Target) -> Result<Act, String> {
    let (members, address) = (waiting_members(target)?, target.metrics);
    let mut open = VecDeque::new();
    Ok(Box::new(move |_| {
        let _ = &members;
        // A scrape that fails has already cost the daemon time.
        hold(&mut open, scrape(address));
    }))
}

fn scrape(address: SocketAddr) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, CLIENT_TIMEOUT)?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    Ok(stream)
}

/// Keeps a connection open, so that the next request does not wait for this answer. Closes the oldest connection if too
/// many are open.
fn hold<T>(open: &mut VecDeque<T>, connection: std::io::Result<T>) {
    open.extend(connection);
    if open.len() > CONNECTIONS {
        open.pop_front();
    }
}

fn questions(target: &Target) -> Result<Act, String> {
    let (members, path) = (waiting_members(target)?, target.control.clone());
    let mut open = VecDeque::new();
    Ok(Box::new(move |_| {
        let _ = &members;
        hold(&mut open, ask(&path));
    }))
}

fn ask(path: &Path) -> std::io::Result<UnixStream> {
    let mut stream = UnixStream::connect(path)?;
    stream.write_all(b"status\n")?;
    Ok(stream)
}

fn helps(target: &Target) -> Result<Act, String> {
    let gradient_len = HELP_SEGMENTS * u32::from(SEGMENT_FLOATS);
    let join = JoinRepr { instance: 1, ..JoinRepr::worker(gradient_len, SEGMENT_FLOATS, 1) };
    let (mut member, round) = joined(target, join)?;
    for index in 0..HELP_SEGMENTS {
        member.contribute(round, index, SEGMENT_FLOATS);
        drain_sometimes(&mut member, index.into());
    }
    Ok(Box::new(move |number| {
        let set = SegmentSetRepr::of(first(round, HELP_SEGMENTS), &ALL);
        member.control(ControlBody::Help(set));
        drain_sometimes(&mut member, number);
    }))
}

fn refused_joins(target: &Target) -> Result<Act, String> {
    let mut stranger = Member::open(target.switch, JOB)?;
    let key = Key::new(&[1; MIN_KEY_LEN_BYTES]).map_err(|error| error.to_string())?;
    Ok(Box::new(move |number| {
        // The job has no key, so a signed Join is refused and logged at once; others are answered with a challenge.
        stranger.signed_control(&key, ControlBody::Join(JoinRepr::worker(4, 4, 1)));
        drain_sometimes(&mut stranger, number);
    }))
}

fn resets(target: &Target) -> Result<Act, String> {
    let (mut member, mut round) = joined(target, large_join(1))?;
    Ok(Box::new(move |number| {
        if number.is_multiple_of(2) {
            member.contribute(round, 0, LARGE_SEGMENT_FLOATS);
        } else {
            member.control(ControlBody::RESET);
            // After a Reset, all members must join again.
            round = member.join(large_join(1)).unwrap_or(round);
        }
        drain_sometimes(&mut member, number);
    }))
}

fn fbcasts(target: &Target) -> Result<Act, String> {
    let (mut member, round) = joined(target, large_join(1))?;
    let (other, _) = joined(target, large_join(1))?;
    for index in 0..MAX_RANGE_SEGMENTS {
        member.contribute(round, index, LARGE_SEGMENT_FLOATS);
    }
    Ok(Box::new(move |number| {
        let _ = &other;
        member.control(ControlBody::FBcast(first(round, MAX_RANGE_SEGMENTS)));
        drain_sometimes(&mut member, number);
    }))
}

fn forge(rate: u64, stop: &AtomicBool, begin: &Sender<()>) -> Result<f64, String> {
    let failed = |error: std::io::Error| format!("cannot send frames: {error}");
    let mut storm = Storm::open(1).map_err(failed)?;
    let _ = begin.send(());
    let (start, mut sent) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        storm.send(Kind::Join, FORGED_AT_ONCE, rate).map_err(failed)?;
        sent += FORGED_AT_ONCE;
    }
    Ok(sent as f64 / start.elapsed().as_secs_f64())
}
