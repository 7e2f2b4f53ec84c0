//! Lines on standard error by which a command reports how far it has come.

use event::Raw;

/// How far a command has come.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandProgress {
    /// From 0 to 1.
    pub progress: f64,
    /// What it does now; may be empty.
    pub message: String,
}

/// Takes such lines out of standard error while it grows: each is an object with a number
/// `progress` and maybe a text `message`, and nothing else, alone on its line.
#[derive(Debug, Default)]
pub struct ProgressLines {
    /// Up to where lines were looked at.
    at: usize,
    /// Up to where no line ends that was not looked at.
    searched: usize,
    last: Option<CommandProgress>,
}

impl ProgressLines {
    /// Takes the lines out that `bytes` holds by now; `is_over`: nothing follows, so the last line
    /// may lack its end. Returns how many bytes were taken out, and the latest report, if it
    /// differs from the one before. A `progress` outside 0 to 1 is ignored.
    pub fn take(&mut self, bytes: &mut Vec<u8>, is_over: bool) -> (usize, Option<CommandProgress>) {
        let rest = bytes.get(self.searched..).unwrap_or_default();
        let end = match rest.iter().rposition(|b| *b == b'\n') {
            _ if is_over => bytes.len(),
            Some(at) => self.searched + at + 1,
            None => {
                self.searched = bytes.len();
                return (0, None);
            }
        };
        let rest = bytes.split_off(end);
        let lines = bytes.split_off(self.at.min(end));
        let (mut taken, mut found) = (0, None);
        for line in lines.split_inclusive(|b| *b == b'\n') {
            match std::str::from_utf8(line).ok().and_then(read) {
                Some(report) => {
                    taken += line.len();
                    found = report
                        .filter(|report| (0.0..=1.0).contains(&report.progress))
                        .or(found);
                }
                None => bytes.extend_from_slice(line),
            }
        }
        self.at = bytes.len();
        bytes.extend(rest);
        self.searched = bytes.len();
        if found.is_some() && found != self.last {
            self.last.clone_from(&found);
            return (taken, found);
        }
        (taken, None)
    }
}

/// Reads a line. `None`: it is not a report; `Some(None)`: its number cannot be read.
fn read(line: &str) -> Option<Option<CommandProgress>> {
    let line = line.trim();
    if !line.starts_with("{\"") || !line.contains("\"progress\"") {
        return None; // most lines, without a parser
    }
    let object = Raw::parse(line).ok().filter(|value| value.is_object())?;
    let progress = object.get("progress")?;
    let number = progress
        .text()
        .parse::<f64>()
        .ok()
        .filter(|_| !progress.is_str())?;
    let message = object.get("message");
    if object.entries().count() != 1 + usize::from(message.is_some())
        || message.is_some_and(|message| !message.is_str())
    {
        return None;
    }
    let message = message.and_then(Raw::str).unwrap_or_default().into_owned();
    Some(number.is_finite().then_some(CommandProgress {
        progress: number,
        message,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_taken_out_and_all_else_stays() {
        let text = "a\n{\"progress\":0.5}\n{\"progress\":2}\n{\"progress\":-1}\n{\"progress\":1e999}\n\
                    {\"progress\":NaN}\n{\"progress\":\"0.5\"}\n{\"progress\":0.6,\"x\":1}\n x {\"progress\":0.7}\n\
                    {\"message\":\"m\",\"progress\":0.75}\n{\"progress\":0.8,\"message\":7}\n{\"progress\":true}\nb\n{\"progress\":0.9}";
        let left = "a\n{\"progress\":NaN}\n{\"progress\":\"0.5\"}\n{\"progress\":0.6,\"x\":1}\n x {\"progress\":0.7}\n\
                    {\"progress\":0.8,\"message\":7}\n{\"progress\":true}\nb\n";
        let is = |progress, message: &str| {
            Some(CommandProgress {
                progress,
                message: message.to_owned(),
            })
        };
        for size in [1, 2, 3, 7, 50, 1000] {
            let (mut lines, mut bytes, mut found, mut taken) =
                (ProgressLines::default(), Vec::new(), Vec::new(), 0);
            for piece in text.as_bytes().chunks(size) {
                bytes.extend_from_slice(piece);
                let (n, report) = lines.take(&mut bytes, false);
                taken += n;
                found.extend(report);
            }
            let (n, report) = lines.take(&mut bytes, true);
            assert_eq!(
                (report, std::str::from_utf8(&bytes).unwrap()),
                (is(0.9, ""), left),
                "{size}"
            );
            assert_eq!(taken + n + left.len(), text.len());
            assert_eq!(found.last(), is(0.75, "m").as_ref());
            assert!(size > 7 || found.len() == 2);
        }
    }

    #[test]
    fn a_report_that_says_nothing_new_is_not_repeated() {
        let (mut lines, mut bytes) = (ProgressLines::default(), Vec::new());
        let mut take = |text: &str| {
            bytes.extend_from_slice(text.as_bytes());
            lines
                .take(&mut bytes, false)
                .1
                .map(|report| report.progress)
        };
        assert_eq!(
            (
                take("{\"progress\":0.1}\n"),
                take("{\"progress\":0.1}\n{\"progress\":0.1}\n")
            ),
            (Some(0.1), None)
        );
        assert_eq!(take("{\"progress\":0.2}\n"), Some(0.2));
    }
}
