//! Reasoning, up to the marker that ends it, or a call that does.

use super::{Flow, Mode, Parser, Tried};
use crate::look::{Target, ends_itself};
use crate::outlet::Outlet;
use std::rc::Rc;

impl Parser {
    /// Reasoning, up to the marker that ends it, or a call that does.
    pub(super) fn reasoning(&mut self, text: &str, out: &mut dyn Outlet) -> Flow {
        let look = Rc::clone(&self.look);
        let refused = std::mem::take(&mut self.refused).marked;
        self.tried = Tried { marked: true, unmarked: false };
        let mut i = 0;
        while let Some(at) = look.stop(&text.as_bytes()[i..]).map(|n| i + n) {
            self.quote.plain(&text[i..at]);
            let rest = &text[at..];
            if let Some((_, close)) = look.reasoning.iter().find(|(_, close)| rest.starts_with(close)) {
                self.put_reasoning(&text[..at], out);
                out.left_out(close);
                self.mode = Mode::Text;
                (self.unknown, self.thought) = (false, None);
                self.release(out);
                self.restart();
                return Flow::Took(at + close.len());
            }
            let mut wait = look.reasoning.iter().any(|(_, close)| close.starts_with(rest));
            let tried = refused && at == 0;
            let cited = self.quote.is_cited();
            if !tried && !look.ends.is_empty() && (cited || !self.quote.is_quoted()) {
                let ends = |t: &Target| {
                    matches!(t, Target::Form(form) if if cited { ends_itself(form) } else {
                        look.ends(form).is_some()
                    })
                };
                let longer = look.perhaps(rest).any(|marker| marker.targets.iter().any(ends));
                if let Some(marker) = look.here(rest).filter(|_| !longer)
                    && marker.targets.iter().any(ends)
                {
                    let forms = marker.targets.iter().filter(|t| ends(t));
                    let forms = forms.filter_map(|t| if let Target::Form(form) = t { Some(*form) } else { None });
                    let forms = forms.collect();
                    self.put_reasoning(&text[..at], out);
                    self.cited = cited;
                    self.begin(forms, true);
                    return Flow::Took(at);
                }
                wait |= longer;
            }
            if wait {
                self.put_reasoning(&text[..at], out);
                return Flow::Wait(at);
            }
            let width = rest.chars().next().map_or(1, char::len_utf8);
            match text.as_bytes()[at] {
                c @ (b'`' | b'~') => self.quote.tick(c),
                _ => self.quote.plain(&rest[..width]),
            }
            i = at + width;
        }
        self.quote.plain(&text[i..]);
        self.put_reasoning(text, out);
        Flow::Took(text.len())
    }

    fn put_reasoning(&mut self, text: &str, out: &mut dyn Outlet) {
        if !text.is_empty() {
            out.reasoning(text);
        }
    }
}
