//! What standard output is connected to.

/// The size of the terminal on standard output, in columns and rows; `None` without a terminal, and
/// for one that cannot move its cursor (`TERM=dumb`). `COLUMNS` and `LINES` are used where the
/// terminal does not report its size.
pub fn terminal() -> Option<(usize, usize)> {
    let stdout = std::io::stdout();
    if !rustix::termios::isatty(&stdout) || std::env::var_os("TERM").is_some_and(|t| t == "dumb") {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok();
    let or = |n: Option<u16>, name: &str, default| match n {
        Some(n) if n > 0 => usize::from(n),
        _ => std::env::var(name)
            .ok()
            .and_then(|v| v.parse().ok())
            .filter(|n| *n > 0)
            .unwrap_or(default),
    };
    Some((
        or(size.map(|s| s.ws_col), "COLUMNS", 80),
        or(size.map(|s| s.ws_row), "LINES", 24),
    ))
}
