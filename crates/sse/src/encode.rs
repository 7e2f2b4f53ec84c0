//! Events written as text.

/// Appends one event to `out`: its name, if it has one, and its data, a line feed in it beginning a new `data` line.
///
/// A carriage return cannot be carried by the format; in `data` it is written as a line end, in `name` line ends are left out.
pub fn encode(out: &mut Vec<u8>, name: Option<&str>, data: &str) {
    if let Some(name) = name {
        out.extend_from_slice(b"event: ");
        out.extend(name.bytes().filter(|b| !matches!(b, b'\r' | b'\n')));
        out.push(b'\n');
    }
    let mut rest = data;
    loop {
        let end = rest.find(['\r', '\n']).unwrap_or(rest.len());
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&rest.as_bytes()[..end]);
        out.push(b'\n');
        rest = &rest[end..];
        rest = match rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix(['\r', '\n'])) {
            Some(next) => next,
            None => break,
        };
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_data_is_a_line() {
        let mut out = vec![];
        encode(&mut out, Some("a\nb"), "x\r\ny\rz\n");
        encode(&mut out, None, "");
        assert_eq!(String::from_utf8(out).unwrap(), "event: ab\ndata: x\ndata: y\ndata: z\ndata: \n\ndata: \n\n");
    }
}
