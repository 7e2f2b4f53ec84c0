//! Whether a request is sent again, and how long to wait before.

use std::time::{Duration, SystemTime};

/// The longest wait that a server is granted.
const LONGEST: Duration = Duration::from_secs(120);
/// The first wait when the server names none; it doubles each time.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait when the server names none.
const BACK_OFF: Duration = Duration::from_secs(8);

/// Whether a request that was answered with this HTTP status may be sent again.
pub fn may_retry(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// How long to wait after attempt `attempt` (from 1) failed. `header` gives the answer's header of a name in lower case, `now`
/// is compared with a date in `retry-after`, and `chance` (0 to 1) decides how much of a quarter the back-off is shortened by.
pub fn wait<'h>(attempt: u32, header: impl Fn(&str) -> Option<&'h str>, now: SystemTime, chance: f64) -> Duration {
    let number = |text: &str, unit: f64| {
        let n = text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)?;
        Some(Duration::from_secs_f64((n * unit).min(LONGEST.as_secs_f64())))
    };
    let date = |text: &str| Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default());
    let told = header("retry-after-ms").and_then(|text| number(text, 0.001));
    let told = told.or_else(|| header("retry-after").and_then(|text| number(text, 1.0).or_else(|| date(text))));
    told.map(|wait| wait.min(LONGEST)).unwrap_or_else(|| back_off(attempt, chance))
}

fn back_off(attempt: u32, chance: f64) -> Duration {
    let doubled = FIRST.saturating_mul(1 << (attempt.max(1) - 1).min(8)).min(BACK_OFF);
    doubled.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 4.0)
}

/// A number from 0 to 1, different in each process and call.
pub fn chance() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    (random >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(headers: &[(&str, &'static str)]) -> Duration {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
        wait(1, |name| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| *v), now, 0.0)
    }

    #[test]
    fn the_server_may_say_how_long() {
        assert_eq!(after(&[("retry-after-ms", "20"), ("retry-after", "9")]), Duration::from_millis(20));
        assert_eq!(after(&[("retry-after", "1.5")]), Duration::from_millis(1500));
        assert_eq!(after(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")]), Duration::from_secs(10));
        assert_eq!(after(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), Duration::ZERO);
        assert_eq!(after(&[("retry-after", "3600")]), LONGEST);
        assert_eq!(after(&[("retry-after", "1e300")]), LONGEST);
        assert_eq!(after(&[("retry-after", "Sun, 06 Nov 1994 18:49:37 GMT")]), LONGEST);
        for nonsense in ["soon", "-1", "NaN", "inf", ""] {
            assert_eq!(after(&[("retry-after", nonsense)]), FIRST, "{nonsense}");
        }
    }

    #[test]
    fn else_it_doubles_up_to_eight_seconds_less_a_quarter_at_most() {
        let waits: Vec<u128> = (1..=7).map(|n| wait(n, |_| None, SystemTime::now(), 0.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(wait(5, |_| None, SystemTime::now(), 1.0), Duration::from_secs(6));
        assert_eq!(wait(u32::MAX, |_| None, SystemTime::now(), 0.0), BACK_OFF);
        let some = chance();
        assert!((0.0..=1.0).contains(&some) && some != chance());
    }

    #[test]
    fn statuses() {
        assert!([408, 409, 429, 500, 502, 503, 504, 529].into_iter().all(may_retry));
        assert!(![400, 401, 403, 404, 422, 301].into_iter().any(may_retry));
    }
}
