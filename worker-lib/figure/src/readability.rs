//! Tests that charts are readable: labels must not overlap, and people with colour blindness must be able to
//! distinguish the colours.

use plotters::style::RGBColor;

use crate::{Axis, Bar, BarChart, Line, LineChart, Paint, Quantity, Reference};

/// Estimated width of a character, as a fraction of the font size.
const CHARACTER: f64 = 0.55;
/// Minimum distance between two colours in linear RGB, as perceived by people with colour blindness.
const DISTANCE: f64 = 0.05;
/// Conversions of linear RGB to the colours seen with protanopia and deuteranopia (Machado et al. 2009, severity 1).
const FORMS: [[[f64; 3]; 3]; 2] = [
    [
        [0.152_286, 1.052_583, -0.204_868],
        [0.114_503, 0.786_281, 0.099_216],
        [-0.003_882, -0.048_116, 1.051_998],
    ],
    [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_820, 0.042_940, 0.968_881],
    ],
];

/// Rectangle that a text occupies on the page.
#[derive(Debug)]
struct Area {
    text: String,
    left: f64,
    right: f64,
    middle: f64,
    height: f64,
}

fn area(element: &str) -> Area {
    let attribute = |name: &str| element.split(&format!(" {name}=\"")).nth(1)?.split('"').next();
    let number = |name: &str| attribute(name).and_then(|value| value.parse::<f64>().ok()).unwrap();
    let text = element.lines().nth(1).unwrap().to_owned();
    let size = number("font-size");
    let width = CHARACTER * size * text.chars().count() as f64;
    let left = number("x")
        - match attribute("text-anchor") {
            Some("middle") => width / 2.0,
            Some("end") => width,
            _ => 0.0,
        };
    Area { text, left, right: left + width, middle: number("y"), height: size }
}

fn assert_labels_are_apart(svg: &str) {
    let areas: Vec<_> = svg.split("<text").skip(1).map(area).collect();
    for (at, one) in areas.iter().enumerate() {
        for other in &areas[..at] {
            let is_beside = one.right <= other.left || other.right <= one.left;
            let is_above =
                (one.middle - other.middle).abs() >= f64::midpoint(one.height, other.height) * 0.75;
            assert!(is_beside || is_above, "{one:?} overlaps {other:?}");
        }
        assert!(one.left >= 0.0 && one.right <= 840.0, "{} is not on the page", one.text);
    }
}

#[test]
fn labels_do_not_overlap() {
    let line = |at: usize| {
        Line::new(format!("policy {at}"), Paint::BLUE, vec![(1.0, 5.0), (1000.0, 50.0 + at as f64)])
    };
    let chart = LineChart {
        title: "Makespan by GPU failure rate, for each placement policy".to_owned(),
        note: "Mean over draws; whiskers: 95 % confidence interval.".to_owned(),
        x: Axis::logarithmic(Quantity::plain("Failure rate relative to the measured one")),
        y: Axis::logarithmic(Quantity::new("Makespan", "days")),
        lines: (0..10).map(line).collect(),
        references: vec![Reference { name: "bound".to_owned(), paint: Paint::GREY, value: 4.0 }],
    };
    assert_labels_are_apart(&chart.draw());
    let bar = |at: usize| Bar {
        name: format!("parameter server, pipelined {at}"),
        first: 1.0,
        end: 10.0 + at as f64,
        spread: (9.0, 30.0),
        is_marked: at == 0,
    };
    let chart = BarChart {
        title: "All-reduce time: 157.5 KiB, 4 workers".to_owned(),
        note: "Bars: median of 5 runs; whiskers: minimum to maximum.".to_owned(),
        quantity: Quantity::plain("All-reduce time"),
        tick: |ms| format!("{ms:.0} ms"),
        length: |ms| format!("{ms:.1} ms"),
        bars: (0..9).map(bar).collect(),
        references: vec![Reference { name: "wire limit 1.3 ms".to_owned(), paint: Paint::RED, value: 1.3 }],
    };
    assert_labels_are_apart(&chart.draw());
}

fn linear(RGBColor(r, g, b): RGBColor) -> [f64; 3] {
    [r, g, b].map(|value| (f64::from(value) / 255.0).powf(2.2))
}

fn seen(form: &[[f64; 3]; 3], colour: RGBColor) -> [f64; 3] {
    let colour = linear(colour);
    form.map(|row| row.iter().zip(colour).map(|(factor, value)| factor * value).sum())
}

fn dark(paint: Paint) -> RGBColor {
    let byte = |at: usize| u8::from_str_radix(&paint.dark[at..at + 2], 16).unwrap();
    RGBColor(byte(1), byte(3), byte(5))
}

#[test]
fn colours_differ_for_the_colour_blind() {
    let paints = [Paint::RED, Paint::BLUE, Paint::PURPLE, Paint::YELLOW, Paint::GREEN];
    for form in &FORMS {
        for (at, one) in paints.iter().enumerate() {
            for other in &paints[..at] {
                for (a, b) in [(one.light, other.light), (dark(*one), dark(*other))] {
                    let pairs = seen(form, a).into_iter().zip(seen(form, b));
                    let distance = pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    assert!(distance > DISTANCE, "{a:?} and {b:?}: {distance:.3}");
                }
            }
        }
    }
}
