//! Jobs of Alibaba's cluster-trace-v2018, in which the name of a task encodes its dependencies.

use std::collections::HashMap;
use std::path::Path;

use super::Shape;
use crate::workload::{Cycle, order};
use iswitch_study::StudyError;
use iswitch_study::table::Records;

/// Number of columns: arrival, job, task, duration, processors, memory, instances.
const COLUMNS: usize = 7;

/// Task of a job, with the number and the dependencies that are encoded in its name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Task {
    line: usize,
    name: String,
    /// Number of the task, if its name has one.
    number: Option<u64>,
    /// Numbers of the tasks on which this task depends.
    after: Vec<u64>,
}

impl Task {
    /// Parses the name of a task. For example, `R23_22` is task 23 and depends on task 22. Parts that are not numbers,
    /// such as `Stg1`, are ignored. Names such as `task_NDU5` and `MergeTask` have neither a number nor dependencies.
    fn of(name: &str, line: usize) -> Self {
        let mut words = name.split('_');
        let digits = words.next().unwrap_or_default().trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let number = (digits != name).then(|| digits.parse().ok()).flatten();
        let after =
            if number.is_some() { words.filter_map(|word| word.parse().ok()).collect() } else { vec![] };
        Self { line, name: name.to_owned(), number, after }
    }
}

/// Returns the shape of each job. The jobs are ordered by the position of their first task in the file.
pub(super) fn parse(text: &str, path: &Path) -> Result<Vec<Shape>, StudyError> {
    let mut jobs: Vec<(String, Vec<Task>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    Records::new(text).for_each(path, |line, fields| {
        if fields.len() != COLUMNS {
            return Err(format!("number of columns is {}, expected {COLUMNS}", fields.len()));
        }
        let (arrival, job, task) = (&fields[0], &fields[1], &fields[2]);
        if !arrival.parse().is_ok_and(f64::is_finite) {
            return Err(format!("arrival is {arrival:?}, expected a number"));
        }
        if let Some((what, _)) = [("job", job), ("task", task)].into_iter().find(|(_, name)| name.is_empty())
        {
            return Err(format!("name of the {what} is missing"));
        }
        let place = places.get(job).copied().unwrap_or_else(|| {
            places.insert(job.to_owned(), jobs.len());
            jobs.push((job.to_owned(), Vec::new()));
            jobs.len() - 1
        });
        jobs[place].1.push(Task::of(task, line));
        Ok(())
    })?;
    jobs.iter().map(|(job, tasks)| shape(job, tasks, path)).collect()
}

fn shape(job: &str, tasks: &[Task], path: &Path) -> Result<Shape, StudyError> {
    let mut nodes: HashMap<u64, usize> = HashMap::new();
    for (node, task) in tasks.iter().enumerate() {
        let Some(number) = task.number else { continue };
        if let Some(other) = nodes.insert(number, node) {
            let (name, other) = (&task.name, &tasks[other]);
            let reason = format!(
                "task {name} of job {job} has the same number as {} in line {}",
                other.name, other.line
            );
            return Err(StudyError::line(path, task.line, reason));
        }
    }
    let mut edges = Vec::new();
    for (node, task) in tasks.iter().enumerate() {
        for before in task.after.iter().filter_map(|number| nodes.get(number)) {
            if !edges.contains(&(*before, node)) {
                edges.push((*before, node));
            }
        }
    }
    let shape = Shape { nodes: tasks.len(), edges };
    let waits_for = shape.waits_for();
    let waits_for =
        waits_for.map_err(|error| StudyError::line(path, tasks[0].line, format!("job {job}: {error}")))?;
    match order(&waits_for) {
        Ok(_) => Ok(shape),
        Err(Cycle(cycle)) => {
            let names: Vec<&str> = cycle.iter().map(|node| tasks[*node].name.as_str()).collect();
            let reason = format!("dependencies of job {job} form a cycle: {}", names.join(" -> "));
            Err(StudyError::line(path, tasks[cycle[0]].line, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rows: &[&str]) -> Result<Vec<Shape>, String> {
        let text: String = rows.iter().flat_map(|row| [*row, ",5,100.0,0.3,1\n"]).collect();
        super::parse(&text, Path::new("tasks")).map_err(|error| error.to_string())
    }

    #[test]
    fn task_names_encode_their_dependencies() {
        let of = |name| {
            let Task { number, after, .. } = Task::of(name, 1);
            (number, after)
        };
        assert_eq!(of("R23_22"), (Some(23), vec![22]));
        assert_eq!(of("J25_16_18_24"), (Some(25), vec![16, 18, 24]));
        assert_eq!(of("M1"), (Some(1), vec![]));
        assert_eq!(of("R4_2_Stg3"), (Some(4), vec![2]));
        for name in ["task_NDU5", "MergeTask", "task_12", "7", "M99999999999999999999_1"] {
            assert_eq!(of(name), (None, vec![]), "{name}");
        }
    }

    #[test]
    fn the_tasks_of_a_job_form_one_shape() {
        // The tasks of the first job continue after those of the second; task 9 does not exist.
        let shapes = parse(&["0,a,R2_1", "0,a,M1", "3,b,task_x", "3,b,task_y", "0,a,J4_2_1_9_2"]).unwrap();
        assert_eq!(shapes[0], Shape { nodes: 3, edges: vec![(1, 0), (0, 2), (1, 2)] });
        assert_eq!(shapes[1], Shape { nodes: 2, edges: vec![] });
    }

    #[test]
    fn errors_name_the_invalid_row() {
        for (rows, want) in [
            (&["0,a,M1", "0,a,M2,1"][..], "tasks, line 2: number of columns is 8, expected 7"),
            (&["x,a,M1"], "tasks, line 1: arrival is \"x\", expected a number"),
            (&["0,,M1"], "tasks, line 1: name of the job is missing"),
            (&["0,a,M1", "0,a, "], "tasks, line 2: name of the task is missing"),
            (
                &["0,a,M1", "0,b,M1", "0,a,R1"],
                "tasks, line 3: task R1 of job a has the same number as M1 in line 1",
            ),
            (
                &["0,a,M1", "0,a,R2_3", "0,a,R3_2"],
                "tasks, line 3: dependencies of job a form a cycle: R3_2 -> R2_3 -> R3_2",
            ),
            (&["0,a,M1_1"], "tasks, line 1: dependencies of job a form a cycle: M1_1 -> M1_1"),
        ] {
            assert_eq!(parse(rows).unwrap_err(), want);
        }
        // The names of jobs and tasks may be quoted, and lines may end with CRLF.
        let quoted = "\u{feff}0,\"a, 1\",\"M1\",5,100.0,0.3,1\r\n\r\n\"0\",\"a, 1\",R2_1,5,100.0,0.3,1\r\n";
        let shapes = super::parse(quoted, Path::new("tasks")).unwrap();
        assert_eq!(shapes, [Shape { nodes: 2, edges: vec![(0, 1)] }]);
        assert_eq!(
            super::parse(&quoted.replace("R2_1", "M1"), Path::new("tasks")).unwrap_err().to_string(),
            "tasks, line 3: task M1 of job a, 1 has the same number as M1 in line 1"
        );
        assert_eq!(
            super::parse("0,a\n", Path::new("tasks")).unwrap_err().to_string(),
            "tasks, line 1: number of columns is 2, expected 7"
        );
    }
}
