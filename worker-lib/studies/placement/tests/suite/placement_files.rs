//! Placement: files of jobs, clusters and failures, generated here in the formats of real traces. The real files are
//! also read if environment variables contain their paths.
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use iswitch_placement::failure::{Outage, YEAR};
use iswitch_placement::rates::{Batch, GpuLife, RatePool, Shrinkage, by_cage};
use iswitch_placement::reader::{
    JobsFormat, SharedGpus, Throughputs, read_alibaba_nodes, read_alibaba_pods, read_cluster, read_gavel,
    read_jobs, read_nodes, read_outages, read_philly, read_pollux, read_rates, read_tiresias, read_titan,
};
use iswitch_placement::{Cluster, Job, StudyError};
use tempfile::TempDir;

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

/// Returns the text of the expected error, with the file's path reduced to its name.
fn wrong<T: Debug>(result: Result<T, StudyError>) -> String {
    let text = result.unwrap_err().to_string();
    text.rsplit('/').next().unwrap().to_owned()
}

fn job(arrival: f64, gpus: usize, duration: f64) -> Job {
    Job::new(arrival, gpus, duration).unwrap()
}

#[test]
fn native_tables_are_read() {
    let files = Files::new();
    let path = files.write("jobs.csv", "gpus,arrival_s,duration_s,owner\n2,10,100,a\n1,5,7.5,b\n");
    assert_eq!(read_jobs(&path).unwrap(), [job(5.0, 1, 7.5), job(10.0, 2, 100.0)]);
    let path = files.write("jobs.csv", "gpus,arrival_s,duration_s\n2,10,100\n1,5,-7\n");
    let reason = "duration of a job is -7, expected a number of seconds above 0";
    assert_eq!(wrong(read_jobs(&path)), format!("jobs.csv, line 3: {reason}"));
    assert!(wrong(read_jobs(Path::new("/nowhere/jobs.csv"))).starts_with("jobs.csv: No such file"));

    let path = files.write("cluster.csv", "gpus,cage\n2,0\n1,2\n");
    let cluster = Cluster::new([(2, 0), (1, 2)]).unwrap();
    assert_eq!(read_cluster(&path).unwrap(), cluster);
    let path = files.write("cluster.csv", "gpus,cage\n2,x\n");
    assert_eq!(wrong(read_cluster(&path)), "cluster.csv, line 2: cage is \"x\", expected a number");

    let path = files.write("rates.csv", "gpu,per_year,age_years\n2,3,0.5\n0,1,0\n1,2,1\n");
    let failures = read_rates(&path, &cluster).unwrap();
    assert!((0..3).all(|gpu| (failures.estimate(gpu, 0.0, 0) * YEAR - (gpu + 1) as f64).abs() < 1e-9));
    assert_eq!(failures.ages(), [0.0, 1.0, 0.5]);
    let refused = |lines: &str| {
        wrong(read_rates(&files.write("rates.csv", &format!("gpu,per_year,age_years\n{lines}")), &cluster))
    };
    assert_eq!(refused("3,1,0\n"), "rates.csv, line 2: id of a GPU is 3, expected 0 to 2");
    assert_eq!(refused("0,-1,0\n"), "rates.csv, line 2: per_year is -1, expected 0 to 1000000 failures");
    assert_eq!(
        refused("0,1,0\n0,1,0\n"),
        "rates.csv, line 3: GPU 0 appears twice, expected one line for each GPU"
    );
    assert_eq!(refused("0,1,0\n2,1,0\n"), "rates.csv: there is no line for GPU 1, expected one for each GPU");
}

#[test]
fn unreachable_arrivals_are_reported_with_their_line() {
    let files = Files::new();
    let refused = |arrival: &str| {
        let text = format!("arrival_s,gpus,duration_s\n0,1,5\n{arrival},1,5\n");
        wrong(read_jobs(&files.write("jobs.csv", &text)))
    };
    for (arrival, shown) in
        [("1e300", "1e300"), ("-1", "-1"), ("nan", "NaN"), ("inf", "inf"), ("1e11", "100000000000")]
    {
        let expected =
            format!("jobs.csv, line 3: arrival of a job is {shown}, expected 0 to 3155760000 seconds");
        assert_eq!(refused(arrival), expected);
    }
}

