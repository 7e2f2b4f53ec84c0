//! Text in rows of a terminal, with a mark before each, so that no text can look like a row of
//! ours.

/// The mark before a line, and before the rest of a line that is longer than a row.
const MARKS: [&str; 2] = ["  | ", "  : "];

/// The fewest columns for text, on however narrow a terminal.
const LEAST: usize = 16;

/// Writes the lines of `text` in rows of `columns`. A character outside of ASCII counts as two
/// columns: none is wider.
pub fn push(out: &mut String, text: &str, columns: usize) {
    let room = columns.saturating_sub(MARKS[0].len()).max(LEAST);
    for line in text.split('\n') {
        out.push_str(MARKS[0]);
        let mut used = 0;
        for c in line.chars() {
            let width = if c.is_ascii() { 1 } else { 2 };
            if used + width > room {
                out.push('\n');
                out.push_str(MARKS[1]);
                used = 0;
            }
            out.push(c);
            used += width;
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_mark_however_long_the_line() {
        let mut out = String::new();
        push(&mut out, "a\n0123456789012345678\n中中中中中中中中中", 20);
        assert_eq!(
            out,
            "  | a\n  | 0123456789012345\n  : 678\n  | 中中中中中中中中\n  : 中\n"
        );
        let mut out = String::new();
        push(&mut out, "01234567890123456", 0);
        assert_eq!(out, "  | 0123456789012345\n  : 6\n");
    }
}
