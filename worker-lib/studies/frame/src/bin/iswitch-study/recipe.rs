//! Recipes: the commands that produce the tables and figures of a results page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::page::Page;

/// Study whose results page is reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Study {
    Routing,
    Coflow,
    Placement,
}

impl Study {
    /// Returns the name of the study.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Routing => "routing",
            Self::Coflow => "coflow",
            Self::Placement => "placement",
        }
    }

    fn texts(self) -> (&'static str, &'static str) {
        macro_rules! texts {
            ($name:literal) => {
                (
                    include_str!(concat!("recipes/", $name, ".toml")),
                    include_str!(concat!("../../../../../../docs/results/", $name, ".md")),
                )
            };
        }
        match self {
            Self::Routing => texts!("routing"),
            Self::Coflow => texts!("coflow"),
            Self::Placement => texts!("placement"),
        }
    }

    /// Returns the recipe of the study and its results page.
    ///
    /// # Errors
    /// Fails if the recipe is invalid, which a test of this program rules out.
    pub(crate) fn load(self) -> anyhow::Result<(Recipe, Page)> {
        let (recipe, page) = self.texts();
        let (recipe, page) = (Recipe::parse(recipe)?, Page::parse(page));
        recipe.check(&page)?;
        Ok((recipe, page))
    }
}

/// Commands, and the tables and figures that are produced from their results.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipe {
    /// Texts that replace `@NAME` in commands.
    #[serde(default)]
    texts: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) quick: Quick,
    /// Steps, each of which may refer only to the steps before it.
    #[serde(rename = "step")]
    pub(crate) steps: Vec<Step>,
    #[serde(rename = "table")]
    pub(crate) tables: Vec<TableRecipe>,
    #[serde(rename = "figure", default)]
    pub(crate) figures: Vec<Figure>,
    /// Tables and figures of the page that no command produces.
    #[serde(default)]
    pub(crate) left_out: Vec<LeftOut>,
}

/// Changes to the commands for a quick reproduction.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Quick {
    /// Option values. Each replaces the value in the command if the command has the option.
    #[serde(default)]
    pub(crate) options: BTreeMap<String, String>,
    /// Policies that are replaced with faster ones, such as a search with fewer evaluations.
    #[serde(default)]
    pub(crate) policies: BTreeMap<String, String>,
}

/// Step: a command, or the same command for several inputs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Name of the step and of its directory.
    pub(crate) name: String,
    /// Words of the command, separated by white space. The first word is `route`, `coflow` or `place`, or `python3`
    /// for a program of the page. `$NAME` is the path of a data file, `$EACH` is the input, and `STEP/FILE` is a file
    /// of a step.
    pub(crate) command: String,
    /// Approximate duration in minutes on two cores, with real data.
    pub(crate) minutes: f64,
    /// Whether the step runs only on request, because it takes hours.
    #[serde(default)]
    pub(crate) long: bool,
    /// Inputs for which the command runs once each; without inputs, it runs once.
    #[serde(default)]
    pub(crate) each: Vec<String>,
    /// Inputs of a quick reproduction.
    #[serde(default)]
    pub(crate) quick_each: Vec<String>,
    /// Words that a quick reproduction appends to the command.
    #[serde(default)]
    pub(crate) quick: String,
    /// Words that are appended to the command if a data file of the command is missing.
    #[serde(default)]
    pub(crate) synthetic: String,
    /// Heading above the program on the page that the `python3` command runs.
    #[serde(default)]
    pub(crate) program: Option<String>,
    /// File for the standard output of a program, relative to the directory of the step.
    #[serde(default)]
    pub(crate) output: Option<String>,
    /// Run directory of a training run, whose learning curve becomes part of the result.
    #[serde(default)]
    pub(crate) curve: Option<String>,
}

/// Table of the page.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableRecipe {
    pub(crate) section: String,
    #[serde(default = "one")]
    pub(crate) number: usize,
    /// Origin of all cells, unless a column or row specifies another one.
    #[serde(default)]
    pub(crate) cells: Pick,
    /// Origin of the cells of each column except the first, which contains the row names.
    pub(crate) columns: Vec<Pick>,
    /// Origin of the cells of each row.
    pub(crate) rows: Vec<Row>,
}

fn one() -> usize {
    1
}

