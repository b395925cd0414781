//! Faults in the accelerator's RTL, which the checks of the RTL have to find: hdl/faults.toml.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use hdl::accelerator::Build;
use hdl::generate;
use hdl::simulation::{Verilated, VerilatedError};
use hdl::verification::adder::{self, AdderError, Plan};
use hdl::verification::faults::{ARGUMENT, Check, Fault, plant};
use hdl::verification::modules::{MODULES, ModulesError, compare};
use serde::Serialize;
use tempfile::TempDir;

use crate::lockstep;

/// Of the adder's corner pairs one in so many is tried.
const CORNER_STEP: u64 = 37;

/// How long each check looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// Packets of the lock-step.
    pub packets: u64,
    /// Random pairs of the adder; and one corner pair of 37.
    pub pairs: u64,
    /// Cycles of a module.
    pub cycles: usize,
    /// Decides about everything that is random.
    pub seed: u64,
}

/// What became of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// The check says what is wrong.
    Found {
        /// What it says.
        detail: String,
    },
    /// The check says that all is well.
    Survived,
    /// The check could not be made.
    Failed {
        /// Why not.
        error: String,
    },
}

/// One fault, tried.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// How long the check took, without the compiler.
    pub seconds: f64,
}

/// Programs with all the faults in them.
#[derive(Debug)]
pub struct Bench {
    /// Holds the programs.
    directory: TempDir,
    faults: Vec<Fault>,
    board: Option<PathBuf>,
    adder: Option<PathBuf>,
    effort: Effort,
}

impl Bench {
    /// Compiles what these faults need.
    ///
    /// # Errors
    /// If a fault does not fit the RTL, or Verilator is missing.
    pub fn build(faults: Vec<Fault>, effort: Effort) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut bench = Self { directory, faults, board: None, adder: None, effort };
        if bench.needs(Check::Lockstep) {
            let verilog = bench.planted(Check::Lockstep, &generate::accelerator(Build::Slots128))?;
            bench.board = Some(Verilated::build(&verilog, &bench.directory.path().join("board"))?);
        }
        if bench.needs(Check::Adder) {
            let verilog = bench.planted(Check::Adder, &adder::verilog())?;
            bench.adder = Some(adder::build(&verilog, &bench.directory.path().join("adder"))?);
        }
        Ok(bench)
    }

    /// The faults, in their order.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    fn needs(&self, check: Check) -> bool {
        self.faults.iter().any(|fault| fault.found_by == check)
    }

    fn of(&self, check: Check) -> impl Iterator<Item = &Fault> {
        self.faults.iter().filter(move |fault| fault.found_by == check)
    }

    fn planted(&self, check: Check, verilog: &str) -> Result<String> {
        Ok(plant(verilog, &self.of(check).cloned().collect::<Vec<_>>())?)
    }

    /// Makes all checks with no fault chosen, and returns the seconds: what is found then is none of the faults.
    ///
    /// # Errors
    /// If something is found.
    pub fn control(&self) -> Result<f64> {
        let begin = Instant::now();
        let mut findings = Vec::new();
        if self.board.is_some() {
            findings.extend(self.run_lockstep(0)?);
        }
        if self.adder.is_some() {
            findings.extend(self.run_adder(0)?);
        }
        for fault in self.of(Check::Modules) {
            findings.extend(self.run_module(fault, false)?);
        }
        ensure!(findings.is_empty(), "without a fault: {}", findings.join("; "));
        Ok(begin.elapsed().as_secs_f64())
    }

    /// Makes the check that has to find this fault.
    pub fn attempt(&self, fault: &Fault) -> Trial {
        let begin = Instant::now();
        let number = || 1 + self.of(fault.found_by).position(|other| other == fault).unwrap_or_default();
        let finding = match fault.found_by {
            Check::Lockstep => self.run_lockstep(number()),
            Check::Adder => self.run_adder(number()),
            Check::Modules => self.run_module(fault, true),
        };
        let outcome = match finding {
            Ok(None) => Outcome::Survived,
            Ok(Some(detail)) => Outcome::Found { detail },
            Err(error) => Outcome::Failed { error: format!("{error:#}") },
        };
        Trial { outcome, seconds: begin.elapsed().as_secs_f64() }
    }

    /// What the lock-step says is wrong, if anything, with the fault of that number.
    fn run_lockstep(&self, number: usize) -> Result<Option<String>> {
        let program = self.board.as_ref().context("there is no board")?;
        let mut device = Verilated::start_with(program, &[argument(number)])?;
        let mut packets = 0;
        let Effort { packets: most, seed, .. } = self.effort;
        let done = lockstep::run(&mut device, Build::Slots128, most, seed, |done| packets = done.packets);
        match done {
            Ok(_) => Ok(None),
            Err(error) if is_of_tools(&error) => Err(error),
            Err(error) => Ok(Some(format!("after {packets} packets, {error:#}"))),
        }
    }

    fn run_adder(&self, number: usize) -> Result<Option<String>> {
        let program = self.adder.as_ref().context("there is no adder")?;
        let plan = Plan { random: self.effort.pairs, seed: self.effort.seed, corner_step: CORNER_STEP };
        match adder::verify(program, &[argument(number)], plan, |_| {}) {
            Ok(_) => Ok(None),
            Err(error @ AdderError::Mismatch { .. }) => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn run_module(&self, fault: &Fault, with_fault: bool) -> Result<Option<String>> {
        let name = fault.module.split('$').next().unwrap_or_default();
        let Some(module) = MODULES.iter().find(|module| module.name == name) else {
            bail!("there is no module {name} in hdl/src/verification/modules");
        };
        let mut trace = module.trace(self.effort.cycles, self.effort.seed);
        if with_fault {
            trace.verilog = fault.apply(&trace.verilog)?;
        }
        match compare(&[trace], self.directory.path()) {
            Ok(()) => Ok(None),
            Err(error @ ModulesError::Different { .. }) => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }
}

fn argument(number: usize) -> String {
    format!("+{ARGUMENT}={number}")
}

/// Whether the error says something about the simulation, not about what is simulated.
fn is_of_tools(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref())
        .any(|cause| matches!(cause, VerilatedError::Pipe(_) | VerilatedError::UnknownAnswer(_)))
}

/// Those of the faults that have these names, all if there are none.
///
/// # Errors
/// If there is no fault of a name.
pub fn select(faults: Vec<Fault>, names: &[String]) -> Result<Vec<Fault>> {
    for name in names {
        let known: Vec<_> = faults.iter().map(|fault| fault.name.as_str()).collect();
        ensure!(
            known.contains(&name.as_str()),
            "there is no fault {name:?}, expected one of {}",
            known.join(", ")
        );
    }
    let is_selected = |fault: &Fault| names.is_empty() || names.contains(&fault.name);
    Ok(faults.into_iter().filter(is_selected).collect())
}
