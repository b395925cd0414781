//! The netfilter rule that keeps tagged frames from the bridge and the IP stack.
//!
//! A packet socket sees a frame before the ingress hook of its interface, and the rule drops the frame at that hook. A
//! tagged frame thus reaches only the switch, and the kernel forwards all other traffic at full speed.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use iswitch_protocol::wire::Classifier;
use serde::{Deserialize, Serialize};

use super::claim::{InterfaceClaim, TABLE_PREFIX, table_name};

/// Priority that runs the chain before every other chain of the hook.
const PRIORITY: i32 = -500;

/// Reason why the rule could not be installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// The nft program is missing.
    #[error(
        "cannot find nft; install nftables, or set --no-ingress-rule on a machine that neither bridges nor routes \
         between its ports"
    )]
    NoNft,
    /// The nft program could not be run.
    #[error("cannot run nft: {0}")]
    Run(#[from] io::Error),
    /// The nft program failed.
    #[error("nft failed: {0}")]
    Failed(String),
}

/// Script that installs and removes the rule of one interface.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RuleScript {
    interface: String,
    text: String,
}

impl RuleScript {
    /// Returns the script for `ports` consecutive UDP ports, starting with the classifier's port.
    pub(super) fn new(interface: &str, classifier: &Classifier, ports: u16) -> Self {
        Self { interface: interface.to_owned(), text: rule_text(interface, classifier, ports) }
    }

    /// Installs the rule in one transaction, replacing an existing rule.
    pub fn install(&self) -> Result<(), RuleError> {
        nft_script(&self.text)
    }

    /// Returns the name of the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    fn remove(&self) -> Result<(), RuleError> {
        delete_tables([table_name(&self.interface)])
    }

    /// Removes, in one transaction, the rules of a terminated daemon, except those of interfaces that another daemon
    /// now serves.
    pub fn remove_orphans<'a>(scripts: impl IntoIterator<Item = &'a Self>) -> Result<(), RuleError> {
        // A killed process may hold its claim slightly longer than its other descriptors, so this function waits for
        // the claim.
        let claim = |script: &Self| {
            let claim = InterfaceClaim::acquire(&script.interface).ok()?;
            Some((claim, table_name(&script.interface)))
        };
        let (_claims, tables): (Vec<_>, Vec<_>) = scripts.into_iter().filter_map(claim).unzip();
        delete_tables(tables)
    }
}

/// Handle that asks the monitor to reinstall a rule.
#[derive(Clone, Debug)]
pub struct RuleKeeper {
    requests: Arc<UnixStream>,
    /// Number of the rule in requests to the monitor.
    number: u8,
}

impl RuleKeeper {
    /// Creates a handle that sends the number of the rule to the monitor through the stream.
    pub fn new(requests: Arc<UnixStream>, number: u8) -> Self {
        Self { requests, number }
    }

    fn ask(&self) -> io::Result<()> {
        (&*self.requests).write_all(&[self.number])
    }
}

/// Installed rule of one interface. Dropping it removes the rule, unless the rule has been entrusted to the monitor.
#[derive(Debug)]
pub struct IngressRule {
    script: RuleScript,
    keeper: Option<RuleKeeper>,
    /// Whether the rule outlives this value.
    is_left: bool,
}

impl IngressRule {
    /// Installs the rules of several interfaces, replacing rules that a crashed daemon left behind. All of them are
    /// installed in one transaction, because each transaction takes the kernel tens of milliseconds, during which
    /// jobs pause.
    ///
    /// Each rule covers `ports` consecutive UDP ports, starting with the classifier's port. The caller must hold the
    /// claims to the interfaces.
    pub fn install_all(
        interfaces: &[&str],
        classifier: &Classifier,
        ports: u16,
    ) -> Result<Vec<Self>, RuleError> {
        let script = |interface: &&str| RuleScript::new(interface, classifier, ports);
        let scripts: Vec<_> = interfaces.iter().map(script).collect();
        let texts: Vec<_> = scripts.iter().map(|script| script.text.as_str()).collect();
        nft_script(&texts.concat())?;
        Ok(scripts.into_iter().map(|script| Self { script, keeper: None, is_left: false }).collect())
    }

    /// Returns the rule of a script that the monitor has installed. The monitor also reinstalls and removes it.
    pub fn entrusted(script: RuleScript, keeper: RuleKeeper) -> Self {
        Self { script, keeper: Some(keeper), is_left: false }
    }

    /// Returns the script, which the monitor needs to reinstall and remove the rule.
    pub fn script(&self) -> &RuleScript {
        &self.script
    }

    /// Entrusts the rule to the monitor, which from now on reinstalls it on request and removes it when the daemon has
    /// terminated.
    pub fn entrust(&mut self, keeper: RuleKeeper) {
        self.keeper = Some(keeper);
    }

    /// Leaves the rule installed when this value is dropped.
    pub(super) fn leave(mut self) {
        self.is_left = true;
    }

    /// Installs the rule again after the interface was deleted and recreated. If the rule has been entrusted to the
    /// monitor, the monitor installs it.
    pub fn reinstall(&self) -> Result<(), RuleError> {
        match &self.keeper {
            Some(keeper) => Ok(keeper.ask()?),
            None => self.script.install(),
        }
    }
}

