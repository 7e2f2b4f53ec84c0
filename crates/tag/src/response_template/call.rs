//! Reads how calls are written from the field `tool_calls` of a description.

use crate::notation::Fault;
use crate::response_template::delimiter::{
    Delimiter, DelimiterToken, Spelling, lines, text, trimmed,
};
use crate::response_template::member::TemplateMember;
use crate::response_template::parameter;
use crate::response_template::pattern::Captures;

/// The notation of calls, as keys of a dialect.
#[derive(Debug, Default)]
pub(super) struct CallNotation {
    /// The forms of one call, the usual form first. Empty if the headers of messages contain the
    /// whole form.
    pub calls: Vec<String>,
    pub around: Option<String>,
    pub parameter: Option<String>,
    pub spellings: Vec<Vec<String>>,
    /// Whether the calls are messages with headers, as in Harmony.
    pub messages: bool,
}

/// Where a part of a call is found, according to the field's `transform`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PartSource {
    /// The text between the delimiters.
    Content,
    /// A member of that text, which is JSON.
    Key(String),
    /// A named group of the delimiter.
    Group(String),
}

/// The sources of a call's parts, according to the field's `transform`.
#[derive(Debug)]
struct CallSources {
    name: PartSource,
    arguments: PartSource,
    id: Option<PartSource>,
}

