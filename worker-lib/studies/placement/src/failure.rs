//! Failures of GPUs and of larger failure domains: either random, with a separate rate for each component, or at known
//! times.
//!
//! A cluster consists of components that fail independently of each other. Components 0 to n - 1 are its n GPUs. The
//! others are the [`Domain`]s (nodes, racks and switches), whose failures stop all of their GPUs at once. A GPU works
//! unless it, or a domain that contains it, has failed.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Exp1};

use super::Cluster;
use super::domain::Domain;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::StudyError;
use iswitch_study::error::{above_zero, at_least_zero};

/// Length of a year of 365.25 days, in seconds.
pub const YEAR: f64 = 365.25 * 86_400.0;
/// Maximum failure rate of a GPU after scaling, in failures per year: one failure every 32 s.
pub const RATE_MAX: f64 = 1e6;

/// Period during which a GPU is out of service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// Id of the GPU.
    pub gpu: usize,
    /// Time of the failure, in seconds.
    pub begin: f64,
    /// Time of the repair, in seconds; after `begin`.
    pub end: f64,
}

/// What is known about a GPU's failures before the simulation. The estimated failure rate is `events / years`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// Number of observed failures, plus the number of failures that the prior is worth.
    pub events: f64,
    /// Years of observation, plus the number of years of observation that the prior is worth.
    pub years: f64,
}

impl Belief {
    /// Returns the belief for a component whose rate is known exactly. Observed failures must not update this belief.
    pub(super) fn certain(per_year: f64) -> Self {
        Self { events: per_year, years: 1.0 }
    }

    /// Returns the belief from `events` failures in `years` years of observation, shrunk towards the rate `mean` by
    /// empirical Bayes. The prior is a gamma distribution with shape `shape` and mean `mean`: it counts as `shape`
    /// failures in `shape / mean` years.
    pub(super) fn shrunk(events: f64, years: f64, shape: f64, mean: f64) -> Self {
        Self { events: events + shape, years: years + shape / mean }
    }

    /// Returns the estimated rate, in failures per year.
    pub(super) fn rate(self) -> f64 {
        self.events / self.years
    }

    /// Returns the belief updated with `seen` further failures in `years` further years.
    fn after(self, seen: u32, years: f64) -> Self {
        Self { events: self.events + f64::from(seen), years: self.years + years }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Source {
    /// Poisson processes with the given rates, in failures per year.
    Poisson(Vec<f64>),
    /// `(begin, end)` of each GPU's outages, in seconds and in chronological order.
    Trace(Vec<Vec<(f64, f64)>>),
}

/// Failures of the GPUs in a cluster, and what a placer knows about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Failures {
    source: Source,
    beliefs: Vec<Belief>,
    /// Whether observed failures update the placers' estimates of the failure rates.
    learns: bool,
    /// Age of each GPU at the start of the simulation, in years.
    ages: Vec<f64>,
    /// Factor by which all failure rates are multiplied.
    factor: f64,
    domains: Vec<Domain>,
    /// Indices of the domains that contain each GPU; empty if there are no domains.
    domains_of: Vec<Vec<usize>>,
}

impl Failures {
    /// Creates random failures: each GPU fails according to a Poisson process with its own rate, in failures per year.
    /// A GPU does not fail while it is being repaired. Placers know the rates.
    ///
    /// # Errors
    /// Fails if a rate is negative or above [`RATE_MAX`].
    pub fn poisson(per_year: Vec<f64>) -> Result<Self, StudyError> {
        for (gpu, rate) in per_year.iter().enumerate() {
            if !(0.0..=RATE_MAX).contains(rate) {
                let expected = format!("0 to {RATE_MAX} failures a year");
                return Err(StudyError::field(format!("failure rate of GPU {gpu}"), rate, expected));
            }
        }
        let beliefs = per_year.iter().copied().map(Belief::certain).collect();
        Ok(Self::of(Source::Poisson(per_year), beliefs))
    }

