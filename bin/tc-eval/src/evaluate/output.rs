//! Writes the report of a run.

use anyhow::Result;
use score::{BaselineReport, Report, Tally};
use stdio::{Output, Status};

/// How the report is written.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {}

/// Writes the report of `tally`; `baseline` is what changed since an earlier run. 1 when a checker got worse.
///
/// # Errors
/// Failures of standard output.
pub fn write(_: &Args, tally: &Tally, baseline: Option<BaselineReport>, out: &mut Output) -> Result<Status> {
    let has_regressions = baseline.as_ref().is_some_and(BaselineReport::has_regressions);
    let report = Report { baseline, ..Report::of(tally) };
    out.put(serde_json::to_string(&report)?.as_bytes())?;
    out.put(b"\n")?;
    out.flush()?;
    Ok(if has_regressions { Status::No } else { Status::Done })
}
