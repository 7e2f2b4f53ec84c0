//! Converts a user's file to a message part in OpenAI's shape, from which each API's request is
//! built.

use crate::Api;
use crate::inbound::draft::{file, image, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The first bytes of image and document files with their MIME types, from the formats'
/// specifications.
const KINDS: [(&[u8], &str); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
];

/// Why a file cannot be attached to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachmentError {
    /// The file's type is not supported.
    #[error(
        "neither an image (PNG, JPEG, GIF, WebP) nor a PDF nor text in UTF-8, convert it first"
    )]
    Unknown,
    /// The API does not support files of this type.
    #[error("{} takes no PDF, convert it to text or images first", .0.name())]
    NoFiles(Api),
}

/// Returns the part for a message to `api` that contains this file. The file's type is detected
/// from its content, not its name.
///
/// # Errors
/// Returns an [`AttachmentError`] if the file cannot be attached.
pub fn attachment(api: Api, name: &str, bytes: &[u8]) -> Result<Value, AttachmentError> {
    let known = KINDS.iter().find(|(begin, _)| bytes.starts_with(begin));
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let Some(mime) = known
        .map(|(_, mime)| *mime)
        .or(is_webp.then_some("image/webp"))
    else {
        let content = std::str::from_utf8(bytes)
            .ok()
            .filter(|text| !text.contains('\0'));
        let content = content.ok_or(AttachmentError::Unknown)?;
        return Ok(text(&format!("{name}:\n\n{content}")));
    };
    let url = format!("data:{mime};base64,{}", STANDARD.encode(bytes));
    if mime.starts_with("image/") {
        return Ok(image(&url, None));
    }
    // Requests to Ollama omit files.
    if api == Api::Ollama {
        return Err(AttachmentError::NoFiles(api));
    }
    Ok(file("file_data", &url, Some(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_content_decides_and_not_the_name() {
        let part = |bytes: &[u8]| attachment(Api::OpenaiChat, "a.txt", bytes);
        for (bytes, mime) in [
            (&b"\x89PNG\r\n\x1a\n1"[..], "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF89a..", "image/gif"),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"),
        ] {
            let url = format!("data:{mime};base64,{}", STANDARD.encode(bytes));
            assert_eq!(
                part(bytes),
                Ok(json!({"type": "image_url", "image_url": {"url": url}}))
            );
        }
        assert_eq!(
            part(b"%PDF-1.7"),
            Ok(
                json!({"type": "file", "file": {"filename": "a.txt", "file_data": "data:application/pdf;base64,JVBERi0xLjc="}})
            )
        );
        assert_eq!(
            part("é\n".as_bytes()),
            Ok(json!({"type": "text", "text": "a.txt:\n\né\n"}))
        );
        for unknown in [
            &b"\x7fELF\x02\0"[..],
            b"a\0b",
            b"RIFF....WAVE\xff",
            b"\xff\xfe",
        ] {
            assert_eq!(part(unknown), Err(AttachmentError::Unknown));
        }
        assert_eq!(
            attachment(Api::Ollama, "a", b"%PDF-1.7"),
            Err(AttachmentError::NoFiles(Api::Ollama))
        );
    }
}
