//! The output of a tool: detection of binary data, shortening of long texts, and parsing of
//! progress lines.

use super::result::is_replaced;
use event::Raw;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Minimum length in bytes for an unrecognized output to count as binary. A shorter one is passed
/// on as text with U+FFFD for each invalid byte, which takes less space than a description.
const LEAST: usize = 64;

/// A kind of binary data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinaryKind {
    /// The description with its article: `a PNG image`.
    pub name: &'static str,
    /// The file extension for this kind.
    pub extension: &'static str,
}

/// The offset and the bytes that identify each kind, with its name and file extension.
const MAGIC: &[(usize, &[u8], &str, &str)] = &[
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image", "png"),
    (0, b"\xff\xd8\xff", "a JPEG image", "jpg"),
    (0, b"GIF87a", "a GIF image", "gif"),
    (0, b"GIF89a", "a GIF image", "gif"),
    (8, b"WEBPVP8", "a WebP image", "webp"),
    (0, b"II*\0", "a TIFF image", "tiff"),
    (0, b"MM\0*", "a TIFF image", "tiff"),
    (0, b"%PDF-", "a PDF document", "pdf"),
    (0, b"PK\x03\x04", "a ZIP archive", "zip"),
    (0, b"PK\x05\x06", "a ZIP archive", "zip"),
    (0, b"\x1f\x8b\x08", "gzip data", "gz"),
    (0, b"BZh", "bzip2 data", "bz2"),
    (0, b"\xfd7zXZ\0", "xz data", "xz"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard data", "zst"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z"),
    (257, b"ustar", "a tar archive", "tar"),
    (8, b"WAVEfmt ", "WAV audio", "wav"),
    (0, b"ID3", "MP3 audio", "mp3"),
    (0, b"OggS", "Ogg audio or video", "ogg"),
    (0, b"fLaC", "FLAC audio", "flac"),
    (4, b"ftyp", "an MP4 video", "mp4"),
    (0, b"\x1a\x45\xdf\xa3", "a Matroska video", "mkv"),
    (0, b"SQLite format 3\0", "an SQLite database", "sqlite"),
    (0, b"\x7fELF", "an ELF program", "elf"),
    (0, b"\0asm", "a WebAssembly module", "wasm"),
];

/// Returns the binary kind of `bytes`, or `None` for text. Valid UTF-8 without U+0000 is text.
/// Other bytes have a known kind if they contain its signature. Without a signature they are
/// `binary data` if there are at least `LEAST` bytes and either one is U+0000 or more than a tenth
/// are not UTF-8.
pub fn binary(bytes: &[u8]) -> Option<BinaryKind> {
    let text = std::str::from_utf8(bytes);
    if text.is_ok_and(|text| !is_replaced(text)) {
        return None;
    }
    let known = MAGIC
        .iter()
        .find(|(at, magic, ..)| bytes.get(*at..).is_some_and(|rest| rest.starts_with(magic)));
    if let Some((_, _, name, extension)) = known {
        return Some(BinaryKind { name, extension });
    }
    let is_binary = || bytes.contains(&0) || bad(bytes) * 10 > bytes.len();
    (bytes.len() >= LEAST && is_binary()).then_some(BinaryKind {
        name: "binary data",
        extension: "bin",
    })
}

/// Returns the number of bytes that are not valid UTF-8.
fn bad(bytes: &[u8]) -> usize {
    bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum()
}

// Shortening a long text by omitting its middle.

/// Returns `text` unchanged if it has at most `max` bytes. Otherwise returns its head and tail,
/// together at most `max` bytes, with the line `[NOTE]` between them. `note` receives the number of
/// omitted bytes. Each end is cut at a line break if one is near, and otherwise between two
/// characters.
pub fn shorten(text: &str, max: usize, note: impl FnOnce(usize) -> String) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let head = head(text, max.div_ceil(2));
    let tail = tail(text, max / 2);
    let note = note(text.len() - head.len() - tail.len());
    let [before, after] = [head, tail].map(|end| if end.is_empty() { "" } else { "\n" });
    let before = if head.ends_with('\n') { "" } else { before };
    Cow::Owned(format!("{head}{before}[{note}]{after}{tail}"))
}

/// Returns the start of `text`, at most `max` bytes long.
fn head(text: &str, max: usize) -> &str {
    let head = event::cut(text, max);
    match head.rfind('\n') {
        Some(at) if at >= head.len() / 4 * 3 => &head[..=at],
        _ => head,
    }
}

