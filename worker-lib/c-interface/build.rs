//! Sets the SONAME of libiswitch.so, by which programs find the library at run time.

/// Returns the version of the binary interface, such as "0.1" or "1": the part of the package version that every
/// incompatible change increments under Semantic Versioning.
fn interface_version(major: &str, minor: &str) -> String {
    if major == "0" { format!("0.{minor}") } else { major.to_owned() }
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("Cargo sets {name}"));
    let version =
        interface_version(&variable("CARGO_PKG_VERSION_MAJOR"), &variable("CARGO_PKG_VERSION_MINOR"));
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libiswitch.so.{version}");
}
