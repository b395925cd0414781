//! `iswitch train --async`: trains with workers that do not wait for each other. A switch or a parameter server
//! aggregates their gradients.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use iswitch::pipeline::PipelineConfig;
use iswitch::{AsyncWorker, JoinOptions};
use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::async_server::{AsyncClientOptions, AsyncServer, work};
use iswitch_learn::algorithms::asynchronous::train;
use iswitch_learn::algorithms::checkpoint::{self, ModelFile, RunKind, Writer};
use iswitch_learn::algorithms::halves::Halves;
use iswitch_learn::algorithms::replica::Replica;
use iswitch_learn::algorithms::trainer::{Progress, Report, World};
use iswitch_learn::algorithms::vector::VectorShape;
use iswitch_learn::env::EnvSpec;
use iswitch_manual::output;
use serde::Serialize;

use crate::session::{Session, SessionOptions};

/// Options of asynchronous training.
#[derive(Args, Clone, Debug)]
pub struct AsyncArgs {
    /// Train asynchronously: workers do not wait for each other
    ///
    /// With --aggregator switch, an update sums the first N gradients to arrive, where N is the number of workers; a
    /// fast worker may contribute several of them. With --aggregator ps, an update applies one gradient. --async=false
    /// overrides the setting in the --config file.
    #[arg(
        long = "async",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    is_async: Option<bool>,
    /// Maximum staleness of a gradient with --async, in updates [default: 3]
    ///
    /// The staleness of a gradient is the number of updates to the model since the version from which the gradient was
    /// computed. Gradients with a higher staleness are skipped.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(..=i64::from(STALENESS_MAX)))]
    staleness: Option<u32>,
}

/// Maximum value of the staleness bound.
pub const STALENESS_MAX: u32 = 1000;
const DEFAULT_STALENESS: u32 = 3;

impl AsyncArgs {
    /// Returns whether training is asynchronous, that is, whether workers do not wait for each other.
    pub fn is_async(&self) -> bool {
        self.is_async.unwrap_or(false)
    }

    /// Returns the staleness bound S.
    pub fn staleness(&self) -> u32 {
        self.staleness.unwrap_or(DEFAULT_STALENESS)
    }

    /// Sets options that were not given on the command line to the given values of a configuration file.
    pub fn set_defaults(&mut self, is_async: Option<bool>, staleness: Option<u32>) {
        self.is_async = self.is_async.or(is_async);
        if self.is_async() {
            self.staleness = self.staleness.or(staleness);
        }
    }

    /// Rejects a staleness bound for synchronous training.
    pub fn check(&self) -> anyhow::Result<()> {
        if let Some(bound) = self.staleness.filter(|_| !self.is_async()) {
            bail!("--staleness {bound} requires --async: synchronous gradients are never stale");
        }
        Ok(())
    }
}

/// Result of an asynchronous run. Other programs rely on the keys of the JSON object and on their order.
#[derive(Debug, Serialize)]
struct AsyncOutcome {
    algorithm: &'static str,
    env: String,
    workers: usize,
    aggregator: &'static str,
    mode: &'static str,
    /// Number of environment steps, over all workers.
    steps: u64,
    /// Number of model updates.
    iterations: u64,
    /// Mean return of the last 100 episodes; null if no episode has ended.
    final_return: Option<f64>,
    solved: bool,
    seconds: f64,
    staleness_bound: u32,
    /// Number of committed gradients by staleness at commit time, from 0 to the bound S. With a switch, only this
    /// worker's gradients are counted; with a parameter server, the gradients of all workers are.
    staleness: Vec<u64>,
    /// Number of gradients skipped because they exceeded the staleness bound.
    skipped: u64,
}

/// Asynchronous training run that has been prepared but not started.
pub struct Run {
    halves: Halves,
    world: World,
    staleness: u32,
    options: SessionOptions,
    json: bool,
}

impl Run {
    /// Prepares a run from the local half and the shared half of a learner. If the options resume a run, the shared
    /// half is restored from that run's checkpoint.
    pub fn new(
        mut halves: Halves,
        world: World,
        staleness: u32,
        options: SessionOptions,
        json: bool,
    ) -> anyhow::Result<Self> {
        if options.resume {
            let file = ModelFile::read(&options.out)?;
            let reader = file.reader()?;
            checkpoint::check_kind(&reader, halves.algorithm, halves.local.spec())?;
            halves.replica.read(&mut halves.model, &reader)?;
        }
        Ok(Self { halves, world, staleness, options, json })
    }

    /// Returns the lengths of the vectors that the workers send.
    pub fn vector_shape(&self) -> VectorShape {
        self.halves.shape
    }

    /// Returns the staleness bound S.
    pub fn staleness(&self) -> u32 {
        self.staleness
    }

