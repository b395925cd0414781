//! State of `top` and its key bindings.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::rates::{Interval, distance};
use crate::view::{JobView, View};

/// Sort order of the members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    /// By missing segments, then by rounds behind, then by time since the last packet; the highest values first.
    #[default]
    Lag,
    /// By rate, the lowest first.
    Rate,
    Id,
}

impl Sort {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Lag => "lag",
            Self::Rate => "rate",
            Self::Id => "id",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Lag => Self::Rate,
            Self::Rate => Self::Id,
            Self::Id => Self::Lag,
        }
    }
}

/// Row of the member table.
#[derive(Clone, Debug)]
pub(super) struct MemberRow {
    pub(super) id: u16,
    pub(super) rank: Option<u16>,
    pub(super) host: Option<String>,
    pub(super) address: String,
    pub(super) kind: String,
    pub(super) last_round: Option<u32>,
    /// Number of rounds by which the member lags behind the latest round of its job.
    pub(super) behind: u32,
    /// Segments per second.
    pub(super) rate: f64,
    pub(super) silent_ms: u64,
    /// Number of the member's segments that the oldest unfinished round is waiting for.
    pub(super) missing: u32,
}

/// State of the screen.
#[derive(Debug, Default)]
pub(super) struct App {
    before: Option<View>,
    pub(super) now: View,
    /// Error of the last request to the daemon; `None` if the request succeeded.
    pub(super) error: Option<String>,
    selected: usize,
    pub(super) sort: Sort,
}

impl App {
    /// Stores a new snapshot of the daemon. The previous snapshot is kept for the rates.
    pub(super) fn update(&mut self, view: View) {
        // On the first call, `before` becomes the default view, whose boot id differs, so there are no rates yet.
        self.before = Some(std::mem::replace(&mut self.now, view));
        self.error = None;
    }

    pub(super) fn fail(&mut self, error: &anyhow::Error) {
        self.error = Some(iswitch_manual::describe(error.as_ref()));
    }

    /// Handles a key. Returns `true` if the user quits.
    pub(super) fn press(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Char('j') | KeyCode::Down => self.selected = self.selected().saturating_add(1),
            KeyCode::Char('k') | KeyCode::Up => self.selected = self.selected().saturating_sub(1),
            KeyCode::Char('s') => self.sort = self.sort.next(),
            _ => {}
        }
        false
    }

    /// Returns the position, in the list of jobs, of the job whose members are shown.
    pub(super) fn selected(&self) -> usize {
        self.selected.min(self.now.jobs.len().saturating_sub(1))
    }

    /// Returns the selected job, if any.
    pub(super) fn job(&self) -> Option<&JobView> {
        self.now.jobs.get(self.selected())
    }

    pub(super) fn interval(&self) -> Interval<'_> {
        Interval::new(self.before.as_ref(), &self.now)
    }

    /// Returns the members of the selected job in the selected order.
    pub(super) fn members(&self) -> Vec<MemberRow> {
        let Some(job) = self.job() else { return Vec::new() };
        let missing = |id| {
            let awaited = job.waiting.iter().flat_map(|waiting| &waiting.members);
            awaited.filter(|awaited| awaited.member == id).map(|awaited| awaited.missing_segments).sum()
        };
        let is_synchronous = job.mode == "synchronous";
        let rows = job.members.iter().map(|member| MemberRow {
            id: member.id,
            rank: member.rank,
            host: member.host.clone(),
            address: member.address.clone(),
            kind: member.kind.clone(),
            last_round: member.last_round,
            // In an asynchronous job, members number their own vectors.
            behind: match (member.last_round, job.round) {
                (Some(last), Some(round)) if is_synchronous => distance(last, round),
                _ => 0,
            },
            rate: self.interval().segments(job, member),
            silent_ms: member.silent_ms,
            missing: missing(member.id),
        });
        let mut rows: Vec<_> = rows.collect();
        match self.sort {
            Sort::Lag => {
                rows.sort_by_key(|row| (row.missing, row.behind, row.silent_ms));
                rows.reverse();
            }
            Sort::Rate => rows.sort_by(|a, b| a.rate.total_cmp(&b.rate)),
            Sort::Id => rows.sort_by_key(|row| row.id),
        }
        rows
    }

    /// Returns the drop reasons that have occurred, with rate and count, the highest current rate first.
    pub(super) fn drops(&self) -> Vec<(&str, f64, u64)> {
        let interval = self.interval();
        let reasons = self.now.drops.iter().filter(|(_, count)| **count > 0);
        let mut rows: Vec<_> = reasons
            .map(|(name, count)| (name.as_str(), interval.of_counter(|view| &view.drops, name), *count))
            .collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.2.cmp(&a.2)).then(a.0.cmp(b.0)));
        rows
    }
}
