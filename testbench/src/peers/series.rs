//! Times of the same contenders over several lengths of the vector, or over several numbers of workers.

use strum::IntoEnumIterator as _;

use super::table::us_p50;
use super::{Contender, Runs, Table};
use crate::contest::Markdown;

/// Quantity that varies between the tables of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Length of the vector.
    Bytes,
    /// Number of workers.
    Workers,
}

/// Tables with the same contenders.
#[derive(Clone, Debug)]
pub struct Series {
    /// Quantity that varies between the tables.
    pub axis: Axis,
    /// Tables, at least one, in order.
    pub tables: Vec<Table>,
}

impl Series {
    /// Returns the position of a table on the axis.
    pub fn x(&self, table: &Table) -> f64 {
        match self.axis {
            Axis::Bytes => table.load.bytes(),
            Axis::Workers => table.workers as f64,
        }
    }

    /// Returns a title that describes what the tables have in common.
    pub fn title(&self) -> String {
        let first = &self.tables[0];
        let racks = if first.racks.is_some() { " in racks" } else { "" };
        match self.axis {
            Axis::Bytes => format!("{} workers{racks}, {}", first.workers, first.links.text()),
            Axis::Workers => format!("{} floats, workers{racks}, {}", first.load.floats, first.links.text()),
        }
    }

    /// Returns a figure title that describes what the tables have in common, with the vector length in bytes.
    pub(super) fn figure_title(&self) -> String {
        let first = &self.tables[0];
        let racks = if first.racks.is_some() { ", workers in racks" } else { "" };
        match self.axis {
            Axis::Bytes => self.title(),
            Axis::Workers => format!("{}{racks}, {}", bytes_text(first.load.bytes()), first.links.text()),
        }
    }

    /// Returns the part of a file name that identifies what the tables have in common.
    pub fn slug(&self) -> String {
        let first = &self.tables[0];
        let racks = if first.racks.is_some() { "racks" } else { "workers" };
        match self.axis {
            Axis::Bytes => format!("sweep-{}-{}{racks}", first.links.slug(), first.workers),
            Axis::Workers => format!("{racks}-{}-{}", first.load.floats, first.links.slug()),
        }
    }

    fn heading(&self, table: &Table) -> String {
        match (self.axis, table.racks) {
            (Axis::Bytes, _) => bytes_text(table.load.bytes()),
            (Axis::Workers, Some(1)) => format!("{} in a rack", table.workers),
            (Axis::Workers, Some(racks)) => format!("{} in {racks} racks", table.workers),
            (Axis::Workers, None) => format!("{} workers", table.workers),
        }
    }

    /// Returns two tables as Markdown: the median times, and the best time of each kind divided by the time of the
    /// first contender.
    pub fn text(&self) -> String {
        let mut times = self.columns("p50, us");
        for (at, row) in self.tables[0].standings.rows.iter().enumerate() {
            self.row(&mut times, &row.contender.to_string(), |table| {
                Some(us_p50(&table.standings.rows[at]).text(0))
            });
        }
        if self.tables[0].wire_us().is_some() {
            self.row(&mut times, "wire limit", |table| table.wire_us().map(|us| format!("{us:.0}")));
        }
        let mut ratios = self.columns(&self.tables[0].ratio_heading());
        for family in Family::iter() {
            let best = |table: &Table| family.best(table).map(|row| table.ratio(row).text(2));
            if best(&self.tables[0]).is_some() {
                self.row(&mut ratios, family.name(), best);
            }
        }
        format!("### {}\n\n{}\n{}", self.title(), times.text(), ratios.text())
    }

    fn columns(&self, name: &str) -> Markdown {
        let headings = self.tables.iter().map(|table| self.heading(table));
        Markdown::new([name.to_owned()].into_iter().chain(headings))
    }

    fn row(&self, rows: &mut Markdown, name: &str, cell: impl Fn(&Table) -> Option<String>) {
        let cells = self.tables.iter().map(|table| cell(table).unwrap_or_default());
        rows.row([name.to_owned()].into_iter().chain(cells));
    }
}

/// Kind of contenders. At each point, only the fastest contender of a kind counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter, strum::IntoStaticStr)]
pub enum Family {
    /// iswitchd with any kind of ports.
    #[strum(to_string = "iswitchd, the best")]
    Switch,
    /// Any algorithm of Open MPI.
    #[strum(to_string = "Open MPI, the best")]
    Mpi,
    /// Gloo.
    Gloo,
    /// Ring of this project, in either style.
    #[strum(to_string = "ring, the better")]
    Ring,
    /// Parameter server of this project, in either style.
    #[strum(to_string = "parameter server, the better")]
    ParameterServer,
}

impl Family {
    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the kind of a contender.
    pub fn of(contender: Contender) -> Self {
        match contender {
            Contender::Switch(..) => Self::Switch,
            Contender::Mpi(..) => Self::Mpi,
            Contender::Gloo(_) => Self::Gloo,
            Contender::Ring(_) => Self::Ring,
            Contender::ParameterServer(_) => Self::ParameterServer,
        }
    }

    /// Returns the fastest contender of this kind in a table.
    pub fn best(self, table: &Table) -> Option<&Runs> {
        table.standings.least(|contender| Self::of(*contender) == self, |run| run.us_p50)
    }
}

/// Formats a number of bytes, such as `256 KiB`.
pub(crate) fn bytes_text(bytes: f64) -> String {
    let (unit, name) = [(1024.0 * 1024.0, "MiB"), (1024.0, "KiB"), (1.0, "B")]
        .into_iter()
        .find(|(unit, _)| bytes >= *unit)
        .unwrap_or((1.0, "B"));
    let value = bytes / unit;
    if value.fract() == 0.0 { format!("{value} {name}") } else { format!("{value:.1} {name}") }
}

/// Formats a time, such as `78 us` or `6.7 ms`.
pub(super) fn time_text(us: f64) -> String {
    match us {
        0.0 => "0".to_owned(),
        us if us < 999.5 => format!("{us:.0} us"),
        us if us < 99_950.0 => format!("{:.1} ms", us / 1e3),
        us if us < 999_500.0 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_abbreviated() {
        let texts = [4096.0, 16_777_216.0, 40_476.0, 12.0].map(bytes_text);
        assert_eq!(texts, ["4 KiB", "16 MiB", "39.5 KiB", "12 B"]);
        let texts = [0.0, 78.4, 6_681.0, 223_261.0, 1_234_567.0].map(time_text);
        assert_eq!(texts, ["0", "78 us", "6.7 ms", "223 ms", "1.2 s"]);
    }
}
