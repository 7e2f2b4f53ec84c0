//! The parts of a message's content, in the shapes that OpenAI's two APIs use.

use crate::members::GetText;
use serde_json::Value;

/// One content part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    Media {
        kind: MediaKind,
        source: PartSource<'a>,
        name: Option<&'a str>,
        /// OpenAI's image detail level, such as `low` or `high`.
        detail: Option<&'a str>,
    },
    /// A part of an unknown type, which may be specific to a provider.
    Other(&'a Value),
}

/// The type of a part that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaKind {
    Image,
    File,
}

/// Where the data of a part is located.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartSource<'a> {
    /// The data is in the message.
    Base64 { mime: &'a str, data: &'a str },
    /// The provider must fetch the data from this URL.
    Url(&'a str),
}

impl<'a> PartSource<'a> {
    /// Parses a URL; a base64 `data:` URL is split into its MIME type and data.
    fn of(url: &'a str) -> Self {
        match url
            .strip_prefix("data:")
            .and_then(|rest| rest.split_once(";base64,"))
        {
            Some((mime, data)) => PartSource::Base64 { mime, data },
            None => PartSource::Url(url),
        }
    }

    /// Returns the source as one URL.
    pub(crate) fn url(self) -> String {
        match self {
            PartSource::Base64 { mime, data } => format!("data:{mime};base64,{data}"),
            PartSource::Url(url) => url.to_owned(),
        }
    }
}

/// Returns the parts of a message's content. A string becomes one part; an empty string none.
pub(crate) fn parts(content: Option<&Value>) -> Vec<Part<'_>> {
    match content {
        Some(Value::String(text)) if text.is_empty() => Vec::new(),
        Some(Value::String(text)) => vec![Part::Text(text)],
        Some(Value::Array(items)) => items.iter().map(part).collect(),
        _ => Vec::new(),
    }
}

fn part(value: &Value) -> Part<'_> {
    if let Some(text) = value.as_str() {
        return Part::Text(text);
    }
    let text = |path: &str| value.pointer(path).and_then(Value::as_str);
    match text("/type") {
        Some("text" | "input_text" | "output_text") => {
            text("/text").map_or(Part::Other(value), Part::Text)
        }
        Some("image_url" | "input_image") => {
            match text("/image_url/url").or_else(|| text("/image_url")) {
                Some(url) => Part::Media {
                    kind: MediaKind::Image,
                    source: PartSource::of(url),
                    name: None,
                    detail: text("/image_url/detail").or_else(|| text("/detail")),
                },
                None => Part::Other(value),
            }
        }
        Some("file" | "input_file") => {
            let file = value.get("file").unwrap_or(value);
            let text = |key: &str| file.text_of(key);
            match text("file_data").or_else(|| text("file_url")) {
                Some(url) => Part::Media {
                    kind: MediaKind::File,
                    source: PartSource::of(url),
                    name: text("filename"),
                    detail: None,
                },
                None => Part::Other(value),
            }
        }
        _ => Part::Other(value),
    }
}
