//! Video files: GIF, written by this module, and MP4, encoded by ffmpeg.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};
use gif::{Encoder, Repeat};
use iswitch_learn::env::scene::Frame;

/// File name suffix of a video that is not complete yet.
const UNFINISHED: &str = ".part";
/// Speed of the reduction to 256 colours, from 1 (best) to 30 (fastest).
const QUANTISATION_SPEED: i32 = 10;
/// Unit of the interval between two images of a GIF, in seconds.
const GIF_UNIT: f64 = 0.01;
/// Shortest interval between images that browsers honour, in units of [`GIF_UNIT`].
const GIF_UNITS_MIN: f64 = 2.0;

/// Format of a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Gif,
    Mp4,
}

impl Format {
    /// Returns the format of a file, which is determined by the suffix of its name.
    ///
    /// # Errors
    /// Fails if the name ends neither with `.gif` nor with `.mp4`.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gif") => Ok(Self::Gif),
            Some("mp4") => Ok(Self::Mp4),
            _ => bail!("--video {}: expected a name that ends with .gif or .mp4", path.display()),
        }
    }
}

/// Video that is being written. The file is given its final name when it is complete.
pub(crate) struct VideoFile {
    path: PathBuf,
    unfinished: PathBuf,
    /// Time between two images, in seconds.
    interval: f64,
    encoder: Option<VideoEncoder>,
}

enum VideoEncoder {
    Gif { encoder: Box<Encoder<BufWriter<File>>>, size: [u16; 2], units: u16 },
    Mp4(Child),
}

impl VideoFile {
    /// Begins a video of images of `size` (width, height; pixels) at intervals of `interval` seconds. In a GIF, the
    /// intervals are rounded to hundredths of a second.
    ///
    /// # Errors
    /// Fails if the file cannot be created, if the size is not supported, or if ffmpeg is missing.
    pub(crate) fn create(
        path: &Path,
        format: Format,
        size: [usize; 2],
        interval: f64,
    ) -> anyhow::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(UNFINISHED);
        let unfinished = PathBuf::from(name);
        let (encoder, interval) = match format {
            Format::Gif => {
                let units = (interval / GIF_UNIT).round().clamp(GIF_UNITS_MIN, f64::from(u16::MAX));
                (gif(&unfinished, size, units as u16)?, units * GIF_UNIT)
            }
            Format::Mp4 => (VideoEncoder::Mp4(ffmpeg(&unfinished, size, interval)?), interval),
        };
        Ok(Self { path: path.to_owned(), unfinished, interval, encoder: Some(encoder) })
    }

    /// Returns the time between two images, in seconds.
    pub(crate) fn interval(&self) -> f64 {
        self.interval
    }

    /// Appends an image, whose size must be that of the video.
    ///
    /// # Errors
    /// Fails if the file cannot be written or ffmpeg has exited.
    pub(crate) fn add(&mut self, frame: &Frame) -> anyhow::Result<()> {
        let written = match self.encoder.as_mut().context("the video is finished")? {
            VideoEncoder::Gif { encoder, size: [width, height], units } => {
                let mut image = gif::Frame::from_rgb_speed(*width, *height, &frame.rgb, QUANTISATION_SPEED);
                image.delay = *units;
                encoder.write_frame(&image).map_err(anyhow::Error::from)
            }
            VideoEncoder::Mp4(child) => {
                let input = child.stdin.as_mut().context("ffmpeg has no input")?;
                input.write_all(&frame.rgb).map_err(anyhow::Error::from)
            }
        };
        written.with_context(|| format!("cannot write {}", self.path.display())).or_else(|error| {
            // The messages of ffmpeg are more informative than a broken-pipe error.
            self.end()?;
            Err(error)
        })
    }

    /// Completes the file.
    ///
    /// # Errors
    /// Fails if the file cannot be written or ffmpeg fails.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        self.end()?;
        fs::rename(&self.unfinished, &self.path)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn end(&mut self) -> anyhow::Result<()> {
        match self.encoder.take() {
            Some(VideoEncoder::Gif { encoder, .. }) => {
                let flushed = encoder.into_inner().map_err(anyhow::Error::from);
                flushed
                    .and_then(|mut file| Ok(file.flush()?))
                    .context(format!("cannot write {}", self.path.display()))
            }
            Some(VideoEncoder::Mp4(mut child)) => {
                drop(child.stdin.take());
                let output = child.wait_with_output().context("cannot wait for ffmpeg")?;
                if !output.status.success() {
                    let messages = String::from_utf8_lossy(&output.stderr);
                    bail!("ffmpeg failed ({}): {}", output.status, messages.trim().replace('\n', "; "));
                }
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Drop for VideoFile {
    fn drop(&mut self) {
        // If the video has been completed, the unfinished file no longer exists, and its removal fails.
        let _ = self.end();
        let _ = fs::remove_file(&self.unfinished);
    }
}

fn gif(path: &Path, size: [usize; 2], units: u16) -> anyhow::Result<VideoEncoder> {
    let [width, height] = size.map(u16::try_from);
    let fitting = [width, height].into_iter().collect::<Result<Vec<_>, _>>();
    let [width, height] = fitting.ok().and_then(|size| size.try_into().ok()).with_context(|| {
        let [width, height] = size;
        format!("images are {width} x {height} pixels, expected at most {0} x {0} for a GIF", u16::MAX)
    })?;
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut encoder = Encoder::new(BufWriter::new(file), width, height, &[])?;
    encoder.set_repeat(Repeat::Infinite)?;
    Ok(VideoEncoder::Gif { encoder: Box::new(encoder), size: [width, height], units })
}

/// Starts ffmpeg, which reads the pixels of the images from its standard input.
fn ffmpeg(path: &Path, [width, height]: [usize; 2], interval: f64) -> anyhow::Result<Child> {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"]);
    command.args([
        "-video_size",
        &format!("{width}x{height}"),
        "-framerate",
        &format!("{:.6}", interval.recip()),
    ]);
    // Players require 4:2:0 chroma subsampling, which needs an even width and height.
    command.args(["-i", "pipe:0", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]);
    command.args(["-movflags", "+faststart", "-f", "mp4"]).arg(path);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    child.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!(
            "writing an MP4 requires ffmpeg, which is not in PATH; install it (apt install ffmpeg), or name a file \
             that ends with .gif"
        ),
        _ => anyhow::Error::from(error).context("cannot start ffmpeg"),
    })
}
