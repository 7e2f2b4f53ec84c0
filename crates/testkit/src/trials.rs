//! A test for each file or folder of fixtures, named after it, with the command line of `cargo
//! test`.
//!
//! `cargo test --test fixtures NAME` runs the tests whose name contains NAME; `--exact`, `--skip
//! NAME`, `--list` and `--test-threads N` work as usual. The crate libtest-mimic is not used, since
//! it enables clap's default features: the commands under test would then be built differently from
//! the shipped ones.

#![allow(clippy::print_stdout, reason = "the report of the tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The test of one fixture.
pub struct Trial<'a> {
    name: String,
    check: Box<dyn Fn() -> Vec<String> + Sync + 'a>,
}

/// Returns the tests `KIND/NAME` for `all`, which are pairs of a name and a fixture. `check`
/// returns the faults of a fixture.
pub fn each<'a, T: Sync + 'a>(
    kind: &str,
    all: Vec<(String, T)>,
    check: impl Fn(&T) -> Vec<String> + Sync + Copy + 'a,
) -> Vec<Trial<'a>> {
    assert!(!all.is_empty(), "{kind}: no fixtures");
    all.into_iter()
        .map(|(name, item)| Trial {
            name: format!("{kind}/{name}"),
            check: Box::new(move || check(&item)),
        })
        .collect()
}

/// Runs the tests that the command line selects, and reports their faults.
pub fn run<'a>(all: impl IntoIterator<Item = Vec<Trial<'a>>>) -> ExitCode {
    let mut all: Vec<Trial<'_>> = all.into_iter().flatten().collect();
    let count = all.len();
    let options = Options::typed();
    all.retain(|trial| options.selects(&trial.name));
    if options.list {
        all.iter()
            .for_each(|trial| println!("{}: test", trial.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", all.len());
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let start = Instant::now();
    let work = || {
        while let Some(Trial { name, check }) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let wrong = catch_unwind(AssertUnwindSafe(check))
                .unwrap_or_else(|_| vec!["panicked".to_owned()]);
            println!(
                "test {name} ... {}",
                if wrong.is_empty() { "ok" } else { "FAILED" }
            );
            if !wrong.is_empty() {
                failures
                    .lock()
                    .expect("no thread panics here")
                    .push((name, wrong));
            }
        }
    };
    std::thread::scope(|scope| (0..options.threads).for_each(|_| drop(scope.spawn(work))));
    let mut failures = failures.into_inner().expect("no thread panics here");
    failures.sort();
    for (name, wrong) in &failures {
        println!("\n---- {name}\n  {}", wrong.join("\n  "));
    }
    let failed = failures.len();
    if failed > 0 {
        println!("\n{}", crate::places::sampled());
    }
    let passed = all.len() - failures.len();
    println!(
        "\ntest result: {}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        if failed == 0 { "ok" } else { "FAILED" },
        count - all.len(),
        start.elapsed().as_secs_f64()
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(101)
    }
}

/// The arguments after `cargo test --test NAME`; options without a meaning here are ignored.
#[derive(Default)]
struct Options {
    names: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    ignored: bool,
    list: bool,
    threads: usize,
}

impl Options {
    fn typed() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Options {
            threads,
            ..Options::default()
        };
        let mut args = std::env::args()
            .skip(1)
            .flat_map(|arg| match arg.split_once('=') {
                Some((option, value)) if option.starts_with("--") => {
                    vec![option.to_owned(), value.to_owned()]
                }
                _ => vec![arg],
            });
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--skip" => options.skip.extend(args.next()),
                "--test-threads" => {
                    options.threads = args.next().and_then(|n| n.parse().ok()).unwrap_or(threads)
                }
                "--format" | "--color" | "--logfile" | "-Z" => drop(args.next()),
                "--exact" => options.exact = true,
                "--ignored" => options.ignored = true,
                "--list" => options.list = true,
                _ if arg.starts_with('-') => {}
                _ => options.names.push(arg),
            }
        }
        options
    }

    fn selects(&self, name: &str) -> bool {
        let matches = |wanted: &String| {
            if self.exact {
                name == wanted
            } else {
                name.contains(wanted.as_str())
            }
        };
        !self.ignored
            && (self.names.is_empty() || self.names.iter().any(matches))
            && !self.skip.iter().any(matches)
    }
}
