//! User approval: the questions on the terminal, the user name of approvals, and the command that
//! continues a run.

mod question;
mod terminal;

pub(crate) use terminal::QuestionTerminal;

use super::args::Args;
use event::shell_word;
use nix::unistd::{Uid, User};
use redact::Redactor;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tool::{CallHash, Continuation, PersonAnswer, Question};

// Asks the user about calls on the terminal, while the rest of the run continues.

/// How long a question is shown before input is accepted. Input typed or pasted earlier was not
/// meant as an answer to it.
const SETTLE: Duration = Duration::from_millis(250);

/// How long the reader of the output gets to display earlier output before a question is shown.
const LEAD: Duration = Duration::from_millis(150);

/// How long the output must be quiet before a question is shown again, and the longest wait for
/// such a pause.
const QUIET: Duration = Duration::from_millis(300);
const LONGEST: Duration = Duration::from_secs(3);

/// The warning about asking on a terminal without a sandbox.
const UNCONFINED: &str = "without a sandbox, a tool that runs as this user could type into this \
     terminal and answer for you; \
     use --sandbox bwrap or landlock";

/// The answer to a question.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The plan's key of the call.
    pub key: u64,
    /// The hash of the call as shown in the question.
    pub shown: CallHash,
    /// The answer.
    pub answer: PersonAnswer,
}

/// Asks one question at a time.
#[derive(Debug)]
pub(crate) struct Asker {
    answers: mpsc::Sender<Answered>,
    /// The question to be shown by the next [`Asker::open`].
    next: Option<Question>,
    /// The key of the call that is being asked about, and the task that asks.
    open: Option<(u64, JoinHandle<()>)>,
    /// Redacts secrets in questions.
    redactor: Redactor,
    /// Notified when other output may have overwritten the question.
    disturbed: Rc<Notify>,
    /// Whether the warning about unconfined tools still has to be shown.
    warns: bool,
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.close();
    }
}

impl Asker {
    /// Returns an asker and the receiver of its answers. `is_confined` means that tools run in a
    /// sandbox; `redactor` redacts secrets in questions.
    pub(crate) fn new(is_confined: bool, redactor: Redactor) -> (Self, mpsc::Receiver<Answered>) {
        let (answers, received) = mpsc::channel(1);
        (
            Asker {
                answers,
                next: None,
                open: None,
                redactor,
                disturbed: Rc::default(),
                warns: !is_confined,
            },
            received,
        )
    }

    /// Sets the next question and withdraws the open one.
    pub(crate) fn ask(&mut self, question: Question) {
        self.close();
        self.next = Some(question);
    }

    /// Withdraws the question about the call with this key.
    pub(crate) fn withdraw(&mut self, key: u64) {
        self.next.take_if(|question| question.key == key);
        if self.open.as_ref().is_some_and(|(open, _)| *open == key) {
            self.close();
        }
    }

    /// Whether a question is waiting for [`Asker::open`].
    pub(crate) fn has_next(&self) -> bool {
        self.next.is_some()
    }

    /// Shows the next question. The caller must have flushed the output, so that earlier output
    /// appears first.
    pub(crate) fn open(&mut self) {
        let Some(question) = self.next.take() else {
            return;
        };
        let warns = std::mem::take(&mut self.warns);
        let key = question.key;
        let answers = self.answers.clone();
        let redactor = self.redactor.clone();
        let disturbed = Rc::clone(&self.disturbed);
        let task = tokio::task::spawn_local(async move {
            // A terminal that has closed gives no answer.
            let answer = put(&question, warns, &redactor, &disturbed)
                .await
                .unwrap_or(PersonAnswer::Nothing);
            let answered = Answered {
                key,
                shown: question.ready.hash,
                answer,
            };
            // The receiver is gone if the run has failed.
            let _ = answers.send(answered).await;
        });
        self.open = Some((key, task));
    }

    /// Notes that output was written. If it goes to the same terminal, it may have overwritten the
    /// open question.
    pub(crate) fn disturb(&self) {
        if self.open.is_some() {
            self.disturbed.notify_one();
        }
    }

    fn close(&mut self) {
        if let Some((_, task)) = self.open.take() {
            task.abort();
        }
    }
}

