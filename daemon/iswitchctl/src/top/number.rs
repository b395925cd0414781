//! Formatting of numbers for narrow columns.

/// Formats a number in at most five characters: `0`, `7.5`, `512`, `10.1k`, `3.4M`.
pub(super) fn short(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    // Numbers of up to four digits are not scaled, and a number that rounds to 1000 of a unit uses the next unit.
    let fitting = UNITS.iter().find(|(unit, _)| value >= unit * if *unit == 1e3 { 9.9995 } else { 0.9995 });
    match fitting {
        Some((unit, name)) if value < 99.95 * unit => format!("{:.1}{name}", value / unit),
        Some((unit, name)) => format!("{:.0}{name}", value / unit),
        None if value == 0.0 => "0".to_owned(),
        None if value < 99.95 => format!("{value:.1}"),
        None => format!("{value:.0}"),
    }
}

/// Formats a time span: `0.4 s`, `12 s`, `5:07`, `1:01:05`, `12 d 3:00:00`.
pub(super) fn time(ms: u64) -> String {
    let seconds = ms / 1000;
    let (minutes, hours, days) = (seconds / 60 % 60, seconds / 3600 % 24, seconds / 86_400);
    match seconds {
        0..10 => format!("{:.1} s", ms as f64 / 1000.0),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes}:{:02}", seconds % 60),
        3600..86_400 => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
        _ => format!("{days} d {hours}:{minutes:02}:{:02}", seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_abbreviated() {
        let cases = [
            (0.0, "0"),
            (0.04, "0.0"),
            (7.46, "7.5"),
            (99.96, "100"),
            (512.4, "512"),
            (9999.0, "9999"),
            (10_119.0, "10.1k"),
            (99_949.0, "99.9k"),
            (123_456.0, "123k"),
            (999_600.0, "1.0M"),
            (3_400_000.0, "3.4M"),
            (1.2e9, "1.2G"),
            (5.6e13, "56.0T"),
        ];
        for (value, expected) in cases {
            assert_eq!(short(value), expected, "{value}");
            assert!(short(value).len() <= 5, "{value}");
        }
    }

    #[test]
    fn durations_are_formatted_like_clock_times() {
        let cases = [
            (400, "0.4 s"),
            (12_345, "12 s"),
            (307_000, "5:07"),
            (3_665_000, "1:01:05"),
            (86_400_000 * 12 + 3_600_000 * 3, "12 d 3:00:00"),
        ];
        for (ms, expected) in cases {
            assert_eq!(time(ms), expected);
        }
    }
}
