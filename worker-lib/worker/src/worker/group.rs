//! The group of a member's job, through which the switch sends one copy of a result to several members (SPEC, section
//! 13).
//!
//! [`GroupState`] is the protocol: it processes the offers and Probes from the switch, and determines which group the
//! driver should subscribe to and which Probe the member must confirm. [`Subscription`] owns the socket.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_socket::{Options, UdpSocket};

/// Path on which a packet arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// Unicast: the packet was sent to this member only.
    #[default]
    Unicast,
    /// Multicast: the packet was sent to the group of the job.
    Group,
}

/// State of a member's subscription to the group of its job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupState {
    offered: Option<SocketAddrV4>,
    /// Whether the driver receives packets of the offered group.
    is_subscribed: bool,
    /// Nonce of the Heard that is due; a nonce of zero requests a Probe.
    due: Option<u64>,
}

impl GroupState {
    /// Returns the group whose packets the driver should receive, or `None` if the switch has offered no group.
    pub(super) fn wanted(&self) -> Option<SocketAddrV4> {
        self.offered
    }

    /// Returns whether packets of the group may be used.
    pub(super) fn is_subscribed(&self) -> bool {
        self.is_subscribed
    }

    /// Processes the switch's offer of a group. A repeated offer means that the switch has received no confirmation.
    pub(super) fn offer(&mut self, group: SocketAddrV4) {
        if self.offered != Some(group) {
            *self = Self { offered: Some(group), ..Self::default() };
        }
        if self.is_subscribed {
            self.due = Some(0);
        }
    }

    /// Records that the driver receives packets of a group from now on, and requests a Probe.
    pub(super) fn subscribed(&mut self, group: SocketAddrV4) {
        if self.offered == Some(group) && !self.is_subscribed {
            (self.is_subscribed, self.due) = (true, Some(0));
        }
    }

    /// Processes a Probe that arrived through the group. If several Probes arrive, only the last one is confirmed.
    pub(super) fn probed(&mut self, nonce: u64) {
        self.due = Some(nonce);
    }

    /// Returns the nonce of the Heard that is due, or `None` if none is due. Each nonce is returned only once.
    pub(super) fn take_due(&mut self) -> Option<u64> {
        self.due.take()
    }
}

/// Socket that receives the packets of a group.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    group: Option<SocketAddrV4>,
    /// Socket of the group; `None` if there is no subscription or if subscribing has failed.
    socket: Option<UdpSocket>,
}

impl Subscription {
    /// Returns the current group, even if subscribing to it has failed, or `None` if there is no group.
    pub(super) fn group(&self) -> Option<SocketAddrV4> {
        self.group
    }

    pub(super) fn socket(&self) -> Option<&UdpSocket> {
        self.socket.as_ref()
    }

    /// Leaves the current group and subscribes to `group`, if given. Returns whether packets of that group are received
    /// from now on. If subscribing fails, the member continues with unicast.
    pub(super) fn change(
        &mut self,
        group: Option<SocketAddrV4>,
        unicast: &UdpSocket,
        switch: SocketAddrV4,
        options: &Options,
    ) -> bool {
        (self.group, self.socket) = (group, None);
        let Some(group) = group else { return false };
        match open(group, unicast, switch, options) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => {
                tracing::debug!(%group, %error, "cannot receive from the multicast group; using unicast");
            }
        }
        self.socket.is_some()
    }
}

/// Opens a socket for a group on the interface that faces the switch.
fn open(
    group: SocketAddrV4,
    unicast: &UdpSocket,
    switch: SocketAddrV4,
    options: &Options,
) -> io::Result<UdpSocket> {
    let interface: Ipv4Addr = *unicast.local_addr()?.ip();
    let socket = UdpSocket::subscribe(group, interface, switch, options)?;
    if socket.recv_buffer_bytes()? < unicast.recv_buffer_bytes()? {
        // The member's window is derived from the size of its unicast receive buffer, so the group's buffer must not be
        // smaller.
        return Err(io::Error::other(
            "the group socket has a smaller receive buffer than the unicast socket",
        ));
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(host: u8) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(239, 192, 0, host), 61_000)
    }

    #[test]
    fn an_offer_is_answered_once_the_driver_receives_the_group() {
        let mut state = GroupState::default();
        state.offer(group(1));
        assert_eq!((state.wanted(), state.take_due()), (Some(group(1)), None));
        state.subscribed(group(2));
        assert!(!state.is_subscribed(), "this group was not offered");
        state.subscribed(group(1));
        assert_eq!((state.take_due(), state.take_due()), (Some(0), None));
        state.probed(7);
        state.probed(8);
        assert_eq!((state.take_due(), state.take_due()), (Some(8), None));
        state.offer(group(1));
        assert_eq!(state.take_due(), Some(0), "a repeated offer should ask for a Probe again");
        state.offer(group(2));
        assert_eq!((state.wanted(), state.is_subscribed(), state.take_due()), (Some(group(2)), false, None));
    }
}
