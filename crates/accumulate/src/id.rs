//! Ids for calls that arrived without an id, or with the id of an earlier call.

use std::collections::HashSet;

/// The seed for the ids of a choice's calls: a hash of the response's id and the choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Seed(0xcbf2_9ce4_8422_2325)
    }
}

impl Seed {
    pub(crate) fn of_response(id: &str) -> Self {
        Seed::default().mixed(id.as_bytes()).mixed(&[0])
    }

    pub(crate) fn of_choice(self, choice: u32) -> Self {
        self.mixed(&choice.to_le_bytes())
    }

    /// FNV-1a. Ids need not be secret, so any short hash will do.
    fn mixed(self, bytes: &[u8]) -> Self {
        Seed(bytes.iter().fold(self.0, |hash, b| {
            (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    /// Returns the id for the call at `position`: nine characters of `[A-Za-z0-9]`, the strictest
    /// form that a provider requires (Mistral). Replaying a stream always gives the same ids.
    pub(crate) fn id(self, position: usize) -> String {
        const LETTERS: &[u8; 62] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let mut hash = self.mixed(&(position as u64).to_le_bytes()).0;
        // FNV's high bits are the well-mixed ones.
        hash ^= hash >> 29;
        let mut id = String::with_capacity(9);
        for _ in 0..9 {
            id.push(LETTERS[(hash % 62) as usize] as char);
            hash /= 62;
        }
        id
    }

    /// Returns the first id for the call at `position` that is not in `taken`.
    pub(crate) fn free_id(mut self, position: usize, taken: &HashSet<String>) -> String {
        loop {
            let id = self.id(position);
            if !taken.contains(&id) {
                return id;
            }
            self = self.mixed(&[0]);
        }
    }
}

/// Whether an id is empty or the word `null` or `None`, which some servers send instead of no id.
pub(crate) fn is_blank(id: &str) -> bool {
    matches!(id, "" | "null" | "None")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_nine_letters_and_differ() {
        let mut seen = HashSet::new();
        for response in ["", "r1", "r2"] {
            for choice in 0..3 {
                for position in 0..500 {
                    let id = Seed::of_response(response).of_choice(choice).id(position);
                    assert!(
                        id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()),
                        "{id}"
                    );
                    assert!(seen.insert(id));
                }
            }
        }
        let again = || Seed::of_response("r1").of_choice(0).id(0);
        assert_eq!(again(), again());
        assert_eq!(
            Seed::of_response("r1")
                .of_choice(0)
                .free_id(0, &HashSet::new()),
            again()
        );
        let free = Seed::of_response("r1").of_choice(0).free_id(0, &seen);
        assert!(free.len() == 9 && seen.insert(free));
    }
}
