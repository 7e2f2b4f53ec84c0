//! Patterns for tool names: `*` matches any sequence of characters, `?` matches one character, and
//! any other character matches itself.

/// A pattern. Each star costs at most time linear in the name, because matching never backtracks
/// past the last star.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    pattern: Vec<char>,
}

impl Glob {
    /// Parses a pattern. Any text is a valid pattern.
    pub fn new(pattern: &str) -> Self {
        Glob {
            pattern: pattern.chars().collect(),
        }
    }

    /// Whether the pattern matches the whole name.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut p, mut n) = (0, 0);
        let mut star = None;
        while n < name.len() {
            match self.pattern.get(p) {
                Some('*') => {
                    star = Some((p, n));
                    p += 1;
                }
                Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
                _ => match star {
                    // The last star consumes one more character.
                    Some((at, from)) => {
                        (p, n) = (at + 1, from + 1);
                        star = Some((at, n));
                    }
                    None => return false,
                },
            }
        }
        self.pattern[p..].iter().all(|c| *c == '*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_questions() {
        for (pattern, name, fits) in [
            ("read_*", "read_file", true),
            ("read_*", "write_file", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("?b*d*", "abcde", true),
            ("*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("get?", "getß", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), fits, "{pattern} {name}");
        }
    }
}
