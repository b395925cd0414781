//! The worker's side of authentication (SPEC, section 8): a key, and the state of the authenticated exchange with the
//! switch, which the worker's threads share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iswitch_protocol::Key;
use iswitch_protocol::auth::{Conversation, Direction, TagKey};
use iswitch_protocol::limits::TRAILER_LEN_BYTES;
use iswitch_protocol::wire::{Action, ControlPacket};

/// A worker's key and the state of its authenticated exchange with the switch. Clones share both, so that several
/// threads can send.
#[derive(Clone, Debug)]
pub struct Authenticator {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    key: Key,
    conversation: Mutex<Conversation>,
}

/// Keys that tag the data packets of a membership.
#[derive(Clone, Copy, Debug)]
pub struct DataKeys {
    /// Key for contributions, which the worker sends.
    pub contribution: TagKey,
    /// Key for results, which the worker receives.
    pub result: TagKey,
}

impl Authenticator {
    /// Creates an authenticator without a session. `first_counter` is the current time in nanoseconds; see
    /// [`Conversation::new`].
    pub fn new(key: Key, first_counter: u64) -> Self {
        let conversation = Mutex::new(Conversation::new(first_counter));
        Self { shared: Arc::new(Shared { key, conversation }) }
    }

    /// Appends the authentication trailer to a control packet.
    pub fn sign(&self, action: Action, packet: &mut Vec<u8>) {
        let (context, counter) = self.conversation().next(action);
        packet.resize(packet.len() + TRAILER_LEN_BYTES, 0);
        self.shared.key.sign(Direction::ToSwitch, context, counter, packet);
    }

    /// Returns whether a control packet is authentic and new.
    pub fn accept(&self, packet: &ControlPacket<'_>) -> bool {
        self.conversation().accept(&self.shared.key, packet)
    }

    /// Returns whether a control packet that arrived through the group of the job is authentic and new. `epoch` is the
    /// epoch of the job.
    pub fn accept_from_group(&self, epoch: u64, packet: &ControlPacket<'_>) -> bool {
        self.conversation().accept_from_group(&self.shared.key, epoch, packet)
    }

    /// Returns the session, which a Join carries as its nonce; zero before the first challenge.
    pub fn session(&self) -> u64 {
        self.conversation().session()
    }

    /// Opens a session with the nonce of a challenge.
    pub fn open_session(&self, nonce: u64) {
        self.conversation().open_session(nonce);
    }

    /// Returns the keys that tag data packets in this session. `boot` is the epoch of the job.
    pub fn data_keys(&self, boot: u64, job: u32) -> DataKeys {
        let key = &self.shared.key;
        DataKeys { contribution: key.contribution_key(self.session()), result: key.result_key(boot, job) }
    }

    fn conversation(&self) -> MutexGuard<'_, Conversation> {
        // A panic of another thread leaves the conversation consistent, because each change affects a single number.
        self.shared.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
