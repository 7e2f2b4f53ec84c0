//! `auto`: yes at the first call, whether an event or text; no once a call has become unlikely,
//! according to a learned table of models and of words in the text.

use crate::auto::{AutoLimits, Sign, Signs, StreamOrigin, Texts};
use crate::checker::{
    CallFilter, Checker, CheckerRow, CheckerSettings, Checkers, Meaning, Risk, StreamEnding,
    Verdict, none,
};
use crate::text_calls::{ChoicePart, TextCalls};
use event::{Event, Kind};
use std::rc::Rc;

pub(crate) const ROW: CheckerRow = CheckerRow {
    name: "auto",
    help: "a call in an event or in the text is a yes; no once a call has become unlikely, by the \
           model, its words and a learned table",
    checkers: |calls, _, settings| Some(checkers(calls, settings, settings.risk)),
};

pub(crate) const ROW_WITH_RISK: CheckerRow = CheckerRow {
    name: "auto:RISK",
    help: "auto with its risk, such as auto:1%",
    checkers: |calls, risk, settings| Some(checkers(calls, settings, risk.parse().ok()?)),
};

fn checkers(calls: CallFilter, settings: &CheckerSettings, risk: Risk) -> Checkers {
    let table = settings.table();
    let texts = Texts::default();
    Rc::new(move |first| {
        let origin = Rc::new(StreamOrigin::read(first));
        let limits = Rc::new(AutoLimits::new(&table, &origin, risk.share()));
        let calls = calls.clone();
        let tag = texts.begin(&origin, first);
        Rc::new(move || {
            let tag = tag.as_ref().map(tag::Tag::fresh);
            Box::new(Auto {
                text: TextCalls::new(tag, calls.clone()),
                risk: RiskOfCall {
                    origin: Rc::clone(&origin),
                    limits: Rc::clone(&limits),
                    signs: Signs::default(),
                },
                calls: calls.clone(),
                has_decided: false,
                later: None,
            })
        })
    })
}

struct Auto {
    text: TextCalls,
    risk: RiskOfCall,
    /// Decides which calls that arrive as events count.
    calls: CallFilter,
    has_decided: bool,
    /// A call found in the text of the same event as the no before it. The call becomes a second
    /// decision, as it would if the text had been split between them.
    later: Option<String>,
}

/// Tracks whether a call is still likely.
struct RiskOfCall {
    origin: Rc<StreamOrigin>,
    limits: Rc<AutoLimits>,
    signs: Signs,
}

impl RiskOfCall {
    /// Reads the next text of the answer; returns the reason once a call is unlikely.
    fn text(&mut self, text: &str) -> Option<String> {
        let is_settled = self
            .signs
            .push(text, &self.origin.tools, Some(&self.limits));
        is_settled.then(|| self.reason())
    }

    /// Returns the reason why the risk is small enough.
    fn reason(&self) -> String {
        let (sign, since) = self.signs.sign();
        let Some(limit) = self.limits.runs[sign as usize] else {
            return String::new();
        };
        let model = match (&*self.origin.family, &*self.origin.api) {
            ("", "") => "any model",
            ("", api) => api,
            (family, _) => family,
        };
        let after = match sign {
            Sign::Plain => "without a sign of a call",
            Sign::Person => "since the model spoke of itself",
            Sign::Tool => "since a tool or a step was named",
            Sign::Intent => "since an action was announced",
        };
        let risk = limit.risk * 100.0;
        let streams = limit.streams;
        format!(
            "{model}: after {since} characters {after} a call follows in {risk:.2} % by {streams} \
             streams"
        )
    }
}

/// The findings in one event, the first of each kind.
#[derive(Default)]
struct Shown {
    /// A call that arrived as an event.
    call: Option<String>,
    /// A call found in the text.
    text_call: Option<String>,
    /// The reason why a call is unlikely after the text before these calls.
    no: Option<String>,
}

impl Auto {
    /// Reads one event.
    #[inline]
    fn read(&mut self, event: &Event<'_>) -> Shown {
        let Auto {
            text,
            risk,
            calls,
            has_decided,
            ..
        } = self;
        let has_decided = *has_decided;
        let mut shown = Shown::default();
        text.push(event, &mut |found| {
            // After a decision only a call can change it, so text is not even unescaped.
            let is_open = !has_decided && shown.no.is_none() && shown.text_call.is_none();
            match found {
                ChoicePart::Call(reason) => drop(shown.text_call.get_or_insert(reason)),
                ChoicePart::Text(text) if is_open => shown.no = risk.text(text),
                ChoicePart::Text(_) => {}
                ChoicePart::Event(event) => match event.kind() {
                    Kind::ServerItem => risk.signs.item(),
                    kind if is_open || matches!(kind, Kind::ToolCallDelta | Kind::ToolCall) => {
                        match calls.meaning(event) {
                            Meaning::Call(reason) => shown.call = Some(reason),
                            Meaning::Text(text) => shown.no = risk.text(&text),
                            Meaning::OtherCall | Meaning::Nothing => {}
                        }
                    }
                    _ => {}
                },
            }
        });
        shown
    }
}

impl Checker for Auto {
    #[inline]
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        let Shown {
            call,
            text_call,
            no,
        } = self.read(event);
        let later = self.later.take();
        // A call found in the text may have been retracted immediately.
        let text_call = later.or(text_call).filter(|_| self.text.holds());
        let verdict = match (call, no) {
            (Some(call), _) => Verdict::new(true, call),
            (None, Some(no)) => {
                self.later = text_call;
                Verdict::new(false, no)
            }
            (None, None) => Verdict::new(true, text_call?),
        };
        self.has_decided = true;
        Some(verdict)
    }

    fn end(&mut self, ending: StreamEnding) -> Option<Verdict> {
        let mut call = self.later.take();
        self.text.end(ending, &mut |found| {
            if let ChoicePart::Call(reason) = found {
                call.get_or_insert(reason);
            }
        });
        call.filter(|_| self.text.holds())
            .map(|call| Verdict::new(true, call))
            .or_else(|| none(ending))
    }

    fn reads_past_verdict(&self) -> bool {
        self.text.overturned().is_some()
    }

    fn revises_no(&self) -> bool {
        true
    }

    fn overturned(&self) -> Option<bool> {
        self.text.overturned()
    }
}
