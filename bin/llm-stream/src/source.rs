//! Where the bytes of a response come from: a file, a recording, or the network. All are read the same way.

use crate::args::Speed;
use crate::http::Live;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use upstream::End;

/// What is read from a file at once.
const BLOCK: usize = 64 * 1024;

/// What one wait for the next bytes gave, and when: since the request was sent, or not known.
#[derive(Debug)]
pub struct Piece<'a> {
    pub at: Option<Duration>,
    pub what: What<'a>,
}

/// See [`Piece`].
#[derive(Debug)]
pub enum What<'a> {
    Bytes(&'a [u8]),
    End(End),
}

/// The body of a response.
#[derive(Debug)]
pub enum Source {
    File(FileBody),
    Recorded(Recorded),
    Live(Box<Live>),
}

impl Source {
    /// Waits for the next bytes. May be dropped while it waits and asked again; not after the end.
    pub async fn next(&mut self) -> Piece<'_> {
        match self {
            Source::File(file) => Piece { at: None, what: file.next().await },
            Source::Recorded(recorded) => recorded.next().await,
            Source::Live(live) => live.next().await,
        }
    }

    /// Nobody waits any more: gives the time, as far as it is known.
    pub fn stop(&mut self) -> Option<Duration> {
        match self {
            Source::Live(live) => Some(live.stop()),
            Source::File(_) | Source::Recorded(_) => None,
        }
    }
}

/// One recorded read.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// Since the request was sent; `None` in a raw body, whose times nobody knows.
    pub at: Option<Duration>,
    /// A silence to keep before it, at any speed.
    pub stall: Duration,
    pub bytes: Vec<u8>,
}

/// A recorded body in memory, at a chosen speed.
#[derive(Debug)]
pub struct Recorded {
    reads: Vec<Read>,
    end: (Option<Duration>, End),
    speed: Speed,
    begin: Instant,
    next: usize,
    /// All stalls so far, which count as time of the stream.
    stalled: Duration,
    /// When the next read is due, once it was asked for.
    due: Option<Instant>,
}

impl Recorded {
    /// A body whose request is sent now.
    pub fn new(reads: Vec<Read>, end: (Option<Duration>, End), speed: Speed) -> Recorded {
        Recorded { reads, end, speed, begin: Instant::now(), next: 0, stalled: Duration::ZERO, due: None }
    }

    async fn next(&mut self) -> Piece<'_> {
        let (at, stall) = self.reads.get(self.next).map_or((self.end.0, Duration::ZERO), |read| (read.at, read.stall));
        if self.due.is_none() {
            let due = self.due(at);
            if !stall.is_zero() {
                self.stalled += stall;
                self.due = Some(due.unwrap_or_else(Instant::now) + stall);
            } else {
                self.due = due;
            }
        }
        if let Some(due) = self.due {
            tokio::time::sleep_until(due).await;
        }
        self.due = None;
        let at = at.map(|at| at + self.stalled);
        self.next += 1;
        match self.reads.get(self.next - 1) {
            Some(read) => Piece { at, what: What::Bytes(&read.bytes) },
            None => Piece { at, what: What::End(self.end.1.clone()) },
        }
    }

    fn due(&self, at: Option<Duration>) -> Option<Instant> {
        match (self.speed, at) {
            (Speed::Times(times), Some(at)) => Some(self.begin + at.div_f64(times) + self.stalled),
            _ => None,
        }
    }
}

/// A raw body in a file, read block by block.
#[derive(Debug)]
pub struct FileBody {
    name: String,
    from: From,
    block: Vec<u8>,
    /// Whether the block holds bytes that were read ahead, to tell what they are.
    ahead: bool,
}

#[derive(Debug)]
enum From {
    File(File),
    /// Standard input, a pipe, a socket: another thread waits there, so that this one still sees signals and a reader that leaves.
    Thread(mpsc::Receiver<io::Result<Vec<u8>>>),
}

impl FileBody {
    /// Opens `path` (`-` is standard input).
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<FileBody> {
        let name = path.display().to_string();
        let from = if path == Path::new("-") {
            stdio::check_input().map_err(io::Error::other)?;
            From::Thread(thread(|| Ok(io::stdin()))?)
        } else if std::fs::metadata(path)?.is_file() {
            From::File(File::open(path)?)
        } else {
            // Opening a named pipe waits for its writer.
            let path = path.to_owned();
            From::Thread(thread(move || File::open(path))?)
        };
        Ok(FileBody { name, from, block: vec![], ahead: false })
    }

    /// Whether its bytes may be long in coming.
    pub fn may_wait(&self) -> bool {
        matches!(self.from, From::Thread(_))
    }

    /// Reads on and keeps everything, until `enough` says so or the file ends. Gives all that was read ahead so far.
    ///
    /// # Errors
    /// What the system says.
    pub async fn ahead(&mut self, mut enough: impl FnMut(&[u8]) -> bool) -> io::Result<&[u8]> {
        self.ahead = true;
        while !enough(&self.block) {
            let more = self.read().await?;
            if more.is_empty() {
                break;
            }
            self.block.extend_from_slice(&more);
        }
        Ok(&self.block)
    }

    async fn next(&mut self) -> What<'_> {
        if !std::mem::take(&mut self.ahead) || self.block.is_empty() {
            match self.fill().await {
                Ok(()) if self.block.is_empty() => return What::End(End::Eof),
                Ok(()) => {}
                Err(e) => return What::End(End::Reset(format!("{} cannot be read: {e}", self.name))),
            }
        }
        What::Bytes(&self.block)
    }

    /// Takes the next block into the same memory; an empty one is the end.
    async fn fill(&mut self) -> io::Result<()> {
        match &mut self.from {
            From::File(file) => {
                self.block.resize(BLOCK, 0);
                let n = read(file, &mut self.block)?;
                self.block.truncate(n);
            }
            From::Thread(_) => self.block = self.read().await?,
        }
        Ok(())
    }

    async fn read(&mut self) -> io::Result<Vec<u8>> {
        match &mut self.from {
            From::File(file) => {
                let mut block = vec![0; BLOCK];
                let n = read(file, &mut block)?;
                block.truncate(n);
                Ok(block)
            }
            From::Thread(blocks) => blocks.recv().await.unwrap_or_else(|| Ok(vec![])),
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

/// Opens and reads in a thread of its own. It ends with the file, or when nobody wants its blocks any more.
fn thread<R: io::Read>(
    open: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> io::Result<mpsc::Receiver<io::Result<Vec<u8>>>> {
    let (send, receive) = mpsc::channel(1);
    let work = move || {
        let mut from = match open() {
            Ok(from) => from,
            // Whoever waits for the first block gets the error, if anybody still does.
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
    stdio::thread(work).map(|()| receive).map_err(io::Error::other)
}
