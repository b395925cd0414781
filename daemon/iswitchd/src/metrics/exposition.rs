//! Renders a snapshot in the Prometheus text format (version 0.0.4).
//!
//! Names and units follow the Prometheus conventions: counters end in `_total`, times are in seconds, sizes in bytes.
//! Labels have few values: jobs, members, ports and reasons. Addresses of members are left to `iswitchctl jobs`.

use std::fmt::{Display, Write as _};

use iswitch_runtime::snapshot::{CardSnapshot, CounterList, PortSnapshot, Snapshot};
use iswitch_switch::{JobStatus, LimitStatus, ROUND_TIME_BOUNDS_US};

use super::process::Usage;

/// Counters of the core with their help texts.
const TRAFFIC: [(&str, &str); 10] = [
    ("control_received", "Control packets received."),
    ("data_received", "Data packets received."),
    ("contributions", "Contributed segments that were summed."),
    ("results", "Segments completed."),
    ("partials", "Segments whose partial sum for the parent switch is complete."),
    ("results_repeated", "Result segments retransmitted to a single member."),
    ("control_sent", "Control packets sent."),
    ("data_sent", "Data packets sent; a packet to a group counts once."),
    ("group_sent", "Data packets sent to the group of a job, as one copy for several members."),
    ("expelled", "Members expelled because their lease expired."),
];

/// Counters of a card and their help texts.
const CARD: [(&str, &str); 11] = [
    ("frames_received", "Frames that entered the card."),
    ("frames_sent", "Frames that left the card."),
    ("ordinary", "Frames that the card forwarded as ordinary traffic."),
    ("control", "Control packets that the card passed to the daemon."),
    ("summed", "Contributed segments that the card summed without completing a segment."),
    ("completed", "Contributed segments that completed a segment on the card."),
    ("forced", "Segments that the card finished because the daemon requested it."),
    ("repeated", "Result segments that the card retransmitted to a single member."),
    (
        "requests_skipped",
        "Requests for results that the card discarded: the budget was spent, or too many waited.",
    ),
    ("unanswered", "Requests for results that the card no longer has."),
    ("stalled_cycles", "Clock cycles in which a burst waited for an earlier burst with the same address."),
];

/// Counters of a port and their help texts.
const PORT: [(&str, &str); 14] = [
    ("received_datagrams", "Datagrams received."),
    ("received_bytes", "Bytes of UDP payload received."),
    ("receive_calls", "System calls that received at least one datagram."),
    ("receive_buffer_drops", "Datagrams that the kernel dropped because the receive buffer was full."),
    ("receive_errors", "Receive calls that failed."),
    ("untagged", "Datagrams received without an iSwitch ToS."),
    ("source_mac_not_unicast", "Datagrams dropped because their source MAC address is a group address."),
    (
        "source_address_not_unicast",
        "Datagrams dropped because their source IPv4 address is not a unicast address.",
    ),
    ("source_port_zero", "Datagrams dropped because their source UDP port is zero."),
    ("sent_datagrams", "Datagrams sent."),
    ("sent_bytes", "Bytes of UDP payload sent."),
    ("send_calls", "System calls that sent at least one datagram."),
    ("send_full", "Datagrams lost because the send buffer or the device queue was full."),
    ("send_errors", "Datagrams lost because of any other send error."),
];