impl TableRecipe {
    /// Checks that the page has the table, with the same numbers of columns and rows as in the recipe.
    fn check(&self, page: &Page) -> anyhow::Result<()> {
        let Self { section, number, columns, rows, .. } = self;
        let found = page.table(section, *number);
        let found =
            found.with_context(|| format!("section {section:?} of the page has no table {number}"))?;
        let (width, height) = (found.header.len() - 1, found.rows.len());
        if (columns.len(), rows.len()) != (width, height) {
            bail!(
                "table {number} in section {section:?} has {} columns and {} rows, expected {width} and {height}",
                columns.len(),
                rows.len()
            );
        }
        Ok(())
    }
}

/// Row of a table: a policy, or any other selection.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Row {
    Policy(String),
    /// One selection for each cell.
    Cells(Vec<Pick>),
    Pick(Pick),
}

impl Row {
    /// Returns the row's selection for the cell in a column, without the fields that the column and the table
    /// determine.
    pub(crate) fn pick(&self, column: usize) -> Pick {
        match self {
            Self::Policy(policy) => Pick { policy: Some(policy.clone()), ..Pick::default() },
            Self::Cells(cells) => cells.get(column).cloned().unwrap_or_default(),
            Self::Pick(pick) => pick.clone(),
        }
    }
}

/// Selection of a cell's numbers from the results of a step. An absent field takes its value from the column or the
/// table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pick {
    /// Step whose results contain the numbers.
    pub(crate) step: Option<String>,
    /// Input of the step whose results are selected; if it is absent, the results for all inputs are selected.
    pub(crate) each: Option<String>,
    /// Name of the policy, or `*` for all policies.
    pub(crate) policy: Option<String>,
    /// Values that other fields of the result must have.
    #[serde(default)]
    pub(crate) with: BTreeMap<String, Value>,
    /// Paths of the numbers in a result, such as `cct.mean.mean`. If several paths are given, separated by `|`, the
    /// greatest of their numbers is used.
    pub(crate) values: Option<Vec<String>>,
    /// Divisor of all numbers, such as 86400 for days.
    pub(crate) scale: Option<f64>,
    /// Selection of the number by which all numbers are divided; absent fields take their values from the cell's
    /// selection.
    pub(crate) over: Option<Box<Pick>>,
    /// Whether the reciprocal of each number is shown.
    pub(crate) invert: Option<bool>,
    /// Whether the difference to 1 is shown, in percent.
    pub(crate) percent: Option<bool>,
    /// Method of summarising the numbers of several results.
    pub(crate) across: Option<Across>,
    /// Selections whose numbers appear one after another in the cell.
    pub(crate) parts: Option<Vec<Pick>>,
    /// Whether the cell is copied from the page, because it contains text or its numbers come from elsewhere, such as
    /// a paper.
    pub(crate) keep: Option<bool>,
    /// Whether the cell is left without a number, because no command produces one.
    pub(crate) skip: Option<bool>,
}

/// Summary of the numbers of several results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Across {
    /// Mean and half the width of its 95 % confidence interval.
    Mean,
    /// Smallest and greatest number.
    Range,
    /// Greatest number.
    Max,
}

impl Pick {
    /// Returns the selection `self`, with its absent fields taken from `other`.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let mut with = other.with.clone();
        with.extend(self.with.clone());
        Self {
            step: self.step.clone().or_else(|| other.step.clone()),
            each: self.each.clone().or_else(|| other.each.clone()),
            policy: self.policy.clone().or_else(|| other.policy.clone()),
            with,
            values: self.values.clone().or_else(|| other.values.clone()),
            scale: self.scale.or(other.scale),
            over: self.over.clone().or_else(|| other.over.clone()),
            invert: self.invert.or(other.invert),
            percent: self.percent.or(other.percent),
            across: self.across.or(other.across),
            parts: self.parts.clone().or_else(|| other.parts.clone()),
            keep: self.keep.or(other.keep),
            skip: self.skip.or(other.skip),
        }
    }
}

/// Figure of the page.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    /// Name of the file beside the page.
    pub(crate) page: String,
    pub(crate) step: String,
    /// Path in the directory of the step.
    pub(crate) file: String,
}

/// Table or figure of the page that no command produces.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeftOut {
    /// Heading above the table.
    #[serde(default)]
    pub(crate) section: Option<String>,
    #[serde(default = "one")]
    pub(crate) number: usize,
    #[serde(default)]
    pub(crate) figure: Option<String>,
    pub(crate) reason: String,
}

