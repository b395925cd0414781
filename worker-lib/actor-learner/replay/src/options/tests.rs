use super::*;

const FILE: &str = r#"
listen = ["127.0.0.1:7800", "unix:/run/replay.sock"]
memory_max = "4GiB"
item_max = 65536
durability = "sync"
data_dir = "/var/lib/replay"

[[table]]
name = "replay"
capacity = 1000000
sampler = "prioritized:0.6"
min_size_to_sample = 1000
samples_per_insert = 8.0
error_buffer = 400.0

[[table]]
name = "rollouts"
kind = "queue"
capacity = 64
capacity_bytes = "512MiB"
"#;

#[test]
fn a_file_configures_a_shard() {
    let options = ShardOptions::parse("file", FILE).unwrap();
    assert_eq!(options.listen.len(), 2);
    let config = options.config().unwrap();
    assert_eq!((config.memory_max_bytes, config.item_max_bytes), (4 << 30, 65536));
    assert_eq!(config.durability, Durability::Sync);
    let [replay, rollouts] = &config.tables[..] else { panic!("two tables") };
    assert_eq!(replay.sampler, Selector::Prioritized { exponent: 0.6 });
    assert_eq!((replay.limiter.min_diff, replay.limiter.max_diff), (7600.0, 8400.0));
    assert_eq!(*rollouts, TableConfig::queue("rollouts", 64, 512 << 20));
}

#[test]
fn command_line_and_file_use_the_same_keys() {
    let words = "name=replay,capacity=1000000,sampler=prioritized:0.6,min_size_to_sample=1000,samples_per_insert=8.0,\
                 error_buffer=400.0";
    let file = ShardOptions::parse("file", FILE).unwrap();
    assert_eq!(TableOptions::parse(words).unwrap(), file.tables[0]);
    let line = ShardOptions {
        tables: vec![TableOptions::parse("name=a,capacity=5").unwrap()],
        ..ShardOptions::default()
    };
    let both = line.or(file.clone());
    assert_eq!((both.tables.len(), both.listen), (1, file.listen));
}

#[test]
fn errors_name_invalid_table_options() {
    let wrong = [
        ("name=a", "missing field `capacity`"),
        ("name=a,capacity=5,size=3", "unknown field `size`"),
        ("name=a,capacity=x", "invalid type: string \"x\", expected u64"),
        ("name=a,capacity=5,sampler=best", "selector is \"best\", expected uniform"),
        ("name=a,capacity=5,capacity_bytes=3MB", "size is \"3MB\", expected a number of bytes"),
    ];
    for (words, want) in wrong {
        let error = TableOptions::parse(words).unwrap_err().to_string();
        assert!(error.starts_with(&format!("--table {words}: ")) && error.contains(want), "{error}");
    }
    let narrow = TableOptions::parse("name=a,capacity=5,samples_per_insert=4,error_buffer=1").unwrap();
    let error =
        ShardOptions { tables: vec![narrow], ..ShardOptions::default() }.config().unwrap_err().to_string();
    assert!(
        error.starts_with(
            "table \"a\": error_buffer of the rate limiter is a range of width 2, expected a width of at least 8"
        ),
        "{error}"
    );
    let error = ShardOptions::parse("r.toml", "memory = 5").unwrap_err().to_string();
    assert!(error.starts_with("r.toml: ") && error.contains("unknown field `memory`"), "{error}");
}

#[test]
fn the_default_durability_depends_on_the_data_directory() {
    let table = || vec![TableOptions::parse("name=a,capacity=5").unwrap()];
    let options = ShardOptions { tables: table(), data_dir: Some("x".into()), ..ShardOptions::default() };
    assert_eq!(options.config().unwrap().durability, Durability::Write);
    let options = ShardOptions { tables: table(), ..ShardOptions::default() };
    assert_eq!(options.config().unwrap().durability, Durability::None);
}
