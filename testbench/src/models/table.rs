//! Read latencies of one model, as text, JSON, CSV and a figure.

use std::fmt::Write as _;

use iswitch_figure::{Axis, Line, LineChart, Paint, Quantity, Reference};
use serde_json::{Value, json};

use super::{Contender, Load, Run};
use crate::contest::{Markdown, Row, Spread, Standings};
use crate::peers::Rate;
use crate::peers::plot::tick_text;
use crate::peers::series::bytes_text;

/// Measurements with one model. The first contender is the reference for the others.
#[derive(Clone, Debug)]
pub struct Table {
    /// Load of the measurements.
    pub load: Load,
    /// Rate of the links of the learner and of the cells.
    pub rate: Rate,
    /// Runs of each contender.
    pub standings: Standings<Contender, Run>,
}

impl Table {
    /// Returns the mean latency of the first contender divided by that of the contender in `row` in the same turn.
    pub fn speedup(&self, row: &Row<Contender, Run>) -> Spread {
        self.standings.reference().ratio_to(row, |run| run.mean_ms)
    }

    /// Returns the contender of a kind with the highest speed-up, and that speed-up.
    pub fn best(&self, is_of_kind: fn(Contender) -> bool) -> Option<(Contender, Spread)> {
        let rows = self.standings.rows.iter().filter(|row| is_of_kind(row.contender));
        let speedups = rows.map(|row| (row.contender, self.speedup(row)));
        speedups.max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))
    }

    /// Returns the time for which one model occupies a link, in milliseconds.
    fn wire_ms(&self) -> f64 {
        self.rate.seconds_for(self.load.len_bytes as f64) * 1e3
    }

    /// Returns a lower bound on the time of a turn, in milliseconds: the time that the busiest link needs for all the
    /// models that the learner or a cell sends over it.
    fn bound_ms(&self, contender: Contender) -> f64 {
        let cells = contender.cells();
        let models = if cells == 0 { self.load.actors } else { self.load.actors.div_ceil(cells).max(cells) };
        self.wire_ms() * models as f64
    }

    fn title(&self) -> String {
        let Load { actors, len_bytes, .. } = self.load;
        format!("{actors} actors, {}, {}", bytes_text(len_bytes as f64), self.rate.text())
    }

    /// Returns the part of a file name that identifies the measurement.
    pub fn slug(&self) -> String {
        let Load { actors, len_bytes, .. } = self.load;
        format!("models-{actors}-{}kib-{}gbit", len_bytes >> 10, self.rate.bits_per_s / 1e9)
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let mut rows = Markdown::new([
            "read from",
            "mean, ms",
            "p99, ms",
            "last actor, ms",
            "speed-up over the learner itself",
            "bound of the busiest link, ms",
        ]);
        for row in &self.standings.rows {
            let spread = |value: fn(&Run) -> f64| row.spread(value).text(0);
            rows.row([
                row.contender.to_string(),
                spread(|run| run.mean_ms),
                spread(|run| run.p99_ms),
                spread(|run| run.last_ms),
                self.speedup(row).text(2),
                format!("{:.0}", self.bound_ms(row.contender)),
            ]);
        }
        format!("### {}\n\n{}", self.title(), rows.text())
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let row = |row: &Row<Contender, Run>| {
            let of = |value: fn(&Run) -> f64| row.spread(value).json();
            json!({
                "contender": row.contender.to_string(), "cells": row.contender.cells(),
                "mean_ms": of(|run| run.mean_ms), "p99_ms": of(|run| run.p99_ms),
                "last_ms": of(|run| run.last_ms), "speedup": self.speedup(row).json(),
                "bound_ms": self.bound_ms(row.contender),
            })
        };
        json!({
            "actors": self.load.actors, "len_bytes": self.load.len_bytes, "turns": self.load.turns,
            "bits_per_s": self.rate.bits_per_s, "rows": self.standings.json(row),
        })
    }

    /// Returns one line for each turn of each contender, to follow [`CSV_HEAD`].
    pub fn csv(&self) -> String {
        let Load { actors, len_bytes, .. } = self.load;
        let mut text = String::new();
        for Row { contender, runs } in &self.standings.rows {
            for (turn, Run { mean_ms, p99_ms, last_ms }) in runs.iter().enumerate() {
                let cells = contender.cells();
                let kind = match contender {
                    Contender::Direct => "direct",
                    Contender::Embedded(_) => "embedded",
                    Contender::Nginx(_) => "nginx",
                };
                let _ = writeln!(
                    text,
                    "{actors},{len_bytes},{},{kind},{cells},{turn},{mean_ms:.3},{p99_ms:.3},{last_ms:.3}",
                    self.rate.bits_per_s
                );
            }
        }
        text
    }

    /// Returns a figure of the mean latency by number of cells, as SVG.
    pub fn figure(&self) -> String {
        let us = |row: &Row<Contender, Run>| row.spread(|run| run.mean_ms * 1e3);
        let line = |name: &str, paint, is_of_kind: fn(Contender) -> bool| {
            let rows = self.standings.rows.iter().filter(|row| is_of_kind(row.contender));
            let (points, spreads) =
                rows.map(|row| ((row.contender.cells() as f64, us(row).median), us(row).ends())).unzip();
            Line { width_px: 3, spreads, ..Line::new(name, paint, points) }
        };
        let lines = [
            line("nginx", Paint::GREEN, |contender| matches!(contender, Contender::Nginx(_))),
            line("embedded cache", Paint::BLUE, |contender| matches!(contender, Contender::Embedded(_))),
        ];
        let direct = Reference {
            name: "learner itself".to_owned(),
            paint: Paint::RED,
            value: us(self.standings.reference()).median,
        };
        LineChart {
            title: format!("Model read latency by number of cache cells: {}", self.title()),
            note: format!("Mean latency; {}.", self.standings.note()),
            x: Axis {
                label: |cells| format!("{cells:.0}"),
                includes: vec![0.0],
                ..Axis::linear(Quantity::plain("Cells"))
            },
            y: Axis {
                label: tick_text,
                includes: vec![0.0],
                ..Axis::linear(Quantity::plain("Mean read latency"))
            },
            lines: lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
            references: vec![direct],
        }
        .draw()
    }
}

/// Header line of [`Table::csv`].
pub const CSV_HEAD: &str = "actors,len_bytes,bits_per_s,kind,cells,turn,mean_ms,p99_ms,last_ms\n";
