//! What the paper says of its four models, and the time of the local computation that follows from it.
//!
//! Its text gives the greatest and the least speed-up, says that aggregation takes 49.9 to 83.2 % of an iteration with
//! the parameter server or the ring, and that the switch cuts its time by 81.6 to 85.8 %. The other speed-ups and the
//! times of an iteration are from memory of its tables 3 to 5; those times agree with the speed-ups to about 1 %.

use std::fmt;

use crate::contest::Markdown;

/// Part of an iteration with the parameter server that is aggregation, least and greatest.
pub const AGGREGATION_SHARE: (f64, f64) = (0.499, 0.832);
/// By which part the switch cuts the time of an aggregation: the middle of what the paper says.
pub const AGGREGATION_CUT: f64 = f64::midpoint(0.816, 0.858);
/// The bound of staleness of both asynchronous methods, in updates.
pub const STALENESS_BOUND: u32 = 3;
/// Not the number pi.
#[allow(clippy::approx_constant)]
const A2C_ASYNC_SPEED_UP: f64 = 3.14;

/// One of the paper's four.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// As the paper calls it.
    pub name: &'static str,
    /// Parameters of its network, as this project has it.
    pub floats: u32,
    /// Synchronous: the time of the parameter server over that of the switch, from the start to the same return.
    pub speed_up: f64,
    /// The same of the asynchronous methods.
    pub async_speed_up: f64,
    /// Milliseconds of an iteration with the parameter server, and with the switch.
    pub iteration_ms: Option<(f64, f64)>,
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Smallest first.
pub const MODELS: [Model; 4] = [
    Model {
        name: "PPO",
        floats: 10_119,
        speed_up: 1.72,
        async_speed_up: 1.92,
        iteration_ms: Some((17.6, 10.2)),
    },
    Model { name: "DDPG", floats: 40_327, speed_up: 1.83, async_speed_up: 1.56, iteration_ms: None },
    Model {
        name: "A2C",
        floats: 866_439,
        speed_up: 2.55,
        async_speed_up: A2C_ASYNC_SPEED_UP,
        iteration_ms: Some((51.7, 20.3)),
    },
    Model {
        name: "DQN",
        floats: 1_687_206,
        speed_up: 3.66,
        async_speed_up: 3.71,
        iteration_ms: Some((81.6, 22.3)),
    },
];

/// An iteration with the paper's parameter server, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// Local computation.
    pub compute_ms: f64,
    /// Aggregation.
    pub aggregation_ms: f64,
}

impl Iteration {
    /// Both.
    pub fn total_ms(self) -> f64 {
        self.compute_ms + self.aggregation_ms
    }
}

impl Model {
    /// The one of that name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        MODELS.into_iter().find(|model| model.name.eq_ignore_ascii_case(name))
    }

    /// Which part of an iteration with the parameter server is aggregation: a cut of that part alone must give the
    /// speed-up, and no model lies outside of what the paper says of all four.
    pub fn aggregation_share(self) -> f64 {
        let share = (1.0 - 1.0 / self.speed_up) / AGGREGATION_CUT;
        share.clamp(AGGREGATION_SHARE.0, AGGREGATION_SHARE.1)
    }

    /// The paper's iteration. Where its time is not known the aggregation is taken to grow with the vector as between
    /// the next smaller and the next larger model whose time is, and the rest follows from its share.
    pub fn iteration(self) -> Iteration {
        let share = self.aggregation_share();
        let aggregation_ms =
            self.iteration_ms.map_or_else(|| between_neighbours(self), |(server_ms, _)| server_ms * share);
        Iteration { compute_ms: aggregation_ms * (1.0 / share - 1.0), aggregation_ms }
    }
}

fn between_neighbours(model: Model) -> f64 {
    let known = |other: &&Model| other.iteration_ms.is_some();
    let below = MODELS.iter().rfind(|other| known(other) && other.floats < model.floats);
    let above = MODELS.iter().find(|other| known(other) && other.floats > model.floats);
    let (below, above) = (below.expect("PPO is smaller"), above.expect("A2C is larger"));
    let [floats, from, to] = [model.floats, below.floats, above.floats].map(f64::from);
    let (least, most) = (below.iteration().aggregation_ms, above.iteration().aggregation_ms);
    least + (most - least) * (floats - from) / (to - from)
}

/// How the times were derived, as Markdown.
pub fn text() -> String {
    let mut rows = Markdown::new([
        "",
        "floats",
        "iteration, ms",
        "aggregation, part of it",
        "aggregation, ms",
        "computation, ms",
        "time from",
    ]);
    for model in MODELS {
        let (iteration, share) = (model.iteration(), model.aggregation_share());
        let from = if model.iteration_ms.is_some() { "table 4, from memory" } else { "PPO and A2C" };
        rows.row([
            model.to_string(),
            model.floats.to_string(),
            format!("{:.1}", iteration.total_ms()),
            format!("{:.1} %", 100.0 * share),
            format!("{:.1}", iteration.aggregation_ms),
            format!("{:.1}", iteration.compute_ms),
            from.to_owned(),
        ]);
    }
    format!("### The paper's iterations with its parameter server, derived\n\n{}", rows.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_lie_where_the_paper_says() {
        let shares = MODELS.map(|model| (1000.0 * model.aggregation_share()).round() / 1000.0);
        assert_eq!(shares, [0.5, 0.542, 0.726, 0.832]);
    }

    #[test]
    fn computation_is_what_aggregation_leaves() {
        for model in MODELS {
            let iteration = model.iteration();
            let share = iteration.aggregation_ms / iteration.total_ms();
            assert!((share - model.aggregation_share()).abs() < 1e-12, "{model:?}");
            if let Some((server_ms, _)) = model.iteration_ms {
                assert!((iteration.total_ms() - server_ms).abs() < 1e-9, "{model:?}");
            }
        }
        let dqn = Model::named("dqn").unwrap().iteration();
        assert!((dqn.compute_ms - 81.6 * 0.168).abs() < 1e-9, "{dqn:?}");
    }

    #[test]
    fn what_the_paper_leaves_out_lies_between_its_neighbours() {
        let [ppo, ddpg, a2c, _] = MODELS.map(|model| model.iteration().aggregation_ms);
        assert!(ppo < ddpg && ddpg < a2c, "{ppo} {ddpg} {a2c}");
        // 30,208 floats beyond PPO, of the 856,320 to A2C.
        assert!((ddpg - (ppo + (a2c - ppo) * 30_208.0 / 856_320.0)).abs() < 1e-9);
    }

    #[test]
    fn the_recalled_times_agree_with_the_text() {
        for model in MODELS {
            if let Some((server_ms, switch_ms)) = model.iteration_ms {
                let ratio = server_ms / switch_ms / model.speed_up;
                assert!((ratio - 1.0).abs() < 0.011, "{model:?}");
            }
        }
        assert_eq!(Model::named("SAC"), None);
    }
}
