//! Two-dimensional scenes of environments, which a renderer can draw.
//!
//! Coordinates are in the units of the environment: metres, unless the environment defines no unit. The x axis points
//! to the right, and the y axis up.

/// Point: x and y.
pub type Point = [f64; 2];

/// The purpose of a shape, which determines the colour that a renderer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Ground, track or rail.
    Ground,
    /// A mark on the ground, which makes motion visible.
    Mark,
    /// Goal of the task.
    Goal,
    /// Main body of the robot.
    Body,
    /// Moving part of the robot.
    Limb,
    /// Joint, wheel or other detail.
    Detail,
}

/// Shape in a scene.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// All points within the radius of a line segment; a disc if the ends of the segment are equal.
    Capsule {
        /// One end of the segment.
        from: Point,
        /// Other end of the segment.
        to: Point,
        /// Radius.
        radius: f64,
        /// Purpose.
        role: Role,
    },
    /// Filled polygon.
    Polygon {
        /// Corners, in order.
        corners: Vec<Point>,
        /// Purpose.
        role: Role,
    },
}

/// Scene of an environment.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Centre of the visible part.
    pub centre: Point,
    /// Height of the visible part.
    pub height: f64,
    /// Time between two steps when the scene is displayed in real time, s.
    pub step_seconds: f64,
    /// Shapes in drawing order: later ones cover earlier ones.
    pub shapes: Vec<Shape>,
}

/// Image of an environment that renders itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Width, in pixels.
    pub width: usize,
    /// Height, in pixels.
    pub height: usize,
    /// Red, green and blue of each pixel, row by row: `[height, width, 3]`.
    pub rgb: Vec<u8>,
}

/// Image of the current state of an environment, or a scene that the caller draws.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// A scene, which the caller draws.
    Scene(Scene),
    /// A finished image.
    Frame {
        /// Image.
        frame: Frame,
        /// Time between two steps when the images are displayed in real time, s.
        step_seconds: f64,
    },
}

/// Body of a planar robot. It turns about a joint of its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// The index of the parent, which precedes this link in the list; `None` for the root.
    pub(super) parent: Option<usize>,
    /// Position of the joint in the frame of the parent's joint; for the root, its position in the world when all
    /// coordinates are 0.
    pub(super) anchor: Point,
    /// Direction in which a positive joint angle turns the body: from x towards y (+1) or from y towards x (-1).
    pub(super) turn: f64,
    /// End points and radius of each capsule, in the frame of this joint.
    pub(super) capsules: &'static [(Point, Point, f64)],
}

/// Returns the shapes of a planar robot whose coordinates are the displacement of the root (x, y) and the angle of each
/// link (rad).
pub(super) fn robot(links: &[Link], coordinates: &[f64]) -> Vec<Shape> {
    let mut frames: Vec<(Point, f64)> = Vec::with_capacity(links.len());
    let mut shapes = Vec::new();
    for (link, angle) in links.iter().zip(&coordinates[2..]) {
        let root = ([coordinates[0], coordinates[1]], 0.0);
        let (origin, base) = link.parent.map_or(root, |parent| frames[parent]);
        let joint = place(link.anchor, (origin, base));
        let frame = (joint, base + link.turn * angle);
        let role = if link.parent.is_none() { Role::Body } else { Role::Limb };
        let capsule = |(from, to, radius): &(Point, Point, f64)| Shape::Capsule {
            from: place(*from, frame),
            to: place(*to, frame),
            radius: *radius,
            role,
        };
        shapes.extend(link.capsules.iter().map(capsule));
        frames.push(frame);
    }
    let joints = links.iter().zip(&frames).filter(|(link, _)| link.parent.is_some());
    shapes.extend(joints.map(|(link, (joint, _))| disc(*joint, 0.5 * link.capsules[0].2, Role::Detail)));
    shapes
}

/// Converts a point from a frame with the given origin and angle to world coordinates.
fn place([x, y]: Point, ([x0, y0], angle): (Point, f64)) -> Point {
    let (sin, cos) = angle.sin_cos();
    [x0 + cos * x - sin * y, y0 + sin * x + cos * y]
}

/// Returns the scene of a robot on flat ground at height 0. The view follows the robot's position `x`.
pub(super) fn on_ground(robot: Vec<Shape>, x: f64, height: f64, step_seconds: f64) -> Scene {
    /// Distance between two adjacent marks on the ground.
    const MARK_EVERY: f64 = 0.5;
    /// Fraction of the view's height that is below the surface of the ground.
    const GROUND: f64 = 0.18;
    /// Half the width of the drawn ground, as a multiple of the view height. It exceeds the width that any renderer
    /// shows.
    const REACH: f64 = 2.0;
    let (left, right) = (x - REACH * height, x + REACH * height);
    let depth = GROUND * height;
    let mut shapes = vec![Shape::Polygon {
        corners: vec![[left, 0.0], [right, 0.0], [right, -depth - height], [left, -depth - height]],
        role: Role::Ground,
    }];
    let marks = (left / MARK_EVERY).ceil() as i64..=(right / MARK_EVERY).floor() as i64;
    shapes.extend(marks.map(|number| {
        let at = number as f64 * MARK_EVERY;
        Shape::Capsule {
            from: [at, -0.3 * depth],
            to: [at, -0.6 * depth],
            radius: 0.01 * height,
            role: Role::Mark,
        }
    }));
    shapes.extend(robot);
    Scene { centre: [x, height / 2.0 - depth], height, step_seconds, shapes }
}

/// Returns a disc.
pub(super) fn disc(centre: Point, radius: f64, role: Role) -> Shape {
    Shape::Capsule { from: centre, to: centre, radius, role }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    #[test]
    fn links_turn_about_their_joints_with_their_parents() {
        let link =
            |parent, anchor, turn| Link { parent, anchor, turn, capsules: &[([0.0, 0.0], [0.0, -1.0], 0.1)] };
        let links = [link(None, [0.0, 2.0], 1.0), link(Some(0), [0.0, -1.0], -1.0)];
        let ends = |coordinates: &[f64]| -> Vec<Point> {
            let shapes = robot(&links, coordinates);
            let ends = shapes.iter().map(|shape| match shape {
                Shape::Capsule { to, .. } => to.map(|x| (x * 1e9).round() / 1e9),
                Shape::Polygon { .. } => unreachable!("a robot consists of capsules"),
            });
            ends.collect()
        };
        assert_eq!(ends(&[5.0, 0.0, 0.0, 0.0])[..2], [[5.0, 1.0], [5.0, 0.0]]);
        // The upper link points to +x; the lower one turns back and points down again.
        assert_eq!(ends(&[5.0, 0.0, FRAC_PI_2, FRAC_PI_2])[..2], [[6.0, 2.0], [6.0, 1.0]]);
    }

    #[test]
    fn marks_stay_while_the_view_moves() {
        let marks = |x: f64| -> Vec<i64> {
            let scene = on_ground(Vec::new(), x, 2.0, 0.01);
            assert_eq!(scene.centre[0], x);
            let from = scene.shapes.iter().filter_map(|shape| match shape {
                Shape::Capsule { from, .. } => Some((from[0] * 2.0).round() as i64),
                Shape::Polygon { .. } => None,
            });
            from.collect()
        };
        assert_eq!(marks(0.2), (-7..=8).collect::<Vec<_>>());
        assert_eq!(marks(1.0), (-6..=10).collect::<Vec<_>>());
    }
}
