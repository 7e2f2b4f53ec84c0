//! Files with the expected output. `UPDATE=1 cargo test` rewrites them; review that with
//! `git diff`.

use std::fmt::Write;
use std::path::Path;

/// Whether the expected files are rewritten instead of compared.
pub fn updating() -> bool {
    std::env::var_os("UPDATE").is_some_and(|v| v == "1")
}

/// Compares `got` with the file, or rewrites the file; a missing file counts as empty. Returns the
/// differences, or `None` if both are equal.
pub fn compare(file: &Path, got: &[u8]) -> Option<String> {
    if updating() {
        let result = if got.is_empty() && file.exists() {
            std::fs::remove_file(file)
        } else if got.is_empty() {
            Ok(())
        } else {
            std::fs::write(file, got)
        };
        return result.err().map(|e| format!("{}: {e}", file.display()));
    }
    let want = std::fs::read(file).unwrap_or_default();
    (want != got).then(|| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        format!(
            "{name} (- expected, + came):\n{}",
            differences(&text(&want), &text(got))
        )
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Maximum lines shown of a comparison.
const SHOWN: usize = 24;
/// Maximum characters shown of a line.
const WIDTH: usize = 600;

/// Returns the lines that differ, as `diff` finds them: those outside the longest common
/// subsequence of lines.
fn differences(want: &str, got: &str) -> String {
    let (a, b): (Vec<_>, Vec<_>) = (want.lines().collect(), got.lines().collect());
    let head = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let tail = a[head..]
        .iter()
        .rev()
        .zip(b[head..].iter().rev())
        .take_while(|(x, y)| x == y)
        .count();
    let x = &a[head..a.len() - tail];
    let y = &b[head..b.len() - tail];
    let mut out = String::new();
    let mut left = SHOWN;
    for (mark, number, line) in changes(x, y, head) {
        if left == 0 {
            out.push_str("    …\n");
            break;
        }
        left -= 1;
        let cut = line
            .char_indices()
            .nth(WIDTH)
            .map_or(line, |(at, _)| &line[..at]);
        let _ = writeln!(out, "    {mark}{number}: {cut}");
    }
    if out.is_empty() {
        out.push_str("    only the line ends differ\n");
    }
    out
}

fn changes<'t>(a: &[&'t str], b: &[&'t str], head: usize) -> Vec<(char, usize, &'t str)> {
    let removed = |i: usize| ('-', head + i + 1, a[i]);
    let added = |j: usize| ('+', head + j + 1, b[j]);
    if a.len() * b.len() > 1_000_000 {
        return (0..a.len())
            .map(removed)
            .chain((0..b.len()).map(added))
            .collect();
    }
    // common[i][j]: the length of the longest common subsequence of a[i..] and b[j..].
    let mut common = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = if a[i] == b[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let mut i = 0;
    let mut j = 0;
    let mut out = Vec::new();
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && common[i + 1][j] >= common[i][j + 1]) {
            out.push(removed(i));
            i += 1;
        } else {
            out.push(added(j));
            j += 1;
        }
    }
    out
}
