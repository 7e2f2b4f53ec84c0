//! The body of a response from a file, a recording or the network. All three are read through the
//! same interface.

use crate::network::LiveBody;
use crate::{Error, ErrorKind, RecordedAnswer, Speed};
use api::tape::{Head, TapeExchange};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// A response whose status and headers have arrived.
#[derive(Debug)]
pub struct Response {
    /// The status and headers.
    pub head: Head,
    /// The body, which may still be arriving.
    pub body: Body,
}

/// A response body, read in pieces.
#[derive(Debug)]
pub struct Body(BodyOrigin);

#[derive(Debug)]
enum BodyOrigin {
    File(FileBody),
    Recorded(RecordedBody),
    Live(Box<LiveBody>),
}

impl Body {
    /// Creates a body that reads raw bytes from a file.
    pub fn of_file(file: FileBody) -> Body {
        Body(BodyOrigin::File(file))
    }

    /// Creates a body that replays a recording. The recording's times count from this call.
    pub fn of_recording(recording: RecordedAnswer, speed: Speed) -> Body {
        Body(BodyOrigin::Recorded(RecordedBody::new(recording, speed)))
    }

    /// Whether the body comes from the network, not from a recording.
    pub fn is_live(&self) -> bool {
        matches!(self.0, BodyOrigin::Live(_))
    }

    /// Waits for the next bytes. The wait may be dropped and started again. Must not be called
    /// after the end.
    pub async fn next(&mut self) -> BodyPiece<'_> {
        match &mut self.0 {
            BodyOrigin::File(body) => body.next().await,
            BodyOrigin::Recorded(body) => body.next().await,
            BodyOrigin::Live(body) => body.next().await,
        }
    }

    /// Returns how many bytes of the body are held in memory for a tape.
    pub fn kept(&self) -> usize {
        match &self.0 {
            BodyOrigin::Live(body) => body.kept(),
            BodyOrigin::File(_) | BodyOrigin::Recorded(_) => 0,
        }
    }

    /// Stops reading before the end of the body. Returns the time of the stop if the body comes
    /// from the network.
    pub fn stop(&mut self) -> Option<Duration> {
        match &mut self.0 {
            BodyOrigin::Live(body) => Some(body.stop()),
            BodyOrigin::File(_) | BodyOrigin::Recorded(_) => None,
        }
    }

    /// Returns the recording that was started with the request, or `None` if there was none.
    /// `error` is the error that cut the body off, or `None` if the body reached its end.
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

/// The result of one wait for the next bytes of a body.
#[derive(Debug)]
pub struct BodyPiece<'a> {
    /// The time of arrival since the request was sent; `None` in a body without times.
    pub at: Option<Duration>,
    /// The content.
    pub what: PieceContent<'a>,
}

/// The content of a [`BodyPiece`].
#[derive(Debug)]
pub enum PieceContent<'a> {
    /// At least one byte.
    Bytes(&'a [u8]),
    /// The end of the body.
    End,
    /// The rest of the body was lost.
    Lost(Error),
}

/// A recorded body in memory, replayed at a chosen speed.
#[derive(Debug)]
struct RecordedBody {
    recording: RecordedAnswer,
    speed: Speed,
    begin: Instant,
    next: usize,
    /// The sum of all stalls so far, which is added to the recorded times.
    stalled: Duration,
    /// When the next read is due; `None` until a wait for it starts.
    due: Option<Instant>,
}

impl RecordedBody {
    /// Creates a body whose times count from this call.
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

/// The most bytes returned by one read.
const BLOCK: usize = 64 * 1024;

/// A raw body, read in blocks from a file or any other reader.
#[derive(Debug)]
pub struct FileBody {
    name: String,
    origin: FileOrigin,
    block: FileBlock,
    /// Whether the block holds bytes that [`FileBody::ahead`] read and [`FileBody::next`] has not
    /// returned.
    is_ahead: bool,
}

#[derive(Debug)]
enum FileOrigin {
    File(File),
    /// Any source other than a regular file, such as a pipe. Another thread blocks on its bytes, so
    /// that this thread can wait for other things too.
    Thread(BlockReader),
}

/// The blocks that another thread reads.
#[derive(Debug)]
struct BlockReader {
    blocks: mpsc::Receiver<io::Result<FileBlock>>,
    /// Returns blocks to the thread, which reads into their memory again.
    used: std::sync::mpsc::Sender<FileBlock>,
}

/// The memory of a read, and how many bytes at its start were read. The rest keeps what an earlier
/// read left there, because clearing it would cost as much as a copy.
#[derive(Debug, Default)]
struct FileBlock {
    memory: Vec<u8>,
    length: usize,
}

impl FileBlock {
    fn bytes(&self) -> &[u8] {
        &self.memory[..self.length]
    }

