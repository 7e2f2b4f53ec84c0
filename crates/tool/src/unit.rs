//! Times and sizes as a tools file writes them.

use serde_json::Value;
use std::time::Duration;

/// Seconds as a number, or a text with a unit: `500ms`, `30s`, `5m`, `1h`, `7d`.
pub(crate) fn time(value: &Value) -> Option<Duration> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (number, unit) = split(&text);
    let unit = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let time = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()?;
    (!time.is_zero()).then_some(time)
}

/// Bytes as a number, or a text with a unit of 1024: `64K`, `1M`, `2G`.
pub(crate) fn bytes(value: &Value) -> Option<u64> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (number, unit) = split(&text);
    let unit = match unit {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|n| *n > 0)
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_and_units() {
        assert_eq!(time(&json!("500ms")), Some(Duration::from_millis(500)));
        assert_eq!(
            (time(&json!(1.5)), time(&json!("2d"))),
            (Some(Duration::from_millis(1500)), Some(Duration::from_secs(172_800)))
        );
        assert_eq!((bytes(&json!("64K")), bytes(&json!(9))), (Some(65_536), Some(9)));
        for bad in [json!("0s"), json!(-1), json!("1 week"), json!(true), json!("")] {
            assert_eq!((time(&bad), bytes(&bad)), (None, None), "{bad}");
        }
    }
}
