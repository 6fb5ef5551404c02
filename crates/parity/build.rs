//! Links Intel ISA-L into the benchmarks where the feature `isal` asks for it, and does nothing otherwise: the library
//! and its tests never need it.

use std::path::Path;

/// Where distributions put the library, beside what the linker searches anyway.
const USUAL: [&str; 5] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/usr/local/lib64"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=ISAL_LIB_DIR");
    if std::env::var_os("CARGO_FEATURE_ISAL").is_none() {
        return;
    }
    let named = std::env::var("ISAL_LIB_DIR").ok();
    let places = named.iter().map(String::as_str).chain(USUAL);
    let holds = |place: &&str| ["libisal.so", "libisal.a"].iter().any(|name| Path::new(place).join(name).exists());
    match places.into_iter().find(|place| holds(place)) {
        Some(place) => println!("cargo:rustc-link-arg-benches=-L{place}"),
        // Not an error here, so that checking with all features works without the library; linking will say so.
        None => println!("cargo:warning=feature `isal`: libisal not found; install libisal-dev or set ISAL_LIB_DIR"),
    }
    println!("cargo:rustc-link-arg-benches=-lisal");
}
