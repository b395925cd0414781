//! Arrival rates, and random arrivals with these rates.

use std::fmt::Display;
use std::path::Path;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Poisson};

use super::network::Shape;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::StudyError;
use iswitch_study::table::{Output, Records, read};

/// Arrival rates of the queues of the first stage, in packets per slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    shape: Shape,
    /// Arrival rate of each queue, as `[switch, class]`.
    rates: Vec<f64>,
}

impl Rates {
    /// Draws rates uniformly from 0 to 1 with `seed` and rescales them to `load` (section 4 of the paper).
    ///
    /// # Errors
    /// Fails if the load is not above 0 and below 1.
    pub fn uniform(shape: Shape, load: f64, seed: u64) -> Result<Self, StudyError> {
        if !(load > 0.0 && load < 1.0) {
            return Err(StudyError::field("load", load, "a number above 0 and below 1"));
        }
        let mut rng = stream(seed, Purpose::Rates, 0);
        let mut rates: Vec<f64> = (0..shape.links()).map(|_| rng.random()).collect();
        let scale = load * shape.links() as f64 / rates.iter().sum::<f64>();
        rates.iter_mut().for_each(|rate| *rate *= scale);
        Ok(Self { shape, rates })
    }

    /// Creates rates from a list in the order `[switch, class]`.
    ///
    /// # Errors
    /// Fails if the number of rates is not the number of queues of a stage, or if a rate is negative or not finite.
    pub fn new(shape: Shape, rates: Vec<f64>) -> Result<Self, StudyError> {
        if rates.len() != shape.links() {
            return Err(StudyError::field("number of rates", rates.len(), shape.links().to_string()));
        }
        if let Some(at) = rates.iter().position(|rate| !(rate.is_finite() && *rate >= 0.0)) {
            let field = format!("rate of switch {}, class {}", at / shape.switches(), at % shape.switches());
            return Err(StudyError::field(field, rates[at], "a number >= 0"));
        }
        Ok(Self { shape, rates })
    }

    /// Reads the rates of a network with `stages` stages from a CSV file. The file has one line for each switch of the
    /// first stage, and each line has one number for each class.
    ///
    /// # Errors
    /// Fails if the file cannot be read, if the number of lines is not the number of fields per line, if a field is not
    /// a valid rate, or if the load is not above 0 and below 1.
    pub fn read(path: &Path, stages: usize) -> Result<Self, StudyError> {
        Self::parse(&read(path)?, path, stages)
    }

    fn parse(text: &str, path: &Path, stages: usize) -> Result<Self, StudyError> {
        let mut rows: Vec<Vec<f64>> = Vec::new();
        let mut lines = Vec::new();
        Records::new(text).for_each(path, |line, row| {
            let switch = rows.len();
            let rate = |(class, text): (usize, &str)| {
                let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
                rate.ok_or_else(|| {
                    format!("rate of switch {switch}, class {class} is {text:?}, expected a number >= 0")
                })
            };
            rows.push(row.iter().enumerate().map(rate).collect::<Result<_, String>>()?);
            lines.push(line);
            Ok(())
        })?;
        let fail = |error: StudyError| StudyError::file(path, error);
        let shape = Shape::new(stages, rows.len()).map_err(fail)?;
        if let Some(at) = rows.iter().position(|row| row.len() != shape.switches()) {
            let field = format!("number of rates in line {}", lines[at]);
            return Err(fail(StudyError::field(field, rows[at].len(), shape.switches().to_string())));
        }
        let rates = Self::new(shape, rows.concat()).map_err(fail)?;
        match rates.load() {
            load if load > 0.0 && load < 1.0 => Ok(rates),
            load => Err(fail(StudyError::field("load", load, "a number above 0 and below 1"))),
        }
    }

    /// Returns the rates as text in the format that [`Self::read`] accepts.
    pub fn to_csv(&self) -> String {
        let mut table = Output::without_columns();
        for row in self.rates.chunks_exact(self.shape.switches()) {
            table.row(&row.iter().map(|rate| rate as &dyn Display).collect::<Vec<_>>());
        }
        table.into_text()
    }

    /// Returns the size of the network.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the sum of all arrival rates, in packets per slot.
    pub fn total(&self) -> f64 {
        self.rates.iter().sum()
    }

    /// Returns the load: the sum of all arrival rates divided by the number of links between two stages.
    pub fn load(&self) -> f64 {
        self.total() / self.shape.links() as f64
    }

    /// Returns all rates, as `[switch, class]`.
    pub fn all(&self) -> &[f64] {
        &self.rates
    }

