//! Text in Markdown that GitHub shows unchanged: markup is escaped, and an empty comment breaks text
//! that would notify a person, link an issue or become a link, `@<!-- -->name`. The Markdown of a model
//! is parsed and written again from its events.

use super::excerpt::written_out;
use super::prose::{ProseForm, walk};
use pulldown_cmark::{Alignment, CodeBlockKind, Tag, TagEnd};

/// Breaks what GitHub would link, and shows nothing itself.
const BREAK: &str = "<!-- -->";

/// How deep containers are nested. Deeper ones are as deep as this.
const DEEPEST: usize = 16;

/// Languages whose code GitHub draws or offers to apply instead of showing it.
const DRAWN: [&str; 6] = [
    "mermaid",
    "math",
    "geojson",
    "topojson",
    "stl",
    "suggestion",
];

/// The place of a text, which decides which characters are markup in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// In HTML, such as `<summary>`.
    Html,
    /// In a line, where `true` is its beginning.
    Line(bool),
}

/// `text` as Markdown or HTML that shows it; for texts of one line.
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

/// Whether `:` before `rest` begins the name of an emoji.
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

/// Writes `text` as inline code. `in_table`: in a table, where `|` would end the cell.
pub(super) fn code_span(text: &str, in_table: bool) -> String {
    let mut text = written_out(text).replace('\n', " ");
    if in_table {
        text = text.replace('|', "\\|");
    }
    if text.trim().is_empty() {
        // A code span of spaces alone is not code.
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

/// `text` between fences that nothing in it closes.
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

/// The length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`');
    runs.map(str::len).max().unwrap_or_default()
}

/// The language of code, of the words behind its fence.
fn language(info: &str) -> String {
    let word = info.split_whitespace().next().unwrap_or_default();
    let is_name = word.len() <= 20
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'_' | b'.'));
    if is_name && !DRAWN.iter().any(|drawn| word.eq_ignore_ascii_case(drawn)) {
        word.to_owned()
    } else {
        String::new()
    }
}

/// Writes one passage of Markdown, and an empty line after it.
pub(super) fn prose(out: &mut Vec<u8>, passage: &str) {
    let mut prose = GithubProse {
        out: String::with_capacity(passage.len() + 64),
        text: String::new(),
        prefixes: Vec::new(),
        skipped: 0,
        after_marker: true,
        is_line_start: true,
        is_tight: false,
        code: None,
        columns: None,
    };
    walk(passage, &mut prose);
    prose.flush();
    out.extend_from_slice(prose.out.trim_end().as_bytes());
    out.extend_from_slice(b"\n\n");
}

struct GithubProse {
    out: String,
    /// Text that is not written yet, so that nothing hides between two pieces of it.
    text: String,
    /// The prefix of the lines of each open container.
    prefixes: Vec<String>,
    /// How many containers are open that are too deep to be written.
    skipped: usize,
    /// Whether the next block goes into the line of a marker, or is the first.
    after_marker: bool,
    is_line_start: bool,
    /// Whether the block before was an item, or the text of one without a paragraph.
    is_tight: bool,
    /// The language of the code that is open, and its text.
    code: Option<(String, String)>,
    /// In a table: the alignments and the number of cells in the row.
    columns: Option<(Vec<Alignment>, usize)>,
}

impl GithubProse {
    /// Writes the text that is held back.
    fn flush(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.markup(&shown(&text, Place::Line(self.is_line_start)));
        }
    }

    fn markup(&mut self, markup: &str) {
        self.out.push_str(markup);
        self.is_line_start = false;
        self.after_marker = false;
    }

    /// An inline mark, which must not join another one.
    fn mark(&mut self, mark: &str) {
        self.flush();
        if self.out.ends_with(['*', '~']) {
            self.markup(BREAK);
        }
        self.markup(mark);
    }

    fn line(&mut self) {
        self.flush();
        self.out.push('\n');
        self.out.extend(self.prefixes.iter().map(String::as_str));
        self.is_line_start = true;
    }

    /// Begins a block on a line of its own, behind an empty line unless it `is_tight`.
    fn block(&mut self, is_tight: bool) {
        self.flush();
        if !std::mem::replace(&mut self.after_marker, false) {
            if !is_tight {
                self.line();
                let length = self.out.trim_end_matches(' ').len();
                self.out.truncate(length);
            }
            self.line();
        }
        self.is_line_start = true;
    }

    fn open(&mut self, marker: &str, prefix: String) {
        if self.prefixes.len() == DEEPEST || self.skipped > 0 {
            self.skipped += 1;
            return;
        }
        self.out.push_str(marker);
        self.prefixes.push(prefix);
        self.after_marker = true;
    }

    fn close(&mut self) {
        self.flush();
        match self.skipped {
            0 => drop(self.prefixes.pop()),
            _ => self.skipped -= 1,
        }
        self.after_marker = false;
    }

    fn end_mark(&mut self, mark: &str) {
        self.flush();
        self.markup(mark);
    }

    fn end_row(&mut self) {
        self.flush();
        self.markup(" |");
        if let Some((_, column)) = &mut self.columns {
            *column = 0;
        }
    }
}

