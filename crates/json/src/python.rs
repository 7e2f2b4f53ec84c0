//! Objects and arrays as Python writes them, and JSON with raw control characters in its strings, made into JSON.

use event::MAX_DEPTH;

/// Appends the JSON of `text`, which is one value with nothing round it. Gives `false`, and appends nothing, when it is neither
/// JSON nor a literal of Python. Numbers must be JSON's, and keep their digits.
pub(crate) fn value(text: &str, out: &mut String) -> bool {
    let start = out.len();
    let mut read = Read { text, at: 0, out };
    let whole = read.value(0).is_some() && read.at == text.len();
    if !whole {
        out.truncate(start);
    }
    whole
}

struct Read<'t, 'o> {
    text: &'t str,
    at: usize,
    out: &'o mut String,
}

impl Read<'_, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// White space goes on as it is.
    fn space(&mut self) {
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\r', '\n']);
        let end = self.text.len() - rest.len();
        self.out.push_str(&self.text[self.at..end]);
        self.at = end;
    }

    fn value(&mut self, depth: u32) -> Option<()> {
        match self.peek()? {
            b'{' => self.list(b'}', '{', '}', true, depth),
            b'[' => self.list(b']', '[', ']', false, depth),
            b'(' => self.list(b')', '[', ']', false, depth),
            b'"' | b'\'' => self.string(),
            _ => self.word(),
        }
    }

    fn list(&mut self, end: u8, open: char, close: char, members: bool, depth: u32) -> Option<()> {
        if depth >= MAX_DEPTH {
            return None;
        }
        self.at += 1;
        self.out.push(open);
        self.space();
        while self.peek()? != end {
            if members {
                self.peek().filter(|c| matches!(c, b'"' | b'\''))?;
                self.string()?;
                self.space();
                self.take(b':')?;
                self.out.push(':');
                self.space();
            }
            self.value(depth + 1)?;
            let comma = self.out.len();
            self.space();
            if self.peek()? == end {
                break;
            }
            self.take(b',')?;
            self.out.push(',');
            self.space();
            // A comma before the end means nothing, as in Python.
            if self.peek()? == end {
                self.out.truncate(comma);
            }
        }
        self.at += 1;
        self.out.push(close);
        Some(())
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.peek().filter(|c| *c == byte)?;
        self.at += 1;
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let end = rest.find([',', ']', '}', ')', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
        let json = match &rest[..end] {
            "true" | "True" => "true",
            "false" | "False" => "false",
            "null" | "None" => "null",
            word if event::Raw::parse(word).is_ok() => word,
            _ => return None,
        };
        self.out.push_str(json);
        self.at += end;
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let quote = char::from(self.peek()?);
        let mut meant = String::new();
        let mut chars = self.text[self.at + 1..].char_indices();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.at += 1 + at + 1;
                self.out.push_str(&event::quoted(&meant));
                return Some(());
            }
            if c != '\\' {
                meant.push(c);
                continue;
            }
            let (_, letter) = chars.next()?;
            match letter {
                'n' => meant.push('\n'),
                't' => meant.push('\t'),
                'r' => meant.push('\r'),
                'b' => meant.push('\u{8}'),
                'f' => meant.push('\u{c}'),
                '\\' | '/' | '"' | '\'' => meant.push(letter),
                '\n' => {}
                'x' => meant.push(hex(&mut chars, 2)?),
                'u' => {
                    let unit = code(&mut chars, 4)?;
                    let mut units = vec![unit];
                    if (0xd800..0xdc00).contains(&unit) {
                        chars.next().filter(|(_, c)| *c == '\\')?;
                        chars.next().filter(|(_, c)| *c == 'u')?;
                        units.push(code(&mut chars, 4)?);
                    }
                    let units = units.into_iter().filter_map(|u| u16::try_from(u).ok());
                    for c in char::decode_utf16(units) {
                        meant.push(c.ok()?);
                    }
                }
                'U' => meant.push(hex(&mut chars, 8)?),
                other => meant.extend(['\\', other]),
            }
        }
        None
    }
}

fn hex(chars: &mut std::str::CharIndices<'_>, digits: usize) -> Option<char> {
    char::from_u32(code(chars, digits)?)
}

fn code(chars: &mut std::str::CharIndices<'_>, digits: usize) -> Option<u32> {
    (0..digits).try_fold(0u32, |code, _| Some(code.checked_mul(16)? + chars.next()?.1.to_digit(16)?))
}

#[cfg(test)]
mod tests {
    fn json(text: &str) -> Option<String> {
        let mut out = String::from("x");
        let whole = super::value(text, &mut out);
        assert!(whole || out == "x", "{out}");
        whole.then(|| out[1..].to_owned())
    }

    #[test]
    fn literals() {
        for (text, expected) in [
            ("{'a': [1, 2.50,], 'b': {}}", r#"{"a": [1, 2.50], "b": {}}"#),
            ("['\\u00e9\\ud83d\\ude00\\x1b', '日本']", "[\"é\u{1f600}\\u001b\", \"日本\"]"),
            ("[\"a\u{7f}\"]", r#"["a\u007f"]"#),
            ("()", "[]"),
        ] {
            assert_eq!(json(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn everything_else() {
        let deep = "[".repeat(100_000);
        for text in ["{'a' 1}", "{a: 1}", "[1 2]", "[,]", "['a", "[0x10]", "[1]]", "['\\ud83d']", "{'a':1}}", "", &deep]
        {
            assert_eq!(json(text), None, "{text:.20}");
        }
    }
}
