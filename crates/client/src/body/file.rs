//! A raw body in a file, or anywhere else that can be read, block by block.

use super::piece::{BodyPiece, PieceContent};
use crate::{Error, thread};
use std::fs::File;
use std::io;
use std::path::Path;
use tokio::sync::mpsc;

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
            let more = self.read().await?;
            if more.is_empty() {
                break;
            }
            self.block.extend_from_slice(&more);
        }
        Ok(&self.block)
    }

    pub(crate) async fn next(&mut self) -> BodyPiece<'_> {
        if !std::mem::take(&mut self.is_ahead) || self.block.is_empty() {
            match self.fill().await {
                Ok(()) if self.block.is_empty() => {
                    return BodyPiece {
                        at: None,
                        what: PieceContent::End,
                    };
                }
                Ok(()) => {}
                Err(e) => {
                    return BodyPiece {
                        at: None,
                        what: PieceContent::Lost(Error::file(&self.name, &e)),
                    };
                }
            }
        }
        BodyPiece {
            at: None,
            what: PieceContent::Bytes(&self.block),
        }
    }

    /// Reads the next block; an empty one is the end. A file is read into the same memory each
    /// time, which saves an allocation.
    async fn fill(&mut self) -> io::Result<()> {
        match &mut self.origin {
            FileOrigin::File(file) => {
                self.block.resize(BLOCK, 0);
                let n = read(file, &mut self.block)?;
                self.block.truncate(n);
            }
            FileOrigin::Thread(_) => self.block = self.read().await?,
        }
        Ok(())
    }

    async fn read(&mut self) -> io::Result<Vec<u8>> {
        match &mut self.origin {
            FileOrigin::File(file) => {
                let mut block = vec![0; BLOCK];
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
    thread::start(work).map(|()| receive)
}
