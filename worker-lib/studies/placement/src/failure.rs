//! When GPUs fail: at random with a rate of their own, or at times that are known.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Exp1};

use super::Cluster;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::StudyError;
use iswitch_study::error::{above_zero, at_least_zero};

/// Seconds of a year of 365.25 days.
pub const YEAR: f64 = 365.25 * 86_400.0;
/// Failures a year of a GPU, times the factor, at most: one in 32 s.
pub const RATE_MAX: f64 = 1e6;

/// A time in which a GPU does not work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// Id of the GPU.
    pub gpu: usize,
    /// When it fails, in seconds.
    pub begin: f64,
    /// When it is repaired, in seconds; after `begin`.
    pub end: f64,
}

/// What is known about a GPU before the simulation: its estimated rate is `events / years`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// Failures seen, the prior's share included.
    pub events: f64,
    /// Years watched, the prior's share included.
    pub years: f64,
}

impl Belief {
    /// That a GPU fails so often a year, whatever is seen later.
    fn certain(per_year: f64) -> Self {
        Self { events: per_year, years: 1.0 }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Source {
    /// Poisson processes with these rates a year.
    Poisson(Vec<f64>),
    /// `(begin, end)` of each GPU's outages, by time.
    Trace(Vec<Vec<(f64, f64)>>),
}

/// How the GPUs of a cluster fail, and what a placer is told about that.
#[derive(Clone, Debug, PartialEq)]
pub struct Failures {
    source: Source,
    beliefs: Vec<Belief>,
    /// Whether failures that are seen change the estimates.
    learns: bool,
    /// Of each GPU at the begin, in years.
    ages: Vec<f64>,
    factor: f64,
}

impl Failures {
    /// Poisson processes; a GPU does not fail while it is repaired. Placers know the rates.
    ///
    /// # Errors
    /// If a rate (failures a year) is negative or above [`RATE_MAX`].
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

    /// Known times, such as those of a file. Placers know nothing: to estimate rates from what is to come would be
    /// hindsight; see [`Self::with_beliefs`].
    ///
    /// # Errors
    /// If an outage is of an unknown GPU, does not end after it begins, or overlaps another one of its GPU.
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
                let expected = format!("none before {} s, when that of {} s ends", pair[0].1, pair[0].0);
                return Err(StudyError::field(format!("outage of GPU {gpu}"), value, expected));
            }
        }
        Ok(Self::of(Source::Trace(of_gpu), vec![Belief::certain(0.0); cluster.gpus()]))
    }

    /// GPUs that never fail.
    pub fn none(cluster: &Cluster) -> Self {
        Self::of(Source::Poisson(vec![0.0; cluster.gpus()]), vec![Belief::certain(0.0); cluster.gpus()])
    }

    fn of(source: Source, beliefs: Vec<Belief>) -> Self {
        Self { source, ages: vec![0.0; beliefs.len()], beliefs, learns: false, factor: 1.0 }
    }

    /// The same, but placers know only this about each GPU, and what they see: the estimated rate is the mean of a
    /// gamma distribution, (events + failures seen) / (years + years passed).
    ///
    /// # Errors
    /// If there is not one for each GPU, or one is negative or has no years.
    pub fn with_beliefs(self, beliefs: Vec<Belief>) -> Result<Self, StudyError> {
        self.check_count("beliefs about GPUs", beliefs.len())?;
        for (gpu, belief) in beliefs.iter().enumerate() {
            at_least_zero(format!("failures seen of GPU {gpu}"), belief.events, "events")?;
            above_zero(format!("years watched of GPU {gpu}"), belief.years, "years")?;
        }
        Ok(Self { beliefs, learns: true, ..self })
    }

    /// The same with GPUs that are so many years old at the begin. Their age changes nothing but what placers see.
    ///
    /// # Errors
    /// If there is not one for each GPU, or one is negative.
    pub fn with_ages(self, ages: Vec<f64>) -> Result<Self, StudyError> {
        self.check_count("ages of GPUs", ages.len())?;
        for (gpu, age) in ages.iter().enumerate() {
            at_least_zero(format!("age of GPU {gpu}"), *age, "years")?;
        }
        Ok(Self { ages, ..self })
    }

    /// The same, failing so many times as often: rates are multiplied, times between outages of a file divided.
    /// Estimates go with it.
    ///
    /// # Errors
    /// If the factor is not above 0, or a rate is then above [`RATE_MAX`].
    pub fn scaled(self, factor: f64) -> Result<Self, StudyError> {
        above_zero("failure factor", factor, "times")?;
        let factor = self.factor * factor;
        let greatest = match &self.source {
            Source::Poisson(rates) => rates.iter().copied().fold(0.0, f64::max) * factor,
            Source::Trace(_) => 0.0,
        };
        if greatest > RATE_MAX {
            let expected = format!("a number for which no GPU fails more than {RATE_MAX} times a year");
            return Err(StudyError::field("failure factor", factor, expected));
        }
        Ok(Self { factor, ..self })
    }

    /// GPUs that it is about.
    pub fn gpus(&self) -> usize {
        self.beliefs.len()
    }

    /// Ages at the begin, in years.
    pub fn ages(&self) -> &[f64] {
        &self.ages
    }

    /// What a placer thinks of a GPU after so many seconds in which it has seen so many failures: failures a second.
    pub fn estimate(&self, gpu: usize, time: f64, seen: u32) -> f64 {
        let Belief { mut events, mut years } = self.beliefs[gpu];
        if self.learns {
            // Years of a cluster whose GPUs fail `factor` times as often are so many of the one that was watched.
            events += f64::from(seen);
            years += time / YEAR * self.factor;
        }
        self.factor * events / years / YEAR
    }

    fn check_count(&self, field: &str, count: usize) -> Result<(), StudyError> {
        if count == self.gpus() {
            return Ok(());
        }
        Err(StudyError::field(field, count, format!("{}, one for each GPU", self.gpus())))
    }
}

