//! Decides what to do after a failed attempt: whether to retry, in which form, and how long to wait
//! first. Nothing here sleeps, sends requests or reads the clock, except for the reference time of
//! a date in a header.

use crate::Error;
use api::tape::{Head, Miss};
use api::{error_message, is_context_overflow, refuses_tools};
use std::borrow::Cow;
use std::time::{Duration, SystemTime};

/// Which retries are allowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttemptPolicy {
    /// How often the same request may be retried.
    pub retries: u32,
    /// Whether to retry only after a lost connection. After a temporary error (429, 5xx) the
    /// caller's own client retries, and retries in two layers multiply, so nothing is retried then,
    /// not even in another form.
    pub only_lost: bool,
    /// Whether to request the whole response at once if streaming is rejected.
    pub may_ask_whole: bool,
    /// Whether to request a stream if a whole response, which was requested first, is rejected.
    pub may_ask_stream: bool,
    /// Whether to put the tools into the prompt if native tools are rejected.
    pub may_tag: bool,
}

/// The attempts at one turn.
#[derive(Clone, Debug)]
pub struct Attempts {
    policy: AttemptPolicy,
    retries: u32,
    /// Whether the whole response is requested in place of a stream, or a stream in its place.
    is_turned: bool,
    is_tagged: bool,
}

/// What to do after a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub enum NextAttempt {
    /// Retry with the tools in the prompt. The value is the provider's message that rejected native
    /// tools.
    Tagged(String),
    /// Retry without streaming.
    Whole,
    /// Retry with streaming.
    Stream,
    /// Retry the same request after this wait.
    Again(Wait),
    /// Give up. The value is the provider's advice, if it gave any.
    GiveUp(Option<String>),
}

impl Attempts {
    /// Creates the state before the first attempt.
    pub fn new(policy: AttemptPolicy) -> Attempts {
        Attempts {
            policy,
            retries: 0,
            is_turned: false,
            is_tagged: false,
        }
    }

    /// Returns the number of the attempt, from 1. A retry with or without streaming does not count,
    /// because the request that was rejected never reached the model.
    pub fn number(&self) -> u32 {
        1 + self.retries + u32::from(self.is_tagged)
    }

    /// Allows one more retry of the same request than before.
    pub fn allow_another(&mut self) {
        self.policy.retries = self.policy.retries.saturating_add(1);
    }

    /// Returns how often the same request was retried.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Returns how often another form of the request was tried.
    pub fn fallbacks(&self) -> u32 {
        u32::from(self.is_turned) + u32::from(self.is_tagged)
    }

    /// Decides what to do after `trouble`. `fits` returns whether there is time for a wait.
    pub fn after(&mut self, trouble: &AttemptTrouble, fits: impl Fn(&Wait) -> bool) -> NextAttempt {
        if let Some(words) = trouble
            .refuses_tools()
            .filter(|_| self.policy.may_tag && !self.is_tagged)
        {
            self.is_tagged = true;
            return NextAttempt::Tagged(words);
        }
        let is_left_to_client =
            self.policy.only_lost && !trouble.is_lost_connection() && trouble.may_pass();
        if !self.is_turned && !is_left_to_client {
            let next = if self.policy.may_ask_whole && trouble.refuses_streaming() {
                Some(NextAttempt::Whole)
            } else if self.policy.may_ask_stream && trouble.requires_streaming() {
                Some(NextAttempt::Stream)
            } else {
                None
            };
            if let Some(next) = next {
                self.is_turned = true;
                return next;
            }
        }
        match trouble.wait(self.retries + 1) {
            Some(wait)
                if self.retries < self.policy.retries
                    && !is_left_to_client
                    && wait.is_granted()
                    && fits(&wait) =>
            {
                self.retries += 1;
                NextAttempt::Again(wait)
            }
            wait => NextAttempt::GiveUp(wait.and_then(|wait| wait.advice())),
        }
    }
}

/// Why an attempt failed before any of its response was used.
#[derive(Debug)]
pub enum AttemptTrouble {
    /// The connection was lost before the first event.
    Lost(Error),
    /// The response's status is not a success. The body has its secrets removed.
    Refused(Head, String),
    /// The replayed tape has no response to this request.
    Miss(Miss),
}

