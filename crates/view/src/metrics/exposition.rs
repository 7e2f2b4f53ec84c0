//! Writes metric families as text.

use super::families::{Family, FamilyKind};
use super::times::{TimeForm, Times};
use super::words::Counts;
use std::fmt::Display;
use std::io::Write as _;

/// The quantiles of a summary, in thousandths and as label values.
const QUANTILES: [(u64, &str); 3] = [(500, "0.5"), (950, "0.95"), (990, "0.99")];

/// Appends metric families to a buffer, in the text format of OpenMetrics.
pub(super) struct Exposition<'o>(&'o mut Vec<u8>);

impl<'o> Exposition<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Exposition(out)
    }

    /// Writes a family with a single number, without labels.
    pub(super) fn number(&mut self, family: &Family, value: u64) {
        self.head(family, kind(family.kind, None));
        self.sample(family.name, "", "", value);
    }

    /// Writes a family with a series for each word.
    pub(super) fn counts(&mut self, family: &Family, label: &str, counts: &Counts) {
        self.labelled(family, label, counts.each());
    }

    /// Writes a family with a series for each value of a label.
    pub(super) fn labelled(
        &mut self,
        family: &Family,
        label: &str,
        series: impl IntoIterator<Item = (&'static str, u64)>,
    ) {
        self.head(family, kind(family.kind, None));
        for (word, value) in series {
            self.sample(family.name, "", &format!("{label}=\"{word}\""), value);
        }
    }

    /// Writes a family of times, with a series for each set of labels.
    pub(super) fn times<'t>(
        &mut self,
        family: &Family,
        form: &TimeForm,
        series: impl IntoIterator<Item = (String, &'t Times)>,
    ) {
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return;
        }
        self.head(family, kind(family.kind, Some(form)));
        for (labels, times) in series {
            let comma = if labels.is_empty() { "" } else { "," };
            let with = |label: String| format!("{labels}{comma}{label}");
            for (thousandths, name) in QUANTILES {
                if let Some(micros) = times.quantile(thousandths) {
                    let labels = with(format!("quantile=\"{name}\""));
                    self.sample(family.name, "", &labels, Seconds(micros.into()));
                }
            }
            if let TimeForm::Buckets = form {
                for (bound, count) in times.cumulative() {
                    let labels = with(format!("le=\"{}\"", Seconds(bound.into())));
                    self.sample(family.name, "_bucket", &labels, count);
                }
                let labels = with("le=\"+Inf\"".to_owned());
                self.sample(family.name, "_bucket", &labels, times.count);
            }
            self.sample(family.name, "_sum", &labels, Seconds(times.sum));
            self.sample(family.name, "_count", &labels, times.count);
        }
    }

    /// Writes the end marker.
    pub(super) fn end(self) {
        self.0.extend_from_slice(b"# EOF\n");
    }

    fn head(&mut self, family: &Family, kind: &str) {
        let Family { name, help, .. } = family;
        let unit = match family.kind {
            FamilyKind::Times => format!("# UNIT {name} seconds\n"),
            FamilyKind::Counter | FamilyKind::Gauge => String::new(),
        };
        self.line(format_args!(
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{unit}"
        ));
    }

    fn sample(&mut self, name: &str, suffix: &str, labels: &str, value: impl Display) {
        let (open, close) = if labels.is_empty() {
            ("", "")
        } else {
            ("{", "}")
        };
        self.line(format_args!(
            "{name}{suffix}{open}{labels}{close} {value}\n"
        ));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a vector cannot fail.
        let _ = self.0.write_fmt(line);
    }
}

/// Returns the metric type for a `TYPE` line.
fn kind(kind: FamilyKind, form: Option<&TimeForm>) -> &'static str {
    match (kind, form) {
        (FamilyKind::Counter, _) => "counter",
        (FamilyKind::Gauge, _) => "gauge",
        (FamilyKind::Times, Some(TimeForm::Exact { .. })) => "summary",
        (FamilyKind::Times, _) => "histogram",
    }
}

/// Microseconds, displayed as seconds in exact decimal digits: no float rounds them.
struct Seconds(u128);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, part) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let part = format!("{part:06}");
        write!(f, "{whole}.{}", part.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::Seconds;

    #[test]
    fn seconds_have_all_their_digits() {
        for (micros, text) in [
            (0, "0"),
            (1, "0.000001"),
            (1_000, "0.001"),
            (1_500_000, "1.5"),
            (300_000_000, "300"),
            (u128::from(u64::MAX), "18446744073709.551615"),
        ] {
            assert_eq!(Seconds(micros).to_string(), text);
        }
    }
}
