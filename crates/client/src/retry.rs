//! Whether a request is sent again, and how long to wait before that. Nothing here sleeps or looks
//! at a clock.

use api::tape::Head;
use std::time::{Duration, SystemTime};

/// The longest wait that is accepted. A longer one is an error at once: a person would rather
/// decide than watch a command wait.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// A wait that is longer than this is announced before it begins.
const ANNOUNCE_ABOVE: Duration = Duration::from_secs(2);
/// The first wait where the server asks for none. Each further one is twice as long, up to
/// `MAX_BACK_OFF`.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait where the server asks for none.
const MAX_BACK_OFF: Duration = Duration::from_secs(8);

/// Whether a request may be sent again after this HTTP status: a time-out, a conflict, a rate limit
/// or a failure of the server. OpenAI's and Anthropic's own clients retry on the same
/// (<https://github.com/openai/openai-python>, `_should_retry`).
pub fn may_retry(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// The wait that the answer's headers ask for, with the header as `name: value`. `header` and `now`
/// are those of [`Wait::new`].
fn asked<'h>(
    header: impl Fn(&str) -> Option<&'h str>,
    now: SystemTime,
) -> Option<(Duration, String)> {
    // The server's own `date` is the reference: a wrong clock on either side changes nothing, and a
    // replayed answer gives the same wait.
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

/// The wait that the headers of an answer ask for, if they ask for one. It may be longer than a
/// [`Wait`] that is granted. A date counts from the answer's own, or from `now`.
pub fn retry_after(head: &Head, now: SystemTime) -> Option<Duration> {
    asked(|name| head.header(name), now).map(|(time, _)| time)
}

/// A wait before a request is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The time to wait.
    pub time: Duration,
    /// The wait before its random reduction. Messages give this one, so that they are the same on
    /// every run.
    longest: Duration,
    /// The provider's header that asks for the wait, as `name: value`; messages quote it.
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

    /// Whether it is short enough to wait for.
    pub fn is_granted(&self) -> bool {
        self.time <= MAX_WAIT
    }

    /// Whether the wait is long enough to be announced to the user.
    pub fn is_announced(&self) -> bool {
        self.longest > ANNOUNCE_ABOVE
    }

    /// When the request is sent again, such as `in 30 s (retry-after: 30)`.
    pub fn when(&self) -> String {
        match &self.header {
            Some(header) => format!("in {} ({header})", plain(self.time)),
            None => format!("within {}", plain(self.longest)),
        }
    }

    /// The provider's figure, for an error in place of the wait; `None` where the provider names no
    /// wait, or a short one.
    pub fn advice(&self) -> Option<String> {
        let header = self.header.as_ref().filter(|_| self.is_announced())?;
        let too_long = if self.is_granted() {
            ""
        } else {
            ", longer than the 120 s that are granted"
        };
        Some(format!(
            "the provider asks for a wait of {} ({header}){too_long}: ask again then",
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

/// A time for people, in the largest unit that fits.
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

/// A random number from 0 to 1.
pub fn chance() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    (random >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
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
                "a wait of 60 min (retry-after: 3600), longer than the 120 s that are granted",
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