    /// Creates failures at known times, such as those read from a file. Placers know nothing about these failures,
    /// because rates estimated from future failures would be hindsight; [`Self::with_beliefs`] adds knowledge.
    ///
    /// # Errors
    /// Fails if an outage belongs to an unknown GPU, does not end after it begins, or overlaps another outage of its
    /// GPU.
    pub fn trace(cluster: &Cluster, outages: &[Outage]) -> Result<Self, StudyError> {
        let mut of_gpu = vec![Vec::new(); cluster.gpus()];
        for outage in outages {
            check_outage(cluster, *outage)?;
            of_gpu[outage.gpu].push((outage.begin, outage.end));
        }
        for (gpu, outages) in of_gpu.iter_mut().enumerate() {
            outages.sort_by(|a, b| a.0.total_cmp(&b.0));
            if let Some(pair) = outages.windows(2).find(|pair| pair[1].0 < pair[0].1) {
                let value = format!("{} s to {} s", pair[1].0, pair[1].1);
                let expected = format!(
                    "a start at {} s or later, because the outage that starts at {} s ends then",
                    pair[0].1, pair[0].0
                );
                return Err(StudyError::field(format!("outage of GPU {gpu}"), value, expected));
            }
        }
        Ok(Self::of(Source::Trace(of_gpu), vec![Belief::certain(0.0); cluster.gpus()]))
    }

    /// Returns failures for a cluster in which no GPU ever fails.
    pub fn none(cluster: &Cluster) -> Self {
        Self::of(Source::Poisson(vec![0.0; cluster.gpus()]), vec![Belief::certain(0.0); cluster.gpus()])
    }

    fn of(source: Source, beliefs: Vec<Belief>) -> Self {
        let ages = vec![0.0; beliefs.len()];
        let (domains, domains_of) = (Vec::new(), Vec::new());
        Self { source, ages, beliefs, learns: false, factor: 1.0, domains, domains_of }
    }

    /// Adds failure domains, whose failures occur in addition to the failures of individual GPUs.
    ///
    /// # Errors
    /// Fails if a domain contains no GPUs, or a GPU that does not exist.
    pub fn with_domains(mut self, domains: Vec<Domain>) -> Result<Self, StudyError> {
        self.domains_of.resize(self.gpus(), Vec::new());
        for domain in domains {
            let Range { start, end } = domain.gpus();
            if start >= end || end > self.gpus() {
                let expected = format!("a range within 0 to {}", self.gpus());
                return Err(StudyError::field(
                    "GPUs of a failure domain",
                    format!("{start} to {end}"),
                    expected,
                ));
            }
            self.domains_of[start..end].iter_mut().for_each(|of| of.push(self.domains.len()));
            self.domains.push(domain);
        }
        Ok(self)
    }

