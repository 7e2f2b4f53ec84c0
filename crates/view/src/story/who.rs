//! The stream and the choice of an event.

use event::{Event, Raw};

/// A stream, by its name as JSON, and one of its choices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Who {
    stream: Option<Box<str>>,
    choice: u32,
}

impl Who {
    pub fn of(event: &Event<'_>) -> Self {
        Who {
            stream: event.stream().map(|s| s.text().into()),
            choice: event.choice(),
        }
    }

    pub fn is(&self, event: &Event<'_>) -> bool {
        self.choice == event.choice() && self.shares_stream(event)
    }

    pub fn shares_stream(&self, event: &Event<'_>) -> bool {
        self.stream.as_deref() == event.stream().map(Raw::text)
    }

    /// The heading before its events.
    pub fn heading(&self) -> String {
        let name = self.stream.as_deref().and_then(|s| Raw::parse(s).ok());
        let name = name.map_or_else(
            || "the unnamed stream".to_owned(),
            |s| crate::value::plain(Some(s)),
        );
        if self.choice == 0 {
            name
        } else {
            format!("{name}, choice {}", self.choice)
        }
    }
}
