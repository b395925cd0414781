//! Aggregation between workers in one process: threads that share memory instead of a network.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{AggregateError, AggregatorStats, GradientAggregator, Round, check_vector};

/// Aggregator between workers in one process: threads that share memory instead of a network. In a group of one worker,
/// the sum is the worker's contribution.
///
/// Contributions are summed in rank order, so that runs are bit-for-bit reproducible.
pub struct Loopback {
    rank: usize,
    group: Arc<Group>,
    sum: Vec<f32>,
    stats: AggregatorStats,
}

struct Group {
    size: usize,
    gradient_len: usize,
    state: Mutex<GroupState>,
    changed: Condvar,
}

struct GroupState {
    contributions: Vec<Option<Vec<f32>>>,
    sum: Vec<f32>,
    /// Number of members that have yet to fetch the sum of the finished round.
    unread: usize,
    round: u32,
    gone: bool,
}

impl Loopback {
    /// Creates a group of `size` workers that aggregate vectors of `gradient_len` floats; returns one aggregator for
    /// each.
    pub fn group(size: usize, gradient_len: usize) -> Vec<Self> {
        let state = GroupState {
            contributions: vec![None; size],
            sum: vec![0.0; gradient_len],
            unread: 0,
            round: 0,
            gone: false,
        };
        let group = Arc::new(Group { size, gradient_len, state: Mutex::new(state), changed: Condvar::new() });
        (0..size)
            .map(|rank| Self {
                rank,
                group: Arc::clone(&group),
                sum: vec![0.0; gradient_len],
                stats: AggregatorStats::default(),
            })
            .collect()
    }

    /// Creates the aggregator of a job with only one worker.
    pub fn alone(gradient_len: usize) -> Self {
        Self::group(1, gradient_len).swap_remove(0)
    }
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, GroupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(
        &self,
        guard: MutexGuard<'_, GroupState>,
        condition: impl Fn(&GroupState) -> bool,
    ) -> Result<(), AggregateError> {
        let guard = self
            .changed
            .wait_while(guard, |state| !state.gone && condition(state))
            .unwrap_or_else(PoisonError::into_inner);
        if guard.gone && condition(&guard) { Err(AggregateError::PeerGone) } else { Ok(()) }
    }
}

impl GroupState {
    fn close_round(&mut self) {
        self.sum.fill(0.0);
        for contribution in &mut self.contributions {
            let vector = contribution.take().expect("a round closes only after all workers have contributed");
            self.sum.iter_mut().zip(&vector).for_each(|(sum, x)| *sum += x);
        }
        self.unread = self.contributions.len();
        self.round += 1;
    }
}

impl GradientAggregator for Loopback {
    fn name(&self) -> &'static str {
        "loopback"
    }

    fn gradient_len(&self) -> usize {
        self.group.gradient_len
    }

    fn reduce(&mut self, contribution: &[f32]) -> Result<(Round, &[f32]), AggregateError> {
        check_vector(contribution, self.group.gradient_len)?;
        // All members must have read the sum of the previous round before this round overwrites it.
        self.group.wait_while(self.group.lock(), |state| state.unread > 0)?;
        let mut state = self.group.lock();
        let number = state.round;
        state.contributions[self.rank] = Some(contribution.to_vec());
        if state.contributions.iter().all(Option::is_some) {
            state.close_round();
            self.group.changed.notify_all();
        }
        self.group.wait_while(state, |state| state.round == number)?;
        let mut state = self.group.lock();
        self.sum.copy_from_slice(&state.sum);
        state.unread -= 1;
        if state.unread == 0 {
            self.group.changed.notify_all();
        }
        self.stats.rounds += 1;
        Ok((Round { number, contributors: self.group.size as u16, uniform: true }, &self.sum))
    }

    fn stats(&self) -> AggregatorStats {
        self.stats
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.group.lock().gone = true;
        self.group.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_one_member_returns_its_own_vector() {
        let mut alone = Loopback::alone(3);
        let mut vector = [1.0, -2.5, 3.0];
        let round = alone.all_reduce(&mut vector).unwrap();
        assert_eq!((vector, round.contributors), ([1.0, -2.5, 3.0], 1));
    }

    #[test]
    fn all_members_get_every_sum() {
        let threads: Vec<_> = Loopback::group(4, 5)
            .into_iter()
            .enumerate()
            .map(|(rank, mut member)| {
                std::thread::spawn(move || {
                    (0..100u32).for_each(|round| {
                        let mut vector = vec![rank as f32 + round as f32; 5];
                        let got = member.all_reduce(&mut vector).unwrap();
                        assert_eq!(got.number, round);
                        assert_eq!(vector, vec![6.0 + 4.0 * round as f32; 5]);
                    });
                    member
                })
            })
            .collect();
        let members: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(members.iter().all(|member| member.stats().rounds == 100));
    }

    #[test]
    fn invalid_vectors_cause_specific_errors() {
        let mut alone = Loopback::alone(2);
        let error = alone.all_reduce(&mut [1.0]).unwrap_err();
        assert_eq!(error.to_string(), "vector has 1 floats, expected 2, the vector length of the job");
        let error = alone.all_reduce(&mut [1.0, f32::NAN]).unwrap_err();
        assert!(matches!(error, AggregateError::NonFinite { index: 1, .. }));
    }

    #[test]
    fn a_lost_peer_fails_the_all_reduce() {
        let mut group = Loopback::group(2, 1);
        drop(group.pop());
        assert!(matches!(group[0].all_reduce(&mut [1.0]), Err(AggregateError::PeerGone)));
    }
}
