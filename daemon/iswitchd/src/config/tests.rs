//! Tests of the configuration.

use std::io::Write;

use iswitch_protocol::key_file;

use super::*;

/// Resolves a command line. The path `FILE` stands for a file with the given text.
fn resolve(arguments: &[&str], file: &str) -> Result<Config, String> {
    let mut temporary = tempfile::NamedTempFile::new().unwrap();
    temporary.write_all(file.as_bytes()).unwrap();
    let path = temporary.path().to_str().unwrap();
    let arguments = arguments.iter().map(|argument| if *argument == "FILE" { path } else { argument });
    let cli = Cli::try_parse_from(std::iter::once("iswitchd").chain(arguments));
    let config = cli.map_err(|error| error.to_string())?.resolve();
    config.map_err(|error| error.to_string().replace(path, "FILE"))
}

fn file_error(text: &str) -> String {
    resolve(&["--config", "FILE"], text).unwrap_err()
}

#[test]
fn command_line_wins_over_file() {
    let file = "udp = ['127.0.0.1:1']\nlease_ms = 500\nmemory_mib = 3\noffload = false\ndata_tos = 0x2C\n";
    let config = resolve(&["--config", "FILE", "--lease-ms", "900", "--control-tos", "0x2c"], file);
    assert!(config.unwrap_err().contains("the same as control_tos"));
    let config = resolve(&["--config", "FILE", "--lease-ms", "900", "--data-tos", "32"], file).unwrap();
    assert_eq!(config.udp, ["127.0.0.1:1".parse().unwrap()]);
    assert_eq!(config.switch.lease_ms, 900);
    assert_eq!(config.switch.memory_bytes, 3 << 20);
    assert_eq!(config.classifier.data_tos, 32);
    assert!(!config.offload && config.ingress_rule);
}

#[test]
fn sums_are_ordered_on_request() {
    for (arguments, file, ordered) in [
        (&["--config", "FILE"][..], "", false),
        (&["--config", "FILE"], "ordered = true", true),
        (&["--config", "FILE", "--ordered"], "ordered = false", true),
    ] {
        let arguments = [arguments, &["--udp", "127.0.0.1:0"]].concat();
        assert_eq!(resolve(&arguments, file).unwrap().switch.ordered, ordered, "{arguments:?} {file}");
    }
}

#[test]
fn groups_are_used_on_demand() {
    for (arguments, file, group_delivery) in [
        (&["--config", "FILE"][..], "", false),
        (&["--config", "FILE"], "group_delivery = 'auto'", true),
        (&["--config", "FILE", "--group-delivery", "off"], "group_delivery = 'auto'", false),
    ] {
        let arguments = [arguments, &["--udp", "127.0.0.1:0"]].concat();
        let config = resolve(&arguments, file).unwrap();
        assert_eq!(config.switch.group_delivery, group_delivery, "{arguments:?} {file}");
    }
}

#[test]
fn lists_on_the_command_line_replace_lists_in_the_file() {
    let config = resolve(&["--config", "FILE", "--port", "b", "--port", "c"], "port = ['a']").unwrap();
    let names: Vec<_> = config.interfaces.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["b", "c"]);
}

#[test]
fn at_least_one_port_must_be_configured() {
    let expected = "no port is configured; set at least one --udp ADDR:PORT or --port IFACE";
    assert_eq!(resolve(&[], "").unwrap_err(), expected);
    assert_eq!(file_error("lease_ms = 1000"), expected);
}

