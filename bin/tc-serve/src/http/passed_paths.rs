//! Which paths are passed to the provider as they are.

use super::route::{Route, unversioned};
use anyhow::{Result, bail};

/// The paths that every client of a local server needs, as the server has them, and whether they
/// take `GET`, and forms as bodies. `*` at the end is one segment or more.
const PATHS: [(&str, bool); 7] = [
    ("/v1/embeddings", false),
    ("/v1/completions", false),
    ("/v1/rerank", false),
    ("/tokenize", false),
    ("/detokenize", false),
    ("/infill", false),
    ("/v1/audio/*", true),
];

/// The paths that are passed.
#[derive(Clone, Debug)]
pub struct PassedPaths(Vec<(String, bool)>);

impl PassedPaths {
    /// The paths of the table, and those of `--pass`.
    ///
    /// # Errors
    /// One line for a path that cannot be passed.
    pub fn new(typed: &[String]) -> Result<PassedPaths> {
        let mut paths: Vec<(String, bool)> =
            PATHS.map(|(path, forms)| (path.to_owned(), forms)).into();
        for path in typed {
            let fixed = path.strip_suffix("/*").unwrap_or(path);
            let is_path = path == "/*" || fixed.strip_prefix('/').is_some_and(is_safe);
            if !is_path {
                bail!(
                    "--pass {path}: not a path, write it as /api/tags or, with all below it, as /api/*"
                );
            }
            if Route::of(fixed) != Route::Unknown && path != "/*" {
                bail!("--pass {path}: tc-serve answers this path itself, name another");
            }
            paths.push((path.clone(), true));
        }
        Ok(PassedPaths(paths))
    }

    /// The provider's path for that of a client, which may leave out `/v1` or double it; and
    /// whether it takes `GET` and forms. `None`: it is not passed.
    pub fn find(&self, path: &str) -> Option<(String, bool)> {
        let rest = unversioned(path);
        let (known, forms) = self.0.iter().find(|(known, _)| {
            let known = unversioned(known);
            match known.strip_suffix('*') {
                Some(begin) => rest.strip_prefix(begin).is_some_and(is_safe),
                None => known == rest,
            }
        })?;
        let version = if known.starts_with("/v1/") { "/v1" } else { "" };
        Some((format!("{version}{rest}"), *forms))
    }
}

/// Whether these segments lead nowhere else, however a server reads them: no `..`, no sign that is
/// encoded, no empty one.
fn is_safe(segments: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:@".contains(&byte);
    segments
        .split('/')
        .all(|segment| !matches!(segment, "" | "." | "..") && segment.bytes().all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_passed_as_the_server_has_it_or_not_at_all() {
        let paths = PassedPaths::new(&["/api/tags".to_owned(), "/v1/files/*".to_owned()]).unwrap();
        for (path, passed) in [
            ("/v1/embeddings", Some("/v1/embeddings")),
            ("/embeddings", Some("/v1/embeddings")),
            ("/v1/v1/rerank/", Some("/v1/rerank")),
            ("/v1/tokenize", Some("/tokenize")),
            ("/tokenize", Some("/tokenize")),
            ("/v1/audio/transcriptions", Some("/v1/audio/transcriptions")),
            ("/audio/speech", Some("/v1/audio/speech")),
            ("/api/tags", Some("/api/tags")),
            ("/v1/files/f-1/content", Some("/v1/files/f-1/content")),
            ("/v1/audio", None),
            ("/v1/audio/", None),
            ("/v1/audio/..", None),
            ("/v1/audio/../models", None),
            ("/v1/audio/%2e%2e/models", None),
            ("/v1/audio/..%2fmodels", None),
            ("/v1/audio/a//b", None),
            ("/v1/audio/./a", None),
            ("/v1/audio/a\\b", None),
            ("/v1/audio/a;b", None),
            ("/v1/embeddings/..", None),
            ("/v1/embeddingsx", None),
            ("/api/tagsx", None),
            ("/slots", None),
        ] {
            assert_eq!(
                paths.find(path).map(|(path, _)| path).as_deref(),
                passed,
                "{path}"
            );
        }
        for wrong in [
            "",
            "api",
            "/",
            "/..",
            "/a/../b",
            "/%2e",
            "/a?b",
            "/v1/messages",
            "/models",
            "/health",
            "/a*",
        ] {
            assert!(PassedPaths::new(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
        let all = PassedPaths::new(&["/*".to_owned()]).unwrap();
        assert_eq!(
            (all.find("/slots/1"), all.find("/a/../b")),
            (Some(("/slots/1".to_owned(), true)), None)
        );
    }
}
