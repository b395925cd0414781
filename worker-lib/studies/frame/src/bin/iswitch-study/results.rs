//! Results of steps, and the table cells that are produced from them.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use iswitch_cli::mean::Mean;
use serde_json::Value;

use crate::page::{self, Number};
use crate::recipe::{Across, Mode, Pick, Recipe};

/// Tolerance for comparing the numbers that select a result.
const SAME: f64 = 1e-9;

/// Results of all steps that are complete: for each step, the inputs of its commands and the objects that the commands
/// printed.
pub(crate) type Results = BTreeMap<String, Vec<(Option<String>, Value)>>;

/// Policy objects in the results of a step, each with the input of the command that printed it.
type Records<'a> = Vec<(Option<String>, &'a Value)>;

/// Content of one cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// The cell is copied from the page.
    Same,
    /// No command produces the numbers of this cell.
    Skipped,
    /// The cell needs a step that is not complete.
    Missing(String),
    /// Text of the cell, with its numbers.
    Made(String, Vec<Option<f64>>),
}

/// Results from which cells are produced.
pub(crate) struct Maker<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) mode: &'a Mode,
    pub(crate) results: &'a Results,
}

impl Maker<'_> {
    /// Produces a cell in the format of `model`, the corresponding cell of the page.
    ///
    /// # Errors
    /// Fails if the results do not contain the numbers that `pick` selects.
    pub(crate) fn cell(&self, pick: &Pick, model: &str) -> anyhow::Result<Cell> {
        let numbers = page::numbers(model);
        if numbers.is_empty() || pick.keep == Some(true) {
            return Ok(Cell::Same);
        }
        if pick.skip == Some(true) {
            return Ok(Cell::Skipped);
        }
        let mut values = Vec::new();
        for part in pick.parts.as_deref().unwrap_or(&[Pick::default()]) {
            match self.values(&part.or(pick))? {
                Ok(found) => values.extend(found),
                Err(step) => return Ok(Cell::Missing(step)),
            }
        }
        if values.len() < numbers.len() {
            bail!("the cell {model:?} has {} numbers, but the results have {}", numbers.len(), values.len());
        }
        values.truncate(numbers.len());
        let texts: Vec<_> = numbers.iter().zip(&values).map(|(number, value)| text(number, *value)).collect();
        Ok(Cell::Made(page::replace(model, &numbers, &texts), values))
    }

    /// Returns the numbers that `pick` selects, or the name of the step that is not complete.
    fn values(&self, pick: &Pick) -> anyhow::Result<Result<Vec<Option<f64>>, String>> {
        let name = pick.step.as_deref().context("a cell has no step")?;
        let Some(records) = self.records(pick, name)? else { return Ok(Err(name.to_owned())) };
        let paths =
            pick.values.as_deref().with_context(|| format!("a cell of the step {name} has no values"))?;
        let mut rows = Vec::new();
        for (input, record) in &records {
            let mut row: Vec<_> = paths.iter().map(|path| number(record, path)).collect();
            if let Some(over) = &pick.over {
                // The divisor comes from the results for the same input.
                let other = Pick { each: over.each.clone().or(input.clone()), ..over.or(pick) };
                let other = Pick { over: None, across: None, ..other };
                match self.divisor(&other)? {
                    Ok(by) => row.iter_mut().for_each(|value| *value = value.zip(by).map(|(a, b)| a / b)),
                    Err(step) => return Ok(Err(step)),
                }
            }
            let shown = |value: f64, path: &str| {
                let value = value / pick.scale.unwrap_or(1.0);
                let value = if pick.invert == Some(true) { 1.0 / value } else { value };
                // The half-width of an interval does not change when 1 is subtracted.
                let origin = if path.ends_with("ci95") { 0.0 } else { 1.0 };
                if pick.percent == Some(true) { (value - origin) * 100.0 } else { value }
            };
            let row = row.into_iter().zip(paths).map(|(value, path)| value.map(|value| shown(value, path)));
            rows.push(row.collect::<Vec<_>>());
        }
        summary(pick, rows).map(Ok).with_context(|| format!("step {name}"))
    }

    fn divisor(&self, pick: &Pick) -> anyhow::Result<Result<Option<f64>, String>> {
        let plain = Pick { scale: None, invert: None, percent: None, parts: None, ..pick.clone() };
        Ok(self.values(&plain)?.map(|values| values.first().copied().flatten()))
    }

    /// Returns the results of a step that `pick` selects, with their inputs; `None` if the step is not complete.
    fn records<'b>(&'b self, pick: &Pick, name: &str) -> anyhow::Result<Option<Records<'b>>> {
        let step = self.recipe.step(name).with_context(|| format!("there is no step {name}"))?;
        let found = self.results.get(name).map_or(&[][..], Vec::as_slice);
        let mut records = Vec::new();
        for input in self.mode.inputs(step) {
            if pick.each.is_some() && pick.each != input {
                continue;
            }
            let Some((_, result)) = found.iter().find(|(of, _)| *of == input) else { return Ok(None) };
            let all = result["results"].as_array().map_or(std::slice::from_ref(result), Vec::as_slice);
            records.extend(all.iter().filter(|it| self.is_picked(pick, it)).map(|it| (input.clone(), it)));
        }
        if records.is_empty() && pick.each.is_some() && self.mode.is_quick {
            // A quick reproduction has fewer inputs.
            return Ok(None);
        }
        if records.is_empty() {
            bail!("step {name}: there is no result of policy {:?} with {:?}", pick.policy, pick.with);
        }
        Ok(Some(records))
    }

    fn is_picked(&self, pick: &Pick, record: &Value) -> bool {
        let policy = pick.policy.as_deref().filter(|policy| *policy != "*");
        let is_policy = policy.is_none_or(|policy| {
            record["policy"].as_str() == Some(self.mode.policy(&self.recipe.quick, policy))
        });
        is_policy && pick.with.iter().all(|(field, value)| is_same(&record[field.as_str()], value))
    }
}

