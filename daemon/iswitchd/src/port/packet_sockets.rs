//! The sockets of a raw port, which need privileges to open, and their transfer from the monitor to an unprivileged
//! daemon.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use iswitch_protocol::wire::Classifier;
use libc::c_int;
use serde::{Deserialize, Serialize};

use super::claim::InterfaceClaim;
use super::descriptors;
use super::ingress_rule::{IngressRule, RuleKeeper, RuleScript};
use super::interface::{PortError, bridge_of, claim_interface};
use super::packet_ring::{PacketOptions, PacketPort};

/// Open sockets of a raw port, one for each thread, with the claim to the interface and the ingress rule.
#[derive(Debug)]
pub struct PacketSockets {
    name: String,
    /// Index of the bridge to which the interface belongs, if any.
    bridge: Option<c_int>,
    // Drop order: see `PacketPort`.
    rule: Option<IngressRule>,
    sockets: Vec<OwnedFd>,
    claim: InterfaceClaim,
}

/// Description of passed sockets, sent together with the descriptors: first the claim, then the sockets.
#[derive(Debug, Deserialize, Serialize)]
struct Passed {
    bridge: Option<c_int>,
    /// Number of the ingress rule in requests to the monitor.
    rule: Option<u8>,
}

/// Answer of the monitor to a request to open a port.
type Answer = Result<Passed, String>;

impl PacketSockets {
    /// Opens the sockets. The threads serve consecutive UDP ports, starting with the classifier's port. Needs
    /// `CAP_NET_RAW`, and `CAP_NET_ADMIN` for the ingress rule.
    ///
    /// # Errors
    /// Fails if the interface does not exist, is not Ethernet or is served by another process, or if a call fails.
    pub fn open(name: &str, classifier: Classifier, options: &PacketOptions) -> Result<Self, PortError> {
        let mut sockets = Self::open_without_rule(name, classifier, options)?;
        Self::install_rules(std::slice::from_mut(&mut sockets), classifier, options)?;
        Ok(sockets)
    }

    /// Opens the sockets of several ports and installs their rules together.
    ///
    /// # Errors
    /// Fails as [`Self::open`] does.
    pub fn open_all(
        names: &[&str],
        classifier: Classifier,
        options: &PacketOptions,
    ) -> Result<Vec<Self>, PortError> {
        let open = |name: &&str| Self::open_without_rule(name, classifier, options);
        let mut all = names.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        Self::install_rules(&mut all, classifier, options)?;
        Ok(all)
    }

    fn open_without_rule(
        name: &str,
        classifier: Classifier,
        options: &PacketOptions,
    ) -> Result<Self, PortError> {
        let claim = claim_interface(name)?;
        let open = |at| {
            let of_thread = of_thread(classifier, at);
            PacketPort::open_socket(name, &of_thread, at == 0, options)
        };
        let sockets = (0..options.threads).map(open).collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), bridge: bridge_of(name), rule: None, sockets, claim })
    }

    fn install_rules(
        all: &mut [Self],
        classifier: Classifier,
        options: &PacketOptions,
    ) -> Result<(), PortError> {
        if !options.ingress_rule || all.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = all.iter().map(|sockets| sockets.name.as_str()).collect();
        let rules = IngressRule::install_all(&names, &classifier, options.threads);
        let rules = rules.map_err(|source| PortError::Rules { names: names.join(", "), source })?;
        all.iter_mut().zip(rules).for_each(|(sockets, rule)| sockets.rule = Some(rule));
        Ok(())
    }

    /// Returns the ports of the sockets. The first one holds the claim and the rule.
    ///
    /// # Errors
    /// Fails if the state of the interface cannot be read.
    pub fn into_ports(
        self,
        classifier: Classifier,
        options: &PacketOptions,
    ) -> Result<Vec<PacketPort>, PortError> {
        let Self { name, bridge, rule, sockets, claim } = self;
        let create = |(at, socket)| {
            PacketPort::of_socket(socket, (&name, bridge), of_thread(classifier, at), options.offload)
        };
        let mut ports = (0..).zip(sockets).map(create).collect::<Result<Vec<_>, _>>()?;
        if let Some(first) = ports.first_mut() {
            first.hold(claim, rule);
        }
        Ok(ports)
    }

    /// Returns the script of the ingress rule, if there is one.
    pub fn rule_script(&self) -> Option<&RuleScript> {
        self.rule.as_ref().map(IngressRule::script)
    }

    /// Passes the sockets to the daemon. The rule stays installed; `rule` is its number in requests to the monitor.
    ///
    /// # Errors
    /// Fails if the message cannot be sent. The rule has then been removed.
    pub fn pass(self, rule: Option<u8>, to: BorrowedFd<'_>) -> io::Result<()> {
        let text = serde_json::to_vec(&Answer::Ok(Passed { bridge: self.bridge, rule }))?;
        let claim = self.claim.into_descriptor();
        let all: Vec<_> = std::iter::once(claim).chain(self.sockets).collect();
        descriptors::send(to, &text, &all)?;
        if let Some(rule) = self.rule {
            rule.leave();
        }
        Ok(())
    }

    /// Informs the daemon that the sockets cannot be opened.
    ///
    /// # Errors
    /// Fails if the message cannot be sent.
    pub fn refuse(reason: String, to: BorrowedFd<'_>) -> io::Result<()> {
        descriptors::send(to, &serde_json::to_vec(&Answer::Err(reason))?, &[])
    }

    /// Receives the sockets of an interface, or the reason why they cannot be opened. `keeper` returns the handle for
    /// the rule with the given number.
    ///
    /// # Errors
    /// Fails if the monitor has refused, or if the message cannot be received.
    pub fn receive(
        name: &str,
        from: BorrowedFd<'_>,
        (classifier, threads): (&Classifier, u16),
        keeper: impl FnOnce(u8) -> RuleKeeper,
    ) -> io::Result<Self> {
        let (text, mut descriptors) = descriptors::receive(from)?;
        let answer: Answer = serde_json::from_slice(&text)?;
        let Passed { bridge, rule } = answer.map_err(io::Error::other)?;
        let claim = InterfaceClaim::passed(descriptors.pop_front().ok_or(io::ErrorKind::UnexpectedEof)?);
        if descriptors.len() != usize::from(threads) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let script = || RuleScript::new(name, classifier, threads);
        let rule = rule.map(|number| IngressRule::entrusted(script(), keeper(number)));
        Ok(Self { name: name.to_owned(), bridge, rule, sockets: descriptors.into(), claim })
    }
}

/// Returns the classifier of thread `at`.
fn of_thread(classifier: Classifier, at: u16) -> Classifier {
    Classifier { udp_port: classifier.udp_port.saturating_add(at), ..classifier }
}