#[test]
fn errors_name_values_out_of_range() {
    let cases = [
        ("lease_ms = 5", "FILE: lease_ms is 5, expected 100 to 3600000"),
        ("slow_ms = 99", "FILE: slow_ms is 99, expected 100 to 3600000"),
        ("memory_mib = 0", "FILE: memory_mib is 0, expected 1 to 1048576"),
        ("job_memory_mib = 0", "FILE: job_memory_mib is 0, expected 1 to 1048576"),
        ("max_jobs_per_source = 65", "FILE: max_jobs_per_source is 65, expected 1 to 64"),
        ("join_rate = 0", "FILE: join_rate is 0, expected 1 to 10000000"),
        ("total_join_rate = 0", "FILE: total_join_rate is 0, expected 1 to 10000000"),
        ("recv_buffer_bytes = 1", "FILE: recv_buffer_bytes is 1, expected 4096 to 1073741824"),
        ("spin_us = 2000000", "FILE: spin_us is 2000000, expected 0 to 1000000"),
        ("uplink_port = 0", "FILE: uplink_port is 0, expected 1 to 65535"),
        ("uplink_jobs = 65", "FILE: uplink_jobs is 65, expected 1 to 64"),
        ("udp_port = 0", "FILE: udp_port is 0, expected 1 to 65535"),
        ("control_tos = 0x0d", "FILE: control_tos is 0x0d, expected a multiple of 4 from 0x04 to 0xfc"),
        ("data_tos = 0", "FILE: data_tos is 0x00, expected a multiple of 4 from 0x04 to 0xfc"),
        (
            "port = ['a/b']",
            "FILE: port is \"a/b\", expected an interface name, optionally with the prefix xdp:",
        ),
        ("port = ['']", "FILE: port is \"\", expected an interface name, optionally with the prefix xdp:"),
        (
            "port = ['xdp:a,fast']",
            "FILE: port is \"xdp:a,fast\", expected modes after the comma: driver or generic, and zerocopy or copy",
        ),
        ("port = ['a', 'xdp:a']", "FILE: port is \"a\" (given twice), expected each interface at most once"),
        ("port = ['a', 'a']", "FILE: port is \"a\" (given twice), expected each interface at most once"),
    ];
    for (text, expected) in cases {
        assert_eq!(file_error(text), expected);
    }
    let error = resolve(&["--udp", "127.0.0.1:0", "--lease-ms", "5"], "").unwrap_err();
    assert_eq!(error, "--lease-ms is 5, expected 100 to 3600000");
    let error = file_error("udp = ['127.0.0.1:1']\nmemory_mib = 4\njob_memory_mib = 5");
    assert_eq!(error, "job_memory_mib is 5, expected at most 4 (memory_mib)");
}

#[test]
fn errors_name_unknown_keys_and_wrong_types() {
    let cases = [
        ("lease = 5", &["FILE: ", "line 1", "unknown field `lease`"][..]),
        ("\nlease_ms = 'long'", &["line 2", "lease_ms = 'long'", "expected u32"]),
        ("udp_port = 70000", &["udp_port = 70000", "expected u16"]),
        ("udp = ['localhost:1']", &["udp = ['localhost:1']", "invalid IPv4 socket address syntax"]),
        ("non_finite = 'maybe'", &["unknown variant `maybe`", "`refuse` or `sum`"]),
        ("offload = 1", &["offload = 1", "expected a boolean"]),
        ("[switch]", &["unknown field `switch`"]),
    ];
    for (text, parts) in cases {
        let error = file_error(text);
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in {error}");
        }
    }
    let error = resolve(&["--udp", "localhost:1"], "").unwrap_err();
    assert!(error.contains("'localhost:1' for '--udp <ADDR:PORT>'"), "{error}");
    let error = resolve(&["--data-tos", "0x1ff"], "").unwrap_err();
    assert!(error.contains("expected a number from 0 to 255"), "{error}");
}

#[test]
fn keys_are_read_and_never_shown() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("job.key");
    key_file::create(&path).unwrap();
    let (all, five) = (path.display().to_string(), format!("5={}", path.display()));
    let serve = ["--udp", "127.0.0.1:0", "--key-file"];
    let config = resolve(&[&serve[..], &[&all, "--key-file", &five]].concat(), "").unwrap();
    let text = format!("{config:?} {:?}", config.keys([0; iswitch_switch::SECRET_LEN_BYTES]));
    assert!(text.contains("[(None, Key), (Some(5), Key)]"), "{text}");
    assert!(text.contains("Keys { default: Some(Key), jobs: [5], .. }"), "{text}");
    let twice = resolve(&[&serve[..], &[&five, "--key-file", &five]].concat(), "").unwrap_err();
    assert_eq!(twice, "--key-file is given twice for job 5, expected one key file");
    let file = format!("udp = ['127.0.0.1:0']\nkey_files = ['five={all}']");
    let text = file_error(&file);
    assert!(text.contains("job is \"five\", expected a number from 0 to 4294967295"), "{text}");
    set_permissions(&path, Permissions::from_mode(0o604)).unwrap();
    let open = resolve(&[&serve[..], &[&all]].concat(), "").unwrap_err();
    assert!(open.contains("job.key: the file has mode 0604, expected no access for others"), "{open}");
}