fn is_same(found: &Value, wanted: &Value) -> bool {
    match (found.as_f64(), wanted.as_f64()) {
        (Some(found), Some(wanted)) => (found - wanted).abs() <= SAME * wanted.abs().max(1.0),
        _ => found == wanted,
    }
}

/// Returns the number at a path such as `cct.mean.mean`; of several paths separated by `|`, the greatest number.
fn number(record: &Value, paths: &str) -> Option<f64> {
    let of = |path: &str| {
        path.split('.').try_fold(record, |value, name| match name.parse::<usize>() {
            Ok(index) if value.is_array() => value.get(index),
            _ => value.get(name),
        })
    };
    paths.split('|').filter_map(|path| of(path)?.as_f64()).max_by(f64::total_cmp)
}

fn summary(pick: &Pick, mut rows: Vec<Vec<Option<f64>>>) -> anyhow::Result<Vec<Option<f64>>> {
    let Some(across) = pick.across else {
        if rows.len() > 1 {
            bail!("{} results match {:?} with {:?}, expected 1", rows.len(), pick.policy, pick.with);
        }
        return Ok(rows.pop().unwrap_or_default());
    };
    let all: Option<Vec<f64>> = rows.into_iter().flatten().collect();
    let Some(all) = all.filter(|all| !all.is_empty()) else { return Ok(vec![None, None]) };
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Ok(match across {
        Across::Mean => {
            let Mean { mean, ci95 } = Mean::of(&all);
            vec![Some(mean), ci95]
        }
        Across::Range => vec![Some(least), Some(most)],
        Across::Max => vec![Some(most)],
    })
}

