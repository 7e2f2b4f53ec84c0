//! The conversations stored for `--continue`. Each is a log in a private folder of this user, with
//! its options in a file beside it.

use anyhow::{Context, anyhow, bail};
use api::{Conversation, PastCall};
use event::Raw;
use rustix::fs::OFlags;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use stdio::{Output, Status};
use store::PrivateFolder;

/// The suffixes of a log's name, and of the names of the files beside it.
const LOG: &str = ".ndjson";
const OPTIONS: &str = ".options";
const LOCK: &str = ".ndjson.lock";

/// The first word of an options file: the version of its format.
const FORM: &str = "1";

/// Maximum widths of the model and the question in a list, in columns.
const MODEL: usize = 24;
const FIRST_LINE: usize = 80;

/// The folder that contains the conversations.
pub(crate) struct Conversations(PrivateFolder);

impl Conversations {
    /// Opens the folder, and creates it if it is missing.
    ///
    /// # Errors
    /// Fails if there is no home folder, or if the folder may belong to another user.
    pub(crate) fn open() -> anyhow::Result<Conversations> {
        let path = PrivateFolder::state_path("conversations").context(
            "there is no place for conversations, set HOME or XDG_STATE_HOME to a folder",
        )?;
        Ok(Conversations(PrivateFolder::open(&path, true)?))
    }

    /// Starts a conversation under an unused name.
    ///
    /// # Errors
    /// Fails if its files cannot be written.
    pub(crate) fn begin(self, options: &[OsString]) -> anyhow::Result<KeptConversation> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        loop {
            let now = store::now();
            let date = view::date(now).replace(' ', "T").replace(':', "");
            let name = format!("{date}-{:05}-{}", now % 60_000, std::process::id());
            match self.0.open_file(file(&name, LOG).as_ref(), flags) {
                Ok(_) => {
                    // If `keep_options` fails, dropping `kept` removes the empty log.
                    let kept = KeptConversation { folder: self, name };
                    kept.keep_options(options)?;
                    return Ok(kept);
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(anyhow!("{}: {e}", self.0.path().display())),
            }
        }
    }

    /// Returns the conversation with this name; if `name` is `None`, the one that was written last.
    ///
    /// # Errors
    /// Fails if there is no such conversation.
    pub(crate) fn find(self, name: Option<&str>) -> anyhow::Result<KeptConversation> {
        let folder = self.0.path().display().to_string();
        let name = match name {
            Some(name) => {
                if name.contains('/') || self.0.size(file(name, LOG).as_ref()).is_none() {
                    bail!("{folder} has no conversation {name}, see react --list");
                }
                name.to_owned()
            }
            None => self.names().into_iter().next().with_context(|| {
                format!("{folder} has no conversation to continue, ask without --continue")
            })?,
        };
        Ok(KeptConversation { folder: self, name })
    }

    /// Returns the names of all conversations with events, the last written first.
    fn names(&self) -> Vec<String> {
        let mut all = self.0.entries();
        all.retain(|entry| entry.bytes > 0);
        all.sort_by(|a, b| (b.modified, &b.name).cmp(&(a.modified, &a.name)));
        let name = |entry: store::StoreEntry| {
            let name = entry.name.to_str()?.strip_suffix(LOG)?;
            (!name.starts_with('.')).then(|| name.to_owned())
        };
        all.into_iter().filter_map(name).collect()
    }

    /// Prints a line per conversation: its name, its model, the number of calls that wait for an
    /// answer, and the first line of its first question. A conversation that cannot be read gets a
    /// message on standard error instead.
    ///
    /// # Errors
    /// Fails if standard output cannot be written.
    pub(crate) fn list(&self) -> anyhow::Result<Status> {
        let mut out = Output::new();
        let mut status = Status::Done;
        for name in self.names() {
            match self.read(&file(&name, LOG)) {
                Ok(Some(bytes)) => {
                    let line = line(&name, &String::from_utf8_lossy(&bytes));
                    out.put(line.as_bytes())?;
                }
                Ok(None) => {} // removed since the folder was read
                Err(e) => {
                    stdio::message("react", &format!("{e:#}"));
                    status = Status::Error;
                }
            }
        }
        out.flush()?;
        Ok(status)
    }

    /// Returns the bytes of a file; `None` if it does not exist.
    fn read(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let opened = self.0.open_file(name.as_ref(), OFlags::RDONLY);
        match opened.and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) => Ok(Some(bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => {
                let path = self.0.path().join(name);
                Err(anyhow!("{}: {e}, check its permissions", path.display()))
            }
        }
    }
}

