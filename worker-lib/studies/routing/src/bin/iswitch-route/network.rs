//! Arguments that select the network and its arrival rates.

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
    /// Number of stages
    ///
    /// The default is the number of stages of the trained policy, or 3 without a trained policy.
    #[arg(long, value_name = "S")]
    stages: Option<usize>,
    /// Number of switches per stage, which is also the number of classes
    ///
    /// The default is the number in the --rates file, or that of the trained policy. Without either, the default is 16.
    #[arg(long, value_name = "N")]
    switches: Option<usize>,
}

impl ShapeArgs {
    /// Returns the size of the network. A dimension that the options do not specify is taken from `default`, if that is
    /// given.
    pub(super) fn shape(&self, default: Option<Shape>) -> anyhow::Result<Shape> {
        let stages = self.stages.unwrap_or_else(|| default.map_or(STAGES, Shape::stages));
        let switches = self.switches.unwrap_or_else(|| default.map_or(SWITCHES, Shape::switches));
        Shape::new(stages, switches).context("invalid size of the network")
    }
}

/// Arrival rates of one or more runs, and the length of a run.
#[derive(Args, Clone, Debug)]
pub(super) struct RunsArgs {
    /// CSV file of arrival rates, instead of random ones
    ///
    /// The file has one line for each of the N switches of the first stage. Each line has N numbers, one for each
    /// class.
    #[arg(long, value_name = "FILE", conflicts_with = "switches")]
    rates: Option<PathBuf>,
    /// Number of draws of arrival rates, with one run each
    ///
    /// Arrival rates are drawn uniformly from 0 to 1 and rescaled to the load; the default is 5 draws. With --rates,
    /// all runs use the rates in the file, and the default is 1 run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    draws: Option<u64>,
    /// Number of the first draw; a draw's number is also its seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) draw: u64,
    /// Number of slots per run, starting from an empty network
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) slots: u64,
}

const DRAWS: u64 = 5;

impl RunsArgs {
    /// Returns the numbers of all draws.
    pub(super) fn numbers(&self) -> std::ops::Range<u64> {
        self.draw..self.draw + self.draws.unwrap_or(if self.rates.is_some() { 1 } else { DRAWS })
    }

    /// Returns the default size of the network: the number of switches in the file of arrival rates, if one is given,
    /// and otherwise the size for which the policy was trained.
    pub(super) fn default_shape(&self, trained: Option<Shape>) -> anyhow::Result<Option<Shape>> {
        let Some(path) = &self.rates else { return Ok(trained) };
        Ok(Some(Rates::read(path, trained.map_or(STAGES, Shape::stages))?.shape()))
    }

    /// Returns the arrival rates of one draw.
    pub(super) fn rates(&self, shape: Shape, load: f64, draw: u64) -> anyhow::Result<Rates> {
        Ok(match &self.rates {
            Some(path) => Rates::read(path, shape.stages())?,
            None => Rates::uniform(shape, load, draw)?,
        })
    }

    /// Returns whether the rates come from a file, in which case all runs have the same rates.
    pub(super) fn is_file(&self) -> bool {
        self.rates.is_some()
    }
}
