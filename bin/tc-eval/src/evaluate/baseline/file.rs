//! The file of a baseline, line by line.

use crate::draft::Draft;
use anyhow::{Context as _, Result, anyhow, bail};
use score::{BASELINE_FORMAT, BaselineEnd, BaselineHeader, BaselineStream};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The longest line of a baseline, in bytes: a line holds the names of a stream and an answer for
/// each checker.
const LONGEST: usize = 1 << 20;

/// Reads a baseline.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    header: BaselineHeader,
    line: u64,
    streams: u64,
    has_ended: bool,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens a baseline and reads its header.
    ///
    /// # Errors
    /// When it cannot be read, is not a baseline, or is one of a later version.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| {
            anyhow!(
                "{}: {e}, write it with --save-baseline or correct the path",
                path.display()
            )
        })?;
        let header = BaselineHeader {
            tc_eval_baseline: BASELINE_FORMAT,
            version: String::new(),
            checkers: Vec::new(),
            corpora: Vec::new(),
        };
        let (path, file, buffer) = (path.to_owned(), BufReader::new(file), Vec::new());
        let mut reader = Reader {
            path,
            file,
            header,
            line: 0,
            streams: 0,
            has_ended: false,
            buffer,
        };
        reader.read_line()?;
        // Its version alone comes first, since a later format may have another header.
        let version = serde_json::from_slice::<serde_json::Value>(&reader.buffer)
            .ok()
            .and_then(|header| header.get("tc_eval_baseline")?.as_u64());
        match version {
            None => bail!(
                "{}: not a baseline, write one with --save-baseline",
                reader.path.display()
            ),
            Some(version) if version != u64::from(BASELINE_FORMAT) => bail!(
                "{}: a baseline of format {version}, and this version reads format {BASELINE_FORMAT}; write it again with \
                 --save-baseline",
                reader.path.display()
            ),
            Some(_) => {
                reader.header =
                    serde_json::from_slice(&reader.buffer).map_err(|e| reader.not_valid(&e))?
            }
        }
        Ok(reader)
    }

    /// The first line.
    pub fn header(&self) -> &BaselineHeader {
        &self.header
    }

    /// For messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many streams have been read.
    pub fn streams(&self) -> u64 {
        self.streams
    }

    /// The next stream; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, has a line that is not valid, or was cut.
    pub fn next(&mut self) -> Result<Option<BaselineStream>> {
        if self.has_ended {
            return Ok(None);
        }
        self.read_line()?;
        if self.buffer.is_empty() {
            bail!(
                "{}: cut after line {}, its last line is missing; write it again with --save-baseline",
                self.path.display(),
                self.line - 1
            );
        }
        if self.buffer.starts_with(b"{\"end\":") {
            let end: BaselineEnd =
                serde_json::from_slice(&self.buffer).map_err(|e| self.not_valid(&e))?;
            if end.end != self.streams {
                bail!(
                    "{}: {} streams are missing of {}; write it again with --save-baseline",
                    self.path.display(),
                    end.end.abs_diff(self.streams),
                    end.end
                );
            }
            self.read_line()?;
            if !self.buffer.is_empty() {
                return Err(self.invalid("follows the last line of a baseline"));
            }
            self.has_ended = true;
            return Ok(None);
        }
        let stream: BaselineStream =
            serde_json::from_slice(&self.buffer).map_err(|e| self.not_valid(&e))?;
        if stream.outcomes.len() != self.header.checkers.len() {
            return Err(self.invalid("has another number of answers than the header has checkers"));
        }
        self.streams += 1;
        Ok(Some(stream))
    }

    /// Reads a line into the buffer, with its end if it has one; nothing at the end of the file.
    fn read_line(&mut self) -> Result<()> {
        self.buffer.clear();
        self.line += 1;
        let most = u64::try_from(LONGEST)? + 1;
        let read = self
            .file
            .by_ref()
            .take(most)
            .read_until(b'\n', &mut self.buffer);
        read.map_err(|e| {
            anyhow!(
                "{}: {e}, check the path and its permissions",
                self.path.display()
            )
        })?;
        if self.buffer.len() > LONGEST {
            return Err(self.invalid("is longer than a line of a baseline"));
        }
        Ok(())
    }

    fn not_valid(&self, e: &serde_json::Error) -> anyhow::Error {
        self.invalid(&format!("is not valid ({e})"))
    }

    fn invalid(&self, what: &str) -> anyhow::Error {
        anyhow!(
            "{}, line {}: the line {what}; write the file again with --save-baseline",
            self.path.display(),
            self.line
        )
    }
}

/// Writes a baseline.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    draft: Draft,
    streams: u64,
}

impl Writer {
    /// Begins the baseline `path` with its header.
    ///
    /// # Errors
    /// When the file or its folder cannot be written.
    pub fn create(path: &Path, checkers: &[String], corpora: &[String]) -> Result<Self> {
        let (checkers, corpora) = (checkers.to_vec(), corpora.to_vec());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let header = BaselineHeader {
            tc_eval_baseline: BASELINE_FORMAT,
            version,
            checkers,
            corpora,
        };
        let draft = Draft::create(path).with_context(|| unwritable(path))?;
        let mut writer = Writer {
            path: path.to_owned(),
            draft,
            streams: 0,
        };
        writer.put(serde_json::to_vec(&header)?)?;
        Ok(writer)
    }

    /// Writes one stream, without the reasons: these change with every wording, and the file is
    /// meant to be kept under version control.
    ///
    /// # Errors
    /// When the disk is full or broken.
    pub fn write(&mut self, stream: &BaselineStream) -> Result<()> {
        let mut stream = stream.clone();
        stream
            .outcomes
            .iter_mut()
            .for_each(|outcome| outcome.reason.clear());
        self.streams += 1;
        self.put(serde_json::to_vec(&stream)?)
    }

    /// Writes the last line and gives the file its name.
    ///
    /// # Errors
    /// When the disk is full or broken; the file that had the name before is unchanged then.
    pub fn finish(mut self) -> Result<()> {
        self.put(serde_json::to_vec(&BaselineEnd { end: self.streams })?)?;
        self.draft.finish().with_context(|| unwritable(&self.path))
    }

    fn put(&mut self, mut line: Vec<u8>) -> Result<()> {
        line.push(b'\n');
        if line.len() > LONGEST {
            bail!(
                "{}: stream {} makes a line of more than {LONGEST} bytes; shorten its id",
                self.path.display(),
                self.streams
            );
        }
        self.draft
            .write_all(&line)
            .with_context(|| unwritable(&self.path))
    }
}

fn unwritable(path: &Path) -> String {
    format!(
        "{}: the baseline cannot be written, free some space or write elsewhere",
        path.display()
    )
}
