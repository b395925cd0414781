//! Findings of `iswitchctl doctor`.

use std::fmt::Write;

use serde::Serialize;

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Ok,
    /// The set-up works, but not as well as it could.
    Warning,
    Failed,
    /// The check could not be run.
    Skipped,
}

/// Result of one check.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    check: &'static str,
    outcome: Outcome,
    detail: String,
    /// Suggested fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

/// Results of all checks, in the order in which the checks ran.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn ok(&mut self, check: &'static str, detail: impl Into<String>) {
        self.push(check, Outcome::Ok, detail.into(), None);
    }

    pub(super) fn skipped(&mut self, check: &'static str, detail: impl Into<String>) {
        self.push(check, Outcome::Skipped, detail.into(), None);
    }

    pub(super) fn warning(&mut self, check: &'static str, detail: impl Into<String>, fix: impl Into<String>) {
        self.push(check, Outcome::Warning, detail.into(), Some(fix.into()));
    }

    pub(super) fn failed(&mut self, check: &'static str, detail: impl Into<String>, fix: impl Into<String>) {
        self.push(check, Outcome::Failed, detail.into(), Some(fix.into()));
    }

    fn push(&mut self, check: &'static str, outcome: Outcome, detail: String, fix: Option<String>) {
        self.findings.push(Finding { check, outcome, detail, fix });
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.findings.iter().filter(|finding| finding.outcome == outcome).count()
    }

    /// Returns whether no check has failed and, if `strict`, whether there are no warnings either.
    pub(super) fn is_healthy(&self, strict: bool) -> bool {
        self.count(Outcome::Failed) == 0 && !(strict && self.count(Outcome::Warning) > 0)
    }

    /// Renders the report as human-readable text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for Finding { check, outcome, detail, fix } in &self.findings {
            let outcome = match outcome {
                Outcome::Ok => "ok",
                Outcome::Warning => "warning",
                Outcome::Failed => "FAILED",
                Outcome::Skipped => "skipped",
            };
            let _ = writeln!(text, "{outcome:8} {check:18} {detail}");
            if let Some(fix) = fix {
                let _ = writeln!(text, "{:8} {:18} fix: {fix}", "", "");
            }
        }
        let (failed, warnings) = (self.count(Outcome::Failed), self.count(Outcome::Warning));
        let _ = writeln!(text, "{} checks, {failed} failed, {warnings} warnings", self.findings.len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_problems_have_a_fix_and_affect_the_outcome() {
        let mut report = Report::default();
        report.ok("one", "fine");
        report.skipped("two", "not here");
        assert!(report.is_healthy(true));
        report.warning("three", "slow", "be quick");
        assert!(report.is_healthy(false) && !report.is_healthy(true));
        report.failed("four", "broken", "repair it");
        assert!(!report.is_healthy(false));
        let expected = "\
ok       one                fine
skipped  two                not here
warning  three              slow
                            fix: be quick
FAILED   four               broken
                            fix: repair it
4 checks, 1 failed, 1 warnings
";
        assert_eq!(report.text(), expected);
        let json = serde_json::to_string(&report).unwrap();
        let last = r#"{"check":"four","outcome":"failed","detail":"broken","fix":"repair it"}]}"#;
        assert!(json.ends_with(last), "{json}");
    }
}
