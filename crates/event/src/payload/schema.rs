//! The JSON Schema of the protocol, made from the descriptions of the kinds.

use super::field::KindSchema;
use super::{call::*, delta::*, message::*, notice::*, request::*, stream::*, tool::*};
use crate::Object;
use crate::kind::for_each_kind;

macro_rules! kind_schemas {
    ($($name:ident $(<$lt:lifetime>)? = $text:literal,)*) => {
        const KINDS: &[(&str, KindSchema)] = &[$(($text, $name::SCHEMA)),*];
    };
}

for_each_kind!(kind_schemas);

/// The schema of one line (JSON Schema 2020-12), as JSON. It takes every event of a type that this
/// version does not have.
pub fn schema() -> String {
    let mut out = Vec::new();
    let mut o = Object::open(&mut out);
    o.str("$schema", "https://json-schema.org/draft/2020-12/schema")
        .str("title", "An event of the toolpipe protocol, version 1")
        .str("description", "One line of the protocol. Of each type these are the fields that the commands write; any event may have further ones.")
        .str("type", "object");
    o.object("properties", |o| {
        o.object("type", |o| {
            o.str(
                "description",
                "What the event is. A type that is not listed here passes through.",
            )
            .str("type", "string");
        });
        o.object("stream", |o| {
            o.str(
                "description",
                "The name of its stream, when several share a pipe.",
            )
            .str("type", "string");
        });
        o.object("choice", |o| {
            o.str(
                "description",
                "The index of its choice, when the request asked for several; absent is 0.",
            );
            o.str("type", "integer").int("minimum", 0);
        });
        o.object("t", |o| {
            o.str(
                "description",
                "Milliseconds since `stream_start`; on replay the recorded time.",
            );
            o.str("type", "number").int("minimum", 0);
        });
    });
    o.array("required", |a| {
        a.str("type");
    });
    o.array("allOf", |a| {
        for (name, _) in KINDS {
            a.object(|o| {
                o.object("if", |o| {
                    o.object("properties", |o| {
                        o.object("type", |o| {
                            o.str("const", name);
                        });
                    });
                });
                o.object("then", |o| {
                    o.str("$ref", &format!("#/$defs/{name}"));
                });
            });
        }
    });
    o.object("$defs", |o| {
        for (name, kind) in KINDS {
            o.object(name, |o| kind.write(o, name));
        }
    });
    o.close();
    String::from_utf8(out).unwrap_or_default()
}
