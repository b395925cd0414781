//! Drawing of scenes.

use iswitch_learn::env::scene::{Frame, Point, Role, Scene, Shape};
use tiny_skia::{Color, FillRule, LineCap, Paint, Path, PathBuilder, Pixmap, Stroke, Transform};

/// Size of an image, in pixels. Both numbers are even, as video encoders require.
const WIDTH: u32 = 480;
const HEIGHT: u32 = 360;
/// Background colour, as red, green and blue.
const BACKGROUND: [u8; 3] = [250, 250, 248];

/// Returns the colour of a shape. The colours are those of the project's figures, which readers with a colour vision
/// deficiency can distinguish (Okabe and Ito).
const fn colour(role: Role) -> [u8; 3] {
    match role {
        Role::Ground => [204, 206, 210],
        Role::Mark => [150, 154, 160],
        Role::Goal => [0, 158, 115],
        Role::Body => [0, 114, 178],
        Role::Limb => [213, 94, 0],
        Role::Detail => [40, 42, 46],
    }
}

/// Draws a scene with anti-aliased edges.
pub(crate) fn draw(scene: &Scene) -> Frame {
    let mut pixmap = Pixmap::new(WIDTH, HEIGHT).expect("the size is not 0");
    let [red, green, blue] = BACKGROUND;
    pixmap.fill(Color::from_rgba8(red, green, blue, u8::MAX));
    for shape in &scene.shapes {
        draw_shape(&mut pixmap, scene, shape);
    }
    let rgb = pixmap.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    Frame { width: WIDTH as usize, height: HEIGHT as usize, rgb }
}

fn draw_shape(pixmap: &mut Pixmap, scene: &Scene, shape: &Shape) {
    let scale = f64::from(HEIGHT) / scene.height;
    let pixel = |[x, y]: Point| {
        let right = f64::from(WIDTH) / 2.0 + (x - scene.centre[0]) * scale;
        let down = f64::from(HEIGHT) / 2.0 - (y - scene.centre[1]) * scale;
        [right as f32, down as f32]
    };
    let (Shape::Capsule { role, .. } | Shape::Polygon { role, .. }) = shape;
    let mut paint = Paint::default();
    let [red, green, blue] = colour(*role);
    paint.set_color_rgba8(red, green, blue, u8::MAX);
    // If a coordinate is not a number, no path can be built, and the shape is not drawn.
    match shape {
        Shape::Polygon { corners, .. } => {
            if let Some(path) = polygon(corners.iter().map(|corner| pixel(*corner))) {
                pixmap.fill_path(&path, &paint, FillRule::Winding, Transform::identity(), None);
            }
        }
        Shape::Capsule { from, to, radius, .. } if from == to => {
            let [x, y] = pixel(*from);
            if let Some(path) = PathBuilder::from_circle(x, y, (radius * scale) as f32) {
                pixmap.fill_path(&path, &paint, FillRule::Winding, Transform::identity(), None);
            }
        }
        Shape::Capsule { from, to, radius, .. } => {
            let stroke = Stroke {
                width: (2.0 * radius * scale) as f32,
                line_cap: LineCap::Round,
                ..Stroke::default()
            };
            if let Some(path) = segment(pixel(*from), pixel(*to)) {
                pixmap.stroke_path(&path, &paint, &stroke, Transform::identity(), None);
            }
        }
    }
}

fn polygon(corners: impl Iterator<Item = [f32; 2]>) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (at, [x, y]) in corners.enumerate() {
        if at == 0 { builder.move_to(x, y) } else { builder.line_to(x, y) }
    }
    builder.close();
    builder.finish()
}

fn segment([x0, y0]: [f32; 2], [x1, y1]: [f32; 2]) -> Option<Path> {
    let mut builder = PathBuilder::new();
    builder.move_to(x0, y0);
    builder.line_to(x1, y1);
    builder.finish()
}

#[cfg(test)]
mod tests {
    use iswitch_learn::env;
    use iswitch_learn::env::scene::Picture;

    use super::*;

    /// Returns the mean row and column of the pixels that have exactly the colour of a role.
    fn centre(frame: &Frame, role: Role) -> Option<[f64; 2]> {
        let pixels = frame.rgb.chunks_exact(3).enumerate().filter(|(_, rgb)| *rgb == colour(role));
        let places: Vec<_> = pixels.map(|(at, _)| [at / frame.width, at % frame.width]).collect();
        let mean =
            |axis: usize| places.iter().map(|place| place[axis] as f64).sum::<f64>() / places.len() as f64;
        (!places.is_empty()).then(|| [mean(0), mean(1)])
    }

