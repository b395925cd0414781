//! The function `iswitch._studies.routing`.

use std::path::PathBuf;

use iswitch_routing::environment::{RateSource, RoutingEnvironment};
use iswitch_routing::network::Shape;
use iswitch_routing::rates::Rates;
use pyo3::prelude::*;

use crate::environment::Simulator;
use crate::errors::{bad, check_exist, to_python};

/// Returns a simulator of a network in which an agent chooses the link of each packet.
#[pyfunction]
#[pyo3(signature = (*, stages, switches, load, slots, rates_file, rates_draw, fill))]
pub(crate) fn routing(
    stages: usize,
    switches: Option<usize>,
    load: Option<f64>,
    slots: u64,
    rates_file: Option<PathBuf>,
    rates_draw: Option<u64>,
    fill: &str,
) -> PyResult<Simulator> {
    const SWITCHES: usize = 4;
    const LOAD: f64 = 0.8;
    check_exist(&[("rates_file", &rates_file)])?;
    let (shape, rates) = if let Some(path) = rates_file {
        if let Some(load) = load {
            return Err(bad("load", load, "None, because rates_file determines the load"));
        }
        if let Some(draw) = rates_draw {
            return Err(bad("rates_draw", draw, "None, because rates_file determines the rates"));
        }
        let rates = Rates::read(&path, stages).map_err(to_python)?;
        let shape = rates.shape();
        if let Some(switches) = switches.filter(|switches| *switches != shape.switches()) {
            return Err(bad("switches", switches, format!("{}, as in rates_file", shape.switches())));
        }
        (shape, RateSource::Fixed(rates))
    } else {
        let shape = Shape::new(stages, switches.unwrap_or(SWITCHES)).map_err(to_python)?;
        let load = load.unwrap_or(LOAD);
        match rates_draw {
            Some(draw) => (shape, RateSource::Fixed(Rates::uniform(shape, load, draw).map_err(to_python)?)),
            None => (shape, RateSource::Drawn { load }),
        }
    };
    let fill = fill.parse().map_err(to_python)?;
    RoutingEnvironment::new(shape, rates, slots, fill).map(Simulator::new).map_err(to_python)
}
