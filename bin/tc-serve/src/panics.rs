//! Panics, which are bugs in this program. A panic ends only the request in which it occurs.

use crate::log::Notices;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

#[cfg(panic = "abort")]
compile_error!(
    "a panic in one request would end those of all clients: build with panic = \"unwind\""
);

/// The work panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

/// The error code of a request that panicked.
pub(crate) const CODE: &str = "internal_error";

/// The message to the client of a request that panicked.
pub(crate) const MESSAGE: &str = "the server failed to answer this request; its log has the place";

/// Polls `work` to completion.
///
/// # Errors
/// [`Panicked`], if the work panics. Other requests continue, because the rest of the program's
/// state is not in use by several requests at once.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    poll_fn(|cx| match caught_now(|| work.as_mut().poll(cx)) {
        Ok(poll) => poll.map(Ok),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

/// Runs `work`.
///
/// # Errors
/// As [`caught`].
pub(crate) fn caught_now<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

/// Reports the location of each panic in one line. The panic's message is omitted, since it may
/// contain data that a client sent.
pub(crate) fn report(notices: &Notices) {
    let notices = notices.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string);
        let place = place.unwrap_or_default();
        notices.warn(CODE, &format!("a request has failed by a bug at {place}"));
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_its_own_work_alone() {
        let work = async |fails: bool| {
            tokio::task::yield_now().await;
            assert!(!fails, "it fails");
            1
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let results = runtime.block_on(async {
            tokio::join!(caught(work(false)), caught(work(true)), caught(work(false)))
        });
        assert_eq!(results, (Ok(1), Err(Panicked), Ok(1)));
    }
}
