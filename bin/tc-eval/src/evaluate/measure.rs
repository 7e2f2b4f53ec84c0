//! Measures one stream: reads it once, and shows each event to all checkers.

use super::asked::{AskedChecker, Decided};
use super::calls::ChoiceCallReader;
use super::judge::CheckerJudge;
use super::resplit::EventSplit;
use crate::checkers::GivenAnswer;
use crate::corpus::CorpusEntry;
use crate::read::{EventOrigin, ReadSettings, each_event_of_file};
use crate::reading::each_event;
use crate::split::Split;
use anyhow::{Result, anyhow, bail};
use detect::auto::AutoTable;
use detect::{CallFilter, CheckerAnswers, CheckerSettings, Checkers, Detect};
use event::payload::{ContentDelta, RefusalDelta, StreamStart};
use event::{Event, Kind, Machine, Text};
use score::{Measured, Outcome, Place};
use std::rc::Rc;
use std::sync::Arc;
use tag::{Streams, Tag};

/// The settings for measuring every stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeasurePlan {
    /// The names of the checkers.
    pub checkers: Vec<String>,
    /// The further readings, with other splits.
    pub splits: Vec<Split>,
    /// Whether checkers get the output of `tag-parse`.
    pub tag_parse: bool,
    /// Whether recorded times are left out.
    pub no_time: bool,
    /// Whether a line of a log that is not an event is an error.
    pub strict: bool,
    /// Maximum bytes of a frame or a line of a recording.
    pub max_line: usize,
    /// The table of `auto` that replaces the compiled one; `None` for the compiled table.
    pub table: Option<AutoTable>,
}

/// The judges of the checkers outside of this process: for each reading, one for each checker of
/// the plan; `None` for a built-in one.
pub(crate) type Judgings = Vec<Vec<Option<Box<dyn CheckerJudge>>>>;

/// Measures streams, one after the other. Each thread has its own.
pub(crate) struct Meter<'p> {
    plan: &'p MeasurePlan,
    /// The built-in checkers of the plan, at their places.
    checkers: Vec<Option<Checkers>>,
    names: Vec<Rc<str>>,
    full: Checkers,
    tag: Streams,
}

impl<'p> Meter<'p> {
    /// A meter of one thread.
    ///
    /// # Errors
    /// Fails if the table of checkers has no `full`.
    pub(crate) fn new(plan: &'p MeasurePlan) -> Result<Self> {
        let calls = CallFilter::default();
        let full = detect::checkers("full", &calls)
            .ok_or_else(|| anyhow!("the checker full is missing"))?;
        let settings = CheckerSettings {
            table: plan.table.clone().map(Rc::new),
            ..CheckerSettings::default()
        };
        Ok(Meter {
            plan,
            checkers: plan
                .checkers
                .iter()
                .map(|name| detect::checkers_with(name, &calls, &settings))
                .collect(),
            names: plan
                .checkers
                .iter()
                .map(|name| name.as_str().into())
                .collect(),
            full,
            tag: Streams::default(),
        })
    }

    /// Measures the stream of `entry`.
    ///
    /// # Errors
    /// Fails if the recording cannot be read, or does not contain the stream of the label.
    pub(crate) fn measure(&mut self, entry: &CorpusEntry, judgings: Judgings) -> Result<Measured> {
        let label = &entry.label;
        let mut judgings = judgings.into_iter();
        let (mut read, outcomes) = self.read(entry, None, judgings.next())?;
        let undecided = || GivenAnswer::undecided("no decision about this stream").outcome(None);
        let outcomes = outcomes.into_iter();
        let mut outcomes: Vec<Outcome> = outcomes
            .map(|outcome| outcome.unwrap_or_else(undecided))
            .collect();
        for split in &self.plan.splits {
            let (_, again) = self.read(entry, Some(*split), judgings.next())?;
            for (outcome, again) in outcomes.iter_mut().zip(again) {
                outcome.depends_on_split |=
                    again.is_some_and(|again| again.answer != outcome.answer);
            }
        }
        let end = read.place;
        let (calls, first_call, ready_ms) = match &mut read.calls {
            Some(calls) => (calls.counts(&label.calls), calls.first(), calls.ready_ms()),
            None => Default::default(),
        };
        let name =
            |labelled: &Option<String>, shown: String| labelled.clone().unwrap_or(shown).into();
        Ok(Measured {
            id: label.id.as_str().into(),
            corpus: Arc::clone(&entry.corpus),
            source: label.source.as_ref().unwrap_or(&label.id).as_str().into(),
            api: name(&label.api, read.api),
            provider: name(&label.provider, String::new()),
            model: name(&label.model, read.model),
            tags: label.tags.iter().map(|tag| tag.as_str().into()).collect(),
            has_tool_call: label.has_tool_call.unwrap_or_default(),
            end,
            first_call,
            calls,
            saved_ms: ready_ms
                .zip(end.ms)
                .map(|(ready, end)| (end - ready).max(0.0)),
            outcomes,
        })
    }

