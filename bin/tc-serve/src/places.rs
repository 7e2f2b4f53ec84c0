//! How many answers may be open at once, and how many requests may wait for a place.

use std::cell::Cell;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places for answers, and a queue before them.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    queue: usize,
    waiting: Cell<usize>,
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "held until the answer has ended")] OwnedSemaphorePermit);

impl Places {
    /// `places` answers at once, and at most `queue` requests that wait.
    pub fn new(places: usize, queue: usize) -> Places {
        Places { free: Arc::new(Semaphore::new(places)), queue, waiting: Cell::new(0) }
    }

    /// Takes a place, and waits for one if that is necessary; first come, first served. `None` when too many wait already.
    pub async fn take(&self) -> Option<Place> {
        if let Ok(place) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(Place(place));
        }
        if self.waiting.get() >= self.queue {
            return None;
        }
        self.waiting.set(self.waiting.get() + 1);
        let _waiting = Waiting(&self.waiting);
        Arc::clone(&self.free).acquire_owned().await.ok().map(Place)
    }

    /// Waits until all `places` are free.
    pub async fn all_free(&self, places: usize) {
        // The error of a semaphore that was closed: nobody holds a place then.
        drop(self.free.acquire_many(u32::try_from(places).unwrap_or(u32::MAX)).await);
    }
}

/// One request in the queue; a client that leaves leaves it, too.
struct Waiting<'q>(&'q Cell<usize>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
