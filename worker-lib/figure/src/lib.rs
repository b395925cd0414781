//! Figures as SVG that is readable on a light and on a dark page: [line charts](LineChart), [bar charts](BarChart),
//! [heat maps](HeatMap) and [Gantt charts](GanttChart).
//!
//! Nothing fails: charts are drawn without anything in them too, and points that are not numbers, or that a logarithmic
//! axis does not have, are left out.

mod axis;
mod bar_chart;
mod gantt_chart;
mod heat_map;
mod line_chart;
mod page;
mod paint;

pub use axis::Axis;
pub use bar_chart::{Bar, BarChart};
pub use gantt_chart::{GanttChart, GanttRow, Span};
pub use heat_map::{HeatMap, Matrix, MatrixRow};
pub use line_chart::{Line, LineChart};
pub use paint::Paint;

/// A value that others are to be compared with: a line across the chart.
#[derive(Clone, Debug)]
pub struct Reference {
    /// What stands beside it.
    pub name: String,
    /// Its colour.
    pub paint: Paint,
    /// Where it lies.
    pub value: f64,
}