/// The content of the text between the delimiters.
enum CallBody {
    /// A slot of JSON or of an expression.
    Slot(String),
    /// Tagged parameters: the notation of one parameter, and the white space before each.
    Parameters(String, &'static str),
    /// A call expression, which includes the name, with strings enclosed in two of this quotation
    /// mark.
    Expression(String),
}

/// Reads the field.
///
/// # Errors
/// Returns what is invalid, or what the notation of dialects cannot express.
pub(super) fn read(field: &TemplateMember<'_>) -> Result<CallNotation, Fault> {
    let is_list = field.flag_of("transform_each")?;
    let shape = shape(field, is_list)?;
    let body = body(field, &shape, is_list)?;
    let group = |place: Option<&PartSource>| match place {
        Some(PartSource::Group(name)) => Some(name.clone()),
        _ => None,
    };
    let name = group(Some(&shape.name));
    let id = group(shape.id.as_ref());
    let captures = Captures {
        name: name.as_deref(),
        id: id.as_deref(),
        value: None,
    };
    let Some(open) = field.delimiter("open", captures)? else {
        return Err(
            field.refuse("it has neither 'open' nor 'open_pattern', so that nothing marks a call")
        );
    };
    let close = field
        .delimiter("close", Captures::default())?
        .unwrap_or_default();
    if open.is_edge || open.spellings.is_empty() {
        return Err(field.refuse("a call may begin without a marker"));
    }
    let has_name = |spelling: &Spelling| spelling.contains(&DelimiterToken::Name);
    if name.is_some() && !open.spellings.iter().all(has_name) {
        return Err(field.refuse("the group of the tool's name is missing in the pattern"));
    }
    if open.spellings.iter().all(is_header) {
        return Ok(message(body, &open));
    }
    marked(field, &open, &close, body)
}

/// Whether a delimiter is the header of a message to a tool: ` to=NAME<|message|>`.
fn is_header(spelling: &Spelling) -> bool {
    let name = spelling
        .iter()
        .position(|token| *token == DelimiterToken::Name);
    let before = name.and_then(|at| spelling.get(at.checked_sub(1)?));
    let is_recipient = matches!(before, Some(DelimiterToken::Text(text)) if text.ends_with("to=") || text.ends_with("to=functions."));
    is_recipient
        && matches!(trimmed(spelling).last(), Some(DelimiterToken::Text(text)) if text.ends_with("<|message|>"))
}

/// Returns the notation of calls in messages with headers. The parser handles the headers itself,
/// so only the message body can differ.
fn message(body: CallBody, open: &Delimiter) -> CallNotation {
    const ENDS: [&str; 3] = ["<|call|>", "<|end|>", "<|return|>"];
    let mut keys = CallNotation {
        messages: true,
        ..CallNotation::default()
    };
    if let CallBody::Parameters(parameter, before) = body {
        let header = notation(
            open.spellings
                .first()
                .map_or(&[][..], |spelling| trimmed(spelling)),
        );
        keys.calls.push(format!(
            "␣{}{{parameters}}{before}{}",
            header.trim_start_matches('␣'),
            ENDS[0]
        ));
        keys.around = Some("{call}<|end|><|start|>assistant{call}".to_owned());
        keys.spellings.push(ENDS.map(str::to_owned).to_vec());
        keys.parameter = Some(parameter);
    }
    keys
}

impl CallNotation {
    /// Records all spellings of a marker. Returns the first, which is written.
    fn spell<T: AsRef<str>>(&mut self, texts: impl IntoIterator<Item = T>) -> Option<String> {
        let trim = |text: T| text.as_ref().trim().to_owned();
        let texts: Vec<String> = texts.into_iter().map(trim).collect();
        let first = texts.first().cloned();
        if texts.len() > 1 && !self.spellings.contains(&texts) {
            self.spellings.push(texts);
        }
        first
    }
}

/// Returns the notation of calls between markers.
fn marked(
    field: &TemplateMember<'_>,
    open: &Delimiter,
    close: &Delimiter,
    body: CallBody,
) -> Result<CallNotation, Fault> {
    let mut keys = CallNotation::default();
    // Markers that differ only in their text are spellings of one marker; other markers are
    // separate forms.
    let openers: Vec<Spelling> = match open.texts() {
        Some(texts) => {
            let first = keys.spell(texts);
            first
                .into_iter()
                .map(|text| vec![DelimiterToken::Text(text)])
                .collect()
        }
        None => open.spellings.clone(),
    };
    let is_fixed = |token: &DelimiterToken| {
        !matches!(
            token,
            DelimiterToken::Open | DelimiterToken::Name | DelimiterToken::Id
        )
    };
    let closers: Vec<String> = match (close.texts(), &close.spellings[..]) {
        (Some(texts), _) => keys.spell(texts).into_iter().collect(),
        (None, [one]) if one.iter().all(is_fixed) => {
            let texts = one.iter().filter_map(|token| match token {
                DelimiterToken::Text(text) => Some(text.trim().to_owned()),
                _ => None,
            });
            texts.collect()
        }
        _ => return Err(field.refuse("the end of a call is more than a fixed text")),
    };
    for opener in openers {
        let ends = ends(&mut keys, &opener, close, &closers, &body);
        let mut call = opened(field, opener, &ends, &body)?;
        if open.before.is_empty()
            && let Some(after) = close.after.first()
        {
            call.push_str(&format!("({})", text(after.trim())));
        }
        keys.calls.push(call);
    }
    keys.spell(&close.after);
    if let Some(before) = open.before.first() {
        keys.spell(&open.before);
        let after = close.after.first().map_or("", |text| text.trim());
        let before = lines(before.trim());
        let after = lines(after);
        keys.around = Some(format!("{before}{{call}}⏎{{call}}{after}"));
    }
    if let CallBody::Parameters(parameter, _) = body {
        keys.parameter = Some(parameter);
    }
    Ok(keys)
}

/// Returns the markers that end a call with this opener.
fn ends(
    keys: &mut CallNotation,
    opener: &[DelimiterToken],
    close: &Delimiter,
    closers: &[String],
    body: &CallBody,
) -> Vec<String> {
    let mut ends = closers.to_vec();
    if let CallBody::Parameters(..) = body {
        // The tag with the name has its own end tag before the marker that ends the region.
        if let Some(tag) = end_tag(opener).filter(|tag| !ends.contains(tag)) {
            match close.texts() {
                Some(texts) => keys.spell([&tag[..]].into_iter().chain(texts)),
                None => keys.spell([&tag].into_iter().chain(&ends)),
            };
            ends.insert(0, tag);
        } else {
            keys.spell(&ends);
        }
    }
    ends
}

/// Returns the notation of a call from its opener to the markers that end it. The first of these
/// markers is required after parameters.
fn opened(
    field: &TemplateMember<'_>,
    opener: Spelling,
    ends: &[String],
    body: &CallBody,
) -> Result<String, Fault> {
    let is_blank =
        |token: &DelimiterToken| matches!(token, DelimiterToken::Space | DelimiterToken::Open);
    let from = opener.iter().position(|token| !is_blank(token));
    let mut opener = opener[from.unwrap_or(0)..].to_vec();
    let (mut call, between, required) = match body {
        CallBody::Expression(quote) => (expression(field, &mut opener, quote)?, "", 0),
        CallBody::Slot(slot) => (notation(&opener) + slot, "", 0),
        CallBody::Parameters(_, before) => (notation(&opener) + "{parameters}", *before, 1),
    };
    if ends.len() < required {
        return Err(field.refuse("nothing ends a call with tagged parameters"));
    }
    for (n, end) in ends.iter().enumerate() {
        let may = if n < required { "" } else { "?" };
        let gap = if n == 0 { between } else { "·" };
        call.push_str(&format!("{gap}{}{may}", text(end)));
    }
    Ok(call)
}

/// Returns the end tag of the start tag that contains the tool's name: `</function>` for
/// `<function={name}>` and `<function name="{name}">`.
fn end_tag(opener: &[DelimiterToken]) -> Option<String> {
    let at = opener
        .iter()
        .position(|token| *token == DelimiterToken::Name)?;
    let (DelimiterToken::Text(before), DelimiterToken::Text(after)) =
        (opener.get(at.checked_sub(1)?)?, opener.get(at + 1)?)
    else {
        return None;
    };
    let tag = &before[before.rfind('<')? + 1..];
    let name = &tag[..tag.find([' ', '='])?];
    (after.trim_start_matches('"').starts_with('>') && !name.is_empty())
        .then(|| format!("</{name}>"))
}

/// Returns the notation of a call expression after its marker. The marker ends before the words
/// that precede the name.
fn expression(
    field: &TemplateMember<'_>,
    opener: &mut Spelling,
    quote: &str,
) -> Result<String, Fault> {
    let (Some(DelimiterToken::Name), Some(DelimiterToken::Text(before))) =
        (opener.pop(), opener.pop())
    else {
        return Err(field.refuse(
            "the tool's name does not end the marker of a call with quotation marks of its own",
        ));
    };
    let word = before
        .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, ':' | '_')))
        .map_or(0, |at| at + 1);
    let (marker, prefix) = before.split_at(word);
    if marker.is_empty() || quote.contains(['x', '{', '}', '(', '⏎']) {
        return Err(field.refuse("its quotation marks"));
    }
    opener.push(DelimiterToken::Text(marker.to_owned()));
    Ok(format!(
        "{}{{{prefix}name{{a:{quote}x{quote}}}}}",
        notation(opener)
    ))
}

