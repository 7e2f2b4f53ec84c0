//! `--decide-fd N`: writes decisions to that file descriptor, and passes the stream unchanged.

use detect::Detect;
use event::payload::line;
use event::{Emitted, Event, Kind, Machine, Sink, SinkOf};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::rc::Rc;

/// Opens the file descriptor that the shell has opened (`3>decisions`).
///
/// # Errors
/// When no such descriptor is open, or its file cannot be opened for writing.
pub(crate) fn open(fd: u32) -> anyhow::Result<Rc<RefCell<File>>> {
    let open = File::options().append(true).open(format!("/dev/fd/{fd}"));
    let file = open.map_err(|e| {
        anyhow::anyhow!("--decide-fd {fd}: {e}, open it in the shell, as in {fd}>decisions.ndjson")
    })?;
    Ok(Rc::new(RefCell::new(file)))
}

/// A [`Detect`] whose decisions go to a file descriptor and not into the stream.
pub(crate) struct Diversion {
    detect: Detect,
    target: Rc<RefCell<File>>,
    stream: Option<String>,
    no_time: bool,
}

impl Diversion {
    /// Wraps the machine of one stream.
    pub(crate) fn new(detect: Detect, target: Rc<RefCell<File>>, no_time: bool) -> Self {
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
        let stream = self.stream.as_deref();
        self.detect
            .push(event, &mut fork(out, &self.target, stream, t));
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        let stream = self.stream.as_deref();
        self.detect
            .finish(&mut fork(out, &self.target, stream, None));
    }

    fn settled(&self) -> bool {
        self.detect.settled()
    }
}

/// Writes decisions to `target`, and all else to `out`.
fn fork<'f>(
    out: &'f mut dyn Sink,
    target: &'f RefCell<File>,
    stream: Option<&'f str>,
    t: Option<&'f str>,
) -> impl Sink + 'f {
    SinkOf(move |emitted: Emitted<'_>| match emitted {
        Emitted::Passed => out.pass(),
        Emitted::Written(choice, payload) if payload.kind() == Kind::Decision => {
            let mut text = Vec::new();
            line(&mut text, payload, stream, choice, t);
            text.push(b'\n');
            if let Err(e) = target.borrow_mut().write_all(&text) {
                let lost = format!("--decide-fd: {e}, a decision is lost, check what reads it");
                stdio::message("tc-detect", &lost);
            }
        }
        Emitted::Written(choice, payload) => out.write(choice, payload),
    })
}
