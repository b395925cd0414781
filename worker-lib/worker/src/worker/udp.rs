//! The blocking worker, which drives the protocol over a UDP socket.

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use iswitch_protocol::wire::ControlBody;
use iswitch_protocol::wire::control::RangeRepr;
use iswitch_protocol::{ElementTypes, Round as WireRound};

use super::failover::{self, Itinerary};
use super::heartbeat::Heartbeat;
use super::join::{JoinError, JoinOptions, Timeouts};
use super::lane::Task;
use super::link::Link;
use super::outcome::forgotten_is_done;
use super::part::Part;
use super::parting::{self, Division};
use super::parts::{Agreement, Parts};
use super::protocol::{Finished, Membership, WorkerCounters};
use super::query::Query;
use super::state::{ReadyPeer, StateServer};
use crate::aggregate::{AggregateError, AggregatorStats, GradientAggregator, Round, check_finite, check_len};

/// Maximum number of times that a query about a job is repeated with a different division of the vector.
const QUERIES_ADAPTED: u32 = 3;

/// A worker that has joined a job.
///
/// A separate thread keeps the lease alive while the worker computes. When dropped, the worker leaves the job.
///
/// If the switch runs several threads (`iswitchd --threads`), each of them sums a part of a long vector. The worker
/// learns the number of parts when it joins. The calling thread drives the parts. If the machine has spare cores,
/// further threads drive some of the parts for the duration of a call ([`JoinOptions::threads`]).
///
/// If there are [standbys](JoinOptions::standbys) and the switch fails, the worker moves to the next switch and repeats
/// the round there. It thereby misses no sum, and the caller notices only the delay.
///
/// ```no_run
/// use iswitch::{GradientAggregator, JoinOptions, Worker};
///
/// let mut worker = Worker::join(JoinOptions::new("10.9.0.254:7711".parse()?, 4, 10_119))?;
/// let mut gradient = vec![0.0; 10_119];
/// let round = worker.all_reduce(&mut gradient)?;
/// println!("round {}: sum of {} gradients", round.number, round.contributors);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Worker {
    parts: Parts,
    division: Division,
    /// The whole sum (`[gradient_len]`) if there are several parts.
    sum: Vec<f32>,
    /// Server from which newcomers fetch the learner's state, if this worker shares it.
    state: Option<StateServer>,
    leaves_on_drop: bool,
    itinerary: Itinerary,
    heartbeat: Heartbeat,
}

impl Worker {
    /// Joins a job and waits until all its workers have joined.
    pub fn join(options: JoinOptions) -> Result<Self, JoinError> {
        Self::join_while(options, &mut || true)
    }