impl ProseForm for GithubProse {
    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, code)) => code.push_str(text),
            None => self.text.push_str(text),
        }
    }

    fn html(&mut self, text: &str) {
        for (n, line) in text.lines().enumerate() {
            if n > 0 || !self.is_line_start {
                self.line();
            }
            self.text(line.trim_start());
            self.flush();
        }
    }

    fn code(&mut self, text: &str) {
        self.flush();
        if self.out.ends_with('`') {
            self.markup(BREAK);
        }
        let code = code_span(text, self.columns.is_some());
        self.markup(&code);
    }

    fn soft_break(&mut self) {
        self.line();
    }

    fn hard_break(&mut self) {
        self.flush();
        self.out.push('\\');
        self.line();
    }

    fn rule(&mut self) {
        self.block(false);
        self.markup("___");
    }

    fn start(&mut self, tag: &Tag<'_>, source: &str) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(false),
            Tag::Heading { level, .. } => {
                self.block(false);
                let marks = "#".repeat((*level as usize + 2).min(6));
                self.markup(&format!("{marks} "));
            }
            Tag::BlockQuote(_) => {
                self.block(false);
                self.open("> ", "> ".to_owned());
            }
            Tag::CodeBlock(kind) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info,
                    CodeBlockKind::Indented => "",
                };
                let language = language(info);
                self.block(false);
                if language != info {
                    // Words that GitHub would not show, or would act on.
                    self.text(info);
                    self.block(false);
                }
                self.code = Some((language, String::new()));
            }
            // An item begins a line of its own; a list below another one is set apart.
            Tag::List(_) => {
                self.flush();
                self.is_tight = !self.prefixes.is_empty();
            }
            Tag::Item => {
                self.block(self.is_tight);
                self.is_tight = true;
                let marker = source.trim_start();
                let marker = marker.split([' ', '\t', '\n']).next().unwrap_or_default();
                let is_marker = matches!(marker, "-" | "*" | "+")
                    || marker.len() < 11
                        && marker
                            .trim_start_matches(|c: char| c.is_ascii_digit())
                            .len()
                            == 1;
                let marker = if is_marker { marker } else { "-" };
                let prefix = " ".repeat(marker.len() + 1);
                self.open(&format!("{marker} "), prefix);
            }
            Tag::Table(alignments) => {
                self.block(false);
                self.columns = Some((alignments.clone(), 0));
            }
            Tag::TableRow => {
                self.line();
                self.markup("| ");
            }
            Tag::TableCell => {
                self.flush();
                let (_, column) = self.columns.get_or_insert_default();
                *column += 1;
                let is_first = *column == 1;
                self.is_line_start = false;
                if is_first && self.out.ends_with("| ") {
                    return;
                }
                self.markup(if is_first { "| " } else { " | " });
            }
            Tag::Emphasis => self.mark("*"),
            Tag::Strong => self.mark("**"),
            Tag::Strikethrough => self.mark("~~"),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::Heading(_) => self.flush(),
            TagEnd::BlockQuote(_) => self.close(),
            TagEnd::Item => {
                self.close();
                self.is_tight = true;
            }
            TagEnd::List(_) => self.is_tight = false,
            TagEnd::CodeBlock => {
                if let Some((info, text)) = self.code.take() {
                    let code = fenced(&info, &text);
                    for (n, line) in code.trim_end_matches('\n').split('\n').enumerate() {
                        if n > 0 {
                            self.line();
                        }
                        self.markup(line);
                    }
                }
            }
            TagEnd::TableHead => {
                self.end_row();
                let alignments = self
                    .columns
                    .as_ref()
                    .map(|(alignments, _)| alignments.clone());
                self.line();
                self.markup("|");
                for alignment in alignments.unwrap_or_default() {
                    self.markup(match alignment {
                        Alignment::Right => " --: |",
                        Alignment::Center => " :-: |",
                        Alignment::Left => " :-- |",
                        Alignment::None => " --- |",
                    });
                }
            }
            TagEnd::TableRow => self.end_row(),
            TagEnd::Table => self.columns = None,
            TagEnd::Emphasis => self.end_mark("*"),
            TagEnd::Strong => self.end_mark("**"),
            TagEnd::Strikethrough => self.end_mark("~~"),
            _ => {}
        }
    }

    // The address as code: it is seen, and nothing opens it.
    fn address(&mut self, address: &str) {
        self.text(" (");
        self.flush();
        let address = code_span(address, self.columns.is_some());
        self.markup(&address);
        self.text(")");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str) -> String {
        let mut out = Vec::new();
        prose(&mut out, text);
        String::from_utf8(out).unwrap().trim_end().to_owned()
    }

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
    fn markdown_is_written_anew() {
        for same in [
            "### A *b* **c** ~~d~~ `e`",
            "a\nb\\\nc",
            "- a\n- b\n  - c\n\n    d\n- e",
            "1. a\n2. b",
            "> a\n> b\n>\n> > c",
            "| a | b |\n| --- | --: |\n| c | `d\\|e` |",
            "```sh\necho '```'\n```",
        ] {
            let same = same.replace("echo '```'", "echo");
            assert_eq!(again(&same.replacen("###", "#", 1)), same);
        }
        assert_eq!(
            again("[a](https://b.c) <https://d.e> ![f](g)"),
            "a (`https://b.c`) https:<!-- -->//d.e \\[image: f\\] (`g`)"
        );
        assert_eq!(
            again("<b>x</b>\n\n<div>\n<p>y\n</div>"),
            "\\<b>x\\</b>\n\n\\<div>\n\\<p>y\n\\</div>"
        );
        assert_eq!(
            again("@&#97;nn @[ann](b)"),
            "@<!-- -->ann @<!-- -->ann (`b`)"
        );
        assert_eq!(again("````\n```\n````"), "````\n```\n````");
        assert_eq!(again("```mermaid\na\n```"), "mermaid\n\n```\na\n```");
        assert_eq!(again("- \n- ---\n- # a"), "- \n\n___\n\n- ### a");
    }
}