    /// Returns the switches of the first stage that receive more packets than their links can carry, and the classes
    /// that receive more packets than their exits can release. Their queues grow without bound under every policy.
    pub fn overloaded(&self) -> (Vec<usize>, Vec<usize>) {
        let size = self.shape.switches();
        let too_much = |rate: f64| rate > size as f64;
        let of_switch = |switch: usize| self.rates[switch * size..][..size].iter().sum();
        let of_class = |class: usize| self.rates.iter().skip(class).step_by(size).sum();
        (
            (0..size).filter(|switch| too_much(of_switch(*switch))).collect(),
            (0..size).filter(|class| too_much(of_class(*class))).collect(),
        )
    }
}

/// Poisson arrivals at the queues of the first stage.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// Distribution of each queue's arrivals; `None` if its rate is 0.
    distributions: Vec<Option<Poisson<f64>>>,
    rng: ChaCha8Rng,
    /// Number of packets that arrive at each queue in the current slot, as `[switch, class]`.
    counts: Vec<u32>,
}

impl Arrivals {
    /// Creates random arrivals with the given rates.
    pub fn new(rates: &Rates, rng: ChaCha8Rng) -> Self {
        let distributions = rates.rates.iter().map(|rate| Poisson::new(*rate).ok()).collect();
        Self { distributions, rng, counts: vec![0; rates.rates.len()] }
    }

    /// Draws the numbers of packets that arrive in the next slot, as `[switch, class]`.
    pub fn draw(&mut self) -> &[u32] {
        for (count, distribution) in self.counts.iter_mut().zip(&self.distributions) {
            *count = distribution.map_or(0, |distribution| distribution.sample(&mut self.rng) as u32);
        }
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(switches: usize) -> Shape {
        Shape::new(3, switches).unwrap()
    }

    fn parse(text: &str, stages: usize) -> Result<Rates, String> {
        Rates::parse(text, Path::new("r.csv"), stages).map_err(|error| error.to_string())
    }

    #[test]
    fn uniform_rates_have_the_requested_load() {
        let rates = Rates::uniform(shape(16), 0.6, 1).unwrap();
        assert!((rates.load() - 0.6).abs() < 1e-12 && (rates.total() - 153.6).abs() < 1e-9);
        assert_ne!(rates, Rates::uniform(shape(16), 0.6, 2).unwrap());
        for load in [0.0, 1.0, 1.5, -0.1, f64::NAN] {
            let text = Rates::uniform(shape(4), load, 1).unwrap_err().to_string();
            assert_eq!(text, format!("load is {load}, expected a number above 0 and below 1"));
        }
    }

    #[test]
    fn rate_files_round_trip() {
        let rates = Rates::uniform(shape(5), 0.5, 3).unwrap();
        assert_eq!(parse(&rates.to_csv(), 3).unwrap(), rates);
        assert_eq!(parse("\u{feff}\"0.5\", 0\r\n\r\n0,\"1\"\r\n", 3).unwrap().all(), [0.5, 0.0, 0.0, 1.0]);
        let text = |csv: &str| parse(csv, 3).unwrap_err();
        assert_eq!(text(""), "r.csv: switches is 0, expected 1 to 256");
        assert_eq!(text("0.1,0.2\n\n0.1\n"), "r.csv: number of rates in line 3 is 1, expected 2");
        let expected = "expected a number >= 0";
        assert_eq!(
            text("0.1,-2\n0,0\n"),
            format!("r.csv, line 1: rate of switch 0, class 1 is \"-2\", {expected}")
        );
        assert_eq!(
            text("0,0\n\"0,5\",0\n"),
            format!("r.csv, line 2: rate of switch 1, class 0 is \"0,5\", {expected}")
        );
        assert_eq!(text("1,1\n1,1\n"), "r.csv: load is 1, expected a number above 0 and below 1");
    }

    #[test]
    fn arrivals_have_the_mean_and_variance_of_their_rate() {
        const SLOTS: usize = 20_000;
        let rates = parse("0.2,1.4\n0,0.4\n", 2).unwrap();
        let mut arrivals = Arrivals::new(&rates, stream(1, Purpose::Arrivals, 0));
        let mut sums = [[0.0; 2]; 4];
        for _ in 0..SLOTS {
            for (sum, count) in sums.iter_mut().zip(arrivals.draw()) {
                sum[0] += f64::from(*count);
                sum[1] += f64::from(*count).powi(2);
            }
        }
        for (sum, rate) in sums.iter().zip(rates.all()) {
            let mean = sum[0] / SLOTS as f64;
            let variance = sum[1] / SLOTS as f64 - mean * mean;
            assert!(
                (mean - rate).abs() < 0.04 && (variance - rate).abs() < 0.06,
                "{rate}: {mean}, {variance}"
            );
        }
    }

    #[test]
    fn overloaded_inputs_and_outputs_are_detected() {
        assert_eq!(parse("1.5,1\n0,0.5\n", 2).unwrap().overloaded(), (vec![0], vec![]));
        assert_eq!(parse("1.5,0\n1.5,0.5\n", 2).unwrap().overloaded(), (vec![], vec![0]));
    }
}
