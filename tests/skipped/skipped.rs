//! Counts the tests of this run of cargo that were skipped, and lists what to install.
//! [`testkit::needs`] writes the list.

#![allow(clippy::print_stdout, reason = "the report")]

use std::collections::BTreeSet;

fn main() {
    let list = testkit::needs::list();
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    // A test that is skipped in parts may report the same twice.
    let lines: BTreeSet<&str> = text.lines().collect();
    lines.iter().for_each(|line| println!("{line}"));
    let tests: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| Some(line.split_once(": ")?.0))
        .collect();
    println!("{} tests were skipped, whole or in part", tests.len());
    let packages: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| line.split_once("; install "))
        .flat_map(|(_, names)| names.split(' '))
        .collect();
    if !packages.is_empty() {
        println!(
            "to run them, install: {}",
            packages.into_iter().collect::<Vec<_>>().join(" ")
        );
    }
    let _ = std::fs::remove_file(list);
}
