//! The worker's side of authentication (SPEC, section 8): a key, and a conversation that its threads share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iswitch_protocol::Key;
use iswitch_protocol::auth::{Conversation, Direction, TagKey};
use iswitch_protocol::limits::TRAILER_LEN_BYTES;
use iswitch_protocol::wire::{Action, ControlPacket};

/// A worker's key and its conversation with the switch. Clones share both, so that several threads can send.
#[derive(Clone, Debug)]
pub struct Authenticator {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    key: Key,
    conversation: Mutex<Conversation>,
}

/// The keys of a membership's data packets.
#[derive(Clone, Copy, Debug)]
pub struct DataKeys {
    /// Of what the worker sends.
    pub contribution: TagKey,
    /// Of what it receives.
    pub result: TagKey,
}

impl Authenticator {
    /// Begins without a session; see [`Conversation::new`] for `first_counter`, which the time in nanoseconds is.
    pub fn new(key: Key, first_counter: u64) -> Self {
        let conversation = Mutex::new(Conversation::new(first_counter));
        Self { shared: Arc::new(Shared { key, conversation }) }
    }

    /// Appends the trailer to a control packet.
    pub fn sign(&self, action: Action, packet: &mut Vec<u8>) {
        let (context, counter) = self.conversation().next(action);
        packet.resize(packet.len() + TRAILER_LEN_BYTES, 0);
        self.shared.key.sign(Direction::ToSwitch, context, counter, packet);
    }

    /// Whether a control packet comes from the switch and is new.
    pub fn accept(&self, packet: &ControlPacket<'_>) -> bool {
        self.conversation().accept(&self.shared.key, packet)
    }

    /// The session, which a Join repeats as its nonce; zero before the first challenge.
    pub fn session(&self) -> u64 {
        self.conversation().session()
    }

    /// Takes up the nonce of a challenge.
    pub fn open_session(&self, nonce: u64) {
        self.conversation().open_session(nonce);
    }

    /// The keys of data packets in this session, under a run of the switch.
    pub fn data_keys(&self, boot: u64, job: u32) -> DataKeys {
        let key = &self.shared.key;
        DataKeys { contribution: key.contribution_key(self.session()), result: key.result_key(boot, job) }
    }

    fn conversation(&self) -> MutexGuard<'_, Conversation> {
        // A thread that panicked has left it whole: it changes one number at a time.
        self.shared.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