/// Returns the end of `text`, at most `max` bytes long.
fn tail(text: &str, max: usize) -> &str {
    let mut from = text.len() - max;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let tail = &text[from..];
    match tail.find('\n') {
        Some(at) if at < tail.len() / 4 => &tail[at + 1..],
        _ => tail,
    }
}

// Lines on standard error with which a command reports its progress.

/// A progress report of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallStep {
    /// The completed fraction, from 0 to 1, or `None` if it is unknown.
    pub progress: Option<f64>,
    /// The current step, or an empty text.
    pub message: String,
}

/// Removes progress lines from a command's standard error while it is received. A progress line is
/// a JSON object with a number `progress`, optionally a string `message`, and no other members.
#[derive(Debug, Default)]
pub struct ProgressLines {
    /// The offset up to which all lines were examined.
    at: usize,
    /// The offset up to which the bytes were searched for line ends. There are none between `at`
    /// and this offset.
    searched: usize,
    last: Option<CallStep>,
}

impl ProgressLines {
    /// Removes the progress lines that `bytes` contains so far. `is_over` means that no more bytes
    /// follow, so the last line may lack a line end. Returns the number of bytes removed, and the
    /// latest report or `None` if it is the same as the one before. A `progress` outside 0 to 1 is
    /// ignored.
    pub fn take(&mut self, bytes: &mut Vec<u8>, is_over: bool) -> (usize, Option<CallStep>) {
        let rest = bytes.get(self.searched..).unwrap_or_default();
        let end = match rest.iter().rposition(|b| *b == b'\n') {
            _ if is_over => bytes.len(),
            Some(at) => self.searched + at + 1,
            None => {
                self.searched = bytes.len();
                return (0, None);
            }
        };
        let rest = bytes.split_off(end);
        let lines = bytes.split_off(self.at.min(end));
        let (mut taken, mut found) = (0, None);
        for line in lines.split_inclusive(|b| *b == b'\n') {
            match std::str::from_utf8(line).ok().and_then(read) {
                Some(report) => {
                    taken += line.len();
                    found = report.or(found);
                }
                None => bytes.extend_from_slice(line),
            }
        }
        self.at = bytes.len();
        bytes.extend(rest);
        self.searched = bytes.len();
        if found.is_some() && found != self.last {
            self.last.clone_from(&found);
            return (taken, found);
        }
        (taken, None)
    }
}

