//! .
#[test]
fn x() {}
