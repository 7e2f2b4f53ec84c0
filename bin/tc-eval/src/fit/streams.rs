//! Iterates over the streams of corpora, from which tables are learned.

use crate::corpus::{self, CorpusEntry};
use crate::read::{self, ReadSettings};
use anyhow::{Context, Result, bail};
use detect::auto::{Observation, Observer};
use std::path::PathBuf;

/// Calls `take` for each stream whose label has an answer.
///
/// # Errors
/// Fails if an index cannot be read or if no label has an answer. Errors of `take` are returned
/// with the name of the stream.
pub(super) fn each(
    corpora: &[PathBuf],
    mut take: impl FnMut(CorpusEntry) -> Result<()>,
) -> Result<()> {
    let mut any = false;
    for corpus in corpora {
        for entry in corpus::entries(corpus)? {
            let entry = entry?;
            if entry.label.has_tool_call.is_some() {
                let id = entry.label.id.clone();
                take(entry).with_context(|| format!("stream {id}"))?;
                any = true;
            }
        }
    }
    if !any {
        bail!(
            "no stream has an answer in its label; confirm the labels that tc-eval label proposes"
        );
    }
    Ok(())
}

/// Observes the text of one stream up to its first call.
///
/// # Errors
/// Fails if the recording cannot be read or has no events.
pub(super) fn observe(entry: &CorpusEntry) -> Result<Observation> {
    let settings = ReadSettings::of_label(&entry.label)?;
    let mut observer = None;
    read::each_event_of_file(&entry.path, &settings, &mut |event, _| {
        observer
            .get_or_insert_with(|| Observer::new(event))
            .push(event);
    })?;
    Ok(observer.context("the recording has no events")?.end())
}