/// Renders all metrics as one page. `log_dropped_lines` is the number of log lines dropped since start-up, and `usage`
/// is the resource usage of the process, if it is known.
pub(super) fn render(snapshot: &Snapshot, log_dropped_lines: u64, usage: Option<&Usage>) -> String {
    let mut page = Page::default();
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    page.family("build_info", "Version of the daemon; the value is always 1.");
    page.sample("build_info", &version, 1);
    page.family("uptime_seconds", "Time since the daemon started.");
    page.sample("uptime_seconds", &[], seconds(snapshot.uptime_ms));
    page.family("log_dropped_lines_total", "Log lines dropped because standard error was not read in time.");
    page.sample("log_dropped_lines_total", &[], log_dropped_lines);
    traffic(&mut page, &snapshot.traffic);
    page.family("dropped_datagrams_total", "Datagrams dropped, by reason.");
    for (reason, count) in snapshot.drops.iter() {
        page.sample("dropped_datagrams_total", &[("reason", reason)], count);
    }
    if let Some(card) = &snapshot.card {
        card_counters(&mut page, card);
    }
    ports(&mut page, &snapshot.ports);
    page.family("jobs", "Jobs on the switch.");
    page.sample("jobs", &[], snapshot.jobs.len());
    jobs(&mut page, &snapshot.jobs);
    round_times(&mut page, &snapshot.jobs);
    members(&mut page, &snapshot.jobs);
    limits(&mut page, &snapshot.limits);
    if let Some(usage) = usage {
        process(&mut page, usage);
    }
    page.text
}

/// Metric families in the order of output.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    /// Begins a metric family of counters or gauges.
    fn family(&mut self, name: &str, help: &str) {
        self.head(&format!("iswitch_{name}"), help);
    }

    fn head(&mut self, name: &str, help: &str) {
        self.head_of(if name.ends_with("_total") { "counter" } else { "gauge" }, name, help);
    }

    fn head_of(&mut self, kind: &str, name: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "iswitch_{name}");
        for (at, (label, text)) in labels.iter().enumerate() {
            let begin = if at == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{begin}{label}=\"{}\"", escaped(text));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

/// Escapes the value of a label as the format requires.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

fn traffic(page: &mut Page, counters: &CounterList) {
    for (name, help) in TRAFFIC {
        let metric = format!("{name}_total");
        page.family(&metric, help);
        page.sample(&metric, &[], counters.get(name));
    }
}

fn card_counters(page: &mut Page, card: &CardSnapshot) {
    for (name, help) in CARD {
        let metric = format!("card_{name}_total");
        page.family(&metric, help);
        page.sample(&metric, &[], card.counters.get(name));
    }
    page.family("card_dropped_total", "Contributed segments that the card dropped, by reason.");
    for (reason, count) in card.drops.iter() {
        page.sample("card_dropped_total", &[("reason", reason)], count);
    }
}

fn ports(page: &mut Page, ports: &[PortSnapshot]) {
    page.family("port_receive_buffer_bytes", "Size of the receive buffer that the kernel granted.");
    for port in ports {
        let labels = [("port", port.name.as_str()), ("mode", port.mode.as_str())];
        page.sample("port_receive_buffer_bytes", &labels, port.recv_buffer_bytes);
    }
    for (name, help) in PORT {
        let metric = format!("port_{name}_total");
        page.family(&metric, help);
        for port in ports {
            page.sample(&metric, &[("port", &port.name)], port.counters.get(name));
        }
    }
}

/// Function that returns a value of a job, or `None` if the job has no such value.
type OfJob = fn(&JobStatus) -> Option<f64>;

fn flag(is_set: bool) -> f64 {
    f64::from(u8::from(is_set))
}