    /// Works like [`Self::join`], but waits only as long as `keep_waiting` returns true. `keep_waiting` is called at
    /// least every half second, and when a signal arrives.
    ///
    /// # Errors
    /// Returns the errors of [`Self::join`], and [`JoinError::Interrupted`] if `keep_waiting` returns false.
    #[expect(clippy::needless_pass_by_value, reason = "as in the other functions that join")]
    pub fn join_while(
        options: JoinOptions,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self, JoinError> {
        let (mut worker, itinerary) = failover::join_at_any(&options, |options, stay| {
            let mut link = Link::open(&options)?;
            let division = parting::discover(&mut link, options, keep_waiting)?.staying(stay);
            Self::join_by(division, link, keep_waiting)
        })?;
        worker.follow(&options, itinerary);
        Ok(worker)
    }

    /// Joins the job at each of several switches, each of which sums a part of the vector.
    pub(super) fn join_at(options: &JoinOptions, switches: &[SocketAddrV4]) -> Result<Self, JoinError> {
        let division = Division::among_switches(options, switches);
        let link = Link::open(&division.options_of(0))?;
        let heartbeat = Heartbeat::start()?;
        let joined = division.join_all(link, &heartbeat, &mut || true)?;
        Ok(Self::new(joined, None, heartbeat))
    }

    /// Works like [`Self::join`]. If the job has already begun, also fetches the learner state of another worker: the
    /// state that the other worker passed to [`Self::publish_state`] before the round at which this worker starts.
    ///
    /// A program whose [`Worker`] has missed rounds must drop that worker and then call this function as well.
    ///
    /// If there are [standbys](JoinOptions::standbys), no state can be fetched from a running job: a worker that joins
    /// such a job interrupts the round before which the other workers would publish their state.
    pub fn join_with_state(mut options: JoinOptions) -> Result<(Self, Option<Vec<u8>>), JoinError> {
        options.shares_state = true;
        let ((mut worker, state), itinerary) = failover::join_at_any(&options, Self::join_at_one_with_state)?;
        worker.follow(&options, itinerary);
        Ok((worker, state))
    }

    /// Works like [`Self::join_with_state`], but tries only the switch `options.switch`.
    fn join_at_one_with_state(
        options: JoinOptions,
        stay: Option<Duration>,
    ) -> Result<(Self, Option<Vec<u8>>), JoinError> {
        let mut link = Link::open(&options)?;
        let mut division = parting::discover(&mut link, options, &mut || true)?.staying(stay);
        let mut query = query_peer(&mut link, &division);
        for _ in 0..QUERIES_ADAPTED {
            if let Err(error) = &query
                && let Some(adapted) = parting::adapt(&division, &mut link, error, &mut || true)?
            {
                division = adapted;
                query = query_peer(&mut link, &division);
            }
        }
        let Some(peer) = division.options().peer.or(query?) else {
            return Ok((Self::join_by(division, link, &mut || true)?, None));
        };
        let ready = ReadyPeer::prepare(peer, division.options().job)?;
        let worker = Self::join_by(division, link, &mut || true)?;
        let state = ready.fetch(worker.parts.round().get())?;
        Ok((worker, Some(state)))
    }

    fn join_by(
        division: Division,
        link: Link,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Self, JoinError> {
        let options = division.options();
        // Other workers may request the state as soon as the switch names this worker.
        let state =
            options.shares_state.then(|| StateServer::start(link.address()?, options.job)).transpose()?;
        // A separate thread sends the heartbeats, because the caller may compute for a long time between rounds.
        let heartbeat = Heartbeat::start()?;
        let joined = parting::join(division, link, &heartbeat, keep_waiting)?;
        Ok(Self::new(joined, state, heartbeat))
    }

    fn new((division, parts): (Division, Parts), state: Option<StateServer>, heartbeat: Heartbeat) -> Self {
        let sum = if division.is_divided() {
            vec![0.0; division.options().gradient_len as usize]
        } else {
            Vec::new()
        };
        let options = division.options();
        let itinerary = Itinerary::new(options.switch, &[], options.failover_timeout);
        Self { parts, division, sum, state, leaves_on_drop: true, itinerary, heartbeat }
    }

    /// Adopts the list of switches, at one of which the worker has joined, and the timeouts in the options.
    fn follow(&mut self, options: &JoinOptions, itinerary: Itinerary) {
        self.division.set_timeouts(options.timeouts());
        self.itinerary = itinerary;
    }

    /// Returns the address of the switch that the worker uses at present.
    pub fn switch(&self) -> SocketAddrV4 {
        self.division.options().switch
    }

    /// Moves to the next switch, where the worker resumes with the sums that it has. If there is no route to any other
    /// switch, the worker stays.
    fn move_on(&mut self) -> io::Result<()> {
        let from = self.switch();
        let Some(to) = self.itinerary.advance_along_route(*self.division.options().local.ip()) else {
            self.parts.iter_mut().for_each(Part::stay);
            return Ok(());
        };
        tracing::warn!(%from, %to, "moving to the next switch");
        self.division.move_to(to);
        let instance = self.division.instance();
        for (at, part) in self.parts.iter_mut().enumerate() {
            part.move_to(&self.division.options_of(at), instance)?;
        }
        let address = self.parts.first().link.address()?;
        if self.state.as_ref().is_some_and(|server| server.address() != SocketAddr::V4(address)) {
            // The next switch gives workers that join late this worker's new address.
            self.state = Some(StateServer::start(address, self.division.options().job)?);
        }
        Ok(())
    }

    /// Publishes the learner's state before a round. A worker that shares its state must call this function before each
    /// round. If another worker is about to join, calls `state`, which must return everything that a replica of the
    /// learner needs before this round. The result must not be empty.
    ///
    /// If no worker is about to join, the call costs practically nothing.
    pub fn publish_state(&self, state: impl FnOnce() -> Vec<u8>) {
        if let Some(server) = &self.state {
            server.publish(self.parts.round().get(), state);
        }
    }

    /// Returns the membership that the switch granted when it last admitted the worker. If the vector is divided, this
    /// is the membership in the job of the first part.
    pub fn membership(&self) -> &Membership {
        self.parts.first().session.membership().expect("a worker is created only after it has joined")
    }

    /// Returns the number of floats in each packet. If the switch has a parent, this number may be smaller than the
    /// default for 16-bit elements.
    pub fn segment_floats(&self) -> u16 {
        self.parts.first().session.layout().segment_floats()
    }

    /// Returns the number of parts into which the vector is divided. A separate thread of the switch sums each part.
    pub fn parts(&self) -> usize {
        self.parts.count()
    }

    /// Returns the protocol's counters. A round counts once all its parts are finished.
    pub fn counters(&self) -> WorkerCounters {
        self.parts.counters()
    }

    /// Returns the number of times that the switch has forgotten this worker and readmitted it. If the vector is
    /// divided, the readmissions to each part are counted separately, because they may occur in different rounds.
    pub fn rejoins(&self) -> u64 {
        self.parts.iter().map(Part::rejoins).sum()
    }

    /// Pins the threshold H of the job, starting with the next round. If `threshold` is zero, H again follows the
    /// number of members.
    pub fn set_threshold(&mut self, threshold: u16) -> Result<(), AggregateError> {
        self.request(|_| ControlBody::SetH { threshold })
    }

    /// Clears the job at the switch and ends a halt. Each worker rejoins with its next call: rounds in progress are
    /// repeated from the contributions, and a sum that only some workers have received is supplied to the others.
    ///
    /// # Errors
    /// Fails with [`AggregateError::SwitchLost`] if the switch does not answer.
    pub fn reset(&mut self) -> Result<(), AggregateError> {
        let boot = |part: &Part| part.session.membership().map_or(0, |membership| membership.boot);
        let reset =
            |part: &mut Part| forgotten_is_done(part.request(ControlBody::Reset { boot: boot(part) }));
        self.each(reset)
    }

    /// Suspends the job: the switch refuses contributions until a [`Self::reset`].
    pub fn halt(&mut self) -> Result<(), AggregateError> {
        self.request(|_| ControlBody::Halt)
    }

    /// Makes the switch end the summation of `count` segments of an open round, beginning with segment `first`, and
    /// send their results with the contributions received so far. Each part has separate round numbers; `round` is the
    /// number in the first part.
    pub fn force_broadcast(&mut self, round: u32, first: u32, count: u32) -> Result<(), AggregateError> {
        let own = self.parts.round();
        let size = usize::from(self.segment_floats());
        let ahead = WireRound::new(round).distance_from(own);
        self.each(|part| {
            let (segments, begin) = (part.session.layout().segment_count(), part.range().start / size);
            let begin = begin as u32;
            let (from, to) = (first.max(begin), first.saturating_add(count).min(begin + segments));
            if from >= to {
                return Ok(());
            }
            let round = part.session.round().plus(ahead);
            let range = RangeRepr { round, first: from - begin, count: to - from };
            part.request(ControlBody::FBcast(range))
        })
    }

    /// Leaves the job and waits for the switch to confirm.
    pub fn leave(mut self) -> Result<(), AggregateError> {
        self.each(|part| forgotten_is_done(part.request(ControlBody::Leave)))
    }

    /// Ends the worker without sending a Leave, as if its process had been killed. The switch expels it when its lease
    /// expires.
    pub fn abandon(mut self) {
        self.leaves_on_drop = false;
    }

    /// Sends a request to the switch of each part.
    fn request<'a>(&mut self, body: impl Fn(&Part) -> ControlBody<'a>) -> Result<(), AggregateError> {
        self.each(|part| {
            let body = body(part);
            part.request(body)
        })
    }

    /// Performs an action for all parts, even if it fails for one of them; returns the first error.
    fn each(
        &mut self,
        action: impl FnMut(&mut Part) -> Result<(), AggregateError>,
    ) -> Result<(), AggregateError> {
        self.parts.iter_mut().map(action).fold(Ok(()), Result::and)
    }

    /// Works like [`GradientAggregator::reduce`], but waits only as long as `keep_waiting` returns true. `keep_waiting`
    /// is called at least every quarter of a second, and when a signal arrives.
    ///
    /// # Errors
    /// Returns the errors of [`GradientAggregator::reduce`], and [`AggregateError::Interrupted`] if `keep_waiting`
    /// returns false.
    pub fn reduce_while(
        &mut self,
        contribution: &[f32],
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(Round, &[f32]), AggregateError> {
        self.check(contribution)?;
        let round = self.reduce_checked(contribution, keep_waiting)?;
        Ok((round, self.sum()))
    }

    fn check(&self, contribution: &[f32]) -> Result<(), AggregateError> {
        check_len(contribution, self.gradient_len())?;
        if !self.division.options().sends_non_finite {
            let elements = self.parts.first().session.layout().elements();
            check_finite(contribution, elements.contributions())?;
        }
        Ok(())
    }

    /// Sets the timeouts of all subsequent rounds, and of the attempts to rejoin that may precede them.
    pub(super) fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.division.set_timeouts(timeouts);
    }

    /// Sums a vector that the caller has already checked: it has the right length, and contains no NaN or infinity
    /// unless the options permit these. [`Self::copy_sum`] returns the sum.
    pub(super) fn reduce_checked(
        &mut self,
        contribution: &[f32],
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Round, AggregateError> {
        self.bring_together(keep_waiting)?;
        let begin = self.parts.first().link.now();
        self.parts.begin_round();
        loop {
            let (options, patience) = (self.division.options(), self.itinerary.patience());
            let outcome = self.parts.run_round(Task { options, contribution, begin, patience }, keep_waiting);
            let job = options.job;
            self.parts.iter_mut().for_each(|part| part.keep_alive(&self.heartbeat, job));
            if let Some(Finished { round, fewest, most }) = outcome? {
                self.itinerary.arrived();
                return Ok(Round { number: round.get(), contributors: fewest, uniform: fewest == most });
            }
            self.move_on()?;
            self.bring_together(keep_waiting)?;
            self.parts.begin_round_again();
        }
    }

    /// Brings all parts to the same vector, if the switches have readmitted this worker at different vectors.
    ///
    /// # Errors
    /// Fails with [`AggregateError::MissedRounds`] if the worker lacks sums; the error names the round at which all
    /// parts continue.
    fn bring_together(&mut self, keep_waiting: &mut dyn FnMut() -> bool) -> Result<(), AggregateError> {
        if !self.division.is_divided() {
            // If the vector is not divided, the round itself reports that the worker has missed rounds.
            return Ok(());
        }
        let has_missed = self.parts.take_missed();
        let agreement = self.parts.agree();
        if agreement == Agreement::Apart {
            self.division.align(&mut self.parts, keep_waiting).or_else(give_up_alignment)?;
        }
        if has_missed || agreement == Agreement::Apart {
            return Err(AggregateError::MissedRounds { next: self.parts.round().get() });
        }
        Ok(())
    }

    /// Returns the most recent sum.
    pub(super) fn sum(&mut self) -> &[f32] {
        if !self.division.is_divided() {
            return self.parts.first().session.sum();
        }
        self.parts.copy_sum(&mut self.sum);
        &self.sum
    }

    /// Copies the most recent sum, or a prefix of it.
    pub(super) fn copy_sum(&self, to: &mut [f32]) {
        self.parts.copy_sum(to);
    }

    /// Divides each segment of the most recent sum, or of a prefix of it, by the number of gradients that the segment
    /// contains.
    pub fn scale_segments(&self, vector: &mut [f32]) {
        self.parts.iter().for_each(|part| part.scale_segments(vector));
    }
}

/// Converts an error in aligning the parts to the error that the round reports. Returns `Ok` if the alignment only
/// timed out; the next call then tries again.
fn give_up_alignment(error: JoinError) -> Result<(), AggregateError> {
    Err(match error {
        JoinError::PartsApart { .. } => return Ok(()),
        JoinError::Interrupted => AggregateError::Interrupted,
        JoinError::Refused { status, expected, .. } => {
            AggregateError::Expelled { reason: status.reason(expected) }
        }
        JoinError::NoAnswer { switch, waited, .. } => {
            AggregateError::SwitchLost { switch: switch.into(), silent: waited }
        }
        JoinError::Io(error) => AggregateError::Io(error),
        _ => AggregateError::Expelled { reason: "not admitted to all parts" },
    })
}

fn query_peer(link: &mut Link, division: &Division) -> Result<Option<SocketAddrV4>, JoinError> {
    let is_part = division.is_divided();
    Query::new(link, &division.options_of(0)).peer(is_part, &mut || true)
}

impl GradientAggregator for Worker {
    fn name(&self) -> &'static str {
        "switch"
    }

    fn gradient_len(&self) -> usize {
        self.division.options().gradient_len as usize
    }

    fn element_types(&self) -> ElementTypes {
        self.parts.first().session.layout().elements()
    }

    fn reduce(&mut self, contribution: &[f32]) -> Result<(Round, &[f32]), AggregateError> {
        self.reduce_while(contribution, &mut || true)
    }

    fn all_reduce(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        self.check(vector)?;
        let round = self.reduce_checked(vector, &mut || true)?;
        self.copy_sum(vector);
        Ok(round)
    }

    fn all_reduce_mean(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        let round = self.all_reduce(vector)?;
        self.scale_segments(vector);
        Ok(round)
    }

    fn stats(&self) -> AggregatorStats {
        let counters = self.counters();
        AggregatorStats {
            rounds: counters.rounds,
            segments: counters.segments,
            retransmitted: counters.retransmitted,
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.leaves_on_drop {
            return;
        }
        self.parts.iter_mut().for_each(Part::leave_silently);
    }
}
