//! Code of the gRPC service, from `proto/replay.proto`, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/replay.proto");
    let descriptors = protox::compile(["proto/replay.proto"], ["proto"])?;
    // Payloads are parts of the message that was received: no copy.
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
