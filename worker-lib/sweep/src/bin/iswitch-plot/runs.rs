//! Runs to show in a figure, and the configurations to which they belong.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;
use iswitch_cli::config_file::{CONFIG_FILE, ConfigFile};
use iswitch_sweep::curves::{self, CURVE_FILE, Curve, Curves};

/// Number of directory levels between a sweep's directory and its run directories.
const SWEEP_LEVELS: usize = 2;
/// Configuration entries that are ignored when runs are grouped into configurations.
const IGNORED: [&str; 2] = ["seed", "checkpoint_every"];

/// Entries of a configuration file, by name; each value is its TOML text.
type Settings = BTreeMap<String, String>;

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) directory: PathBuf,
    pub(crate) seed: Option<u64>,
    pub(crate) curve: Curve,
}

/// Runs that differ only in their seed.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    pub(crate) name: String,
    pub(crate) runs: Vec<Run>,
    settings: Settings,
}

impl Configuration {
    /// Returns the value of a setting as text, without quotation marks, or `None` if the configuration does not have
    /// it.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        self.settings.get(name).map(|value| value.trim_matches('"').to_owned())
    }

    pub(crate) fn curves(&self) -> Curves {
        let runs = self.runs.iter().map(|run| run.curve.clone()).collect();
        Curves { name: self.name.clone(), runs }
    }
}

/// Reads the runs in these directories and groups them by configuration. Configurations are in the order of their first
/// runs.
///
/// # Errors
/// Fails if a directory contains no run, or if a file of a run cannot be read.
pub(crate) fn configurations(directories: &[PathBuf]) -> anyhow::Result<Vec<Configuration>> {
    let mut configurations: Vec<Configuration> = Vec::new();
    for directory in directories {
        let found = run_directories(directory, SWEEP_LEVELS);
        if found.is_empty() {
            bail!(
                "{} holds no run, expected a directory with {CURVE_FILE} or the directory of a sweep",
                directory.display()
            );
        }
        for directory in found {
            let (run, settings) = read(directory)?;
            match configurations.iter_mut().find(|other| !settings.is_empty() && other.settings == settings) {
                // Count a run that is given twice only once. Otherwise, it would narrow the interval.
                Some(same) if same.runs.iter().any(|other| other.directory == run.directory) => {}
                Some(same) => same.runs.push(run),
                None => configurations.push(Configuration { name: String::new(), runs: vec![run], settings }),
            }
        }
    }
    let names: Vec<_> = configurations.iter().map(|it| name(it, &configurations)).collect();
    configurations.iter_mut().zip(names).for_each(|(configuration, name)| configuration.name = name);
    Ok(configurations)
}

/// Returns the directory itself if it is a run directory, and otherwise the run directories up to `levels` levels below
/// it, sorted by name.
fn run_directories(directory: &Path, levels: usize) -> Vec<PathBuf> {
    if directory.join(CURVE_FILE).exists() {
        return vec![directory.to_owned()];
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut below: Vec<_> = entries.filter(|path| levels > 0 && path.is_dir()).collect();
    below.sort();
    below.iter().flat_map(|path| run_directories(path, levels - 1)).collect()
}

fn read(directory: PathBuf) -> anyhow::Result<(Run, Settings)> {
    let curve = curves::read(&directory)?;
    let path = directory.join(CONFIG_FILE);
    let mut settings = if path.exists() { ConfigFile::read(&path)?.to_map() } else { Settings::new() };
    // TOML cannot represent integers above 2^63 - 1, so larger seeds are written as strings.
    let seed = settings.get("seed").and_then(|seed| seed.trim_matches('"').parse().ok());
    settings.retain(|name, _| !IGNORED.contains(&name.as_str()));
    Ok((Run { directory, seed, curve }, settings))
}

/// Returns the name of a configuration in the figure: the algorithm, and the settings in which it differs from other
/// configurations with the same algorithm and environment.
fn name(configuration: &Configuration, all: &[Configuration]) -> String {
    let Configuration { settings, runs, .. } = configuration;
    let Some(algorithm) = configuration.setting("algorithm") else {
        return runs[0].directory.display().to_string();
    };
    let value = |settings: &Settings, name: &str| settings.get(name).cloned();
    let is_alike = |other: &&Configuration| {
        ["algorithm", "env"].iter().all(|name| value(&other.settings, name) == value(settings, name))
    };
    let alike: Vec<_> = all.iter().filter(is_alike).collect();
    let names: BTreeSet<_> = alike.iter().flat_map(|other| other.settings.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|name| alike.iter().any(|other| value(&other.settings, name) != value(settings, name)));
    let different: Vec<_> = differing
        .map(|name| format!("{name}={}", configuration.setting(name).unwrap_or_else(|| "default".to_owned())))
        .collect();
    let environments: BTreeSet<_> = all.iter().filter_map(|other| other.setting("env")).collect();
    let mut parts = Vec::new();
    let is_only_algorithm = all.iter().all(|other| other.setting("algorithm").as_ref() == Some(&algorithm));
    if different.is_empty() || !is_only_algorithm {
        parts.push(algorithm.to_uppercase());
    }
    if environments.len() > 1 {
        parts.extend(configuration.setting("env"));
    }
    parts.extend(different);
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(settings: &[(&str, &str)]) -> Configuration {
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let run = Run { directory: "runs/a".into(), seed: None, curve: Curve::new() };
        Configuration { name: String::new(), runs: vec![run], settings }
    }

    #[test]
    fn names_contain_what_distinguishes_a_configuration() {
        let ppo = |gamma| [("algorithm", "\"ppo\""), ("env", "\"A\""), ("gamma", gamma), ("epochs", "4")];
        let all = [configuration(&ppo("0.9")), configuration(&ppo("0.99"))];
        assert_eq!([0, 1].map(|at| name(&all[at], &all)), ["gamma=0.9", "gamma=0.99"]);
        let dqn = configuration(&[("algorithm", "\"dqn\""), ("env", "\"A\"")]);
        let all = [all[0].clone(), all[1].clone(), dqn, configuration(&[])];
        let names: Vec<_> = all.iter().map(|it| name(it, &all)).collect();
        assert_eq!(names, ["PPO, gamma=0.9", "PPO, gamma=0.99", "DQN", "runs/a"]);
        let one = [all[0].clone()];
        assert_eq!(name(&one[0], &one), "PPO");
    }
}
