//! The body of an answer that goes to the client as it is.

use crate::places::Place;
use api::Failure;
use client::{Body, Error, PieceContent};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a provider's answer on its way to the client. Dropping it closes the connection to
/// the provider.
pub struct PassedBody {
    next: Pin<Box<dyn Future<Output = (Body, NextBytes)>>>,
    failure: Box<dyn Fn(&Error) -> Failure>,
    _place: Place,
}

impl PassedBody {
    /// Passes `body`, and keeps `place` until its end. `failure` is how a loss is reported.
    pub fn new(
        body: Body,
        place: Place,
        failure: impl Fn(&Error) -> Failure + 'static,
    ) -> PassedBody {
        PassedBody {
            next: Box::pin(next(body)),
            failure: Box::new(failure),
            _place: place,
        }
    }

    /// The next bytes; `None` after the last.
    pub fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Vec<u8>>, Failure>> {
        let Poll::Ready((body, came)) = self.next.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        if matches!(came, Ok(Some(_))) {
            self.next = Box::pin(next(body));
        }
        Poll::Ready(came.map_err(|error| (self.failure)(&error)))
    }
}

/// The next bytes of a body, `None` after the last, or why the rest does not come.
type NextBytes = Result<Option<Vec<u8>>, Error>;

async fn next(mut body: Body) -> (Body, NextBytes) {
    let came = match body.next().await.what {
        PieceContent::Bytes(bytes) => Ok(Some(bytes.to_vec())),
        PieceContent::End => Ok(None),
        PieceContent::Lost(error) => Err(error),
    };
    (body, came)
}
