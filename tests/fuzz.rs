//! What fuzzing found: each file of `fuzz/findings/TARGET` is an input for which a law of that
//! target did not hold. All laws hold for all of them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::nonminimal_bool,
    reason = "a test may panic and print; a law is read as it is written"
)]

#[allow(
    unreachable_pub,
    reason = "the crate `fuzz` uses the laws from outside"
)]
#[path = "../fuzz/src/laws/mod.rs"]
mod laws;

use laws::{TARGETS, Turn};
use std::path::Path;

#[test]
fn what_fuzzing_found_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/findings");
    for folder in std::fs::read_dir(&root).unwrap().map(Result::unwrap) {
        let name = folder.file_name().into_string().unwrap();
        let target = TARGETS
            .iter()
            .find(|target| target.name == name)
            .unwrap_or_else(|| panic!("no target {name}"));
        for file in std::fs::read_dir(folder.path())
            .unwrap()
            .map(Result::unwrap)
        {
            println!("{name}/{}", file.file_name().display());
            (target.check)(&std::fs::read(file.path()).unwrap(), Turn::All);
        }
    }
}
