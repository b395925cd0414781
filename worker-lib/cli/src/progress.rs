//! How far a run is: a bar on a terminal, now and then a line elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is shown of the present state.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Environment steps so far.
    pub steps: u64,
    /// Mean return of recent episodes, if any has ended.
    pub mean_return: Option<f64>,
    /// Environment steps per second.
    pub steps_per_second: f64,
    /// Where something is waited for.
    pub aggregation_us_p50: Option<f64>,
}

/// Shows progress on the standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
    total_steps: u64,
    begin: Instant,
    last_line: Instant,
}

/// The first lines come this far apart; later ones after a tenth of the time so far.
const LINE_INTERVAL_MIN: Duration = Duration::from_secs(2);

impl Progress {
    /// For a run of `total_steps`; shows nothing if `quiet`.
    pub fn new(total_steps: u64, quiet: bool) -> Self {
        let bar = if quiet {
            Some(ProgressBar::hidden())
        } else if std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} steps, {msg}, {eta} left");
            let bar = ProgressBar::with_draw_target(Some(total_steps), ProgressDrawTarget::stderr());
            Some(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
        } else {
            None
        };
        let now = Instant::now();
        Self { bar, total_steps, begin: now, last_line: now }
    }

    /// Says something besides.
    pub fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Shows the present state; a line only if `last` or the last one is long enough ago.
    pub fn update(&mut self, shown: Shown, last: bool) {
        let mean = shown.mean_return.map_or("-".to_owned(), |mean| format!("{mean:.1}"));
        let p50 =
            shown.aggregation_us_p50.map_or(String::new(), |us| format!(", aggregation p50 {us:.1} us"));
        let text = format!("return {mean}, {:.0} steps/s{p50}", shown.steps_per_second);
        match &self.bar {
            Some(bar) => {
                bar.set_position(shown.steps);
                bar.set_message(text);
                if last {
                    bar.abandon();
                }
            }
            None if last || self.last_line.elapsed() >= LINE_INTERVAL_MIN.max(self.begin.elapsed() / 10) => {
                eprintln!("{}/{} steps, {text}", shown.steps, self.total_steps);
                self.last_line = Instant::now();
            }
            None => {}
        }
    }
}

/// Shows how many steps of a task are done: runs, iterations.
pub struct Steps {
    unit: &'static str,
    bar: Option<ProgressBar>,
    is_quiet: bool,
    done: u64,
    total: u64,
    begin: Instant,
    last_line: Instant,
}

impl Steps {
    /// Of so many; shows nothing if `quiet`.
    pub fn new(unit: &'static str, total: u64, quiet: bool) -> Self {
        let now = Instant::now();
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {prefix}, {msg}");
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_prefix(unit)
        });
        Self { unit, bar, is_quiet: quiet, done: 0, total, begin: now, last_line: now }
    }

    /// So many were done before.
    pub fn set(&mut self, done: u64) {
        self.done = done;
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }

    /// One more is done.
    pub fn advance(&mut self, text: &str) {
        self.set(self.done + 1);
        self.show(text);
    }

    /// What goes on; a line only if the last one is long enough ago.
    pub fn show(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None if self.is_quiet => {}
            None if self.last_line.elapsed() >= LINE_INTERVAL_MIN.max(self.begin.elapsed() / 10) => {
                eprintln!("{}/{} {}, {text}", self.done, self.total, self.unit);
                self.last_line = Instant::now();
            }
            None => {}
        }
    }

    /// Leaves the terminal to others.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}