impl Drop for IngressRule {
    fn drop(&mut self) {
        if self.keeper.is_none()
            && !self.is_left
            && let Err(error) = self.script.remove()
        {
            tracing::error!(interface = self.script.interface, %error, "cannot remove the ingress rule");
        }
    }
}

/// Removes the nft tables in this network namespace that belong to terminated daemons, and returns the names of the
/// tables.
pub fn remove_orphans() -> Result<Vec<String>, RuleError> {
    let output = finish(nft().args(["list", "tables", "netdev"]).output())?;
    let listing = String::from_utf8_lossy(&output.stdout);
    // Holding the claim prevents a daemon that starts now from installing the table that is deleted here.
    let claim = |table: &str| Some((InterfaceClaim::of_table(table).ok()?, table.to_owned()));
    let (_claims, removed): (Vec<_>, Vec<_>) = our_tables(&listing).filter_map(claim).unzip();
    delete_tables(removed.iter().cloned())?;
    Ok(removed)
}

fn our_tables(listing: &str) -> impl Iterator<Item = &str> {
    let names = listing.lines().filter_map(|line| line.trim().strip_prefix("table netdev "));
    names.filter(|name| name.starts_with(TABLE_PREFIX))
}

/// Returns the nft script, which drops exactly the frames that the packet filter accepts.
///
/// The rule addresses fields by position for two reasons: the named fields of nft match only packets that nft considers
/// well-formed, and only the EtherType in the frame shows whether there is a VLAN tag. The commands `add`, `delete`,
/// `add` replace the table, whether or not it already exists.
fn rule_text(interface: &str, classifier: &Classifier, ports: u16) -> String {
    let table = table_name(interface);
    let (control, data) = (classifier.control_tos >> 2, classifier.data_tos >> 2);
    let first = classifier.udp_port;
    let port = match ports {
        0 | 1 => first.to_string(),
        _ => format!("{first}-{}", first.saturating_add(ports - 1)),
    };
    format!(
        r#"table netdev {table}
delete table netdev {table}
table netdev {table} {{
    chain tagged {{
        # fragments
        @nh,50,14 != 0 counter drop
        # UDP ports, after an IPv4 header without options, then with options
        @nh,4,4 5 @nh,176,16 {port} counter drop
        @nh,4,4 != 5 udp dport {port} counter drop
    }}
    chain ingress {{
        type filter hook ingress device "{interface}" priority {PRIORITY}; policy accept;
        # IPv4 without VLAN tag, UDP, one of the two DSCPs
        @ll,96,16 0x0800 @nh,72,8 17 @nh,8,6 {{ {control}, {data} }} jump tagged
    }}
}}
"#
    )
}

/// Deletes tables, whether or not they exist, in one transaction.
fn delete_tables(tables: impl IntoIterator<Item = String>) -> Result<(), RuleError> {
    let delete = |table| format!("table netdev {table}\ndelete table netdev {table}\n");
    let script: String = tables.into_iter().map(delete).collect();
    if script.is_empty() { Ok(()) } else { nft_script(&script) }
}

fn nft() -> Command {
    let mut command = Command::new("nft");
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

/// Runs a script as one transaction.
fn nft_script(script: &str) -> Result<(), RuleError> {
    let run = || {
        let mut command = nft();
        command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(script.as_bytes())?;
        }
        child.wait_with_output()
    };
    finish(run()).map(|_| ())
}

fn finish(output: io::Result<Output>) -> Result<Output, RuleError> {
    match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(RuleError::NoNft),
        Err(error) => Err(RuleError::Run(error)),
        Ok(output) if output.status.success() => Ok(output),
        Ok(output) => Err(RuleError::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_text_matches_the_reviewed_text() {
        let expected = r#"table netdev iswitchd_veth_2d1
delete table netdev iswitchd_veth_2d1
table netdev iswitchd_veth_2d1 {
    chain tagged {
        # fragments
        @nh,50,14 != 0 counter drop
        # UDP ports, after an IPv4 header without options, then with options
        @nh,4,4 5 @nh,176,16 7711 counter drop
        @nh,4,4 != 5 udp dport 7711 counter drop
    }
    chain ingress {
        type filter hook ingress device "veth-1" priority -500; policy accept;
        # IPv4 without VLAN tag, UDP, one of the two DSCPs
        @ll,96,16 0x0800 @nh,72,8 17 @nh,8,6 { 3, 7 } jump tagged
    }
}
"#;
        assert_eq!(rule_text("veth-1", &Classifier::default(), 1), expected);
        let of_two = rule_text("veth-1", &Classifier::default(), 2);
        assert_eq!(of_two, expected.replace("7711", "7711-7712"));
    }

    #[test]
    fn only_iswitchd_tables_are_recognized() {
        let listing = "table netdev iswitchd_eth0\ntable netdev filter\ntable netdev iswitchd_br_2d0\n";
        assert!(our_tables(listing).eq(["iswitchd_eth0", "iswitchd_br_2d0"]));
    }
}
