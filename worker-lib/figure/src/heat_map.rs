//! Heat maps. They show matrices as squares of coloured cells.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::page::{
    LABEL_PX, MARGIN_PX, Page, WIDTH_PX, draw_box, draw_path, label_style, page, short, write,
};
use crate::{Paint, Quantity};

/// Distance of the first row of matrices from the top of the page, in pixels. The title is above it.
const TOP_PX: i32 = 70;
/// Width of the area on the left, in pixels. It contains the row numbers and their title.
const LEFT_PX: i32 = 62;
/// Width of the area on the right that contains the legend, in pixels.
const LEGEND_PX: i32 = 100;
const BAR_PX: (i32, i32) = (14, 160);
/// Gap between matrices, in pixels.
const GAP_PX: i32 = 20;
/// Maximum side length of a matrix, in pixels.
const MOST_SIDE_PX: i32 = 220;
/// Height of a line of text above the matrices, in pixels.
const TEXT_PX: i32 = LABEL_PX + 9;

/// A matrix and its caption.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// Caption above the matrix.
    pub caption: String,
    /// Rows from top to bottom, each from left to right. Negative values are drawn as zero.
    pub values: Vec<Vec<f64>>,
}

impl Matrix {
    /// Returns the number of cells along the longer side of the matrix.
    fn cells(&self) -> usize {
        self.values.iter().map(Vec::len).fold(self.values.len(), usize::max)
    }
}

/// Row of matrices that are drawn side by side.
#[derive(Clone, Debug)]
pub struct MatrixRow {
    /// Name that is written above the row.
    pub name: String,
    /// Matrices from left to right.
    pub matrices: Vec<Matrix>,
}

/// Heat map: rows of matrices with a common colour scale from zero to the maximum of all values. The colours are those
/// of the viridis palette. They are ordered by lightness, and none is black or white, because these are the colours of
/// pages.
///
/// ```
/// use iswitch_figure::{HeatMap, Matrix, MatrixRow, Quantity};
///
/// let stage = |at: usize| Matrix { caption: format!("stage {at}"), values: vec![vec![0.0, 0.4], vec![0.1, 0.2]] };
/// let rows = vec![MatrixRow { name: "shortest path".to_owned(), matrices: vec![stage(1), stage(2), stage(3)] }];
/// let svg = HeatMap {
///     title: "Load of links".to_owned(),
///     note: "One run.".to_owned(),
///     columns: Quantity::plain("To switch"),
///     lines: Quantity::plain("From switch"),
///     scale: Quantity::plain("Load"),
///     rows,
/// }
/// .draw();
/// assert!(svg.contains("stage 3"));
/// ```
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// Title of the figure.
    pub title: String,
    /// Explanation below the title.
    pub note: String,
    /// Quantity that the columns of the matrices represent. Columns are counted from 1.
    pub columns: Quantity,
    /// Quantity that the rows of the matrices represent. Rows are counted from 1.
    pub lines: Quantity,
    /// Quantity that the colours represent.
    pub scale: Quantity,
    /// Rows of matrices from top to bottom.
    pub rows: Vec<MatrixRow>,
}

impl HeatMap {
    /// Returns the figure as SVG.
    pub fn draw(&self) -> String {
        let matrices = self.rows.iter().flat_map(|row| &row.matrices);
        let values = matrices.flat_map(|matrix| &matrix.values).flatten().copied();
        let greatest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let most = self.rows.iter().map(|row| row.matrices.len()).max().unwrap_or(0).max(1);
        let side = ((WIDTH_PX as i32 - LEFT_PX - LEGEND_PX) / most as i32 - GAP_PX).min(MOST_SIDE_PX);
        let row_px = 4 * TEXT_PX + side + GAP_PX;
        let height = TOP_PX + (row_px * self.rows.len() as i32).max(BAR_PX.1 + GAP_PX);
        page(&self.title, &self.note, height as u32, |page| {
            for (at, row) in self.rows.iter().enumerate() {
                let top = TOP_PX + at as i32 * row_px;
                write(page, &row.name, (MARGIN_PX, top), &label_style(Paint::INK, HPos::Left));
                for (at, matrix) in row.matrices.iter().enumerate() {
                    let corner = (LEFT_PX + at as i32 * (side + GAP_PX), top + TEXT_PX);
                    draw_matrix(page, matrix, corner, side, greatest);
                    self.draw_axes(page, matrix, corner, side, at == 0);
                }
            }
            let left = WIDTH_PX as i32 - MARGIN_PX;
            let style = label_style(Paint::INK, HPos::Right);
            write(page, &self.scale.title(false), (left, TOP_PX - 20), &style);
            draw_legend(page, greatest);
        })
    }

    /// Writes the numbers of the first and last column and of the first and last row, and the titles of the columns and
    /// the rows.
    fn draw_axes(&self, page: &Page<'_>, matrix: &Matrix, corner: (i32, i32), side: i32, is_first: bool) {
        let (left, top) = (corner.0, corner.1 + TEXT_PX / 2);
        let cell = (side / matrix.cells().max(1) as i32).max(1);
        let ends = |cells: usize| if cells > 1 { vec![1, cells] } else { vec![1; cells] };
        let middle = |number: usize| cell * number as i32 - cell / 2;
        let columns = matrix.values.iter().map(Vec::len).max().unwrap_or(0);
        let bottom = top + cell * matrix.values.len() as i32;
        for number in ends(columns) {
            let at = (left + middle(number), bottom + TEXT_PX / 2);
            write(page, &number.to_string(), at, &label_style(Paint::INK, HPos::Center));
        }
        let title_at = (left + cell * columns as i32 / 2, bottom + TEXT_PX / 2);
        write(page, &self.columns.title(false), title_at, &label_style(Paint::INK, HPos::Center));
        if is_first {
            for number in ends(matrix.values.len()) {
                let at = (left - 6, top + middle(number));
                write(page, &number.to_string(), at, &label_style(Paint::INK, HPos::Right));
            }
            let style = label_style(Paint::INK, HPos::Center).transform(FontTransform::Rotate270);
            write(page, &self.lines.title(false), (left - 30, top.midpoint(bottom)), &style);
        }
    }
}

