//! Environment in which a user-supplied agent routes the packets of a network: each decision concerns a packet that can
//! take more than one link, and the candidates are the links of the packet's switch.
//!
//! The order of the decisions is that of the Markov decision process ([`Decisions`](super::network::Decisions)); a
//! packet with a single idle link takes it without a decision. The cost of a slot is the number of packets in the
//! network after the arrivals, minus the lower bound on this number under any policy that sends packets in this order
//! ([`PooledBound`](super::bound::PooledBound)), divided by the number of links between two stages. The bound is the
//! same for all choices, so the sum of all costs ranks policies in the same order as the mean delay, but with less
//! variance.

use std::collections::BTreeMap;

use super::lockstep::Test;
use super::measure::{Measurement, measure};
use super::network::{Queues, Routing, Shape};
use super::policy::{Fill, Lane, Policy, PolicySpec};
use super::rates::{Arrivals, Rates};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::StudyError;
use iswitch_study::environment::{End, Environment, Figures, Outcome, check_choice, no_decision};

/// Names of the features of a link, given the packet that needs a link. Lengths are in packets; unless stated
/// otherwise, they are those of queues at the switch to which the link leads.
pub const FEATURES: [&str; 9] = [
    // 1 if the link is idle.
    "available",
    // Length of the queue of the packet's class after the arrivals of the slot.
    "queue",
    // Length of the same queue, including the packets that were assigned to it earlier in the slot.
    "queue_now",
    // 1 if a packet of the same queue leaves the network in the slot.
    "leaves",
    // Mean length of all queues, including the packets that were assigned to them earlier in the slot.
    "switch_now",
    // The same mean over the queues of the packet's class at all switches of the next stage.
    "class_now",
    // Number of packets of the same class that wait at the packet's own switch, including the packet itself.
    "waiting",
    // Share of the links of the packet's own switch that are idle.
    "idle",
    // 1 if the link leads to the last stage.
    "last_stage",
];
/// Names of the values in a candidate's details: the link, and the first three features after `available`.
const DETAILS: [&str; 4] = ["link", "queue", "queue_now", "leaves"];
/// Maximum of a feature; larger lengths are clamped.
const FEATURE_MAX: f32 = 1000.0;

/// Arrival rates of the episodes.
#[derive(Clone, Debug, PartialEq)]
pub enum RateSource {
    /// Rates that are drawn uniformly for each draw and then rescaled to this load.
    Drawn {
        /// Load, above 0 and below 1.
        load: f64,
    },
    /// The same rates in each draw; the draws then differ only in their arrivals.
    Fixed(Rates),
}

/// Network in which an agent chooses the link of each packet.
pub struct RoutingEnvironment {
    shape: Shape,
    rates: RateSource,
    slots: u64,
    fill: Fill,
    episode: Option<Episode>,
}

impl RoutingEnvironment {
    /// Creates the environment. An episode is `slots` slots long. `fill` is the rule that selects the link of a
    /// packet behind the head of a queue; it affects only the policies that treat such packets differently.
    ///
    /// # Errors
    /// Fails if a switch has only one link, if there are no slots, if the rates are for a network whose size differs
    /// from `shape`, or if the load is not above 0 and below 1.
    pub fn new(shape: Shape, rates: RateSource, slots: u64, fill: Fill) -> Result<Self, StudyError> {
        if shape.switches() < 2 {
            return Err(StudyError::field("switches", shape.switches(), "at least 2, for a choice of links"));
        }
        if slots == 0 {
            return Err(StudyError::field("slots", slots, "at least 1"));
        }
        match &rates {
            RateSource::Drawn { load } => drop(Rates::uniform(shape, *load, 0)?),
            RateSource::Fixed(rates) if rates.shape() != shape => {
                return Err(StudyError::field("size of the network", shape, rates.shape().to_string()));
            }
            RateSource::Fixed(_) => {}
        }
        Ok(Self { shape, rates, slots, fill, episode: None })
    }

    fn rates(&self, draw: u64) -> Result<Rates, StudyError> {
        match &self.rates {
            RateSource::Drawn { load } => Rates::uniform(self.shape, *load, draw),
            RateSource::Fixed(rates) => Ok(rates.clone()),
        }
    }

    fn open(&self) -> Option<&Episode> {
        self.episode.as_ref().filter(|episode| episode.is_open())
    }

    /// Returns the current episode.
    ///
    /// # Errors
    /// Fails if no episode has begun, or if it has ended.
    fn open_mut(&mut self) -> Result<&mut Episode, StudyError> {
        let has_begun = self.episode.is_some();
        let episode = self.episode.as_mut().filter(|episode| episode.is_open());
        episode.ok_or_else(|| no_decision(has_begun))
    }
}

