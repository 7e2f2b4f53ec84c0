//! Members of a request by their places: a name, or two with a dot between them.

use serde_json::{Map, Value, json};

/// Takes the value at `place`, a name or two with a dot between them. An object that is empty then
/// goes too.
pub(super) fn take(members: &mut Map<String, Value>, place: &str) -> Option<Value> {
    let Some((first, second)) = place.split_once('.') else {
        return members.shift_remove(place);
    };
    let inner = members.get_mut(first)?.as_object_mut()?;
    let value = inner.shift_remove(second);
    if inner.is_empty() {
        members.shift_remove(first);
    }
    value
}

/// Puts a value at `place`, unless one is there.
pub(super) fn put(members: &mut Map<String, Value>, place: &str, value: Value) -> Option<()> {
    let (inner, name) = match place.split_once('.') {
        Some((first, second)) => (
            members
                .entry(first)
                .or_insert_with(|| json!({}))
                .as_object_mut()?,
            second,
        ),
        None => (members, place),
    };
    if inner.contains_key(name) {
        return None;
    }
    match (name, value) {
        // One member of the client's becomes several.
        ("*", Value::Object(several)) => inner.extend(several),
        (name, value) => _ = inner.insert(name.to_owned(), value),
    }
    Some(())
}
