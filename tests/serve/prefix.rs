//! Whether a text that grows is the beginning of a JSON object, byte by byte; apart from the
//! scanner of the crate `json`, which is what the answers under test are made with.

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The object itself.
    Start,
    Value,
    FirstItem,
    FirstKey,
    Key,
    Colon,
    /// A comma, or the bracket that closes.
    Comma,
    Inside {
        key: bool,
    },
    Escape {
        key: bool,
    },
    Hex {
        key: bool,
        left: u8,
    },
    Word(&'static [u8]),
    Number(Digits),
    End,
}

/// How far a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digits {
    Sign,
    Zero,
    Whole,
    Point,
    Fraction,
    E,
    ESign,
    Power,
}

/// A text that grows.
#[derive(Clone, Debug)]
pub(crate) struct Prefix {
    /// The closers of what is open.
    open: Vec<u8>,
    next: Next,
    /// All of it.
    pub text: String,
}

impl Default for Prefix {
    fn default() -> Prefix {
        Prefix {
            open: Vec::new(),
            next: Next::Start,
            text: String::new(),
        }
    }
}

impl Prefix {
    /// Takes more of the text; gives what is wrong with its first wrong byte.
    pub(crate) fn push(&mut self, more: &str) -> Result<(), String> {
        for byte in more.bytes() {
            let Some(next) = self.step(byte) else {
                let before = self.text.clone() + more;
                return Err(format!(
                    "not the beginning of a JSON object: {before:?}, byte {:?}",
                    byte as char
                ));
            };
            self.next = next;
        }
        self.text.push_str(more);
        Ok(())
    }

    /// Whether the object has closed.
    pub(crate) fn is_complete(&self) -> bool {
        self.next == Next::End
    }

    /// The state after a byte; `None` if the byte cannot come.
    fn step(&mut self, byte: u8) -> Option<Next> {
        let space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        Some(match (self.next, byte) {
            (Next::Inside { key }, b'"') => {
                if key {
                    Next::Colon
                } else {
                    self.after()
                }
            }
            (Next::Inside { key }, b'\\') => Next::Escape { key },
            (next @ Next::Inside { .. }, 0x20..) => next,
            (Next::Escape { key }, b'u') => Next::Hex { key, left: 4 },
            (Next::Escape { key }, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                Next::Inside { key }
            }
            (Next::Hex { key, left }, byte) if byte.is_ascii_hexdigit() => {
                if left == 1 {
                    Next::Inside { key }
                } else {
                    Next::Hex {
                        key,
                        left: left - 1,
                    }
                }
            }
            (Next::Word([first, rest @ ..]), byte) if byte == *first => {
                if rest.is_empty() {
                    self.after()
                } else {
                    Next::Word(rest)
                }
            }
            (Next::Number(digits), byte) => return self.number(digits, byte),
            (Next::Inside { .. } | Next::Escape { .. } | Next::Hex { .. } | Next::Word(_), _) => {
                return None;
            }
            (next, _) if space => next,
            (Next::Start, b'{') | (Next::Value | Next::FirstItem, b'{') => {
                self.open.push(b'}');
                Next::FirstKey
            }
            (Next::Value | Next::FirstItem, b'[') => {
                self.open.push(b']');
                Next::FirstItem
            }
            (Next::Value | Next::FirstItem, b'"') => Next::Inside { key: false },
            (Next::Value | Next::FirstItem, b't') => Next::Word(b"rue"),
            (Next::Value | Next::FirstItem, b'f') => Next::Word(b"alse"),
            (Next::Value | Next::FirstItem, b'n') => Next::Word(b"ull"),
            (Next::Value | Next::FirstItem, b'-') => Next::Number(Digits::Sign),
            (Next::Value | Next::FirstItem, b'0') => Next::Number(Digits::Zero),
            (Next::Value | Next::FirstItem, b'1'..=b'9') => Next::Number(Digits::Whole),
            (Next::FirstKey | Next::Key, b'"') => Next::Inside { key: true },
            (Next::Colon, b':') => Next::Value,
            (Next::Comma, b',') => {
                if self.open.last() == Some(&b'}') {
                    Next::Key
                } else {
                    Next::Value
                }
            }
            (Next::Comma | Next::FirstKey | Next::FirstItem, b'}' | b']')
                if self.open.last() == Some(&byte) =>
            {
                self.open.pop();
                self.after()
            }
            _ => return None,
        })
    }

    fn number(&mut self, digits: Digits, byte: u8) -> Option<Next> {
        use Digits::{E, ESign, Fraction, Point, Power, Sign, Whole, Zero};
        let digits = match (digits, byte) {
            (Sign, b'0') => Zero,
            (Sign | Whole, b'0'..=b'9') => Whole,
            (Zero | Whole, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Whole | Fraction, b'e' | b'E') => E,
            (E, b'+' | b'-') => ESign,
            (E | ESign | Power, b'0'..=b'9') => Power,
            (Zero | Whole | Fraction | Power, _) => {
                self.next = self.after();
                return self.step(byte);
            }
            _ => return None,
        };
        Some(Next::Number(digits))
    }

    /// What follows a value.
    fn after(&self) -> Next {
        if self.open.is_empty() {
            Next::End
        } else {
            Next::Comma
        }
    }
}

#[test]
fn the_reader_of_beginnings() {
    let whole = r#" {"a":[1,-0.5e+3,"x\"é\u00e9",true,null,{}],"b":{"c":[]}} "#;
    for (at, _) in whole.char_indices() {
        let mut prefix = Prefix::default();
        prefix.push(&whole[..at]).expect("a beginning");
        assert_eq!(prefix.is_complete(), at == whole.len() - 1, "{at}");
    }
    for wrong in [
        "[",
        "1",
        "\"",
        "{a",
        "{,",
        "{\"a\" 1",
        "{\"a\":01",
        "{\"a\":1,}",
        "{\"a\":[1,]",
        "{\"a\":tru}",
        "{\"a\":1.}",
        "{}{",
        "{}x",
        "{\"a\":-}",
        "{\"a\":\"\n",
        "{\"a\":\"\\x",
        "{\"a\":'",
        "{\"a\":1]",
        "{\"a\":[1}",
        "{\"a\":1e}",
        "{\"a\":,",
    ] {
        assert!(Prefix::default().push(wrong).is_err(), "{wrong}");
    }
}