impl Environment for RoutingEnvironment {
    fn features(&self) -> &'static [&'static str] {
        &FEATURES
    }

    fn bounds(&self) -> (f32, f32) {
        (0.0, FEATURE_MAX)
    }

    fn detail_names(&self) -> &'static [&'static str] {
        &DETAILS
    }

    fn candidates(&self) -> usize {
        self.shape.switches()
    }

    fn reset(&mut self, draw: u64) -> Result<(), StudyError> {
        let mut episode = Episode::new(self.rates(draw)?, draw, self.slots);
        if episode.seek() == End::Limit {
            let load = episode.rates.load();
            let expected = format!("a load that leads to a routing decision within {} slots", self.slots);
            return Err(StudyError::field("load", load, expected));
        }
        self.episode = Some(episode);
        Ok(())
    }

    fn is_valid(&self, candidate: usize) -> bool {
        self.open().is_some_and(|episode| episode.position(candidate).is_some())
    }

    fn observe(&self, rows: &mut [f32]) {
        let Some(episode) = self.episode.as_ref().filter(|episode| episode.has_packet) else { return };
        for link in episode.lane.idle() {
            let row = &mut rows[usize::from(*link) * FEATURES.len()..][..FEATURES.len()];
            for (value, feature) in row.iter_mut().zip(episode.features(*link)) {
                *value = (feature as f32).min(FEATURE_MAX);
            }
        }
    }

    fn details(&self) -> Vec<Option<Vec<f64>>> {
        let of = |link: usize| {
            let episode = self.open().filter(|episode| episode.position(link).is_some())?;
            let features = episode.features(link as u16);
            Some(vec![link as f64, features[1], features[2], features[3]])
        };
        (0..self.candidates()).map(of).collect()
    }

    fn choose(&mut self, candidate: usize) -> Result<Outcome, StudyError> {
        check_choice(self, self.episode.is_some(), candidate)?;
        let links = self.shape.links() as f64;
        let episode = self.open_mut()?;
        let position = episode.position(candidate).ok_or_else(|| no_decision(true))?;
        episode.lane.take(position);
        let before = episode.excess;
        let end = episode.seek();
        let cost = (episode.excess - before) as f64 / links;
        Ok(Outcome { reward: -cost, end })
    }

    fn results(&self) -> Option<Figures> {
        Some(figures(self.episode.as_ref()?.measured.as_ref()?))
    }

    fn rule_choice(&mut self, rule: &str) -> Result<usize, StudyError> {
        let (shape, fill) = (self.shape, self.fill);
        let episode = self.open_mut()?;
        if !episode.followers.contains_key(rule) {
            let policy = rule.parse::<PolicySpec>()?.build(shape, fill, episode.draw);
            let mut follower = Follower { policy, routing: Routing::idle(shape) };
            follower.route(&episode.start);
            episode.followers.insert(rule.to_owned(), follower);
        }
        let packet = episode.lane.decision();
        let routing = &episode.followers[rule].routing;
        let takes = |link: &&u16| {
            routing.class(packet.stage, packet.switch, usize::from(**link)) == Some(packet.class)
        };
        let link = episode.lane.idle().iter().find(takes).ok_or_else(|| {
            StudyError::field("rule", rule, "a rule that sends packets in the same order as the environment")
        })?;
        Ok(usize::from(*link))
    }

    fn run_rule(&self, rule: &str) -> Result<Figures, StudyError> {
        let episode = self.episode.as_ref().ok_or_else(|| no_decision(false))?;
        let mut policy = rule.parse::<PolicySpec>()?.build(self.shape, self.fill, episode.draw);
        let mut arrivals = arrivals(&episode.rates, episode.draw);
        let measured =
            measure(policy.as_mut(), &episode.rates, &mut arrivals, self.slots, &mut |_, _, _| {})?;
        Ok(figures(&measured))
    }
}

/// Returns the arrivals of a draw.
fn arrivals(rates: &Rates, draw: u64) -> Arrivals {
    Arrivals::new(rates, stream(draw, Purpose::Arrivals, 0))
}

fn figures(measured: &Measurement) -> Figures {
    vec![
        ("delay_slots", measured.delay),
        ("bound_delay_slots", measured.bound_delay),
        ("queued_packets", measured.queued),
        ("bound_queued_packets", measured.bound_queued),
        ("tracked_delay_slots", measured.tracked_delay),
        ("arrived_packets", measured.arrived as f64),
        ("left_packets", measured.left as f64),
    ]
}

/// Rule that routes the same slots as the agent.
struct Follower {
    policy: Box<dyn Policy>,
    /// Links that the rule assigns in the current slot.
    routing: Routing,
}

impl Follower {
    fn route(&mut self, start: &Queues) {
        self.routing.clear();
        self.policy.route(start, &mut self.routing);
    }
}

