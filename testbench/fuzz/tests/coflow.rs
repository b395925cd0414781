//! Fuzz targets: files of coflows, job shapes and learned policies. `docs/fuzzing.md` describes how to run them.

use std::fs;
use std::path::Path;

use iswitch_coflow::deepweave::agent::DeepWeave;
use iswitch_coflow::deepweave::training::Saved;
use iswitch_coflow::generate::JobSource;
use iswitch_coflow::policy::PolicySpec;
use iswitch_coflow::simulation::{Fabric, simulate};
use iswitch_coflow::trace::{CoflowTrace, parse_shapes};
use iswitch_coflow::workload::{Coflow, Flow, Job};
use iswitch_learn::algorithms::checkpoint::MODEL_FILE;

/// Maximum number of jobs to simulate; more would only take longer.
const JOBS_MAX: usize = 20;
const NODES_MAX: usize = 50;

/// If the input describes a network that is too large, the reader must refuse the input before it allocates memory for
/// the network.
#[test]
fn coflow_policy() {
    let directory = tempfile::tempdir().expect("a temporary directory must be available");
    let path = directory.path().join(MODEL_FILE);
    bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
        fs::write(&path, bytes).expect("the file must be writable");
        if let Err(error) = Saved::read(directory.path()).and_then(|saved| DeepWeave::of_saved(&saved, &[])) {
            assert!(!error.to_string().is_empty());
        }
    });
}

#[test]
fn coflow_trace() {
    bolero::check!().with_iterations(1000).for_each(|bytes: &[u8]| {
        match CoflowTrace::parse(&String::from_utf8_lossy(bytes), Path::new("trace")) {
            Ok(trace) if trace.ports <= NODES_MAX => {
                let arrivals = trace.arrivals.into_iter().take(JOBS_MAX);
                let job =
                    |(time, coflow)| Job::single(time, coflow).expect("the reader must return valid jobs");
                let jobs: Vec<Job> = arrivals.map(|it| job((it.time, it.coflow))).collect();
                let fabric = Fabric::new(trace.ports, 125e6);
                for policy in PolicySpec::all() {
                    let outcome =
                        simulate(&jobs, &fabric, policy.build(fabric.capacity).as_mut(), &mut |_, _| {})
                            .expect("the jobs must be sorted and fit");
                    assert!(
                        outcome.job_times.iter().all(|time| time.is_finite() && *time >= 0.0),
                        "{policy}"
                    );
                }
            }
            Ok(_) => {}
            Err(error) => assert!(error.to_string().starts_with("trace, line "), "{error}"),
        }
    });
}

#[test]
fn coflow_shapes() {
    let coflow = Coflow::new(2, vec![Flow { from: 0, to: 1, size: 1.0 }]).expect("the coflow must be valid");
    bolero::check!().with_iterations(1000).for_each(|bytes: &[u8]| {
        match parse_shapes(&String::from_utf8_lossy(bytes), Path::new("shapes")) {
            Ok(shapes) if !shapes.is_empty() => {
                let small = shapes.iter().filter(|shape| shape.nodes <= NODES_MAX).take(JOBS_MAX).cloned();
                let source = JobSource::new(shapes.clone(), vec![coflow.clone()])
                    .expect("the reader must return valid shapes");
                for shape in small {
                    let job = source.job(0.0, &shape, |_| 0).expect("the reader must return valid shapes");
                    assert_eq!(job.order().len(), shape.nodes);
                }
            }
            Ok(_) => {}
            Err(error) => assert!(error.to_string().starts_with("shapes, line "), "{error}"),
        }
    });
}