    /// Returns the domains.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Returns the indices of the domains that contain a GPU.
    pub fn domains_of(&self, gpu: usize) -> &[usize] {
        self.domains_of.get(gpu).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of components: GPUs and domains.
    pub fn components(&self) -> usize {
        self.gpus() + self.domains.len()
    }

    /// Returns the GPUs that a failure of a component stops.
    pub fn gpus_of(&self, component: usize) -> Range<usize> {
        match component.checked_sub(self.gpus()) {
            Some(domain) => self.domains[domain].gpus(),
            None => component..component + 1,
        }
    }

    /// Returns the time of a GPU's last repair before the start of the simulation, in seconds (negative); 0 if no such
    /// repair is known.
    pub fn last_repair(&self, gpu: usize) -> f64 {
        let repairs = self.domains_of(gpu).iter().map(|domain| self.domains[*domain].last_repair());
        repairs.reduce(f64::max).unwrap_or(0.0) / self.factor
    }

    /// Replaces what the placers know: from then on, they know only `beliefs` and the failures that they observe. The
    /// estimated rate is the mean of a gamma distribution, (events + observed failures) / (years + elapsed years).
    ///
    /// # Errors
    /// Fails if the number of beliefs is not the number of GPUs, or if the `events` of a belief are negative or its
    /// `years` are not above 0.
    pub fn with_beliefs(self, beliefs: Vec<Belief>) -> Result<Self, StudyError> {
        self.check_count("number of beliefs about GPUs", beliefs.len())?;
        for (gpu, belief) in beliefs.iter().enumerate() {
            at_least_zero(format!("observed failures of GPU {gpu}"), belief.events, "events")?;
            above_zero(format!("years of observation of GPU {gpu}"), belief.years, "years")?;
        }
        Ok(Self { beliefs, learns: true, ..self })
    }

    /// Sets the ages of the GPUs at the start of the simulation, in years. The ages affect only what placers observe.
    ///
    /// # Errors
    /// Fails if the number of ages is not the number of GPUs, or if an age is negative.
    pub fn with_ages(self, ages: Vec<f64>) -> Result<Self, StudyError> {
        self.check_count("number of ages of GPUs", ages.len())?;
        for (gpu, age) in ages.iter().enumerate() {
            at_least_zero(format!("age of GPU {gpu}"), *age, "years")?;
        }
        Ok(Self { ages, ..self })
    }

    /// Makes failures `factor` times as frequent: failure rates are multiplied by `factor`, and the times between known
    /// outages are divided by it. The placers' estimates are scaled accordingly.
    ///
    /// # Errors
    /// Fails if the factor is not above 0, or a scaled rate is above [`RATE_MAX`].
    pub fn scaled(self, factor: f64) -> Result<Self, StudyError> {
        above_zero("failure factor", factor, "times")?;
        let factor = self.factor * factor;
        let greatest = match &self.source {
            Source::Poisson(rates) => rates.iter().copied().fold(0.0, f64::max) * factor,
            Source::Trace(_) => 0.0,
        };
        let greatest = self.domains.iter().map(|domain| domain.per_year() * factor).fold(greatest, f64::max);
        if greatest > RATE_MAX {
            let expected = format!("a number for which no GPU fails more than {RATE_MAX} times a year");
            return Err(StudyError::field("failure factor", factor, expected));
        }
        Ok(Self { factor, ..self })
    }

    /// Returns the number of GPUs.
    pub fn gpus(&self) -> usize {
        self.beliefs.len()
    }

    /// Returns the ages of the GPUs at the start of the simulation, in years.
    pub fn ages(&self) -> &[f64] {
        &self.ages
    }

    /// Returns a placer's estimate of a component's failure rate, in failures per second, after `time` seconds with
    /// `seen` observed failures. For a GPU, the estimate does not include the domains that contain it.
    pub fn estimate(&self, component: usize, time: f64, seen: u32) -> f64 {
        let (belief, learns) = match component.checked_sub(self.gpus()) {
            Some(domain) => self.domains[domain].belief(),
            None => (self.beliefs[component], self.learns),
        };
        // A year of a cluster that fails `factor` times as often counts as `factor` years of observation.
        let belief = if learns { belief.after(seen, time / YEAR * self.factor) } else { belief };
        self.factor * belief.events / belief.years / YEAR
    }

    fn check_count(&self, field: &str, count: usize) -> Result<(), StudyError> {
        if count == self.gpus() {
            return Ok(());
        }
        Err(StudyError::field(field, count, format!("{}, one for each GPU", self.gpus())))
    }
}

/// Checks a single outage of a cluster, without regard to other outages.
///
/// # Errors
/// Fails if the GPU is unknown, if the outage begins before time 0, or if its end is not later than its beginning.
pub fn check_outage(cluster: &Cluster, outage: Outage) -> Result<(), StudyError> {
    cluster.check_gpu(outage.gpu)?;
    at_least_zero(format!("start of an outage of GPU {}", outage.gpu), outage.begin, "seconds")?;
    if outage.end.is_finite() && outage.end > outage.begin {
        return Ok(());
    }
    let field = format!("end of an outage of GPU {}", outage.gpu);
    Err(StudyError::field(
        field,
        outage.end,
        format!("a number of seconds above its start ({})", outage.begin),
    ))
}

/// One random sequence of failures, determined by a seed, a purpose and a sequence number. Each component has its own
/// random stream, so that the times between its failures do not depend on the placement of jobs.
#[derive(Clone, Debug)]
pub struct FailureDraw<'a> {
    failures: &'a Failures,
    /// Random number generator of each component.
    rngs: Vec<ChaCha8Rng>,
    /// Number of outages at known times that [`Self::next`] has returned, by component.
    seen: Vec<usize>,
}

impl<'a> FailureDraw<'a> {
    /// Creates sequence number `draw` for a seed and a purpose; different sequences are independent.
    pub fn new(failures: &'a Failures, seed: u64, purpose: Purpose, draw: usize) -> Self {
        let count = failures.components();
        let rngs = (0..count).map(|component| stream(seed, purpose, draw * count + component)).collect();
        Self { failures, rngs, seen: vec![0; count] }
    }

