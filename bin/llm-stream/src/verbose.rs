//! `--verbose`: what happens on the way to an answer, a line each on standard error.

use crate::args::Args;
use redact::Redactor;
use std::fmt::Display;
use std::time::Duration;
use upstream::Request;

/// Reports what happens, if that is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verbose {
    on: bool,
    no_time: bool,
}

impl Verbose {
    pub fn new(args: &Args) -> Verbose {
        Verbose { on: args.verbose, no_time: args.common.no_time }
    }

    /// Whether anything is reported.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// Reports what takes no time worth a word. It must hold nothing secret.
    pub fn say(self, what: impl Display) {
        if self.on {
            stdio::message("llm-stream", &what.to_string());
        }
    }

    /// Reports what happened this time after the request was sent, as far as that is known.
    pub fn at(self, what: impl Display, time: Option<Duration>) {
        match time.filter(|_| !self.no_time) {
            Some(time) => self.say(format_args!("{what} after {}", plain(time))),
            None => self.say(what),
        }
    }

    /// Reports a request that is sent.
    pub fn request(self, request: &Request, redactor: &Redactor) {
        if self.on {
            self.say(line(request, redactor));
        }
    }
}

/// A request's method and address, without its secrets.
pub fn line(request: &Request, redactor: &Redactor) -> String {
    format!("{} {}", request.method, redactor.url(&request.url))
}

/// A time for people.
fn plain(time: Duration) -> String {
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
        for (millis, text) in [(0, "0 ms"), (999, "999 ms"), (1000, "1.0 s"), (61_240, "61.2 s")] {
            assert_eq!(plain(Duration::from_millis(millis)), text);
        }
    }
}
