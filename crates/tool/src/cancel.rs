//! Cancels calls on a user's word, whatever stream they belong to, and whether they have come yet
//! or not.

use crate::call::RequestedCall;
use crate::schedule::{Schedule, StreamName};

impl Schedule {
    /// Cancels the latest call of that id in `stream`; `None`: in every stream. Where none has come
    /// yet, the next one of that id is cancelled when it comes.
    pub(crate) fn cancel_id(&mut self, stream: Option<StreamName>, id: &str) {
        let streams = match stream {
            Some(ref stream) => self
                .names
                .latest(stream, Some(id), None)
                .map(|_| stream.clone())
                .into_iter()
                .collect(),
            None => self.names.streams_of(id),
        };
        if streams.is_empty() {
            self.cancels.insert((stream, id.into()));
        }
        streams
            .iter()
            .for_each(|stream| self.retract(stream, Some(id), None));
    }

    /// Whether a call was cancelled before it came. That counts for one call.
    pub(crate) fn was_cancelled(&mut self, call: &RequestedCall) -> bool {
        let mut take =
            |stream| !self.cancels.is_empty() && self.cancels.remove(&(stream, call.id.clone()));
        take(None) || take(Some(call.stream.clone()))
    }
}