/// Tables as a spreadsheet writes them: quoted fields with commas and quotation marks, CRLF, a byte-order mark.
#[test]
fn job_tables_may_have_quoted_fields() {
    let files = Files::new();
    let head = "\u{feff}\"owner\",\"gpus\",arrival_s,duration_s\r\n";
    let path =
        files.write("jobs.csv", &format!("{head}\"Li, A. \"\"Bo\"\"\",\"2\",10,\"100\"\r\n\r\n,1,5,7.5\r\n"));
    assert_eq!(read_jobs(&path).unwrap(), [job(5.0, 1, 7.5), job(10.0, 2, 100.0)]);
    assert_eq!(JobsFormat::of(&path).unwrap(), JobsFormat::Own);
    let path = files.write("jobs.csv", &format!("{head}\"a\r\nb\",2,10,100\r\nc,1,\"5,5\",7\r\n"));
    assert_eq!(wrong(read_jobs(&path)), "jobs.csv, line 4: arrival_s is \"5,5\", expected a number");
    let path = files.write("jobs.csv", &format!("{head}\"a,2,10,100\r\nc,1,5,7\r\n"));
    let reason = "a quotation mark is not closed; double a quotation mark inside a field";
    assert_eq!(wrong(read_jobs(&path)), format!("jobs.csv, line 2: {reason}"));
    let path = files.write("nodes.csv", "\"gpus\",\"cage\"\r\n\"2\",0\r\n1,\"2\"\r\n");
    assert_eq!(read_nodes(&path).unwrap(), Cluster::new([(2, 0), (1, 2)]).unwrap());
}

#[test]
fn overlapping_outages_are_reported_with_their_lines() {
    let files = Files::new();
    let cluster = Cluster::uniform(1, 2).unwrap();
    let read = |lines: &str| {
        read_outages(&files.write("failures.csv", &format!("gpu,begin_s,end_s\n{lines}")), &cluster)
    };
    let outage = |gpu, begin, end| Outage { gpu, begin, end };
    assert_eq!(
        read("1,5,9\n0,6,7\n1,9,10\n").unwrap(),
        [outage(1, 5.0, 9.0), outage(0, 6.0, 7.0), outage(1, 9.0, 10.0)]
    );
    let refused = |lines: &str| wrong(read(lines));
    assert_eq!(
        refused("1,50,90\n0,6,7\n1,20,51\n"),
        "failures.csv, line 4: outage of GPU 1 overlaps the outage in line 2"
    );
    assert_eq!(refused("2,5,9\n"), "failures.csv, line 2: id of a GPU is 2, expected 0 to 1");
    assert_eq!(
        refused("0,9,5\n"),
        "failures.csv, line 2: end of an outage of GPU 0 is 5, expected a number of seconds above its start (9)"
    );
    assert_eq!(
        refused("0,-1,5\n"),
        "failures.csv, line 2: start of an outage of GPU 0 is -1, expected a number of seconds >= 0"
    );
}

#[test]
fn philly_and_gavel() {
    let files = Files::new();
    let path = files.write("philly.csv", "duration_s,gpus\n5000,1\n7944,8\n");
    assert_eq!(read_philly(&path).unwrap().jobs(), [job(0.0, 1, 5000.0), job(0.0, 8, 7944.0)]);
    let path = files.write("philly.csv", "duration_s,gpus\n5000,0\n");
    assert_eq!(
        wrong(read_philly(&path)),
        "philly.csv, line 2: number of GPUs of a job is 0, expected at least 1"
    );

    let text = r#"{"v100": {"('A (batch size 8)', 1)": {"null": 10.0, "('A', 1)": [1, 2]},
        "('A (batch size 8)', 4)": {"null": 30.0}, "('B', 2)": {"null": 0.0}}, "k80": {}}"#;
    let path = files.write("throughputs.json", text);
    let throughputs = Throughputs::read(&path, "v100").unwrap();
    assert_eq!(
        [1, 2, 4, 8].map(|gpus| throughputs.get("A (batch size 8)", gpus)),
        [Some(10.0), Some(20.0), Some(30.0), Some(60.0)]
    );
    assert_eq!((throughputs.get("B", 2), throughputs.get("C", 1)), (None, None));
    assert_eq!(
        wrong(Throughputs::read(&path, "p100")),
        "throughputs.json: type of GPU is \"p100\", expected one of k80, v100"
    );
    let path = files.write("bad.json", r#"{"v100": {"A": 1}}"#);
    assert_eq!(
        wrong(Throughputs::read(&path, "v100")),
        "bad.json: key of v100 is A, expected ('KIND', GPUS)"
    );

    let line = |kind: &str, steps: &str, arrival: &str, gpus: &str| {
        format!("{kind}\tpython3 main.py\t--steps\t1\t{steps}\t{arrival}\t{gpus}\n")
    };
    let trace = line("A (batch size 8)", "600", "7.5", "4") + &line("B", "9", "8", "2");
    let jobs = read_gavel(&files.write("a.trace", &trace), &throughputs).unwrap();
    assert_eq!(jobs.jobs, [job(7.5, 4, 20.0)]);
    assert_eq!(jobs.left_out[0].0, 1);
    let refused = |text: &str| wrong(read_gavel(&files.write("a.trace", text), &throughputs));
    assert_eq!(refused("A\tB\n"), "a.trace, line 1: number of tab-separated fields is 2, expected 7");
    assert_eq!(
        refused(&line("A (batch size 8)", "x", "0", "1")),
        "a.trace, line 1: steps is \"x\", expected a number"
    );
}

