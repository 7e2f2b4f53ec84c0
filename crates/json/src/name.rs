//! Names of tools.

/// Whether `name` may name a tool: 1 to 128 of `A-Z a-z 0-9 _ . -`, as MCP has it
/// (<https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-names>). Names are
/// compared byte for byte and looked up in a table; they never become a path.
pub fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        assert!(is_name("get_weather") && is_name("a.b-c_9") && is_name(&"x".repeat(128)));
        for bad in [
            "",
            "../../bin/sh",
            "/bin/sh",
            "sh -c",
            "g\u{430}t",
            "a\u{200d}b",
            "ｇｅｔ",
            "a\nb",
        ] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(!is_name(&"x".repeat(129)));
    }
}
