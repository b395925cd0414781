//! Which network.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use iswitch_routing::network::Shape;
use iswitch_routing::rates::Rates;

pub(super) const STAGES: usize = 3;
pub(super) const SWITCHES: usize = 16;
pub(super) const LOAD: f64 = 0.6;

/// Size of a network.
#[derive(Args, Clone, Debug)]
pub(super) struct ShapeArgs {
    /// Stages [default: 3; of a trained policy its own].
    #[arg(long, value_name = "S")]
    stages: Option<usize>,
    /// Switches of a stage, and classes [default: 16; of a trained policy its own].
    #[arg(long, value_name = "N")]
    switches: Option<usize>,
}

impl ShapeArgs {
    /// What was asked for; what was not is as in `default`, if there is one.
    pub(super) fn shape(&self, default: Option<Shape>) -> anyhow::Result<Shape> {
        let stages = self.stages.unwrap_or_else(|| default.map_or(STAGES, Shape::stages));
        let switches = self.switches.unwrap_or_else(|| default.map_or(SWITCHES, Shape::switches));
        Shape::new(stages, switches).context("the network's size")
    }
}

/// Arrival rates of one or more runs, and how long they are.
#[derive(Args, Clone, Debug)]
pub(super) struct RunsArgs {
    /// Arrival rates from a CSV file, a line of N numbers for each of N switches, in place of draws.
    #[arg(long, value_name = "FILE", conflicts_with = "switches")]
    rates: Option<PathBuf>,
    /// Draws of arrival rates, uniform over 0 to 1 and rescaled to the load, with a run each [default: 20]; with
    /// --rates just runs [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    draws: Option<u64>,
    /// Number of the first draw.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) draw: u64,
    /// Slots of a run, from an empty network.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) slots: u64,
}

const DRAWS: u64 = 20;

impl RunsArgs {
    /// The numbers of all draws.
    pub(super) fn numbers(&self) -> std::ops::Range<u64> {
        self.draw..self.draw + self.draws.unwrap_or(if self.rates.is_some() { 1 } else { DRAWS })
    }

    /// The size of the network of a file.
    pub(super) fn shape_of_file(&self) -> anyhow::Result<Option<Shape>> {
        Ok(self.rates.as_ref().map(|path| Rates::read(path, STAGES)).transpose()?.map(|rates| rates.shape()))
    }

    /// Arrival rates of one draw.
    pub(super) fn rates(&self, shape: Shape, load: f64, draw: u64) -> anyhow::Result<Rates> {
        Ok(match &self.rates {
            Some(path) => Rates::read(path, shape.stages())?,
            None => Rates::uniform(shape, load, draw)?,
        })
    }

    /// Whether all runs have the same rates.
    pub(super) fn is_file(&self) -> bool {
        self.rates.is_some()
    }
}
