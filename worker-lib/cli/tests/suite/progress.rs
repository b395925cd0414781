//! Tests of the progress bar of `iswitch train` on a terminal.
use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

const ROWS: u16 = 12;

/// Starts a long training run whose standard error is a pseudo-terminal. Returns the process and the other end of the
/// pseudo-terminal.
fn train(columns: u16, options: &[&str]) -> (Child, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let terminal = openpt(flags).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_iswitch"))
        .args(["train", "a2c", "--env", "CartPole-v1", "--steps", "200000000", "--json"])
        .args(options)
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(ioctl_tiocgptpeer(&terminal, flags).unwrap())
        .spawn()
        .unwrap();
    (child, File::from(terminal))
}

/// Interrupts a training run once its progress bar is shown, and returns everything that the run has written to the
/// terminal.
fn interrupted(columns: u16, options: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let (mut child, mut terminal) = train(columns, &[options, &["--out", out]].concat());
    let (mut written, mut is_interrupted) = (Vec::new(), false);
    let mut buffer = [0; 4096];
    // Reading fails once no process has the terminal open.
    while let Ok(len @ 1..) = terminal.read(&mut buffer) {
        written.extend_from_slice(&buffer[..len]);
        if !is_interrupted && String::from_utf8_lossy(&written).matches("/200000000 ste").count() > 5 {
            let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
            is_interrupted = kill.unwrap().success();
        }
    }
    assert_eq!(child.wait().unwrap().signal(), Some(2), "a shell reports the exit status 130");
    String::from_utf8(written).unwrap()
}

#[test]
fn the_bar_fits_the_terminal_and_ends_with_the_interrupt() {
    for (columns, options) in
        [(80, &["--workers", "1"][..]), (100, &["--workers", "2"]), (40, &["--workers", "1"])]
    {
        let written = interrupted(columns, options);
        let mut terminal = vt100::Parser::new(ROWS, columns, 100);
        terminal.process(written.as_bytes());
        let rows: Vec<_> = terminal.screen().rows(0, columns).collect();
        let text = rows.join("\n");
        assert_eq!(rows.iter().filter(|row| row.contains("/200000000 ste")).count(), 1, "{columns}: {text}");
        assert!(rows[0].contains("/200000000 ste"), "{columns}: {text}");
        // The message may take several rows, which are not separated by line feeds.
        let message = rows[1..].concat();
        assert!(message.starts_with("stopped after ") && message.contains(" of 200000000 steps"), "{text}");
        assert!(message.contains("iswitch train --resume --out ") && !message.contains("return"), "{text}");
        let first = written.split(['\r', '\n']).find(|line| line.contains('░')).unwrap();
        assert!(
            first.contains("/200000000 ste"),
            "{columns}: the bar is first drawn without text: {first:?}"
        );
    }
}
