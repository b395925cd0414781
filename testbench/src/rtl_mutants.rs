//! Faults injected into the accelerator's RTL, which the RTL checks must find. hdl/faults.toml describes them.

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

/// Step between the checked pairs of corner-case operands of the adder: one pair in 37 is checked.
const CORNER_STEP: u64 = 37;

/// Effort of each check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// Number of packets of the lock-step check.
    pub packets: u64,
    /// Number of random operand pairs of the adder check, which also checks one in 37 pairs of corner-case operands.
    pub pairs: u64,
    /// Number of cycles of a module check.
    pub cycles: usize,
    /// Seed of the random number generator.
    pub seed: u64,
}

/// Outcome of the check of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// The check reported an error.
    Found {
        /// Report of the check.
        detail: String,
    },
    /// The check found no error.
    Survived,
    /// The check could not be completed.
    Failed {
        /// Reason.
        error: String,
    },
}

/// Trial of one fault.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// Outcome of the check.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Duration of the check without compilation, in seconds.
    pub seconds: f64,
}

/// Simulation programs that contain all the faults. Each run activates at most one fault.
#[derive(Debug)]
pub struct Bench {
    /// Directory of the programs.
    directory: TempDir,
    faults: Vec<Fault>,
    board: Option<PathBuf>,
    adder: Option<PathBuf>,
    effort: Effort,
}

impl Bench {
    /// Compiles the programs that these faults need.
    ///
    /// # Errors
    /// Fails if a fault does not fit the RTL, or if Verilator is missing.
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

    /// Returns the faults, in their order.
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

    /// Runs all checks without a fault, and returns their duration in seconds. If a check failed even without a fault,
    /// its failure with a fault would not show that it found the fault.
    ///
    /// # Errors
    /// Fails if a check reports an error.
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
        ensure!(findings.is_empty(), "a check fails without a fault: {}", findings.join("; "));
        Ok(begin.elapsed().as_secs_f64())
    }

    /// Runs the check that must find this fault.
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

    /// Runs the lock-step check with fault `number`, counted from 1; 0 activates no fault. Returns the report of an
    /// error, if the check found one.
    fn run_lockstep(&self, number: usize) -> Result<Option<String>> {
        let program = self.board.as_ref().context("the board was not built")?;
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
        let program = self.adder.as_ref().context("the adder was not built")?;
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
            bail!("hdl/src/verification/modules has no module {name}");
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

/// Returns whether an error comes from the simulation program rather than from the simulated RTL.
fn is_of_tools(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref())
        .any(|cause| matches!(cause, VerilatedError::Pipe(_) | VerilatedError::UnknownAnswer(_)))
}

/// Returns the faults with the given names, or all faults if there are no names.
///
/// # Errors
/// Fails if no fault has one of the names.
pub fn select(faults: Vec<Fault>, names: &[String]) -> Result<Vec<Fault>> {
    for name in names {
        let known: Vec<_> = faults.iter().map(|fault| fault.name.as_str()).collect();
        ensure!(
            known.contains(&name.as_str()),
            "unknown fault {name:?}, expected one of {}",
            known.join(", ")
        );
    }
    let is_selected = |fault: &Fault| names.is_empty() || names.contains(&fault.name);
    Ok(faults.into_iter().filter(is_selected).collect())
}