fn draw_matrix(page: &Page<'_>, matrix: &Matrix, (left, top): (i32, i32), side: i32, greatest: f64) {
    write(page, &matrix.caption, (left, top), &label_style(Paint::GREY, HPos::Left));
    let top = top + TEXT_PX / 2;
    let cell = (side / matrix.cells().max(1) as i32).max(1);
    for (row, values) in matrix.values.iter().enumerate() {
        let top = top + cell * row as i32;
        let mut from = left;
        // Merge adjacent cells of the same colour into one rectangle, because large parts of a matrix may be zero.
        for cells in values.chunk_by(|a, b| colour(*a, greatest) == colour(*b, greatest)) {
            let to = from + cell * cells.len() as i32;
            if let Some(colour) = colour(cells[0], greatest) {
                draw_box(page, [(from, top), (to, top + cell)], colour);
            }
            from = to;
        }
    }
}

/// Returns the colour of a value, or `None` if the value is NaN.
fn colour(value: f64, greatest: f64) -> Option<RGBColor> {
    let part = if greatest > 0.0 { value / greatest } else { value.min(0.0) };
    (!value.is_nan()).then(|| ViridisRGB::get_color(part.clamp(0.0, 1.0)))
}

/// Draws a bar of all colours, with numbers at its ends and in its middle.
fn draw_legend(page: &Page<'_>, greatest: f64) {
    let (width, height) = BAR_PX;
    let left = WIDTH_PX as i32 - LEGEND_PX + GAP_PX;
    for y in 0..height / 2 {
        let part = f64::from(y) / f64::from(height / 2 - 1);
        let bottom = TOP_PX + height - 2 * y;
        draw_box(page, [(left, bottom - 2), (left + width, bottom)], ViridisRGB::get_color(part));
    }
    let parts: &[f64] = if greatest > 0.0 { &[0.0, 0.5, 1.0] } else { &[0.0] };
    for part in parts {
        let y = TOP_PX + height - (part * f64::from(height)) as i32;
        draw_path(page, [(left + width, y), (left + width + 4, y)], Paint::INK, 1);
        let label = short(part * greatest);
        write(page, &label, (left + width + 8, y), &label_style(Paint::INK, HPos::Left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(caption: &str, cells: usize, value: impl Fn(usize, usize) -> f64) -> Matrix {
        let row = |row: usize| (0..cells).map(|column| value(row, column)).collect();
        Matrix { caption: caption.to_owned(), values: (0..cells).map(row).collect() }
    }

    fn heat_map(title: &str, rows: Vec<MatrixRow>) -> HeatMap {
        HeatMap {
            title: title.to_owned(),
            note: String::new(),
            columns: Quantity::plain("To"),
            lines: Quantity::plain("From"),
            scale: Quantity::plain("Load"),
            rows,
        }
    }

    fn draw(matrices: Vec<Matrix>) -> String {
        let rows = vec![MatrixRow { name: "shortest path".to_owned(), matrices }];
        heat_map("share of flows", rows).draw()
    }

    #[test]
    fn captions_appear_once_and_the_greatest_value_is_labelled() {
        let one = matrix("stage 1", 20, |row, column| (row * 20 + column) as f64);
        let svg = draw(vec![one, matrix("stage 2", 16, |_, _| 0.0)]);
        for text in ["share of flows", "shortest path", "stage 1", "stage 2", "\n0\n", "\n199.5\n", "\n399\n"]
        {
            assert_eq!(svg.matches(text).count(), 1, "{text} in {svg}");
        }
    }

    #[test]
    fn all_matrices_share_one_colour_scale() {
        let cells = |greatest: f64| {
            let svg = draw(vec![matrix("", 1, |_, _| greatest), matrix("", 1, |_, _| 5.0)]);
            let (_, cells) = svg.split_once("shortest path").unwrap();
            ["#440154", "#FEE825"].map(|colour| cells.matches(&format!("fill=\"{colour}\"")).count())
        };
        let legend = 1;
        assert_eq!(cells(5.0), [legend, legend + 2]);
        assert_eq!(cells(9.0), [legend, legend + 1]);
        assert_eq!(cells(0.0), [legend + 1, legend + 1]);
    }

    #[test]
    fn adjacent_cells_of_one_colour_form_one_rectangle() {
        let rectangles = |cells: usize| {
            let svg = draw(vec![matrix("", cells, |row, column| f64::from(u8::from(row == column)))]);
            svg.matches("<rect").count()
        };
        // The first and the last row consist of two rectangles, all others of three.
        assert_eq!(rectangles(10) - rectangles(4), (2 * 2 + 8 * 3) - (2 * 2 + 2 * 3));
    }

    #[test]
    fn a_chart_without_drawable_data_is_drawn() {
        assert!(heat_map("none", Vec::new()).draw().contains("none"));
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0];
        let ragged = Matrix { caption: String::new(), values: vec![vec![1.0, 2.0, 3.0], Vec::new()] };
        for matrices in [
            Vec::new(),
            vec![matrix("", 0, |_, _| 0.0)],
            vec![matrix("", 4, |_, column| odd[column])],
            vec![ragged],
        ] {
            assert!(draw(matrices).contains("</svg>"));
        }
    }
}
