//! The body of an answer: from a file, from a recording, or from the network. All are read the same
//! way.

use crate::network::LiveBody;
use crate::{Error, ErrorKind, RecordedAnswer, Speed};
use api::tape::{Head, TapeExchange};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// An answer whose head has come.
#[derive(Debug)]
pub struct Response {
    /// Its status and headers.
    pub head: Head,
    /// The rest, still on its way.
    pub body: Body,
}

/// The body of an answer, read piece by piece.
#[derive(Debug)]
pub struct Body(BodyOrigin);

#[derive(Debug)]
enum BodyOrigin {
    File(FileBody),
    Recorded(RecordedBody),
    Live(Box<LiveBody>),
}

impl Body {
    /// A raw body in a file.
    pub fn of_file(file: FileBody) -> Body {
        Body(BodyOrigin::File(file))
    }

    /// A recorded body, whose request is sent now.
    pub fn of_recording(recording: RecordedAnswer, speed: Speed) -> Body {
        Body(BodyOrigin::Recorded(RecordedBody::new(recording, speed)))
    }

    /// Whether the body comes from the network, not from a recording.
    pub fn is_live(&self) -> bool {
        matches!(self.0, BodyOrigin::Live(_))
    }

    /// Waits for the next bytes. The wait may be dropped and begun anew; do not call it after the
    /// end.
    pub async fn next(&mut self) -> BodyPiece<'_> {
        match &mut self.0 {
            BodyOrigin::File(body) => body.next().await,
            BodyOrigin::Recorded(body) => body.next().await,
            BodyOrigin::Live(body) => body.next().await,
        }
    }

    /// How many bytes of it are kept for a tape.
    pub fn kept(&self) -> usize {
        match &self.0 {
            BodyOrigin::Live(body) => body.kept(),
            BodyOrigin::File(_) | BodyOrigin::Recorded(_) => 0,
        }
    }

    /// Ends the reading before the body's own end. Returns the time of that, if it comes from the
    /// network.
    pub fn stop(&mut self) -> Option<Duration> {
        match &mut self.0 {
            BodyOrigin::Live(body) => Some(body.stop()),
            BodyOrigin::File(_) | BodyOrigin::Recorded(_) => None,
        }
    }

    /// The recording that was begun with the request, if there was one. The body was lost by
    /// `error` or had its own end.
    pub fn recorded(self, error: Option<&Error>) -> Option<Box<TapeExchange>> {
        match self.0 {
            BodyOrigin::Live(body) => body.recorded(error),
            BodyOrigin::File(_) | BodyOrigin::Recorded(_) => None,
        }
    }
}

impl From<LiveBody> for Body {
    fn from(live: LiveBody) -> Body {
        Body(BodyOrigin::Live(Box::new(live)))
    }
}

/// What one wait for the next bytes of a body gives.
#[derive(Debug)]
pub struct BodyPiece<'a> {
    /// When it came, since the request was sent; `None` in a body without times.
    pub at: Option<Duration>,
    /// What came.
    pub what: PieceContent<'a>,
}

/// What came: see [`BodyPiece`].
#[derive(Debug)]
pub enum PieceContent<'a> {
    /// Bytes, at least one.
    Bytes(&'a [u8]),
    /// The body's own end.
    End,
    /// The rest does not come.
    Lost(Error),
}

/// A recorded body in memory, played at a chosen speed.
#[derive(Debug)]
struct RecordedBody {
    recording: RecordedAnswer,
    speed: Speed,
    begin: Instant,
    next: usize,
    /// All stalls so far, which count as time of the stream.
    stalled: Duration,
    /// When the next read is due, once a wait for it began.
    due: Option<Instant>,
}

impl RecordedBody {
    /// A body whose request is sent now.
    fn new(recording: RecordedAnswer, speed: Speed) -> RecordedBody {
        RecordedBody {
            recording,
            speed,
            begin: Instant::now(),
            next: 0,
            stalled: Duration::ZERO,
            due: None,
        }
    }

    async fn next(&mut self) -> BodyPiece<'_> {
        let read = self.recording.reads.get(self.next);
        let (at, stall) = read.map_or((self.recording.ended, Duration::ZERO), |read| {
            (read.at, read.stall)
        });
        if self.due.is_none() {
            self.due = match (self.speed, at) {
                (Speed::Times(times), Some(at)) => {
                    Some(self.begin + at.div_f64(times) + self.stalled)
                }
                _ => None,
            };
            if !stall.is_zero() {
                self.stalled += stall;
                self.due = Some(self.due.unwrap_or_else(Instant::now) + stall);
            }
        }
        if let Some(due) = self.due {
            tokio::time::sleep_until(due).await;
        }
        self.due = None;
        let at = at.map(|at| at + self.stalled);
        let read = self.recording.reads.get(self.next);
        self.next += 1;
        let what = match (read, &self.recording.error) {
            (Some(read), _) => PieceContent::Bytes(&read.bytes),
            (None, Some(error)) => PieceContent::Lost(error.clone()),
            (None, None) => PieceContent::End,
        };
        BodyPiece { at, what }
    }
}

