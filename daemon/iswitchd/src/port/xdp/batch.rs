//! Frames that were received together, taken apart, and put together again by sender.
//!
//! The core works best on super-frames, and AF_XDP delivers single ones: those of one sender are gathered, also where
//! a device has received those of several senders in turns.

use std::ops::Range;

use iswitch_protocol::limits::{MAX_SUPERFRAME_DATAGRAMS, MAX_SUPERFRAME_LEN_BYTES};
use iswitch_protocol::wire::{Class, FrameAddresses};

/// Most frames of a batch: those of a super-frame.
pub(super) const BATCH_FRAMES: u32 = MAX_SUPERFRAME_DATAGRAMS as u32;

/// A datagram in one of the frames of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// What its ToS makes it.
    pub(super) class: Class,
    /// Who sent it to whom.
    pub(super) addresses: FrameAddresses,
    /// Number of the frame in the batch.
    pub(super) frame: u32,
    /// Where in the frame the payload is.
    pub(super) payload: Range<usize>,
}

/// What [`take_run`] has found: datagrams of one sender and class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Their class.
    pub(super) class: Class,
    /// Who sent them to whom.
    pub(super) addresses: FrameAddresses,
    /// Bytes of each of them but the last, which may be shorter.
    pub(super) stride: usize,
}

/// Takes the first datagram away, and those that its sender has sent right after it and that go into one super-frame
/// with it; `copy` is called with each in their order. The datagrams of a sender keep their order.
pub(super) fn take_run(waiting: &mut Vec<Waiting>, mut copy: impl FnMut(&Waiting)) -> Option<Run> {
    let first = waiting.first()?;
    let run = Run { class: first.class, addresses: first.addresses, stride: first.payload.len() };
    let (mut len, mut is_open) = (0, true);
    waiting.retain(|datagram| {
        if datagram.addresses != run.addresses {
            return true;
        }
        let own = datagram.payload.len();
        // The one of the run itself is taken in any case.
        let fits = len == 0
            || own > 0
                && own <= run.stride
                && len + own <= MAX_SUPERFRAME_LEN_BYTES
                && datagram.class == run.class;
        if !is_open || !fits {
            // What comes after must not overtake this one.
            is_open = false;
            return true;
        }
        len += own;
        is_open = own == run.stride && own > 0;
        copy(datagram);
        false
    });
    Some(run)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use proptest::prelude::*;

    use super::*;

    fn datagram(frame: u32, sender: u8, class: Class, len: usize) -> Waiting {
        let addresses = FrameAddresses {
            source_mac: [sender; 6],
            destination_mac: [4; 6],
            source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, sender), 5000),
            destination: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 254), 7711),
        };
        Waiting { class, addresses, frame, payload: 42..42 + len }
    }

    /// Frame numbers and strides of the runs that are taken one after the other.
    fn runs(mut waiting: Vec<Waiting>) -> Vec<(Vec<u32>, usize)> {
        let mut runs = Vec::new();
        loop {
            let mut frames = Vec::new();
            let Some(run) = take_run(&mut waiting, |datagram| frames.push(datagram.frame)) else {
                return runs;
            };
            runs.push((frames, run.stride));
        }
    }

    #[test]
    fn senders_that_take_turns_are_told_apart() {
        let waiting = (0..6).map(|frame| datagram(frame, (frame % 2) as u8, Class::Data, 100)).collect();
        assert_eq!(runs(waiting), [(vec![0, 2, 4], 100), (vec![1, 3, 5], 100)]);
    }

    #[test]
    fn a_shorter_datagram_ends_a_run_and_a_longer_one_begins_another() {
        let lens = [100, 100, 40, 100, 120, 0, 0, 120];
        let waiting = (0..).zip(lens).map(|(frame, len)| datagram(frame, 1, Class::Data, len)).collect();
        let expected = [
            (vec![0, 1, 2], 100),
            (vec![3], 100),
            (vec![4], 120),
            (vec![5], 0),
            (vec![6], 0),
            (vec![7], 120),
        ];
        assert_eq!(runs(waiting), expected);
    }

    #[test]
    fn classes_do_not_mix() {
        let classes = [Class::Data, Class::Control, Class::Data];
        let waiting = (0..).zip(classes).map(|(frame, class)| datagram(frame, 1, class, 50)).collect();
        assert_eq!(runs(waiting), [(vec![0], 50), (vec![1], 50), (vec![2], 50)]);
    }

    proptest! {
        /// Nothing is lost or repeated, each sender's datagrams keep their order, and each run is a super-frame.
        #[test]
        fn every_batch_is_taken_apart_whole(
            kinds in proptest::collection::vec((0_u8..3, any::<bool>(), 0_usize..4), 0..64),
        ) {
            let class = |is_data| if is_data { Class::Data } else { Class::Control };
            let waiting: Vec<_> = (0..).zip(&kinds).map(|(frame, (sender, is_data, len))| {
                datagram(frame, *sender, class(*is_data), len * 500)
            }).collect();
            let runs = runs(waiting.clone());
            let order: Vec<u32> = runs.iter().flat_map(|(frames, _)| frames.clone()).collect();
            for sender in 0..3 {
                let of_sender = |frame: &&u32| kinds[**frame as usize].0 == sender;
                prop_assert!(order.iter().filter(of_sender).is_sorted());
            }
            let mut all = order;
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..kinds.len() as u32));
            for (frames, stride) in runs {
                let lens: Vec<_> = frames.iter().map(|frame| waiting[*frame as usize].payload.len()).collect();
                let (last, others) = lens.split_last().unwrap();
                prop_assert!(others.iter().all(|len| *len == stride) && *last <= stride);
                let one = |frame: &u32| (kinds[*frame as usize].0, kinds[*frame as usize].1);
                prop_assert!(frames.iter().all(|frame| one(frame) == one(&frames[0])));
            }
        }
    }
}
