//! What was measured with items of one length, as text, JSON, CSV and a figure.

use std::fmt::Write as _;

use iswitch_figure::{Axis, Line, LineChart, Paint};
use serde_json::{Value, json};

use super::{Contender, Kind, Load, Run};
use crate::peers::plot::tick_text;
use crate::peers::series::bytes_text;
use crate::spread::Spread;

/// Runs of each contender: for each number of actors, turn by turn.
#[derive(Clone, Debug)]
pub struct Table {
    /// Who has written what.
    pub load: Load,
    /// The runs.
    pub rows: Vec<(Contender, Vec<Vec<Run>>)>,
}

impl Table {
    /// How many times the mean latency of the least number of actors that of the greatest is, in the same turn.
    pub fn growth(&self, columns: &[Vec<Run>]) -> Spread {
        let (few, many) = (&columns[0], &columns[columns.len() - 1]);
        Spread::of(few.iter().zip(many).map(|(few, many)| many.mean_ms / few.mean_ms))
    }

    fn title(&self) -> String {
        let Load { len_bytes, rate, .. } = &self.load;
        let think = self.load.think().as_secs_f64();
        format!("{}, {} for each shard, pauses of {think:.2} s", bytes_text(*len_bytes as f64), rate.text())
    }

    /// For the name of a file.
    pub fn slug(&self) -> String {
        format!("replay-{}kib-{}gbit", self.load.len_bytes >> 10, self.load.rate.bits_per_s / 1e9)
    }

    /// For people, as Markdown.
    pub fn text(&self) -> String {
        let actors = &self.load.actors;
        let wire_ms = self.load.wire_s() * 1e3;
        let mut text = format!("### {}\n\nMean latency (p99) in ms; one item alone occupies ", self.title());
        let _ = writeln!(text, "a link for {wire_ms:.1} ms.\n");
        text += "| |";
        for actors in actors {
            let _ = write!(text, " {actors} actors |");
        }
        let (few, many) = (actors[0], actors[actors.len() - 1]);
        let _ = writeln!(text, " {many} to {few} actors, times |");
        let _ = writeln!(text, "|---|{}", "---|".repeat(actors.len() + 1));
        for (contender, columns) in &self.rows {
            let _ = write!(text, "| {contender} |");
            for runs in columns {
                let of = |value: fn(&Run) -> f64| Spread::of(runs.iter().map(value)).median;
                let _ = write!(text, " {:.1} ({:.1}) |", of(|run| run.mean_ms), of(|run| run.p99_ms));
            }
            let _ = writeln!(text, " {} |", self.growth(columns).text(2));
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let cell = |(actors, runs): (&usize, &Vec<Run>)| {
            let of = |value: fn(&Run) -> f64| Spread::of(runs.iter().map(value)).json();
            json!({
                "actors": actors, "inserts": of(|run| run.inserts as f64), "mean_ms": of(|run| run.mean_ms),
                "p50_ms": of(|run| run.p50_ms), "p99_ms": of(|run| run.p99_ms),
            })
        };
        let row = |(contender, columns): &(Contender, Vec<Vec<Run>>)| {
            let cells: Vec<_> = self.load.actors.iter().zip(columns).map(cell).collect();
            json!({
                "contender": contender.to_string(), "shards": contender.shards, "cells": cells,
                "growth": self.growth(columns).json(),
            })
        };
        json!({
            "len_bytes": self.load.len_bytes, "turns": self.load.turns, "bits_per_s": self.load.rate.bits_per_s,
            "think_s": self.load.think().as_secs_f64(), "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    /// One line for each turn of each contender, below [`CSV_HEAD`].
    pub fn csv(&self) -> String {
        let mut text = String::new();
        let (len_bytes, bits_per_s) = (self.load.len_bytes, self.load.rate.bits_per_s);
        for (Contender { kind, shards }, columns) in &self.rows {
            for (actors, runs) in self.load.actors.iter().zip(columns) {
                for (turn, Run { inserts, mean_ms, p50_ms, p99_ms }) in runs.iter().enumerate() {
                    let _ = writeln!(
                        text,
                        "{len_bytes},{bits_per_s},{},{shards},{actors},{turn},{inserts},{mean_ms:.3},{p50_ms:.3},\
                         {p99_ms:.3}",
                        kind.slug()
                    );
                }
            }
        }
        text
    }

    /// Mean latency over the number of actors, as SVG: colours are numbers of shards, dashes are Reverb's.
    pub fn figure(&self) -> String {
        let line = |(contender, columns): &(Contender, Vec<Vec<Run>>)| {
            let us: Vec<Spread> = columns
                .iter()
                .map(|runs| Spread::of(runs.iter().map(|run| run.mean_ms)).scaled(1e3))
                .collect();
            let xs = self.load.actors.iter().map(|actors| *actors as f64);
            let points = xs.zip(&us).map(|(x, us)| (x, us.median)).collect();
            Line {
                is_dashed: contender.kind == Kind::Reverb,
                spreads: us.iter().map(|us| us.ends()).collect(),
                ..Line::new(contender.to_string(), paint(contender.shards), points)
            }
        };
        let ticks = self.load.actors.iter().map(|actors| *actors as f64).collect();
        LineChart {
            title: format!("Mean write latency over actors: {}", self.title()),
            x: Axis { label: |actors| format!("{actors:.0}"), ticks, ..Axis::logarithmic() },
            y: Axis { label: tick_text, ..Axis::logarithmic() },
            lines: self.rows.iter().map(line).collect(),
            references: Vec::new(),
        }
        .draw()
    }
}

fn paint(shards: usize) -> Paint {
    match shards {
        1 => Paint::RED,
        2 => Paint::YELLOW,
        4 => Paint::GREEN,
        _ => Paint::BLUE,
    }
}

/// Columns of [`Table::csv`].
pub const CSV_HEAD: &str = "len_bytes,bits_per_s,kind,shards,actors,turn,inserts,mean_ms,p50_ms,p99_ms\n";
