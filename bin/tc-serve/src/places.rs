//! Limits how many responses may be open at once, and how many requests may wait.

use crate::keys::ClientKey;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The slots for open responses, and the queue of waiting requests. All clones share them.
#[derive(Clone, Debug)]
pub(crate) struct AnswerSlots(Arc<PlacesState>);

#[derive(Debug)]
struct PlacesState {
    places: usize,
    /// How many requests of each key may wait.
    queue: usize,
    line: Mutex<WaitingLine>,
    /// Notified when a slot becomes free and no request waits.
    freed: Notify,
}

#[derive(Debug)]
struct WaitingLine {
    free: usize,
    /// The keys with waiting requests, in the order in which they get the next slots. The keys take
    /// turns, so that a key with many requests delays another key by only one request.
    keys: VecDeque<(ClientKey, VecDeque<oneshot::Sender<AnswerSlot>>)>,
}

/// A slot. Dropping it passes it to the next waiting request.
#[derive(Debug)]
pub(crate) struct AnswerSlot(Arc<PlacesState>);

impl AnswerSlots {
    /// Creates `places` slots, with at most `queue` waiting requests per key.
    pub(crate) fn new(places: usize, queue: usize) -> AnswerSlots {
        let line = Mutex::new(WaitingLine {
            free: places,
            keys: VecDeque::new(),
        });
        AnswerSlots(Arc::new(PlacesState {
            places,
            queue,
            line,
            freed: Notify::new(),
        }))
    }

    /// Takes a slot for a request with `key`, waiting for one if necessary. Requests of the same
    /// key are served in order. Returns `None` if too many requests of the key already wait.
    pub(crate) async fn take(&self, key: ClientKey) -> Option<AnswerSlot> {
        let place = {
            let line = &mut *self.0.line();
            if line.free > 0 {
                line.free -= 1;
                return Some(AnswerSlot(Arc::clone(&self.0)));
            }
            line.join(key, self.0.queue)?
        };
        let mut waiting = QueuedRequest {
            places: &self.0,
            key,
            place,
        };
        (&mut waiting.place).await.ok()
    }

    /// Waits until all slots are free.
    pub(crate) async fn all_free(&self) {
        loop {
            let freed = self.0.freed.notified();
            if self.0.line().free == self.0.places {
                return;
            }
            freed.await;
        }
    }
}

impl PlacesState {
    /// Locks the queue. A poisoned lock is safe to use, because no step of a change can panic
    /// midway.
    fn line(&self) -> MutexGuard<'_, WaitingLine> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingLine {
    /// Adds a request to the queue. Returns `None` if `queue` requests of the key already wait.
    fn join(&mut self, key: ClientKey, queue: usize) -> Option<oneshot::Receiver<AnswerSlot>> {
        let at = self.keys.iter().position(|(other, _)| *other == key);
        if at.map_or(0, |at| self.keys[at].1.len()) >= queue {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        match at {
            Some(at) => self.keys[at].1.push_back(sender),
            None => self.keys.push_back((key, VecDeque::from([sender]))),
        }
        Some(receiver)
    }

    /// Removes and returns the next request of the queue.
    fn next(&mut self) -> Option<oneshot::Sender<AnswerSlot>> {
        let (key, mut waiting) = self.keys.pop_front()?;
        let next = waiting.pop_front();
        if !waiting.is_empty() {
            self.keys.push_back((key, waiting));
        }
        next
    }

    /// Removes the requests of `key` whose clients have left.
    fn leave(&mut self, key: ClientKey) {
        self.keys.retain_mut(|(other, waiting)| {
            if *other == key {
                waiting.retain(|request| !request.is_closed());
            }
            !waiting.is_empty()
        });
    }
}

impl Drop for AnswerSlot {
    fn drop(&mut self) {
        let next = {
            let line = &mut *self.0.line();
            let next = line.next();
            line.free += usize::from(next.is_none());
            next
        };
        match next {
            // If the client has left, the slot is dropped here, which passes it to the next
            // request.
            Some(next) => drop(next.send(AnswerSlot(Arc::clone(&self.0)))),
            None => self.0.freed.notify_waiters(),
        }
    }
}

/// A request in the queue. Dropping it, as when its client leaves, removes it from the queue.
struct QueuedRequest<'q> {
    places: &'q PlacesState,
    key: ClientKey,
    place: oneshot::Receiver<AnswerSlot>,
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        self.place.close();
        self.places.line().leave(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    type Taking<'p> = Pin<Box<dyn Future<Output = Option<AnswerSlot>> + 'p>>;

    fn poll(taking: &mut Taking<'_>) -> Poll<Option<AnswerSlot>> {
        taking
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }

    fn client(number: u8) -> ClientKey {
        crate::keys::KeyHash::parse(&format!("{number:064x}"))
    }

    fn waits<'p>(places: &'p AnswerSlots, key: u8) -> Taking<'p> {
        let mut taking: Taking<'p> = Box::pin(places.take(client(key)));
        assert!(poll(&mut taking).is_pending());
        taking
    }

    #[test]
    fn keys_take_turns_and_requests_of_one_key_stay_in_order() {
        let places = AnswerSlots::new(1, 9);
        let Poll::Ready(Some(mut held)) =
            poll(&mut (Box::pin(places.take(client(0))) as Taking<'_>))
        else {
            panic!("a place is free")
        };
        let mut waiting: Vec<_> = [0, 0, 0, 1, 1, 2]
            .into_iter()
            .map(|key| (key, waits(&places, key)))
            .collect();
        let mut order = vec![];
        while !waiting.is_empty() {
            drop(held);
            let mut next =
                waiting
                    .iter_mut()
                    .enumerate()
                    .filter_map(|(at, (_, taking))| match poll(taking) {
                        Poll::Ready(place) => Some((at, place.expect("a place"))),
                        Poll::Pending => None,
                    });
            let (at, place) = next.next().expect("somebody is next");
            assert!(next.next().is_none(), "two have one place");
            held = place;
            // The first of those that are left of this key.
            assert!(waiting[..at].iter().all(|(key, _)| *key != waiting[at].0));
            order.push(waiting.remove(at).0);
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 0]);
    }

    #[test]
    fn each_key_has_its_queue_and_who_leaves_frees_it() {
        let places = AnswerSlots::new(1, 1);
        let Poll::Ready(held) = poll(&mut (Box::pin(places.take(None)) as Taking<'_>)) else {
            panic!("a place is free")
        };
        let mut first = waits(&places, 0);
        let refused = || {
            matches!(
                poll(&mut (Box::pin(places.take(client(0))) as Taking<'_>)),
                Poll::Ready(None)
            )
        };
        assert!(refused());
        let other = waits(&places, 1);
        drop(other);
        let other = waits(&places, 1);
        // One that leaves after it got the place hands it on.
        drop(held);
        let Poll::Ready(Some(held)) = poll(&mut first) else {
            panic!("the first is next")
        };
        drop(held);
        drop(other);
        let mut free = std::pin::pin!(places.all_free());
        assert!(
            free.as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_ready()
        );
    }
}