    /// Returns the start and end, in seconds, of the next outage of a component that has been working since `since`.
    /// `repair` is the repair time, in seconds, of a GPU that fails at random.
    pub fn next(&mut self, component: usize, since: f64, repair: f64) -> Option<(f64, f64)> {
        let failures = self.failures;
        let factor = failures.factor;
        let next = match component.checked_sub(failures.gpus()) {
            Some(domain) => failures.domains[domain].next(self.seen[component]),
            None => match &failures.source {
                Source::Poisson(rates) => Next::Random { per_year: rates[component], repair },
                Source::Trace(outages) => Next::of_trace(&outages[component], self.seen[component]),
            },
        };
        match next {
            Next::Random { per_year, repair } if per_year > 0.0 => {
                let wait: f64 = Exp1.sample(&mut self.rngs[component]);
                let begin = since + wait / (per_year * factor) * YEAR;
                Some((begin, begin + repair))
            }
            Next::Known { after, lasts } => {
                self.seen[component] += 1;
                let begin = since + after / factor;
                Some((begin, begin + lasts))
            }
            Next::Random { .. } | Next::Never => None,
        }
    }
}

/// Next outage of a component. Rates are in failures per year, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// At a random time.
    Random {
        /// Failure rate, which may be 0.
        per_year: f64,
        /// Length of the outage.
        repair: f64,
    },
    /// At a known time.
    Known {
        /// Time from the end of the previous outage (or the start of the simulation) to the start of this one.
        after: f64,
        /// Length of the outage.
        lasts: f64,
    },
    /// No outage.
    Never,
}

