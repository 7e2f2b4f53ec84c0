//! Splits streams into pieces: `--resplit`.

/// A way to split a sequence into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Pieces of this size.
    Every(usize),
    /// Pieces of 1 to 64, from a random generator with this seed.
    Random(u64),
}

/// The maximum piece size of [`Split::Random`].
const LARGEST: u64 = 64;

impl std::str::FromStr for Split {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let split = match text.strip_prefix("random:") {
            Some(seed) => seed.parse().ok().map(Split::Random),
            None => text.parse().ok().filter(|size| *size > 0).map(Split::Every),
        };
        split.ok_or_else(|| "use a size such as 1, or a seed such as random:7".to_owned())
    }
}

impl Split {
    /// Returns the sizes of the pieces. `key` makes the sizes differ between streams, but stay the
    /// same for a stream in every run.
    pub(crate) fn sizes(self, key: &str) -> Sizes {
        let state = match self {
            Split::Every(_) => 0,
            // FNV-1a, see http://www.isthe.com/chongo/tech/comp/fnv/
            Split::Random(seed) => key
                .bytes()
                .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
                }),
        };
        Sizes { split: self, state }
    }
}

/// The endless sequence of piece sizes for one stream; each size is at least 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    split: Split,
    state: u64,
}

impl Sizes {
    /// Returns the size of the next piece.
    pub(crate) fn next(&mut self) -> usize {
        match self.split {
            Split::Every(size) => size,
            Split::Random(_) => {
                // SplitMix64, see https://prng.di.unimi.it/splitmix64.c
                self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = self.state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((mixed ^ (mixed >> 31)) % LARGEST) as usize + 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_is_a_size_or_a_seed() {
        assert_eq!("1".parse(), Ok(Split::Every(1)));
        assert_eq!("random:7".parse(), Ok(Split::Random(7)));
        for wrong in ["0", "-1", "random", "random:", "random:x", "1.5", ""] {
            assert!(wrong.parse::<Split>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn random_sizes_depend_on_seed_and_key_alone() {
        let sizes = |seed, key| {
            let mut sizes = Split::Random(seed).sizes(key);
            (0..1000).map(|_| sizes.next()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(7, "a"), sizes(7, "a"));
        assert_ne!(sizes(7, "a"), sizes(8, "a"));
        assert_ne!(sizes(7, "a"), sizes(7, "b"));
        assert!((1..=64).all(|size| sizes(7, "a").contains(&size)));
    }
}
