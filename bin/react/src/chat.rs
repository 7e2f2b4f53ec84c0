//! The prompt of a chat: a line editor with a history.

use crate::signals::Running;
use anyhow::Context;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

/// An input at the prompt.
#[derive(Debug)]
pub(crate) enum Typed {
    /// A question.
    Question(String),
    /// The end of the chat, such as Ctrl-D.
    End,
    /// SIGTERM arrived.
    Ended,
}

/// The prompt. A separate thread reads the lines, so that a signal can end the wait for a line.
pub(crate) struct Prompt {
    next: Sender<()>,
    typed: Receiver<Typed>,
    /// The settings of the terminal while no line is being edited.
    usual: Termios,
}

impl Prompt {
    /// Opens a prompt whose history starts with these questions.
    ///
    /// # Errors
    /// Fails if the terminal cannot be used.
    pub(crate) fn new(running: &Running, history: Vec<String>) -> anyhow::Result<Prompt> {
        let cannot = "the terminal cannot be used for a chat, give a question";
        let usual = tcgetattr(io::stdin()).context(cannot)?;
        let mut editor = DefaultEditor::new().context(cannot)?;
        for question in history {
            editor.add_history_entry(question).context(cannot)?;
        }
        let (next, asked) = channel();
        let (send, typed) = channel();
        running.report_end_to(send.clone());
        stdio::thread(
            move || {
                while asked.recv().is_ok() && send.send(read(&mut editor)).is_ok() {}
            },
        )?;
        Ok(Prompt { next, typed, usual })
    }

    /// Waits for a line, the end of the chat, or SIGTERM.
    pub(crate) fn line(&self) -> Typed {
        // Without the thread no line can arrive, so the result is [`Typed::End`].
        let _ = self.next.send(());
        self.typed.recv().unwrap_or(Typed::End)
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        // A signal may have arrived while a line was being edited.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.usual);
    }
}

fn read(editor: &mut DefaultEditor) -> Typed {
    loop {
        match editor.readline("> ") {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                // `add_history_entry` fails only for a history file.
                let _ = editor.add_history_entry(&line);
                return Typed::Question(line);
            }
            // Ctrl-C discards the line.
            Err(ReadlineError::Interrupted) => {}
            Err(_) => return Typed::End,
        }
    }
}