impl Recipe {
    /// Parses a recipe.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut recipe: Self = toml::from_str(text).context("invalid recipe")?;
        for step in &mut recipe.steps {
            for (name, text) in &recipe.texts {
                step.command = step.command.replace(&format!("@{name}"), text);
            }
        }
        Ok(recipe)
    }

    /// Returns a step by its name.
    pub(crate) fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// Checks that all references exist, and that each table and figure of the page is either produced once or left
    /// out.
    ///
    /// # Errors
    /// Names the first invalid reference, or the first table or figure that is missing.
    pub(crate) fn check(&self, page: &Page) -> anyhow::Result<()> {
        let mut names = BTreeSet::new();
        for step in &self.steps {
            if let Some(needed) =
                self.needed(step).into_iter().find(|needed| !names.contains(needed.as_str()))
            {
                bail!("step {}: step {needed} must come before it", step.name);
            }
            if !names.insert(step.name.as_str()) {
                bail!("there are two steps called {}", step.name);
            }
            if let Some(section) = step.program.as_ref().filter(|section| page.program(section).is_none()) {
                bail!("step {}: the page has no program in section {section:?}", step.name);
            }
        }
        for table in &self.tables {
            table.check(page)?;
        }
        for table in &page.tables {
            let is_it = |section: &str, number| section == table.section && number == table.number;
            let made = self.tables.iter().filter(|it| is_it(&it.section, it.number)).count();
            let left =
                self.left_out.iter().filter(|it| is_it(it.section.as_deref().unwrap_or(""), it.number));
            if made + left.count() != 1 {
                bail!(
                    "table {} in section {:?} must be either produced once or left out",
                    table.number,
                    table.section
                );
            }
        }
        for figure in &page.figures {
            let made = self.figures.iter().filter(|it| it.page == *figure).count();
            let left = self.left_out.iter().filter(|it| it.figure.as_ref() == Some(figure));
            if made + left.count() != 1 {
                bail!("the figure {figure} must be either produced once or left out");
            }
        }
        match self.figures.iter().find(|figure| !names.contains(figure.step.as_str())) {
            Some(figure) => bail!("figure {}: there is no step called {}", figure.page, figure.step),
            None => Ok(()),
        }
    }

    /// Returns the names of the steps whose files the command of a step uses.
    pub(crate) fn needed(&self, step: &Step) -> Vec<String> {
        let words = step.command.split_whitespace().filter_map(|word| word.split_once('/'));
        let names = words.map(|(name, _)| name).filter(|name| *name != step.name);
        let known = names.filter(|name| self.step(name).is_some());
        known.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Data files, by the names that recipes use.
pub(crate) type Data = BTreeMap<&'static str, Option<PathBuf>>;

/// Mode in which commands run.
#[derive(Clone, Debug)]
pub(crate) struct Mode {
    /// Whether small versions of the commands run.
    pub(crate) is_quick: bool,
    /// Data files.
    pub(crate) data: Data,
}

impl Mode {
    /// Returns the inputs of a step; `None` stands for a step without inputs.
    pub(crate) fn inputs(&self, step: &Step) -> Vec<Option<String>> {
        let each = if self.is_quick && !step.quick_each.is_empty() { &step.quick_each } else { &step.each };
        if each.is_empty() { vec![None] } else { each.iter().cloned().map(Some).collect() }
    }

    /// Returns the words of a step's command for one input.
    pub(crate) fn words(&self, quick: &Quick, step: &Step, input: Option<&str>) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut is_synthetic = false;
        for word in step.command.split_whitespace() {
            let data = word.strip_prefix('$').and_then(|name| self.data.get(name));
            match data {
                Some(Some(path)) => words.push(path.display().to_string()),
                Some(None) => {
                    // The option that precedes the file is of no use without it.
                    words.pop();
                    is_synthetic = true;
                }
                None => words.push(input.map_or(word.to_owned(), |input| word.replace("$EACH", input))),
            }
        }
        if is_synthetic {
            set_options(&mut words, &step.synthetic);
        }
        if self.is_quick {
            hurry(&mut words, quick);
            set_options(&mut words, &step.quick);
        }
        words
    }

    /// Returns the names of the data files that a step lacks.
    pub(crate) fn missing(&self, step: &Step) -> Vec<&'static str> {
        let names = step.command.split_whitespace().filter_map(|word| word.strip_prefix('$'));
        let data = names.filter_map(|name| self.data.get_key_value(name));
        data.filter(|(_, path)| path.is_none()).map(|(name, _)| *name).collect()
    }

    /// Returns the name of a policy in the results of this mode.
    pub(crate) fn policy<'a>(&self, quick: &'a Quick, policy: &'a str) -> &'a str {
        if self.is_quick { quick.policies.get(policy).map_or(policy, String::as_str) } else { policy }
    }
}

