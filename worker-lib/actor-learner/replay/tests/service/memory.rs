//! Tests that memory stays bounded, regardless of what clients do.

use bytes::Bytes;
use iswitch_replay::proto::replay_client::ReplayClient as Stub;
use iswitch_replay::proto::{DescribeRequest, InsertRequest, NewItem, SampleRequest};
use tonic::Code;
use tonic::transport::Channel;

use crate::support::{Process, address, stub};

const MIB: u64 = 1 << 20;
const MEMORY: u64 = 64 * MIB;
/// Memory that the process may use in addition to the configured limit: for the program, its threads, the allocator's
/// free lists, and the windows of the connections.
const BESIDE: u64 = 96 * MIB;

async fn insert(stub: &Stub<Channel>, actor: u64, seq: u64) -> Result<Vec<u64>, tonic::Status> {
    let item = NewItem { priority: 1.0, version: 0, payload: Bytes::from(vec![1; MIB as usize]) };
    let request = InsertRequest {
        table: "t".to_owned(),
        actor,
        session: 1,
        first_seq: seq,
        items: vec![item],
        wait_ms: 300,
    };
    Ok(stub.clone().insert(request).await?.into_inner().keys)
}

async fn sample_one(stub: &Stub<Channel>) -> Result<Bytes, tonic::Status> {
    let request = SampleRequest { table: "t".to_owned(), count: 1, wait_ms: 300 };
    let mut parts = stub.clone().sample(request).await?.into_inner();
    let part = parts.message().await?.ok_or_else(|| tonic::Status::unknown("a response without a part"))?;
    Ok(part.items[0].payload.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_bounded_under_excess_inserts_and_slow_readers() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let arguments =
        ["--table", "name=t,capacity=1000,when_full=wait", "--memory-max", "64MiB", "--item-max", "1MiB"];
    let shard = Process::start(&socket, &arguments);
    let first = stub(address(&socket));

    // Many actors write more than the shard can hold.
    let mut writers = tokio::task::JoinSet::new();
    for actor in 0..120 {
        let stub = stub(address(&socket));
        writers.spawn(async move {
            let mut stored = 0;
            for seq in 0..2 {
                match insert(&stub, actor, seq).await {
                    Ok(keys) => stored += keys.len() as u64,
                    Err(status) => {
                        let code = status.code();
                        assert!(
                            matches!(code, Code::ResourceExhausted | Code::DeadlineExceeded),
                            "{status:?}"
                        );
                        assert!(status.message().contains("within 300 ms"), "{status:?}");
                    }
                }
            }
            stored
        });
    }
    let stored: u64 = writers.join_all().await.into_iter().sum();
    let described = first.clone().describe(DescribeRequest {}).await.unwrap().into_inner();
    assert_eq!(described.tables[0].extent.unwrap().size, stored);
    assert!(stored >= 40, "{stored} items of a MiB in a table of 48 MiB");
    assert!(described.memory.unwrap().used_bytes <= MEMORY);
    assert!(shard.resident_bytes() < MEMORY + BESIDE, "{} bytes", shard.resident_bytes());

    // Readers request gigabytes and read nothing.
    let mut readers = Vec::new();
    for _ in 0..60 {
        let mut stub = stub(address(&socket));
        let request = SampleRequest { table: "t".to_owned(), count: 100_000, wait_ms: 300 };
        readers.push(stub.sample(request).await.unwrap().into_inner());
    }
    // The error of the first waiting request names the slow readers; those of later requests name the queue.
    loop {
        let status = sample_one(&first).await.unwrap_err();
        assert!(matches!(status.code(), Code::ResourceExhausted | Code::DeadlineExceeded), "{status:?}");
        if status.message().contains("readers are too slow") {
            break;
        }
    }
    let described = first.clone().describe(DescribeRequest {}).await.unwrap().into_inner();
    let memory = described.memory.unwrap();
    assert!(memory.used_bytes <= MEMORY && memory.sending_bytes <= memory.sending_max_bytes, "{memory:?}");
    assert!(shard.resident_bytes() < MEMORY + BESIDE, "{} bytes", shard.resident_bytes());

    // Once the slow readers have disconnected, other requests succeed.
    drop(readers);
    let payload = loop {
        if let Ok(payload) = sample_one(&first).await {
            break payload;
        }
    };
    assert_eq!(payload.len() as u64, MIB);
}
