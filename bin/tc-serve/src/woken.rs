//! Work that is polled only after something has woken it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Work that is polled only if it was woken since its last poll. hyper polls the body of a response
/// again after each piece of it, and with everything else that happens to a connection; polling a
/// source that still waits costs as much as most pieces.
pub(crate) struct WokenWork {
    work: Pin<Box<dyn Future<Output = ()>>>,
    state: Arc<WorkState>,
    /// Wakes the work: the waker of `state`.
    waker: Waker,
}

struct WorkState {
    is_woken: AtomicBool,
    /// The task that polls the work.
    task: Mutex<Waker>,
}

impl WorkState {
    fn task(&self) -> MutexGuard<'_, Waker> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for WorkState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task().wake_by_ref();
    }
}

impl WokenWork {
    /// Creates work whose first poll reaches `work`.
    pub(crate) fn new(work: impl Future<Output = ()> + 'static) -> WokenWork {
        let state = Arc::new(WorkState {
            is_woken: AtomicBool::new(true),
            task: Mutex::new(Waker::noop().clone()),
        });
        WokenWork {
            work: Box::pin(work),
            waker: Waker::from(Arc::clone(&state)),
            state,
        }
    }

    /// Polls the work if it was woken.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.state.task().clone_from(cx.waker());
        if !self.state.is_woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let mut cx = Context::from_waker(&self.waker);
        self.work.as_mut().poll(&mut cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::rc::Rc;

    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn work_is_polled_when_it_was_woken_and_wakes_the_task_that_polled_last() {
        let polls = Rc::new(Cell::new(0));
        let waker = Rc::new(Cell::new(None));
        let (counted, kept) = (Rc::clone(&polls), Rc::clone(&waker));
        let mut work = WokenWork::new(poll_fn(move |cx| {
            counted.set(counted.get() + 1);
            kept.set(Some(cx.waker().clone()));
            if counted.get() == 3 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        let tasks = [(); 2].map(|()| Arc::new(Woken(AtomicBool::new(false))));
        let wakers = tasks.clone().map(Waker::from);
        let [first, second] = wakers.each_ref().map(Context::from_waker);
        assert!(work.poll(&first).is_pending() && work.poll(&first).is_pending());
        assert_eq!(polls.get(), 1);
        // Another task polls it in between, which nothing has woken.
        assert!(work.poll(&second).is_pending());
        assert_eq!(polls.get(), 1);
        waker.take().expect("a waker").wake();
        let are_woken = tasks.each_ref().map(|task| task.0.load(Ordering::Relaxed));
        assert_eq!(are_woken, [false, true]);
        assert!(work.poll(&second).is_pending());
        assert_eq!(polls.get(), 2);
        waker.take().expect("a waker").wake();
        assert!(work.poll(&second).is_ready());
    }
}
