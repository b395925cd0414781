//! List of the steps of a reproduction.

use std::fmt::Write as _;

use iswitch_manual::{output, print_line};
use serde::Serialize;

use crate::recipe::Study;
use crate::run::{Steps, Task};

/// Entry of the list. The keys of the JSON object are part of the public interface and must not change.
#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    /// Approximate duration on two cores with real data, in minutes.
    expected_minutes: f64,
    /// Whether the step runs only with `--long`.
    long: bool,
    /// Whether the output directory contains the results of all commands.
    complete: bool,
    /// Measured duration in seconds, if the step is complete.
    seconds: Option<f64>,
    /// Data files that were not given and are replaced by synthetic data.
    synthetic: Vec<&'static str>,
    commands: Vec<String>,
}

/// Prints the steps with their state, duration and commands.
///
/// # Errors
/// Fails if the output directory contains results of other commands, or if standard output cannot be written to.
pub(crate) fn print(study: Study, run: &Steps<'_>, is_json: bool) -> anyhow::Result<()> {
    let (_, durations) = run.results()?;
    let entry = |(step, seconds): (_, Option<f64>)| {
        let step: &crate::recipe::Step = step;
        Entry {
            name: &step.name,
            expected_minutes: step.minutes,
            long: step.long,
            complete: seconds.is_some(),
            seconds,
            synthetic: run.mode.missing(step),
            commands: run.tasks(step).iter().map(Task::command).collect(),
        }
    };
    let entries: Vec<_> = run.recipe.steps.iter().zip(durations).map(entry).collect();
    if is_json {
        #[derive(Serialize)]
        struct List<'a> {
            study: &'static str,
            steps: Vec<Entry<'a>>,
        }
        print_line!("{}", serde_json::to_string(&List { study: study.name(), steps: entries })?)?;
    } else {
        output::print(format_args!("{}", text(&entries)))?;
    }
    Ok(())
}

fn text(entries: &[Entry<'_>]) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in entries {
        let state = if entry.complete { "complete" } else { "missing" };
        let long = if entry.long { ", needs --long" } else { "" };
        let name = entry.name;
        let _ = write!(text, "{name:width$}  {state:8}  about {}", duration(entry.expected_minutes * 60.0));
        let _ = match entry.seconds {
            Some(seconds) => writeln!(text, "{long}; took {}", duration(seconds)),
            None => writeln!(text, "{long}"),
        };
        if !entry.synthetic.is_empty() {
            let names: Vec<_> = entry.synthetic.iter().map(|name| format!("${name}")).collect();
            let _ = writeln!(
                text,
                "    synthetic data, because these files were not given: {}",
                names.join(", ")
            );
        }
        let mut commands = entry.commands.iter();
        for command in commands.by_ref().take(1) {
            let _ = writeln!(text, "    {command}");
        }
        if commands.len() > 0 {
            let _ = writeln!(text, "    and {} more commands for other inputs", commands.len());
        }
    }
    text
}

/// Returns a duration with one unit, such as `3 min`.
fn duration(seconds: f64) -> String {
    match seconds {
        it if it < 99.5 => format!("{} s", it.max(1.0).round()),
        it if it < 99.5 * 60.0 => format!("{} min", (it / 60.0).round()),
        it => format!("{} h", (it / 3600.0).round()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_one_unit() {
        assert_eq!(duration(0.2), "1 s");
        assert_eq!(duration(99.0), "99 s");
        assert_eq!(duration(600.0), "10 min");
        assert_eq!(duration(3.0 * 3600.0), "3 h");
    }
}
