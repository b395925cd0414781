//! One queue of an interface: an AF_XDP socket, its frames and its four rings.
//!
//! Frames for receiving circulate through the fill ring, the device, the receive ring and the switch. Frames for
//! sending circulate through the switch, the transmit ring, the device and the completion ring. No frame moves from one
//! cycle to the other.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, set_xdp_umem_reg, xdp_mmap_offsets, xdp_statistics,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions, XdpMmapOffsets, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{RecvFlags, SendFlags, bind, recv, send};

use super::super::spec::CopyMode;
use super::memory::{Consumer, Producer, Umem};

/// Length of a frame in bytes. Two frames fill a page, and a frame of the usual MTU fits with the headroom that
/// drivers need.
const FRAME_LEN_BYTES: usize = 2048;
/// Length of a frame in bytes for larger MTUs: a page, because no frame may cross a page boundary.
const LONG_FRAME_LEN_BYTES: usize = 4096;
/// Space that the kernel reserves before each received frame, in bytes (`XDP_PACKET_HEADROOM`).
const HEADROOM_LEN_BYTES: usize = 256;
/// Number of frames for sending: enough for several super-frames.
const SEND_FRAMES: u32 = 1024;
/// Minimum number of frames for receiving.
const MIN_RECV_FRAMES: usize = 64;
/// Maximum number of frames for receiving: the kernel cannot create larger rings for some devices.
const MAX_RECV_FRAMES: usize = 1 << 15;

/// Size of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueSize {
    /// Length of each frame, in bytes.
    frame_len_bytes: usize,
    /// Number of frames for receiving, a power of two.
    recv_frames: u32,
}

impl QueueSize {
    /// Maximum length of an Ethernet frame that a queue can receive, in bytes.
    pub(super) const MAX_FRAME_LEN_BYTES: usize = LONG_FRAME_LEN_BYTES - HEADROOM_LEN_BYTES;

    /// Returns the size of a queue for Ethernet frames of at most `frame_len_bytes`. The queue takes approximately
    /// `memory_bytes` of memory.
    pub(super) fn new(frame_len_bytes: usize, memory_bytes: usize) -> Self {
        let is_short = frame_len_bytes <= FRAME_LEN_BYTES - HEADROOM_LEN_BYTES;
        let frame_len_bytes = if is_short { FRAME_LEN_BYTES } else { LONG_FRAME_LEN_BYTES };
        let frames = (memory_bytes / frame_len_bytes).clamp(MIN_RECV_FRAMES, MAX_RECV_FRAMES);
        Self { frame_len_bytes, recv_frames: 1 << frames.ilog2() }
    }

    /// Returns the number of datagrams that the queue can hold: each takes a whole frame, however short it is.
    pub(super) fn recv_datagrams(self) -> usize {
        self.recv_frames as usize
    }
}

/// One queue of an interface.
#[derive(Debug)]
pub(super) struct Queue {
    // Declared first, so that it is closed before its memory is unmapped.
    socket: OwnedFd,
    rx: Consumer<XdpDesc>,
    fill: Producer<u64>,
    tx: Producer<XdpDesc>,
    completion: Consumer<u64>,
    umem: Umem,
    /// Frames for sending that the kernel does not hold.
    free: Vec<u64>,
}

impl Queue {
    /// Sets up the frames and rings of a new socket.
    pub(super) fn new(socket: OwnedFd, size: QueueSize) -> io::Result<Self> {
        let frames = size.recv_frames + SEND_FRAMES;
        let umem = Umem::new(frames as usize, size.frame_len_bytes)?;
        let (addr, len) = umem.place();
        let chunk_size = size.frame_len_bytes as u32;
        let flags = XdpUmemRegFlags::empty();
        set_xdp_umem_reg(
            &socket,
            XdpUmemReg { addr, len, chunk_size, headroom: 0, flags, tx_metadata_len: 0 },
        )?;
        set_xdp_umem_fill_ring_size(&socket, size.recv_frames)?;
        set_xdp_umem_completion_ring_size(&socket, SEND_FRAMES)?;
        set_xdp_rx_ring_size(&socket, size.recv_frames)?;
        set_xdp_tx_ring_size(&socket, SEND_FRAMES)?;
        let XdpMmapOffsets { rx, tx, fr, cr } = xdp_mmap_offsets(&socket)?;
        let fd = socket.as_fd();
        let mut queue = Self {
            rx: Consumer::map(fd, XDP_PGOFF_RX_RING, &rx, size.recv_frames)?,
            fill: Producer::map(fd, XDP_UMEM_PGOFF_FILL_RING, &fr, size.recv_frames)?,
            tx: Producer::map(fd, XDP_PGOFF_TX_RING, &tx, SEND_FRAMES)?,
            completion: Consumer::map(fd, XDP_UMEM_PGOFF_COMPLETION_RING, &cr, SEND_FRAMES)?,
            free: (size.recv_frames..frames).map(|frame| u64::from(frame) * u64::from(chunk_size)).collect(),
            umem,
            socket,
        };
        for frame in 0..size.recv_frames {
            queue.fill.push(u64::from(frame) * u64::from(chunk_size));
        }
        queue.fill.submit();
        Ok(queue)
    }

