//! The build script of every command: links it without relocations that each start would apply.
//!
//! A position-independent executable of this size has tens of thousands of relative relocations,
//! and applying them takes longer than all else that a filter does when it starts. The stack, the
//! heap and the libraries keep their random addresses; see docs/security.md.

#![allow(clippy::print_stdout)] // what a build script tells Cargo

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=../link.rs");
    let is = |name: &str, value: &str| var(name).is_ok_and(|v| v == value);
    // A static executable is made by `-C relocation-model=static`, as bin/release does.
    let is_static = var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|all| all.contains("crt-static"));
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
