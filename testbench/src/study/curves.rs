//! Learning curves as a figure.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::convergence::{Comparison, Training};
use super::tasks::Method;
use crate::figure::{
    BLUE, GREEN, GREY, GRID, INK, LABEL_PX, RED, TITLE_PX, YELLOW, label_ends, page, text_style, write,
};

const HEIGHT_PX: u32 = 460;
/// Room above and below the curves, in parts of their range.
const MARGIN: f64 = 0.05;

/// A line for each run, in a colour for each method: mean return of the last 100 episodes over environment steps or,
/// where workers do not wait, over gradients in the model. The return that counts as learnt is marked.
pub fn draw(comparison: &Comparison) -> String {
    let Comparison { task, workers, rows } = comparison;
    let is_async = rows.iter().any(|(method, _)| method.is_async);
    let lines: Vec<(Method, Vec<(f64, f64)>)> = rows
        .iter()
        .flat_map(|(method, trainings)| trainings.iter().map(|training| (*method, training)))
        .map(|(method, training)| (method, points(method, training, *workers)))
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let all = || lines.iter().flat_map(|(_, points)| points.iter().copied());
    let right = all().map(|(x, _)| x).fold(1.0, f64::max);
    let least = all().map(|(_, y)| y).fold(task.threshold, f64::min);
    let greatest = all().map(|(_, y)| y).fold(task.threshold, f64::max);
    let margin = MARGIN * (greatest - least).max(1.0);
    let over = if is_async { "gradients in the model" } else { "environment steps" };
    let algorithm = task.algorithm.to_uppercase();
    let title = format!("{algorithm} on {}, {workers} workers: mean return over {over}", task.env);
    page(HEIGHT_PX, |page| {
        write(page, &title, (16, 20), &text_style(TITLE_PX, INK.light, HPos::Left));
        let mut chart = ChartBuilder::on(page)
            .margin_top(44)
            .margin_right(230)
            .x_label_area_size(34)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..right, least - margin..greatest + margin)
            .expect("the page has room");
        chart
            .configure_mesh()
            .x_labels(6)
            .bold_line_style(GRID.light)
            .light_line_style(TRANSPARENT)
            .axis_style(GRID.light)
            .x_label_style(text_style(LABEL_PX, INK.light, HPos::Center))
            .y_label_style(text_style(LABEL_PX, INK.light, HPos::Right))
            .x_label_formatter(&|x| thousands(*x))
            .draw()
            .expect("a string takes all");
        let to_pixels = |point: (f64, f64)| chart.backend_coord(&point);
        let learnt = [to_pixels((0.0, task.threshold)), to_pixels((right, task.threshold))];
        page.draw(&PathElement::new(learnt, INK.light.stroke_width(1))).expect("a string takes all");
        let mut ends = vec![(learnt[1], "learnt".to_owned(), INK.light)];
        for (method, points) in &lines {
            let pixels: Vec<_> = points.iter().map(|point| to_pixels(*point)).collect();
            let end = (learnt[1].0, pixels[pixels.len() - 1].1);
            page.draw(&PathElement::new(pixels, colour(*method).stroke_width(2)))
                .expect("a string takes all");
            if ends.iter().all(|(_, name, _)| *name != method.name()) {
                ends.push((end, method.name(), colour(*method)));
            }
        }
        label_ends(page, ends);
    })
}

fn points(method: Method, training: &Training, workers: usize) -> Vec<(f64, f64)> {
    let gradients = training.updates * if method.aggregator == "switch" { workers as f64 } else { 1.0 };
    let points = training.points.iter();
    points
        .map(|point| (if method.is_async { point.part * gradients } else { point.steps }, point.mean_return))
        .collect()
}

fn colour(method: Method) -> RGBColor {
    match method.aggregator {
        "switch" => BLUE,
        "ps" => GREEN,
        "ring" => YELLOW,
        "local" => GREY,
        _ => RED,
    }
    .light
}

fn thousands(x: f64) -> String {
    if x >= 1e6 {
        format!("{} M", x / 1e6)
    } else if x >= 1e3 {
        format!("{} k", x / 1e3)
    } else {
        x.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::convergence::Point;
    use super::super::tasks::TASKS;
    use super::*;

    fn training() -> Training {
        let point =
            |steps: f64, mean_return: f64| Point { steps, seconds: 1.0, part: steps / 4e5, mean_return };
        Training {
            seed: 1,
            points: vec![point(1e5, 20.0), point(2e5, 300.0), point(4e5, 490.0)],
            updates: 1000.0,
            steps: 4e5,
            final_return: Some(490.0),
            staleness: None,
        }
    }

    #[test]
    fn each_method_is_named_once_and_the_return_is_marked() {
        let rows = Method::SYNCHRONOUS.map(|method| (method, vec![training(), training()])).to_vec();
        let svg = draw(&Comparison { task: TASKS[0], workers: 4, rows });
        for text in
            ["one process", "switch", "ring", "parameter server", "learnt", "environment steps", "400 k"]
        {
            assert_eq!(svg.matches(text).count(), 1, "{text} in {svg}");
        }
    }

    #[test]
    fn updates_of_the_switch_hold_a_gradient_of_each_worker() {
        let [server, switch] = Method::ASYNCHRONOUS;
        assert_eq!(points(server, &training(), 4).last(), Some(&(1000.0, 490.0)));
        assert_eq!(points(switch, &training(), 4).last(), Some(&(4000.0, 490.0)));
    }

    #[test]
    fn nothing_learnt_is_drawn_too() {
        let rows = vec![(Method::ASYNCHRONOUS[0], vec![Training { points: Vec::new(), ..training() }])];
        assert!(draw(&Comparison { task: TASKS[0], workers: 4, rows }).contains("learnt"));
    }
}
