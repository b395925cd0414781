"""UDP socket to a switch, with packet classes by ToS and simulated packet loss."""

import random
import socket
import struct
from dataclasses import dataclass

from .wire import TOS_CONTROL, TOS_DATA

MAX_DATAGRAM_LEN = 65_535
# Constants that Python's socket module lacks; see ip(7).
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2
DSCP_MASK = 0xFC


@dataclass
class Counts:
    sent: int = 0
    dropped: int = 0


class Channel:
    """Socket that exchanges packets with one switch only."""

    def __init__(self, switch: tuple[str, int], loss: float, seed: int):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # W-4: every packet has DF set.
        self._socket.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.connect(switch)
        self._loss = loss
        self._random = random.Random(seed)
        self.counts = Counts()

    def close(self) -> None:
        self._socket.close()

    def _is_lost(self) -> bool:
        lost = self._random.random() < self._loss
        self.counts.dropped += lost
        return lost

    def send_control(self, payload: bytes) -> None:
        self._send(payload, TOS_CONTROL)

    def send_data(self, payload: bytes) -> None:
        self._send(payload, TOS_DATA)

    def _send(self, payload: bytes, tos: int) -> None:
        self.counts.sent += 1
        if self._is_lost():
            return
        try:
            self._socket.sendmsg([payload], [(socket.IPPROTO_IP, socket.IP_TOS, struct.pack("i", tos))])
        except ConnectionRefusedError:
            pass  # The switch is restarting; lost packets are retransmitted.

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        """Returns the next packet and its class, `TOS_CONTROL` or `TOS_DATA`; None after `timeout` seconds."""
        self._socket.settimeout(max(timeout, 0.0001))
        try:
            payload, ancillary, _, _ = self._socket.recvmsg(MAX_DATAGRAM_LEN, socket.CMSG_SPACE(4))
        except (TimeoutError, BlockingIOError, ConnectionRefusedError):
            return None
        if self._is_lost():
            return None
        for level, kind, value in ancillary:
            if level == socket.IPPROTO_IP and kind == socket.IP_TOS:
                return value[0] & DSCP_MASK, payload
        return None