/// Parses a progress line. Returns `None` if the line is not a report, and `Some(None)` if its
/// number is not between 0 and 1.
fn read(line: &str) -> Option<Option<CallStep>> {
    let line = line.trim();
    if !line.starts_with("{\"") || !line.contains("\"progress\"") {
        return None; // most lines, without a parser
    }
    let object = Raw::parse(line).ok().filter(|value| value.is_object())?;
    let progress = object.get("progress")?;
    let number = progress
        .text()
        .parse::<f64>()
        .ok()
        .filter(|_| !progress.is_str())?;
    let message = object.get("message");
    if object.entries().count() != 1 + usize::from(message.is_some())
        || message.is_some_and(|message| !message.is_str())
    {
        return None;
    }
    let message = message.and_then(Raw::str).unwrap_or_default().into_owned();
    Some((0.0..=1.0).contains(&number).then_some(CallStep {
        progress: Some(number),
        message,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_kinds_are_named() {
        for (bytes, want) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "jpg"),
            (b"GIF89a\x01\0\x01\0", "gif"),
            (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "pdf"),
            (b"PK\x03\x04\x14\0", "zip"),
            (b"\x1f\x8b\x08\0", "gz"),
            (b"RIFF\x24\0\0\0WAVEfmt \x10\0", "wav"),
        ] {
            assert_eq!(binary(bytes).unwrap().extension, want);
        }
    }

    #[test]
    fn text_with_a_few_bad_bytes_stays_text() {
        assert_eq!(binary("ID3 é\n".repeat(99).as_bytes()), None);
        assert_eq!(binary(b""), None);
        assert_eq!(binary(b"a\0b\xffc"), None, "short");
        let mut text = vec![b'x'; 1000];
        text[..100].fill(0xe9); // Latin-1
        assert_eq!(binary(&text), None);
        text[100] = 0xe9;
        assert_eq!(binary(&text).unwrap().extension, "bin");
        text[..101].fill(b'x');
        assert_eq!(binary(&text), None);
        text[500] = 0;
        assert_eq!(binary(&text).unwrap().extension, "bin");
    }
}

#[cfg(test)]
mod shorten_tests {
    use super::*;

    fn short(text: &str, max: usize) -> String {
        shorten(text, max, |n| format!("{n} left out")).into_owned()
    }

    #[test]
    fn both_ends_stay_and_what_is_between_is_counted() {
        assert_eq!(short("abcdef", 6), "abcdef");
        assert_eq!(short("abcdef", 5), "abc\n[1 left out]\nef");
        assert_eq!(short("abcdef", 1), "a\n[5 left out]");
        assert_eq!(short("abcdef", 0), "[6 left out]");
    }

    #[test]
    fn no_character_is_cut() {
        for max in 0..24 {
            let text = "é🦀aé🦀é🦀b🦀";
            let said = short(text, max);
            let left_out: usize = said
                .split(['[', ' '])
                .nth(1)
                .and_then(|n| n.parse().ok())
                .unwrap();
            let kept = said
                .replace(&format!("[{left_out} left out]"), "")
                .replace('\n', "");
            assert!(
                kept.len() <= max && kept.len() + left_out == text.len(),
                "{max}: {said}"
            );
        }
    }

    #[test]
    fn lines_stay_whole_where_their_ends_are_near() {
        let text = (0..100)
            .map(|n| format!("line {n:02}\n"))
            .collect::<String>();
        let said = short(&text, 100);
        assert!(
            said.starts_with("line 00\n") && said.contains("line 05\n[704 left out]\nline 94\n"),
            "{said}"
        );
        // Without line breaks, each end is as long as allowed.
        assert_eq!(
            short(&"x".repeat(100), 10),
            format!("{x}\n[90 left out]\n{x}", x = "xxxxx")
        );
    }
}

#[cfg(test)]
mod progress_tests {
    use super::*;

    #[test]
    fn reports_are_taken_out_and_all_else_stays() {
        let text = "a\n{\"progress\":0.5}\n{\"progress\":2}\n{\"progress\":-1}\n{\"progress\":1e999}\n\
                    {\"progress\":NaN}\n{\"progress\":\"0.5\"}\n{\"progress\":0.6,\"x\":1}\n x {\"progress\":0.7}\n\
                    {\"message\":\"m\",\"progress\":0.75}\n{\"progress\":0.8,\"message\":7}\n{\"progress\":true}\nb\n{\"progress\":0.9}";
        let left = "a\n{\"progress\":NaN}\n{\"progress\":\"0.5\"}\n{\"progress\":0.6,\"x\":1}\n x {\"progress\":0.7}\n\
                    {\"progress\":0.8,\"message\":7}\n{\"progress\":true}\nb\n";
        let is = |progress, message: &str| {
            Some(CallStep {
                progress: Some(progress),
                message: message.to_owned(),
            })
        };
        for size in [1, 2, 3, 7, 50, 1000] {
            let (mut lines, mut bytes, mut found, mut taken) =
                (ProgressLines::default(), Vec::new(), Vec::new(), 0);
            for piece in text.as_bytes().chunks(size) {
                bytes.extend_from_slice(piece);
                let (n, report) = lines.take(&mut bytes, false);
                taken += n;
                found.extend(report);
            }
            let (n, report) = lines.take(&mut bytes, true);
            assert_eq!(
                (report, std::str::from_utf8(&bytes).unwrap()),
                (is(0.9, ""), left),
                "{size}"
            );
            assert_eq!(taken + n + left.len(), text.len());
            assert_eq!(found.last(), is(0.75, "m").as_ref());
            assert!(size > 7 || found.len() == 2);
        }
    }

    #[test]
    fn a_report_that_says_nothing_new_is_not_repeated() {
        let mut lines = ProgressLines::default();
        let mut bytes = Vec::new();
        let mut take = |text: &str| {
            bytes.extend_from_slice(text.as_bytes());
            lines
                .take(&mut bytes, false)
                .1
                .and_then(|report| report.progress)
        };
        assert_eq!(
            (
                take("{\"progress\":0.1}\n"),
                take("{\"progress\":0.1}\n{\"progress\":0.1}\n")
            ),
            (Some(0.1), None)
        );
        assert_eq!(take("{\"progress\":0.2}\n"), Some(0.2));
    }
}