impl AttemptTrouble {
    /// Returns the wait before a retry after attempt `attempt` (from 1), or `None` if a retry would
    /// fail in the same way.
    pub fn wait(&self, attempt: u32) -> Option<Wait> {
        let wait = |head: Option<&Head>| {
            Wait::new(
                attempt,
                |name| head.and_then(|h| h.header(name)),
                SystemTime::now(),
                chance(),
            )
        };
        match self {
            AttemptTrouble::Lost(_) => Some(wait(None)),
            AttemptTrouble::Refused(head, body)
                if may_retry(head.status) && !is_context_overflow(head.status, body.as_bytes()) =>
            {
                Some(wait(Some(head)))
            }
            _ => None,
        }
    }

    /// Whether the connection was lost for a reason other than a timeout.
    pub fn is_lost_connection(&self) -> bool {
        matches!(self, AttemptTrouble::Lost(error) if !error.is_timeout())
    }

    /// Whether the same request may succeed later.
    pub fn may_pass(&self) -> bool {
        self.wait(1).is_some()
    }

    /// Returns a sentence about what went wrong.
    pub fn message(&self) -> Cow<'_, str> {
        match self {
            AttemptTrouble::Lost(error) => Cow::Owned(error.to_string()),
            AttemptTrouble::Refused(head, body) => {
                Cow::Owned(error_message(head.status, body.as_bytes()))
            }
            AttemptTrouble::Miss(miss) => Cow::Owned(miss.to_string()),
        }
    }

    /// Returns the provider's message if it rejects tools, else `None`.
    pub fn refuses_tools(&self) -> Option<String> {
        let AttemptTrouble::Refused(head, body) = self else {
            return None;
        };
        refuses_tools(head.status, body)
    }

    /// Whether the provider seems to reject streaming, judging by its status and its message. If
    /// so, the same request without streaming may succeed.
    pub fn refuses_streaming(&self) -> bool {
        let AttemptTrouble::Refused(head, body) = self else {
            return false;
        };
        match head.status {
            405 | 501 => true,
            400 | 403 | 404 | 406 | 415 | 422 => {
                let body = body.to_lowercase();
                names_streaming(&body) && REFUSALS.iter().any(|word| body.contains(word))
            }
            _ => false,
        }
    }

    /// Whether the provider seems to respond only with streams, judging by its status and its
    /// message. Any message about streaming counts, since the same request with streaming gets the
    /// same error if it is about something else.
    pub fn requires_streaming(&self) -> bool {
        let AttemptTrouble::Refused(head, body) = self else {
            return false;
        };
        matches!(head.status, 400 | 403 | 404..=406 | 415 | 422 | 501)
            && names_streaming(&body.to_lowercase())
    }
}

/// Whether a message in lower case is about streaming.
fn names_streaming(message: &str) -> bool {
    let message = message.replace("upstream", "").replace("downstream", "");
    message.contains("stream")
}

/// Phrases in the messages of servers that reject streaming, or the request member that enables it.
const REFUSALS: [&str; 15] = [
    "not support",
    "n't support",
    "unsupported",
    "not available",
    "unavailable",
    "not allowed",
    "not permitted",
    "not enabled",
    "disabled",
    "not implemented",
    "unknown",
    "unrecognized",
    "verified to stream",
    "cannot stream",
    "must be false",
];

/// The longest accepted wait. A longer one is an error at once, so that the user can decide what to
/// do.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// A wait that is longer than this is announced before it begins.
const ANNOUNCE_ABOVE: Duration = Duration::from_secs(2);
/// The first wait if the server asks for none. Each further wait is twice as long, up to
/// `MAX_BACK_OFF`.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait if the server asks for none.
const MAX_BACK_OFF: Duration = Duration::from_secs(8);

/// Whether a request may be retried after this HTTP status: a timeout, a conflict, a rate limit or
/// a server error. OpenAI's and Anthropic's own clients retry on the same statuses
/// (<https://github.com/openai/openai-python>, `_should_retry`).
fn may_retry(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// Returns the wait that the response's headers ask for, and the header as `name: value`. `header`
/// and `now` are as in [`Wait::new`].
fn asked<'h>(
    header: impl Fn(&str) -> Option<&'h str>,
    now: SystemTime,
) -> Option<(Duration, String)> {
    // Dates are relative to the server's own `date`, so that a wrong clock on either side has no
    // effect, and a replayed response gives the same wait.
    let now = header("date")
        .and_then(|text| httpdate::parse_http_date(text).ok())
        .unwrap_or(now);
    let date = |text: &str| {
        Some(
            httpdate::parse_http_date(text)
                .ok()?
                .duration_since(now)
                .unwrap_or_default(),
        )
    };
    ["retry-after-ms", "retry-after"]
        .into_iter()
        .find_map(|name| {
            let text = header(name)?.trim();
            let time = match name {
                "retry-after-ms" => number(text, 0.001),
                _ => number(text, 1.0).or_else(|| date(text)),
            };
            Some((time?, format!("{name}: {text}")))
        })
}