/// Returns a delimiter in the notation of a call, or a parameter in the notation of a parameter.
pub(super) fn notation(tokens: &[DelimiterToken]) -> String {
    let piece = |token: &DelimiterToken| match token {
        DelimiterToken::Text(marker) => text(marker),
        DelimiterToken::Space => "·".to_owned(),
        DelimiterToken::Name | DelimiterToken::Same => "{name}".to_owned(),
        DelimiterToken::Id => "{id}".to_owned(),
        DelimiterToken::Open => "{author}".to_owned(),
        DelimiterToken::Value => "{value}".to_owned(),
        DelimiterToken::Flag => "{is_string}".to_owned(),
        DelimiterToken::Ahead => String::new(),
    };
    let pieces: String = tokens.iter().map(piece).collect();
    // Kimi numbers its calls in their names.
    pieces.replace("functions.{name}:{author}", "·{functions.name:n}")
}

/// Returns where the parts of a call are found.
fn shape(field: &TemplateMember<'_>, is_list: bool) -> Result<CallSources, Fault> {
    let usual = || CallSources {
        name: PartSource::Key("name".to_owned()),
        arguments: PartSource::Key("arguments".to_owned()),
        id: None,
    };
    let Some(transform) = field.get("transform") else {
        return Ok(usual());
    };
    let function = transform.get("function");
    if [Some(&transform), function.as_ref()]
        .into_iter()
        .flatten()
        .any(|m| m.raw.plain() == Some("{content}"))
    {
        return Ok(usual());
    }
    let function = function.unwrap_or_else(|| transform.clone());
    let part = |member: Option<TemplateMember<'_>>| {
        member.map(|member| place(&member, is_list)).transpose()
    };
    match (
        part(function.get("name"))?,
        part(function.get("arguments"))?,
    ) {
        (Some(name), Some(arguments)) => Ok(CallSources {
            name,
            arguments,
            id: part(transform.get("id"))?,
        }),
        _ => Err(transform.refuse("it gives no 'name' and 'arguments'")),
    }
}