    fn observing(&self) -> anyhow::Result<Observing> {
        let Halves { replica, algorithm, config, local, .. } = &self.halves;
        let run = RunKind { algorithm, env: &local.spec().id, config };
        Ok(Observing {
            session: Session::new(self.options.clone(), &run, &replica.progress(), replica.loss_names())?,
            out: self.options.out.clone(),
            is_first: self.options.is_first,
            algorithm: self.halves.algorithm,
            config: self.halves.config.clone(),
            spec: self.halves.local.spec().clone(),
            last: replica.progress(),
        })
    }

    /// Trains as one worker of a job that uses a switch.
    pub fn with_switch(self, join: JoinOptions, stop: Arc<AtomicBool>) -> anyhow::Result<()> {
        let mut observing = self.observing()?;
        let worker = AsyncWorker::join(join)?;
        let config = PipelineConfig { staleness_bound: self.staleness, ..PipelineConfig::default() };
        let report =
            train(self.halves, worker, self.world.size, config, stop, &mut |replica, model, report| {
                observing.observe(replica, model, report)
            })?;
        if self.world.rank > 0 {
            return Ok(());
        }
        let staleness = report.staleness.at_commit().counts().to_vec();
        observing.print(self.world, "switch", (staleness, report.staleness.skipped()), self.json)
    }

    /// Trains as one worker of a job that uses a parameter server. The parameter server displays the job's progress.
    pub fn with_server(self, server: SocketAddrV4, stop: Arc<AtomicBool>) -> anyhow::Result<()> {
        const TIMEOUT: Duration = Duration::from_secs(60);
        let (vector_len, model_len) = (self.vector_shape().len(), self.halves.model.len());
        let options = AsyncClientOptions { server, vector_len, model_len, timeout: TIMEOUT };
        work(self.halves.local, &options, stop)?;
        Ok(())
    }

    /// Runs the parameter server on `server`, which is already listening.
    pub fn serve(self, server: AsyncServer, stop: &AtomicBool) -> anyhow::Result<()> {
        let mut observing = self.observing()?;
        let Halves { model, replica, .. } = self.halves;
        let report = server.run(model, replica, stop, &mut |replica, model, report| {
            observing.observe(replica, model, report)
        })?;
        observing.print(self.world, "parameter server", (report.staleness, report.skipped), self.json)
    }
}

/// Observer of a run. It displays the job's progress and saves its model.
struct Observing {
    session: Session,
    out: PathBuf,
    is_first: bool,
    algorithm: &'static str,
    config: String,
    spec: EnvSpec,
    last: Progress,
}

impl Observing {
    fn observe(&mut self, replica: &Replica, model: &[f32], report: &Report) -> Result<(), TrainError> {
        self.last = replica.progress();
        if !self.is_first {
            return Ok(());
        }
        self.session
            .show(&self.last, report, &[])
            .map_err(|error| TrainError::Config(iswitch_manual::describe(error.as_ref())))?;
        if self.session.is_checkpoint_due(&self.last, report.stopped || self.last.finished) {
            let run = RunKind { algorithm: self.algorithm, env: &self.spec.id, config: &self.config };
            let write = |writer: &mut Writer| replica.write(model, writer);
            checkpoint::save_model(&self.out, &run, self.last.advances, &write)?;
        }
        Ok(())
    }

    fn print(
        &self,
        world: World,
        aggregator: &'static str,
        (staleness, skipped): (Vec<u64>, u64),
        json: bool,
    ) -> anyhow::Result<()> {
        let final_return = self.last.mean_return;
        let outcome = AsyncOutcome {
            algorithm: self.algorithm,
            env: self.spec.id.to_string(),
            workers: world.size,
            aggregator,
            mode: "asynchronous",
            steps: self.last.steps,
            iterations: self.last.iterations,
            final_return,
            solved: final_return.is_some_and(|mean| mean >= self.spec.solved_return),
            seconds: (self.session.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            staleness_bound: staleness.len() as u32 - 1,
            staleness,
            skipped,
        };
        let text = if json { serde_json::to_string(&outcome)? + "\n" } else { outcome.text() };
        output::print(format_args!("{text}"))?;
        Ok(())
    }
}

impl AsyncOutcome {
    fn text(&self) -> String {
        let mean = self.final_return.map_or("none".to_owned(), |mean| format!("{mean:.1}"));
        format!(
            "{} on {}, {} worker(s), asynchronous: mean return of the last 100 episodes {mean} ({}) after {} steps, \
             {:.1} s\n\
             updates by {}: {}, {:.0} per second; gradients by staleness 0 to {}: {:?}, {} skipped\n",
            self.algorithm.to_uppercase(),
            self.env,
            self.workers,
            if self.solved { "solved" } else { "not solved" },
            self.steps,
            self.seconds,
            self.aggregator,
            self.iterations,
            self.iterations as f64 / self.seconds.max(1e-3),
            self.staleness_bound,
            self.staleness,
            self.skipped,
        )
    }
}
