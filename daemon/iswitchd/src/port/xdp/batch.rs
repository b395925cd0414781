//! Groups the frames of a batch by sender.
//!
//! The core works best on super-frames, but AF_XDP delivers single frames. The frames from one sender are therefore
//! gathered, even if the frames from several senders arrive interleaved.

use std::ops::Range;

use iswitch_protocol::limits::{MAX_SUPERFRAME_DATAGRAMS, MAX_SUPERFRAME_LEN_BYTES};
use iswitch_protocol::wire::{Class, FrameAddresses};

/// Maximum number of frames in a batch: as many as a super-frame may contain.
pub(super) const BATCH_FRAMES: u32 = MAX_SUPERFRAME_DATAGRAMS as u32;

/// A datagram in one of the frames of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Class that the ToS of the datagram indicates.
    pub(super) class: Class,
    /// Sender and destination.
    pub(super) addresses: FrameAddresses,
    /// Position of the frame in the batch.
    pub(super) frame: u32,
    /// Position of the payload in the frame.
    pub(super) payload: Range<usize>,
}

/// Result of [`take_run`]: datagrams from one sender, all of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Class of the datagrams.
    pub(super) class: Class,
    /// Sender and destination of the datagrams.
    pub(super) addresses: FrameAddresses,
    /// Length of each datagram except the last, which may be shorter, in bytes.
    pub(super) stride: usize,
}

/// Removes the first datagram, together with the following datagrams from the same sender that fit into the same
/// super-frame. Calls `copy` with each removed datagram in order. The datagrams from a sender keep their order.
pub(super) fn take_run(waiting: &mut Vec<Waiting>, mut copy: impl FnMut(&Waiting)) -> Option<Run> {
    let first = waiting.first()?;
    let run = Run { class: first.class, addresses: first.addresses, stride: first.payload.len() };
    let (mut len, mut is_open) = (0, true);
    waiting.retain(|datagram| {
        if datagram.addresses != run.addresses {
            return true;
        }
        let own = datagram.payload.len();
        // The first datagram of the run is always taken.
        let fits = len == 0
            || own > 0
                && own <= run.stride
                && len + own <= MAX_SUPERFRAME_LEN_BYTES
                && datagram.class == run.class;
        if !is_open || !fits {
            // Later datagrams must not overtake this one.
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

    /// Returns the frame numbers and the strides of the runs that are taken in succession.
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
    fn alternating_senders_form_separate_runs() {
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
    fn packet_classes_are_never_mixed_in_a_run() {
        let classes = [Class::Data, Class::Control, Class::Data];
        let waiting = (0..).zip(classes).map(|(frame, class)| datagram(frame, 1, class, 50)).collect();
        assert_eq!(runs(waiting), [(vec![0], 50), (vec![1], 50), (vec![2], 50)]);
    }

    proptest! {
        /// No datagram is lost or repeated, the datagrams from each sender keep their order, and each run is a
        /// super-frame.
        #[test]
        fn every_batch_is_split_completely(
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
