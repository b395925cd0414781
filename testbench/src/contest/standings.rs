//! Runs of all contenders, turn by turn.

use serde_json::Value;

use super::Spread;

/// Runs of all contenders; the first row is the reference.
#[derive(Clone, Debug)]
pub struct Standings<T, R> {
    /// One row for each contender, in the order in which they were given.
    pub rows: Vec<Row<T, R>>,
}

/// Runs of one contender.
#[derive(Clone, Debug)]
pub struct Row<T, R> {
    /// The contender.
    pub contender: T,
    /// Runs of the contender, by turn.
    pub runs: Vec<R>,
}

impl<T, R> Row<T, R> {
    /// Returns the spread, over the turns, of the quantity that `value` extracts from each run.
    ///
    /// # Panics
    /// Panics if there was no turn.
    pub fn spread(&self, value: impl Fn(&R) -> f64) -> Spread {
        Spread::of(self.runs.iter().map(value))
    }

    /// Returns the spread, over the turns, of a quantity that `value` computes from this contender's run and another
    /// contender's run of the same turn.
    ///
    /// # Panics
    /// Panics if the contenders have no turn in common.
    pub fn beside(&self, other: &Self, value: impl Fn(&R, &R) -> f64) -> Spread {
        Spread::of(self.runs.iter().zip(&other.runs).map(|(run, other)| value(run, other)))
    }

    /// Returns a quantity of this contender divided by that of another contender in the same turn, as a spread over the
    /// turns.
    ///
    /// # Panics
    /// Panics if the contenders have no turn in common.
    pub fn ratio_to(&self, other: &Self, value: impl Fn(&R) -> f64) -> Spread {
        self.beside(other, |run, other| value(run) / value(other))
    }
}

impl<T, R> Standings<T, R> {
    /// Returns the first contender, with which all others are compared.
    ///
    /// # Panics
    /// Panics if there are no contenders.
    pub fn reference(&self) -> &Row<T, R> {
        &self.rows[0]
    }

    /// Returns the row with the smallest median of `value` among the contenders that `is_meant` selects.
    pub fn least(&self, is_meant: impl Fn(&T) -> bool, value: impl Fn(&R) -> f64) -> Option<&Row<T, R>> {
        let rows = self.rows.iter().filter(|row| is_meant(&row.contender));
        rows.min_by(|a, b| a.spread(&value).median.total_cmp(&b.spread(&value).median))
    }

    /// Returns a note that explains the values in a figure, such as `median of 5 runs; whiskers: minimum to maximum`.
    pub fn note(&self) -> String {
        match self.rows.first().map_or(0, |row| row.runs.len()) {
            1 => "one run".to_owned(),
            2 => "greater of 2 runs; whiskers: minimum to maximum".to_owned(),
            runs => format!("median of {runs} runs; whiskers: minimum to maximum"),
        }
    }

    /// Returns a JSON array with the value of `row` for each contender.
    pub fn json(&self, row: impl Fn(&Row<T, R>) -> Value) -> Value {
        self.rows.iter().map(row).collect()
    }
}

impl<T, R> FromIterator<(T, Vec<R>)> for Standings<T, R> {
    fn from_iter<I: IntoIterator<Item = (T, Vec<R>)>>(rows: I) -> Self {
        Self { rows: rows.into_iter().map(|(contender, runs)| Row { contender, runs }).collect() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn standings() -> Standings<&'static str, f64> {
        [("a", vec![4.0, 2.0, 9.0]), ("b", vec![2.0, 4.0, 3.0]), ("c", vec![8.0, 8.0, 8.0])]
            .into_iter()
            .collect()
    }

    #[test]
    fn ratios_compare_runs_of_the_same_turn() {
        let standings = standings();
        let ratio = standings.rows[1].ratio_to(standings.reference(), |run| *run);
        // The ratio of the medians would be 0.75.
        assert_eq!((ratio.least, ratio.median, ratio.greatest), (1.0 / 3.0, 0.5, 2.0));
        let excess = standings.rows[2].beside(standings.reference(), |run, reference| run - reference);
        assert_eq!((excess.least, excess.median, excess.greatest), (-1.0, 4.0, 6.0));
    }

    #[test]
    fn the_lowest_median_wins() {
        let standings = standings();
        let least = |names: &[&str]| {
            standings.least(|contender| names.contains(contender), |run| *run).map(|row| row.contender)
        };
        assert_eq!((least(&["a", "b", "c"]), least(&["a", "c"]), least(&[])), (Some("b"), Some("a"), None));
        let json = standings.json(|row| json!([row.contender, row.spread(|run| *run).median]));
        assert_eq!(json, json!([["a", 4.0], ["b", 3.0], ["c", 8.0]]));
    }
}