#[test]
fn alibaba() {
    let files = Files::new();
    let path =
        files.write("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,1,1,2,P100\nb,1,1,0,\nc,1,1,8,G3\n");
    assert_eq!(read_alibaba_nodes(&path).unwrap(), Cluster::new([(2, 0), (8, 0)]).unwrap());
    let header = "name,num_gpu,gpu_milli,pod_phase,creation_time,deletion_time,scheduled_time\n";
    let rows = "a,0,0,Running,0,9,0\nb,1,460,Running,3,13,4\nc,8,1000,Failed,2,30,5\nd,1,1000,Pending,1,2,\n";
    let path = files.write("pods.csv", &format!("{header}{rows}"));
    let jobs = read_alibaba_pods(&path, SharedGpus::LeaveOut).unwrap();
    assert_eq!(jobs.jobs, [job(2.0, 8, 25.0)]);
    assert_eq!(jobs.left_out.iter().map(|(count, _)| *count).collect::<Vec<_>>(), [1, 1, 1]);
    let jobs = read_alibaba_pods(&path, SharedGpus::Whole).unwrap();
    assert_eq!(jobs.jobs, [job(2.0, 8, 25.0), job(3.0, 1, 9.0)]);
    let path = files.write("pods.csv", &format!("{header}a,1,1000,Failed,2,3,5\n"));
    assert_eq!(
        wrong(read_alibaba_pods(&path, SharedGpus::Whole)),
        "pods.csv, line 2: duration of a job is -2, expected a number of seconds above 0"
    );
}

#[test]
fn titan() {
    let files = Files::new();
    let header = "SN,location,insert,remove,duration,out,event\n";
    let year = "31557600";
    let lines = [
        format!("A,c3-0c2s1n0,2014-01-21 00:00:00,2016-01-21 00:00:00,{year},FALSE,DBE"),
        format!("A,c3-0c0s1n0,2016-03-01 00:00:00,2018-01-21 00:00:00,{year}0,FALSE,"),
        "A,c3-0c0s1n0,,2017-01-21 00:00:00,,,OTB".to_owned(),
        format!("B,c11-7c1s4n3,2017-01-21 00:00:00,2018-01-21 00:00:00,{year},TRUE,"),
    ];
    let lives = read_titan(&files.write("gc.csv", &format!("{header}{}\n", lines.join("\n")))).unwrap();
    let life = |events, years, cage, batch| GpuLife { events, years, cage, batch };
    assert_eq!(lives, [life(2, 11.0, 0, Batch::Old), life(0, 1.0, 1, Batch::New)]);
    let refused = |line: &str| wrong(read_titan(&files.write("gc.csv", &format!("{header}{line}\n"))));
    assert_eq!(
        refused("A,c3-0c5s1n0,2014-01-21,,1,FALSE,"),
        "gc.csv, line 2: location is \"c3-0c5s1n0\", expected cX-YcCsSnN with cage C from 0 to 2"
    );
    assert_eq!(
        refused("A,c3-0c1s1n0,2014-01-21,,1,FALSE,SBE"),
        "gc.csv, line 2: event is \"SBE\", expected DBE, OTB or an empty field"
    );
    assert_eq!(
        refused("A,c3-0c1s1n0,,,,,OTB"),
        "gc.csv: GPU A has failures, but no line with an insert time"
    );
}

#[test]
fn pollux_and_tiresias() {
    let files = Files::new();
    files.write(
        "apps/net/scalability.csv",
        "num_nodes,num_replicas,local_bsz,step_time,sync_time\n8,8,16,0.5,0.1\n",
    );
    files.write(
        "apps/net/placements.csv",
        "placement,local_bsz,step_time,sync_time\n1,32,0.4,0\n11,16,0.3,0.1\n11,64,0.9,0.1\n",
    );
    files.write("apps/net/validation-128.csv", "progress,iteration,metric\n1,0,0.5\n300,199,0.6\n");
    let path = files.write(
        "w.csv",
        "name,time,application,num_replicas,batch_size\nnet-1,60,net,2,128\nnet-0,5,net,1,128\n",
    );
    let jobs = read_pollux(&path, &files.0.path().join("apps")).unwrap();
    // A step takes 1.6 s on one GPU, which processes the batch in four parts of 32, and 0.9 s on two GPUs, each with a
    // batch of 64.
    assert_eq!([jobs[0].duration(), jobs[1].duration()], [200.0 * 1.6, 200.0 * 0.9]);
    assert_eq!((jobs[1].arrival(), jobs[1].gpus()), (60.0, 2));
    let scaling = jobs[1].scaling().unwrap();
    assert!((scaling.synchronisation - 0.1 / 1.6).abs() < 1e-12);
    let path = files.write("w.csv", "name,time,application,num_replicas,batch_size\nnet-1,60,../net,2,128\n");
    assert_eq!(
        read_pollux(&path, files.0.path()).unwrap_err().to_string(),
        format!(
            "{}, line 2: application is \"../net\", expected a folder name of letters, digits, - and _",
            path.display()
        )
    );

    let path = files.write(
        "60.csv",
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,8,30,133,vgg,147,23\n",
    );
    assert_eq!(read_tiresias(&path).unwrap(), [job(30.0, 8, 147.0)]);
}

