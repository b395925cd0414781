//! Videos of built-in environments.
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use gif::{ColorOutput, DecodeOptions};
use iswitch_learn::env::GymnasiumOptions;
use serde_json::Value;

use crate::{evaluate, save_agent, skip};

const SIZE: [usize; 2] = [480, 360];

/// Returns the pixels of the frames of a GIF (`[height, width, 4]`) and the display duration of each frame, in
/// hundredths of a second.
fn decode(path: &Path) -> Vec<(Vec<u8>, u16)> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::RGBA);
    let mut decoder = options.read_info(File::open(path).unwrap()).unwrap();
    assert_eq!([decoder.width(), decoder.height()].map(usize::from), SIZE);
    let mut frames = Vec::new();
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        assert_eq!([frame.width, frame.height].map(usize::from), SIZE);
        frames.push((frame.buffer.to_vec(), frame.delay));
    }
    frames
}

/// Returns the mean row number of the pixels that are close to the blue of the hopper's torso.
fn torso_row(pixels: &[u8]) -> f64 {
    let is_blue = |pixel: &[u8]| pixel[0] < 60 && (80..150).contains(&pixel[1]) && pixel[2] > 140;
    let rows =
        pixels.chunks_exact(4).enumerate().filter(|(_, pixel)| is_blue(pixel)).map(|(at, _)| at / SIZE[0]);
    let rows: Vec<_> = rows.map(|row| row as f64).collect();
    assert!(rows.len() > 100, "the torso is not visible");
    rows.iter().sum::<f64>() / rows.len() as f64
}

#[test]
fn a_gif_shows_the_hopper_fall() {
    let directory = tempfile::tempdir().unwrap();
    save_agent("PlanarHopper-v0", &GymnasiumOptions::default(), directory.path());
    let Output { status, stdout, stderr } =
        evaluate(directory.path(), &["--video", "hopper.gif", "--episodes", "3", "--json"]);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let result: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!((&result["episodes"], &result["video"]["file"]), (&3.into(), &"hopper.gif".into()));
    let frames = decode(&directory.path().join("hopper.gif"));
    assert_eq!(result["video"]["frames"], frames.len());
    assert_eq!(["width", "height"].map(|side| result["video"][side].as_u64().unwrap() as usize), SIZE);
    // An episode of the untrained agent consists of tens of steps of 8 ms. The video shows every fourth step and the
    // last one.
    assert!((5..100).contains(&frames.len()), "{}", frames.len());
    assert!(frames.iter().all(|(_, delay)| *delay == 3), "0.032 s");
    assert!(frames.windows(2).all(|pair| pair[0].0 != pair[1].0), "two frames are equal");
    let (first, last) = (torso_row(&frames[0].0), torso_row(&frames.last().unwrap().0));
    assert!(last > first + 5.0, "the torso of a falling hopper moves down: row {first} to {last}");
    assert!(!directory.path().join("hopper.gif.part").exists());
}

#[test]
fn more_episodes_make_a_longer_video() {
    let directory = tempfile::tempdir().unwrap();
    save_agent("CartPole-v1", &GymnasiumOptions::default(), directory.path());
    let record = |file: &str, episodes: &str| {
        let arguments = ["--video", file, "--episodes", "2", "--video-episodes", episodes, "--json"];
        let output = evaluate(directory.path(), &arguments);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let (one, two) = (record("one.gif", "1"), record("two.gif", "2"));
    assert_eq!(one["mean_return"], two["mean_return"]);
    let [one, two] = ["one.gif", "two.gif"].map(|file| decode(&directory.path().join(file)));
    assert!(two.len() > one.len() && two[..one.len()] == one[..], "{} {}", one.len(), two.len());
}

#[test]
fn names_and_directories_that_cannot_be_used_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    save_agent("CartPole-v1", &GymnasiumOptions::default(), directory.path());
    let refusals = [
        (&["--video", "video.avi"][..], "--video video.avi: expected a name that ends with .gif or .mp4"),
        (&["--video", "nowhere/video.gif"], "cannot create nowhere/video.gif.part"),
        (&[], "--video FILE is required"),
    ];
    for (arguments, reason) in refusals {
        let Output { status, stderr, .. } = evaluate(directory.path(), arguments);
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(!status.success() && stderr.contains(reason), "{arguments:?}: {stderr}");
    }
}

#[test]
fn an_mp4_has_the_same_frames() {
    let ffmpeg = |arguments: &[&str]| Command::new("ffmpeg").args(arguments).output();
    if ffmpeg(&["-version"]).is_err() {
        skip("ffmpeg is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    save_agent("PlanarHopper-v0", &GymnasiumOptions::default(), directory.path());
    let Output { status, stdout, stderr } = evaluate(directory.path(), &["--video", "hopper.mp4", "--json"]);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let result: Value = serde_json::from_slice(&stdout).unwrap();
    let path = directory.path().join("hopper.mp4").display().to_string();
    let decoded =
        ffmpeg(&["-loglevel", "error", "-i", &path, "-f", "rawvideo", "-pix_fmt", "rgba", "-"]).unwrap();
    assert!(decoded.status.success(), "{}", String::from_utf8_lossy(&decoded.stderr));
    let frames: Vec<_> = decoded.stdout.chunks(SIZE[0] * SIZE[1] * 4).collect();
    assert_eq!(result["video"]["frames"], frames.len());
    assert!(torso_row(frames.last().unwrap()) > torso_row(frames[0]) + 5.0);
}

#[test]
fn without_ffmpeg_an_mp4_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    save_agent("CartPole-v1", &GymnasiumOptions::default(), directory.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-video"));
    let output =
        command.current_dir(directory.path()).args([".", "--video", "a.mp4"]).env("PATH", "").output();
    let stderr = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(stderr.contains("writing an MP4 requires ffmpeg, which is not in PATH"), "{stderr}");
    let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with("a.mp4")));
}
