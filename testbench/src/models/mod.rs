//! Model reads: a learner and caches in cells, each behind a link of the same rate, and actors that all read a new
//! version at the same moment. Menger's figure (Google AI blog 2020) is the mean read latency of 512 actors, without
//! and with caches.

pub mod contender;
pub mod nginx;
pub mod site;
pub mod table;

pub use contender::Contender;
pub use site::Site;
pub use table::Table;

/// Latencies of the actors of one turn, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Mean over the actors.
    pub mean_ms: f64,
    /// One actor in a hundred takes longer.
    pub p99_ms: f64,
    /// The last actor has its model.
    pub last_ms: f64,
}

impl Run {
    /// Of the latencies of at least one actor.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(mut latencies_ms: Vec<f64>) -> Self {
        assert!(!latencies_ms.is_empty(), "at least one actor reads");
        latencies_ms.sort_by(f64::total_cmp);
        let count = latencies_ms.len();
        Self {
            mean_ms: latencies_ms.iter().sum::<f64>() / count as f64,
            p99_ms: latencies_ms[(count * 99).div_ceil(100) - 1],
            last_ms: latencies_ms[count - 1],
        }
    }
}

/// Who reads what, how often.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Actors that read at the same moment.
    pub actors: usize,
    /// Bytes of the model.
    pub len_bytes: usize,
    /// Times that each contender has its turn.
    pub turns: usize,
}

/// Lets all contenders serve a version each in turns, each time in another order. Caches are cold: each version is new.
///
/// # Panics
/// If an actor does not get its model.
pub fn measure(site: &mut Site, contenders: &[Contender], load: Load, progress: &dyn Fn(&str)) -> Table {
    let mut rows: Vec<_> = contenders.iter().map(|contender| (*contender, Vec::new())).collect();
    for turn in 0..load.turns {
        for place in 0..rows.len() {
            let at = (place * if turn % 2 == 0 { 1 } else { rows.len() - 1 } + turn) % rows.len();
            let (contender, runs) = &mut rows[at];
            progress(&format!("{} bytes, turn {} of {}: {contender}", load.len_bytes, turn + 1, load.turns));
            runs.push(site.read(*contender, load));
        }
    }
    Table { load, rate: site.rate(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_tells_mean_and_percentile() {
        let run = Run::of((1..=200).rev().map(f64::from).collect());
        assert_eq!((run.mean_ms, run.p99_ms, run.last_ms), (100.5, 198.0, 200.0));
        let run = Run::of(vec![7.0]);
        assert_eq!((run.mean_ms, run.p99_ms, run.last_ms), (7.0, 7.0, 7.0));
    }
}
