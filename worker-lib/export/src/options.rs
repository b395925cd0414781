//! Options of the command, and the code that performs the export.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use iswitch_cli::evaluation::{EPISODES, Evaluation, SEED};
use iswitch_learn::algorithms::trained::Trained;
use iswitch_learn::algorithms::trainer::Policy;
use iswitch_learn::env::{self, Environment};
use serde::Serialize;

use crate::output::{Files, Summary};
use crate::policy::ExportedPolicy;
use crate::{card, description, onnx, tensors, test_data};

/// Default number of observations in the test data.
const TEST_ROWS: u32 = 1000;

/// Options of `iswitch export`.
#[derive(Args)]
pub(crate) struct Export {
    /// Run directory, as given to `iswitch train --out`
    run: PathBuf,
    /// Output file or, with the format hub, output directory
    #[arg(long, short, value_name = "PATH")]
    out: PathBuf,
    /// Format of the file [default: derived from the file's extension]
    #[arg(long, short, value_enum)]
    format: Option<Format>,
    /// Number of evaluation episodes for the model card [default: 10]
    ///
    /// This option applies only to the format hub, whose model card contains the mean and the standard deviation of the
    /// returns.
    #[arg(long, value_name = "N")]
    episodes: Option<NonZero<u32>>,
    /// Seed of the evaluation and of the test data [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Also write observations and the policy's actions to a safetensors file
    ///
    /// Use this file to test a program that runs the exported policy. The tensor `observation` holds observations from
    /// evaluation episodes. Unless they are images, noise is added to the second half of them, so that the file also
    /// tests observations that are clipped. The tensor `action` holds the actions. If the actions are discrete, the
    /// tensor `q_values` or `logits` holds the scores of all actions.
    #[arg(long, value_name = "FILE")]
    test_data: Option<PathBuf>,
    /// Number of observations in the test data [default: 1000]
    #[arg(long, value_name = "N", requires = "test_data")]
    test_rows: Option<NonZero<u32>>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Format of an exported policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// ONNX, for ONNX Runtime and other inference engines
    Onnx,
    /// Named tensors, for PyTorch, JAX or NumPy
    Safetensors,
    /// Layers and weights as JSON, for microcontrollers and browsers
    Json,
    /// Folder for the Hugging Face Hub: a model card and all of these files
    Hub,
}

impl Format {
    /// Returns the format that corresponds to the extension of a file.
    fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        Self::value_variants().iter().copied().find(|format| {
            *format != Self::Hub
                && format.to_possible_value().is_some_and(|value| value.get_name() == extension)
        })
    }
}

impl Export {
    /// Exports the policy, and prints the paths of the files that were written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let format = self.format()?;
        let trained = Trained::read(&self.run).context("no policy to export")?;
        let mut files = Files::new(self.force);
        for path in self.targets(format) {
            files.reserve(path)?;
        }
        let mut env = env::make(&trained.env)?;
        let mut policy = trained.policy(env.spec())?;
        let exported = ExportedPolicy::new(&trained, policy.as_ref(), env.as_ref())?;
        let mut evaluation = None;
        match format {
            Format::Onnx => files.write(&self.out, &onnx::file(&exported))?,
            Format::Safetensors => files.write(&self.out, &tensors::file(&exported)?)?,
            Format::Json => files.write(&self.out, &description::file(&exported)?)?,
            Format::Hub => {
                let found = self.evaluate(policy.as_mut(), env.as_mut())?;
                self.write_hub(&exported, &found, &mut files)?;
                evaluation = Some(found);
            }
        }
        if let Some(path) = &self.test_data {
            let rows = self.test_rows.map_or(TEST_ROWS, NonZero::get) as usize;
            let data = test_data::file(&exported, policy, env, rows, self.seed())?;
            files.write(path, &data)?;
        }
        Summary::new(&exported, format, files, evaluation).print(self.json)
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or(SEED)
    }

    fn format(&self) -> anyhow::Result<Format> {
        let Some(format) = self.format.or_else(|| Format::of(&self.out)) else {
            bail!(
                "--out {}: expected the extension .onnx, .safetensors or .json, or the option --format",
                self.out.display()
            );
        };
        if format != Format::Hub && self.episodes.is_some() {
            bail!(
                "--episodes applies only to --format hub, whose model card contains the returns of the episodes"
            );
        }
        if format != Format::Hub && self.seed.is_some() && self.test_data.is_none() {
            bail!("--seed applies only to --format hub and --test-data");
        }
        Ok(format)
    }

    /// Returns the paths of the files to write.
    fn targets(&self, format: Format) -> Vec<PathBuf> {
        let mut targets = match format {
            Format::Hub => card::FILES.iter().map(|name| self.out.join(name)).collect(),
            Format::Onnx | Format::Safetensors | Format::Json => vec![self.out.clone()],
        };
        targets.extend(self.test_data.clone());
        targets
    }

    fn evaluate(&self, policy: &mut dyn Policy, env: &mut dyn Environment) -> anyhow::Result<Evaluation> {
        let episodes = self.episodes.map_or(EPISODES, NonZero::get);
        Ok(Evaluation::run(policy, env, (episodes, self.seed()), false)?)
    }

    fn write_hub(
        &self,
        exported: &ExportedPolicy,
        evaluation: &Evaluation,
        files: &mut Files,
    ) -> anyhow::Result<()> {
        let contents = [
            card::file(exported, evaluation, self.seed())?,
            description::config(exported)?,
            tensors::file(exported)?,
            onnx::file(exported),
        ];
        for (name, bytes) in card::FILES.iter().zip(contents) {
            files.write(&self.out.join(name), &bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_of_a_file_names_its_format() {
        let of = |path: &str| Format::of(Path::new(path));
        assert_eq!(of("a/policy.onnx"), Some(Format::Onnx));
        assert_eq!(of("policy.safetensors"), Some(Format::Safetensors));
        assert_eq!(of("policy.json"), Some(Format::Json));
        assert_eq!((of("policy.hub"), of("policy"), of("onnx")), (None, None, None));
    }
}
