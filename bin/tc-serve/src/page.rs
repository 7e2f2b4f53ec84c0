//! The page at `/`: a single document that loads nothing and runs only its own script.
//!
//! Its parts are in `page/` and compiled into the program: `state.js` computes a session from its
//! events, `draw.js` renders the session, and `page.js` sends requests to the service. The style of
//! cards is [`view::CARDS`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use sha2::{Digest, Sha256};

const FRAME: &str = include_str!("page/page.html");
const STYLES: [&str; 2] = [view::CARDS, include_str!("page/page.css")];
const SCRIPTS: [&str; 3] = [
    include_str!("page/state.js"),
    include_str!("page/draw.js"),
    include_str!("page/page.js"),
];

/// The document, and the headers that depend on its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The HTML document.
    pub html: Bytes,
    /// The value of `content-security-policy`.
    pub policy: String,
    /// The value of `etag`.
    pub tag: String,
}

impl Page {
    /// Builds the document.
    pub(crate) fn new() -> Page {
        let sources = [FRAME.to_owned(), STYLES.concat(), SCRIPTS.concat()];
        let [frame, style, script] = sources.map(|source| served(&source));
        // The script comes last, since its text may contain `{style}`.
        let html = frame
            .replacen("{style}", &style, 1)
            .replacen("{script}", &script, 1);
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src \
             'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'",
            hash(&script),
            hash(&style),
        );
        Page {
            tag: format!("\"{}\"", hash(&html)),
            html: html.into(),
            policy,
        }
    }
}

/// Returns the SHA-256 hash of `text` in the format of a content security policy.
fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// Strips indentation and comment-only lines, which are useful only to readers of the source and
/// make up an eighth of the bytes.
fn served(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut is_comment = false;
    for line in source.lines().map(str::trim) {
        is_comment |= line.starts_with("/*");
        if !is_comment && !line.is_empty() && !line.starts_with("//") {
            out.extend([line, "\n"]);
        }
        is_comment &= !line.ends_with("*/");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_served_without_indentation_and_comments() {
        let source =
            "/* a\n   b */\nlet a = 1; // stays\n\n  // goes\n  /** goes */\n  b(\"// = \");\n";
        assert_eq!(served(source), "let a = 1; // stays\nb(\"// = \");\n");
    }

    #[test]
    fn no_source_ends_its_element_early() {
        for source in STYLES.iter().chain(&SCRIPTS) {
            let source = served(source);
            assert!(!source.contains("</") && !source.contains("<!--"));
        }
    }
}
