//! Writes a report in the forms that were asked for, and checks what is required of it.

use crate::draft::LabelDraft;
use anyhow::{Context as _, Result, anyhow, bail};
use clap::ValueEnum;
use score::{Dimension, Report, Requirement, RequirementVerdict, forms};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use stdio::Status;

/// The options of the report.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// The form of the report [default: table]
    #[arg(short, long, value_name = "FORM", value_enum)]
    pub format: Option<ReportForm>,
    /// Of the table and of Markdown only the summary, with a row for each checker, and what is
    /// required
    #[arg(long)]
    pub summary: bool,
    /// Write the report to a file, in the form of its ending (.txt, .json, .xml, .md, .html), or in
    /// that of --format if the file has another ending or none; may be given several times, `-` is
    /// standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
    /// End with 1 unless this holds: a metric of all checkers, of one (`auto:recall>=99.5%`) or of
    /// a group (`recall{api=gemini}>=0.9`); may be given several times
    #[arg(long, value_name = "REQUIREMENT")]
    pub require: Vec<String>,
    /// Split the report by api, provider, model, tag or corpus; may be given several times
    /// [default: api, and in JSON all]
    #[arg(long, value_name = "GROUP", value_parser = dimension)]
    pub by: Vec<Dimension>,
}

/// The forms of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportForm {
    /// Tables for a terminal
    Table,
    /// One JSON object with all that is known
    Json,
    /// JUnit XML for CI systems: a test for each requirement
    Junit,
    /// Markdown for the summary of a CI job
    Markdown,
    /// One page of HTML with plots, without scripts
    Html,
}

/// Where the report goes, and what is required of it.
#[derive(Debug)]
pub(crate) struct ReportOutput {
    files: Vec<(ReportForm, PathBuf, LabelDraft)>,
    stdout: Option<ReportForm>,
    requirements: Vec<Requirement>,
    by: Vec<Dimension>,
    is_summary: bool,
}

impl ReportOutput {
    /// Opens the files and reads the requirements before the first stream is read, so that a
    /// mistake shows at once. A file keeps its old content until the report is complete. Standard
    /// output gets a report if `has_stdout`, and no file was named or `-` was.
    ///
    /// # Errors
    /// When a file cannot be created or its ending names no form, or a requirement names a metric
    /// or a checker that does not exist.
    pub(crate) fn open(
        args: &Args,
        checkers: &[String],
        has_baseline: bool,
        has_stdout: bool,
    ) -> Result<Self> {
        let mut requirements = Vec::new();
        for text in &args.require {
            let named = || format!("--require '{text}'");
            let requirement = Requirement::parse(text).with_context(named)?;
            requirement.check_name(checkers).with_context(named)?;
            if requirement.needs_baseline() && !has_baseline {
                bail!(
                    "{}: a comparison with an earlier run, add --baseline FILE",
                    named()
                );
            }
            requirements.push(requirement);
        }
        let mut output = Self {
            files: Vec::new(),
            stdout: None,
            requirements,
            by: args.by.clone(),
            is_summary: args.summary,
        };
        let of_stdout = Some(args.format.unwrap_or(ReportForm::Table));
        if args.output.is_empty() {
            output.stdout = of_stdout;
        }
        for path in &args.output {
            if path.as_os_str() == "-" {
                output.stdout = of_stdout;
                continue;
            }
            let form = form_of(path, args.format)?;
            let draft = LabelDraft::create(path).map_err(|error| unwritable(path, &error))?;
            output.files.push((form, path.clone(), draft));
        }
        output.stdout = output.stdout.filter(|_| has_stdout);
        Ok(output)
    }

