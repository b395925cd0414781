//! `iswitchctl top`: a screen that continuously shows the state of a daemon.

mod app;
mod draw;
mod number;
mod rates;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use iswitch_control::Request;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::ask::QueryArgs;
use crate::view::View;
use app::App;

/// Minimum time between two requests to the daemon, in seconds.
const INTERVAL_MIN_S: f64 = 0.1;

/// Options of `iswitchctl top`.
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Refresh interval, in seconds, from 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = parse_interval)]
    interval: f64,
}

fn parse_interval(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if (INTERVAL_MIN_S..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("expected a number of seconds between {INTERVAL_MIN_S} and 3600"))
    }
}

/// Shows the state of the daemon until the user quits.
pub(crate) fn run(args: &TopArgs, ask: &QueryArgs) -> anyhow::Result<ExitCode> {
    let mut app = App::default();
    // The daemon is queried before the terminal is changed, so that an error is printed on the normal screen.
    app.update(look(ask)?);
    let mut terminal = ratatui::try_init().context("cannot set up the screen: top needs a terminal")?;
    let outcome = follow(&mut terminal, &mut app, Duration::from_secs_f64(args.interval), ask);
    ratatui::restore();
    outcome.map(|()| ExitCode::SUCCESS)
}

fn look(ask: &QueryArgs) -> anyhow::Result<View> {
    serde_json::from_value(ask.ask(Request::Snapshot)?)
        .context("cannot parse the daemon's snapshot; install the same release of iswitchd and iswitchctl")
}

fn follow(
    terminal: &mut DefaultTerminal,
    app: &mut App,
    interval: Duration,
    ask: &QueryArgs,
) -> anyhow::Result<()> {
    let mut next = Instant::now() + interval;
    loop {
        terminal.draw(|frame| draw::draw(frame, app))?;
        if event::poll(next.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press && app.press(key) => return Ok(()),
                _ => continue,
            }
        }
        if Instant::now() >= next {
            match look(ask) {
                Ok(view) => app.update(view),
                Err(error) => app.fail(&error),
            }
            next = Instant::now() + interval;
        }
    }
}
