//! Messages with file descriptors, which the monitor uses to pass resources to the daemon.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Maximum length of a message, in bytes.
const MESSAGE_LEN_MAX_BYTES: usize = 4096;
/// Maximum number of descriptors in a message.
pub(super) const DESCRIPTORS_MAX: usize = 128;

/// Sends a message with descriptors through a Unix stream.
///
/// # Errors
/// Fails if there are too many descriptors. Also returns the errors of `sendmsg(2)`.
pub(super) fn send(to: BorrowedFd<'_>, text: &[u8], descriptors: &[OwnedFd]) -> io::Result<()> {
    let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(to, &[IoSlice::new(text)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message that [`send`] has sent.
///
/// # Errors
/// Returns the errors of `recvmsg(2)`, or `UnexpectedEof` if the stream has ended.
pub(super) fn receive(from: BorrowedFd<'_>) -> io::Result<(Vec<u8>, VecDeque<OwnedFd>)> {
    let mut text = [0; MESSAGE_LEN_MAX_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let buffers = &mut [IoSliceMut::new(&mut text)];
    let len = recvmsg(from, buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?.bytes;
    if len == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut descriptors = VecDeque::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok((text[..len].to_vec(), descriptors))
}
