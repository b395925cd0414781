//! Learning curves as a figure.

use iswitch_figure::{Axis, Line, LineChart, Paint, Reference};

use super::convergence::{Comparison, Training};
use super::tasks::Method;

/// Draws a line for each run, in a colour for each method: mean return of the last 100 episodes by environment steps
/// or, for asynchronous methods, by gradients in the model. The return that counts as learnt is marked.
pub fn draw(comparison: &Comparison) -> String {
    let Comparison { task, workers, standings } = comparison;
    let is_async = standings.rows.iter().any(|row| row.contender.is_async);
    let over = if is_async { "gradients in the model" } else { "environment steps" };
    let algorithm = task.algorithm.to_uppercase();
    let line = |method: Method, training: &Training| {
        Line::new(method.to_string(), paint(method), points(method, training, *workers))
    };
    let runs = standings.rows.iter().flat_map(|row| row.runs.iter().map(|run| line(row.contender, run)));
    LineChart {
        title: format!("{algorithm} on {}, {workers} workers: mean return over {over}", task.env),
        x: Axis { includes: vec![0.0], ..Axis::linear() },
        y: Axis::linear(),
        lines: runs.collect(),
        references: vec![Reference { name: "learnt".to_owned(), paint: Paint::INK, value: task.threshold }],
    }
    .draw()
}

fn points(method: Method, training: &Training, workers: usize) -> Vec<(f64, f64)> {
    let gradients = training.updates * if method.aggregator == "switch" { workers as f64 } else { 1.0 };
    let points = training.points.iter();
    points
        .map(|point| (if method.is_async { point.part * gradients } else { point.steps }, point.mean_return))
        .collect()
}

fn paint(method: Method) -> Paint {
    match method.aggregator {
        "switch" => Paint::BLUE,
        "ps" => Paint::GREEN,
        "ring" => Paint::YELLOW,
        "local" => Paint::GREY,
        _ => Paint::RED,
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
        let rows = Method::SYNCHRONOUS.map(|method| (method, vec![training(), training()]));
        let standings = rows.into_iter().collect();
        let svg = draw(&Comparison { task: TASKS[0], workers: 4, standings });
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
        let rows = [(Method::ASYNCHRONOUS[0], vec![Training { points: Vec::new(), ..training() }])];
        let standings = rows.into_iter().collect();
        assert!(draw(&Comparison { task: TASKS[0], workers: 4, standings }).contains("learnt"));
    }
}