/// Returns the wait that the response's headers ask for, or `None` if they ask for none. It may be
/// longer than an accepted [`Wait`]. A date is relative to the response's own date, or to `now`.
pub fn retry_after(head: &Head, now: SystemTime) -> Option<Duration> {
    asked(|name| head.header(name), now).map(|(time, _)| time)
}

/// A wait before a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The time to wait.
    pub time: Duration,
    /// The wait before its random reduction. Messages show this one, so that they are the same on
    /// every run.
    longest: Duration,
    /// The provider's header that asks for the wait, as `name: value`, for messages.
    header: Option<String>,
}

impl Wait {
    /// The wait after attempt `attempt` (from 1) failed. `header` looks up a header of the answer
    /// by its name in lower case. A date in `retry-after` counts from the answer's own `date`, or
    /// from `now`. `chance` (0 to 1) shortens the back-off by 0 to 25 %, so that clients do not all
    /// retry at the same moment.
    pub fn new<'h>(
        attempt: u32,
        header: impl Fn(&str) -> Option<&'h str>,
        now: SystemTime,
        chance: f64,
    ) -> Wait {
        match asked(header, now) {
            Some((time, header)) => Wait {
                time,
                longest: time,
                header: Some(header),
            },
            None => {
                let longest = FIRST_WAIT
                    .saturating_mul(1 << (attempt.max(1) - 1).min(8))
                    .min(MAX_BACK_OFF);
                Wait {
                    time: longest.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 4.0),
                    longest,
                    header: None,
                }
            }
        }
    }

    /// Whether the wait is short enough to be accepted.
    pub fn is_granted(&self) -> bool {
        self.time <= MAX_WAIT
    }

    /// Whether the wait is long enough to be announced to the user.
    pub fn is_announced(&self) -> bool {
        self.longest > ANNOUNCE_ABOVE
    }

    /// Returns when the request is retried, such as `in 30 s (retry-after: 30)`.
    pub fn when(&self) -> String {
        match &self.header {
            Some(header) => format!("in {} ({header})", plain(self.time)),
            None => format!("within {}", plain(self.longest)),
        }
    }

    /// Returns the wait that the provider asks for, to be shown in an error; `None` if it asks for
    /// none, or for a short one.
    pub fn advice(&self) -> Option<String> {
        let header = self.header.as_ref().filter(|_| self.is_announced())?;
        let too_long = if self.is_granted() {
            ""
        } else {
            ", longer than the maximum of 120 s"
        };
        Some(format!(
            "the provider asks for a wait of {} ({header}){too_long}: retry after that",
            plain(self.time)
        ))
    }
}

fn number(text: &str, unit: f64) -> Option<Duration> {
    let n = text
        .parse::<f64>()
        .ok()
        .filter(|n| n.is_finite() && *n >= 0.0)?;
    Some(Duration::try_from_secs_f64(n * unit).unwrap_or(Duration::MAX))
}

/// Formats a time for users in the largest unit that fits.
fn plain(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=10 => format!("{} s", (time.as_secs_f64() * 10.0).round() / 10.0),
        11..=120 => format!("{seconds} s"),
        121..=7200 => format!("{} min", seconds.div_ceil(60)),
        7201..=172_800 => format!("{} h", seconds.div_ceil(3600)),
        _ => format!("{} days", seconds.div_ceil(86_400)),
    }
}