impl Next {
    /// Returns outage number `number` of a chronological list of `(begin, end)` times.
    pub(super) fn of_trace(outages: &[(f64, f64)], number: usize) -> Self {
        let Some((begin, end)) = outages.get(number) else { return Self::Never };
        let before = number.checked_sub(1).map_or(0.0, |before| outages[before].1);
        Self::Known { after: begin - before, lasts: end - begin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(gpu: usize, begin: f64, end: f64) -> Outage {
        Outage { gpu, begin, end }
    }

    fn all(failures: &Failures, gpu: usize, count: usize) -> Vec<(f64, f64)> {
        let mut draw = FailureDraw::new(failures, 1, Purpose::Failures, 0);
        let mut since = 0.0;
        let mut next = || {
            let outage = draw.next(gpu, since, 5.0)?;
            since = outage.1;
            Some(outage)
        };
        (0..count).map_while(|_| next()).collect()
    }

    #[test]
    fn impossible_settings_are_reported_by_name() {
        let cluster = Cluster::uniform(1, 2).unwrap();
        let text = |outages: &[Outage]| Failures::trace(&cluster, outages).unwrap_err().to_string();
        assert_eq!(text(&[outage(2, 0.0, 1.0)]), "id of a GPU is 2, expected 0 to 1");
        assert_eq!(
            text(&[outage(1, -1.0, 1.0)]),
            "start of an outage of GPU 1 is -1, expected a number of seconds >= 0"
        );
        assert_eq!(
            text(&[outage(1, 5.0, 4.0)]),
            "end of an outage of GPU 1 is 4, expected a number of seconds above its start (5)"
        );
        assert_eq!(
            text(&[outage(1, 8.0, 20.0), outage(0, 8.0, 9.0), outage(1, 5.0, 9.0)]),
            "outage of GPU 1 is 8 s to 20 s, expected a start at 9 s or later, because the outage that starts at 5 s \
             ends then"
        );
        let text = |error: Result<Failures, StudyError>| error.unwrap_err().to_string();
        assert_eq!(
            text(Failures::poisson(vec![1.0, -2.0])),
            "failure rate of GPU 1 is -2, expected 0 to 1000000 failures a year"
        );
        assert_eq!(
            text(Failures::none(&cluster).with_ages(vec![1.0])),
            "number of ages of GPUs is 1, expected 2, one for each GPU"
        );
        let often = Failures::poisson(vec![1e5]).unwrap().scaled(100.0);
        assert!(text(often).starts_with("failure factor is 100, expected a number for which no GPU"));
    }

    #[test]
    fn a_factor_scales_the_times_between_recorded_outages() {
        let cluster = Cluster::uniform(1, 2).unwrap();
        let outages = [outage(0, 40.0, 46.0), outage(0, 10.0, 20.0)];
        let failures = Failures::trace(&cluster, &outages).unwrap();
        assert_eq!(all(&failures, 0, 9), [(10.0, 20.0), (40.0, 46.0)]);
        assert_eq!(all(&failures, 1, 9), []);
        assert_eq!(all(&failures.scaled(10.0).unwrap(), 0, 9), [(1.0, 11.0), (13.0, 19.0)]);
    }

    #[test]
    fn gpus_fail_at_their_rate_except_during_repair() {
        let failures = Failures::poisson(vec![0.0, 2.0]).unwrap().scaled(3.0).unwrap();
        assert_eq!(all(&failures, 0, 9), []);
        let outages = all(&failures, 1, 4000);
        let works: f64 = outages.windows(2).map(|pair| pair[1].0 - pair[0].1).sum();
        assert!((works / 3999.0 * 6.0 / YEAR - 1.0).abs() < 0.05, "{works}");
        assert!(outages.iter().all(|(begin, end)| (end - begin - 5.0).abs() < 1e-6));
    }

    #[test]
    fn failure_draws_are_reproducible_and_distinct() {
        let failures = Failures::poisson(vec![1.0, 1.0]).unwrap();
        let first = |seed, purpose, draw, gpu| {
            FailureDraw::new(&failures, seed, purpose, draw).next(gpu, 0.0, 1.0).unwrap().0
        };
        let here = first(1, Purpose::Failures, 0, 0);
        assert_eq!(here, first(1, Purpose::Failures, 0, 0));
        for other in [
            first(2, Purpose::Failures, 0, 0),
            first(1, Purpose::SelectionFailures, 0, 0),
            first(1, Purpose::Failures, 1, 0),
            first(1, Purpose::Failures, 0, 1),
        ] {
            assert_ne!(here, other);
        }
    }

    #[test]
    fn failure_estimates_are_updated_only_for_unknown_rates() {
        let known = Failures::poisson(vec![4.0]).unwrap().scaled(10.0).unwrap();
        assert!((known.estimate(0, 5.0 * YEAR, 3) * YEAR - 40.0).abs() < 1e-9);
        let believed = known.with_beliefs(vec![Belief { events: 1.0, years: 2.0 }]).unwrap();
        assert!((believed.estimate(0, 0.0, 0) * YEAR - 5.0).abs() < 1e-9);
        // Three failures in a year that counts as ten years give a rate of (1 + 3) / (2 + 10), which the factor
        // multiplies by 10.
        assert!((believed.estimate(0, YEAR, 3) * YEAR - 40.0 / 12.0).abs() < 1e-9);
    }
}