fn jobs(page: &mut Page, jobs: &[JobStatus]) {
    page.family(
        "job_info",
        "Aggregation mode, name and owner of the job; the value is always 1. A label whose value is unknown is empty.",
    );
    for job in jobs {
        let (name, owner) = (job.name.as_deref().unwrap_or(""), job.owner.as_deref().unwrap_or(""));
        let labels =
            [("job_id", &*job.job.to_string()), ("mode", job.mode), ("name", name), ("owner", owner)];
        page.sample("job_info", &labels, 1);
    }
    let families: [(&str, &str, OfJob); 15] = [
        ("job_vector_floats", "Number of floats in the gradient vector.", |job| {
            Some(job.gradient_len.into())
        }),
        ("job_parts", "Number of threads that each sum a part of the vector.", |job| Some(job.parts.into())),
        ("job_members", "Number of current members of the job.", |job| Some(job.members.len() as f64)),
        (
            "job_group_members",
            "Number of members that receive results through the group of the job.",
            |job| Some(job.members.iter().filter(|member| member.hears_group).count() as f64),
        ),
        (
            "job_declared_workers",
            "Workers that must join before the first round; 0 if the job waits for none.",
            |job| Some(job.workers.into()),
        ),
        ("job_formed", "Whether all declared workers have joined (1) or not (0).", |job| {
            Some(flag(job.formed))
        }),
        ("job_threshold", "Number of contributions that complete a segment (the threshold H).", |job| {
            Some(job.threshold.into())
        }),
        ("job_halted", "Whether the job is halted (1) or not (0).", |job| Some(flag(job.halted))),
        ("job_round", "Number of the latest round; it wraps at 2^24.", |job| job.round.map(f64::from)),
        ("job_waiting_seconds", "Time that the oldest unfinished round has waited for members.", |job| {
            Some(job.waiting.as_ref().map_or(0.0, |waiting| seconds(waiting.waited_ms)))
        }),
        ("job_awaited_members", "Number of members that the oldest unfinished round waits for.", |job| {
            Some(job.waiting.as_ref().map_or(0.0, |waiting| waiting.members.len() as f64))
        }),
        (
            "job_diverged_digests_total",
            "Weight digests that differed from the digest of another member.",
            |job| Some(job.diverged as f64),
        ),
        ("job_authenticated", "Whether the job has a key (1) or not (0).", |job| {
            Some(flag(job.authenticated))
        }),
        ("job_parent_lost", "Whether the parent switch has stopped answering (1) or not (0).", |job| {
            job.parent.map(|_| flag(job.parent_lost))
        }),
        ("job_parent_silent_seconds", "Time since the last packet from the parent switch.", |job| {
            job.parent_silent_ms.map(seconds)
        }),
    ];
    for (name, help, value) in families {
        page.family(name, help);
        for job in jobs {
            if let Some(value) = value(job) {
                page.sample(name, &[("job_id", &job.job.to_string())], value);
            }
        }
    }
}

fn members(page: &mut Page, jobs: &[JobStatus]) {
    page.family(
        "member_info",
        "Kind, rank and host name of the member; the value is always 1. A label whose value is unknown is empty.",
    );
    for job in jobs {
        for member in &job.members {
            let rank = member.rank.map_or(String::new(), |rank| rank.to_string());
            let labels = [
                ("job_id", &*job.job.to_string()),
                ("member", &*member.id.to_string()),
                ("kind", member.kind),
                ("rank", &rank),
                ("host", member.host.as_deref().unwrap_or("")),
            ];
            page.sample("member_info", &labels, 1);
        }
    }
    page.family("member_silent_seconds", "Time since the last packet from the member.");
    for job in jobs {
        for member in &job.members {
            let labels = [
                ("job_id", &*job.job.to_string()),
                ("member", &*member.id.to_string()),
                ("kind", member.kind),
            ];
            page.sample("member_silent_seconds", &labels, seconds(member.silent_ms));
        }
    }
    page.family("member_contributions_total", "Segments that the member has contributed since it joined.");
    for job in jobs {
        for member in &job.members {
            let labels = [("job_id", &*job.job.to_string()), ("member", &*member.id.to_string())];
            page.sample("member_contributions_total", &labels, member.contributions);
        }
    }
    let help = "Segments of the oldest unfinished round to which other members have contributed but this one has not.";
    page.family("member_missing_segments", help);
    for (job, waiting) in jobs.iter().filter_map(|job| Some((job, job.waiting.as_ref()?))) {
        for member in &waiting.members {
            let labels = [("job_id", &*job.job.to_string()), ("member", &*member.member.to_string())];
            page.sample("member_missing_segments", &labels, member.missing_segments);
        }
    }
}