/// Episode with the arrival rates and the arrivals of one draw.
struct Episode {
    draw: u64,
    rates: Rates,
    test: Test,
    lane: Lane,
    /// Queues after the arrivals of the current slot.
    start: Queues,
    /// Number of slots that have begun.
    begun: u64,
    slots: u64,
    /// Number of packets in the network minus its lower bound, summed over the slots that have begun.
    excess: i128,
    /// Whether the lane has a packet that needs a link.
    has_packet: bool,
    followers: BTreeMap<String, Follower>,
    /// Results; present after the end of the last slot.
    measured: Option<Measurement>,
}

impl Episode {
    fn new(rates: Rates, draw: u64, slots: u64) -> Self {
        let shape = rates.shape();
        let mut episode = Self {
            draw,
            test: Test::new(shape, arrivals(&rates, draw)),
            lane: Lane::new(shape, stream(draw, Purpose::Actions, 0)),
            start: Queues::empty(shape),
            rates,
            begun: 0,
            slots,
            excess: 0,
            has_packet: false,
            followers: BTreeMap::new(),
            measured: None,
        };
        episode.begin_slot();
        episode
    }

    fn is_open(&self) -> bool {
        self.measured.is_none()
    }

    fn begin_slot(&mut self) {
        self.test.begin_slot(&mut self.start);
        self.lane.begin(&self.start, false);
        self.followers.values_mut().for_each(|follower| follower.route(&self.start));
        self.begun += 1;
        if self.is_open() {
            let [_, after, _, bound] = self.test.meter.sums();
            self.excess = i128::from(after) - i128::from(bound);
        }
    }

    /// Simulates until a packet has a choice of links, or until the last slot has ended.
    fn seek(&mut self) -> End {
        loop {
            self.has_packet = self.lane.seek(&self.start, 0.0);
            if self.has_packet {
                return End::Open;
            }
            self.test.end_slot(&self.lane);
            let is_last = self.begun == self.slots;
            if is_last {
                self.measured = Some(self.test.meter.finish(self.rates.total()));
            }
            self.begin_slot();
            if is_last {
                // A learner estimates the value of the state in which the time limit stops the simulation.
                self.has_packet = self.lane.seek(&self.start, 0.0);
                return End::Limit;
            }
        }
    }

    /// Returns the position of a link in the list of idle links, or `None` if the link is not idle.
    fn position(&self, link: usize) -> Option<usize> {
        self.lane.idle().iter().position(|idle| usize::from(*idle) == link)
    }

