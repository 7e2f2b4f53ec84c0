//! The result of checking a requirement.

use crate::metrics::MetricValue;
use serde::{Deserialize, Serialize};

/// A requirement with the measured value.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct RequirementVerdict {
    /// The requirement as the user typed it.
    pub requirement: String,
    /// The name of the checker that the metric measures; `None` for a metric that does not measure
    /// a checker.
    pub checker: Option<String>,
    /// The metric, with the group: `recall`, `recall{api=gemini}`.
    pub metric: String,
    /// The measured value; `null` if the metric is undefined.
    pub value: MetricValue,
    /// If the metric is a fraction, its numerator and denominator in streams (or calls).
    pub part: Option<(u64, u64)>,
    /// The condition for the value, such as `>= 0.99`.
    pub required: String,
    /// Whether the value meets the condition.
    pub is_met: bool,
    /// Why the metric is undefined; `None` if it is defined.
    pub reason: Option<String>,
}

impl RequirementVerdict {
    /// Returns the verdict as one sentence: `first-chunk: recall is 0.871 (310 of 356), required >=
    /// 0.99`. The names of checkers and metrics are not escaped: a name may contain line feeds and
    /// control characters.
    #[must_use]
    pub fn message(&self) -> String {
        let who = self
            .checker
            .as_ref()
            .map(|checker| format!("{checker}: "))
            .unwrap_or_default();
        let Self {
            metric, required, ..
        } = self;
        match self.value.number() {
            None => {
                let reason = self
                    .reason
                    .as_deref()
                    .unwrap_or("there is nothing to count");
                format!("{who}{metric} is not defined ({reason}), required {required}")
            }
            Some(_) => format!("{who}{metric} is {}, required {required}", self.shown()),
        }
    }

    /// Returns the value as text, with the counts of a fraction: `0.871 (310 of 356)`.
    #[must_use]
    pub fn shown(&self) -> String {
        let value = match self.value {
            MetricValue::Undefined => return "not defined".to_owned(),
            MetricValue::Count(count) => count.to_string(),
            // The value gets at least three digits, and as many more as the text needs to compare
            // with the bound as the value itself does: 0.9896 is not shown as `0.990` if 0.99 is
            // required.
            MetricValue::Real(real) => (3..17)
                .map(|digits| format!("{real:.digits$}"))
                .find(|text| {
                    self.bound().is_none_or(|bound| {
                        text.parse::<f64>().is_ok_and(|shown| {
                            shown.partial_cmp(&bound) == real.partial_cmp(&bound)
                        })
                    })
                })
                .unwrap_or_else(|| real.to_string()),
        };
        match self.part {
            Some((part, whole)) => format!("{value} ({part} of {whole})"),
            None => value,
        }
    }

    /// Returns the bound of the requirement, such as 0.99 for `>= 0.99`.
    fn bound(&self) -> Option<f64> {
        self.required.rsplit(' ').next()?.parse().ok()
    }
}
