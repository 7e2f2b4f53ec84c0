//! What providers count.

use event::Raw;

/// Tokens as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub prompt: Option<u64>,
    pub completion: Option<u64>,
    pub total: Option<u64>,
    pub reasoning: Option<u64>,
    pub cached: Option<u64>,
}

impl Usage {
    /// Whether nothing is counted.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Usage::default()
    }

    /// A count of an object, reached by several keys.
    pub(crate) fn count(object: Raw<'_>, path: &[&str]) -> Option<u64> {
        let n = object.at(path)?;
        n.i64()
            .map(|n| n.max(0) as u64)
            .or_else(|| n.f64().filter(|n| *n >= 0.0).map(|n| n as u64))
    }

    /// The sum of the counts that are known.
    pub(crate) fn sum(counts: &[Option<u64>]) -> Option<u64> {
        counts.iter().flatten().copied().reduce(u64::saturating_add)
    }
}

/// The counts of an API that reports them in parts: a later report replaces the parts that it has,
/// and the others stay.
///
/// Anthropic's `message_start` has all of them, and its `message_delta` those that are known better
/// at the end (platform.claude.com/docs/en/build-with-claude/streaming). What came from the cache
/// or was written to it is not part of the input.
#[derive(Debug, Default)]
pub(crate) struct UsageParts {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_written: Option<u64>,
    output: Option<u64>,
}

impl UsageParts {
    /// Takes the next report. `names` are the keys of the input, of what was read from the cache
    /// and written to it, and of the output.
    pub(crate) fn take(&mut self, report: Raw<'_>, names: [&str; 4]) {
        let parts = [
            &mut self.input,
            &mut self.cache_read,
            &mut self.cache_written,
            &mut self.output,
        ];
        for (part, name) in parts.into_iter().zip(names) {
            *part = Usage::count(report, &[name]).or(*part);
        }
    }

    /// The counts so far.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            prompt: Usage::sum(&[self.input, self.cache_read, self.cache_written]),
            completion: self.output,
            cached: self.cache_read.filter(|n| *n > 0),
            ..Usage::default()
        }
    }
}