/// Returns the line of a list for one conversation.
fn line(name: &str, log: &str) -> String {
    let (talk, _) = Conversation::read(log);
    let model = log
        .lines()
        .rev()
        .filter(|line| line.starts_with(r#"{"type":"stream_start""#))
        .find_map(|line| Some(Raw::parse(line).ok()?.get_str("model")?.into_owned()));
    let model = view::one_line(model.as_deref().unwrap_or("-"), MODEL);
    let question = talk.messages.iter().find(|m| m.role() == "user");
    let question = question.map(|message| message.text()).unwrap_or_default();
    let first = question.trim().lines().next().unwrap_or_default();
    let first = view::one_line(first, FIRST_LINE);
    let waiting = match waiting(&talk).len() {
        0 => String::new(),
        count => format!("[{count} waiting] "),
    };
    let gap = " ".repeat(MODEL.saturating_sub(view::columns(&model)));
    format!("{name}  {model}{gap}  {waiting}{first}\n")
}

/// Returns the questions in a log.
pub(crate) fn questions(log: &str) -> Vec<String> {
    let (talk, _) = Conversation::read(log);
    let questions = talk.messages.iter().filter(|m| m.role() == "user");
    questions.map(|message| message.text()).collect()
}

/// Returns the text of the last answer in a log.
pub(crate) fn last_answer(log: &str) -> String {
    let (talk, _) = Conversation::read(log);
    let answers = talk.messages.iter().rfind(|m| m.role() == "assistant");
    answers.map(|message| message.text()).unwrap_or_default()
}

/// Returns the calls of the last answer in a log that have no result: the id, the tool and the
/// arguments of each.
pub(crate) fn waiting_calls(log: &str) -> Vec<[String; 3]> {
    let (talk, _) = Conversation::read(log);
    let calls = waiting(&talk);
    calls
        .iter()
        .map(|call| [call.id, call.name, call.arguments].map(str::to_owned))
        .collect()
}

/// Returns the calls of the last answer that have no result.
fn waiting(talk: &Conversation) -> Vec<PastCall<'_>> {
    let mut answered = Vec::new();
    for message in talk.messages.iter().rev() {
        match message.role() {
            "tool" => answered.push(message.tool_call_id()),
            "assistant" => {
                let mut calls = message.calls();
                calls.retain(|call| !answered.contains(&call.id));
                return calls;
            }
            _ => break,
        }
    }
    Vec::new()
}

fn file(name: &str, end: &str) -> String {
    format!("{name}{end}")
}

/// A stored conversation. Dropping it removes its files if its log is empty.
pub(crate) struct KeptConversation {
    folder: Conversations,
    name: String,
}

impl KeptConversation {
    /// Returns its name, for `--continue`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of its log.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.0.path().join(file(&self.name, LOG))
    }

    /// Returns the options of its last question.
    ///
    /// # Errors
    /// Fails if their file cannot be read, because another model or other tools would be used
    /// without them.
    pub(crate) fn options(&self) -> anyhow::Result<Vec<OsString>> {
        let bytes = self.folder.read(&file(&self.name, OPTIONS))?;
        let bytes = bytes.unwrap_or_default();
        // A process argument cannot contain a zero byte.
        let mut words = bytes.split(|byte| *byte == 0);
        if words.next() != Some(FORM.as_bytes()) {
            return Ok(Vec::new());
        }
        let mut words: Vec<_> = words
            .map(|word| OsString::from_vec(word.to_vec()))
            .collect();
        words.pop();
        Ok(words)
    }

    /// Stores the options for the next question.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(crate) fn keep_options(&self, options: &[OsString]) -> anyhow::Result<()> {
        let bytes: Vec<u8> = [FORM.as_ref()]
            .into_iter()
            .chain(options.iter().map(OsString::as_os_str))
            .flat_map(|word| word.as_bytes().iter().copied().chain([0]))
            .collect();
        let name = file(&self.name, OPTIONS);
        let cannot = || self.folder.0.path().join(&name).display().to_string();
        self.folder
            .0
            .write(OsStr::new(&name), &bytes)
            .with_context(cannot)?;
        Ok(())
    }
}

impl Drop for KeptConversation {
    fn drop(&mut self) {
        let folder = &self.folder.0;
        if folder.size(file(&self.name, LOG).as_ref()) == Some(0) {
            for end in [LOG, OPTIONS, LOCK] {
                folder.remove(file(&self.name, end).as_ref());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_model_the_calls_that_wait_and_the_first_line() {
        let log = r#"{"type":"message","message":{"role":"system","content":"Be brief."}}
{"type":"message","message":{"role":"user","content":"\n Is a \u001b[2J hut\u202e free?\nOr two?"}}
{"type":"stream_start","v":1,"model":"a"}
{"type":"stream_start","v":1,"model":"m"}
{"type":"message","message":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"y","type":"function","function":{"name":"f","arguments":"{}"}}]}}
{"type":"message","message":{"role":"tool","tool_call_id":"y","content":"1"}}
{"type":"mess"#;
        let shown = line("n", log);
        assert_eq!(
            shown,
            format!(
                "n  m{}  [1 waiting] Is a \\x1b[2J hut\\u202e free?\n",
                " ".repeat(23)
            )
        );
        assert_eq!(line("n", ""), format!("n  -{}  \n", " ".repeat(23)));
    }
}
