//! Whether an output is text that a model can read, and what it is otherwise.

use crate::result::is_replaced;

/// Below this length, in bytes, an output is text whatever it holds: its bad bytes read U+FFFD,
/// which is shorter than a description.
const LEAST: usize = 64;

/// A kind of binary data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinaryKind {
    /// What it is, with its article: `a PNG image`.
    pub name: &'static str,
    /// The extension of files of this kind.
    pub extension: &'static str,
}

/// Offset and bytes by which a kind is known.
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

/// What `bytes` are if they are not text: they hold bytes that are not UTF-8 or U+0000, and begin
/// like a known kind; or they are not short, and hold U+0000, or more than a tenth of them is not
/// UTF-8.
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

/// How many bytes are not UTF-8.
fn bad(bytes: &[u8]) -> usize {
    bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum()
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
