//! `auto`: yes at the first call, and no once a call has become unlikely, by a learned table of models and of the words of the text.

use crate::auto::{Limits, Origin, Sign, Signs};
use crate::checker::{CallFilter, Checker, CheckerRow, Checkers, Meaning, StreamEnding, Verdict, none};
use crate::settings::{Risk, Settings};
use event::{Event, Kind};
use std::rc::Rc;

pub(crate) const ROW: CheckerRow = CheckerRow {
    name: "auto",
    help: "no once a call has become unlikely, by the model, its words and a learned table",
    checkers: |calls, _, settings| Some(checkers(calls, settings, settings.risk)),
};

pub(crate) const ROW_WITH_RISK: CheckerRow = CheckerRow {
    name: "auto:RISK",
    help: "auto with its risk, such as auto:1%",
    checkers: |calls, risk, settings| Some(checkers(calls, settings, risk.parse().ok()?)),
};

fn checkers(calls: CallFilter, settings: &Settings, risk: Risk) -> Checkers {
    let table = settings.table();
    Rc::new(move |first| {
        let origin = Rc::new(Origin::read(first));
        let limits = Rc::new(Limits::new(&table, &origin, risk.share()));
        let calls = calls.clone();
        Rc::new(move || {
            Box::new(Auto {
                calls: calls.clone(),
                origin: Rc::clone(&origin),
                limits: Rc::clone(&limits),
                signs: Signs::default(),
                has_decided: false,
            })
        })
    })
}

struct Auto {
    calls: CallFilter,
    origin: Rc<Origin>,
    limits: Rc<Limits>,
    signs: Signs,
    /// Whether it said no.
    has_decided: bool,
}

impl Auto {
    /// Why the risk is small enough.
    fn reason(&self) -> String {
        let (sign, since) = self.signs.sign();
        let Some(limit) = self.limits.runs[sign as usize] else { return String::new() };
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
        let (risk, streams) = (limit.risk * 100.0, limit.streams);
        format!("{model}: after {since} characters {after} a call follows in {risk:.2} % by {streams} streams")
    }
}

impl Checker for Auto {
    #[inline]
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        let kind = event.kind();
        if self.has_decided && !matches!(kind, Kind::ToolCallDelta | Kind::ToolCall) {
            return None; // only a call can change the no, so text is not even unescaped
        }
        if kind == Kind::ServerItem {
            self.signs.item();
            return None;
        }
        match self.calls.meaning(event) {
            Meaning::Call(reason) => Some(Verdict::new(true, reason)),
            Meaning::Text(text) => {
                self.has_decided = self.signs.push(&text, &self.origin.tools, Some(&self.limits));
                self.has_decided.then(|| Verdict::new(false, self.reason()))
            }
            Meaning::OtherCall | Meaning::Nothing => None,
        }
    }

    fn end(&mut self, ending: StreamEnding) -> Option<Verdict> {
        none(ending)
    }

    fn revises_no(&self) -> bool {
        true
    }
}
