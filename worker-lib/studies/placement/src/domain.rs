//! Failure domains: nodes, racks and switches, whose failures stop all of their GPUs at once.

use std::ops::Range;

use super::cluster::Level;
use super::failure::{Belief, Next, RATE_MAX};
use iswitch_study::StudyError;
use iswitch_study::error::{above_zero, at_least_zero, check_range};

#[derive(Clone, Debug, PartialEq)]
enum Source {
    /// Poisson process with a rate of `per_year` failures per year and outages of `repair` seconds each.
    Poisson { per_year: f64, repair: f64 },
    /// `(begin, end)` of each outage in seconds, in chronological order.
    Trace(Vec<(f64, f64)>),
}

/// GPUs that fail together, such as those of a node, and what placers know about the failures.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    gpus: Range<usize>,
    level: Option<Level>,
    source: Source,
    belief: Belief,
    /// Whether observed failures update the placers' estimate of the failure rate.
    learns: bool,
    last_repair: f64,
}

impl Domain {
    /// Creates a domain that fails at random, on average `per_year` times a year, and is repaired `repair` seconds
    /// after each failure. Placers know the failure rate.
    ///
    /// # Errors
    /// Fails if the rate is negative or above [`RATE_MAX`], or if `repair` is not above 0.
    pub fn poisson(gpus: Range<usize>, per_year: f64, repair: f64) -> Result<Self, StudyError> {
        check_range("failure rate of a domain", per_year, 0.0..=RATE_MAX, "failures a year")?;
        above_zero("repair time of a domain", repair, "seconds")?;
        let belief = Belief::certain(per_year);
        Ok(Self {
            gpus,
            level: None,
            source: Source::Poisson { per_year, repair },
            belief,
            learns: false,
            last_repair: 0.0,
        })
    }

    /// Creates a domain with outages at known times, `(begin, end)` in seconds. Placers know only `belief` and the
    /// failures that they observe.
    ///
    /// # Errors
    /// Fails if an outage begins before time 0 or before the end of the previous outage, or does not end after it
    /// begins. Also fails if `belief.events` is negative or `belief.years` is not above 0.
    pub fn trace(gpus: Range<usize>, outages: Vec<(f64, f64)>, belief: Belief) -> Result<Self, StudyError> {
        let mut least = 0.0;
        for (begin, end) in &outages {
            if !(*begin >= least && *end > *begin && end.is_finite()) {
                let expected =
                    format!("an outage that begins at {least} s or later and ends after it begins");
                return Err(StudyError::field(
                    "outage of a domain",
                    format!("{begin} s to {end} s"),
                    expected,
                ));
            }
            least = *end;
        }
        at_least_zero("observed failures of a domain", belief.events, "events")?;
        above_zero("years of observation of a domain", belief.years, "years")?;
        Ok(Self { gpus, level: None, source: Source::Trace(outages), belief, learns: true, last_repair: 0.0 })
    }

    /// Sets the level of the domain: whether it is a node, a rack or a switch.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        Self { level: Some(level), ..self }
    }

    /// Returns the level of the domain, if it has been set.
    pub fn level(&self) -> Option<Level> {
        self.level
    }

    /// Sets the time of the last repair before the start of the simulation, in seconds (0 or negative).
    ///
    /// # Errors
    /// Fails if the time is above 0 or not finite.
    pub fn repaired_at(self, last_repair: f64) -> Result<Self, StudyError> {
        at_least_zero("seconds since the last repair of a domain", -last_repair, "seconds")?;
        Ok(Self { last_repair, ..self })
    }

    /// Returns the ids of the domain's GPUs.
    pub fn gpus(&self) -> Range<usize> {
        self.gpus.clone()
    }

    /// Returns the time of the last repair before the start of the simulation, in seconds (0 or negative).
    pub fn last_repair(&self) -> f64 {
        self.last_repair
    }

    /// Returns the rate of random failures, in failures per year; 0 for outages at known times.
    pub(super) fn per_year(&self) -> f64 {
        match self.source {
            Source::Poisson { per_year, .. } => per_year,
            Source::Trace(_) => 0.0,
        }
    }

    /// Returns the placers' initial belief about the failure rate, and whether observed failures update it.
    pub(super) fn belief(&self) -> (Belief, bool) {
        (self.belief, self.learns)
    }

    /// Returns the next outage; for outages at known times, `seen` is the number of outages that have already been
    /// returned.
    pub(super) fn next(&self, seen: usize) -> Next {
        match &self.source {
            Source::Poisson { per_year, repair } => Next::Random { per_year: *per_year, repair: *repair },
            Source::Trace(outages) => Next::of_trace(outages, seen),
        }
    }
}