/// The most bytes that one read gives, from a file or from anything else.
const BLOCK: usize = 64 * 1024;

/// A raw body in a file, or anywhere else that can be read, block by block.
#[derive(Debug)]
pub struct FileBody {
    name: String,
    origin: FileOrigin,
    block: Vec<u8>,
    /// Whether the block holds bytes that [`FileBody::ahead`] read and [`FileBody::next`] has not
    /// returned.
    is_ahead: bool,
}

#[derive(Debug)]
enum FileOrigin {
    File(File),
    /// Anything but a regular file, such as a pipe: another thread waits for its bytes, so that
    /// this one can wait for something else at the same time.
    Thread(mpsc::Receiver<io::Result<Vec<u8>>>),
}

impl FileBody {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<FileBody> {
        let name = path.display().to_string();
        if std::fs::metadata(path)?.is_file() {
            return Ok(FileBody::new(name, FileOrigin::File(File::open(path)?)));
        }
        // Opening a named pipe waits for its writer.
        let path = path.to_owned();
        FileBody::of_reader(name, move || File::open(path))
    }

    /// A body that is read from what `open` opens, in a thread of its own. `name` is for messages.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub fn of_reader<R: io::Read>(
        name: String,
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> io::Result<FileBody> {
        Ok(FileBody::new(name, FileOrigin::Thread(blocks(open)?)))
    }

    fn new(name: String, origin: FileOrigin) -> FileBody {
        FileBody {
            name,
            origin,
            block: vec![],
            is_ahead: false,
        }
    }

    /// Whether a read may wait for long.
    pub fn may_wait(&self) -> bool {
        matches!(self.origin, FileOrigin::Thread(_))
    }

    /// Reads on and keeps everything, until `enough` is true of it or the file ends. Returns all
    /// that it keeps. It is for use before `next` only: the block that `next` returned last would
    /// come again.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn ahead(&mut self, mut enough: impl FnMut(&[u8]) -> bool) -> io::Result<&[u8]> {
        self.is_ahead = true;
        while !enough(&self.block) {
            let more = self.read(vec![]).await?;
            if more.is_empty() {
                break;
            }
            self.block.extend_from_slice(&more);
        }
        Ok(&self.block)
    }

    async fn next(&mut self) -> BodyPiece<'_> {
        let mut read = Ok(());
        if !std::mem::take(&mut self.is_ahead) || self.block.is_empty() {
            let block = std::mem::take(&mut self.block);
            read = self.read(block).await.map(|block| self.block = block);
        }
        let what = match read {
            Ok(()) if self.block.is_empty() => PieceContent::End,
            Ok(()) => PieceContent::Bytes(&self.block),
            Err(e) => {
                let message = format!("{} cannot be read: {e}", self.name);
                PieceContent::Lost(Error::new(ErrorKind::File, message))
            }
        };
        BodyPiece { at: None, what }
    }

    /// The next block; an empty one is the end. A file is read into the memory of `block`, which
    /// saves an allocation.
    async fn read(&mut self, mut block: Vec<u8>) -> io::Result<Vec<u8>> {
        match &mut self.origin {
            FileOrigin::File(file) => {
                block.resize(BLOCK, 0);
                let n = read(file, &mut block)?;
                block.truncate(n);
                Ok(block)
            }
            FileOrigin::Thread(blocks) => blocks.recv().await.unwrap_or_else(|| Ok(vec![])),
        }
    }
}

fn read(file: &mut impl io::Read, block: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(block) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Opens and reads in a thread of its own, which ends with the file, with an error, or when it has
/// a block to send and the receiver is dropped.
fn blocks<R: io::Read>(
    open: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> io::Result<mpsc::Receiver<io::Result<Vec<u8>>>> {
    let (send, receive) = mpsc::channel(1);
    let work = move || {
        let mut from = match open() {
            Ok(from) => from,
            // The receiver may be dropped already.
            Err(e) => return send.blocking_send(Err(e)).unwrap_or_default(),
        };
        let mut block = vec![0; BLOCK];
        loop {
            let got = read(&mut from, &mut block).map(|n| block[..n].to_vec());
            let last = !matches!(&got, Ok(bytes) if !bytes.is_empty());
            if send.blocking_send(got).is_err() || last {
                return;
            }
        }
    };
    start_thread(work).map(|()| receive)
}

/// Starts a thread that ends by itself.
///
/// # Errors
/// When the system has no more threads.
pub(crate) fn start_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let started = std::thread::Builder::new().spawn(work);
    started.map(drop).map_err(|e| {
        io::Error::new(
            e.kind(),
            format!("a thread cannot be started: {e}, raise the limit (ulimit -u)"),
        )
    })
}
