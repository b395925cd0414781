//! Videos of Gymnasium environments, which Gymnasium itself renders.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use iswitch_learn::env::GymnasiumOptions;
use serde_json::Value;

use crate::{evaluation, save_agent, skip};

/// Environments of five steps: one that shows a square that moves to the right, and one whose rendering fails.
const MODULE: &str = r#"
import gymnasium, numpy

class Square(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), "float32")
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return numpy.zeros(2, "float32"), {}

    def step(self, action):
        self.steps += 1
        return numpy.zeros(2, "float32"), 1.0, self.steps == 5, False, {}

    def render(self):
        image = numpy.zeros((20, 30, 3), "uint8")
        image[8:12, 4 * self.steps : 4 * self.steps + 4] = (250, 0, 0)
        return image

class Broken(Square):
    def render(self):
        raise RuntimeError("no display")

gymnasium.register("Square-v0", Square)
gymnasium.register("Broken-v0", Broken)
"#;

/// Returns the options with an interpreter that imports the module from `directory`, or `None` if Gymnasium is missing.
fn options(directory: &Path) -> Option<GymnasiumOptions> {
    std::fs::write(directory.join("drawn.py"), MODULE).unwrap();
    let python = GymnasiumOptions::default().python;
    let output = Command::new(&python).args(["-c", "import gymnasium"]).output();
    if !output.is_ok_and(|output| output.status.success()) {
        skip("Gymnasium is not installed");
        return None;
    }
    let script = directory.join("python");
    let text = format!("#!/bin/sh\nPYTHONPATH='{}' exec {} \"$@\"\n", directory.display(), python.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    Some(GymnasiumOptions { python: script, ..GymnasiumOptions::default() })
}

fn evaluate(directory: &Path, python: &PathBuf) -> Output {
    let mut command = evaluation(directory);
    command.env("ISWITCH_PYTHON", python);
    command.args(["--episodes", "1", "--json", "--video", "square.gif"]).output().unwrap()
}

#[test]
fn the_images_of_the_environment_are_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let Some(options) = options(directory.path()) else { return };
    save_agent("drawn:Square-v0", &options, directory.path());
    let Output { status, stdout, stderr } = evaluate(directory.path(), &options.python);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let result: Value = serde_json::from_slice(&stdout).unwrap();
    // The start state and five steps, at 10 images per second.
    let video = &result["video"];
    assert_eq!((&video["frames"], &video["seconds"]), (&6.into(), &0.6.into()), "{result}");
    assert_eq!((&video["width"], &video["height"]), (&30.into(), &20.into()));
    let file = std::fs::File::open(directory.path().join("square.gif")).unwrap();
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(file).unwrap();
    let mut columns = Vec::new();
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        let row = frame.buffer.chunks_exact(4).skip(9 * 30).take(30);
        columns.push(row.take_while(|pixel| pixel[0] < 128).count());
    }
    assert_eq!(columns, [0, 4, 8, 12, 16, 20]);
}

#[test]
fn a_failure_to_render_is_reported_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let Some(options) = options(directory.path()) else { return };
    save_agent("drawn:Broken-v0", &options, directory.path());
    let Output { status, stderr, .. } = evaluate(directory.path(), &options.python);
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(!status.success());
    assert!(stderr.contains("drawn:Broken-v0 cannot be rendered: RuntimeError: no display ("), "{stderr}");
    assert!(!directory.path().join("square.gif").exists());
}