/// Formats a number like the corresponding number of the page; returns `-` if there is no number.
fn text(form: &Number, value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let decimals = form.decimals;
    if form.has_plus { format!("{value:+.decimals$}") } else { format!("{value:.decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Data;
    use serde_json::json;

    const RECIPE: &str = r#"
[quick]
policies = { "b:20" = "b:2" }
[[step]]
name = "one"
command = "route compare"
minutes = 1
[[step]]
name = "many"
command = "route compare"
minutes = 1
each = ["1", "2"]
[[table]]
section = ""
columns = []
rows = []
"#;

    fn results() -> Results {
        let one = json!({"results": [
            {"policy": "a", "load": 0.5, "time": {"mean": 80.0, "ci95": null}, "bound": 50.0, "other": 64.0},
            {"policy": "b:20", "load": 0.5, "time": {"mean": 100.0, "ci95": 2.5}, "bound": 50.0, "other": 4.0},
            {"policy": "a", "load": 0.6, "time": {"mean": 7.0, "ci95": 1.0}, "bound": 5.0, "other": 4.0},
        ]});
        let many =
            |time: f64| json!({"results": [{"policy": "a", "time": time}, {"policy": "b", "time": 2.0}]});
        let many = vec![(Some("1".to_owned()), many(1.0)), (Some("2".to_owned()), many(3.0))];
        [("one".to_owned(), vec![(None, one)]), ("many".to_owned(), many)].into()
    }

    fn cell(pick: &str, model: &str) -> anyhow::Result<Cell> {
        let (recipe, results) = (Recipe::parse(RECIPE).unwrap(), results());
        let mode = Mode { is_quick: false, data: Data::new() };
        let maker = Maker { recipe: &recipe, mode: &mode, results: &results };
        maker.cell(&toml::from_str(pick).unwrap(), model)
    }

    fn text(pick: &str, model: &str) -> String {
        match cell(pick, model).unwrap() {
            Cell::Made(text, _) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_cell_has_the_form_of_the_page() {
        let pick = "step = 'one'\npolicy = 'b:20'\nvalues = ['time.mean', 'time.ci95']\n";
        assert_eq!(text(pick, "1.50 +/- 0.1 d"), "100.00 +/- 2.5 d");
        assert_eq!(text(pick, "**3**"), "**100**");
        assert_eq!(cell(pick, "not measured").unwrap(), Cell::Same);
        assert_eq!(cell(&format!("{pick}keep = true"), "7").unwrap(), Cell::Same);
        assert_eq!(cell(&format!("{pick}skip = true"), "7").unwrap(), Cell::Skipped);
        assert_eq!(text(&format!("{pick}percent = true"), "2.6 +/- 1.1 %"), "9900.0 +/- 250.0 %");
        let a = "step = 'one'\npolicy = 'a'\nwith = { load = 0.5 }\nvalues = ['time.mean', 'time.ci95']\n";
        assert_eq!(text(a, "1 +/- 1"), "80 +/- -");
    }

    #[test]
    fn numbers_are_divided_scaled_and_summarised() {
        let a = "step = 'one'\npolicy = 'a'\nwith = { load = 0.5 }\nvalues = ['time.mean']\n";
        assert_eq!(text(&format!("{a}over = {{ policy = 'b:20' }}\npercent = true"), "-3.0 %"), "-20.0 %");
        assert_eq!(text(&format!("{a}over = {{ values = ['bound|other'] }}"), "0.000"), "1.250");
        assert_eq!(text(&format!("{a}scale = 40\ninvert = true"), "0.00"), "0.50");
        let many = "step = 'many'\npolicy = 'a'\nvalues = ['time']\n";
        assert_eq!(text(&format!("{many}across = 'mean'"), "1.0 +/- 1.0"), "2.0 +/- 12.7");
        assert_eq!(
            text(&format!("{many}over = {{ policy = 'b' }}\nacross = 'range'"), "1.0 to 9.0"),
            "0.5 to 1.5"
        );
        assert_eq!(text(&format!("{many}each = '2'"), "1"), "3");
        let parts =
            "step = 'many'\neach = '2'\nvalues = ['time']\nparts = [{ policy = 'a' }, { policy = 'b' }]";
        assert_eq!(text(parts, "1 / 1"), "3 / 2");
    }

    #[test]
    fn selections_without_a_single_result_are_reported() {
        let error = |pick: &str| format!("{:#}", cell(pick, "1").unwrap_err());
        let many = "step = 'many'\npolicy = 'a'\nvalues = ['time']\n";
        assert!(error(many).contains("2 results match"), "{}", error(many));
        assert!(error("step = 'one'\npolicy = 'c'\nvalues = ['time']").contains("no result of policy"));
        assert!(error("step = 'two'\nvalues = ['time']").contains("there is no step two"));
    }
}