    /// Binds the socket to a queue of an interface, in the first mode that the driver of the interface accepts.
    pub(super) fn bind(
        &mut self,
        interface_index: u32,
        number: u32,
        modes: &[CopyMode],
    ) -> io::Result<CopyMode> {
        let mut refusal = io::Error::from(io::ErrorKind::Unsupported);
        for mode in modes {
            let flag = match mode {
                CopyMode::ZeroCopy => SocketAddrXdpFlags::XDP_ZEROCOPY,
                CopyMode::Copy => SocketAddrXdpFlags::XDP_COPY,
            };
            let flags = flag | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
            match bind(&self.socket, &SocketAddrXdp::new(flags, interface_index, number)) {
                Ok(()) => return Ok(*mode),
                Err(error) => refusal = error.into(),
            }
        }
        Err(refusal)
    }

    /// Returns the number of frames that were received but not released yet.
    pub(super) fn received(&self) -> u32 {
        self.rx.available()
    }

    /// Returns one of the [`Self::received`] frames, counted from 0.
    pub(super) fn frame(&self, at: u32) -> &[u8] {
        let XdpDesc { addr, len, .. } = self.rx.peek(at);
        self.umem.bytes(addr, len)
    }

    /// Releases the first `frames` received frames to the kernel.
    pub(super) fn release(&mut self, frames: u32) {
        for at in 0..frames {
            let frame = self.umem.frame_of(self.rx.peek(at).addr);
            // The fill ring has room for all frames for receiving.
            self.fill.push(frame);
        }
        self.rx.release(frames);
        if self.fill.submit() {
            // An error means only that the interface is down or gone, which maintenance detects.
            let _ = recv(&self.socket, &mut [0; 0], RecvFlags::DONTWAIT);
        }
    }

    /// Copies a frame, given as two parts, into the transmit ring, from which the next [`Self::transmit`] sends it.
    ///
    /// Before the frame is queued, calls `finish` with it. Returns whether the ring had room for the frame.
    pub(super) fn push(&mut self, parts: [&[u8]; 2], finish: impl FnOnce(&mut [u8])) -> bool {
        if self.free.is_empty() {
            self.reap();
        }
        let Some(addr) = self.free.pop() else { return false };
        let len = parts[0].len() + parts[1].len();
        let Some(frame) = self.umem.frame_mut(addr).get_mut(..len) else {
            self.free.push(addr);
            return false;
        };
        let (first, second) = frame.split_at_mut(parts[0].len());
        first.copy_from_slice(parts[0]);
        second.copy_from_slice(parts[1]);
        finish(frame);
        let desc = XdpDesc { addr, len: len as u32, options: XdpDescOptions::empty() };
        let has_room = self.tx.push(desc);
        if !has_room {
            self.free.push(addr);
        }
        has_room
    }

    /// Makes the kernel send the frames in the transmit ring.
    ///
    /// Frames that the kernel cannot accept now stay in the ring until the next call.
    pub(super) fn transmit(&mut self) -> io::Result<()> {
        let mut pending = self.tx.pending();
        let mut needs_wakeup = self.tx.submit();
        while needs_wakeup && pending > 0 {
            match send(&self.socket, &[], SendFlags::DONTWAIT) {
                Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS) => {}
                Err(error) => return Err(error.into()),
            }
            // One call sends a limited number of frames, so calls are repeated while they make progress.
            let left = self.tx.pending();
            needs_wakeup = left < pending;
            pending = left;
        }
        self.reap();
        Ok(())
    }

    /// Reclaims the frames that the kernel has sent.
    fn reap(&mut self) {
        let sent = self.completion.available();
        for at in 0..sent {
            self.free.push(self.umem.frame_of(self.completion.peek(at)));
        }
        self.completion.release(sent);
    }

    /// Returns the number of frames that the kernel has dropped on this queue since it was opened, because there was no
    /// free frame or no room in the receive ring.
    pub(super) fn drops(&self) -> io::Result<u64> {
        let statistics = xdp_statistics(&self.socket)?;
        Ok(statistics.rx_dropped + statistics.rx_ring_full.unwrap_or(0))
    }
}
