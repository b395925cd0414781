//! Memory shared with the kernel: the frames of a socket (its *umem*) and the rings through which they are passed.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::net::xdp::{XdpRingFlags, XdpRingOffset};

/// Mapped memory. Dropping it unmaps the memory.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: the memory is not bound to a thread, and only the owner of a mapping uses it.
unsafe impl Send for Mapping {}

impl Mapping {
    fn of_socket(socket: BorrowedFd<'_>, offset: u64, len_bytes: usize) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses the address, so that no memory in use is replaced.
        let start = unsafe { mmap(ptr::null_mut(), len_bytes, Self::PROTECTION, flags, socket, offset)? };
        Self::own(start, len_bytes)
    }

    fn anonymous(len_bytes: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: the kernel chooses the address, so that no memory in use is replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len_bytes, Self::PROTECTION, flags)? };
        Self::own(start, len_bytes)
    }

    const PROTECTION: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    fn own(start: *mut std::ffi::c_void, len_bytes: usize) -> io::Result<Self> {
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len_bytes })
    }

    /// Returns a pointer into the mapping. Fails if a `T` at this offset would be out of bounds or misaligned.
    fn at<T>(&self, offset: u64) -> io::Result<NonNull<T>> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let fits = offset.checked_add(size_of::<T>()).is_some_and(|end| end <= self.len_bytes);
        if !fits || !offset.is_multiple_of(align_of::<T>()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: the offset is inside the mapping, whose start is aligned to a page.
        Ok(unsafe { self.start.byte_add(offset) }.cast())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping owns the memory, and no pointer into it outlives the mapping.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len_bytes) };
    }
}

/// The frames of a socket. All have the same length and are addressed by their offset.
///
/// A frame in a fill or transmit ring belongs to the kernel and may change at any time. Users of a `Umem` must access
/// only frames that the kernel has returned.
#[derive(Debug)]
pub(super) struct Umem {
    memory: Mapping,
    frame_len_bytes: usize,
}

impl Umem {
    /// Creates frames filled with zeros.
    pub(super) fn new(frames: usize, frame_len_bytes: usize) -> io::Result<Self> {
        Ok(Self { memory: Mapping::anonymous(frames * frame_len_bytes)?, frame_len_bytes })
    }

    /// Returns the address of the memory and its length in bytes.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.memory.start.as_ptr().addr() as u64, self.memory.len_bytes as u64)
    }

    /// Returns the address of the frame that contains the given address.
    pub(super) fn frame_of(&self, address: u64) -> u64 {
        address - address % self.frame_len_bytes as u64
    }

    /// Returns the bytes that the kernel has written at an address; returns an empty slice if they are outside the
    /// memory.
    pub(super) fn bytes(&self, address: u64, len_bytes: u32) -> &[u8] {
        let (start, len) = self.clamp(address, len_bytes as usize);
        // SAFETY: the range is inside the mapping, and bytes of any value are valid. Nothing writes there: the kernel
        // has returned the frame, and `frame_mut()` needs an exclusive reference to the `Umem`.
        unsafe { std::slice::from_raw_parts(self.memory.start.as_ptr().add(start), len) }
    }

    /// Returns a frame for writing.
    pub(super) fn frame_mut(&mut self, address: u64) -> &mut [u8] {
        let (start, len) = self.clamp(address, self.frame_len_bytes);
        // SAFETY: the range is inside the mapping. The kernel has returned the frame, and this is the only
        // reference to the memory.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start.as_ptr().add(start), len) }
    }

    /// Returns `address` and `len` if this range is inside the mapping; otherwise, returns an empty range.
    fn clamp(&self, address: u64, len: usize) -> (usize, usize) {
        let start = usize::try_from(address).unwrap_or(usize::MAX);
        match start.checked_add(len) {
            Some(end) if end <= self.memory.len_bytes => (start, len),
            _ => (0, 0),
        }
    }
}

/// A ring that is shared with the kernel: one side produces entries, the other consumes them.
#[derive(Debug)]
struct Ring<T> {
    /// Mapping that contains the memory to which the pointers refer.
    _memory: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: Option<NonNull<AtomicU32>>,
    entries: NonNull<T>,
    mask: u32,
    kind: PhantomData<T>,
}

