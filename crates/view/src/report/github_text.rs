//! Escapes text so that GitHub's Markdown shows it unchanged. Markup is escaped. An empty comment,
//! as in `@<!-- -->name`, breaks text that would become a link, notify a person or reference an
//! issue. Longer texts are put into fences.

use super::excerpt::written_out;

/// Breaks text that GitHub would link; invisible itself.
const BREAK: &str = "<!-- -->";

/// The position of a text, which decides which characters are markup.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// In HTML, such as `<summary>`.
    Html,
    /// In a line of Markdown; `true` at the beginning of the line.
    Line(bool),
}

/// Returns Markdown or HTML that shows `text`, a single line, unchanged.
pub(super) fn shown(text: &str, place: Place) -> String {
    let text = written_out(text);
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len() + 16);
    let is_html = place == Place::Html;
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let next = chars.get(at + 1).copied();
        let is_first = place == Place::Line(true) && chars[..at].iter().all(char::is_ascii_digit);
        match c {
            '&' | '<' | '>' | '"' if is_html => out.push_str(match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                _ => "&quot;",
            }),
            '$' if is_html => out.push_str("&#36;"),
            '&' if next.is_some_and(|c| c.is_ascii_alphanumeric() || c == '#') => {
                out.push_str("&amp;");
            }
            '\\' | '`' | '*' | '[' | ']' | '<' | '|' | '~' | '$' | '#' if !is_html => {
                out.extend(['\\', c]);
            }
            '_' if !is_html => {
                let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
                if !(is_word(before) && is_word(next)) {
                    out.push('\\');
                }
                out.push(c);
            }
            '+' | '-' | '=' | '>' | '.' | ')'
                if !is_html && is_first && (at > 0) == matches!(c, '.' | ')') =>
            {
                out.extend(['\\', c]);
            }
            ' ' | '\t' if !is_html && at == 0 && is_first => {
                out.push_str(if c == ' ' { "&#32;" } else { "&#9;" });
            }
            '\n' => out.push_str(if is_html { " " } else { "&#10;" }),
            ':' if !is_html && is_shortcode(&chars[at + 1..]) => out.push_str("\\:"),
            _ => out.push(c),
        }
        if is_linked(&chars, at) {
            out.push_str(BREAK);
        }
    }
    out
}

/// Whether a `:` followed by `rest` begins an emoji name.
fn is_shortcode(rest: &[char]) -> bool {
    let name = rest
        .iter()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-'))
        .count();
    name > 0 && rest.get(name) == Some(&':')
}

/// Whether GitHub may link what ends with the character at `at` together with what follows: a
/// [mention or a reference](https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls),
/// or an [address](https://github.github.com/gfm/#autolinks-extension-).
fn is_linked(chars: &[char], at: usize) -> bool {
    let next = chars.get(at + 1).copied();
    let ends_with = |word: &str| {
        let length = word.chars().count();
        at + 1 >= length
            && chars[at + 1 - length..=at]
                .iter()
                .zip(word.chars())
                .all(|(a, b)| a.eq_ignore_ascii_case(&b))
    };
    match chars[at] {
        '@' => next.is_none_or(|c| !c.is_whitespace()),
        '#' => next.is_none_or(|c| c.is_ascii_digit()),
        ':' => match next {
            Some(next) => next == '/',
            None => ["http:", "https:", "ftp:"].into_iter().any(ends_with),
        },
        'w' | 'W' => ends_with("www") && next.is_none_or(|c| c == '.'),
        '-' => ends_with("gh-") && next.is_none_or(|c| c.is_ascii_digit()),
        _ => false,
    }
}

/// Formats `text` as inline code. `in_table`: whether it is in a table, where `|` would end the
/// cell.
pub(super) fn code_span(text: &str, in_table: bool) -> String {
    let mut text = written_out(text).replace('\n', " ");
    if in_table {
        text = text.replace('|', "\\|");
    }
    if text.trim().is_empty() {
        // A code span that contains only spaces is not rendered as code.
        return String::new();
    }
    let ticks = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Returns `text` in a code block whose fence is longer than any run of backticks in the text.
pub(super) fn fenced(info: &str, text: &str) -> String {
    let text = written_out(text);
    let ticks = "`".repeat((longest_run(&text) + 1).max(3));
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{ticks}{info}\n{text}{end}{ticks}\n")
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`');
    runs.map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_github_links_is_broken() {
        let line = |text| shown(text, Place::Line(false));
        assert_eq!(line("@ann and a@b.c"), "@<!-- -->ann and a@<!-- -->b.c");
        assert_eq!(
            line("#12, gh-3, o/r#4, # 5"),
            "\\#<!-- -->12, gh-<!-- -->3, o/r\\#<!-- -->4, \\# 5"
        );
        assert_eq!(
            line("https://a.b, www.c.d"),
            "https:<!-- -->//a.b, www<!-- -->.c.d"
        );
        assert_eq!(line("at 12:30 :smile: $5"), "at 12:30 \\:smile: \\$5");
        assert_eq!(
            shown("<a> & \"@b\" $x$", Place::Html),
            "&lt;a&gt; &amp; &quot;@<!-- -->b&quot; &#36;x&#36;"
        );
    }

    #[test]
    fn what_is_markup_at_the_beginning_of_a_line_is_escaped() {
        let line = |text| shown(text, Place::Line(true));
        assert_eq!(
            [
                "- a", "1. b", "12) c", "> d", "# e", "1 f", "3.5", "=", " g"
            ]
            .map(line),
            [
                "\\- a", "1\\. b", "12\\) c", "\\> d", "\\# e", "1 f", "3\\.5", "\\=", "&#32;g"
            ]
        );
        assert_eq!(
            line("snake_case _a_ **b** `c` <d> &amp; | ~"),
            "snake_case \\_a\\_ \\*\\*b\\*\\* \\`c\\` \\<d> &amp;amp; \\| \\~"
        );
    }

    #[test]
    fn no_text_closes_its_fence() {
        assert_eq!(
            fenced("markdown", "a\n```\nb"),
            "````markdown\na\n```\nb\n````\n"
        );
    }
}
