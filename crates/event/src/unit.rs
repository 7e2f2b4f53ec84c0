//! Parses sizes and times as people write them in options and in tools files.

use std::time::Duration;

/// The reason why a text is not a valid size or time, worded for the person who wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitError {
    /// The text is not a valid size: no number, or an unknown unit.
    Size,
    /// The text is not a valid time: no number, or an unknown unit.
    Time,
    /// The value does not fit into its type.
    Range,
}

impl std::fmt::Display for UnitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            UnitError::Size => "not a number of bytes, such as 65536 or 64M",
            UnitError::Time => "not a time, such as 500ms, 30s or 5m",
            UnitError::Range => "out of range",
        })
    }
}

impl std::error::Error for UnitError {}

/// Parses a number of bytes: `4096`, `64K`, `64M`, `1G` (powers of 1024).
///
/// # Errors
/// [`UnitError::Size`] and [`UnitError::Range`].
pub fn size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text);
    let unit = match unit {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return Err(UnitError::Size),
    };
    let number: u64 = number.parse().map_err(|_| UnitError::Size)?;
    number.checked_mul(unit).ok_or(UnitError::Range)
}

/// Parses a time: `500ms`, `1.5s`, `5m`, `1h`, `7d`, or seconds without a unit.
///
/// # Errors
/// [`UnitError::Time`] and [`UnitError::Range`].
pub fn time(text: &str) -> Result<Duration, UnitError> {
    let (number, unit) = split(text);
    let unit = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(UnitError::Time),
    };
    let number: f64 = number.parse().map_err(|_| UnitError::Time)?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| UnitError::Range)
}

/// Splits a text into a number and the unit after it.
fn split(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_units() {
        assert_eq!(
            (size("64M"), size("9"), size("64K")),
            (Ok(64 << 20), Ok(9), Ok(65_536))
        );
        assert_eq!(
            (size("0"), size("99999999999G")),
            (Ok(0), Err(UnitError::Range))
        );
        assert_eq!(
            (time("500ms"), time("2")),
            (Ok(Duration::from_millis(500)), Ok(Duration::from_secs(2)))
        );
        assert_eq!(
            (time("1.5"), time("2d")),
            (
                Ok(Duration::from_millis(1500)),
                Ok(Duration::from_secs(172_800))
            )
        );
        for bad in ["x", "-1", "", "1 week", "2 weeks", "true", "1.5.2s"] {
            assert_eq!(
                (size(bad), time(bad)),
                (Err(UnitError::Size), Err(UnitError::Time)),
                "{bad}"
            );
        }
    }
}
