//! `iswitch eval --video`: runs a trained agent, records its first episodes, and reports its returns.

mod canvas;
mod file;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Parser;
use iswitch_cli::eval::{self, EvalArgs, Report};
use iswitch_cli::evaluation::Evaluation;
use iswitch_cli::program;
use iswitch_learn::algorithms::evaluate::{EvaluationEpisode, Evaluator};
use iswitch_learn::env::scene::{Frame, Picture};
use iswitch_learn::env::{self, GymnasiumOptions};
use iswitch_manual::print_line;
use serde::Serialize;

use canvas::draw;
use file::{Format, VideoFile};

/// Target interval between the images of a video, in seconds. In environments with shorter steps, some steps are not
/// recorded.
const INTERVAL: f64 = 1.0 / 30.0;

/// Run a trained agent, record its first episodes on video, and report its returns
#[derive(Parser)]
#[command(name = "iswitch-video", bin_name = "iswitch eval", version, max_term_width = 79, about)]
struct Cli {
    #[command(flatten)]
    args: EvalArgs,
}

/// Result of an evaluation with a video. The keys of the JSON object and their order are part of the public interface
/// and must not change.
#[derive(Serialize)]
struct Recorded {
    #[serde(flatten)]
    report: Report,
    video: Video,
}

/// Properties of a video.
#[derive(Debug, Serialize)]
struct Video {
    file: PathBuf,
    frames: u64,
    width: usize,
    height: usize,
    /// Duration of the video, in seconds.
    seconds: f64,
}

/// Video recorder of an evaluation. The first image determines the image size and the frame rate of the video.
struct Recorder {
    path: PathBuf,
    format: Format,
    recording: Option<Recording>,
}

/// Video whose image size and frame rate are known.
struct Recording {
    file: VideoFile,
    size: [usize; 2],
    /// Number of steps between two images.
    stride: u32,
    frames: u64,
}

impl Cli {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let args = &self.args;
        let Some(path) = &args.video else {
            bail!("--video FILE is required; to evaluate without a video, use `iswitch eval`")
        };
        let mut recorder = Recorder { path: path.clone(), format: Format::of(path)?, recording: None };
        let trained = eval::read(args)?;
        let options = GymnasiumOptions { renders: true, ..GymnasiumOptions::default() };
        let mut env = env::make_vector_with(&trained.env, 1, &options)?.remove(0);
        let spec = env.spec().clone();
        let mut policy = trained.policy(&spec)?;
        let mut evaluator = Evaluator::new(policy.as_mut(), env.as_mut(), args.seed, args.stochastic);
        let mut episodes = Vec::new();
        for number in 0..args.episodes {
            let recorder = (number < args.video_episodes).then_some(&mut recorder);
            episodes.push(run_episode(&mut evaluator, recorder)?);
        }
        let report = Report::new(&trained, Evaluation::of(&episodes, &spec));
        let recorded = Recorded { report, video: recorder.finish()? };
        if args.json {
            print_line!("{}", serde_json::to_string(&recorded)?)?;
        } else {
            let Video { file, frames, width, height, seconds } = &recorded.video;
            print_line!(
                "{}\nvideo {}: {frames} images of {width} x {height} pixels, {seconds:.1} s",
                recorded.report.text(),
                file.display(),
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn run_episode(
    evaluator: &mut Evaluator<'_>,
    mut recorder: Option<&mut Recorder>,
) -> anyhow::Result<EvaluationEpisode> {
    evaluator.begin()?;
    for number in 0.. {
        if let Some(recorder) = recorder.as_mut().filter(|recorder| recorder.is_due(number)) {
            recorder.record(evaluator)?;
        }
        if let Some(episode) = evaluator.step()? {
            if let Some(recorder) = recorder {
                recorder.record(evaluator)?;
            }
            return Ok(episode);
        }
    }
    bail!("an episode did not end within 2^31 steps")
}

impl Recorder {
    /// Returns whether an image must be recorded before step number `step` of an episode.
    fn is_due(&self, step: u32) -> bool {
        self.recording.as_ref().is_none_or(|recording| step.is_multiple_of(recording.stride))
    }

    /// Adds an image of the current state.
    fn record(&mut self, evaluator: &mut Evaluator<'_>) -> anyhow::Result<()> {
        let picture = evaluator.picture()?.context("the environment cannot be displayed")?;
        let (frame, step_seconds) = match picture {
            Picture::Scene(scene) => (draw(&scene), scene.step_seconds),
            Picture::Frame { frame, step_seconds } => (frame, step_seconds),
        };
        let recording = match &mut self.recording {
            Some(recording) => recording,
            None => self.recording.insert(Recording::begin(&self.path, self.format, &frame, step_seconds)?),
        };
        recording.add(&frame)
    }

    fn finish(self) -> anyhow::Result<Video> {
        let recording = self.recording.context("no image was recorded")?;
        let Recording { file, size: [width, height], frames, .. } = recording;
        let seconds = (frames as f64 * file.interval() * 1e3).round() / 1e3;
        file.finish()?;
        Ok(Video { file: self.path, frames, width, height, seconds })
    }
}

impl Recording {
    fn begin(path: &Path, format: Format, frame: &Frame, step_seconds: f64) -> anyhow::Result<Self> {
        let stride = (INTERVAL / step_seconds).round().max(1.0);
        let size = [frame.width, frame.height];
        let file = VideoFile::create(path, format, size, stride * step_seconds)?;
        Ok(Self { file, size, stride: stride as u32, frames: 0 })
    }

    fn add(&mut self, frame: &Frame) -> anyhow::Result<()> {
        let size = [frame.width, frame.height];
        if size != self.size {
            let ([old_width, old_height], [width, height]) = (self.size, size);
            bail!(
                "the environment has changed its image size from {old_width} x {old_height} to \
                 {width} x {height} pixels"
            );
        }
        self.frames += 1;
        self.file.add(frame)
    }
}

fn main() -> ExitCode {
    program::main(|cli: Cli| cli.run())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }
}
