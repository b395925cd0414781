//! Sources from which actors read a model.

use std::fmt;

/// How models are delivered from the learner to the actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// Actors read from the learner itself.
    Direct,
    /// Actors read from the given number of cells, each with the embedded cache.
    Embedded(usize),
    /// Actors read from the given number of cells, each with nginx.
    Nginx(usize),
}

impl Contender {
    /// Returns the learner itself, and each cache with each number of cells. Without nginx, only the embedded cache is
    /// included.
    pub fn all(cells: &[usize], has_nginx: bool) -> Vec<Self> {
        let caches = |cells: &usize| {
            [Some(Self::Embedded(*cells)), has_nginx.then_some(Self::Nginx(*cells))].into_iter().flatten()
        };
        [Self::Direct].into_iter().chain(cells.iter().flat_map(caches)).collect()
    }

    /// Returns the number of cells.
    pub fn cells(self) -> usize {
        match self {
            Self::Direct => 0,
            Self::Embedded(cells) | Self::Nginx(cells) => cells,
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.cells() == 1 { "" } else { "s" };
        match self {
            Self::Direct => f.write_str("the learner itself"),
            Self::Embedded(cells) => write!(f, "embedded cache, {cells} cell{plural}"),
            Self::Nginx(cells) => write!(f, "nginx, {cells} cell{plural}"),
        }
    }
}