#[test]
fn an_equals_sign_after_a_slash_is_part_of_the_path_of_a_key_file() {
    let parse = |text: &str| text.parse::<KeyFile>().map(|file| (file.job, file.path));
    assert_eq!(parse("/keys/a=b.key"), Ok((None, "/keys/a=b.key".into())));
    assert_eq!(parse("./a=b.key"), Ok((None, "./a=b.key".into())));
    assert_eq!(parse("7=/keys/a=b.key"), Ok((Some(7), "/keys/a=b.key".into())));
    let error = parse("a=b.key").unwrap_err();
    assert!(error.starts_with("job is \"a\", expected a number"), "{error}");
}

#[test]
fn the_error_names_a_missing_config_file() {
    let error = resolve(&["--config", "/nonexistent/iswitchd.toml"], "").unwrap_err();
    assert!(error.starts_with("cannot read /nonexistent/iswitchd.toml: No such file"), "{error}");
}

#[test]
fn example_file_is_valid_and_names_every_key() {
    let text = include_str!("../../dist/iswitchd.toml");
    let config = resolve(&["--config", "FILE"], text).unwrap();
    assert_eq!(config.switch.lease_ms, DEFAULT_LEASE_MS);
    assert_eq!(config.switch.slow_ms, DEFAULT_SLOW_MS);
    // Without the prefix "#= ", each of these lines is a setting with its default value or an example value.
    let all: String = text.lines().map(|line| line.strip_prefix("#= ").unwrap_or(line)).fold(
        String::new(),
        |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        },
    );
    let config = resolve(&["--config", "FILE"], &all).unwrap();
    assert_eq!(config.classifier, Classifier::default());
    assert_eq!(config.buffer_bytes, DEFAULT_RECV_BUFFER_BYTES);
    assert!(!config.switch.ordered);
    let (limits, default) = (config.switch, iswitch_switch::Config::default());
    assert_eq!(limits.job_memory_bytes, limits.memory_bytes);
    assert_eq!(limits.max_jobs_per_source, default.max_jobs_per_source);
    assert_eq!(limits.strangers.source_rate, default.strangers.source_rate);
    assert_eq!(limits.strangers.total_rate, default.strangers.total_rate);
    for key in [
        "key_files",
        "parent",
        "uplink_port",
        "uplink_jobs",
        "udp_port",
        "slow_ms",
        "ordered",
        "group_delivery",
        "join_rate",
        "job_memory_mib",
        "spin_us",
        "control_socket",
        "flight_recorder",
        "metrics",
        "log_format",
        "log_level",
        "ingress_rule",
        "sandbox",
        "user",
    ] {
        assert!(all.contains(&format!("\n{key} = ")), "{key}");
    }
    // A card excludes other settings of the file.
    assert!(all.contains("\n# card = \"sim:"));
}

#[test]
fn uplink_ports_exist_only_if_parents_are_configured() {
    let config = resolve(&["--udp", "127.0.0.1:0"], "").unwrap();
    assert_eq!(config.uplink_ports, (0, 0));
    let parents = ["--udp", "127.0.0.1:0", "--parent", "10.0.0.2:7711", "--parent", "10.0.0.1:7711"];
    let config = resolve(&parents, "").unwrap();
    assert_eq!((config.parents.len(), config.uplink_ports), (2, (7721, 8)));
    let error = resolve(&[&parents[..], &["--uplink-port", "65530"]].concat(), "").unwrap_err();
    assert_eq!(
        error,
        "uplink_port is 65530, expected at most 65528, because the switch needs 8 consecutive ports (uplink_jobs)"
    );
}