/// Returns a random number from 0 to 1.
fn chance() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    (random >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, headers: &[(&str, &str)], body: &str) -> AttemptTrouble {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        AttemptTrouble::Refused(
            Head {
                status,
                headers,
                ..Head::default()
            },
            body.to_owned(),
        )
    }

    /// A word for each decision, and the numbers after it.
    fn decisions(
        policy: AttemptPolicy,
        troubles: &[AttemptTrouble],
    ) -> Vec<(String, u32, u32, u32)> {
        let mut attempts = Attempts::new(policy);
        let mut told = vec![];
        for trouble in troubles {
            let word = match attempts.after(trouble, |_| true) {
                NextAttempt::Tagged(_) => "tagged".to_owned(),
                NextAttempt::Whole => "whole".to_owned(),
                NextAttempt::Stream => "stream".to_owned(),
                NextAttempt::Again(wait) => format!("again {}", wait.when()),
                NextAttempt::GiveUp(advice) => format!("give up {}", advice.is_some()),
            };
            told.push((
                word,
                attempts.number(),
                attempts.retries(),
                attempts.fallbacks(),
            ));
        }
        told
    }

    #[test]
    fn each_form_is_tried_once_and_retries_are_counted() {
        let all = AttemptPolicy {
            retries: 2,
            only_lost: false,
            may_ask_whole: true,
            may_ask_stream: false,
            may_tag: true,
        };
        let no_tools = || {
            refused(
                400,
                &[],
                r#"{"error":{"message":"this model does not support tools"}}"#,
            )
        };
        let no_stream = || refused(400, &[], "streaming is not supported");
        let busy = || refused(503, &[("retry-after", "1")], "busy");
        let steps = [no_tools(), no_stream(), busy(), busy(), busy()];
        let expected = [
            ("tagged".to_owned(), 2, 0, 1),
            ("whole".to_owned(), 2, 0, 2),
            ("again in 1 s (retry-after: 1)".to_owned(), 3, 1, 2),
            ("again in 1 s (retry-after: 1)".to_owned(), 4, 2, 2),
            ("give up false".to_owned(), 4, 2, 2),
        ];
        assert_eq!(decisions(all, &steps), expected);
        for again in [no_tools(), no_stream()] {
            let word = decisions(all, &[no_tools(), no_stream(), again])
                .pop()
                .unwrap()
                .0;
            assert_eq!(word, "give up false");
        }
        assert_eq!(
            decisions(AttemptPolicy::default(), &[no_tools()])[0].0,
            "give up false"
        );
    }

    #[test]
    fn a_stream_is_requested_once_where_a_whole_response_is_rejected() {
        let policy = AttemptPolicy {
            may_ask_stream: true,
            ..AttemptPolicy::default()
        };
        for (status, body, word) in [
            (
                400,
                r#"{"error":{"message":"parameter.enable_thinking must be set to false for non-streaming calls"}}"#,
                "stream",
            ),
            (400, r#"{"detail":"Stream must be set to true"}"#, "stream"),
            (422, "this model only supports stream mode", "stream"),
            (400, "the upstream refused max_tokens", "give up false"),
            (501, "not implemented", "give up false"),
            (503, "the stream service is busy", "give up false"),
        ] {
            let twice = [refused(status, &[], body), refused(status, &[], body)];
            let told = decisions(policy, &twice);
            assert_eq!(
                (&*told[0].0, &*told[1].0),
                (word, "give up false"),
                "{body}"
            );
            assert_eq!(told[1].3, u32::from(word == "stream"), "{body}");
            let never = decisions(AttemptPolicy::default(), &twice);
            assert_eq!(never[0].0, "give up false", "{body}");
        }
    }

    #[test]
    fn an_error_that_may_pass_is_left_to_a_client_that_retries() {
        let policy = AttemptPolicy {
            retries: 1,
            only_lost: true,
            may_ask_whole: true,
            may_ask_stream: false,
            may_tag: true,
        };
        let lost = || {
            AttemptTrouble::Lost(Error::new(
                crate::ErrorKind::RecordedLoss,
                "the connection was lost when this was recorded",
            ))
        };
        for (trouble, first) in [
            (lost(), "again within 0.5 s"),
            (
                AttemptTrouble::Lost(crate::Error::idle(std::time::Duration::from_secs(1))),
                "give up false",
            ),
            (refused(429, &[("retry-after", "1")], ""), "give up false"),
            (refused(500, &[], ""), "give up false"),
            (refused(501, &[], ""), "give up false"),
            (refused(405, &[], ""), "whole"),
        ] {
            assert_eq!(decisions(policy, &[trouble])[0].0, first);
        }
        let words: Vec<String> = decisions(policy, &[lost(), lost()])
            .into_iter()
            .map(|(word, ..)| word)
            .collect();
        assert_eq!(words, ["again within 0.5 s", "give up false"]);
    }

    #[test]
    fn a_wait_that_is_too_long_ends_the_attempts_with_the_providers_figure() {
        let mut attempts = Attempts::new(AttemptPolicy {
            retries: 2,
            ..AttemptPolicy::default()
        });
        let long = refused(429, &[("retry-after", "3600")], "");
        assert!(
            matches!(attempts.after(&long, |_| true), NextAttempt::GiveUp(Some(advice)) if advice.contains("60 min"))
        );
        let short = refused(429, &[("retry-after", "60")], "");
        assert!(matches!(
            attempts.after(&short, |_| false),
            NextAttempt::GiveUp(Some(_))
        ));
        assert!(matches!(
            attempts.after(&short, |_| true),
            NextAttempt::Again(_)
        ));
    }
}