    /// Checks the requirements, writes the report in all forms, and a line on standard error for
    /// each requirement that is missed and for each stream that a checker had right in the
    /// baseline. Returns [`Status::No`] if there is any, else [`Status::Done`].
    ///
    /// A requirement on `baseline.broken` or `baseline.p` replaces the rule that no stream may
    /// break.
    ///
    /// # Errors
    /// Fails if the report cannot be written.
    pub(crate) fn write(self, mut report: Report, out: &mut stdio::Output) -> Result<Status> {
        report.verdicts = self
            .requirements
            .iter()
            .flat_map(|requirement| requirement.check(&report))
            .collect();
        let mut failures: Vec<String> = report
            .verdicts
            .iter()
            .filter(|verdict| !verdict.is_met)
            .map(RequirementVerdict::message)
            .collect();
        let is_replaced = self
            .requirements
            .iter()
            .any(Requirement::is_about_regressions);
        if let Some(baseline) = report.baseline.as_ref().filter(|_| !is_replaced) {
            failures.extend(forms::regressions(baseline));
        }
        if !self.by.is_empty() {
            report.groups.retain(|group| self.by.contains(&group.by));
        }
        let by = if self.by.is_empty() {
            vec![Dimension::Api]
        } else {
            self.by
        };
        let terminal = stdio::terminal();
        let text = |form: ReportForm, is_stdout: bool| {
            let terminal = terminal.filter(|_| is_stdout);
            anyhow::Ok(match form {
                ReportForm::Json => forms::json(&report)?,
                ReportForm::Junit => forms::junit(&report),
                ReportForm::Markdown => forms::markdown(&report, &by, self.is_summary),
                ReportForm::Html => forms::html(&report),
                ReportForm::Table => {
                    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
                    let layout = forms::Layout {
                        by: by.clone(),
                        is_summary: self.is_summary,
                        width: terminal.map_or(80, |(columns, _)| columns),
                        has_colour: terminal.is_some() && !no_colour,
                    };
                    forms::table(&report, &layout)
                }
            })
        };
        for (form, path, mut draft) in self.files {
            let written = text(form, false)?;
            draft
                .write_all(written.as_bytes())
                .map_err(|error| unwritable(&path, &error))?;
            draft.finish().map_err(|error| unwritable(&path, &error))?;
        }
        // Printed before standard output is written, whose reader may have exited.
        for failure in &failures {
            stdio::message("tc-eval", failure);
        }
        let shown = self.stdout.map(|form| text(form, true)).transpose()?;
        let shown = shown.unwrap_or_default();
        match out.put(shown.as_bytes()).and_then(|()| out.flush()) {
            // A missed requirement counts even if the reader of the report has exited.
            Err(stdio::Failure::Gone) if !failures.is_empty() => {}
            written => written?,
        }
        Ok(if failures.is_empty() {
            Status::Done
        } else {
            Status::No
        })
    }
}

/// The file extensions that select a form.
const ENDINGS: [(&str, ReportForm); 7] = [
    ("txt", ReportForm::Table),
    ("json", ReportForm::Json),
    ("xml", ReportForm::Junit),
    ("md", ReportForm::Markdown),
    ("markdown", ReportForm::Markdown),
    ("html", ReportForm::Html),
    ("htm", ReportForm::Html),
];

/// The form that the name of a file asks for, or else the one that was `asked` for. A name without
/// an ending, such as `/dev/fd/3`, asks for none.
///
/// # Errors
/// Fails if the extension is unknown and no form was requested.
fn form_of(path: &Path, asked: Option<ReportForm>) -> Result<ReportForm> {
    let Some(ending) = path.extension() else {
        return Ok(asked.unwrap_or(ReportForm::Table));
    };
    let named = ENDINGS
        .iter()
        .find(|(name, _)| ending.eq_ignore_ascii_case(name));
    named.map(|(_, form)| *form).or(asked).ok_or_else(|| {
        let endings = ENDINGS.map(|(name, _)| format!(".{name}")).join(", ");
        anyhow!(
            "--output {}: unknown ending, use one of {endings}, or name the form with --format",
            path.display()
        )
    })
}

fn dimension(name: &str) -> Result<Dimension, String> {
    name.parse()
        .map_err(|()| format!("one of {}", Dimension::ALL.map(Dimension::name).join(", ")))
}

fn unwritable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    anyhow!(
        "{}: {error}, check the folder, its permissions and the free space",
        path.display()
    )
}
