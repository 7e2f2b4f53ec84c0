//! As much of a terminal as the view uses; it panics at anything else.

use unicode_width::UnicodeWidthChar;

/// All rows ever written, of which the last are on the screen.
pub struct Emulator {
    columns: usize,
    rows: usize,
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// How often the cursor was sent above the screen.
    pub lost: usize,
    /// How often colour was set.
    pub colours: usize,
}

impl Emulator {
    pub fn new(columns: usize, rows: usize) -> Self {
        Emulator { columns, rows, lines: vec![Vec::new()], row: 0, column: 0, lost: 0, colours: 0 }
    }

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
        let n: usize = number.parse().unwrap_or(0);
        match end {
            'm' => self.colours += 1,
            'A' => {
                let top = self.lines.len().saturating_sub(self.rows);
                self.lost += usize::from(self.row < top + n);
                self.row = self.row.saturating_sub(n);
            }
            'G' => self.column = n - 1,
            'K' => self.lines[self.row].truncate(self.column),
            'J' => {
                self.lines.truncate(self.row + 1);
                self.lines[self.row].truncate(self.column);
            }
            c => panic!("a sequence that the view does not use: {number}{c}"),
        }
    }

    /// A wide character takes a second cell, which holds U+0000.
    fn put(&mut self, c: char) {
        let width = c.width().unwrap_or(0);
        let line = &mut self.lines[self.row];
        if width == 0 {
            return;
        }
        assert!(self.column + width < self.columns, "{c:?} in the last column");
        line.resize(line.len().max(self.column + width), ' ');
        line[self.column] = c;
        line[self.column + 1..self.column + width].fill('\0');
        self.column += width;
    }

    /// What stands there, without white space at the ends of lines and of the whole.
    pub fn text(&self) -> String {
        let line = |l: &Vec<char>| l.iter().filter(|c| **c != '\0').collect::<String>().trim_end().to_owned();
        self.lines.iter().map(line).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }
}