/// Returns the path in an environment variable; if it is not set, prints that the test is skipped.
fn named(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        eprintln!("SKIPPED a real file: {variable} is not set to its path");
    }
    path
}

#[test]
fn real_trace_files_have_the_known_contents() {
    if let Some(path) = named("ISWITCH_PHILLY_JOBS") {
        assert_eq!(read_philly(&path).unwrap().jobs().len(), 33_192);
    }
    if let (Some(trace), Some(throughputs)) =
        (named("ISWITCH_GAVEL_TRACE"), named("ISWITCH_GAVEL_THROUGHPUTS"))
    {
        let jobs = read_gavel(&trace, &Throughputs::read(&throughputs, "v100").unwrap()).unwrap();
        println!("Gavel: {} jobs, {:?} left out", jobs.jobs.len(), jobs.left_out);
        assert!(!jobs.jobs.is_empty() && jobs.left_out[0].0 == 0);
    }
    if let Some(path) = named("ISWITCH_ALIBABA_NODES") {
        let cluster = read_alibaba_nodes(&path).unwrap();
        assert_eq!((cluster.nodes().len(), cluster.gpus()), (1213, 6212));
    }
    if let Some(path) = named("ISWITCH_ALIBABA_PODS") {
        let jobs = read_alibaba_pods(&path, SharedGpus::Whole).unwrap();
        println!("Alibaba: {} jobs, {:?} left out", jobs.jobs.len(), jobs.left_out);
        let left_out = jobs.left_out.iter().map(|(count, _)| count).sum::<usize>();
        assert_eq!((jobs.jobs.len() + left_out, jobs.left_out[0].0), (8152, 1088));
    }
    if let (Some(workload), Some(traces)) = (named("ISWITCH_POLLUX_WORKLOAD"), named("ISWITCH_POLLUX_TRACES"))
    {
        let jobs = read_pollux(&workload, &traces).unwrap();
        let hours = jobs.iter().map(Job::gpu_seconds).sum::<f64>() / 3600.0;
        println!("Pollux: {} jobs of {hours:.0} GPU-hours", jobs.len());
        assert_eq!(jobs.len(), 160);
    }
    if let Some(path) = named("ISWITCH_TIRESIAS_JOBS") {
        assert_eq!(read_tiresias(&path).unwrap().len(), 60);
    }
}

/// Compares the failure rates with those that the authors of the data published and with the results of an independent
/// program.
#[test]
fn titan_gpu_lives_have_the_published_rates() {
    let Some(path) = named("ISWITCH_TITAN_LIFE") else { return };
    let lives = read_titan(&path).unwrap();
    let years: f64 = lives.iter().map(|life| life.years).sum();
    assert_eq!((lives.len(), years.round()), (30_207, 100_820.0));
    assert_eq!(lives.iter().map(|life| life.events).sum::<u32>(), 4826 + 1541);
    assert_eq!(lives.iter().map(|life| life.events).max(), Some(106));
    let of = |batch| lives.iter().filter(|life| life.batch == batch).copied().collect::<Vec<_>>();
    let (old, new) = (of(Batch::Old), of(Batch::New));
    let rounded =
        |lives: &[GpuLife]| by_cage(lives).iter().map(|it| (it.rate() * 1e3).round()).collect::<Vec<_>>();
    assert_eq!(rounded(&old), [38.0, 85.0, 153.0]);
    assert_eq!(rounded(&new), [6.0, 4.0, 7.0]);
    let pool = RatePool::new(&old, Shrinkage::default()).unwrap();
    let mut rates: Vec<_> = pool.rates().collect();
    rates.sort_by(f64::total_cmp);
    let quantile = |share: f64| rates[(share * (rates.len() - 1) as f64) as usize];
    let rounded = |share: f64, digits: f64| (quantile(share) * digits).round() / digits;
    assert_eq!((rates.len(), rounded(0.5, 1e3), rounded(0.99, 1e3)), (18_787, 0.055, 0.300));
    // The independent program uses years of 365 days.
    assert!((quantile(1.0) - 12.36).abs() < 0.01, "{}", quantile(1.0));
}
