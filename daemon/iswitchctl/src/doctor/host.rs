//! Checks that need no network: the interface, its offloads, the receive buffer and the CPU.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_socket::interface::offloads;
use iswitch_socket::{Options, UdpSocket};
use pnet_datalink::NetworkInterface;

use super::finding::Report;

/// Returns the interface that has this address.
pub(super) fn interface_of(address: Ipv4Addr) -> Option<NetworkInterface> {
    let has_address =
        |interface: &NetworkInterface| interface.ips.iter().any(|network| network.ip() == address);
    pnet_datalink::interfaces().into_iter().find(has_address)
}

/// Checks an interface: its state, its MTU and its offloads.
pub(super) fn check_interface(report: &mut Report, name: &str, mtu_bytes: usize) {
    let Some(interface) = pnet_datalink::interfaces().into_iter().find(|other| other.name == name) else {
        return report.failed(
            "interface",
            format!("there is no interface {name}"),
            "run ip link to list the interfaces of this machine",
        );
    };
    if !interface.is_up() {
        return report.failed("interface", format!("{name} is down"), format!("run ip link set {name} up"));
    }
    let read = |file: &str| fs::read_to_string(format!("/sys/class/net/{name}/{file}")).unwrap_or_default();
    // Without a carrier, an interface sends nothing even if it is up.
    if read("carrier").trim() == "0" {
        let fix = "check the cable and the port at its other end";
        return report.failed("interface", format!("{name} is up, but has no carrier"), fix);
    }
    report.ok("interface", format!("{name} is up"));
    match read("mtu").trim().parse::<usize>() {
        Ok(mtu) if mtu < mtu_bytes => report.failed(
            "interface-mtu",
            format!("{name} has an MTU of {mtu} bytes, expected at least {mtu_bytes}"),
            format!("run ip link set {name} mtu {mtu_bytes}, and raise the MTU of every link to the switch as well"),
        ),
        Ok(mtu) => report.ok("interface-mtu", format!("{mtu} bytes")),
        Err(_) => report.skipped("interface-mtu", format!("cannot read /sys/class/net/{name}/mtu")),
    }
    check_offloads(report, name);
}

fn check_offloads(report: &mut Report, name: &str) {
    let on = match offloads(name) {
        Ok(on) => on,
        Err(error) => return report.skipped("offloads", format!("{name}: {error}")),
    };
    let features = [("gro", on.gro), ("gso", on.gso), ("rx", on.rx_checksum), ("tx", on.tx_checksum)];
    let off: Vec<_> = features.iter().filter(|(_, is_on)| !is_on).map(|(feature, _)| *feature).collect();
    if off.is_empty() {
        return report.ok("offloads", format!("gro, gso and checksum offload are on for {name}"));
    }
    report.warning(
        "offloads",
        format!(
            "{name} has offloads turned off ({}), so each datagram is processed individually",
            off.join(", ")
        ),
        format!(
            "run ethtool -K {name} {}",
            off.iter().map(|feature| format!("{feature} on")).collect::<Vec<_>>().join(" ")
        ),
    );
}

/// Checks that the kernel grants the receive buffer that the daemon and the workers request.
pub(super) fn check_receive_buffer(report: &mut Report, wanted_bytes: usize) {
    const CHECK: &str = "receive-buffer";
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let options = Options { recv_buffer_bytes: wanted_bytes, offload: false, ..Options::default() };
    let got = UdpSocket::bind(address, &options).and_then(|socket| socket.recv_buffer_bytes());
    match got {
        // The kernel reports twice the usable size, because the reported size includes its own bookkeeping.
        Ok(bytes) if bytes / 2 < wanted_bytes => report.warning(
            CHECK,
            format!(
                "the kernel granted a receive buffer of {} bytes, expected {wanted_bytes}: a small buffer limits the \
                 workers' windows and overflows in bursts",
                bytes / 2
            ),
            format!(
                "run sysctl -w net.core.rmem_max={wanted_bytes} and add the setting to /etc/sysctl.d, or run iswitchd \
                 and the workers with CAP_NET_ADMIN"
            ),
        ),
        Ok(_) => report.ok(CHECK, format!("{wanted_bytes} bytes")),
        Err(error) => report.skipped(CHECK, error.to_string()),
    }
}

/// Checks that the CPU frequency governor does not slow down cores that wait for packets.
pub(super) fn check_cpu(report: &mut Report) {
    const CHECK: &str = "cpu-governor";
    let Ok(governor) = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") else {
        return report.skipped(CHECK, "this machine does not report a CPU frequency governor");
    };
    match governor.trim() {
        "powersave" => {
            let fix = "run cpupower frequency-set -g performance while jobs run";
            report.warning(
                CHECK,
                "the CPU frequency governor is powersave, so an idle core is slow to process the next packet",
                fix,
            );
        }
        other => report.ok(CHECK, other),
    }
}
