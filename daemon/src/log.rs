//! The log, on standard error.

use std::io::IsTerminal;

use tracing_subscriber::filter::LevelFilter;

use crate::config::{LogFormat, LogLevel};

/// Logs from now on.
pub fn start(format: LogFormat, level: LogLevel) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let terminal = std::io::stderr().is_terminal();
    let log =
        tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(terminal);
    match format {
        LogFormat::Text => log.with_target(false).init(),
        LogFormat::Json => log.json().init(),
    }
}
