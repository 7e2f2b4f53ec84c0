//! The prompt of a chat: a line with editing and a history.

use crate::signals::Running;
use anyhow::Context;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What came at the prompt.
#[derive(Debug)]
pub(crate) enum Typed {
    /// A question.
    Question(String),
    /// The end of the chat.
    End,
    /// SIGTERM.
    Ended,
}

/// The prompt. A thread reads the lines, so that a signal ends the wait for one.
pub(crate) struct Prompt {
    next: Sender<()>,
    typed: Receiver<Typed>,
    /// The settings of the terminal while no line is edited.
    usual: Termios,
}

impl Prompt {
    /// A prompt whose history begins with these questions.
    ///
    /// # Errors
    /// When the terminal cannot be used.
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

    /// Waits for a line.
    pub(crate) fn line(&self) -> Typed {
        // Without the thread there is nothing to wait for.
        let _ = self.next.send(());
        self.typed.recv().unwrap_or(Typed::End)
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        // A signal may have come while a line was edited.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.usual);
    }
}

fn read(editor: &mut DefaultEditor) -> Typed {
    loop {
        match editor.readline("> ") {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                // Fails only for a history in a file.
                let _ = editor.add_history_entry(&line);
                return Typed::Question(line);
            }
            // Ctrl-C takes the line back.
            Err(ReadlineError::Interrupted) => {}
            Err(_) => return Typed::End,
        }
    }
}