/// Applies the changes of a quick reproduction to a command.
fn hurry(words: &mut [String], quick: &Quick) {
    for at in 0..words.len() {
        if let Some(value) = quick.options.get(&words[at]).filter(|_| at + 1 < words.len()) {
            words[at + 1].clone_from(value);
        }
        let policy = words[at].rsplit('/').next().unwrap_or_default().to_owned();
        if let Some(other) = quick.policies.get(&policy) {
            let len = words[at].len() - policy.len();
            words[at].replace_range(len.., other);
        }
    }
}

/// Sets options of a command: pairs of an option and its value, separated by white space. An option that the command
/// already has gets the new value, except `--set`, which is repeatable.
fn set_options(words: &mut Vec<String>, options: &str) {
    let options: Vec<_> = options.split_whitespace().map(str::to_owned).collect();
    for pair in options.chunks(2) {
        match words.iter().position(|word| *word == pair[0] && pair[0] != "--set") {
            Some(at) if at + 1 < words.len() && pair.len() == 2 => words[at + 1].clone_from(&pair[1]),
            _ => words.extend_from_slice(pair),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(command: &str) -> Step {
        let text = format!(
            "[[step]]\nname = \"one\"\nminutes = 1\ncommand = \"{command}\"\n[[table]]\n\
                            section = \"\"\ncolumns = []\nrows = []\n"
        );
        Recipe::parse(&text).unwrap().steps.remove(0)
    }

    fn mode(is_quick: bool, path: Option<&str>) -> Mode {
        Mode { is_quick, data: [("TRACE", path.map(PathBuf::from)), ("OTHER", None)].into() }
    }

    #[test]
    fn the_recipes_make_or_leave_out_each_table_and_figure_of_their_pages() {
        for study in [Study::Routing, Study::Coflow, Study::Placement] {
            study.load().unwrap_or_else(|error| panic!("{}: {error:#}", study.name()));
        }
    }

    #[test]
    fn an_option_without_its_data_file_is_omitted() {
        let step = Step {
            synthetic: "--ports 9 --gpus 4".to_owned(),
            ..step("coflow compare --trace $TRACE --ports 3")
        };
        let words = |mode: &Mode| mode.words(&Quick::default(), &step, None).join(" ");
        assert_eq!(words(&mode(false, Some("/data/t"))), "coflow compare --trace /data/t --ports 3");
        assert_eq!(words(&mode(false, None)), "coflow compare --ports 9 --gpus 4");
        assert_eq!(mode(false, None).missing(&step), ["TRACE"]);
        assert!(mode(false, Some("t")).missing(&step).is_empty());
    }

    #[test]
    fn a_quick_command_has_smaller_values_and_other_policies() {
        let quick = Quick {
            options: [("--draws".to_owned(), "2".to_owned())].into(),
            policies: [("node:20".to_owned(), "node:5".to_owned())].into(),
        };
        let step = Step {
            quick: "--set a=1 --jobs 3".to_owned(),
            ..step("coflow compare one/node:20 --draws 50 --set b=$EACH")
        };
        let words = |is_quick| mode(is_quick, None).words(&quick, &step, Some("7")).join(" ");
        assert_eq!(words(false), "coflow compare one/node:20 --draws 50 --set b=7");
        assert_eq!(words(true), "coflow compare one/node:5 --draws 2 --set b=7 --set a=1 --jobs 3");
        assert_eq!(mode(true, None).policy(&quick, "node:20"), "node:5");
        assert_eq!(mode(false, None).policy(&quick, "node:20"), "node:20");
    }

    #[test]
    fn absent_fields_of_a_selection_come_from_the_column() {
        let pick = |text: &str| toml::from_str::<Pick>(text).unwrap();
        let column = pick("step = \"a\"\nvalues = [\"x\"]\nwith = { load = 0.5, slots = 2 }");
        let merged = pick("policy = \"p\"\nwith = { load = 0.6 }").or(&column);
        assert_eq!((merged.step.as_deref(), merged.policy.as_deref()), (Some("a"), Some("p")));
        assert_eq!(merged.with, [("load".to_owned(), 0.6.into()), ("slots".to_owned(), 2.into())].into());
    }
}
