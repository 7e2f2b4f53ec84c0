//! Ids for calls that came without one.

/// Nine characters of `[A-Za-z0-9]`, the strictest form that a provider demands (Mistral), from the response's id, the choice
/// and the call's position: the same stream gives the same ids, however often it is replayed.
pub(crate) fn made(response: &str, choice: u32, position: usize) -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    // FNV-1a: any mixing function serves; this one is short, and no secret is kept.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for b in response.bytes().chain([0]).chain(choice.to_le_bytes()).chain((position as u64).to_le_bytes()) {
        hash = (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
    }
    // FNV's high bits are the well-mixed ones.
    hash ^= hash >> 29;
    let mut id = String::with_capacity(9);
    for _ in 0..9 {
        id.push(LETTERS[(hash % 62) as usize] as char);
        hash /= 62;
    }
    id
}

/// An id that says nothing: absent, empty, or the word null.
pub(crate) fn is_none(id: &str) -> bool {
    matches!(id, "" | "null" | "None")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_nine_letters_and_differ() {
        let mut seen = std::collections::HashSet::new();
        for response in ["", "r1", "r2"] {
            for choice in 0..3 {
                for position in 0..500 {
                    let id = made(response, choice, position);
                    assert!(id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()), "{id}");
                    assert!(seen.insert(id));
                }
            }
        }
        assert_eq!(made("r1", 0, 0), made("r1", 0, 0));
    }
}
