//! Code of the gRPC service, from `proto/replay.proto`, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/replay.proto");
    let descriptors = protox::compile(["proto/replay.proto"], ["proto"])?;
    // Payloads are parts of the message that was received: no copy.
    let mut code = tonic_prost_build::configure().bytes(".");
    // What `describe` answers is also printed as JSON.
    for message in ["DescribeResponse", "Extent", "JournalInfo", "LatencyInfo", "MemoryInfo", "TableInfo"] {
        code = code.type_attribute(format!("iswitch.replay.v1.{message}"), "#[derive(serde::Serialize)]");
    }
    code.compile_fds(descriptors)?;
    Ok(())
}
