//! Run directories of short training runs, and functions that run the command.

use std::path::Path;
use std::process::{Command, Output};

use iswitch::Loopback;
use iswitch_learn::algorithms::checkpoint;
use iswitch_learn::algorithms::trainer::{Algorithm, Mode, World};
use iswitch_learn::env;

/// Trains for one advance of the trainer, and writes the checkpoint to `directory`.
pub(crate) fn train<A: Algorithm>(config: A, id: &'static str, directory: &Path) {
    let shape = config.vector_shape(env::make(id).unwrap().spec(), Mode::Synchronous).unwrap();
    let make = |count: usize| env::make_vector(id, count);
    let aggregator = Box::new(Loopback::alone(shape.len()));
    let mut trainer = config.trainer(World::ALONE, &make, aggregator).unwrap();
    trainer.advance().unwrap();
    checkpoint::save(trainer.as_mut(), directory).unwrap();
}

/// Runs `iswitch-export RUN --out OUT OPTIONS`.
pub(crate) fn export(run: &Path, out: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-export"));
    command.arg(run).arg("--out").arg(out).args(options).output().unwrap()
}

/// Runs [`export`], which must succeed, and returns the command's output.
pub(crate) fn exported(run: &Path, out: &Path, options: &[&str]) -> String {
    let output = export(run, out, options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
