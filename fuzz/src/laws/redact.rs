//! Secrets: a planted one is gone from every spelling and every split, and text that is not secret
//! stays.
//!
//! Input: the spelling, a seed of the pieces, the length of the secret, then the secret, then the
//! text around it (before, after).

use super::input::pieces;
use super::{Target, Turn};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use redact::{REDACTED, Redactor};

/// See the first lines of this file.
pub const TARGET: Target = Target {
    name: "redact",
    check,
};

fn spelled(secret: &str, how: u8) -> String {
    match how % 9 {
        0 => secret.to_owned(),
        1 => secret
            .bytes()
            .map(|b| {
                if b.is_ascii_alphanumeric() {
                    char::from(b).to_string()
                } else {
                    format!("%{b:02X}")
                }
            })
            .collect(),
        2 => secret.bytes().map(|b| format!("%{b:02x}")).collect(),
        3 => secret.bytes().map(|b| format!("\\u{b:04x}")).collect(),
        4 => {
            let json = serde_json::Value::from(secret).to_string();
            json[1..json.len() - 1].to_owned()
        }
        5 => {
            let once = serde_json::Value::from(secret).to_string();
            let twice = serde_json::Value::from(&once[1..once.len() - 1]).to_string();
            twice[1..twice.len() - 1].to_owned()
        }
        6 => STANDARD.encode(format!("user:{secret}")),
        7 => URL_SAFE.encode(format!("xy{secret}")),
        _ => STANDARD_NO_PAD.encode(format!("u:{secret}z")),
    }
}

fn check(bytes: &[u8], _: Turn) {
    let [how, seed, length, rest @ ..] = bytes else {
        return;
    };
    let length = 8 + usize::from(*length) % 40;
    let (secret, around) = rest.split_at(rest.len().min(length));
    let is_plain = |b: &u8| b.is_ascii_graphic();
    let secret: String = secret
        .iter()
        .filter(|b| is_plain(b))
        .map(|b| char::from(*b))
        .collect();
    let around = String::from_utf8_lossy(around).into_owned();
    // No secret: the text stays, however it comes.
    let nobody = Redactor::default();
    if redact::credential(around.as_bytes()).is_none() {
        assert_eq!(nobody.text(&around), around);
    }
    // What takes the place of a secret must not be a part of one.
    if secret.len() < 8 || secret.contains(['[', ']']) || REDACTED.contains(&secret) {
        return;
    }
    let redactor = Redactor::new([secret.clone()]);
    let mut at = around.len() * usize::from(*seed) / 256;
    while !around.is_char_boundary(at) {
        at -= 1;
    }
    let (before, after) = around.split_at(at);
    let spelling = spelled(&secret, *how);
    // What surrounds base64 must not be base64 itself.
    let (left, right) = if how % 9 > 5 { (" ", " ") } else { ("", "") };
    let text = format!("{before}{left}{spelling}{right}{after}");
    let clean = redactor.text(&text);
    assert!(!clean.contains(&secret), "{secret:?} is in {clean:?}");
    assert!(
        !clean.contains(&spelling),
        "{spelling:?} of {secret:?} is in {clean:?}"
    );
    assert!(clean.contains(REDACTED), "{clean:?}");
    // In pieces.
    let mut parts: Vec<Vec<u8>> = pieces(text.as_bytes(), *seed)
        .into_iter()
        .map(<[u8]>::to_vec)
        .collect();
    let mut refs: Vec<&mut Vec<u8>> = parts.iter_mut().collect();
    assert!(redactor.pieces(&mut refs));
    assert_eq!(String::from_utf8_lossy(&parts.concat()), clean, "in pieces");
    // What is settled before the secret is complete shows nothing of it.
    let start = before.len() + left.len();
    // Escapes of letters and digits are seldom, and not held back (`spelling.rs`).
    if [0, 1, 4].contains(&(how % 9)) && !before.ends_with('\\') {
        for end in start + 1..start + spelling.len() {
            let settled = redactor.settled(&text.as_bytes()[..end]);
            assert!(
                settled <= start,
                "{settled} of {:?} is shown, the secret begins at {start}",
                String::from_utf8_lossy(&text.as_bytes()[..end])
            );
        }
    }
    // Text without the secret's letters, escapes and shapes stays byte for byte.
    let other = |t: &str| -> String {
        t.chars()
            .filter(|c| {
                !c.is_ascii_alphanumeric() && !"%\\&-_+/=.~".contains(*c) && !secret.contains(*c)
            })
            .collect()
    };
    let (before, after) = (other(before), other(after));
    if redact::credential(secret.as_bytes()).is_none()
        && how % 9 < 5
        && !secret.contains(['%', '\\', '&'])
    {
        assert_eq!(
            redactor.text(&format!("{before}{spelling}{after}")),
            format!("{before}{REDACTED}{after}")
        );
        assert_eq!(
            redactor.text(&format!("{before}{after}")),
            format!("{before}{after}")
        );
    }
    // As a value of JSON.
    let json =
        serde_json::json!({"a": [text], "password": "t0psecret", text.clone(): 1}).to_string();
    let clean = redactor.json_text(&json);
    assert!(!clean.contains("t0psecret"), "{clean}");
    let value: serde_json::Value = serde_json::from_str(&clean).unwrap();
    let has_secret = |text: &str| text.contains(&secret);
    assert!(
        !value["a"][0].as_str().is_some_and(has_secret)
            && !value.as_object().unwrap().keys().any(|k| has_secret(k)),
        "{value}"
    );
    let url = redactor.url(&format!("https://me:{secret}@host/v1?key={spelling}&x=1"));
    assert!(
        !url.contains(&secret) || REDACTED.contains(&secret),
        "{url}"
    );
}
