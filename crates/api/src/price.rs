//! The cost of tokens, at prices set by the user.

use event::payload::SessionStats;
use std::str::FromStr;

/// A model's prices, in millionths of a dollar per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    input: u64,
    output: u64,
    /// The price of request tokens that the provider read from its cache.
    cached: u64,
}

impl FromStr for Price {
    type Err = &'static str;

    /// Parses dollars per million tokens: `INPUT/OUTPUT` or `INPUT/OUTPUT/CACHED`.
    fn from_str(text: &str) -> Result<Price, &'static str> {
        let prices: Option<Vec<u64>> = text.split('/').map(|price| micros(price.trim())).collect();
        match prices.as_deref() {
            Some(&[input, output]) => Ok(Price {
                input,
                output,
                cached: input,
            }),
            Some(&[input, output, cached]) => Ok(Price {
                input,
                output,
                cached,
            }),
            _ => Err(
                "not dollars for a million tokens as INPUT/OUTPUT or INPUT/OUTPUT/CACHED, such as 0.25/2",
            ),
        }
    }
}

/// Parses a number with at most six decimal places. Returns millionths.
fn micros(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if text.is_empty() || part.len() > 6 || !is_number(part) || !is_number(whole) || whole.len() > 6
    {
        return None;
    }
    format!("{whole}{part:0<6}").parse().ok()
}

impl Price {
    /// Returns the cost of a turn's tokens in millionths of a dollar, or `None` if the counts are
    /// unknown.
    pub(crate) fn of(self, stats: &SessionStats) -> Option<u64> {
        let prompt = stats.prompt_tokens?;
        // Reasoning tokens that are not part of the output count have the same price.
        let written = stats.total()?.saturating_sub(prompt);
        let cached = stats.cached_tokens.unwrap_or_default().min(prompt);
        let parts = [
            (prompt - cached, self.input),
            (cached, self.cached),
            (written, self.output),
        ];
        let sum: u128 = parts
            .iter()
            .map(|(tokens, price)| u128::from(*tokens) * u128::from(*price))
            .sum();
        u64::try_from((sum + 500_000) / 1_000_000).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_dollars_for_a_million_tokens() {
        for wrong in [
            "",
            "1",
            "1/",
            "x/1",
            "1/2/3/4",
            "-1/2",
            "1e3/2",
            "0.1234567/1",
            "1/2.x",
        ] {
            assert!(wrong.parse::<Price>().is_err(), "{wrong}");
        }
        let stats = |prompt, cached, completion, total| SessionStats {
            prompt_tokens: prompt,
            cached_tokens: cached,
            completion_tokens: completion,
            total_tokens: total,
            ..SessionStats::default()
        };
        for (price, stats, cost) in [
            (
                "0.25/2",
                stats(Some(1_000_000), None, Some(1_000_000), None),
                Some(2_250_000),
            ),
            (
                "0.25/2/0.025",
                stats(Some(1000), Some(400), Some(10), None),
                Some(180),
            ),
            (
                "3/15",
                stats(Some(1000), Some(400), Some(10), None),
                Some(3150),
            ),
            ("3/15", stats(Some(10), None, Some(5), Some(25)), Some(255)),
            ("0/0", stats(Some(10), None, Some(5), None), Some(0)),
            ("3/15", stats(None, None, Some(5), None), None),
            (
                "999999/999999",
                stats(Some(u64::MAX), None, Some(0), None),
                None,
            ),
        ] {
            assert_eq!(price.parse::<Price>().unwrap().of(&stats), cost, "{price}");
        }
    }
}
