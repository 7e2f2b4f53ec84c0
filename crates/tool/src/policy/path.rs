//! Patterns of paths and of other texts with slashes.

use regex::Regex;
use std::borrow::Cow;

/// A pattern: `*` is any run of characters but `/`, `**` any run, `?` one character but `/`; `X/**`
/// matches `X` too, and `**/X` matches `X` at any depth. Matching takes time linear in the text.
#[derive(Clone, Debug)]
pub struct PathPattern {
    regex: Regex,
    /// Whether the pattern begins with `/`.
    is_absolute: bool,
    /// Whether it begins with `**/`.
    is_at_any_depth: bool,
}

impl PathPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Why no path could match it, or that it is too long.
    pub fn read(pattern: &str) -> Result<Self, String> {
        let mut rest = pattern.strip_prefix("./").unwrap_or(pattern);
        if rest.len() > 1 {
            rest = rest.strip_suffix('/').unwrap_or(rest);
        }
        let mut segments = rest.strip_prefix('/').unwrap_or(rest).split('/');
        if rest.is_empty()
            || (rest != "/" && segments.any(|segment| matches!(segment, "" | "." | "..")))
        {
            return Err(
                "the pattern has an empty part, `.` or `..`, which no path has after it was resolved".to_owned()
            );
        }
        let is_absolute = rest.starts_with('/');
        let is_at_any_depth = rest.starts_with("**/");
        let mut out = String::from(r"\A(?s:");
        if let Some(tail) = rest.strip_prefix("**/") {
            out.push_str("(?:.*/)?");
            rest = tail;
        }
        let below = rest.strip_suffix("/**");
        let mut chars = below.unwrap_or(rest).chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '*' if chars.next_if_eq(&'*').is_some() => out.push_str(".*"),
                '*' => out.push_str("[^/]*"),
                '?' => out.push_str("[^/]"),
                c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            }
        }
        out.push_str(if below.is_some() {
            r"(?:/.*)?)\z"
        } else {
            r")\z"
        });
        let regex = Regex::new(&out).map_err(|_| "the pattern is too long".to_owned())?;
        Ok(PathPattern {
            regex,
            is_absolute,
            is_at_any_depth,
        })
    }

    /// Whether it matches a text as it is.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Whether it matches the path `text`, which is relative to the absolute path `folder` unless
    /// it begins with `/`. A pattern that does not begin with `/` is relative to that folder, too.
    pub fn matches_path(&self, text: &str, folder: &str) -> bool {
        let joined = joined(text, folder);
        let whole = resolved(&joined);
        if self.is_absolute {
            return self.matches(&whole);
        }
        let folder = resolved(folder);
        let below = match whole.strip_prefix(folder.trim_end_matches('/')) {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix('/'),
            None => None,
        };
        below.is_some_and(|below| self.matches(below))
    }

    /// Whether a pattern that begins with `**/` matches the path `text` wherever it is, also
    /// outside of `folder`: a rule that keeps a tool from `**/.env` also keeps it from `../.env`.
    pub fn matches_anywhere(&self, text: &str, folder: &str) -> bool {
        self.is_at_any_depth
            && self.matches(resolved(&joined(text, folder)).trim_start_matches('/'))
    }
}

/// The path `text`, which is relative to `folder` unless it begins with `/`.
fn joined<'a>(text: &'a str, folder: &str) -> Cow<'a, str> {
    if text.starts_with('/') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{folder}/{text}"))
    }
}

/// `path` without `.`, `..`, and empty parts, as far as its text says: links are not followed. `..`
/// above `/` is `/`; above the beginning of a relative path it stays.
pub fn resolved(path: &str) -> Cow<'_, str> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    if path
        .strip_prefix('/')
        .unwrap_or(path)
        .split('/')
        .all(is_plain)
    {
        return Cow::Borrowed(path);
    }
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&"..") | None if !is_absolute => parts.push(".."),
                _ => {
                    parts.pop();
                }
            },
            part => parts.push(part),
        }
    }
    Cow::Owned(format!(
        "{}{}",
        if is_absolute { "/" } else { "" },
        parts.join("/")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_resolved_by_the_text_alone() {
        for (path, want) in [
            ("/srv/../etc/passwd", "/etc/passwd"),
            ("/../../x", "/x"),
            ("a/./b//c/", "a/b/c"),
            ("a/../../b", "../b"),
            ("../../b", "../../b"),
            ("/", "/"),
            ("", ""),
            ("/a/b", "/a/b"),
            ("..", ".."),
            ("/..", "/"),
        ] {
            assert_eq!(resolved(path), want, "{path}");
        }
    }

    #[test]
    fn stars_stay_between_slashes() {
        for (pattern, text, fits) in [
            ("/srv/**", "/srv/a/b", true),
            ("/srv/**", "/srv", true),
            ("/srv/**", "/srvx", false),
            ("/srv/*", "/srv/a", true),
            ("/srv/*", "/srv/a/b", false),
            ("**/.env", ".env", true),
            ("**/.env", "a/b/.env", true),
            ("**/.env", "a/b.env", false),
            ("*.t?t", "a\n.txt", true),
            ("a.b", "axb", false),
            ("(a|b)", "a", false),
            ("**", "", true),
        ] {
            assert_eq!(
                PathPattern::read(pattern).unwrap().matches(text),
                fits,
                "{pattern} {text}"
            );
        }
        for bad in ["", "a//b", "../a", "/a/./b", "a/.."] {
            assert!(PathPattern::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_is_where_it_leads_from_its_folder() {
        for (pattern, text, fits) in [
            ("data/**", "data/x", true),
            ("data/**", "./data/../data/x", true),
            ("data/**", "data/../secret", false),
            ("data/**", "/w/data/x", true),
            ("data/**", "/data/x", false),
            ("data/**", "../w/data/x", true),
            ("**", "../x", false),
            ("**", ".", true),
            ("/etc/**", "../etc/passwd", true),
            ("/etc/**", "/w/../etc", true),
            ("/w/data/**", "data", true),
        ] {
            assert_eq!(
                PathPattern::read(pattern).unwrap().matches_path(text, "/w"),
                fits,
                "{pattern} {text}"
            );
        }
        assert!(
            PathPattern::read("etc/**")
                .unwrap()
                .matches_path("etc/x", "/")
        );
    }
}
