//! The command on a terminal of its own, as a person sees it.

use crate::harness::{Dir, Out, code, events, needs, wait_until};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

/// A terminal, with the command in its foreground. The events of the command go to files.
pub(crate) struct Terminal {
    master: File,
    pub child: Child,
    screen: RefCell<Vec<u8>>,
}

impl Terminal {
    /// Runs the command with the events of the file `input` on a terminal of so many columns; its
    /// output goes to the files `out` and `err`.
    pub(crate) fn new(
        dir: &Dir,
        tools: &[Value],
        input: &str,
        args: &[&str],
        columns: u16,
    ) -> Terminal {
        Terminal::to(
            "exec \"$0\" --tools tools.json \"$@\" <in >out 2>err",
            dir,
            tools,
            input,
            args,
            columns,
        )
    }

    /// As [`Terminal::new`], with a pipe as standard output.
    pub(crate) fn piped(
        dir: &Dir,
        tools: &[Value],
        input: &str,
        args: &[&str],
        columns: u16,
    ) -> Terminal {
        Terminal::to(
            "\"$0\" --tools tools.json \"$@\" <in 2>err | cat >out",
            dir,
            tools,
            input,
            args,
            columns,
        )
    }

    fn to(
        script: &str,
        dir: &Dir,
        tools: &[Value],
        input: &str,
        args: &[&str],
        columns: u16,
    ) -> Terminal {
        let (master, slave) = testkit::terminal().unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        dir.write("in", input);
        dir.write("tools.json", serde_json::json!(tools).to_string());
        // `setsid --ctty` makes the terminal on its standard input the controlling one; then the
        // files take the places of the streams.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "sh", "-c", script]);
        command
            .arg(testkit::program("tool-exec"))
            .args(args)
            .current_dir(dir.path("."));
        command
            .env("NO_COLOR", "1")
            .env("TERM", "xterm")
            .stdin(Stdio::from(slave));
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let flags = fcntl_getfl(&master).unwrap();
        fcntl_setfl(&master, flags | OFlags::NONBLOCK).unwrap();
        Terminal {
            master,
            child,
            screen: RefCell::default(),
        }
    }

    /// All that was shown until now, without the terminal's carriage returns.
    pub(crate) fn screen(&self) -> String {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = (&self.master).read(&mut bytes) {
            self.screen.borrow_mut().extend_from_slice(&bytes[..n]);
        }
        String::from_utf8_lossy(&self.screen.borrow()).replace("\r\n", "\n")
    }

    /// Waits until so many prompts have been shown.
    pub(crate) fn prompts(&self, count: usize) {
        wait_until("no prompt", || {
            self.screen().matches("else no [y/N] ").count() >= count
        });
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the command has ended.
    pub(crate) fn end(mut self, dir: &Dir) -> (Out, String) {
        wait_until("the command does not end", || {
            self.screen(); // a full terminal would hold it up
            std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))
                .is_ok_and(|stat| stat.contains(") Z "))
        });
        let screen = self.screen();
        let status = code(self.child.wait().unwrap());
        let text = dir.read("out");
        (
            Out {
                status,
                errors: dir.read("err"),
                events: events(&text),
                text,
            },
            screen,
        )
    }
}

/// Whether a terminal can be made here.
pub(crate) fn can_have_a_terminal() -> bool {
    let has_pty = testkit::terminal().is_ok();
    if !has_pty {
        needs::skip("there are no pseudo-terminals here");
    }
    has_pty && needs::programs(&["setsid"])
}
