//! The server-sent events of an answer, read strictly: one `data` line, at most one `event` line
//! before it, and a blank line behind.

/// One event, or a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub name: Option<String>,
    /// `None` for a comment.
    pub data: Option<String>,
}

/// Every event of `bytes`.
pub(crate) fn frames(bytes: &[u8]) -> Result<Vec<Frame>, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| e.to_string())?;
    if text.contains('\r') {
        return Err("a carriage return ends a line for a client".to_owned());
    }
    let mut all = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (frame, behind) = rest
            .split_once("\n\n")
            .ok_or_else(|| format!("an event without an end: {rest:?}"))?;
        rest = behind;
        let lines: Vec<&str> = frame.split('\n').collect();
        all.push(match lines[..] {
            [comment] if comment.starts_with(':') => Frame {
                name: None,
                data: None,
            },
            [data] => Frame {
                name: None,
                data: Some(field(data, "data: ")?),
            },
            [event, data] => Frame {
                name: Some(field(event, "event: ")?),
                data: Some(field(data, "data: ")?),
            },
            _ => return Err(format!("an event with other lines: {frame:?}")),
        });
    }
    Ok(all)
}

fn field(line: &str, name: &str) -> Result<String, String> {
    let value = line.strip_prefix(name).filter(|value| !value.is_empty());
    value
        .map(str::to_owned)
        .ok_or_else(|| format!("a line that does not begin with {name:?}: {line:?}"))
}