// SAFETY: the pointers refer to the mapping, which moves together with them.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps a ring of the socket. `len` is the configured number of entries, which must be a power of two.
    fn map(socket: BorrowedFd<'_>, page: u64, offsets: &XdpRingOffset, len: u32) -> io::Result<Self> {
        let entries_bytes = len as usize * size_of::<T>();
        let start = usize::try_from(offsets.desc).map_err(io::Error::other)?;
        let memory = Mapping::of_socket(socket, page, start + entries_bytes)?;
        Ok(Self {
            producer: memory.at(offsets.producer)?,
            consumer: memory.at(offsets.consumer)?,
            flags: offsets.flags.map(|offset| memory.at(offset)).transpose()?,
            entries: memory.at(offsets.desc)?,
            mask: len - 1,
            _memory: memory,
            kind: PhantomData,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: the pointer refers to an integer in the mapping that the kernel changes only atomically.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: see `producer()`.
        unsafe { self.consumer.as_ref() }
    }

    /// Returns whether the kernel must be woken to process new entries. If the kernel does not report this, the result
    /// is always true.
    fn needs_wakeup(&self) -> bool {
        let Some(flags) = self.flags else { return true };
        // SAFETY: see `producer()`.
        let flags = unsafe { flags.as_ref() }.load(Ordering::Relaxed);
        flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }

    fn entry(&self, position: u32) -> *mut T {
        // SAFETY: the mask keeps the index inside the entries, all of which are in the mapping.
        unsafe { self.entries.as_ptr().add((position & self.mask) as usize) }
    }
}

/// The switch's end of a ring whose entries the kernel consumes.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Position of the next entry. [`Self::submit`] makes all earlier entries visible to the kernel.
    next: u32,
}

impl<T: Copy> Producer<T> {
    /// Maps the ring; see [`Ring::map`].
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        page: u64,
        offsets: &XdpRingOffset,
        len: u32,
    ) -> io::Result<Self> {
        let ring = Ring::map(socket, page, offsets, len)?;
        let next = ring.producer().load(Ordering::Relaxed);
        Ok(Self { ring, next })
    }

    /// Returns the number of entries that the kernel has not consumed yet.
    pub(super) fn pending(&self) -> u32 {
        self.next.wrapping_sub(self.ring.consumer().load(Ordering::Acquire))
    }

    /// Adds an entry and returns `true`, or returns `false` if the ring is full.
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.pending() > self.ring.mask {
            return false;
        }
        // SAFETY: the entry is in the mapping, and the kernel does not read it before it is submitted.
        unsafe { self.ring.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Makes the added entries visible to the kernel, and returns whether the kernel must be woken to process them.
    pub(super) fn submit(&self) -> bool {
        self.ring.producer().store(self.next, Ordering::Release);
        self.ring.needs_wakeup()
    }
}

/// The switch's end of a ring whose entries the kernel produces.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// Position of the first entry that has not been released.
    next: u32,
}

impl<T: Copy> Consumer<T> {
    /// Maps the ring; see [`Ring::map`].
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        page: u64,
        offsets: &XdpRingOffset,
        len: u32,
    ) -> io::Result<Self> {
        let ring = Ring::map(socket, page, offsets, len)?;
        let next = ring.consumer().load(Ordering::Relaxed);
        Ok(Self { ring, next })
    }

    /// Returns the number of entries that can be read.
    pub(super) fn available(&self) -> u32 {
        self.ring.producer().load(Ordering::Acquire).wrapping_sub(self.next).min(self.ring.mask + 1)
    }

    /// Returns one of the [`Self::available`] entries, counted from 0.
    pub(super) fn peek(&self, at: u32) -> T {
        // SAFETY: the entry is in the mapping and consists of integers, and the kernel does not write it before
        // it is released.
        unsafe { self.ring.entry(self.next.wrapping_add(at)).read() }
    }

    /// Releases the first `entries` entries to the kernel.
    pub(super) fn release(&mut self, entries: u32) {
        self.next = self.next.wrapping_add(entries);
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}
