//! The `iswitch study reproduce` command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use iswitch_cli::files::{lock, make_directory};
use iswitch_cli::progress::Steps as Progress;
use iswitch_cli::signals;
use iswitch_manual::{output, print_line};

use crate::list;
use crate::options::CommonArgs;
use crate::recipe::{Data, Mode, Recipe, Step, Study};
use crate::report::{self, Report, StepState};
use crate::run::{Incomplete, Steps, Task};

/// Program that may hold the lock on the output directory, and what to do about it.
const HOLDER: &str = "another reproduction";

/// Runs the missing steps of a reproduction, and writes and prints its report.
pub(crate) fn run(study: Study, data: Data, args: &CommonArgs) -> anyhow::Result<ExitCode> {
    let (recipe, page) = study.load()?;
    let data = data.into_iter().map(|(name, path)| Ok((name, path.map(|path| absolute(&path)).transpose()?)));
    let mode = Mode { is_quick: args.quick, data: data.collect::<anyhow::Result<_>>()? };
    let selected = selected(&recipe, &args.only, args.long || args.quick)?;
    let out = args.out.clone().unwrap_or_else(|| {
        let suffix = if args.quick { "-quick" } else { "" };
        PathBuf::from(format!("runs/reproduce-{}{suffix}", study.name()))
    });
    if args.list {
        let run = Steps { recipe: &recipe, page: &page, mode: &mode, out, programs: None };
        list::print(study, &run, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    make_directory(&out)?;
    let _lock = lock(&out, HOLDER)?;
    let stop = Arc::new(AtomicBool::new(false));
    signals::stop_on_signal(&stop)?;
    let run = Steps { recipe: &recipe, page: &page, mode: &mode, out: absolute(&out)?, programs: None };
    let report = reproduce(study, &run, &selected, args, &stop)?;
    if args.json {
        print_line!("{}", serde_json::to_string(&report)?)?;
    } else {
        let text = format!(
            "{}\nThe tables and figures are in {}.\n",
            report.summary(),
            out.join("report.md").display()
        );
        output::print(format_args!("{text}"))?;
    }
    if stop.load(Ordering::Relaxed) {
        eprintln!("iswitch study: stopped; repeat the command to continue");
    }
    Ok(if report.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the selected steps that are not complete, and writes the report.
pub(crate) fn reproduce(
    study: Study,
    run: &Steps<'_>,
    selected: &[&str],
    args: &CommonArgs,
    stop: &AtomicBool,
) -> anyhow::Result<Report> {
    let chosen = || run.recipe.steps.iter().filter(|step| selected.contains(&step.name.as_str()));
    if args.force {
        chosen().try_for_each(|step| run.discard(step))?;
    }
    let failed = run_steps(run, chosen(), args.quiet, stop)?;
    let (results, durations) = run.results()?;
    let steps = run.recipe.steps.iter().zip(durations);
    let steps = steps.map(|(step, seconds)| state(run, step, seconds, selected, &failed)).collect();
    let report = report::make(study, run, &results, steps)?;
    report.write(&run.out)?;
    Ok(report)
}

/// Runs the steps that are not yet complete. Returns the error of each step that failed; a failed step does not affect
/// the others, except those that use its files.
fn run_steps<'a>(
    run: &Steps<'a>,
    steps: impl Iterator<Item = &'a Step>,
    is_quiet: bool,
    stop: &AtomicBool,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut waiting: Vec<Task<'_>> = Vec::new();
    for task in steps.flat_map(|step| run.tasks(step)) {
        if run.result(&task)?.is_none() {
            waiting.push(task);
        }
    }
    let mut progress = Progress::new("commands", waiting.len() as u64, is_quiet);
    let mut failed = BTreeMap::new();
    for task in &waiting {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = task.name();
        let needed = run.recipe.needed(task.step);
        let lacking = needed.into_iter().find(|needed| failed.contains_key(needed));
        let outcome = match lacking {
            Some(step) => Err(Incomplete::Failed(anyhow::anyhow!("the step {step} failed"))),
            None => run.run(task, stop, &mut |line| {
                let separator = if line.is_empty() { "" } else { ": " };
                progress.show(&format!("{name}{separator}{line}"));
            }),
        };
        match outcome {
            Ok(()) => progress.advance(&name),
            Err(Incomplete::Stopped) => break,
            Err(Incomplete::Failed(error)) => {
                let error = iswitch_manual::describe(error.as_ref());
                progress.note(&format!("iswitch study: step {name} failed: {error}"));
                failed.insert(task.step.name.clone(), error);
            }
        }
    }
    progress.finish();
    Ok(failed)
}

fn state(
    run: &Steps<'_>,
    step: &Step,
    seconds: Option<f64>,
    selected: &[&str],
    failed: &BTreeMap<String, String>,
) -> StepState {
    let error = failed.get(&step.name).cloned();
    let state = match (seconds, &error) {
        (Some(_), _) => "complete",
        (None, Some(_)) => "failed",
        (None, None) if selected.contains(&step.name.as_str()) => "missing",
        (None, None) => "not requested",
    };
    StepState {
        name: step.name.clone(),
        commands: run.tasks(step).iter().map(Task::command).collect(),
        expected_minutes: step.minutes,
        long: step.long,
        state,
        seconds,
        synthetic: run.mode.missing(step),
        error,
    }
}

/// Returns the names of the steps to run, including those whose files they use.
///
/// # Errors
/// Fails if `only` contains a name that no step has, or requires a step that takes hours without `includes_long`.
pub(crate) fn selected<'a>(
    recipe: &'a Recipe,
    only: &[String],
    includes_long: bool,
) -> anyhow::Result<Vec<&'a str>> {
    if only.is_empty() {
        let steps = recipe.steps.iter().filter(|step| includes_long || !step.long);
        // A step that uses the files of a long step has to wait for it.
        let can_run = |step: &&Step| {
            let mut needed = recipe.needed(step).into_iter();
            includes_long || needed.all(|name| recipe.step(&name).is_some_and(|step| !step.long))
        };
        return Ok(steps.filter(can_run).map(|step| step.name.as_str()).collect());
    }
    let mut names: Vec<&str> = Vec::new();
    let mut waiting = only.to_vec();
    while let Some(name) = waiting.pop() {
        let Some(step) = recipe.step(&name) else {
            let known: Vec<_> = recipe.steps.iter().map(|step| step.name.as_str()).collect();
            bail!("--only: step is {name}, expected one of {}", known.join(", "))
        };
        waiting.extend(recipe.needed(step));
        names.push(&step.name);
    }
    if let Some(long) =
        names.iter().find(|name| !includes_long && recipe.step(name).is_some_and(|it| it.long))
    {
        bail!("--only: the step {long} takes hours; add --long to run it, or --quick to run a small version");
    }
    Ok(names)
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize().with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::page::Page;

    const PAGE: &str = "# Times\n\n| | time | slow |\n|---|---|---|\n| a | 1.50 | 4 |\n| **b** | 2.00 | |\n\n\
                        ![curve](figures/curve.svg)\n\n```python\nimport sys\nprint(sys.argv[1])\n```\n";
    const RECIPE: &str = r#"
[quick.options]
"--draws" = "1"
[[step]]
name = "words"
command = "python3 $EACH"
minutes = 0.01
each = ["x"]
program = "Times"
output = "$EACH.txt"
[[step]]
name = "times"
command = "route compare words/x.txt --draws 20 --trace $TRACE --plots times"
minutes = 0.5
[[step]]
name = "slow"
command = "route slow"
minutes = 600
long = true
[[table]]
section = "Times"
cells = { step = "times", values = ["time"] }
columns = [{}, { step = "slow" }]
rows = ["a", "b"]
[[figure]]
page = "curve.svg"
step = "times"
file = "curve.svg"
"#;
    /// Replacement for `iswitch-route` that records its calls and fails if the file `broken` exists.
    const PROGRAM: &str = r#"#!/bin/sh
echo "$*" >> calls
echo working >&2
if [ -e broken ]; then echo "the fabric is broken" >&2; exit 1; fi
[ "$1" = slow ] || cat "$2" > times/curve.svg
echo '{"results": [{"policy": "a", "time": 1.5}, {"policy": "b", "time": 2.5}]}'
"#;

    struct World {
        recipe: Recipe,
        page: Page,
        mode: Mode,
        directory: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let (recipe, page) = (Recipe::parse(RECIPE).unwrap(), Page::parse(PAGE));
            recipe.check(&page).unwrap();
            let directory = tempfile::tempdir().unwrap();
            let program = directory.path().join("iswitch-route");
            fs::write(&program, PROGRAM).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let trace = Some(directory.path().join("trace"));
            Self { recipe, page, mode: Mode { is_quick: false, data: [("TRACE", trace)].into() }, directory }
        }

        fn run(&self, only: &[&str], long: bool, force: bool) -> anyhow::Result<Report> {
            let out = self.directory.path().to_owned();
            let programs = Some(out.clone());
            let steps = Steps { recipe: &self.recipe, page: &self.page, mode: &self.mode, out, programs };
            let only: Vec<_> = only.iter().map(|&name| name.to_owned()).collect();
            let args = CommonArgs {
                out: None,
                only: Vec::new(),
                long,
                quick: false,
                list: false,
                force,
                json: false,
                quiet: true,
            };
            let selected = selected(&self.recipe, &only, long)?;
            reproduce(Study::Routing, &steps, &selected, &args, &AtomicBool::new(false))
        }

        /// Returns the first words of the commands that have run so far.
        fn calls(&self) -> Vec<String> {
            let text = fs::read_to_string(self.directory.path().join("calls")).unwrap_or_default();
            text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
        }
    }

    fn states(report: &Report) -> Vec<&str> {
        report.steps.iter().map(|step| step.state).collect()
    }

    #[test]
    fn a_second_call_runs_only_the_steps_that_are_missing() {
        let world = World::new();
        let report = world.run(&[], false, false).unwrap();
        assert_eq!(states(&report), ["complete", "complete", "not requested"]);
        assert!(report.is_complete());
        let table = &report.tables[0];
        assert_eq!(table.rows, [["a", "1.50", "..."], ["**b**", "2.50", ""]]);
        assert_eq!(
            (&table.steps[..], &table.missing[..]),
            (&["slow".to_owned(), "times".to_owned()][..], &["slow".to_owned()][..])
        );
        let compared = table.compared.as_ref().unwrap();
        assert_eq!((compared.numbers, compared.equal, compared.differences.len()), (2, 1, 1));
        assert_eq!((compared.differences[0].page, compared.differences[0].now), (2.0, Some(2.5)));
        let figure = world.directory.path().join("figures/curve.svg");
        assert_eq!(fs::read_to_string(figure).unwrap(), "x\n", "the program of the page wrote this file");
        assert_eq!(world.calls(), ["compare"]);

        let report = world.run(&[], true, false).unwrap();
        assert_eq!(
            (states(&report), world.calls()),
            (vec!["complete"; 3], vec!["compare".to_owned(), "slow".to_owned()])
        );
        assert!(report.tables[0].missing.is_empty());
        world.run(&["times"], false, true).unwrap();
        assert_eq!(world.calls(), ["compare", "slow", "compare"]);
        let text = fs::read_to_string(world.directory.path().join("report.md")).unwrap();
        assert!(text.contains("| **b** | 2.50 |  |") && text.contains("2.5 instead of 2"), "{text}");
    }

    #[test]
    fn a_failed_step_is_reported_and_repeated() {
        let world = World::new();
        fs::write(world.directory.path().join("broken"), "").unwrap();
        let report = world.run(&[], false, false).unwrap();
        assert_eq!(
            (states(&report), report.is_complete()),
            (vec!["complete", "failed", "not requested"], false)
        );
        let error = report.steps[1].error.as_deref().unwrap();
        assert!(error.ends_with("the fabric is broken"), "{error}");
        assert_eq!(report.tables[0].missing, ["slow", "times"]);
        fs::remove_file(world.directory.path().join("broken")).unwrap();
        assert!(world.run(&[], false, false).unwrap().is_complete());
        assert_eq!(world.calls().len(), 2);
    }

    #[test]
    fn results_of_another_command_are_refused() {
        let mut world = World::new();
        world.run(&[], false, false).unwrap();
        world.mode.data = [("TRACE", None)].into();
        let error = world.run(&[], false, false).unwrap_err().to_string();
        assert!(error.contains("--draws 20 --trace ") && error.contains("--force"), "{error}");
        let report = world.run(&[], false, true).unwrap();
        let table = &report.tables[0];
        assert_eq!((&table.synthetic[..], table.compared.is_none()), (&["TRACE"][..], true));
        assert!(report.text().contains(
            "**Synthetic data** instead of the page's data, because these files were not given: $TRACE."
        ));
        world.mode.is_quick = true;
        let report = world.run(&[], false, true).unwrap();
        assert!(report.steps[1].commands[0].contains("--draws 1 "), "{:?}", report.steps[1].commands);
    }

    #[test]
    fn a_stopped_reproduction_leaves_its_step_missing() {
        let world = World::new();
        let out = world.directory.path().to_owned();
        let programs = Some(out.clone());
        let steps = Steps { recipe: &world.recipe, page: &world.page, mode: &world.mode, out, programs };
        fs::write(world.directory.path().join("iswitch-route"), "#!/bin/sh\nexec sleep 60\n").unwrap();
        let stop = AtomicBool::new(true);
        let task = &steps.tasks(&world.recipe.steps[1])[0];
        let outcome = steps.run(task, &stop, &mut |_| ());
        assert!(matches!(outcome, Err(Incomplete::Stopped)), "{outcome:?}");
        assert!(steps.result(task).unwrap().is_none());
    }

    #[test]
    fn unknown_and_long_steps_are_refused_by_name() {
        let world = World::new();
        let error = |only: &str| selected(&world.recipe, &[only.to_owned()], false).unwrap_err().to_string();
        assert_eq!(error("fast"), "--only: step is fast, expected one of words, times, slow");
        assert!(error("slow").contains("add --long"));
        assert_eq!(selected(&world.recipe, &["times".to_owned()], false).unwrap(), ["times", "words"]);
    }
}
