//! One queue of an interface: an AF_XDP socket, its frames and its four rings.
//!
//! Frames for receiving go round: fill ring, device, receive ring, us. So do those for sending: us, transmit ring,
//! device, completion ring. No frame changes from one circle to the other.

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

/// Bytes of a frame: two of them fill a page, and a frame of a usual MTU fits with the room that drivers ask for.
const FRAME_LEN_BYTES: usize = 2048;
/// The same for longer frames: no frame may cross a page.
const LONG_FRAME_LEN_BYTES: usize = 4096;
/// What the kernel keeps free before each received frame (`XDP_PACKET_HEADROOM`).
const HEADROOM_LEN_BYTES: usize = 256;
/// Frames for sending: several super-frames.
const SEND_FRAMES: u32 = 1024;
/// Least frames for receiving.
const MIN_RECV_FRAMES: usize = 64;
/// Most frames for receiving: the kernel makes no larger rings of some devices.
const MAX_RECV_FRAMES: usize = 1 << 15;

/// How large a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueSize {
    /// Bytes of each frame.
    frame_len_bytes: usize,
    /// Frames for receiving, a power of two.
    recv_frames: u32,
}

impl QueueSize {
    /// Longest Ethernet frame that any queue can receive, in bytes.
    pub(super) const MAX_FRAME_LEN_BYTES: usize = LONG_FRAME_LEN_BYTES - HEADROOM_LEN_BYTES;

    /// For Ethernet frames of that length at most, in about so much memory.
    pub(super) fn new(frame_len_bytes: usize, memory_bytes: usize) -> Self {
        let is_short = frame_len_bytes <= FRAME_LEN_BYTES - HEADROOM_LEN_BYTES;
        let frame_len_bytes = if is_short { FRAME_LEN_BYTES } else { LONG_FRAME_LEN_BYTES };
        let frames = (memory_bytes / frame_len_bytes).clamp(MIN_RECV_FRAMES, MAX_RECV_FRAMES);
        Self { frame_len_bytes, recv_frames: 1 << frames.ilog2() }
    }

    /// Datagrams that can wait in the queue: each takes a frame, however short it is.
    pub(super) fn recv_datagrams(self) -> usize {
        self.recv_frames as usize
    }
}

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    // Closed before its memory goes.
    socket: OwnedFd,
    rx: Consumer<XdpDesc>,
    fill: Producer<u64>,
    tx: Producer<XdpDesc>,
    completion: Consumer<u64>,
    umem: Umem,
    /// Frames for sending that the kernel has not got.
    free: Vec<u64>,
}

impl Queue {
    /// Gives a fresh socket its frames and rings.
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

    /// Binds the socket to a queue of an interface, in the first of the modes that its driver takes.
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

    /// Frames that were received and not released.
    pub(super) fn received(&self) -> u32 {
        self.rx.available()
    }

    /// One of the [`Self::received`] frames, from 0.
    pub(super) fn frame(&self, at: u32) -> &[u8] {
        let XdpDesc { addr, len, .. } = self.rx.peek(at);
        self.umem.bytes(addr, len)
    }

    /// Gives the first received frames back to the kernel.
    pub(super) fn release(&mut self, frames: u32) {
        for at in 0..frames {
            let frame = self.umem.frame_of(self.rx.peek(at).addr);
            // There is room for all frames that there are.
            self.fill.push(frame);
        }
        self.rx.release(frames);
        if self.fill.submit() {
            // An error tells no more than that the interface is down or gone, which maintenance notices.
            let _ = recv(&self.socket, &mut [0; 0], RecvFlags::DONTWAIT);
        }
    }

    /// Puts a frame, of the parts one after the other, into the transmit ring, for the next [`Self::transmit`].
    ///
    /// `finish` is called with the frame. Returns whether there was room.
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

    /// Has the kernel send what is in the transmit ring.
    ///
    /// What it cannot take now stays there until the next time.
    pub(super) fn transmit(&mut self) -> io::Result<()> {
        let mut pending = self.tx.pending();
        let mut needs_wakeup = self.tx.submit();
        while needs_wakeup && pending > 0 {
            match send(&self.socket, &[], SendFlags::DONTWAIT) {
                Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS) => {}
                Err(error) => return Err(error.into()),
            }
            // One call takes a number of frames: more calls follow as long as they get anywhere.
            let left = self.tx.pending();
            needs_wakeup = left < pending;
            pending = left;
        }
        self.reap();
        Ok(())
    }

    /// Takes back the frames that were sent.
    fn reap(&mut self) {
        let sent = self.completion.available();
        for at in 0..sent {
            self.free.push(self.umem.frame_of(self.completion.peek(at)));
        }
        self.completion.release(sent);
    }

    /// Frames that the kernel could not deliver here since the start: no free frame, or no room in the ring.
    pub(super) fn drops(&self) -> io::Result<u64> {
        let statistics = xdp_statistics(&self.socket)?;
        Ok(statistics.rx_dropped + statistics.rx_ring_full.unwrap_or(0))
    }
}