    fn read(
        &mut self,
        entry: &CorpusEntry,
        split: Option<Split>,
        judges: Option<Vec<Option<Box<dyn CheckerJudge>>>>,
    ) -> Result<(MeasuredStream, Vec<Option<Outcome>>)> {
        let Meter {
            plan,
            checkers,
            names,
            full,
            tag,
        } = self;
        let settings = settings(entry, plan, split)?;
        // A pipe or a device may have no end, and opening a pipe may wait forever.
        if entry.path.metadata().is_ok_and(|meta| !meta.is_file()) {
            bail!(
                "{}: not a regular file; name a recording",
                entry.path.display()
            );
        }
        let label = &entry.label;
        let mut judges = judges.unwrap_or_default().into_iter();
        let mut has_others = false;
        let mut stream: Option<MeasuredStream> = None;
        let mut resplit = split.map(|split| EventSplit::new(split, &label.id));
        let mut begin = |first: &Event<'_>| {
            let asked = checkers.iter().zip(names.iter()).map(|(checkers, name)| {
                let judge = judges.next().flatten();
                match checkers {
                    Some(checkers) => {
                        let detect = Detect::new(
                            Rc::clone(name),
                            checkers(first),
                            CheckerAnswers::default(),
                            first,
                        );
                        AskedChecker::BuiltIn(Box::new(detect), Decided::default())
                    }
                    None => AskedChecker::Outside(judge),
                }
            });
            let start = StreamStart::read(first);
            let owned = |text: Option<Text<'_>>| text.unwrap_or_default().str().into_owned();
            let is_text = start.tools_mode.is_some_and(|mode| mode == "tag");
            let parsed = || tag.begin(first);
            MeasuredStream {
                asked: asked.collect(),
                tag: plan.tag_parse.then(parsed),
                calls: split.is_none().then(|| {
                    ChoiceCallReader::new((is_text || plan.tag_parse).then(parsed), full(first)())
                }),
                place: Place::default(),
                has_ended: false,
                api: owned(start.api),
                model: owned(start.model),
            }
        };
        let mut take = |event: &Event<'_>, origin: EventOrigin| {
            // Decisions in a log come from an earlier run.
            if origin.part == 0 || event.kind() == Kind::Decision {
                return;
            }
            if settings.part.is_none() && origin.part > 1 {
                has_others = true;
                return;
            }
            let ms = origin.ms.filter(|_| !plan.no_time);
            let mut push =
                |event: &Event<'_>| stream.get_or_insert_with(|| begin(event)).push(event, ms);
            match &mut resplit {
                Some(resplit) => resplit.push(event, &mut push),
                None => push(event),
            }
        };
        each_event_of_file(&entry.path, &settings, &mut take)?;
        if let (Some(resplit), Some(stream)) = (&mut resplit, &mut stream) {
            resplit.finish(&mut |event| stream.push(event, None));
        }
        if has_others {
            bail!(
                "{}: the file holds several streams; choose one with \"part\":1 in the label",
                entry.path.display()
            );
        }
        let mut stream = stream
            .ok_or_else(|| anyhow!("{}: the recording has no events", entry.path.display()))?;
        let outcomes = stream.end();
        Ok((stream, outcomes))
    }
}

/// A stream while it is read.
struct MeasuredStream {
    asked: Vec<AskedChecker>,
    /// The `tag-parse` machine that runs before the checkers.
    tag: Option<Tag>,
    calls: Option<ChoiceCallReader>,
    place: Place,
    has_ended: bool,
    api: String,
    model: String,
}

impl MeasuredStream {
    fn push(&mut self, event: &Event<'_>, ms: Option<f64>) {
        self.count(event, ms);
        let MeasuredStream {
            asked,
            tag,
            calls,
            place,
            ..
        } = self;
        match tag {
            Some(tag) => {
                let take = &mut |event: &Event<'_>, _| show(asked, event, *place);
                tag.push(event, &mut each_event(Some(event), take));
            }
            None => show(asked, event, *place),
        }
        if let Some(calls) = calls {
            calls.push(event, *place);
        }
        self.has_ended |= event.kind() == Kind::StreamEnd;
    }

    fn count(&mut self, event: &Event<'_>, ms: Option<f64>) {
        let place = &mut self.place;
        place.events += 1;
        place.ms = ms.or(place.ms);
        let text = match event.kind() {
            Kind::ContentDelta => ContentDelta::read(event).text,
            Kind::RefusalDelta => RefusalDelta::read(event).text,
            _ => return,
        };
        if event.choice() == 0 {
            let text = text.str();
            place.bytes += text.len() as u64;
            place.chars += text.chars().count() as u64;
        }
    }

    /// Handles the end of the recording; returns the decisions of each checker.
    fn end(&mut self) -> Vec<Option<Outcome>> {
        let end = self.place;
        if !self.has_ended {
            if let Some(tag) = &mut self.tag {
                let asked = &mut self.asked;
                let take = &mut |event: &Event<'_>, _| show(asked, event, end);
                tag.finish(&mut each_event(None, take));
            }
            if let Some(calls) = &mut self.calls {
                calls.finish(end);
            }
        }
        let asked = std::mem::take(&mut self.asked).into_iter();
        asked
            .map(|asked| asked.outcome(self.has_ended, end))
            .collect()
    }
}

/// Passes an event to all checkers.
fn show(asked: &mut [AskedChecker], event: &Event<'_>, place: Place) {
    asked.iter_mut().for_each(|asked| asked.push(event, place));
}

/// Returns the settings for reading the recording of a label.
///
/// # Errors
/// Fails like [`ReadSettings::of_label`].
pub(crate) fn settings(
    entry: &CorpusEntry,
    plan: &MeasurePlan,
    split: Option<Split>,
) -> Result<ReadSettings> {
    let label = &entry.label;
    Ok(ReadSettings {
        max_line: Some(plan.max_line),
        strict: plan.strict,
        pieces: split.map(|split| split.sizes(&label.id)),
        ..ReadSettings::of_label(label)?
    })
}
