//! Joins the counts of several runs.

use crate::evaluate::output::{self, Output};
use anyhow::{Context as _, Result, anyhow, bail};
use score::{Merger, Report};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use stdio::Status;

/// The longest part, in bytes. The counts of a part do not grow with its streams, only with the
/// checkers and groups.
const LONGEST: u64 = 256 << 20;

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Files that hold what runs of --partial wrote, any number of parts in each; without files,
    /// standard input
    #[arg(value_name = "PART")]
    pub parts: Vec<PathBuf>,
    /// Write the sum as one part again, to be joined with others, and no report
    #[arg(long, conflicts_with_all = ["format", "output", "require", "by"])]
    pub partial: bool,
    #[command(flatten)]
    pub output: output::Args,
}

/// Joins the parts, and writes the report that one run over all of their streams writes; the status
/// is that of such a run.
///
/// # Errors
/// What is wrong with the arguments, a file or a part.
pub fn merge(args: &Args) -> Result<Status> {
    let mut sum = Sum {
        merger: Merger::new(env!("CARGO_PKG_VERSION")),
        places: Vec::new(),
    };
    let standard_input = [PathBuf::from("-")];
    for file in if args.parts.is_empty() {
        &standard_input[..]
    } else {
        &args.parts
    } {
        sum.add_file(file)?;
    }
    let Some(total) = sum.merger.total() else {
        bail!(
            "no part in {}; write parts with tc-eval --partial",
            names(&args.parts)
        );
    };
    let mut out = stdio::Output::new();
    if args.partial {
        out.put(total.line()?.as_bytes())?;
        out.put(b"\n")?;
        out.flush()?;
        return Ok(Status::Done);
    }
    let report = Report::of(total.tally());
    let unreadable = report.unreadable;
    if unreadable > 0 {
        let recordings = if unreadable == 1 {
            "recording"
        } else {
            "recordings"
        };
        let text = format!(
            "{unreadable} {recordings} could not be read, which the run that counted the part names"
        );
        stdio::message("tc-eval", &text);
    } else if total.tally().streams() == 0 {
        bail!(
            "no stream was counted in {}; name a corpus with labels",
            names(&args.parts)
        );
    }
    let output = Output::open(&args.output, total.tally().checkers(), false, true)?;
    let status = output.write(report, &mut out)?;
    Ok(if unreadable > 0 {
        Status::Error
    } else {
        status
    })
}

/// The files that were typed, for messages.
fn names(files: &[PathBuf]) -> String {
    match files {
        [] => "standard input".to_owned(),
        _ => files
            .iter()
            .map(|file| file.display().to_string())
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// The sum of the parts so far.
struct Sum {
    merger: Merger,
    /// Each file with the number of its first part.
    places: Vec<(u32, String)>,
}

impl Sum {
    fn add_file(&mut self, path: &Path) -> Result<()> {
        let (name, file): (_, Box<dyn Read>) = if path == Path::new("-") {
            stdio::check_input()?;
            (
                "standard input".to_owned(),
                Box::new(std::io::stdin().lock()),
            )
        } else {
            let name = path.display().to_string();
            let file = File::open(path)
                .map_err(|e| anyhow!("{name}: {e}; check the path and its permissions"))?;
            (name, Box::new(file))
        };
        self.places.push((self.merger.parts(), name.clone()));
        let mut file = BufReader::with_capacity(64 << 10, file);
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let read = file.by_ref().take(LONGEST + 1).read_until(b'\n', &mut line);
            let read =
                read.map_err(|e| anyhow!("{name}: {e}; check the path and its permissions"))?;
            if read == 0 {
                break;
            }
            let place = || format!("{name}, line {number}");
            if read as u64 > LONGEST {
                bail!(
                    "{}: longer than a part; give what tc-eval --partial wrote",
                    place()
                );
            }
            if !line.trim_ascii().is_empty() {
                let places = &self.places;
                self.merger
                    .add(&line, |part| describe(places, part))
                    .with_context(place)?;
            }
        }
        Ok(())
    }
}

/// Where a part is, by its number.
fn describe(places: &[(u32, String)], part: u32) -> String {
    let after = places.partition_point(|(first, _)| *first <= part);
    let Some((first, name)) = after.checked_sub(1).and_then(|place| places.get(place)) else {
        return String::new();
    };
    format!("part {} of {name}", part - first + 1)
}
