//! Progress of a benchmark on standard error.

use std::io::{IsTerminal as _, stderr};

use indicatif::{ProgressBar, ProgressStyle};

/// Progress display: a bar on a terminal, a line for each step elsewhere, or nothing.
#[derive(Clone, Debug)]
pub struct Progress(Shown);

#[derive(Clone, Debug)]
enum Shown {
    Bar(ProgressBar),
    Lines,
    Nothing,
}

impl Progress {
    /// Returns a bar if standard error is a terminal, and lines otherwise.
    pub fn new() -> Self {
        if !stderr().is_terminal() {
            return Self(Shown::Lines);
        }
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        Self(Shown::Bar(bar))
    }

    /// Returns a progress display that shows nothing.
    pub fn silent() -> Self {
        Self(Shown::Nothing)
    }

    /// Starts the display of progress over the given number of steps.
    pub fn begin(&self, steps: usize) {
        if let Shown::Bar(bar) = &self.0 {
            bar.reset();
            bar.set_length(steps as u64);
        }
    }

    /// Begins the next step.
    pub fn step(&self, text: &str) {
        match &self.0 {
            Shown::Bar(bar) => {
                bar.set_message(text.to_owned());
                bar.inc(1);
            }
            Shown::Lines => eprintln!("{text}"),
            Shown::Nothing => {}
        }
    }

    /// Prints a permanent line.
    pub fn note(&self, text: &str) {
        match &self.0 {
            Shown::Bar(bar) => bar.suspend(|| eprintln!("{text}")),
            Shown::Lines => eprintln!("{text}"),
            Shown::Nothing => {}
        }
    }

    /// Removes the bar.
    pub fn end(&self) {
        if let Shown::Bar(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