fn round_times(page: &mut Page, jobs: &[JobStatus]) {
    let help = "Duration of rounds, from the first contribution to the last result.";
    page.head_of("histogram", "iswitch_job_round_seconds", help);
    for job in jobs {
        let (id, times) = (job.job.to_string(), &job.round_times);
        let bounds = ROUND_TIME_BOUNDS_US.iter().map(|us| (*us as f64 / 1e6).to_string());
        let mut count = 0;
        for (bound, of_bucket) in bounds.chain(["+Inf".to_owned()]).zip(&times.buckets) {
            count += of_bucket;
            page.sample("job_round_seconds_bucket", &[("job_id", &id), ("le", &bound)], count);
        }
        page.sample("job_round_seconds_sum", &[("job_id", &id)], times.sum_us as f64 / 1e6);
        page.sample("job_round_seconds_count", &[("job_id", &id)], times.count());
    }
}

fn limits(page: &mut Page, limits: &[LimitStatus]) {
    type Of = fn(&LimitStatus) -> u64;
    let families: [(&str, &str, Of); 2] = [
        (
            "limit",
            "Limit beyond which Joins are refused, as a count or in bytes, depending on the limit.",
            |limit| limit.value,
        ),
        (
            "limit_used",
            "Current usage of a limit. For a limit per job or address, the highest usage of any job or address.",
            |limit| limit.used,
        ),
    ];
    for (name, help, value) in families {
        page.family(name, help);
        for limit in limits {
            page.sample(name, &[("limit", limit.limit)], value(limit));
        }
    }
}

