//! Names of tools, and patterns over them.

/// Whether `name` may name a tool: 1 to 128 of `A-Z a-z 0-9 _ . -`. Names are compared byte for byte and lead to a tool by a
/// table, never to a path.
pub fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// A pattern over names: `*` stands for any text, `?` for one character, everything else for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(Vec<char>);

impl Glob {
    /// Reads a pattern. Every text is one.
    pub fn new(pattern: &str) -> Self {
        Glob(pattern.chars().collect())
    }

    /// Whether the whole of `name` fits. Time grows with the product of both lengths at most.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name): (&[char], Vec<char>) = (&self.0, name.chars().collect());
        let (mut p, mut n) = (0, 0);
        // After a `*`: where the pattern goes on, and up to where the star reaches so far.
        let mut star: Option<(usize, usize)> = None;
        while n < name.len() {
            match pattern.get(p) {
                Some('*') => {
                    star = Some((p + 1, n));
                    p += 1;
                }
                Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
                _ => {
                    let Some((after, reach)) = star else { return false };
                    star = Some((after, reach + 1));
                    (p, n) = (after, reach + 1);
                }
            }
        }
        pattern[p..].iter().all(|c| *c == '*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        assert!(is_name("get_weather") && is_name("a.b-c_9") && is_name(&"x".repeat(128)));
        for bad in ["", "../../bin/sh", "/bin/sh", "sh -c", "g\u{430}t", "a\u{200d}b", "ｇｅｔ", "a\nb"] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(!is_name(&"x".repeat(129)));
    }

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("git_*", "git_log", true),
            ("git_*", "agit_log", false),
            ("*_log", "git_log_log", true),
            ("g?t", "get", true),
            ("g?t", "gt", false),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            ("get", "Get", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), fits, "{pattern} {name}");
        }
    }
}
