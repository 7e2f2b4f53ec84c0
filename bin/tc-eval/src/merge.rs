//! Merges the counts of several runs.

use crate::evaluate::output::{self, ReportOutput};
use crate::recordings::unreadable;
use anyhow::{Context as _, Result, bail};
use score::forms::counted;
use score::{Merger, Report};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use stdio::Status;

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
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

/// Merges the parts, and writes the report that a single run over all of their streams would write.
/// The status is that of such a run.
///
/// # Errors
/// Fails if the arguments, a file or a part are invalid.
pub(crate) fn merge(args: &Args) -> Result<Status> {
    let mut merger = Merger::new(env!("CARGO_PKG_VERSION"));
    let mut names = Vec::new();
    let standard_input = [PathBuf::from("-")];
    let files = if args.parts.is_empty() {
        &standard_input[..]
    } else {
        &args.parts
    };
    for path in files {
        let (name, file) = open(path)?;
        add(&mut merger, &name, file)?;
        names.push(name);
    }
    let names = names.join(", ");
    let Some(total) = merger.total() else {
        bail!("no part in {names}; write parts with tc-eval --partial");
    };
    if args.partial {
        crate::print(&format!("{}\n", total.line()?))?;
        return Ok(Status::Done);
    }
    let report = Report::of(&total.tally);
    let unreadable = report.unreadable;
    if unreadable > 0 {
        let text = format!(
            "{} could not be read, which the run that counted the part names",
            counted(unreadable, "recording")
        );
        stdio::message("tc-eval", &text);
    } else if total.tally.streams() == 0 {
        bail!("no stream was counted in {names}; name a corpus with labels");
    }
    let output = ReportOutput::open(&args.output, total.tally.checkers(), false, true)?;
    let status = output.write(report, &mut stdio::Output::new())?;
    Ok(if unreadable > 0 {
        Status::Error
    } else {
        status
    })
}

/// Opens a file of parts, and returns it with its name in messages.
fn open(path: &Path) -> Result<(String, Box<dyn Read>)> {
    if path == Path::new("-") {
        return Ok((
            "standard input".to_owned(),
            Box::new(std::io::stdin().lock()),
        ));
    }
    let file = File::open(path).map_err(unreadable(path))?;
    Ok((path.display().to_string(), Box::new(file)))
}

/// Adds the parts of a file, one per line.
fn add(merger: &mut Merger, name: &str, file: Box<dyn Read>) -> Result<()> {
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let place = format!("{name}, line {number}");
        let line = line.map_err(unreadable(Path::new(name)))?;
        if !line.trim().is_empty() {
            merger.add(&line, &place).context(place)?;
        }
    }
    Ok(())
}
