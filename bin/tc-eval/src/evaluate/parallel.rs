//! Work in several threads with results in the order of the jobs, and with a bound on how many of
//! them wait.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How many results for each thread may wait for a slower one before them.
const AHEAD: u64 = 32;

/// Takes jobs from `next` until that returns `None`, works on them in `threads` threads, each with
/// a state of its own, and gives the results to `consume` in this thread, in the order of the jobs.
/// With one thread everything happens in this one.
///
/// # Errors
/// The first error of `consume`, which ends the work.
pub fn in_order<J: Send, R: Send, S, E>(
    threads: usize,
    mut next: impl FnMut() -> Option<J> + Send,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, J) -> R + Sync,
    mut consume: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    if threads <= 1 {
        let mut state = state();
        while let Some(job) = next() {
            consume(work(&mut state, job))?;
        }
        return Ok(());
    }
    let line = Line {
        jobs: Mutex::new(Jobs { next, number: 0 }),
        place: Mutex::default(),
        moved: Condvar::new(),
    };
    let ahead = AHEAD * threads as u64;
    thread::scope(|scope| {
        let (send, receive) = channel();
        let start = |_| {
            let (line, state, work, send) = (&line, &state, &work, send.clone());
            thread::Builder::new()
                .spawn_scoped(scope, move || line.work(ahead, &mut state(), work, &send))
                .is_ok()
        };
        // Where the system allows no more threads, those that run do the work.
        let started = (0..threads)
            .map(start)
            .take_while(|is_started| *is_started)
            .count();
        drop(send);
        let _end = EndOfWork(&line.place, &line.moved);
        if started == 0 {
            let mut state = state();
            while let Some((_, job)) = line.job(u64::MAX) {
                consume(work(&mut state, job))?;
            }
        }
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        for (number, result) in receive {
            early.insert(number, result);
            while let Some(result) = early.remove(&wanted) {
                wanted += 1;
                consume(result)?;
            }
            lock(&line.place).consumed = wanted;
            line.moved.notify_all();
        }
        Ok(())
    })
}

/// The jobs, and how far their results are consumed.
struct Line<N> {
    jobs: Mutex<Jobs<N>>,
    place: Mutex<Place>,
    moved: Condvar,
}

struct Jobs<N> {
    next: N,
    /// The number of the next job.
    number: u64,
}

#[derive(Default)]
struct Place {
    consumed: u64,
    has_ended: bool,
}

impl<J, N: FnMut() -> Option<J>> Line<N> {
    /// Works until no job is left.
    fn work<S, R>(
        &self,
        ahead: u64,
        state: &mut S,
        work: impl Fn(&mut S, J) -> R,
        send: &Sender<(u64, R)>,
    ) {
        // Also when this thread panics: the others must not wait for its result.
        let _end = EndOfWork(&self.place, &self.moved);
        while let Some((number, job)) = self.job(ahead) {
            if send.send((number, work(state, job))).is_err() {
                return;
            }
        }
    }

    /// The next job, once its result may wait.
    fn job(&self, ahead: u64) -> Option<(u64, J)> {
        let mut jobs = lock(&self.jobs);
        let mut place = lock(&self.place);
        while jobs.number >= place.consumed.saturating_add(ahead) && !place.has_ended {
            place = self
                .moved
                .wait(place)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if place.has_ended {
            return None;
        }
        drop(place);
        let job = (jobs.next)()?;
        jobs.number += 1;
        Some((jobs.number - 1, job))
    }
}

/// Ends the work when it is dropped.
struct EndOfWork<'e>(&'e Mutex<Place>, &'e Condvar);

impl Drop for EndOfWork<'_> {
    fn drop(&mut self) {
        lock(self.0).has_ended = true;
        self.1.notify_all();
    }
}

/// The data of a mutex. A thread that panicked with it leaves it whole: every change is one
/// assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn results_come_in_the_order_of_the_jobs_and_few_wait() {
        for threads in [1, 2, 8] {
            let (mut number, consumed, furthest) = (0, AtomicU64::new(0), AtomicU64::new(0));
            let next = || {
                number += 1;
                Some(number - 1).filter(|n| *n < 5000)
            };
            let work = |_: &mut (), n: u64| {
                furthest.fetch_max(n - consumed.load(Ordering::SeqCst).min(n), Ordering::SeqCst);
                // The first jobs take the longest, so that the later ones have to wait for them.
                (0..(5000 - n) * 10).fold(n, |a, b| std::hint::black_box(a ^ b) ^ b)
            };
            let mut results = vec![];
            let all = in_order(
                threads,
                next,
                || (),
                work,
                |n| {
                    consumed.fetch_add(1, Ordering::SeqCst);
                    results.push(n);
                    Ok::<(), ()>(())
                },
            );
            assert_eq!((all, results), (Ok(()), (0..5000).collect()));
            assert!(furthest.into_inner() <= AHEAD * threads as u64);
        }
    }

    #[test]
    fn an_error_of_the_consumer_ends_an_endless_run() {
        for threads in [1, 4] {
            let mut number = 0_u64;
            let next = || {
                number += 1;
                Some(number)
            };
            let ended = in_order(
                threads,
                next,
                || (),
                |(), n| n,
                |n| if n == 1000 { Err(n) } else { Ok(()) },
            );
            assert_eq!(ended, Err(1000));
        }
    }
}
