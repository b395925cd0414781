//! Progress display of a run: a bar if standard error is a terminal, and occasional lines of text otherwise.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Values shown by the progress display.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Number of environment steps so far.
    pub steps: u64,
    /// Mean return of recent episodes, if any episode has ended.
    pub mean_return: Option<f64>,
    /// Environment steps per second.
    pub steps_per_second: f64,
    /// Median time of an aggregation in microseconds, if the run aggregates synchronously.
    pub aggregation_us_p50: Option<f64>,
}

/// Progress display of a run, which is written to standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
    total_steps: u64,
    begin: Instant,
    last_line: Instant,
}

/// Minimum interval between two lines. Late in a long run, the minimum is a tenth of the elapsed time.
const LINE_INTERVAL_MIN: Duration = Duration::from_secs(2);

impl Progress {
    /// Creates the display of a run of `total_steps` steps. If `quiet` is set, the display shows nothing.
    pub fn new(total_steps: u64, quiet: bool) -> Self {
        let bar = if quiet { Some(ProgressBar::hidden()) } else { bar(total_steps) };
        let now = Instant::now();
        Self { bar, total_steps, begin: now, last_line: now }
    }

    /// Prints a line of text above the progress bar.
    pub fn note(&self, text: &str) {
        note(self.bar.as_ref(), text);
    }

    /// Shows the current state. Without a terminal, prints a line only if this is the `last` update or if enough time
    /// has passed since the previous line.
    pub fn update(&mut self, shown: Shown, last: bool) {
        let position = format!("{}/{} steps", shown.steps, self.total_steps);
        let mean = shown.mean_return.map_or("-".to_owned(), |mean| format!("{mean:.1}"));
        let p50 =
            shown.aggregation_us_p50.map_or(String::new(), |us| format!(", aggregation p50 {us:.1} us"));
        let text = format!("return {mean}, {:.0} steps/s{p50}", shown.steps_per_second);
        match &self.bar {
            Some(bar) => {
                let left = self.left(shown).map_or(String::new(), |left| format!(" ({left} left)"));
                draw(bar, shown.steps, format!("{position}{left}, {text}"));
                if last {
                    bar.abandon();
                }
            }
            None if last || self.last_line.elapsed() >= LINE_INTERVAL_MIN.max(self.begin.elapsed() / 10) => {
                eprintln!("{position}, {text}");
                self.last_line = Instant::now();
            }
            None => {}
        }
    }

    /// Returns the estimated remaining time of the run, such as `3m`.
    fn left(&self, shown: Shown) -> Option<String> {
        let steps = self.total_steps.checked_sub(shown.steps).filter(|steps| *steps > 0)?;
        let seconds = Duration::try_from_secs_f64(steps as f64 / shown.steps_per_second).ok()?;
        Some(format!("{:#}", HumanDuration(seconds)))
    }
}

/// Progress display of a task that consists of a number of units, such as runs or iterations.
pub struct Steps {
    unit: &'static str,
    bar: Option<ProgressBar>,
    is_quiet: bool,
    text: String,
    done: u64,
    total: u64,
    begin: Instant,
    last_line: Instant,
}

impl Steps {
    /// Creates the display of a task of `total` units. If `quiet` is set, the display shows nothing.
    pub fn new(unit: &'static str, total: u64, quiet: bool) -> Self {
        let now = Instant::now();
        let bar = if quiet { None } else { bar(total) };
        Self { unit, bar, is_quiet: quiet, text: String::new(), done: 0, total, begin: now, last_line: now }
    }

    /// Sets the number of completed units.
    pub fn set(&mut self, done: u64) {
        self.done = done;
        if let Some(bar) = &self.bar {
            draw(bar, done, self.line());
        }
    }

    /// Prints a line of text above the progress bar.
    pub fn note(&self, text: &str) {
        note(self.bar.as_ref(), text);
    }

    /// Counts one more completed unit and shows `text`.
    pub fn advance(&mut self, text: &str) {
        self.done += 1;
        self.show(text);
    }

    /// Shows the current activity. Without a terminal, prints a line only if enough time has passed since the previous
    /// line.
    pub fn show(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        match &self.bar {
            Some(bar) => draw(bar, self.done, self.line()),
            None if self.is_quiet => {}
            None if self.last_line.elapsed() >= LINE_INTERVAL_MIN.max(self.begin.elapsed() / 10) => {
                eprintln!("{}", self.line());
                self.last_line = Instant::now();
            }
            None => {}
        }
    }

    fn line(&self) -> String {
        let Self { done, total, unit, text, .. } = self;
        let separator = if text.is_empty() { "" } else { ", " };
        format!("{done}/{total} {unit}{separator}{text}")
    }

    /// Leaves the bar on the screen and releases the terminal.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}

/// Returns a bar on standard error, or `None` if standard error is not a terminal.
fn bar(total: u64) -> Option<ProgressBar> {
    std::io::stderr().is_terminal().then(|| {
        // `wide_msg` truncates a message that is too long for the terminal.
        let style = ProgressStyle::with_template("{bar:14} {wide_msg}");
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    })
}

/// Draws a bar. The message is set before the position, because each of the two calls may draw the bar.
fn draw(bar: &ProgressBar, position: u64, message: String) {
    bar.set_message(message);
    bar.set_position(position);
}

/// Prints a line of text above the bar. If the bar is finished, prints the line below the bar instead, because a
/// finished bar must not be drawn again.
fn note(bar: Option<&ProgressBar>, text: &str) {
    match bar {
        Some(bar) if !bar.is_finished() => bar.suspend(|| eprintln!("{text}")),
        _ => eprintln!("{text}"),
    }
}