    fn features(&self, link: u16) -> [f64; FEATURES.len()] {
        let (packet, now) = (self.lane.decision(), self.lane.now());
        let (shape, stage, link) = (now.shape(), packet.stage + 1, usize::from(link));
        let switches = shape.switches() as f64;
        let is_last = packet.stage + 1 == shape.boundaries();
        let queue = self.start.len(stage, link, packet.class);
        let class: u32 = (0..shape.switches()).map(|switch| now.len(stage, switch, packet.class)).sum();
        let switch: u32 = now.at(stage, link).iter().sum();
        [
            1.0,
            f64::from(queue),
            f64::from(now.len(stage, link, packet.class)),
            f64::from(u8::from(is_last && queue > 0)),
            f64::from(switch) / switches,
            f64::from(class) / switches,
            f64::from(now.len(packet.stage, packet.switch, packet.class)),
            self.lane.idle().len() as f64 / switches,
            f64::from(u8::from(is_last)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(shape: Shape, load: f64, slots: u64) -> RoutingEnvironment {
        RoutingEnvironment::new(shape, RateSource::Drawn { load }, slots, Fill::Random).unwrap()
    }

    /// Runs an episode in which a rule makes all decisions. Returns the sum of the rewards, and the results.
    fn drive(environment: &mut RoutingEnvironment, rule: &str, draw: u64) -> (f64, Figures) {
        environment.reset(draw).unwrap();
        let mut sum = 0.0;
        loop {
            let link = environment.rule_choice(rule).unwrap();
            let Outcome { reward, end } = environment.choose(link).unwrap();
            sum += reward;
            if end != End::Open {
                assert_eq!(end, End::Limit);
                return (sum, environment.results().unwrap());
            }
        }
    }

    #[test]
    fn a_rule_that_drives_the_environment_has_its_own_results() {
        for (stages, switches, load) in [(2, 2, 0.9), (3, 5, 0.7), (4, 4, 0.8)] {
            let shape = Shape::new(stages, switches).unwrap();
            let mut environment = environment(shape, load, 60);
            for rule in PolicySpec::all().filter(|rule| *rule != PolicySpec::MaxWeight) {
                let name = rule.to_string();
                let (sum, results) = drive(&mut environment, &name, 3);
                assert_eq!(results, environment.run_rule(&name).unwrap(), "{name} {shape}");
                let figure = |name| results.iter().find(|(other, _)| *other == name).unwrap().1;
                let delay = figure("delay_slots") - figure("bound_delay_slots");
                let expected = -delay * 60.0 * environment.rates(3).unwrap().total() / shape.links() as f64;
                assert!((sum - expected).abs() < 1e-9 * (1.0 - expected), "{name}: {sum}, {expected}");
            }
        }
    }

    #[test]
    fn jsq_takes_a_link_to_the_shortest_queue_that_the_features_show() {
        let shape = Shape::new(3, 6).unwrap();
        let options = RateSource::Drawn { load: 0.8 };
        let mut environment = RoutingEnvironment::new(shape, options, 40, Fill::Rule).unwrap();
        environment.reset(1).unwrap();
        let mut decisions = 0;
        loop {
            let mut rows = vec![0.0; 6 * FEATURES.len()];
            environment.observe(&mut rows);
            let rows: Vec<_> = rows.chunks_exact(FEATURES.len()).collect();
            let link = environment.rule_choice("jsq").unwrap();
            let idle = rows.iter().enumerate().filter(|(_, row)| row[0] == 1.0);
            let shortest = idle.clone().map(|(_, row)| row[1]).fold(f32::INFINITY, f32::min);
            assert!(idle.clone().count() > 1 && rows[link][0] == 1.0);
            assert!(idle.clone().any(|(at, _)| environment.is_valid(at)));
            // Only the first packet of a switch is checked, and only if no other packet of its class waits there: if a
            // class has several packets, `rule_choice` may assign the rule's links to them in an order that differs
            // from the rule's.
            if rows[link][7] == 1.0 && rows[link][6] == 1.0 {
                assert_eq!(rows[link][1], shortest, "{rows:?}, {link}");
                decisions += 1;
            }
            if environment.choose(link).unwrap().end != End::Open {
                break;
            }
        }
        assert!(decisions > 100, "{decisions}");
    }

    #[test]
    fn invalid_choices_and_calls_are_reported() {
        let mut environment = environment(Shape::new(2, 3).unwrap(), 0.5, 5);
        let text = |error: StudyError| error.to_string();
        let call = "time of the call is before the first reset, expected a call between a reset and the end";
        assert!(text(environment.choose(0).unwrap_err()).starts_with(call));
        environment.reset(1).unwrap();
        assert_eq!(text(environment.choose(3).unwrap_err()), "action is 3, expected one of 0, 1, 2");
        assert!(text(environment.rule_choice("best").unwrap_err()).starts_with("policy is best, expected"));
        while environment.choose(environment.lane_link()).unwrap().end == End::Open {}
        assert!(text(environment.choose(0).unwrap_err()).contains("after the end of the episode"));
        assert!(text(environment.rule_choice("jsq").unwrap_err()).contains("after the end of the episode"));
        let new = |switches, load, slots| {
            let shape = Shape::new(3, switches).unwrap();
            RoutingEnvironment::new(shape, RateSource::Drawn { load }, slots, Fill::Random).map(drop)
        };
        let text = |result: Result<(), StudyError>| result.unwrap_err().to_string();
        assert_eq!(text(new(1, 0.5, 5)), "switches is 1, expected at least 2, for a choice of links");
        assert_eq!(text(new(4, 1.5, 5)), "load is 1.5, expected a number above 0 and below 1");
        assert_eq!(text(new(4, 0.5, 0)), "slots is 0, expected at least 1");
    }

    #[test]
    fn a_rule_with_another_order_of_packets_is_refused() {
        let mut environment = environment(Shape::new(2, 4).unwrap(), 0.95, 200);
        environment.reset(1).unwrap();
        let error = loop {
            match environment.rule_choice("maxweight") {
                Ok(link) => assert_eq!(environment.choose(link).unwrap().end, End::Open),
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(
            error,
            "rule is maxweight, expected a rule that sends packets in the same order as the environment"
        );
    }

    impl RoutingEnvironment {
        fn lane_link(&self) -> usize {
            usize::from(self.episode.as_ref().unwrap().lane.idle()[0])
        }
    }

    #[test]
    fn an_episode_without_a_decision_is_refused() {
        let rates = Rates::new(Shape::new(2, 2).unwrap(), vec![1e-9, 0.0, 0.0, 0.0]).unwrap();
        let shape = rates.shape();
        let mut environment =
            RoutingEnvironment::new(shape, RateSource::Fixed(rates), 3, Fill::Random).unwrap();
        let error = environment.reset(1).unwrap_err().to_string();
        assert!(
            error.ends_with("expected a load that leads to a routing decision within 3 slots"),
            "{error}"
        );
    }
}