/// Refuses what is no outage of this cluster, by itself.
///
/// # Errors
/// If the GPU is unknown, a time is negative, or it does not end after it begins.
pub fn check_outage(cluster: &Cluster, outage: Outage) -> Result<(), StudyError> {
    cluster.check_gpu(outage.gpu)?;
    at_least_zero(format!("begin of an outage of GPU {}", outage.gpu), outage.begin, "seconds")?;
    if outage.end.is_finite() && outage.end > outage.begin {
        return Ok(());
    }
    let field = format!("end of an outage of GPU {}", outage.gpu);
    Err(StudyError::field(
        field,
        outage.end,
        format!("a number of seconds above its begin, {}", outage.begin),
    ))
}

/// One course of failures: that of a seed and of a number. Each GPU has a random stream of its own, so that the times
/// for which GPUs work do not depend on how jobs are placed.
#[derive(Clone, Debug)]
pub struct FailureDraw<'a> {
    failures: &'a Failures,
    /// Of each GPU that fails at random.
    rngs: Vec<ChaCha8Rng>,
    /// Outages of each GPU that have begun.
    seen: Vec<u32>,
}

impl<'a> FailureDraw<'a> {
    /// Number `draw` of a seed and a purpose; different ones are independent.
    pub fn new(failures: &'a Failures, seed: u64, purpose: Purpose, draw: usize) -> Self {
        let gpus = failures.gpus();
        let rngs = match &failures.source {
            Source::Poisson(_) => (0..gpus).map(|gpu| stream(seed, purpose, draw * gpus + gpu)).collect(),
            Source::Trace(_) => Vec::new(),
        };
        Self { failures, rngs, seen: vec![0; gpus] }
    }

