//! Lines for people on standard error. No secret gets into them.

use api::Request;
use redact::Redactor;
use std::fmt::Display;
use std::time::Duration;

/// Writes lines on standard error.
#[derive(Clone, Debug)]
pub struct Messages {
    is_verbose: bool,
    no_time: bool,
    redactor: Redactor,
}

impl Messages {
    /// `is_verbose` is `--verbose`, `no_time` leaves times out.
    pub fn new(is_verbose: bool, no_time: bool, redactor: Redactor) -> Messages {
        Messages {
            is_verbose,
            no_time,
            redactor,
        }
    }

    /// Reports something that everybody should read.
    pub fn always(&self, what: impl Display) {
        stdio::message("llm-stream", &self.redactor.text(&what.to_string()));
    }

    /// Reports what happens, under `--verbose`.
    pub fn verbose(&self, what: impl Display) {
        if self.is_verbose {
            self.always(what);
        }
    }

    /// Reports what happened this time after the request was sent, under `--verbose`.
    pub fn at(&self, what: impl Display, time: Option<Duration>) {
        match time.filter(|_| !self.no_time) {
            Some(time) => self.verbose(format_args!("{what} after {}", short(time))),
            None => self.verbose(what),
        }
    }

    /// Reports a request that is sent, under `--verbose`.
    pub fn request(&self, request: &Request) {
        self.verbose(self.line(request));
    }

    /// A request's method and address.
    pub fn line(&self, request: &Request) -> String {
        format!("{} {}", request.method, self.redactor.url(&request.url))
    }
}

/// A time for people.
fn short(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1.0 s"),
            (61_240, "61.2 s"),
        ] {
            assert_eq!(short(Duration::from_millis(millis)), text);
        }
    }
}
