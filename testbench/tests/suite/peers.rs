//! Tests that, in the peer benchmark, every contender delivers exact sums in the network namespaces that the benchmark
//! uses. Needs root and Open MPI.

use std::path::Path;
use std::time::Duration;

use iswitch::{ElementType, ElementTypes};
use iswitch_harness::cluster::PortKind;
use iswitch_harness::requirements::{alone, has_xdp, networks_and, report};
use iswitch_testbench::contest::{Progress, Row};
use iswitch_testbench::peers::racks::racks_of;
use iswitch_testbench::peers::{Axis, Contender, Links, Load, Network, Series, Tools, measure, plot};

const LOAD: Load = Load { floats: 1_003, rounds: 20, warm_up: 2, compute: Duration::ZERO };

const BF16: ElementTypes = ElementTypes::uniform(ElementType::Bf16);
/// Element types with which the contenders are tested. In the tests with several racks, workers that send 16-bit
/// elements learn the segment size from the switch.
const WIRE: [ElementTypes; 3] = [ElementTypes::F32, BF16, ElementTypes::with_wide_results(ElementType::F16)];

/// Returns all tools except Gloo. Gloo requires PyTorch, which is larger than all other tools together.
fn tools() -> Tools {
    Tools::find(Path::new("/nonexistent"))
}

#[test]
fn every_contender_aggregates_and_is_measured() {
    if !networks_and("every_contender_aggregates_and_is_measured", &["mpicc", "mpirun", "tc"]) {
        return;
    }
    let _alone = alone();
    let tools = tools();
    let rate = Some("1gbit".parse().unwrap());
    for links in [Links::default(), Links { rate, delay: None }] {
        let network = Network::star(3, links);
        let table = measure(&network, &tools, &Contender::all(&tools, &WIRE), LOAD, 1, &Progress::silent());
        let xdp = usize::from(has_xdp());
        assert_eq!(
            table.standings.rows.len(),
            27 + 3 * xdp,
            "the switch three times for each of three types, server and ring twice, and seven of Open MPI for two types"
        );
        for Row { contender, runs } in &table.standings.rows {
            let run = runs[0];
            assert!(run.us_p50 > 0.0 && run.us_p99 >= run.us_p50, "{contender}: {run:?}");
            assert!(run.worker_cpu_s_per_gb > 0.0 && run.worker_peak_kib > 0, "{contender}: {run:?}");
        }
        let (best, _) = table.best_peer().unwrap();
        assert!(best.is_peer());
        report(&table.text());
        let json = table.json();
        assert_eq!(json["rows"][0]["contender"], "iswitchd, raw ports");
        assert_eq!(json["rows"][0]["ratio"]["median"], 1.0);
        assert_eq!(json["rows"][0]["share_of_wire"].is_number(), links.rate.is_some());
        let figure = plot::bars(&table);
        assert_eq!(figure.contains("wire limit"), links.rate.is_some());
        assert!(table.standings.rows.iter().all(|row| figure.contains(&row.contender.to_string())));
    }
}

#[test]
fn every_contender_aggregates_across_racks() {
    if !networks_and("every_contender_aggregates_across_racks", &["mpicc", "mpirun", "tc"]) {
        return;
    }
    let _alone = alone();
    let tools = tools();
    let rate = Some("10gbit".parse().unwrap());
    // One algorithm of Open MPI covers the same code as the others.
    let contenders: Vec<_> = Contender::all(&tools, &WIRE)
        .into_iter()
        .filter(|it| !matches!(it, Contender::Mpi(Some(_), _)))
        .collect();
    let tables = [4, 6].map(|workers| {
        let network = Network::racks(&racks_of(workers), Links { rate, delay: None });
        assert_eq!((network.worker_count(), network.rack_count()), (workers, Some(2)));
        measure(&network, &tools, &contenders, LOAD, 1, &Progress::silent())
    });
    let rows = 15 + 3 * usize::from(has_xdp());
    assert!(tables.iter().all(|table| table.standings.rows.len() == rows && table.json()["racks"] == 2));
    let series = Series { axis: Axis::Workers, tables: tables.to_vec() };
    let text = series.text();
    report(&text);
    assert!(text.contains("| 4 in 2 racks | 6 in 2 racks |"), "{text}");
    assert!(plot::lines(&series).contains("\nWorkers (log scale)\n"));
}

#[test]
fn delayed_links_delay_each_contender() {
    if !networks_and("delayed_links_delay_each_contender", &["ethtool", "tc"]) {
        return;
    }
    let _alone = alone();
    let delay = Duration::from_millis(2);
    let network = Network::star(2, Links { rate: None, delay: Some(delay) });
    let round_trip = network.round_trip();
    assert!(round_trip >= 2 * delay, "{round_trip:?}");
    let contenders =
        [Contender::switch(PortKind::Raw), Contender::Ring(iswitch::aggregate::Style::Pipelined)];
    let table = measure(&network, &tools(), &contenders, LOAD, 1, &Progress::silent());
    // A sum through the switch takes at least two link delays: to the switch and back. In the ring of two workers, it
    // takes two messages of two links each.
    for (Row { runs, .. }, links) in table.standings.rows.iter().zip([2, 4]) {
        assert!(runs[0].us_p50 >= f64::from(links) * delay.as_secs_f64() * 1e6, "{:?}", runs[0]);
    }
    report(&format!("round trip between a worker and the switch: {round_trip:?}\n{}", table.text()));
}
