//! A chat with react on a terminal, as a person types it.

use crate::pipeline::scratch::{self, Scratch};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use testkit::{Protocol, SSE, Server, Turn, kill};

/// A terminal with react in its foreground.
pub(crate) struct Terminal {
    person: File,
    child: Child,
    screen: String,
}

impl Terminal {
    pub(crate) fn new(scratch: &Scratch, line: &str) -> Terminal {
        let (person, command) = testkit::terminal().expect("a terminal");
        let mut bash = scratch.bash(&format!("exec setsid --wait --ctty bash -c '{line}'"));
        let copy = || Stdio::from(command.try_clone().expect("a copy"));
        let child = bash
            .env("TERM", "xterm")
            .stdin(copy())
            .stdout(copy())
            .stderr(copy())
            .spawn()
            .expect("bash runs");
        Terminal {
            person,
            child,
            screen: String::new(),
        }
    }

    /// Reads on until the rest of the screen has this text, and takes the screen so far.
    fn until(&mut self, text: &str) -> String {
        let mut bytes = Vec::new();
        let mut next = [0];
        while !self.screen.contains(text) {
            // Fails when nobody has the terminal any more.
            let read = self.person.read(&mut next);
            assert!(matches!(read, Ok(1)), "{text} is not in {}", self.screen);
            bytes.push(next[0]);
            if let Ok(text) = std::str::from_utf8(&bytes) {
                self.screen += text;
                bytes.clear();
            }
        }
        std::mem::take(&mut self.screen)
    }

    fn types(&mut self, text: &str) {
        self.person.write_all(text.as_bytes()).expect("typed");
    }

    /// Waits for the end, and returns the status and the rest of the screen.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let mut rest = Vec::new();
        // Ends with an error when nobody has the terminal any more.
        let _ = self.person.read_to_end(&mut rest);
        let status = self.child.wait().expect("it ends").code();
        (status, String::from_utf8_lossy(&rest).into_owned())
    }
}

/// A model that answers with the last question; the question `wait` gets an answer that does not end.
fn model() -> Server {
    Server::answering(|_, request, stream| {
        let messages = request.body["messages"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let last = messages
            .last()
            .map(|m| m["content"].to_string())
            .unwrap_or_default();
        let text = format!("{} messages, {last}.", messages.len());
        let is_whole = !last.contains("wait");
        let turn = Turn::says(&text);
        if is_whole {
            stream.answer(request, &turn);
            return false;
        }
        let begun = turn.frames(Protocol::Chat)[..2].concat();
        // The reader may have left.
        let _ = stream.write_all(
            format!("HTTP/1.1 200 OK\r\n{SSE}connection: close\r\n\r\n{begun}").as_bytes(),
        );
        // Until the client has closed.
        let _ = stream.read(&mut [0]);
        false
    })
}
/// The end of the line that a person edits.
const PROMPT: &str = "> ";

fn chat(options: &str) -> Option<(Scratch, Server, Terminal)> {
    if testkit::terminal().is_err() || !testkit::needs::programs(&["setsid"]) {
        return None;
    }
    let scratch = Scratch::new();
    let model = model();
    let line = format!(
        "echo $$ >$SCRATCH/pid; OPENAI_API_KEY=k exec react --base-url {} -m m {options}",
        model.url
    );
    let terminal = Terminal::new(&scratch, &line);
    Some((scratch, model, terminal))
}

#[test]
fn each_line_is_a_question_and_ctrl_c_ends_the_answer_alone() {
    let Some((scratch, model, mut terminal)) = chat("-l $SCRATCH/log") else {
        return;
    };
    terminal.until("Ctrl-C ends an answer, Ctrl-D the chat");
    terminal.until(PROMPT);
    // The line is edited: the last word is taken back.
    terminal.types("first\u{17}one\r");
    let answer = terminal.until("1 messages, \"one\".");
    assert!(
        !answer.contains("> one\r\n> one"),
        "the question is shown once: {answer}"
    );
    terminal.until(PROMPT);
    terminal.types("wait\r");
    terminal.until("3 messages, \"wait\".");
    terminal.types("\u{3}");
    let after = terminal.until(PROMPT);
    assert!(!after.contains("go on with"), "{after}");
    // Ctrl-C at the prompt takes the line back; the arrow brings the first question again.
    terminal.types("nothing\u{3}");
    terminal.until(PROMPT);
    terminal.types("\u{1b}[A\u{1b}[A\r");
    terminal.until("\"one\".");
    terminal.until(PROMPT);
    terminal.types("\u{4}");
    let (status, rest) = terminal.ends();
    assert_eq!(status, Some(0), "{rest}");
    assert_eq!(model.asked().len(), 3);
    let log = scratch.read("log");
    assert!(
        log.contains(r#""finish_reason":"cancelled""#) && log.ends_with('\n'),
        "{log}"
    );
}

#[test]
fn sigterm_ends_a_chat_that_waits_and_leaves_the_terminal_as_it_was() {
    let Some((scratch, _model, mut terminal)) = chat("--no-keep") else {
        return;
    };
    terminal.until(PROMPT);
    assert!(kill(scratch.read("pid").trim(), "TERM"));
    let settings = terminal.person.try_clone().expect("a copy");
    let (status, rest) = terminal.ends();
    assert_eq!(status, Some(143), "{rest}");
    let modes = rustix::termios::tcgetattr(&settings)
        .expect("the settings")
        .local_modes;
    assert!(
        modes.contains(rustix::termios::LocalModes::ICANON | rustix::termios::LocalModes::ECHO)
    );
    let left = std::fs::read_dir(&*scratch.0).map_or(0, Iterator::count);
    assert_eq!(left, 1, "nothing is left behind but the file of this test");
}

/// An error is shown once, and the chat goes on.
#[test]
fn a_failure_does_not_end_the_chat() {
    let Some((_scratch, _model, mut terminal)) = chat("--no-keep --tape none.tape") else {
        return;
    };
    terminal.until(PROMPT);
    terminal.types("hello\r");
    let shown = terminal.until(PROMPT);
    assert_eq!(shown.matches("none.tape").count(), 1, "{shown}");
    terminal.types("\u{4}");
    assert_eq!(terminal.ends().0, Some(0));
}

/// The question stands on lines of its own, although a view has left the cursor in one.
#[test]
fn a_failure_and_a_question_are_shown_once_and_from_the_first_column() {
    let Some((_scratch, _model, terminal)) = chat("--no-keep --tape none.tape Hello") else {
        return;
    };
    let (status, screen) = terminal.ends();
    assert_eq!(
        (status, screen.matches("none.tape").count()),
        (Some(2), 1),
        "{screen}"
    );
    let scratch = Scratch::new();
    let ask = scratch::ASK.replace("--log", "--ask write --log");
    let question = scratch::QUESTION.replace('\'', "\"");
    let mut terminal = Terminal::new(&scratch, &format!("exec {ask} {question}"));
    let screen = terminal.until("[y/N] ");
    for line in [
        "tool-exec: warning: without a sandbox",
        "tool-exec: may the tool",
        "Run \"reserve\" once?",
    ] {
        assert!(screen.contains(&format!("\n{line}")), "{line}: {screen}");
    }
    terminal.types("y\r");
    let (status, screen) = terminal.ends();
    assert!(
        status == Some(0) && screen.contains("sleeping bags"),
        "{screen}"
    );
}