    /// The next outage of a GPU that works since `since`: begin and end. `repair` is what one takes that is drawn.
    pub fn next(&mut self, gpu: usize, since: f64, repair: f64) -> Option<(f64, f64)> {
        let factor = self.failures.factor;
        match &self.failures.source {
            Source::Poisson(rates) if rates[gpu] > 0.0 => {
                let wait: f64 = Exp1.sample(&mut self.rngs[gpu]);
                let begin = since + wait / (rates[gpu] * factor) * YEAR;
                Some((begin, begin + repair))
            }
            Source::Poisson(_) => None,
            Source::Trace(outages) => {
                let number = self.seen[gpu] as usize;
                let (begin, end) = *outages[gpu].get(number)?;
                let before = number.checked_sub(1).map_or(0.0, |before| outages[gpu][before].1);
                self.seen[gpu] += 1;
                let failed = since + (begin - before) / factor;
                Some((failed, failed + (end - begin)))
            }
        }
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
    fn what_cannot_be_is_named() {
        let cluster = Cluster::uniform(1, 2).unwrap();
        let text = |outages: &[Outage]| Failures::trace(&cluster, outages).unwrap_err().to_string();
        assert_eq!(text(&[outage(2, 0.0, 1.0)]), "id of a GPU is 2, expected 0 to 1");
        assert_eq!(
            text(&[outage(1, -1.0, 1.0)]),
            "begin of an outage of GPU 1 is -1, expected a number of seconds of at least 0"
        );
        assert_eq!(
            text(&[outage(1, 5.0, 4.0)]),
            "end of an outage of GPU 1 is 4, expected a number of seconds above its begin, 5"
        );
        assert_eq!(
            text(&[outage(1, 8.0, 20.0), outage(0, 8.0, 9.0), outage(1, 5.0, 9.0)]),
            "outage of GPU 1 is 8 s to 20 s, expected none before 9 s, when that of 5 s ends"
        );
        let text = |error: Result<Failures, StudyError>| error.unwrap_err().to_string();
        assert_eq!(
            text(Failures::poisson(vec![1.0, -2.0])),
            "failure rate of GPU 1 is -2, expected 0 to 1000000 failures a year"
        );
        assert_eq!(
            text(Failures::none(&cluster).with_ages(vec![1.0])),
            "ages of GPUs is 1, expected 2, one for each GPU"
        );
        let often = Failures::poisson(vec![1e5]).unwrap().scaled(100.0);
        assert!(text(often).starts_with("failure factor is 100, expected a number for which no GPU"));
    }

    #[test]
    fn times_of_a_file_are_kept_and_a_factor_divides_those_between_them() {
        let cluster = Cluster::uniform(1, 2).unwrap();
        let outages = [outage(0, 40.0, 46.0), outage(0, 10.0, 20.0)];
        let failures = Failures::trace(&cluster, &outages).unwrap();
        assert_eq!(all(&failures, 0, 9), [(10.0, 20.0), (40.0, 46.0)]);
        assert_eq!(all(&failures, 1, 9), []);
        assert_eq!(all(&failures.scaled(10.0).unwrap(), 0, 9), [(1.0, 11.0), (13.0, 19.0)]);
    }

    #[test]
    fn gpus_fail_at_their_rate_and_not_while_they_are_repaired() {
        let failures = Failures::poisson(vec![0.0, 2.0]).unwrap().scaled(3.0).unwrap();
        assert_eq!(all(&failures, 0, 9), []);
        let outages = all(&failures, 1, 4000);
        let works: f64 = outages.windows(2).map(|pair| pair[1].0 - pair[0].1).sum();
        assert!((works / 3999.0 * 6.0 / YEAR - 1.0).abs() < 0.05, "{works}");
        assert!(outages.iter().all(|(begin, end)| (end - begin - 5.0).abs() < 1e-6));
    }

    #[test]
    fn draws_repeat_and_differ() {
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
    fn estimates_learn_only_where_rates_are_not_known() {
        let known = Failures::poisson(vec![4.0]).unwrap().scaled(10.0).unwrap();
        assert!((known.estimate(0, 5.0 * YEAR, 3) * YEAR - 40.0).abs() < 1e-9);
        let believed = known.with_beliefs(vec![Belief { events: 1.0, years: 2.0 }]).unwrap();
        assert!((believed.estimate(0, 0.0, 0) * YEAR - 5.0).abs() < 1e-9);
        // Three more in a year that is worth ten: 4 / 12, ten times as often.
        assert!((believed.estimate(0, YEAR, 3) * YEAR - 40.0 / 12.0).abs() < 1e-9);
    }
}
