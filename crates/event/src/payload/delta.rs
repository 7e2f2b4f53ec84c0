//! Pieces of an answer, as the model writes it.

use super::field::{Codec, Flag, Plain, payload};
use crate::slot::Member;
use crate::{Json, Object, Raw, Text};

/// The next fragment of a call's arguments. An object counts as its text.
#[derive(Debug)]
pub(crate) struct Fragment;

impl<'a> Codec<'a, Option<Text<'a>>> for Fragment {
    const ALWAYS: bool = false;

    #[inline]
    fn read(value: Raw<'a>) -> Option<Text<'a>> {
        Text::of(value).or_else(|| value.is_object().then(|| value.text().into()))
    }

    #[inline(always)]
    fn read_member(member: Member<'a>) -> Option<Text<'a>> {
        Text::of_member(member).or_else(|| Self::read(member.value()))
    }

    #[inline]
    fn write(value: &Option<Text<'a>>, key: &'static str, o: &mut Object<'_>) {
        Plain::write(value, key, o);
    }

    fn schema(o: &mut Object<'_>) {
        o.array("type", |a| {
            a.str("string").str("object");
        });
    }
}

payload! {
    /// The next piece of reasoning.
    Thinking<'a> {
        /// The piece.
        text: Text<'a>,
        /// Opaque data that must go back to the same provider, such as a signature; it closes the
        /// block that it came with.
        provider: Option<Json<'a>>,
    }
}

payload! {
    /// The next piece of the answer.
    ContentDelta<'a> {
        /// The piece.
        text: Text<'a>,
        /// The same chunk of the provider's stream has a call, too.
        with_call: bool as Flag,
    }
}

payload! {
    /// The next piece of a refusal, where the provider keeps it apart from the answer.
    RefusalDelta<'a> {
        /// The piece.
        text: Text<'a>,
    }
}

payload! {
    /// The next piece of a tool call.
    ToolCallDelta<'a> {
        /// The provider's label for the call; not a position.
        index: Option<i64>,
        /// The provider's id of the call.
        tool_id: Option<Text<'a>>,
        /// The tool's name, or a piece of it.
        tool_name: Option<Text<'a>>,
        /// The next fragment of the arguments, never the text so far. An object counts as its text.
        arguments: Option<Text<'a>> as Fragment,
        /// The provider closed the call's block.
        done: bool as Flag,
        /// The call was written as text: in its first event.
        from_text: bool as Flag,
        /// Opaque data that must go back to the same provider.
        provider: Option<Json<'a>>,
    }
}

payload! {
    /// Members of the provider's answer that no other event holds, such as log probabilities and
    /// citations. Only who asks for them gets them.
    Details<'a> {
        /// What they are members of: `answer`, `usage`, `choice`, `message`, `text` (the text of
        /// the answer that came last).
        place: Text<'a>,
        /// An object: the members as the provider's API has them.
        data: Json<'a>,
    }
}

payload! {
    /// Something the provider ran itself, such as a web search. Never a `tool_call`.
    ServerItem<'a> {
        /// What it is.
        kind: Text<'a>,
        /// The provider's own object.
        data: Json<'a>,
    }
}