/// Parses a placeholder: `{content}`, `{content.KEY}`, `{GROUP}`; in a list `{KEY}`.
fn place(member: &TemplateMember<'_>, is_list: bool) -> Result<PartSource, Fault> {
    let text = member.text()?;
    let Some(inner) = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
    else {
        return Err(member.refuse("a fixed text in the place of what the model writes"));
    };
    match inner.split('.').collect::<Vec<_>>()[..] {
        ["content"] => Ok(PartSource::Content),
        ["content", key] => Ok(PartSource::Key(key.to_owned())),
        [key] if is_list => Ok(PartSource::Key(key.to_owned())),
        [group] => Ok(PartSource::Group(group.to_owned())),
        _ => Err(member.refuse("a value deep inside the text")),
    }
}

/// Returns the content of the text between the delimiters.
fn body(field: &TemplateMember<'_>, shape: &CallSources, is_list: bool) -> Result<CallBody, Fault> {
    let kind = field
        .text_of("content")?
        .unwrap_or_else(|| "text".to_owned());
    let arguments = field.get("content_args");
    match &kind[..] {
        "json" => {
            let quote = arguments.as_ref().map(quote).transpose()?.flatten();
            match (&shape.name, &shape.arguments, quote) {
                (PartSource::Group(_), PartSource::Content, Some(quote)) => {
                    Ok(CallBody::Expression(quote))
                }
                (_, _, Some(_)) => {
                    Err(field.refuse("quotation marks of its own round the tool's name"))
                }
                (PartSource::Group(_), PartSource::Content, None) => {
                    Ok(CallBody::Slot("{arguments}".to_owned()))
                }
                (PartSource::Key(name), PartSource::Key(arguments), None) => {
                    let id = match &shape.id {
                        Some(PartSource::Key(id)) => format!("{id}?, "),
                        _ => String::new(),
                    };
                    let object = format!("{{{id}{name}, {arguments}}}");
                    Ok(CallBody::Slot(if is_list {
                        format!("[{object}]")
                    } else {
                        object
                    }))
                }
                _ => Err(field.refuse(
                    "the tool's name and the arguments are in different places of the text",
                )),
            }
        }
        "xml-inline" => match (&shape.name, &shape.arguments, arguments) {
            (PartSource::Group(_), PartSource::Content, Some(arguments)) => {
                let (parameter, before) = parameter::read(&arguments)?;
                Ok(CallBody::Parameters(parameter, before))
            }
            (_, _, None) => Err(field
                .fault("content_args.tag_pattern is missing; expected the pattern of a parameter")),
            _ => Err(field.refuse("the tool's name is among the parameters")),
        },
        "text" | "int" | "float" | "bool" | "kv-lines" => {
            Err(field.refuse(format!("content: arguments as '{kind}'")))
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            Err(field.fault(format!(
                "content: '{shown}' is unknown; expected json or xml-inline"
            )))
        }
    }
}

/// Returns the quotation mark of a model that uses its own, or `None`. Keys without quotation marks
/// are read and repaired like any JSON.
fn quote(arguments: &TemplateMember<'_>) -> Result<Option<String>, Fault> {
    arguments.expect(&["unquoted_keys", "string_delims", "allow_non_json"])?;
    let Some(delims) = arguments.get("string_delims") else {
        return Ok(None);
    };
    let mut pairs = delims.raw.items();
    let first = pairs.next();
    let more = pairs.next();
    let pair: Vec<String> = first
        .into_iter()
        .flat_map(|pair| pair.items())
        .filter_map(|text| text.str().map(String::from))
        .collect();
    match (&pair[..], more) {
        ([open, close], None) if open == close && !open.is_empty() => Ok(Some(open.clone())),
        _ => Err(delims.refuse("quotation marks that differ, or several kinds of them")),
    }
}
