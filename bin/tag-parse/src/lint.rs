//! `--lint`: what leaked into recorded text, one line a finding, as compilers write.

use crate::args::Args;
use stdio::{Failure, Input, InputBlock, Output, Status, StopSignals};
use tag::lint::recorded::Recorded;
use tag::lint::{Finding, Lint};

/// Reads all inputs and writes what leaked into them.
///
/// # Errors
/// A dialect that is not known, an input that cannot be read, or an output that cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<Status> {
    let lint = Lint::new(&args.look()?);
    let mut input = Input::open(&args.files, args.common.max_line)?;
    let signals = StopSignals::new().ok();
    let mut report = LintReport {
        out: Output::new(),
        findings: 0,
        quiet: args.quiet,
        failed: None,
    };
    loop {
        let file = input.now();
        let mut recorded = Recorded::new(&lint);
        let mut number = 0;
        while let Some(block) = input.block(signals.as_ref(), &mut || report.flush())? {
            let lines = match block {
                InputBlock::Lines(bytes) => bytes,
                // Of a line that is too long the beginning is searched.
                InputBlock::TooLong(start, _) => start,
            };
            for line in lines
                .strip_suffix(b"\n")
                .unwrap_or(lines)
                .split(|c| *c == b'\n')
            {
                number += 1;
                let line = String::from_utf8_lossy(line);
                recorded.line(number, line.trim_end_matches('\r'), &mut |at, finding| {
                    report.add(&file, at, &finding)
                });
            }
            if report.is_settled() {
                return Ok(Status::No);
            }
        }
        recorded.finish(&mut |at, finding| report.add(&file, at, &finding));
        if signals.as_ref().is_some_and(|s| s.seen().is_some())
            || report.is_settled()
            || !input.advance()
        {
            break;
        }
    }
    report.flush()?;
    Ok(match signals.and_then(|s| s.seen()) {
        Some(signal) => Status::Signal(signal),
        None if report.findings > 0 => Status::No,
        None => Status::Done,
    })
}

/// What is written.
struct LintReport {
    out: Output,
    findings: u64,
    quiet: bool,
    failed: Option<Failure>,
}

impl LintReport {
    fn add(&mut self, file: &str, number: u64, finding: &Finding) {
        self.findings += 1;
        if self.quiet {
            return;
        }
        let Finding {
            marker,
            meaning,
            excerpt,
            ..
        } = finding;
        let line = format!("{file}:{number}: {marker} ({meaning}): {excerpt}\n");
        if self.failed.is_none() {
            self.failed = self.out.put(line.as_bytes()).err();
        }
    }

    /// Whether nothing that follows matters: only the status is asked for, and it is known.
    fn is_settled(&self) -> bool {
        self.quiet && self.findings > 0
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.failed.take().map_or(Ok(()), Err)?;
        self.out.flush()
    }
}
