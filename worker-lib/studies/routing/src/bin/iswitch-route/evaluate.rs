//! `iswitch route evaluate`: runs one policy.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_manual::print_line;
use iswitch_routing::measure::{Measurement, OnSlot, measure};
use iswitch_routing::policy::{Fill, Policy};
use iswitch_routing::rates::{Arrivals, Rates};
use iswitch_study::contest::{ANY_POLICY_HELP, Contestant as _};
use iswitch_study::external::{EXTERNAL_HELP, ExternalArgs};
use iswitch_study::files::write;
use iswitch_study::table::Output;

use super::network::{LOAD, RunsArgs, ShapeArgs};
use super::results::{Load, PolicyRuns, Run, Summary};
use super::source::{LatestTraining, POLICIES, PolicySource};

/// Arguments of `iswitch route evaluate`.
#[derive(Args)]
pub(crate) struct EvaluateArgs {
    #[arg(help = ANY_POLICY_HELP, long_help = format!("Policy: {POLICIES}; or {EXTERNAL_HELP}"))]
    policy: String,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    runs: RunsArgs,
    /// Load, above 0 and below 1
    ///
    /// The load is the sum of all arrival rates, divided by the number of links between two stages.
    #[arg(long, value_name = "RHO", default_value_t = LOAD, conflicts_with = "rates")]
    load: f64,
    /// Link choice for packets behind the head of a queue: random or rule
    ///
    /// Only the policies jsq, po2 and drill use this option. With `random`, a packet behind the head of a queue takes a
    /// random link among those still idle. With `rule`, it takes the link that the policy's rule selects, as the head
    /// of a queue always does.
    #[arg(long, default_value = "random")]
    fill: Fill,
    /// CSV file for the number of queued packets in each slot
    ///
    /// The columns are `slot,queued_before_arrivals,queued_after_arrivals`. This option requires a single run (`--draws
    /// 1`).
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// CSV file for the arrivals
    ///
    /// The columns are `slot,switch,class,count`. This option requires a single run (`--draws 1`).
    #[arg(long, value_name = "FILE")]
    arrivals: Option<PathBuf>,
    /// CSV file for the arrival rates, in the format of --rates
    ///
    /// This option requires a single run (`--draws 1`).
    #[arg(long, value_name = "FILE")]
    write_rates: Option<PathBuf>,
    #[command(flatten)]
    external: ExternalArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Evaluates a policy on draws of arrival rates.
pub(crate) fn run(args: &EvaluateArgs) -> anyhow::Result<ExitCode> {
    let source = PolicySource::parse(&args.policy)?.with_answer_timeout(args.external.answer_timeout());
    let default = args.runs.default_shape(source.shape())?;
    let shape = args.shape.shape(default)?;
    let draws = args.runs.numbers();
    let files =
        [("--trace", &args.trace), ("--arrivals", &args.arrivals), ("--write-rates", &args.write_rates)];
    if let Some((name, _)) = files.iter().find(|(_, file)| file.is_some() && draws.clone().count() > 1) {
        bail!("{name} requires a single run: add --draws 1");
    }
    let wants_record = files.iter().any(|(_, file)| file.is_some());
    let mut series = PolicyRuns { policy: source.name(), condition: Load(args.load), runs: Vec::new() };
    let mut latest = LatestTraining::default();
    for draw in draws {
        let rates = args.runs.rates(shape, args.load, draw)?;
        let mut record = Record::new(shape.switches());
        let mut on_slot = |before: u64, after: u64, counts: &[u32]| {
            if wants_record {
                record.add(before, after, counts);
            }
        };
        let mut policy = source.build_for(&rates, args.fill, draw, &mut latest)?;
        let measured = run_once(policy.as_mut(), &rates, draw, args.runs.slots, &mut on_slot)?;
        note_overload(&rates, draw);
        let texts = [record.trace.into_text(), record.arrivals.into_text(), rates.to_csv()];
        for ((_, file), text) in files.iter().zip(texts) {
            if let Some(path) = file {
                write(path, &text)?;
            }
        }
        series.runs.push(Run { measured, load: rates.load() });
    }
    let summary = Summary::new(shape, &series);
    if args.json {
        print_line!("{}", serde_json::to_string(&summary)?)?;
    } else {
        print_line!(
            "{}: {} stages of {} switches, load {:.3}, {} run(s) of {} slots from an empty network\n\
             queued before arrivals: {} packets (bound {}), {:.1} % above the bound\n\
             delay by Little's law: {} slots (bound {}); mean delay of the packets that left: {} slots",
            summary.policy,
            summary.stages,
            summary.switches,
            summary.load,
            summary.runs,
            summary.slots,
            summary.queued.text(1),
            summary.bound_queued.text(1),
            summary.above_bound * 100.0,
            summary.delay.text(3),
            summary.bound_delay.text(3),
            summary.tracked_delay.text(3),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// CSV output of the queue lengths and arrivals of one run.
struct Record {
    switches: usize,
    slot: u64,
    trace: Output,
    arrivals: Output,
}

impl Record {
    fn new(switches: usize) -> Self {
        Self {
            switches,
            slot: 0,
            trace: Output::new("slot,queued_before_arrivals,queued_after_arrivals"),
            arrivals: Output::new("slot,switch,class,count"),
        }
    }

    fn add(&mut self, before: u64, after: u64, counts: &[u32]) {
        let Self { switches, slot, trace, arrivals } = self;
        trace.row(&[slot, &before, &after]);
        for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            arrivals.row(&[slot, &(at / *switches), &(at % *switches), count]);
        }
        *slot += 1;
    }
}

/// Runs a newly created policy, starting from an empty network. For the same rates and draw, all policies get the same
/// arrivals.
pub(super) fn run_once(
    policy: &mut dyn Policy,
    rates: &Rates,
    draw: u64,
    slots: u64,
    on_slot: OnSlot<'_>,
) -> anyhow::Result<Measurement> {
    let mut arrivals = Arrivals::new(rates, stream(draw, Purpose::Arrivals, 0));
    Ok(measure(policy, rates, &mut arrivals, slots, on_slot)?)
}

/// Logs which switches and classes are overloaded: their queues grow without bound under every policy.
pub(super) fn note_overload(rates: &Rates, draw: u64) {
    let (switches, classes) = rates.overloaded();
    for (what, which) in [("switches of the first stage", switches), ("classes", classes)] {
        if !which.is_empty() {
            tracing::info!("draw {draw}: {what} {which:?} receive more packets than their links can carry");
        }
    }
}
