//! The peer benchmark: every contender gives right sums in the namespaces that it is measured in. Needs root and
//! Open MPI.

use std::path::Path;

use iswitch_testbench::peers::table::Table;
use iswitch_testbench::peers::{Contender, Load, Network, Tools};
use iswitch_testbench::requirements::{alone, has_xdp, report, root_and};

#[test]
fn every_contender_sums_and_is_measured() {
    if !root_and("every_contender_sums_and_is_measured", &["mpicc", "mpirun", "tc"]) {
        return;
    }
    let _alone = alone();
    // Without Gloo, whose PyTorch is larger than everything else together.
    let tools = Tools::find(Path::new("/nonexistent"));
    let load = Load { floats: 1_003, rounds: 20, warm_up: 2 };
    let rate = Some("1gbit".parse().unwrap());
    for rate in [None, rate] {
        let network = Network::new(3, rate);
        let runs = Contender::all(&tools).into_iter().map(|it| (it, vec![it.run(&network, &tools, load)]));
        let table = Table { load, rate, rows: runs.collect() };
        let xdp = usize::from(has_xdp());
        assert_eq!(table.rows.len(), 13 + xdp, "switch, server and ring twice each, and seven of Open MPI");
        for (contender, runs) in &table.rows {
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
        assert_eq!(json["rows"][0]["share_of_wire"].is_number(), rate.is_some());
    }
}