    /// Reads the next bytes, none at the end of the file.
    fn read(&mut self, from: &mut impl io::Read) -> io::Result<()> {
        self.length = 0;
        if self.memory.len() < BLOCK {
            self.memory.resize(BLOCK, 0);
        }
        self.length = read(from, &mut self.memory[..BLOCK])?;
        Ok(())
    }

    fn extend(&mut self, more: &[u8]) {
        self.memory.truncate(self.length);
        self.memory.extend_from_slice(more);
        self.length = self.memory.len();
    }
}

impl FileBody {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// If the system cannot open the file.
    pub fn open(path: &Path) -> io::Result<FileBody> {
        let name = path.display().to_string();
        if std::fs::metadata(path)?.is_file() {
            return Ok(FileBody::new(name, FileOrigin::File(File::open(path)?)));
        }
        // Opening a named pipe blocks until a writer opens it.
        let path = path.to_owned();
        FileBody::of_reader(name, move || File::open(path))
    }

    /// Creates a body that a separate thread reads from the reader that `open` returns. `name`
    /// appears in messages.
    ///
    /// # Errors
    /// If the system cannot start a thread.
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
            block: FileBlock::default(),
            is_ahead: false,
        }
    }

    /// Whether a read may wait for long.
    pub fn may_wait(&self) -> bool {
        matches!(self.origin, FileOrigin::Thread(_))
    }

    /// Reads and keeps bytes until `enough` returns true for them or the file ends. Returns all
    /// kept bytes. Must not be called after `next`, because it would return the last block again.
    ///
    /// # Errors
    /// If the system cannot read the file.
    pub async fn ahead(&mut self, mut enough: impl FnMut(&[u8]) -> bool) -> io::Result<&[u8]> {
        self.is_ahead = true;
        let mut next = FileBlock::default();
        while !enough(self.block.bytes()) {
            next = self.read(next).await?;
            if next.length == 0 {
                break;
            }
            if self.block.length == 0 {
                std::mem::swap(&mut self.block, &mut next);
            } else {
                self.block.extend(next.bytes());
            }
        }
        Ok(self.block.bytes())
    }

    async fn next(&mut self) -> BodyPiece<'_> {
        let mut read = Ok(());
        if !std::mem::take(&mut self.is_ahead) || self.block.length == 0 {
            let block = std::mem::take(&mut self.block);
            read = self.read(block).await.map(|block| self.block = block);
        }
        let what = match read {
            Ok(()) if self.block.length == 0 => PieceContent::End,
            Ok(()) => PieceContent::Bytes(self.block.bytes()),
            Err(e) => {
                let message = format!("{} cannot be read: {e}", self.name);
                PieceContent::Lost(Error::new(ErrorKind::File, message))
            }
        };
        BodyPiece { at: None, what }
    }

    /// Returns the next block, or an empty one at the end. `block` is memory that is read into
    /// again.
    async fn read(&mut self, mut block: FileBlock) -> io::Result<FileBlock> {
        match &mut self.origin {
            FileOrigin::File(file) => block.read(file).map(|()| block),
            FileOrigin::Thread(reader) => {
                if !block.memory.is_empty() {
                    // The thread ends before the last blocks are read.
                    let _ = reader.used.send(block);
                }
                let next = reader.blocks.recv().await;
                next.unwrap_or_else(|| Ok(FileBlock::default()))
            }
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

/// Opens and reads the source in a thread. The thread ends at the end of the source, after an
/// error, or when it has a block to send but the receiver was dropped.
fn blocks<R: io::Read>(
    open: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> io::Result<BlockReader> {
    let (send, blocks) = mpsc::channel(1);
    let (used, returned) = std::sync::mpsc::channel();
    let work = move || {
        let mut from = match open() {
            Ok(from) => from,
            // The receiver may already be dropped.
            Err(e) => return send.blocking_send(Err(e)).unwrap_or_default(),
        };
        loop {
            let mut block: FileBlock = returned.try_recv().unwrap_or_default();
            let got = block.read(&mut from).map(|()| block);
            let last = !matches!(&got, Ok(block) if block.length > 0);
            if send.blocking_send(got).is_err() || last {
                return;
            }
        }
    };
    start_thread(work).map(|()| BlockReader { blocks, used })
}

/// Starts a detached thread.
///
/// # Errors
/// If the system cannot start a thread.
pub(crate) fn start_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let started = std::thread::Builder::new().spawn(work);
    started.map(drop).map_err(|e| {
        io::Error::new(
            e.kind(),
            format!("a thread cannot be started: {e}, raise the limit (ulimit -u)"),
        )
    })
}