/// Metrics that the client libraries of Prometheus define for each process.
fn process(page: &mut Page, usage: &Usage) {
    let families = [
        ("process_cpu_seconds_total", "User and system CPU time.", Some(usage.cpu_s)),
        ("process_resident_memory_bytes", "Resident memory.", Some(usage.resident_bytes as f64)),
        ("process_virtual_memory_bytes", "Size of the address space.", Some(usage.virtual_bytes as f64)),
        (
            "process_start_time_seconds",
            "Start time of the process, in seconds since the Unix epoch.",
            Some(usage.start_s),
        ),
        ("process_threads", "Number of threads.", Some(usage.threads as f64)),
        ("process_open_fds", "Number of open file descriptors.", Some(usage.open_descriptors as f64)),
        (
            "process_max_fds",
            "Maximum number of open file descriptors.",
            usage.max_descriptors.map(|number| number as f64),
        ),
    ];
    for (name, help, value) in families {
        if let Some(value) = value {
            page.head(name, help);
            let _ = writeln!(page.text, "{name} {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_card::CardCounters;
    use iswitch_runtime::port::PortCounters;
    use iswitch_switch::{AwaitedStatus, Counters, MemberStatus, RoundTimes, WaitingStatus};

    /// Returns the times of a round of 200 us, one of 80 ms and one of 20 s.
    fn times() -> RoundTimes {
        let mut times = RoundTimes::default();
        times.sum_us = 20_080_200;
        [1, 9, 16].into_iter().for_each(|bucket| times.buckets[bucket] = 1);
        times
    }

    fn usage() -> Usage {
        Usage { cpu_s: 1.5, resident_bytes: 4096, max_descriptors: Some(1024), ..Usage::default() }
    }

    fn page() -> String {
        render(&snapshot(), 3, Some(&usage()))
    }

    fn job() -> JobStatus {
        let address = "10.9.0.1:5000".parse().unwrap();
        JobStatus {
            job: 7,
            name: Some("ppo \"a\\".to_owned()),
            owner: None,
            gradient_len: 10_119,
            part: false,
            parts: 1,
            segment_floats: 366,
            contributions: "f32",
            results: "f32",
            boot: 1,
            mode: "synchronous",
            workers: 2,
            formed: true,
            authenticated: false,
            tagged: false,
            threshold: 2,
            threshold_pinned: false,
            halted: false,
            on_card: false,
            group: None,
            round: Some(12),
            parent: None,
            parent_silent_ms: None,
            parent_lost: false,
            parent_refusal: None,
            round_times: times(),
            diverged: 0,
            members: vec![MemberStatus {
                id: 3,
                rank: Some(2),
                host: Some("gpu07".to_owned()),
                instance: 1,
                address,
                kind: "worker",
                hears_group: true,
                start_round: 0,
                silent_ms: 1500,
                contributions: 28,
                last_round: Some(11),
                idle_ms: Some(260),
            }],
            waiting: Some(WaitingStatus {
                round: 12,
                waited_ms: 250,
                segments: 28,
                members: vec![AwaitedStatus {
                    member: 3,
                    rank: Some(2),
                    host: Some("gpu07".to_owned()),
                    address,
                    missing_segments: 17,
                }],
            }),
        }
    }

    fn snapshot() -> Snapshot {
        let mut counters = Counters::default();
        counters.results = 5;
        let ports = PortSnapshot {
            name: "odd \"name\"\\".to_owned(),
            mode: "udp".to_owned(),
            recv_buffer_bytes: 4096,
            counters: PortCounters { sent_bytes: 9, ..PortCounters::default() }.iter().collect(),
        };
        let card = CardSnapshot {
            counters: CardCounters::default().iter().map(|(name, _)| (name, 6)).collect(),
            drops: [("late", 8)].into_iter().collect(),
        };
        Snapshot {
            boot: 1,
            uptime_ms: 61_500,
            traffic: counters.traffic().collect(),
            drops: counters.dropped_by_reason().map(|(reason, count)| (reason.name(), count)).collect(),
            card: Some(card),
            ports: vec![ports],
            jobs: vec![job()],
            limits: vec![LimitStatus { limit: "jobs", used: 1, value: 64, option: None }],
        }
    }

    #[test]
    fn exported_values_match_the_snapshot() {
        let page = page();
        for line in [
            "iswitch_uptime_seconds 61.5",
            "iswitch_log_dropped_lines_total 3",
            "iswitch_results_total 5",
            "iswitch_dropped_datagrams_total{reason=\"unknown_member\"} 0",
            "iswitch_card_summed_total 6",
            "iswitch_card_dropped_total{reason=\"late\"} 8",
            "iswitch_port_sent_bytes_total{port=\"odd \\\"name\\\"\\\\\"} 9",
            "iswitch_job_info{job_id=\"7\",mode=\"synchronous\",name=\"ppo \\\"a\\\\\",owner=\"\"} 1",
            "iswitch_member_info{job_id=\"7\",member=\"3\",kind=\"worker\",rank=\"2\",host=\"gpu07\"} 1",
            "iswitch_job_round_seconds_bucket{job_id=\"7\",le=\"0.0001\"} 0",
            "iswitch_job_round_seconds_bucket{job_id=\"7\",le=\"0.00025\"} 1",
            "iswitch_job_round_seconds_bucket{job_id=\"7\",le=\"0.1\"} 2",
            "iswitch_job_round_seconds_bucket{job_id=\"7\",le=\"10\"} 2",
            "iswitch_job_round_seconds_bucket{job_id=\"7\",le=\"+Inf\"} 3",
            "iswitch_job_round_seconds_sum{job_id=\"7\"} 20.0802",
            "iswitch_job_round_seconds_count{job_id=\"7\"} 3",
            "iswitch_limit{limit=\"jobs\"} 64",
            "iswitch_limit_used{limit=\"jobs\"} 1",
            "process_cpu_seconds_total 1.5",
            "process_resident_memory_bytes 4096",
            "iswitch_job_round{job_id=\"7\"} 12",
            "iswitch_job_group_members{job_id=\"7\"} 1",
            "iswitch_job_waiting_seconds{job_id=\"7\"} 0.25",
            "iswitch_member_silent_seconds{job_id=\"7\",member=\"3\",kind=\"worker\"} 1.5",
            "iswitch_member_missing_segments{job_id=\"7\",member=\"3\"} 17",
        ] {
            assert!(page.lines().any(|other| other == line), "{line} is not in\n{page}");
        }
        // A job without a parent has no sample of this metric.
        assert!(!page.contains("iswitch_job_parent_silent_seconds{"));
    }

    #[test]
    fn every_counter_is_exported() {
        let snapshot = snapshot();
        for (known, all) in [
            (TRAFFIC.map(|(name, _)| name).as_slice(), &snapshot.traffic),
            (PORT.map(|(name, _)| name).as_slice(), &snapshot.ports[0].counters),
        ] {
            assert_eq!(known, all.iter().map(|(name, _)| name).collect::<Vec<_>>());
        }
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        // The page has the counters of a card in another order.
        let of_card = CardCounters::default().iter().map(|(name, _)| name).collect();
        assert_eq!(sorted(CARD.map(|(name, _)| name).to_vec()), sorted(of_card));
    }

    #[test]
    fn dashboard_and_rules_use_only_existing_metrics() {
        let page = page();
        let exists = |name: &str| page.contains(&format!("# HELP {name} "));
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        for (text, least) in [
            (include_str!("../../../../packaging/grafana/iswitch.json"), 30),
            (include_str!("../../../../packaging/prometheus/iswitch.rules.yml"), 20),
        ] {
            // The names of rule groups also begin with `iswitch_`, but are not metrics.
            let text = text.replace("name: iswitch_", "");
            let starts = ["iswitch_", "process_"].into_iter().flat_map(|prefix| text.match_indices(prefix));
            let mut shown = 0;
            for (at, _) in starts {
                let name: String = text[at..].chars().take_while(|c| is_name(*c)).collect();
                let mut bases = ["_bucket", "_count"].iter().filter_map(|suffix| name.strip_suffix(suffix));
                assert!(exists(&name) || bases.any(exists), "{name}");
                shown += 1;
            }
            assert!(shown >= least, "{shown}");
        }
    }

    #[test]
    fn the_reference_lists_each_metric() {
        let reference = include_str!("../../../../docs/metrics.md");
        let rows = reference.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let mut listed: Vec<_> = rows.map(|(name, _)| name).collect();
        let page = page();
        let heads = page.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
        let mut exported: Vec<_> = heads.map(|(name, _)| name).collect();
        listed.sort_unstable();
        exported.sort_unstable();
        assert_eq!(listed, exported);
    }

    /// Performs the checks of `promtool check metrics`, so that the test does not need that tool.
    #[test]
    fn metric_families_are_complete_and_follow_the_conventions() {
        let page = page();
        let mut seen = Vec::new();
        let mut family = ("", "");
        for line in page.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, text) = help.split_once(' ').expect("a HELP line has a name and a text");
                assert!(!seen.contains(&name), "{name} is described twice");
                assert!(text.ends_with('.'), "{text}");
                seen.push(name);
                continue;
            }
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                family = kind.split_once(' ').expect("a TYPE line has a name and a kind");
                assert_eq!(seen.last(), Some(&family.0));
                assert_eq!(family.1 == "counter", family.0.ends_with("_total"), "{}", family.0);
                continue;
            }
            let name = line.split(['{', ' ']).next().expect("a name");
            let suffixes = if family.1 == "histogram" { &["_bucket", "_sum", "_count"][..] } else { &[""] };
            assert!(suffixes.iter().any(|suffix| name.strip_suffix(suffix) == Some(family.0)), "{line}");
            let value = line.rsplit(' ').next().expect("a value");
            assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        }
        assert!(seen.iter().all(|name| name.chars().all(|it| it.is_ascii_lowercase() || it == '_')));
    }
}