/// Shows a question and reads the answer. The whole question is shown again if it may have been
/// overwritten. With `warns`, the warning about unconfined tools is shown first.
async fn put(
    question: &Question,
    warns: bool,
    redactor: &Redactor,
    disturbed: &Notify,
) -> std::io::Result<PersonAnswer> {
    let Some(terminal) = QuestionTerminal::open() else {
        return Ok(PersonAnswer::Nothing);
    };
    tokio::time::sleep(LEAD).await;
    let _marked = terminal.mark_pastes();
    if warns {
        // The cursor may be in the middle of a line.
        let warning = format!("\ntool-exec: warning: {UNCONFINED}\n");
        terminal.write(&warning).await?;
    }
    loop {
        let style = terminal.style();
        terminal
            .write(&question::details(question, style, redactor))
            .await?;
        tokio::time::sleep(SETTLE).await;
        terminal.drop_input()?;
        terminal.write(&question::prompt(question, style)).await?;
        tokio::select! {
            line = terminal.line() => {
                return Ok(line?.map_or(PersonAnswer::Nothing, |line| answer(&line, question.reason.allows_always())));
            }
            () = until_quiet(disturbed) => {}
        }
    }
}

/// Waits for a disturbance and then for [`QUIET`] without another, but not longer than [`LONGEST`].
async fn until_quiet(disturbed: &Notify) {
    disturbed.notified().await;
    let quiet = async {
        while tokio::time::timeout(QUIET, disturbed.notified())
            .await
            .is_ok()
        {}
    };
    let _ = tokio::time::timeout(LONGEST, quiet).await;
}

/// Parses an input line as an answer.
fn answer(line: &[u8], allows_always: bool) -> PersonAnswer {
    match line.to_ascii_lowercase().as_slice() {
        b"y" | b"yes" => PersonAnswer::Yes,
        b"a" | b"always" if allows_always => PersonAnswer::Always,
        _ => PersonAnswer::No,
    }
}

// The user who answers.

/// Returns the name of the user who runs this process, or the user id if the user has no name.
pub(crate) fn user_name() -> String {
    let user = Uid::current();
    User::from_uid(user)
        .ok()
        .flatten()
        .map_or_else(|| user.to_string(), |user| user.name)
}

// The command that continues this run, built from its own arguments.

/// The options that apply to one run only: the answers of a user.
const ANSWERS: [&str; 5] = [
    "--approve-call",
    "--deny-call",
    "--answer-call",
    "--answer-reason",
    "--answered-by",
];

/// Returns the command that continues this run after a user has answered.
pub(crate) fn continuation(args: &Args) -> Continuation {
    if let Some(command) = &args.permissions.continue_with {
        return Continuation {
            command: command.clone(),
            redirections: String::new(),
        };
    }
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut command = String::from("tool-exec");
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        if ANSWERS.contains(&word.as_str()) {
            rest.next();
        } else if !ANSWERS.iter().any(|option| {
            word.strip_prefix(option)
                .is_some_and(|rest| rest.starts_with('='))
        }) {
            command.push(' ');
            command.push_str(&shell_word(word));
        }
    }
    let input = if args.files.is_empty() {
        " </dev/null"
    } else {
        ""
    };
    if args.keeping.log.is_some() {
        return Continuation {
            command,
            redirections: input.to_owned(),
        };
    }
    // The user replaces LOG with the file that holds this output; tool-exec does not know its name.
    if args.keeping.resume.is_empty() {
        command.push_str(" --resume LOG");
    }
    Continuation {
        command,
        redirections: format!("{input} >>LOG"),
    }
}

#[cfg(test)]
mod asker_tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for (line, allows_always, want) in [
            ("y", false, PersonAnswer::Yes),
            ("YES", false, PersonAnswer::Yes),
            ("a", true, PersonAnswer::Always),
            ("a", false, PersonAnswer::No),
            ("", true, PersonAnswer::No),
            ("yy", true, PersonAnswer::No),
            ("n", true, PersonAnswer::No),
            ("\u{1b}[200~y", true, PersonAnswer::No),
            ("y\u{1b}[201~", true, PersonAnswer::No),
        ] {
            assert_eq!(answer(line.as_bytes(), allows_always), want, "{line:?}");
        }
    }
}