    /// Draws the environment `id` in a saved state, whose last number is the number of steps.
    fn drawn(id: &str, state: &[f64]) -> Frame {
        let mut env = env::make(id).unwrap();
        env.restore_state(state).unwrap();
        let Ok(Some(Picture::Scene(scene))) = env.picture() else { panic!("{id} has a scene") };
        draw(&scene)
    }

    #[test]
    fn the_drawn_hopper_follows_its_coordinates() {
        let hopper = |height: f64, pitch: f64| {
            let mut state = [0.0; 13];
            (state[1], state[2]) = (height, pitch);
            centre(&drawn("PlanarHopper-v0", &state), Role::Body).unwrap()
        };
        let (standing, jumping, leaning) = (hopper(1.25, 0.0), hopper(1.55, 0.0), hopper(1.25, 0.2));
        // The robot jumps 0.3 m high, and the view is 2.4 m high.
        let expected = 0.3 / 2.4 * f64::from(HEIGHT);
        assert!((standing[0] - jumping[0] - expected).abs() < 1.0, "{standing:?} {jumping:?}");
        assert!((standing[1] - jumping[1]).abs() < 0.5, "{standing:?} {jumping:?}");
        assert_eq!(standing[1].round(), (f64::from(WIDTH) / 2.0).round());
        assert_ne!(leaning, standing);
        let far = [3.3, 1.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let far = drawn("PlanarHopper-v0", &far);
        assert!(
            (centre(&far, Role::Body).unwrap()[1] - standing[1]).abs() < 0.5,
            "the view follows the robot"
        );
    }

    #[test]
    fn each_built_in_environment_is_drawn_in_its_state() {
        let pole =
            |angle: f64| centre(&drawn("CartPole-v1", &[0.0, 0.0, angle, 0.0, 0.0]), Role::Limb).unwrap();
        assert!(pole(0.2)[1] > pole(0.0)[1] + 5.0 && pole(-0.2)[1] < pole(0.0)[1] - 5.0);
        let cart = |x: f64| centre(&drawn("CartPole-v1", &[x, 0.0, 0.0, 0.0, 0.0]), Role::Body).unwrap();
        assert!(cart(1.0)[1] > cart(0.0)[1] + 50.0);
        let rod = |angle: f64| centre(&drawn("Pendulum-v1", &[angle, 0.0, 0.0]), Role::Limb).unwrap();
        assert!(rod(0.0)[0] < rod(3.0)[0] - 50.0 && rod(0.5)[1] < rod(0.0)[1] - 10.0, "upright is up");
        let lower =
            |angle: f64| centre(&drawn("Acrobot-v1", &[0.0, angle, 0.0, 0.0, 0.0]), Role::Limb).unwrap();
        assert!(lower(0.0)[0] > lower(3.1)[0] + 30.0);
        let car = |x: f64| centre(&drawn("MountainCarContinuous-v0", &[x, 0.0, 0.0]), Role::Body).unwrap();
        assert!(
            car(0.4)[0] < car(-0.5)[0] - 50.0 && car(0.4)[1] > car(-0.5)[1] + 50.0,
            "the goal is on a hill"
        );
        for (id, height) in [("PlanarWalker-v0", 1.25), ("PlanarHalfCheetah-v0", 0.0)] {
            let torso = |lift: f64| {
                let mut state = [0.0; 19];
                state[1] = height + lift;
                centre(&drawn(id, &state), Role::Body).unwrap()
            };
            assert!(torso(0.3)[0] < torso(0.0)[0] - 20.0, "{id}: z is up");
        }
        let hull = |x: f64, z: f64| {
            let mut state = [0.0; 25];
            (state[0], state[1]) = (x, z);
            centre(&drawn("PlanarLander-v0", &state), Role::Body).unwrap()
        };
        assert!(hull(2.0, 5.0)[1] > hull(0.0, 5.0)[1] + 20.0 && hull(0.0, 7.0)[0] < hull(0.0, 5.0)[0] - 20.0);
    }

    #[test]
    fn shapes_without_a_place_are_invisible() {
        let disc = Shape::Capsule { from: [f64::NAN, 0.0], to: [1.0, 0.0], radius: 0.1, role: Role::Body };
        let corners = vec![[0.0, 0.0], [f64::INFINITY, 1.0]];
        let shapes = vec![disc, Shape::Polygon { corners, role: Role::Goal }];
        let frame = draw(&Scene { centre: [0.0, 0.0], height: 1.0, step_seconds: 0.1, shapes });
        assert!(frame.rgb.chunks_exact(3).all(|pixel| pixel == BACKGROUND));
    }
}
