//! The words with which models announce a call.
//!
//! The lists hold general words of each language, found in recorded streams of many models. They
//! need not be complete: a missing word lowers the weight of an announcement in the table, and a
//! superfluous word delays a no.

/// A sign in the text so far that a call may follow; later variants are stronger signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sign {
    /// No sign.
    Plain,
    /// The model speaks about itself, or agrees to do something.
    Person,
    /// The text mentions a tool, a tool name, or a step of a plan.
    Tool,
    /// The model announces that it will do something.
    Intent,
}

impl Sign {
    /// All signs, in the order of their rows in tables.
    pub(crate) const ALL: [Sign; 4] = [Sign::Plain, Sign::Person, Sign::Tool, Sign::Intent];

    /// Returns the name of the sign in tables.
    pub(crate) fn name(self) -> &'static str {
        ["plain", "person", "tool", "intent"][self as usize]
    }
}

/// Returns the sign of a word, given the word before it. Both words are in lower case, with
/// straight apostrophes. `starts` says that the word starts a sentence, `is_first` that it starts
/// the text.
pub(super) fn sign(previous: &str, word: &str, starts: bool, is_first: bool) -> Option<Sign> {
    let announces = matches!(
        (previous, word),
        ("let", "me" | "us")
            | ("i" | "we", "will" | "need" | "should" | "must" | "shall")
            | ("i'm" | "we're" | "am", "going")
            | ("i'd", "need")
            | ("going", "to")
            | ("to", "proceed")
            | ("the", "user" | "user's")
            | ("je", "vais" | "dois")
            | ("ich", "werde" | "muss")
            | ("voy", "a")
            | ("vou", "usar" | "buscar" | "verificar" | "consultar")
            | ("lass", "mich")
            | ("laat", "me")
            | ("one" | "a" | "einen", "moment")
            | ("hold", "on")
            | ("please", "hold" | "wait")
            | ("right", "away")
            | ("bear", "with")
            | ("here's", "my")
            | (
                "je",
                "consulte" | "recherche" | "vérifie" | "cherche" | "regarde"
            )
            | ("rufe", "ich")
    ) || matches!(
        word,
        "i'll"
            | "we'll"
            | "let's"
            | "lets"
            | "déjame"
            | "permíteme"
            | "vamos"
            | "laten"
            | "procedo"
            | "сейчас"
            | "давайте"
            | "давай"
            | "проверю"
            | "посмотрю"
            | "найду"
            | "consultaré"
            | "buscaré"
            | "verificaré"
            | "consulto"
            | "controllo"
            | "verifico"
            | "cerco"
    );
    if announces || starts && is_activity(word) {
        return Some(Sign::Intent);
    }
    let offers_or_retries = matches!(
        (previous, word),
        ("happy" | "glad", "to") | ("try", "again")
    );
    if starts && is_step(word)
        || is_trouble(word)
        || offers_or_retries
        || matches!(word, "tool" | "tools" | "function" | "functions")
    {
        return Some(Sign::Tool);
    }
    let offers_help = matches!((previous, word), ("can", "help") | ("help", "you"));
    (is_person(word) || offers_help || is_first && is_assent(word)).then_some(Sign::Person)
}

/// Whether a word describes an action in progress, as in "Searching for flights".
fn is_activity(word: &str) -> bool {
    matches!(
        word,
        "adding"
            | "analyzing"
            | "beginning"
            | "booking"
            | "calculating"
            | "calling"
            | "checking"
            | "connecting"
            | "creating"
            | "executing"
            | "fetching"
            | "fixing"
            | "gathering"
            | "generating"
            | "getting"
            | "initiating"
            | "invoking"
            | "loading"
            | "looking"
            | "opening"
            | "proceeding"
            | "processing"
            | "querying"
            | "reading"
            | "retrieving"
            | "retrying"
            | "running"
            | "saving"
            | "searching"
            | "sending"
            | "starting"
            | "submitting"
            | "transferring"
            | "trying"
            | "updating"
            | "using"
            | "verifying"
            | "writing"
    )
}

/// Whether a word reports a failed attempt, after which models try again.
fn is_trouble(word: &str) -> bool {
    matches!(
        word,
        "apologize" | "apologise" | "apologies" | "oops" | "hmm" | "failed" | "retry"
    )
}

/// Whether a word starts a step of a plan.
fn is_step(word: &str) -> bool {
    matches!(
        word,
        "now"
            | "next"
            | "step"
            | "first"
            | "firstly"
            | "then"
            | "thought"
            | "thinking"
            | "reasoning"
            | "analysis"
            | "observation"
            | "question"
            | "action"
            | "plan"
            | "task"
            | "zuerst"
    )
}

/// Whether a word refers to the model itself.
fn is_person(word: &str) -> bool {
    matches!(
        word,
        "i" | "i've" | "i'm" | "i'd" | "me" | "my" | "we" | "we're" | "our"
    )
}

/// Whether a word agrees to do something.
fn is_assent(word: &str) -> bool {
    matches!(
        word,
        "sure"
            | "certainly"
            | "absolutely"
            | "okay"
            | "ok"
            | "alright"
            | "great"
            | "perfect"
            | "understood"
            | "got"
            | "found"
            | "good"
            | "excellent"
            | "interesting"
            | "nice"
    )
}

/// Whether the last characters of a Chinese or Japanese text announce a call; unused positions are
/// `'\0'`.
pub(super) fn announces(last: [char; 3]) -> bool {
    let [a, b, c] = last;
    matches!(
        (b, c),
        ('让', '我')
            | ('我', '来' | '将' | '会' | '先' | '要')
            | ('調', 'べ')
            | ('确', '认')
            | ('確', '認')
            | ('工', '具')
            | ('查', '询')
            | ('搜', '索')
            | ('正', '在')
            | ('稍', '等')
            | ('获', '取')
    ) || matches!((a, b, c), ('我', '需', '要') | ('し', 'ま', 'す'))
}

/// Whether an element with this name holds reasoning or a call. While it is open, the answer has
/// not started.
pub(super) fn is_preamble(tag: &str) -> bool {
    const BEGINNINGS: [&str; 13] = [
        "thought",
        "scratch",
        "reflect",
        "plan",
        "analysis",
        "tool",
        "func",
        "invoke",
        "search",
        "action",
        "rationale",
        "commentary",
        "inner",
    ];
    // `contains` also matches `antThinking` and `internal_reasoning`.
    BEGINNINGS.iter().any(|name| tag.starts_with(name))
        || tag.contains("think")
        || tag.contains("reason")
}
