//! Readers of files that contain coflows, shapes of job graphs, jobs or fabrics. This project contains no real traces;
//! the caller provides the paths of its own copies.

mod alibaba;
mod benchmark;
mod fabric;
mod jobs;
mod shapes;

use std::str::FromStr;

pub use benchmark::{Arrival, CoflowTrace};
pub use fabric::FabricFile;
pub(crate) use jobs::CoflowEntry;
pub use jobs::JobFile;
pub use shapes::{NODES_MAX, Shape, parse_shapes, read_shapes};

/// Reader of the words of a line, which are separated by white space.
struct Words<'a> {
    words: std::str::SplitWhitespace<'a>,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        Self { words: line.split_whitespace() }
    }

    fn word(&mut self, what: &str) -> Result<&'a str, String> {
        self.words.next().ok_or_else(|| format!("{what} is missing"))
    }

    fn number<T: FromStr>(&mut self, what: &str) -> Result<T, String> {
        let word = self.word(what)?;
        word.parse().map_err(|_| format!("{what} is {word:?}, expected a number"))
    }

    fn end(&mut self) -> Result<(), String> {
        self.words.next().map_or(Ok(()), |word| Err(format!("unexpected {word:?} at the end of the line")))
    }
}
