//! Work in several threads, whose results come in the order of the jobs.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How many jobs of each thread are given out at once.
const AHEAD: usize = 32;

/// Takes jobs from `next` until that returns `None`, works on them in `threads` threads, each with
/// a state of its own, and gives the results to `consume` in this thread, in the order of the jobs.
/// With one thread everything happens in this one.
///
/// # Errors
/// The first error of `consume`, which ends the work.
pub fn in_order<J: Send, R: Send, S, E>(
    threads: usize,
    mut next: impl FnMut() -> Option<J>,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, J) -> R + Sync,
    mut consume: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let (give, jobs) = channel();
    let jobs = Mutex::new(jobs);
    let several = thread::scope(|scope| {
        let (send, results) = channel();
        // Dropped at the end of this scope, so that the threads end.
        let give = give;
        let start = |_: &usize| {
            let (jobs, state, work, send) = (&jobs, &state, &work, send.clone());
            let run = move || work_on(jobs, &mut state(), work, &send);
            thread::Builder::new().spawn_scoped(scope, run).is_ok()
        };
        // Where the system allows no more threads, those that run do the work.
        let wanted = if threads > 1 { threads } else { 0 };
        if (0..wanted).take_while(start).count() == 0 {
            return None;
        }
        loop {
            let batch = std::iter::from_fn(&mut next).take(AHEAD * threads);
            let mut waiting: Vec<Option<R>> = Vec::new();
            for (number, job) in batch.enumerate() {
                // The threads take jobs until `give` is dropped.
                let _ = give.send((number, job));
                waiting.push(None);
            }
            if waiting.is_empty() {
                return Some(Ok(()));
            }
            for (number, result) in results.iter().take(waiting.len()) {
                match result {
                    Ok(result) => waiting[number] = Some(result),
                    Err(panic) => resume_unwind(panic),
                }
            }
            if let Err(e) = waiting.into_iter().flatten().try_for_each(&mut consume) {
                return Some(Err(e));
            }
        }
    });
    several.unwrap_or_else(|| {
        let mut state = state();
        std::iter::from_fn(next).try_for_each(|job| consume(work(&mut state, job)))
    })
}

/// Works until no job is left. A panic goes to whoever waits for the result.
fn work_on<J, R, S>(
    jobs: &Mutex<Receiver<(usize, J)>>,
    state: &mut S,
    work: impl Fn(&mut S, J) -> R,
    send: &Sender<(usize, thread::Result<R>)>,
) {
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok((number, job)) = next() {
        let result = catch_unwind(AssertUnwindSafe(|| work(state, job)));
        if send.send((number, result)).is_err() {
            return;
        }
    }
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
            assert!(furthest.into_inner() <= (AHEAD * threads) as u64);
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
