//! Expected completion time of a job on GPUs that fail.

use super::options::Checkpoint;

/// Returns the expected time, in seconds, to complete `work` seconds of work in one piece. Failures occur at `rate`
/// (1/s); after each failure, a restart takes `restart` seconds and the work starts over. The model assumes that no
/// failure occurs during a restart. The result is `(e^(rate work) - 1) (1/rate + restart)`, which may be infinite.
pub fn expected_time(rate: f64, work: f64, restart: f64) -> f64 {
    let failures = (rate * work).exp_m1();
    if failures == 0.0 { work } else { failures * (1.0 / rate + restart) }
}

/// Returns the expected time, in seconds, to complete a job with checkpoints. The result is the sum of the values of
/// [`expected_time`] for the segments between checkpoints, because a failure undoes only the work of its own segment.
/// `rate` may be an estimate.
pub fn expected_time_with_checkpoints(rate: f64, work: f64, restart: f64, checkpoint: Checkpoint) -> f64 {
    let (interval, cost) = checkpoint.interval(rate);
    if interval >= work {
        return expected_time(rate, work, restart);
    }
    // A job writes no checkpoint at its end.
    let segments = (work / interval).ceil() - 1.0;
    let last = work - segments * interval;
    segments * expected_time(rate, interval + cost, restart) + expected_time(rate, last, restart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_times_match_known_values() {
        // On average, e - 1 attempts fail, and all attempts together take e - 1 mean times between failures.
        let e = std::f64::consts::E;
        assert!((expected_time(0.01, 100.0, 0.0) - 100.0 * (e - 1.0)).abs() < 1e-9);
        assert!((expected_time(0.01, 100.0, 7.0) - 107.0 * (e - 1.0)).abs() < 1e-9);
        assert_eq!(expected_time(0.0, 100.0, 7.0), 100.0);
        assert_eq!(expected_time(1.0, 1e4, 0.0), f64::INFINITY);
        let checkpoint = Checkpoint::Periodic { interval: 40.0, cost: 2.0 };
        let parts = 2.0 * expected_time(0.01, 42.0, 7.0) + expected_time(0.01, 20.0, 7.0);
        assert!((expected_time_with_checkpoints(0.01, 100.0, 7.0, checkpoint) - parts).abs() < 1e-9);
        // No checkpoint follows the last segment of work.
        assert_eq!(expected_time_with_checkpoints(0.0, 80.0, 7.0, checkpoint), 82.0);
    }

    #[test]
    fn the_young_daly_interval_is_nearly_optimal() {
        let of = |checkpoint| expected_time_with_checkpoints(1e-4, 1e6, 60.0, checkpoint);
        let young = of(Checkpoint::YoungDaly { cost: 20.0 });
        for interval in [100.0, 300.0, 550.0, 650.0, 1500.0, 5000.0] {
            let other = of(Checkpoint::Periodic { interval, cost: 20.0 });
            assert!(young < other * 1.001, "{young}, {other} at {interval}");
        }
    }
}
