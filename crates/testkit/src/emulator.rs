//! An emulator of the terminal sequences that the commands use; it panics on any other sequence.

use unicode_width::UnicodeWidthChar;

/// A cell: its character, and its style as the parameters of the sequences that set it.
type Cell = (char, String);

/// A terminal: all rows ever written, the last of which are on the screen.
#[derive(Debug)]
pub struct Emulator {
    columns: usize,
    rows: usize,
    lines: Vec<Vec<Cell>>,
    row: usize,
    column: usize,
    style: String,
    /// How many times the cursor was moved above the screen.
    pub lost: usize,
    /// How many times a colour was set.
    pub colours: usize,
}

impl Emulator {
    /// Creates an empty screen of this size.
    pub fn new(columns: usize, rows: usize) -> Self {
        let style = String::new();
        Emulator {
            columns,
            rows,
            lines: vec![Vec::new()],
            row: 0,
            column: 0,
            style,
            lost: 0,
            colours: 0,
        }
    }

    /// Changes the size; rows that are too long for it are not wrapped.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        (self.columns, self.rows) = (columns, rows);
    }

    /// Processes the output of a command.
    pub fn write(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\n' => {
                    (self.row, self.column) = (self.row + 1, 0);
                    if self.row == self.lines.len() {
                        self.lines.push(Vec::new());
                    }
                }
                '\r' => self.column = 0,
                '\u{1b}' => {
                    assert_eq!(chars.next(), Some('['));
                    let mut number = String::new();
                    let end = loop {
                        match chars.next() {
                            Some(c @ ('0'..='9' | ';')) => number.push(c),
                            Some(c) => break c,
                            None => panic!("an unfinished sequence"),
                        }
                    };
                    self.sequence(end, &number);
                }
                c => {
                    assert!(!c.is_control(), "{c:?}");
                    self.put(c);
                }
            }
        }
    }

    fn sequence(&mut self, end: char, number: &str) {
        let n: usize = number.parse().unwrap_or(1);
        match end {
            'm' => {
                self.colours += 1;
                match number {
                    "0" => self.style.clear(),
                    _ if self.style.is_empty() => self.style.push_str(number),
                    _ => self.style.extend([";", number]),
                }
            }
            'A' => {
                let top = self.lines.len().saturating_sub(self.rows);
                self.lost += usize::from(self.row < top + n);
                self.row = self.row.saturating_sub(n);
            }
            'D' => self.column -= n,
            'G' => self.column = n - 1,
            'K' => self.lines[self.row].truncate(self.column),
            'J' => {
                self.lines.truncate(self.row + 1);
                self.lines[self.row].truncate(self.column);
            }
            c => panic!("a sequence that the view does not use: {number}{c}"),
        }
    }

    /// Writes a character at the cursor. A wide character takes a second cell, which contains
    /// U+0000.
    fn put(&mut self, c: char) {
        let width = c.width().unwrap_or(0);
        let line = &mut self.lines[self.row];
        if width == 0 {
            return;
        }
        assert!(
            self.column + width < self.columns,
            "{c:?} in the last column"
        );
        line.resize(line.len().max(self.column + width), (' ', String::new()));
        line[self.column] = (c, self.style.clone());
        line[self.column + 1..self.column + width].fill(('\0', self.style.clone()));
        self.column += width;
    }

    /// Returns the text, without trailing white space on each line and at the end.
    pub fn text(&self) -> String {
        let line = |l: &Vec<Cell>| {
            l.iter()
                .map(|c| c.0)
                .filter(|c| *c != '\0')
                .collect::<String>()
                .trim_end()
                .to_owned()
        };
        self.lines
            .iter()
            .map(line)
            .collect::<Vec<_>>()
            .join("\n")
            .trim_end()
            .to_owned()
    }

    /// Returns the text with its styles: `{1}` where bold begins, `{}` where all styles end, and so
    /// on.
    pub fn marked(&self) -> String {
        let mut out = String::new();
        for line in &self.lines {
            let mut style = "";
            for (c, s) in line.iter().filter(|c| c.0 != '\0') {
                if s != style {
                    out.extend(["{", s, "}"]);
                    style = s;
                }
                out.push(*c);
            }
            out.truncate(out.trim_end_matches(' ').len());
            out.push_str(if style.is_empty() { "\n" } else { "{}\n" });
        }
        out.trim_end().to_owned()
    }

    /// Returns the rows as runs of the same style. Each run is its first column, its style (the
    /// parameters of the sequences that set it), its text, and its width in columns.
    pub fn runs(&self) -> Vec<Vec<(usize, &str, String, usize)>> {
        self.lines.iter().map(|line| runs(line)).collect()
    }
}

/// Returns the runs of one row.
fn runs(line: &[Cell]) -> Vec<(usize, &str, String, usize)> {
    let mut runs: Vec<(usize, &str, String, usize)> = Vec::new();
    for (column, (c, style)) in line.iter().enumerate() {
        match runs.last_mut() {
            Some((_, of, text, width)) if of == style => {
                text.extend((*c != '\0').then_some(*c));
                *width += 1;
            }
            _ => runs.push((column, style, c.to_string(), 1)),
        }
    }
    runs
}
