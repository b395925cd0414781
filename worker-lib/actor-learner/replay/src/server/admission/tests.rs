use super::*;
use http_body_util::{BodyExt as _, StreamBody};
use proptest::prelude::*;

fn admission(memory_bytes: u64) -> Admission {
    let memory = Arc::new(Semaphore::new(memory_bytes as usize));
    Admission { memory, memory_bytes, message_max_bytes: 1 << 20 }
}

fn message(len: usize) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&(len as u32).to_be_bytes());
    bytes.resize(PREFIX_BYTES + len, 7);
    bytes
}

fn body(frames: Vec<Vec<u8>>) -> impl Body<Data = Bytes, Error = std::convert::Infallible> + Unpin {
    let frames = frames.into_iter().map(|frame| Ok(Frame::data(Bytes::from(frame))));
    StreamBody::new(tokio_stream::iter(frames))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

proptest! {
    /// Tests that the bytes arrive unchanged regardless of how they are split into frames, and that memory is reserved
    /// only for long messages.
    #[test]
    fn request_bytes_arrive_unchanged_and_are_accounted_for(
        lens in prop::collection::vec(0_usize..40_000, 1..6),
        cuts in prop::collection::vec(1_usize..30_000, 1..12),
    ) {
        let bytes = lens.iter().flat_map(|len| message(*len)).collect::<Vec<_>>();
        let mut frames = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (frame, left) = rest.split_at((*cut).min(rest.len()));
            frames.push(frame.to_vec());
            rest = left;
        }
        let admission = admission(1 << 20);
        let (admitted, share) = admission.admit(body(frames));
        let received = runtime().block_on(admitted.collect()).unwrap().to_bytes();
        prop_assert_eq!(&received[..], &bytes[..]);
        let taken = (1 << 20) - admission.memory.available_permits();
        prop_assert!(taken <= lens.iter().sum::<usize>());
        let long: usize = lens.iter().filter(|len| **len as u64 > SMALL_REQUEST_BYTES).sum();
        prop_assert!(taken >= long);
        drop(share);
        prop_assert_eq!(admission.memory.available_permits(), 1 << 20);
    }
}

#[test]
fn a_request_without_available_memory_is_refused_with_the_reason() {
    let admission = admission(50_000);
    let all = Arc::clone(&admission.memory).try_acquire_many_owned(20_000).unwrap();
    let (admitted, _share) = admission.admit(body(vec![message(40_000)]));
    let status = runtime().block_on(admitted.collect()).unwrap_err();
    assert_eq!(status.code(), tonic::Code::ResourceExhausted);
    assert_eq!(
        status.message(),
        "requests hold 20000 of 50000 bytes of memory, and the 40000 bytes needed for this request were not available \
         within 30000 ms"
    );
    drop(all);
    let (admitted, _share) = admission.admit(body(vec![message(40_000)]));
    assert_eq!(runtime().block_on(admitted.collect()).unwrap().to_bytes().len(), 40_005);
}

#[test]
fn an_overlong_request_is_refused_before_it_is_received() {
    let (admitted, _share) =
        admission(1 << 30).admit(body(vec![message(1 << 20), vec![0, 0xff, 0, 0], vec![0]]));
    let status = runtime().block_on(admitted.collect()).unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert!(status.message().starts_with("the request is 4278190080 bytes long, expected at most 1048576"));
}
