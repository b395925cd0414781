//! Write latencies of items of one length, as text, JSON, CSV and a figure.

use std::fmt::Write as _;

use iswitch_figure::{Axis, Line, LineChart, Paint, Quantity};
use serde_json::{Value, json};

use super::{Contender, Kind, Load, LoadedContender, Run};
use crate::contest::{Markdown, Row, Spread, Standings};
use crate::peers::plot::tick_text;
use crate::peers::series::bytes_text;

/// Measurements with items of one length: a row for each contender and number of actors.
#[derive(Clone, Debug)]
pub struct Table {
    /// Load of the measurements.
    pub load: Load,
    /// Runs of each contender and number of actors.
    pub standings: Standings<LoadedContender, Run>,
}

/// Rows of one contender, in ascending order of the number of actors.
type Columns = [Row<LoadedContender, Run>];

impl Table {
    /// Returns each contender with its rows.
    pub fn contenders(&self) -> impl Iterator<Item = (Contender, &Columns)> {
        let all = self.standings.rows.chunks(self.load.actors.len());
        all.map(|columns| (columns[0].contender.contender, columns))
    }

    fn title(&self) -> String {
        let Load { len_bytes, rate, .. } = &self.load;
        let think = self.load.think().as_secs_f64();
        format!("{}, {} for each shard, pauses of {think:.2} s", bytes_text(*len_bytes as f64), rate.text())
    }

    /// Returns the part of a file name that identifies the table.
    pub fn slug(&self) -> String {
        format!("replay-{}kib-{}gbit", self.load.len_bytes >> 10, self.load.rate.bits_per_s / 1e9)
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let actors = &self.load.actors;
        let (few, many) = (actors[0], actors[actors.len() - 1]);
        let heads = actors.iter().map(|actors| format!("{actors} actors"));
        let growth = format!("latency of {many} / of {few} actors");
        let mut rows = Markdown::new([String::new()].into_iter().chain(heads).chain([growth]));
        for (contender, columns) in self.contenders() {
            let cells = columns.iter().map(|row| {
                let of = |value: fn(&Run) -> f64| row.spread(value).median;
                format!("{:.1} ({:.1})", of(|run| run.mean_ms), of(|run| run.p99_ms))
            });
            rows.row([contender.to_string()].into_iter().chain(cells).chain([growth_of(columns).text(2)]));
        }
        format!(
            "### {}\n\nMean latency in ms, with p99 in parentheses; a single item occupies a link for {:.1} ms.\n\n{}",
            self.title(),
            self.load.wire_s() * 1e3,
            rows.text()
        )
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let cell = |row: &Row<LoadedContender, Run>| {
            let of = |value: fn(&Run) -> f64| row.spread(value).json();
            json!({
                "actors": row.contender.actors, "inserts": of(|run| run.inserts as f64),
                "mean_ms": of(|run| run.mean_ms), "p50_ms": of(|run| run.p50_ms), "p99_ms": of(|run| run.p99_ms),
            })
        };
        let row = |(contender, columns): (Contender, &Columns)| {
            json!({
                "contender": contender.to_string(), "shards": contender.shards,
                "cells": columns.iter().map(cell).collect::<Vec<_>>(), "growth": growth_of(columns).json(),
            })
        };
        json!({
            "len_bytes": self.load.len_bytes, "turns": self.load.turns, "bits_per_s": self.load.rate.bits_per_s,
            "think_s": self.load.think().as_secs_f64(), "rows": self.contenders().map(row).collect::<Vec<_>>(),
        })
    }

    /// Returns one line for each turn of each contender, to follow [`CSV_HEAD`].
    pub fn csv(&self) -> String {
        let mut text = String::new();
        let (len_bytes, bits_per_s) = (self.load.len_bytes, self.load.rate.bits_per_s);
        for Row { contender: LoadedContender { contender, actors }, runs } in &self.standings.rows {
            let (kind, shards) = (contender.kind.slug(), contender.shards);
            for (turn, Run { inserts, mean_ms, p50_ms, p99_ms }) in runs.iter().enumerate() {
                let _ = writeln!(
                    text,
                    "{len_bytes},{bits_per_s},{kind},{shards},{actors},{turn},{inserts},{mean_ms:.3},{p50_ms:.3},\
                     {p99_ms:.3}"
                );
            }
        }
        text
    }

    /// Returns a figure of the mean latency by number of actors, as SVG. Colours show the number of shards; lines of
    /// Reverb are dashed.
    pub fn figure(&self) -> String {
        let line = |(contender, columns): (Contender, &Columns)| {
            let us = columns.iter().map(|row| (row.contender.actors, row.spread(|run| run.mean_ms * 1e3)));
            let (points, spreads) = us.map(|(actors, us)| ((actors as f64, us.median), us.ends())).unzip();
            let is_own = contender.kind != Kind::Reverb;
            Line {
                width_px: if is_own { 3 } else { 2 },
                is_dashed: !is_own,
                spreads,
                ..Line::new(contender.to_string(), paint(contender.shards), points)
            }
        };
        let ticks = self.load.actors.iter().map(|actors| *actors as f64).collect();
        LineChart {
            title: format!("Replay write latency by number of actors: {}", self.title()),
            note: format!("Mean latency; {}. Dashed: Reverb.", self.standings.note()),
            x: Axis {
                label: |actors| format!("{actors:.0}"),
                ticks,
                ..Axis::logarithmic(Quantity::plain("Actors"))
            },
            y: Axis { label: tick_text, ..Axis::logarithmic(Quantity::plain("Mean write latency")) },
            lines: self.contenders().map(line).collect(),
            references: Vec::new(),
        }
        .draw()
    }
}

/// Returns the mean latency with the largest number of actors, divided by the mean latency with the smallest number in
/// the same turn.
fn growth_of(columns: &Columns) -> Spread {
    columns[columns.len() - 1].ratio_to(&columns[0], |run| run.mean_ms)
}

fn paint(shards: usize) -> Paint {
    match shards {
        1 => Paint::RED,
        2 => Paint::YELLOW,
        4 => Paint::GREEN,
        _ => Paint::BLUE,
    }
}

/// Header line of [`Table::csv`].
pub const CSV_HEAD: &str = "len_bytes,bits_per_s,kind,shards,actors,turn,inserts,mean_ms,p50_ms,p99_ms\n";
