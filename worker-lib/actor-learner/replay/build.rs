//! Generates the code of the gRPC services from `proto/`, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(["proto/replay.proto"], ["proto"])?;
    // Payloads are slices of the received message, which avoids a copy.
    let mut code = tonic_prost_build::configure().bytes(".");
    // The response of `describe` is also printed as JSON.
    for message in ["DescribeResponse", "Extent", "JournalInfo", "LatencyInfo", "MemoryInfo", "TableInfo"] {
        code = code.type_attribute(format!("iswitch.replay.v1.{message}"), "#[derive(serde::Serialize)]");
    }
    code.compile_fds(descriptors)?;
    let reverb = protox::compile(["proto/reverb.proto"], ["proto"])?;
    tonic_prost_build::configure().bytes(".").build_server(false).compile_fds(reverb)?;
    Ok(())
}