#[cfg(test)]
mod wait_tests {
    use super::*;

    fn after(headers: &[(&str, &'static str)]) -> Wait {
        // Sun, 06 Nov 1994 08:49:37 GMT.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        Wait::new(
            1,
            |name| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| *v),
            now,
            0.0,
        )
    }

    #[test]
    fn the_server_may_say_how_long() {
        for (headers, millis) in [
            (&[("retry-after-ms", "20"), ("retry-after", "9")][..], 20),
            (&[("retry-after", "1.5")], 1500),
            (&[("retry-after", " 120 ")], 120_000),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], 10_000),
            (&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], 0),
            // Its date counts from its own clock, not from ours.
            (
                &[
                    ("retry-after", "Mon, 07 Nov 1994 08:00:05 GMT"),
                    ("date", "Mon, 07 Nov 1994 08:00:00 GMT"),
                ],
                5000,
            ),
        ] {
            let wait = after(headers);
            assert_eq!(
                (wait.time, wait.is_granted()),
                (Duration::from_millis(millis), true),
                "{headers:?}"
            );
        }
        for nonsense in ["soon", "-1", "NaN", "inf", ""] {
            assert_eq!(
                after(&[("retry-after", nonsense)]).time,
                FIRST_WAIT,
                "{nonsense}"
            );
        }
        assert_eq!(
            after(&[("retry-after-ms", "soon"), ("retry-after", "9")]).time,
            Duration::from_secs(9)
        );
    }

    #[test]
    fn more_than_two_minutes_are_not_waited_for() {
        for (header, value, says) in [
            (
                "retry-after",
                "3600",
                "a wait of 60 min (retry-after: 3600), longer than the maximum of 120 s",
            ),
            (
                "retry-after-ms",
                "7200001",
                "a wait of 120 min (retry-after-ms: 7200001), longer",
            ),
            ("retry-after", "1e300", "days (retry-after: 1e300), longer"),
            (
                "retry-after",
                "121",
                "a wait of 3 min (retry-after: 121), longer",
            ),
            (
                "retry-after",
                "Sun, 06 Nov 1994 18:49:37 GMT",
                "10 h (retry-after: Sun, 06 Nov 1994 18:49:37 GMT), longer",
            ),
        ] {
            let wait = after(&[(header, value)]);
            let advice = wait.advice().unwrap_or_default();
            assert!(
                !wait.is_granted() && wait.is_announced() && advice.contains(says),
                "{advice}"
            );
        }
    }

    #[test]
    fn more_than_two_seconds_are_announced() {
        for (seconds, announced) in [("0", false), ("2", false), ("2.1", true), ("30", true)] {
            let wait = after(&[("retry-after", seconds)]);
            assert_eq!(
                (wait.is_announced(), wait.advice().is_some()),
                (announced, announced),
                "{seconds}"
            );
        }
        assert_eq!(
            after(&[("retry-after", "30")]).when(),
            "in 30 s (retry-after: 30)"
        );
        assert_eq!(
            after(&[("retry-after-ms", "2500")]).when(),
            "in 2.5 s (retry-after-ms: 2500)"
        );
        // Chance does not decide whether it is announced, nor how.
        let by = |chance| Wait::new(4, |_| None, SystemTime::UNIX_EPOCH, chance);
        assert_eq!(
            (by(0.0).when(), by(1.0).when()),
            ("within 4 s".to_owned(), "within 4 s".to_owned())
        );
        assert!(by(1.0).is_announced() && by(0.0).advice().is_none());
    }

    #[test]
    fn else_it_doubles_up_to_eight_seconds_less_a_quarter_at_most() {
        let wait = |n, chance| Wait::new(n, |_| None, SystemTime::UNIX_EPOCH, chance).time;
        let waits: Vec<u128> = (1..=7).map(|n| wait(n, 0.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(wait(5, 1.0), Duration::from_secs(6));
        assert_eq!(wait(u32::MAX, 0.0), MAX_BACK_OFF);
        let some = chance();
        assert!((0.0..=1.0).contains(&some) && some != chance());
    }

    #[test]
    fn statuses() {
        assert!(
            [408, 409, 429, 500, 502, 503, 504, 529]
                .into_iter()
                .all(may_retry)
        );
        assert!(![400, 401, 403, 404, 422, 301].into_iter().any(may_retry));
    }
}
