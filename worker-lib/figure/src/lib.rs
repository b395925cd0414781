//! SVG figures that are readable on light and dark pages: [line charts](LineChart), [bar charts](BarChart), [heat
//! maps](HeatMap) and [Gantt charts](GanttChart).
//!
//! Drawing never fails. A chart without data is drawn as an empty chart. A point is omitted if one of its coordinates
//! is not a number, or if a logarithmic axis cannot represent it.
//!
//! The plotters crate draws the elements and maps values to pixels. If only its SVG backend is enabled, it adds just
//! four small dependencies. This crate adds what plotters lacks: mandatory axis titles, labels at the ends of lines,
//! and colours for light and dark pages.

mod axis;
mod bar_chart;
mod gantt_chart;
mod heat_map;
mod line_chart;
mod page;
mod paint;
mod quantity;
#[cfg(test)]
mod readability;

pub use axis::Axis;
pub use bar_chart::{Bar, BarChart};
pub use gantt_chart::{GanttChart, GanttRow, Span};
pub use heat_map::{HeatMap, Matrix, MatrixRow};
pub use line_chart::{Line, LineChart};
pub use paint::Paint;
pub use quantity::Quantity;

/// Reference value for comparison, drawn as a line across the whole chart.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Label of the line.
    pub name: String,
    /// Colour of the line.
    pub paint: Paint,
    /// Value at which the line is drawn.
    pub value: f64,
}
