//! Every recorded body of `fixtures/streams`, replayed and merged, against the events recorded
//! beside it: each body is a test. `UPDATE=1 cargo test --test fixtures streams/NAME` rewrites the files.

use crate::pipeline::schema;
use testkit::golden;
use testkit::trials::{self, Trial};
use testkit::{Body, bodies};

pub(crate) fn trials() -> Vec<Trial<'static>> {
    let all = bodies().into_iter();
    trials::each(
        "streams",
        all.map(|body| (body.name.clone(), body)).collect(),
        check,
    )
}

/// Replays a body through `llm-stream | tc-accumulate`; returns what differs.
fn check(body: &Body) -> Vec<String> {
    let name = body.path.file_name().unwrap_or_default().to_string_lossy();
    let script = format!(
        "llm-stream --no-time --api {} --replay '{name}' | tc-accumulate --no-time",
        body.api
    );
    let folder = body.path.parent().expect("a file in a folder");
    let output = testkit::bash(&script, folder).output().expect("bash runs");
    let mut wrong: Vec<String> = golden::compare(&body.events(), &output.stdout)
        .into_iter()
        .collect();
    wrong.extend(schema::misfits(&output.stdout));
    if !output.stderr.is_empty() {
        wrong.push(format!(
            "standard error: {}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        ));
    }
    wrong
}
