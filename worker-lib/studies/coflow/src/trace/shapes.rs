//! Shapes of job graphs, and their plain-text file format.

use std::path::Path;

use super::{Words, alibaba};
use crate::workload::order;
use iswitch_study::StudyError;
use iswitch_study::table::{lines, read};

/// Maximum number of nodes of a shape.
pub const NODES_MAX: usize = 10_000;

/// Shape of a directed acyclic graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of nodes.
    pub nodes: usize,
    /// Edges, each as `(before, after)`.
    pub edges: Vec<(usize, usize)>,
}

impl Shape {
    /// Checks that the nodes of all edges exist and that the graph has no cycle.
    ///
    /// # Errors
    /// Fails if the number of nodes is out of range, if an edge refers to a node that does not exist, or if there is a
    /// cycle.
    pub fn check(&self) -> Result<(), StudyError> {
        order(&self.waits_for()?)?;
        Ok(())
    }

    /// Returns, for each node, the nodes that must precede it.
    ///
    /// # Errors
    /// Fails if the number of nodes is out of range, or if an edge refers to a node that does not exist.
    pub(super) fn waits_for(&self) -> Result<Vec<Vec<usize>>, StudyError> {
        if !(1..=NODES_MAX).contains(&self.nodes) {
            return Err(StudyError::field("number of nodes", self.nodes, format!("1 to {NODES_MAX}")));
        }
        let mut waits_for = vec![Vec::new(); self.nodes];
        for (before, after) in &self.edges {
            if let Some(node) = [before, after].into_iter().find(|node| **node >= self.nodes) {
                return Err(StudyError::field("node of an edge", node, format!("0 to {}", self.nodes - 1)));
            }
            waits_for[*after].push(*before);
        }
        Ok(waits_for)
    }
}

/// Reads a shape file in one of two formats, distinguished by whether the first line contains commas:
///
/// - Each line has the number of nodes, the number of edges, and two numbers for each edge: the node before it and the
///   node after it. Nodes are numbered from 0.
/// - Tasks of Alibaba's cluster-trace-v2018, as `arrival,job,task,duration,cpu,mem,instances`, give one shape for each
///   job. `R23_22` is task 23, which depends on task 22; names without numbers are tasks without dependencies.
///   Dependencies on tasks that are not in the file are ignored: these tasks were complete before the trace began, or
///   were cut off.
///
/// # Errors
/// Fails if the file cannot be read, if a line is invalid, or if dependencies form a cycle. In the last two cases, the
/// error names the line.
pub fn read_shapes(path: &Path) -> Result<Vec<Shape>, StudyError> {
    parse_shapes(&read(path)?, path)
}

/// Parses the content of a shape file, as [`read_shapes`] does. `path` is used only in error messages.
///
/// # Errors
/// Fails if a line is invalid or if dependencies form a cycle; the error names the line.
pub fn parse_shapes(text: &str, path: &Path) -> Result<Vec<Shape>, StudyError> {
    if lines(text).next().is_some_and(|(_, line)| line.contains(',')) {
        return alibaba::parse(text, path);
    }
    let line = |(number, line)| shape(line).map_err(|reason| StudyError::line(path, number, reason));
    lines(text).map(line).collect()
}

fn shape(line: &str) -> Result<Shape, String> {
    let mut words = Words::new(line);
    let nodes: usize = words.number("number of nodes")?;
    let count: usize = words.number("number of edges")?;
    let edge = |_| Ok((words.number("node before an edge")?, words.number("node after an edge")?));
    let edges = (0..count).map(edge).collect::<Result<_, String>>()?;
    words.end()?;
    let shape = Shape { nodes, edges };
    shape.check().map_err(|error| error.to_string())?;
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_shapes_are_refused() {
        assert_eq!(shape("3 2 0 1 1 2").unwrap(), Shape { nodes: 3, edges: vec![(0, 1), (1, 2)] });
        for (line, want) in [
            ("3 1 0 3", "node of an edge is 3, expected 0 to 2"),
            ("3 2 0 1", "node before an edge is missing"),
            ("0 0", "number of nodes is 0, expected 1 to 10000"),
            ("99999999999 0", "number of nodes is 99999999999, expected 1 to 10000"),
            ("2 0 1", "unexpected \"1\" at the end of the line"),
            ("3 3 0 1 1 2 2 1", "coflows wait for each other: 2 -> 1 -> 2"),
        ] {
            assert_eq!(shape(line).unwrap_err(), want);
        }
    }

    #[test]
    fn the_error_names_the_line_and_the_cycle() {
        let error = parse_shapes("2 1 0 1\n\n2 2 0 1 1 0\n", Path::new("shapes")).unwrap_err().to_string();
        assert_eq!(error, "shapes, line 3: coflows wait for each other: 1 -> 0 -> 1");
    }

    #[test]
    fn shape_formats_are_distinguished_by_content() {
        let parse = |text| parse_shapes(text, Path::new("any.csv")).unwrap();
        let shape = || Shape { nodes: 2, edges: vec![(0, 1)] };
        assert_eq!(parse("2 1 0 1\n"), [shape()]);
        assert_eq!(parse("\n0,j_1,M1,1,100,0.3,1\n0,j_1,R2_1,1,100,0.3,1\n"), [shape()]);
        assert!(parse("").is_empty());
    }
}
