//! `--retain`: which old sessions to remove, and the background task that removes them.

use super::{IndexedSession, RunFile, Sessions, index};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use store::{SessionScan, StoredSession};

/// A rule that says which sessions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retain {
    /// Sessions written within this time.
    Age(Duration),
    /// The most recently written sessions, up to this many bytes in total.
    Bytes(u64),
    /// This many of the most recently written sessions.
    Count(usize),
}

impl Retain {
    /// Parses the value of the option, such as `30d`, `10G` or `1000`.
    ///
    /// # Errors
    /// A one-line error for any other text. `m` is rejected because it could mean minutes or
    /// megabytes.
    pub(crate) fn of(text: &str) -> Result<Retain, String> {
        const HOW: &str = "write an age as 12h, 30d or 4w, bytes as 500M, 10G or 1T, or a number of sessions as 1000";
        let digits = text.trim_end_matches(|sign: char| !sign.is_ascii_digit());
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = match digits.parse() {
            Ok(number) if is_number && number > 0 => number,
            _ => return Err(HOW.to_owned()),
        };
        let times = |unit: u64| number.checked_mul(unit).ok_or_else(|| HOW.to_owned());
        let age = |hours: u64| Ok(Retain::Age(Duration::from_secs(times(hours * 3600)?)));
        match &text[digits.len()..] {
            "" => usize::try_from(number)
                .map(Retain::Count)
                .map_err(|_| HOW.to_owned()),
            "h" => age(1),
            "d" => age(24),
            "w" => age(24 * 7),
            "M" => times(1 << 20).map(Retain::Bytes),
            "G" => times(1 << 30).map(Retain::Bytes),
            "T" => times(1 << 40).map(Retain::Bytes),
            _ => Err(HOW.to_owned()),
        }
    }
}

/// Returns the sessions that these rules remove, least recently written first. `now` is in
/// nanoseconds since 1970.
fn removed(mut all: Vec<StoredSession>, rules: &[Retain], now: i128) -> Vec<StoredSession> {
    all.sort_unstable_by_key(|session| (session.modified, session.id));
    let mut bytes: u64 = all.iter().map(|session| session.bytes).sum();
    let mut count = all.len();
    let is_too_much = |session: &StoredSession, bytes: u64, count: usize| {
        rules.iter().any(|rule| match *rule {
            Retain::Age(age) => {
                let age = i128::try_from(age.as_nanos()).unwrap_or(i128::MAX);
                session.modified < now - age
            }
            Retain::Bytes(most) => bytes > most,
            Retain::Count(most) => count > most,
        })
    };
    let kept = all.iter().position(|session| {
        let is_kept = !is_too_much(session, bytes, count);
        bytes -= session.bytes;
        count -= 1;
        is_kept
    });
    all.truncate(kept.unwrap_or(all.len()));
    all
}

/// How often the rules are applied.
const PAUSE: Duration = Duration::from_secs(60);

/// Applies these rules to the folder, and returns the remaining sessions.
fn look(path: &Path, rules: &[Retain]) -> anyhow::Result<Vec<IndexedSession>> {
    let scan = SessionScan::open(path)?;
    if !rules.is_empty() {
        let now = i128::try_from(store::since_1970().as_nanos()).unwrap_or(i128::MAX);
        for session in removed(scan.list()?, rules, now) {
            // Removal fails for a session that is being written; next time it is among the newest.
            // A session with a call that waits for approval is kept, however old it is.
            if !RunFile::is_held(&path.join(session.id.path())) {
                let _ = scan.remove(session.id);
            }
        }
    }
    Ok(index::sessions(&scan)?)
}

impl Sessions {
    /// Counts the sessions of each key and applies these rules: at once, every minute, and after a
    /// number of new sessions.
    pub(crate) async fn keep_house(self: Rc<Self>, rules: Vec<Retain>) {
        self.quota.removes.set(!rules.is_empty());
        loop {
            self.quota.begin_count();
            let path = self.store.path().to_owned();
            let known = rules.clone();
            let looked = tokio::task::spawn_blocking(move || look(&path, &known)).await;
            // If the folder cannot be read now, the next round tries again.
            if let Ok(Ok(found)) = looked {
                self.quota.counted(found);
            }
            let due = self.quota.is_due.notified();
            if rules.is_empty() {
                due.await;
            } else {
                let _ = tokio::time::timeout(PAUSE, due).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::SessionId;

    #[test]
    fn ages_bytes_and_counts_differ() {
        let hour = Duration::from_secs(3600);
        for (text, rule) in [
            ("12h", Retain::Age(12 * hour)),
            ("30d", Retain::Age(720 * hour)),
            ("2w", Retain::Age(336 * hour)),
            ("500M", Retain::Bytes(500 << 20)),
            ("10G", Retain::Bytes(10 << 30)),
            ("1T", Retain::Bytes(1 << 40)),
            ("1000", Retain::Count(1000)),
        ] {
            assert_eq!(Retain::of(text), Ok(rule), "{text}");
        }
        for wrong in [
            "",
            "0",
            "0d",
            "30m",
            "30D",
            "10g",
            "10 G",
            "-1",
            "+1",
            "1.5G",
            "d",
            "1d2h",
            "10GB",
            "99999999999T",
            "99999999999999999999",
        ] {
            assert!(Retain::of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_written_least_recently_is_removed_first() {
        let session = |id: u8, bytes: u64, modified: i128| StoredSession {
            id: SessionId([id; 16]),
            bytes,
            modified,
        };
        let hour = 3_600_000_000_000;
        let all = [
            (1, 10, 5 * hour),
            (2, 20, hour),
            (3, 30, 3 * hour),
            (4, 1, 4 * hour),
        ];
        let left = |rules: &[Retain]| -> Vec<u8> {
            let all = all.map(|(id, bytes, modified)| session(id, bytes, modified));
            let removed = removed(all.into(), rules, 5 * hour);
            removed.iter().map(|session| session.id.0[0]).collect()
        };
        const NONE: [u8; 0] = [];
        assert_eq!(left(&[]), NONE);
        assert_eq!(left(&[Retain::Count(4)]), NONE);
        assert_eq!(left(&[Retain::Count(3)]), [2]);
        assert_eq!(left(&[Retain::Bytes(61)]), NONE);
        assert_eq!(left(&[Retain::Bytes(41)]), [2]);
        assert_eq!(left(&[Retain::Bytes(40)]), [2, 3]);
        assert_eq!(left(&[Retain::Age(Duration::from_secs(2 * 3600))]), [2]);
        let both = [Retain::Age(Duration::from_secs(3600)), Retain::Count(1)];
        assert_eq!(left(&both), [2, 3, 4]);
    }
}
