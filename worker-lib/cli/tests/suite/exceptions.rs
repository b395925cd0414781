//! Tests of `iswitch train` with an environment that raises an exception.
use std::path::PathBuf;
use std::process::Command;

/// Environment whose code raises an exception at the fifth step.
const MODULE: &str = r#"
import gymnasium, numpy

class Wrong(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), "float32")
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return numpy.zeros(2, "float32"), {}

    def step(self, action):
        self.steps += 1
        if self.steps == 5:
            raise KeyError("velocity")
        return numpy.zeros(2, "float32"), 1.0, False, False, {}

gymnasium.register("Wrong-v0", Wrong)
"#;

/// Returns the path of the Python interpreter that `iswitch` uses, or `None` if Gymnasium is not installed for it.
fn python() -> Option<PathBuf> {
    let python = PathBuf::from(std::env::var_os("ISWITCH_PYTHON").unwrap_or_else(|| "python3".into()));
    let output = Command::new(&python).args(["-c", "import gymnasium"]).output();
    if output.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let line = "SKIPPED exceptions of environments: Gymnasium is not installed";
    assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
    eprintln!("{line}");
    None
}

#[test]
fn an_exception_of_an_environment_is_reported_once() {
    let Some(python) = python() else { return };
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("wrong.py"), MODULE).unwrap();
    for options in [&["--workers", "1"][..], &["--workers", "3"], &["--workers", "3", "--async"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_iswitch"))
            .args(["train", "a2c", "--env", "wrong:Wrong-v0", "--quiet", "--force", "--out"])
            .arg(directory.path().join("run"))
            .args(options)
            .env("ISWITCH_PYTHON", &python)
            .env("PYTHONPATH", directory.path())
            .env("ISWITCH_LOG", "error")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{options:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{options:?}: {stderr}");
        assert!(stderr.contains("the environment wrong:Wrong-v0 raised KeyError: 'velocity' ("), "{stderr}");
        assert!(stderr.contains("wrong.py, line 16, in step)"), "{stderr}");
    }
}