#[test]
fn command_line_is_consistent() {
    use clap::CommandFactory;
    Cli::command().debug_assert();
}

#[test]
fn the_default_number_of_threads_depends_on_cores_and_ports() {
    let threads = |arguments: &[&str], cores| {
        let arguments = std::iter::once("iswitchd").chain(arguments.iter().copied());
        let settings = Cli::try_parse_from(arguments).unwrap().settings;
        let interfaces = settings.ports(|value, expected| bad("port", value, expected)).unwrap();
        settings.threads(&interfaces, cores).map(|threads| (threads.count, threads.is_chosen))
    };
    let udp = ["--udp", "10.9.0.254:7711"];
    let two_ports = ["--port", "eth1", "--port", "eth2"];
    // Workers on the same machine need the cores.
    for arguments in [&udp[..], &two_ports] {
        assert_eq!(threads(arguments, 2).unwrap(), (1, false));
    }
    assert_eq!(threads(&udp, 16).unwrap(), (1, false));
    assert_eq!(threads(&two_ports, 16).unwrap(), (2, false));
    assert_eq!(threads(&two_ports, 256).unwrap(), (2, false));
    assert_eq!(threads(&["--udp", "10.9.0.254:65535"], 64).unwrap(), (1, false));
    assert_eq!(threads(&["--port", "xdp:eth1", "--udp", "10.9.0.254:7711"], 64).unwrap(), (1, false));
    assert_eq!(threads(&["--udp", "10.9.0.254:7711", "--parent", "10.9.1.1:7711"], 64).unwrap(), (1, false));
    assert_eq!(threads(&["--udp", "10.9.0.254:7711", "--threads", "3"], 1).unwrap(), (3, true));
}

#[test]
fn errors_of_threads_name_the_value_and_the_limit() {
    let error = |arguments: &[&str]| resolve(arguments, "").unwrap_err();
    assert_eq!(error(&["--udp", "127.0.0.1:1", "--threads", "17"]), "--threads is 17, expected 1 to 16");
    assert_eq!(
        error(&["--port", "xdp:eth1", "--threads", "2"]),
        "threads is 2, expected 1, because a port has the prefix xdp:"
    );
    assert_eq!(
        error(&["--udp", "127.0.0.1:65534", "--threads", "4"]),
        "threads is 4, expected at most 2: each thread uses the next consecutive UDP port, up to 65535"
    );
    assert_eq!(
        resolve(&["--config", "FILE"], "udp = ['127.0.0.1:1']\nthreads = 2").unwrap().threads.count,
        2
    );
}

#[test]
fn settings_that_a_card_cannot_serve_are_refused_by_name() {
    let config = resolve(&["--port", "a", "--card", "sim:/tmp/card,slots256"], "").unwrap();
    assert_eq!(
        config.switch.card.map(|card| (card.members, card.segment_floats, card.window)),
        Some((8, 366, 255))
    );
    assert!(config.switch.group_delivery && config.threads.count == 1);
    let off = resolve(&["--port", "a", "--card", "sim:/tmp/card", "--group-delivery", "off"], "").unwrap();
    assert!(!off.switch.group_delivery);
    for (arguments, expected) in [
        (
            &["--card", "pci:1"][..],
            "--card is \"pci:1\", expected sim:PROGRAM, optionally followed by ,slots256",
        ),
        (&["--udp", "127.0.0.1:1"], "udp is 127.0.0.1:1, expected no address, because the switch has a card"),
        (&["--threads", "2"], "threads is 2, expected 1, because"),
        (&["--ordered"], "ordered is true, expected false, because"),
        (&["--port", "xdp:b"], "port is \"xdp:b\", expected an interface without the prefix xdp:, because"),
        (
            &["--port", "b", "--port", "c", "--port", "d", "--port", "e"],
            "number of --port is 5, expected at most 4",
        ),
    ] {
        let card = if arguments[0] == "--card" { &[][..] } else { &["--card", "sim:/tmp/card"] };
        let error = resolve(&[&["--port", "a"], card, arguments].concat(), "").unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}
