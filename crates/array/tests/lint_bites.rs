//! The sans-IO lint bites: a crate that breaks the rule fails `cargo clippy` under our `clippy.toml`, offence by offence.

// This test runs a process and writes files, which the rule forbids to the crate it tests.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What must be refused: a line of Rust, and what the lint must name.
const OFFENCES: [(&str, &str); 17] = [
    ("let _ = std::time::Instant::now();", "std::time::Instant::now"),
    ("let _ = std::time::SystemTime::now();", "std::time::SystemTime::now"),
    ("std::thread::sleep(core::time::Duration::ZERO);", "std::thread::sleep"),
    ("std::thread::spawn(|| ());", "std::thread::spawn"),
    ("std::thread::scope(|_| ());", "std::thread::scope"),
    ("let _ = std::fs::File::open(\"x\");", "std::fs::File"),
    ("let _ = std::fs::OpenOptions::new();", "std::fs::OpenOptions"),
    ("let _ = std::fs::read(\"x\");", "std::fs::read"),
    ("let _ = std::fs::write(\"x\", \"\");", "std::fs::write"),
    ("let _ = std::net::TcpStream::connect(\"x:1\");", "std::net::TcpStream"),
    ("let _ = std::process::Command::new(\"x\");", "std::process::Command"),
    ("let _ = std::env::var(\"x\");", "std::env::var"),
    ("let _ = std::hash::RandomState::new();", "std::hash::RandomState"),
    ("let _ = std::collections::HashMap::<u8, u8>::new();", "std::collections::HashMap"),
    ("let _ = std::collections::HashSet::<u8>::new();", "std::collections::HashSet"),
    ("let _ = 2f64.ln();", "f64::ln"),
    ("let _ = 2f64.powf(0.5);", "f64::powf"),
];

fn crates() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Whether clippy can be run at all; a toolchain without it skips these tests, and says so.
fn clippy_is_there() -> bool {
    let there = cargo().args(["clippy", "--version"]).output().is_ok_and(|o| o.status.success());
    if !there {
        eprintln!("skipped: this toolchain has no clippy");
    }
    there
}

fn cargo() -> Command {
    Command::new(option_env!("CARGO").unwrap_or("cargo"))
}

/// Runs clippy on a crate of its own, made of `body`, under our rules.
fn clippy(name: &str, body: &str) -> Output {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(dir.join("src")).expect("a folder for the crate");
    let manifest = format!("[package]\nname = \"{name}\"\nedition = \"2021\"\n[workspace]\n");
    std::fs::write(dir.join("Cargo.toml"), manifest).expect("a manifest");
    std::fs::write(dir.join("src/lib.rs"), format!("//! Made by a test.\n{body}")).expect("a source");
    std::fs::copy(crates().join("clippy.toml"), dir.join("clippy.toml")).expect("our rules");
    let mut run = cargo();
    run.current_dir(&dir).env("CARGO_TARGET_DIR", dir.join("target")).env_remove("CLIPPY_CONF_DIR");
    run.args(["clippy", "--offline", "--quiet", "--", "-D", "warnings"]).output().expect("cargo runs")
}

#[test]
fn every_offence_is_named() {
    if !clippy_is_there() {
        return;
    }
    let line = |(i, (offence, _)): (usize, &(&str, &str))| format!("pub fn f{i}() {{ {offence} }}\n");
    let output = clippy("lint_bites", &OFFENCES.iter().enumerate().map(line).collect::<String>());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "clippy accepted a crate that breaks the rule");
    for (offence, named) in OFFENCES {
        let refused = |kind| said.contains(&format!("use of a disallowed {kind} `{named}`"));
        assert!(refused("method") || refused("type"), "not refused: {offence}\n{said}");
    }
    assert!(!said.contains("does not refer to"), "a path in clippy.toml names nothing:\n{said}");
}

#[test]
fn an_innocent_crate_passes() {
    if !clippy_is_there() {
        return;
    }
    let output = clippy("lint_spares", "/// Nothing.\npub fn f(x: f64) -> f64 {\n    x.sqrt()\n}\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn no_sans_io_crate_has_rules_of_its_own() {
    for name in ["types", "array", "load", "device", "sim", "cell", "web"] {
        assert!(!crates().join(name).join("clippy.toml").exists(), "{name} has a clippy.toml of its own");
    }
}
