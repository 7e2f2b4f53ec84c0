//! What the model reads of an output: no secret, no binary data, and of a long one the head and the
//! tail. The whole goes into a file.

use super::spill::Spill;
use redact::Redactor;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::Path;

/// Makes outputs readable. Every way to run a tool hands its outputs to it.
#[derive(Debug)]
pub struct Outputs {
    redactor: Redactor,
    /// How many bytes of an output the model reads, unless its tool has a limit of its own.
    max: usize,
    /// How many bytes the folder of whole outputs may hold; 0: there is no folder.
    limit: u64,
    /// Opened for the first output that needs it; `None` where it cannot be used.
    spill: OnceCell<Option<Spill>>,
}

/// An output as the model reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readable {
    /// The text.
    pub text: String,
    /// Whether a part of the output is left out.
    pub truncated: bool,
    /// Whether U+FFFD replaces some bytes.
    pub replaced: bool,
    /// Whether the output is binary data, which `text` describes.
    pub binary: bool,
    /// The file that holds the whole output, but for secrets.
    pub file: Option<String>,
}

impl Outputs {
    /// `redactor` takes the secrets of this process out of every output. The model reads at most
    /// `max` bytes of an output; whole outputs take up at most `limit` bytes of disk, 0 keeps none.
    pub fn new(redactor: Redactor, max: usize, limit: u64) -> Self {
        Outputs {
            redactor,
            max,
            limit,
            spill: OnceCell::new(),
        }
    }

    /// Takes the secrets of this process out of texts.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// How many bytes of an output the model reads, unless its tool has a limit of its own.
    pub fn max(&self) -> usize {
        self.max
    }

    /// `bytes` without secrets.
    pub fn redacted(&self, bytes: &[u8]) -> Vec<u8> {
        let mut clean = bytes.to_vec();
        self.redactor.pieces(&mut [&mut clean]);
        clean
    }

    /// The beginning of an output that was cut, without what may be the beginning of a secret at
    /// its end.
    pub fn settled<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[..self.redactor.settled(bytes)]
    }

    /// The output `bytes` as the model reads it. `max` is the limit of its tool.
    pub fn readable(&self, bytes: &[u8], max: Option<usize>) -> Readable {
        let bytes = self.redacted(bytes);
        if let Some(kind) = tool::binary(&bytes) {
            let kept = self.keep_redacted(&bytes, kind.extension);
            let text = format!(
                "[The output is {}, {} bytes{}]",
                kind.name,
                bytes.len(),
                place(kept.as_deref(), &bytes)
            );
            let file = kept.ok();
            return Readable {
                text,
                truncated: true,
                binary: true,
                file,
                replaced: false,
            };
        }
        let (text, replaced) = tool::text(&bytes);
        let mut file = None;
        let shown = tool::shorten(&text, max.unwrap_or(self.max), |left_out| {
            let kept = self.keep_redacted(&bytes, "txt");
            let note = format!(
                "{left_out} bytes are left out here{}",
                place(kept.as_deref(), &bytes)
            );
            file = kept.ok();
            note
        });
        let truncated = matches!(shown, Cow::Owned(_));
        Readable {
            text: shown.into_owned(),
            truncated,
            replaced,
            binary: false,
            file,
        }
    }

    /// Keeps an output whole, without its secrets, in a file that ends in `extension`; returns the
    /// path.
    ///
    /// # Errors
    /// Why it is not kept, for the model.
    pub fn keep(&self, bytes: &[u8], extension: &str) -> Result<String, String> {
        self.keep_redacted(&self.redacted(bytes), extension)
    }

    fn keep_redacted(&self, bytes: &[u8], extension: &str) -> Result<String, String> {
        if self.limit == 0 {
            return Err("whole outputs are not kept here".to_owned());
        }
        let spill = self
            .spill
            .get_or_init(|| self.open())
            .as_ref()
            .ok_or("there is no folder for whole outputs")?;
        let path = spill.keep(bytes, extension).map_err(|e| e.to_string())?;
        Ok(path.to_string_lossy().into_owned())
    }

    fn open(&self) -> Option<Spill> {
        let open = |folder: &Path| Spill::open(folder, self.limit);
        let folder = Spill::default_folder()
            .ok_or_else(|| anyhow::anyhow!("neither HOME nor XDG_CACHE_HOME is set"));
        folder
            .and_then(|folder| open(&folder))
            .inspect_err(|e| {
                let text = format!(
                    "whole outputs are not kept: {e:#}, or turn it off with --keep-outputs 0"
                );
                stdio::message("tool-exec", &text);
            })
            .ok()
    }
}

/// Where the whole output is. Its digest is a part of the path, or is in the text: a command that
/// writes such a line itself cannot know the digest of what it writes.
fn place(kept: Result<&str, &String>, bytes: &[u8]) -> String {
    match kept {
        Ok(path) => format!("; the whole output is in {path}"),
        Err(why) => format!(
            "; the whole output (sha256 {}) is not kept: {why}",
            tool::hex(&tool::sha256(bytes))
        ),
    }
}
