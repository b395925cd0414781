//! Results that the paper reports for its four models, and the local computation times derived from them.
//!
//! The text of the paper gives the maximum and the minimum speed-up. According to the text, aggregation takes 49.9 to
//! 83.2 % of an iteration with the parameter server or the ring, and the switch reduces the aggregation time by 81.6
//! to 85.8 %. The other speed-ups and the iteration times are quoted from memory of the paper's tables 3 to 5; the
//! iteration times agree with the speed-ups to about 1 %.

use std::fmt;

use crate::contest::Markdown;

/// Minimum and maximum of the aggregation time, as a fraction of an iteration with the parameter server.
pub const AGGREGATION_SHARE: (f64, f64) = (0.499, 0.832);
/// Fraction by which the switch reduces the aggregation time: the midpoint of the paper's range.
pub const AGGREGATION_CUT: f64 = f64::midpoint(0.816, 0.858);
/// Staleness bound of both asynchronous methods, in updates.
pub const STALENESS_BOUND: u32 = 3;
/// Speed-up of asynchronous A2C. Its similarity to the number pi is a coincidence.
#[allow(clippy::approx_constant)]
const A2C_ASYNC_SPEED_UP: f64 = 3.14;

/// One of the paper's four models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Name in the paper.
    pub name: &'static str,
    /// Number of parameters of the model's network in this project.
    pub floats: u32,
    /// Speed-up of the synchronous methods: the time that the parameter server takes to reach a return, divided by the
    /// time that the switch takes to reach the same return.
    pub speed_up: f64,
    /// Speed-up of the asynchronous methods, defined in the same way as `speed_up`.
    pub async_speed_up: f64,
    /// Iteration time in milliseconds with the parameter server and with the switch, if known.
    pub iteration_ms: Option<(f64, f64)>,
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The paper's models, smallest first.
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

/// Times of an iteration with the paper's parameter server, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// Time of the local computation, in milliseconds.
    pub compute_ms: f64,
    /// Time of the aggregation, in milliseconds.
    pub aggregation_ms: f64,
}

impl Iteration {
    /// Returns the time of the whole iteration, in milliseconds.
    pub fn total_ms(self) -> f64 {
        self.compute_ms + self.aggregation_ms
    }
}

impl Model {
    /// Returns the model with the given name, ignoring case.
    pub fn named(name: &str) -> Option<Self> {
        MODELS.into_iter().find(|model| model.name.eq_ignore_ascii_case(name))
    }

    /// Returns the aggregation time as a fraction of an iteration with the parameter server. The fraction is chosen so
    /// that reducing the aggregation time alone yields the speed-up, and is clamped to the range that the paper gives
    /// for all four models.
    pub fn aggregation_share(self) -> f64 {
        let share = (1.0 - 1.0 / self.speed_up) / AGGREGATION_CUT;
        share.clamp(AGGREGATION_SHARE.0, AGGREGATION_SHARE.1)
    }

    /// Returns the times of the paper's iteration. If the iteration time is not known, the aggregation time is
    /// interpolated linearly by vector length between the next smaller and the next larger model with known times. The
    /// computation time then follows from the aggregation share.
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
    let (below, above) = (below.expect("PPO must be smaller"), above.expect("A2C must be larger"));
    let [floats, from, to] = [model.floats, below.floats, above.floats].map(f64::from);
    let (least, most) = (below.iteration().aggregation_ms, above.iteration().aggregation_ms);
    least + (most - least) * (floats - from) / (to - from)
}

/// Returns the derivation of the computation times as Markdown.
pub fn text() -> String {
    let mut rows = Markdown::new([
        "",
        "floats",
        "iteration, ms",
        "aggregation share",
        "aggregation, ms",
        "computation, ms",
        "source of the time",
    ]);
    for model in MODELS {
        let (iteration, share) = (model.iteration(), model.aggregation_share());
        let from = if model.iteration_ms.is_some() {
            "table 4, from memory"
        } else {
            "interpolated between PPO and A2C"
        };
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
    format!("### Derived iteration times of the paper's parameter server\n\n{}", rows.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregation_shares_match_the_paper() {
        let shares = MODELS.map(|model| (1000.0 * model.aggregation_share()).round() / 1000.0);
        assert_eq!(shares, [0.5, 0.542, 0.726, 0.832]);
    }

    #[test]
    fn computation_takes_the_rest_of_the_iteration_time() {
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
    fn the_interpolated_ddpg_time_lies_between_ppo_and_a2c() {
        let [ppo, ddpg, a2c, _] = MODELS.map(|model| model.iteration().aggregation_ms);
        assert!(ppo < ddpg && ddpg < a2c, "{ppo} {ddpg} {a2c}");
        // DDPG has 30,208 floats more than PPO; A2C has 856,320 more.
        assert!((ddpg - (ppo + (a2c - ppo) * 30_208.0 / 856_320.0)).abs() < 1e-9);
    }

    #[test]
    fn iteration_times_agree_with_the_stated_speed_ups() {
        for model in MODELS {
            if let Some((server_ms, switch_ms)) = model.iteration_ms {
                let ratio = server_ms / switch_ms / model.speed_up;
                assert!((ratio - 1.0).abs() < 0.011, "{model:?}");
            }
        }
        assert_eq!(Model::named("SAC"), None);
    }
}
