//! The pace of turns that ask one server at the same time: a rate limit slows all of them.

use client::AttemptTrouble;
use std::cell::RefCell;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The pace that turns of one thread share. A server that is busy (429, 503, 529) holds up all of
/// them for the wait that it asks for, and halves how many requests are open at once; each answer
/// allows a little more again, as TCP does with its window.
#[derive(Debug)]
pub struct Pace {
    state: RefCell<PaceState>,
    changed: Notify,
}

/// The state of a [`Pace`], which never waits and reads no clock.
#[derive(Debug)]
struct PaceState {
    most: usize,
    /// How many requests may be open now, from 1 to `most`.
    allowed: f64,
    open: usize,
    /// No request begins before this time; `None` without a wait so far.
    until: Option<Instant>,
    /// When `allowed` was halved last. Refusals of requests that had begun before are of the same
    /// burst, and do not halve it again.
    halved: Option<Instant>,
    answers: u64,
}

/// Whether a request may begin.
#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Now,
    At(Instant),
    /// After another request has ended.
    Later,
}

impl Pace {
    /// Creates a pace with at most `most` open requests.
    pub fn new(most: usize) -> Pace {
        Pace {
            state: RefCell::new(PaceState::new(most)),
            changed: Notify::new(),
        }
    }

    /// Waits until a request may begin.
    pub(crate) async fn enter(&self) -> PlaceInPace<'_> {
        loop {
            let changed = self.changed.notified();
            let begun = Instant::now();
            let entry = self.state.borrow_mut().enter(begun);
            match entry {
                Entry::Now => return PlaceInPace { pace: self, begun },
                Entry::At(time) => sleep_until(time).await,
                Entry::Later => changed.await,
            }
        }
    }

    /// Returns how many requests were answered so far.
    pub(crate) fn answers(&self) -> u64 {
        self.state.borrow().answers
    }

    /// Lets no request begin for this long.
    pub(crate) fn hold(&self, wait: Duration) {
        self.state.borrow_mut().hold(Instant::now() + wait);
    }
}

/// An open request. Dropping it makes room for the next one.
#[derive(Debug)]
pub(crate) struct PlaceInPace<'p> {
    pace: &'p Pace,
    begun: Instant,
}

impl PlaceInPace<'_> {
    /// Records that the server has answered.
    pub(crate) fn answered(&self) {
        self.pace.state.borrow_mut().answered();
    }

    /// Records that the server is busy.
    pub(crate) fn refused(&self) {
        self.pace
            .state
            .borrow_mut()
            .refused(self.begun, Instant::now());
    }
}

impl Drop for PlaceInPace<'_> {
    fn drop(&mut self) {
        self.pace.state.borrow_mut().open -= 1;
        self.pace.changed.notify_waiters();
    }
}

/// Whether the server is busy with all that it is asked, not only with this request: a rate limit,
/// or too much load.
pub(crate) fn is_busy(trouble: &AttemptTrouble) -> bool {
    matches!(trouble, AttemptTrouble::Refused(head, _) if matches!(head.status, 429 | 503 | 529))
}

impl PaceState {
    fn new(most: usize) -> PaceState {
        PaceState {
            most,
            allowed: most as f64,
            open: 0,
            until: None,
            halved: None,
            answers: 0,
        }
    }

    fn enter(&mut self, now: Instant) -> Entry {
        if let Some(until) = self.until.filter(|until| *until > now) {
            return Entry::At(until);
        }
        if self.open as f64 + 1.0 > self.allowed {
            return Entry::Later;
        }
        self.open += 1;
        Entry::Now
    }

    fn hold(&mut self, until: Instant) {
        self.until = self.until.max(Some(until));
    }

    fn answered(&mut self) {
        self.answers += 1;
        self.allowed = (self.allowed + 1.0 / self.allowed).min(self.most as f64);
    }

    fn refused(&mut self, begun: Instant, now: Instant) {
        if self.halved.is_none_or(|halved| begun > halved) {
            self.allowed = (self.allowed / 2.0).max(1.0);
            self.halved = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many requests begin at `now`, and what the next one is told.
    fn begin(state: &mut PaceState, now: Instant) -> (usize, Entry) {
        let mut begun = 0;
        loop {
            match state.enter(now) {
                Entry::Now => begun += 1,
                other => return (begun, other),
            }
        }
    }

    #[test]
    fn a_busy_server_holds_up_all_and_a_burst_of_refusals_halves_once() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut state = PaceState::new(8);
        assert_eq!(begin(&mut state, at(0)), (8, Entry::Later));
        for _ in 0..8 {
            state.refused(at(0), at(1));
            state.hold(at(3));
            state.open -= 1;
        }
        state.hold(at(2));
        assert_eq!(begin(&mut state, at(2)), (0, Entry::At(at(3))));
        assert_eq!(begin(&mut state, at(3)), (4, Entry::Later));
        // The next burst, at its longest: one request at a time is always allowed.
        for second in 4..9 {
            state.refused(at(second), at(second));
        }
        state.open = 0;
        assert_eq!(begin(&mut state, at(9)), (1, Entry::Later));
        let mut answers = 0;
        while state.allowed < 8.0 {
            state.answered();
            answers += 1;
        }
        assert!((20..50).contains(&answers), "{answers} answers");
        assert_eq!(begin(&mut state, at(9)), (7, Entry::Later));
    }
}
