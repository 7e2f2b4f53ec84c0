//! Names as they are shown, and what the words of the page mean.

use crate::forms::number::count;
use crate::{visible, visible_ends};
use maud::{Markup, html};

/// Characters of a name in a table; what is longer is cut.
const NAME_LIMIT: usize = 80;
/// Characters of a name in a plot.
const LABEL_LIMIT: usize = 26;
/// Characters of a reason.
const REASON_LIMIT: usize = 200;

/// A name of a checker, a model, a stream or a group.
pub fn name(name: &str) -> Markup {
    // `bdi` keeps the direction of a name from reordering what is beside it.
    html! { bdi { (plain_name(name)) } }
}

/// A short name for the head of a narrow column, which may be broken after punctuation.
pub fn column(name: &str) -> Markup {
    let name = label(name);
    html! { bdi { @for part in name.split_inclusive([':', '/', '_', '.']) { (part) wbr; } } }
}

/// A name without markup.
pub fn plain_name(name: &str) -> String {
    if name.is_empty() {
        "(empty)".to_owned()
    } else {
        visible(name, NAME_LIMIT)
    }
}

/// A name beside a point of a plot. Of a long path, or a command that ends in one, the file says
/// most.
pub fn label(name: &str) -> String {
    match name.rsplit_once('/') {
        _ if name.is_empty() => "(empty)".to_owned(),
        Some((_, file)) if name.chars().count() > LABEL_LIMIT => {
            format!("…/{}", visible_ends(file, LABEL_LIMIT - 2))
        }
        _ => visible_ends(name, LABEL_LIMIT),
    }
}

/// The words with which a checker explains its answer.
pub fn reason(reason: &str) -> Markup {
    html! { bdi { (visible(reason, REASON_LIMIT)) } }
}

/// A text that the command itself made, of which a name may be a part.
pub fn plain_text(text: &str) -> String {
    visible(text, REASON_LIMIT)
}

/// A command to be copied. It is shown whole: a part of a command would run as another one.
pub fn command(command: &str) -> Markup {
    html! { code { (command) } }
}

/// How many of a list are shown, if not all.
pub fn shown(listed: usize, all: u64) -> String {
    if all > listed as u64 {
        format!(" ({} of them are listed)", count(listed as u64))
    } else {
        String::new()
    }
}

/// What the words of the page mean.
pub fn glossary() -> Markup {
    html! {
        section {
            h2 { "How to read this page" }
            dl {
                dt { "recall" }
                dd { "Of the streams that call a tool, the share to which the checker answered yes. No answer counts as missed." }
                dt { "precision" }
                dd { "Of the streams to which it answered yes, the share that call a tool." }
                dt { "interval" }
                dd { "The range below a share: with 95 % confidence the true share lies in it. Streams of one source resemble each other, so sources are counted and not streams (Wilson 1927, with an effective number of streams)." }
                dt { "waited" }
                dd { "Of all the text of streams without calls, the share that had gone by when the checker answered no. A checker that waits less lets the text through earlier." }
                dt { "decided after" }
                dd { "The characters of text before the first answer: half of the decisions (p50), or nine of ten (p90), needed at most as many." }
                dt { "late" }
                dd { "Of right yes answers: the distance from the first event of a call to the decision. 0 is the earliest that is possible." }
                dt { "undecided" }
                dd { "Streams without an answer: the stream failed first, or the checker did." }
                dt { "MCC" }
                dd { "Matthews correlation coefficient of answers and labels: 1 is always right, 0 is no better than guessing." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_commands_differ_where_the_commands_do() {
        assert_eq!(label("lookahead:200"), "lookahead:200");
        assert_eq!(label("cmd:python3 fixtures/checkers/one.py"), "…/one.py");
        assert_eq!(label("cmd:./a/b"), "cmd:./a/b");
        assert_eq!(label(&"/".repeat(100)), "…/");
        assert_eq!(label(&"a/b".repeat(100)), "…/b");
        assert_eq!(
            label(&format!("x/{}", "y".repeat(100))).chars().count(),
            LABEL_LIMIT
        );
        assert_eq!(label(""), "(empty)");
    }
}
