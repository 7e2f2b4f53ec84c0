//! Runs jobs in several threads, and returns their results in the order of the jobs.

use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Maximum number of finished jobs per thread that wait for an earlier job.
const AHEAD: usize = 32;

/// Takes jobs from `next` until that returns `None`, works on them in `threads` threads, each with
/// a state of its own, and gives the results to `consume` in this thread, in the order of the jobs.
///
/// # Errors
/// Returns the first error of `consume`, which ends the work.
pub(super) fn in_order<J: Send, R: Send, S, E>(
    threads: usize,
    next: impl FnMut() -> Option<J> + Send,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, J) -> R + Sync,
    mut consume: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    // The place of each result goes through this channel in the order of the jobs; its size keeps
    // the threads from running ahead of the slowest job.
    let (order, results) = sync_channel(AHEAD * threads);
    let next = Mutex::new(next);
    let take = || (next.lock().unwrap_or_else(PoisonError::into_inner))();
    thread::scope(|scope| {
        // Dropping this at the end of the scope ends the threads.
        let results = results;
        let start = |_: &usize| {
            let next = &next;
            let state = &state;
            let work = &work;
            let order = order.clone();
            let run = move || {
                let mut state = state();
                loop {
                    let (give, result) = channel();
                    let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(job) = next().filter(|_| order.send(result).is_ok()) else {
                        return;
                    };
                    drop(next);
                    // Fails if the work has ended.
                    let _ = give.send(work(&mut state, job));
                }
            };
            thread::Builder::new().spawn_scoped(scope, run).is_ok()
        };
        // Where the system allows no more threads, those that run do the work, or this one does.
        let started = (0..threads).take_while(start).count();
        drop(order);
        if started == 0 {
            let mut state = state();
            return std::iter::from_fn(take).try_for_each(|job| consume(work(&mut state, job)));
        }
        // A result that does not come is that of a thread that panicked: so does this scope.
        let mut results = results.iter().map_while(|result| result.recv().ok());
        results.try_for_each(consume)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn results_come_in_the_order_of_the_jobs_and_few_wait() {
        for threads in [1, 2, 8] {
            let mut number = 0;
            let consumed = AtomicU64::new(0);
            let furthest = AtomicU64::new(0);
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
