//! Grids of hyper-parameters: `--grid NAME=VALUE,VALUE` and the combinations of several of them.

use std::str::FromStr;

use anyhow::{Context as _, bail};

/// Values of one hyper-parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// Name of the hyper-parameter.
    pub(crate) name: String,
    /// Values, in the syntax that `--set` accepts.
    pub(crate) values: Vec<String>,
}

impl FromStr for Axis {
    type Err = anyhow::Error;

    /// Parses `NAME=VALUE,VALUE`. Commas within brackets, braces or quotation marks belong to a value.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (name, values) = text.split_once('=').context("expected NAME=VALUE,VALUE")?;
        let values = split(values);
        if name.is_empty() || values.iter().any(String::is_empty) {
            bail!("expected NAME=VALUE,VALUE without empty names or values");
        }
        for (at, value) in values.iter().enumerate() {
            if values[..at].contains(value) {
                bail!("the value {value} occurs twice");
            }
        }
        Ok(Self { name: name.to_owned(), values })
    }
}

fn split(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let (mut depth, mut is_quoted) = (0_u32, false);
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '[' | '{' if !is_quoted => depth += 1,
            ']' | '}' if !is_quoted => depth = depth.saturating_sub(1),
            ',' if depth == 0 && !is_quoted => {
                values.push(String::new());
                continue;
            }
            _ => {}
        }
        values.last_mut().expect("there is at least one value").push(letter);
    }
    values
}

/// Combination of one value for each hyper-parameter of a grid, as pairs of name and value.
pub(crate) type Settings = Vec<(String, String)>;

/// Returns all combinations of the values of the axes. The last axis varies fastest. If there are no axes, returns one
/// empty combination.
pub(crate) fn combinations(axes: &[Axis]) -> Vec<Settings> {
    axes.iter().fold(vec![Settings::new()], |combinations, Axis { name, values }| {
        let extend = |settings: Settings| {
            values.iter().map(move |value| [&settings[..], &[(name.clone(), value.clone())]].concat())
        };
        combinations.into_iter().flat_map(extend).collect()
    })
}

/// Name of the configuration of a sweep without a grid.
const PRESET: &str = "preset";

/// Returns the name of a combination in tables and figures, such as `gamma=0.99, epochs=4`.
pub(crate) fn name(settings: &Settings) -> String {
    if settings.is_empty() {
        return PRESET.to_owned();
    }
    settings.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

/// Returns the name of a combination's directory, such as `gamma=0.99,epochs=4`.
pub(crate) fn directory(settings: &Settings) -> String {
    let is_kept = |letter: char| letter.is_alphanumeric() || "=,.+-_".contains(letter);
    name(settings)
        .replace(", ", ",")
        .chars()
        .map(|letter| if is_kept(letter) { letter } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(text: &str) -> Axis {
        text.parse().unwrap()
    }

    #[test]
    fn commas_within_brackets_and_quotation_marks_belong_to_a_value() {
        assert_eq!(axis("gamma=0.9,0.99").values, ["0.9", "0.99"]);
        assert_eq!(axis("hidden=[64,64],[16]").values, ["[64,64]", "[16]"]);
        let prioritisation = r#"prioritisation=null,{"alpha":0.6,"beta":0.4},"a,]b""#;
        assert_eq!(axis(prioritisation).values, ["null", r#"{"alpha":0.6,"beta":0.4}"#, r#""a,]b""#]);
    }

    #[test]
    fn incomplete_and_repeated_values_are_refused() {
        let error = |text: &str| text.parse::<Axis>().unwrap_err().to_string();
        assert_eq!(error("gamma"), "expected NAME=VALUE,VALUE");
        for text in ["=0.9", "gamma=", "gamma=0.9,", "gamma=,0.9"] {
            assert!(error(text).contains("without empty names or values"), "{text}");
        }
        assert_eq!(error("gamma=0.9,0.99,0.9"), "the value 0.9 occurs twice");
    }

    #[test]
    fn combinations_contain_each_pair_of_values_once() {
        let combinations = combinations(&[axis("gamma=0.9,0.99"), axis("hidden=[64,64],[16]")]);
        let names: Vec<_> = combinations.iter().map(name).collect();
        assert_eq!(
            names,
            [
                "gamma=0.9, hidden=[64,64]",
                "gamma=0.9, hidden=[16]",
                "gamma=0.99, hidden=[64,64]",
                "gamma=0.99, hidden=[16]"
            ]
        );
        assert_eq!(directory(&combinations[0]), "gamma=0.9,hidden=_64,64_");
        assert_eq!(super::combinations(&[]), [Settings::new()]);
        assert_eq!(directory(&Settings::new()), "preset");
    }
}
