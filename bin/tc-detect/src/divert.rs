//! `--decide-fd N`: writes decisions to that file descriptor, and passes the stream unchanged.

use detect::Detect;
use event::payload::line;
use event::{Event, Kind, Machine, Payload, Sink};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::rc::Rc;

/// Opens the file descriptor that the shell has opened (`3>decisions`).
///
/// # Errors
/// When no such descriptor is open, or its file cannot be opened for writing.
pub fn open(fd: u32) -> anyhow::Result<Rc<RefCell<File>>> {
    let open = File::options().append(true).open(format!("/dev/fd/{fd}"));
    let file = open.map_err(|e| {
        anyhow::anyhow!("--decide-fd {fd}: {e}, open it in the shell, as in {fd}>decisions.ndjson")
    })?;
    Ok(Rc::new(RefCell::new(file)))
}

/// A [`Detect`] whose decisions go to a file descriptor and not into the stream.
pub struct Diversion {
    detect: Detect,
    target: Rc<RefCell<File>>,
    stream: Option<String>,
    no_time: bool,
}

impl Diversion {
    /// Wraps the machine of one stream.
    pub fn new(detect: Detect, target: Rc<RefCell<File>>, no_time: bool) -> Self {
        Diversion {
            detect,
            target,
            stream: None,
            no_time,
        }
    }
}

impl Machine for Diversion {
    fn push(&mut self, event: &Event<'_>, out: &mut dyn Sink) {
        if self.stream.is_none() {
            self.stream = event.stream().map(|s| s.text().to_owned());
        }
        let t = event.t().map(|t| t.text()).filter(|_| !self.no_time);
        self.detect.push(
            event,
            &mut Fork {
                out,
                target: &self.target,
                stream: self.stream.as_deref(),
                t,
            },
        );
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        self.detect.finish(&mut Fork {
            out,
            target: &self.target,
            stream: self.stream.as_deref(),
            t: None,
        });
    }

    fn settled(&self) -> bool {
        self.detect.settled()
    }
}

struct Fork<'f> {
    out: &'f mut dyn Sink,
    target: &'f RefCell<File>,
    stream: Option<&'f str>,
    t: Option<&'f str>,
}

impl Sink for Fork<'_> {
    fn pass(&mut self) {
        self.out.pass();
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        if payload.kind() != Kind::Decision {
            return self.out.write(choice, payload);
        }
        let mut text = Vec::new();
        line(&mut text, payload, self.stream, choice, self.t);
        text.push(b'\n');
        if let Err(e) = self.target.borrow_mut().write_all(&text) {
            stdio::message(
                "tc-detect",
                &format!("--decide-fd: {e}, a decision is lost, check what reads it"),
            );
        }
    }
}
