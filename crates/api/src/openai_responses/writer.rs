//! Writes streams and complete responses of OpenAI's `/v1/responses`.
//!
//! Source of the format: OpenAI's "Streaming events"
//! (platform.openai.com/docs/api-reference/responses-streaming), Open Responses (openresponses.org,
//! `schema/openapi.json` in github.com/openresponses/openresponses), and the clients' accumulators:
//! openai-node's `lib/responses/ResponseAccumulator.ts`, which throws on an unknown event type, on
//! an index without an item and on anything before `response.created`; openai-python's
//! `lib/streaming/responses/_responses.py`; `codex-api/src/sse/responses.rs` in Codex.
//!
//! Reasoning is written as a summary, because Codex and the AI SDK show it and ignore
//! `reasoning_text`. A call that the token limit truncated gets no `done` event, because Codex
//! (0.169.0, measured on 2026-11-23) runs a call at its `output_item.done`, whatever its status.
//! The call is `incomplete` in the `output` of `response.incomplete`.

use crate::answer::details::{DetailMembers, DetailsPlace, merge};
use crate::answer::failure::FailedAnswer;
use crate::answer::step::RunningStatus;
use crate::answer::step::{AnswerOptions, CallStep, CallStepKind, ReportedUsage, Step, TextKind};
use crate::answer::writer::{AnswerFormat, AnswerWriter, frame, openai_error};
use crate::carried::carry;
use crate::inbound::tools::NamespacedTool;
use crate::members::{GetText, Put};
use crate::openai_responses::envelope::{ResponseEnvelope, ResponseOutcome};
use crate::openai_responses::output;
use crate::openai_responses::output::{
    CallItem, CallKind, EncryptedItem, FreeTextInput, Item, ItemData, ItemStatus, MessagePart,
};
use crate::openai_responses::service;
use crate::openai_responses::service::{ServiceIds, ServiceItem, ServiceItemState};
use event::Object;
use event::payload::FinishReason;
use serde_json::Value;

/// How this API writes responses.
pub(crate) const FORMAT: AnswerFormat = AnswerFormat {
    path: "/v1/responses",
    writer: |options, is_whole| Box::new(ResponsesWriter::new(options, is_whole)),
    has_steps: true,
    error: openai_error,
};

struct ResponsesWriter {
    envelope: ResponseEnvelope,
    /// Whether this is a complete response, for which no events are written.
    is_whole: bool,
    custom_tools: Vec<String>,
    namespaced_tools: Vec<NamespacedTool>,
    /// The number of the next event.
    sequence: u64,
    /// The number of the last event that the client has.
    starting_after: Option<u64>,
    is_stored: bool,
    /// See [`AnswerOptions::keeps_items`].
    keeps_items: bool,
    output: OutputList,
    /// The index of the open item.
    index: usize,
    /// The open calls of the service.
    service: Vec<ServiceItem>,
    service_ids: ServiceIds,
    open: Option<Item>,
    /// The id of the open item.
    id: String,
    /// The kind and id of the item that the provider announced next.
    next: Option<(String, String)>,
    finish: Option<FinishReason>,
    is_done: bool,
    out: Vec<u8>,
    /// Members of the next text, or of its message.
    logprobs: Vec<Value>,
    annotations: Vec<Value>,
    members: DetailMembers,
}

impl ResponsesWriter {
    fn new(options: &AnswerOptions, is_whole: bool) -> ResponsesWriter {
        ResponsesWriter {
            envelope: ResponseEnvelope::new(options),
            is_whole,
            custom_tools: options.custom_tools.clone(),
            namespaced_tools: options.namespaced_tools.clone(),
            sequence: 0,
            starting_after: options.starting_after,
            is_stored: options.is_stored,
            keeps_items: options.keeps_items,
            output: OutputList::default(),
            index: 0,
            service: Vec::new(),
            service_ids: ServiceIds::default(),
            open: None,
            id: String::new(),
            next: None,
            finish: None,
            is_done: false,
            out: Vec::new(),
            logprobs: Vec::new(),
            annotations: Vec::new(),
            members: DetailMembers::new(),
        }
    }

    /// Writes the event `name` with the next number.
    fn event(&mut self, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
        if self.is_whole {
            return;
        }
        let before = self.out.len();
        frame(&mut self.out, name, |o| {
            o.int("sequence_number", self.sequence);
            fill(o);
        });
        if self
            .starting_after
            .is_some_and(|last| self.sequence <= last)
        {
            self.out.truncate(before);
        }
        self.sequence += 1;
    }

    /// Writes an event that contains the whole response.
    fn lifecycle(&mut self, name: &str, outcome: &ResponseOutcome<'_>) {
        let mut response = Vec::new();
        self.envelope
            .write(outcome, &self.output.items(), &mut response);
        self.event(name, |o| {
            _ = o.raw("response", &String::from_utf8_lossy(&response))
        });
    }

    /// Writes an event about the open item.
    fn item_event(&mut self, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
        let id = std::mem::take(&mut self.id);
        let index = self.index;
        self.event(name, |o| {
            o.str("item_id", &id).int("output_index", at(index));
            fill(o);
        });
        self.id = id;
    }

    /// Returns the open item as JSON.
    fn item_json(&self, status: ItemStatus) -> String {
        self.open
            .as_ref()
            .map(|item| item.json(&self.id, status))
            .unwrap_or_default()
    }

    fn open(&mut self, item: Item) {
        self.close(ItemStatus::Completed);
        // The provider's text may start with reasoning, which has no id of its own.
        let own = self.next.take_if(|(kind, _)| item.kind() == Some(kind));
        self.index = self.output.add();
        self.id = own.map_or_else(|| item.id(&self.envelope.id, self.index), |(_, id)| id);
        // Clients reject the item of such a call without its action, which is not yet known.
        let is_complete = !matches!(
            item,
            Item::Call(CallItem {
                kind: CallKind::Own(_),
                ..
            })
        );
        self.open = Some(item);
        if is_complete {
            self.added();
        }
    }

    /// Announces the open item.
    fn added(&mut self) {
        let json = self.item_json(ItemStatus::InProgress);
        self.whole_item("response.output_item.added", self.index, &json);
    }

    /// Ends the open item with its `done` events. A call must be complete.
    fn close(&mut self, status: ItemStatus) {
        self.close_part();
        match &self.open {
            Some(Item::Call(call)) => match &call.kind {
                CallKind::Function => {
                    let (name, arguments) = (call.name.clone(), call.arguments.clone());
                    self.item_event("response.function_call_arguments.done", |o| {
                        o.str("name", &name).str("arguments", &arguments);
                    });
                }
                CallKind::Custom(input) => {
                    let input = input.text().to_owned();
                    self.item_event("response.custom_tool_call_input.done", |o| {
                        _ = o.str("input", &input)
                    });
                }
                CallKind::Own(_) => self.added(),
            },
            Some(_) => {}
            None => return,
        }
        if let Some(Item::Message { members, .. }) = &mut self.open {
            *members = std::mem::take(&mut self.members);
        }
        let json = self.item_json(status);
        self.whole_item("response.output_item.done", self.index, &json);
        self.keep(json);
    }

    /// Ends the open item without its `done` events. Truncated free-form text is left out of the
    /// output, because it looks complete and the AI SDK ignores the status.
    fn abandon(&mut self) {
        match &self.open {
            None => {}
            Some(Item::Call(CallItem {
                kind: CallKind::Custom(_) | CallKind::Own(_),
                ..
            })) => self.open = None,
            Some(_) => {
                let json = self.item_json(ItemStatus::Incomplete);
                self.keep(json);
            }
        }
    }

    fn keep(&mut self, json: String) {
        self.output.set(self.index, json);
        self.open = None;
    }

    /// Writes an event about the output item `item`.
    fn whole_item(&mut self, name: &str, index: usize, item: &str) {
        self.event(name, |o| {
            _ = o.int("output_index", at(index)).raw("item", item)
        });
    }

    /// Processes a step of a call that the service runs.
    fn service(&mut self, step: &CallStep<'_>) {
        if step.kind == CallStepKind::Begin {
            return self.service_begin(&step.id, &step.name);
        }
        let text = step.text.as_ref();
        let mut open = std::mem::take(&mut self.service);
        let found = open.iter().position(|item| item.call_id == step.id);
        if let Some(place) = found {
            let item = &mut open[place];
            match step.kind {
                CallStepKind::Begin => {}
                CallStepKind::Arguments => {
                    item.arguments.push_str(text);
                    self.service_event("response.mcp_call_arguments.delta", item, |o| {
                        _ = o.str("delta", text)
                    });
                }
                CallStepKind::Called => {
                    text.clone_into(&mut item.arguments);
                    self.service_event("response.mcp_call_arguments.done", item, |o| {
                        _ = o.str("arguments", text)
                    });
                }
                CallStepKind::Result { is_error } => {
                    let item = open.remove(place);
                    self.service_end(&item, text, is_error);
                }
                CallStepKind::Pending => self.service_waits(item),
            }
        }
        self.service = open;
    }

    /// Writes an event about a call that the service runs.
    fn service_event(
        &mut self,
        name: &str,
        item: &ServiceItem,
        fill: impl FnOnce(&mut Object<'_>),
    ) {
        self.event(name, |o| {
            o.str("item_id", &item.id)
                .int("output_index", at(item.index));
            fill(o);
        });
    }

    fn service_begin(&mut self, call_id: &str, name: &str) {
        self.close(ItemStatus::Completed);
        let index = self.output.add();
        let item = ServiceItem {
            call_id: call_id.to_owned(),
            id: self.service_ids.make(service::CALL, call_id, index),
            index,
            name: name.to_owned(),
            arguments: String::new(),
            approval: None,
        };
        let json = item.json(ServiceItemState::Open);
        self.whole_item("response.output_item.added", index, &json);
        self.service_event("response.mcp_call.in_progress", &item, |_| {});
        self.service.push(item);
    }

    fn service_end(&mut self, item: &ServiceItem, output: &str, is_error: bool) {
        let (name, state) = if is_error {
            ("response.mcp_call.failed", ServiceItemState::Failed(output))
        } else {
            (
                "response.mcp_call.completed",
                ServiceItemState::Ended(output),
            )
        };
        self.service_event(name, item, |_| {});
        let json = item.json(state);
        self.whole_item("response.output_item.done", item.index, &json);
        self.output.set(item.index, json);
    }

    /// Requests approval for a call, unless that was already done.
    fn service_waits(&mut self, item: &mut ServiceItem) {
        if item.approval.is_some() {
            return;
        }
        self.close(ItemStatus::Completed);
        let index = self.output.add();
        let id = self
            .service_ids
            .make(service::APPROVAL, &item.call_id, index);
        let request = item.request(&id);
        item.approval = Some(id);
        for name in ["response.output_item.added", "response.output_item.done"] {
            self.whole_item(name, index, &request);
        }
        self.output.set(index, request);
    }

    /// Opens a message whose last part has this type, unless one is open.
    fn part(&mut self, is_refusal: bool) {
        if !matches!(self.open, Some(Item::Message { .. })) {
            self.open(Item::Message {
                parts: Vec::new(),
                members: DetailMembers::new(),
            });
        }
        let Some(Item::Message { parts, .. }) = &self.open else {
            return;
        };
        if parts.last().is_some_and(|p| p.is_refusal == is_refusal) {
            return;
        }
        self.close_part();
        let Some(Item::Message { parts, .. }) = &mut self.open else {
            return;
        };
        let content = parts.len();
        let part = MessagePart {
            is_refusal,
            text: String::new(),
            annotations: Vec::new(),
            logprobs: Vec::new(),
        };
        let json = part.json();
        parts.push(part);
        self.item_event("response.content_part.added", |o| {
            _ = o.int("content_index", at(content)).raw("part", &json)
        });
    }

    fn close_part(&mut self) {
        match &self.open {
            Some(Item::Message { .. }) => {
                self.annotate();
                let Some(Item::Message { parts, .. }) = &mut self.open else {
                    return;
                };
                let Some(part) = parts.last_mut() else { return };
                part.logprobs.append(&mut self.logprobs);
                let part = part.clone();
                let content = parts.len() - 1;
                let name = if part.is_refusal {
                    "response.refusal.done"
                } else {
                    "response.output_text.done"
                };
                self.item_event(name, |o| {
                    o.int("content_index", at(content));
                    if part.is_refusal {
                        o.str("refusal", &part.text);
                    } else {
                        o.str("text", &part.text)
                            .raw("logprobs", &output::list(&part.logprobs));
                    }
                });
                let json = part.json();
                self.item_event("response.content_part.done", |o| {
                    o.int("content_index", at(content)).raw("part", &json);
                });
            }
            Some(Item::Reasoning { text, .. }) if !text.is_empty() => {
                let text = text.clone();
                self.item_event("response.reasoning_summary_text.done", |o| {
                    o.int("summary_index", 0).str("text", &text);
                });
                self.item_event("response.reasoning_summary_part.done", |o| {
                    o.int("summary_index", 0)
                        .object("part", |o| output::summary(o, &text));
                });
            }
            _ => {}
        }
    }

    fn message(&mut self, is_refusal: bool, text: &str) {
        self.part(is_refusal);
        let logprobs = if is_refusal {
            Vec::new()
        } else {
            std::mem::take(&mut self.logprobs)
        };
        let Some(Item::Message { parts, .. }) = &mut self.open else {
            return;
        };
        let content = parts.len().saturating_sub(1);
        let shown = output::list(&logprobs);
        if let Some(part) = parts.last_mut() {
            part.text.push_str(text);
            part.logprobs.extend(logprobs);
        }
        let name = if is_refusal {
            "response.refusal.delta"
        } else {
            "response.output_text.delta"
        };
        self.item_event(name, |o| {
            o.int("content_index", at(content)).str("delta", text);
            if !is_refusal {
                o.raw("logprobs", &shown);
            }
        });
    }

    /// Processes members of the provider's response.
    fn details(&mut self, place: DetailsPlace, members: &DetailMembers) {
        match place {
            DetailsPlace::Answer => merge(&mut self.envelope.members, members.clone(), false),
            DetailsPlace::Usage => merge(&mut self.envelope.counts, members.clone(), false),
            DetailsPlace::Choice | DetailsPlace::Message => {
                merge(&mut self.members, members.clone(), false)
            }
            DetailsPlace::Text => {
                let list = |name: &str| {
                    members
                        .get(name)
                        .and_then(Value::as_array)
                        .into_iter()
                        .flatten()
                        .cloned()
                };
                self.logprobs.extend(list("logprobs"));
                self.annotations.extend(list("annotations"));
                self.annotate();
            }
            DetailsPlace::Call => {}
            DetailsPlace::Item => {
                let id = members.text_of("id").map(str::to_owned);
                let next = self.output.len();
                let id = id.unwrap_or_else(|| format!("item_{}_{next}", self.envelope.id));
                let mut members = members.clone();
                members.put("id", id.as_str());
                self.open(Item::Own(id, members));
                self.close(ItemStatus::Completed);
            }
        }
    }

    /// Writes the pending annotations of the open part.
    fn annotate(&mut self) {
        let Some(Item::Message { parts, .. }) = &mut self.open else {
            return;
        };
        let content = parts.len().saturating_sub(1);
        let Some(part) = parts.last_mut().filter(|part| !part.is_refusal) else {
            return;
        };
        let first = part.annotations.len();
        let end = part.text.chars().count();
        let list: Vec<Value> = std::mem::take(&mut self.annotations)
            .into_iter()
            .map(|annotation| cited(annotation, end))
            .collect();
        part.annotations.extend(list.iter().cloned());
        for (number, annotation) in list.iter().enumerate() {
            let json = annotation.to_string();
            self.item_event("response.output_text.annotation.added", |o| {
                o.int("content_index", at(content))
                    .int("annotation_index", at(first + number));
                o.raw("annotation", &json);
            });
        }
    }

    fn reasoning(&mut self, piece: &str, provider: Option<&str>) {
        if !piece.is_empty() {
            self.reasoning_text(piece);
        }
        let Some(provider) = provider else { return };
        match ItemData::of(provider) {
            Some(ItemData::Begins { kind, id }) => {
                self.close(ItemStatus::Completed);
                self.next = Some((kind, id)).filter(|(_, id)| !id.is_empty());
                return;
            }
            // The end of an item that started under the provider's id, or of an item without text.
            Some(ItemData::Ends { id, json }) if self.begins(&id) => {
                if let Some(Item::Reasoning { own, .. }) = &mut self.open {
                    *own = Some(json);
                }
                return self.close(ItemStatus::Completed);
            }
            _ => {}
        }
        let foreign = carry(provider, "openai-responses");
        if foreign.is_some() && !matches!(self.open, Some(Item::Reasoning { .. })) {
            self.open(Item::reasoning());
        }
        if let Some(Item::Reasoning { carried, .. }) = &mut self.open {
            *carried = foreign;
            self.close(ItemStatus::Completed);
        }
        if let Some(item) = EncryptedItem::of(provider) {
            self.open(Item::Encrypted(item));
            self.close(ItemStatus::Completed);
        }
    }

    /// Whether the provider's reasoning `id` is open. Opens it if its id was announced.
    fn begins(&mut self, id: &str) -> bool {
        if self.next.as_ref().is_some_and(|(_, next)| next == id) {
            self.open(Item::reasoning());
        }
        self.id == id && matches!(self.open, Some(Item::Reasoning { .. }))
    }

    fn reasoning_text(&mut self, piece: &str) {
        if !matches!(self.open, Some(Item::Reasoning { .. })) {
            self.open(Item::reasoning());
            self.item_event("response.reasoning_summary_part.added", |o| {
                o.int("summary_index", 0)
                    .object("part", |o| output::summary(o, ""));
            });
        }
        if let Some(Item::Reasoning { text, .. }) = &mut self.open {
            text.push_str(piece);
        }
        self.item_event("response.reasoning_summary_text.delta", |o| {
            o.int("summary_index", 0).str("delta", piece);
        });
    }

    fn call(&mut self, call: &CallStep<'_>) {
        let is_custom = self.custom_tools.iter().any(|tool| *tool == call.name);
        let tool = self
            .namespaced_tools
            .iter()
            .find(|tool| tool.full_name == call.name);
        let own = |name: &str| output::of_call(call.provider.as_deref()?, name);
        let kind = match own("kind") {
            Some(kind) => CallKind::Own(kind),
            None if is_custom => CallKind::Custom(FreeTextInput::default()),
            None => CallKind::Function,
        };
        self.open(Item::Call(CallItem {
            kind,
            call_id: call.id.to_string(),
            name: tool.map_or(&*call.name, |tool| &tool.name).to_owned(),
            namespace: tool.map(|tool| tool.namespace.clone()),
            item_id: own("id"),
            arguments: String::new(),
        }));
    }

    fn arguments(&mut self, piece: &str) {
        let Some(Item::Call(call)) = &mut self.open else {
            return;
        };
        match &mut call.kind {
            CallKind::Function => {
                call.arguments.push_str(piece);
                self.item_event("response.function_call_arguments.delta", |o| {
                    _ = o.str("delta", piece)
                });
            }
            CallKind::Custom(input) => {
                let text = input.push(piece);
                self.custom_delta(&text);
            }
            CallKind::Own(_) => call.arguments.push_str(piece),
        }
    }

    fn custom_delta(&mut self, text: &str) {
        if !text.is_empty() {
            self.item_event("response.custom_tool_call_input.delta", |o| {
                _ = o.str("delta", text)
            });
        }
    }

    fn call_end(&mut self, all: &str) {
        if let Some(Item::Call(CallItem {
            kind: CallKind::Custom(input),
            ..
        })) = &mut self.open
        {
            let rest = input.finish(all);
            self.custom_delta(&rest);
        }
        self.close(ItemStatus::Completed);
    }

    fn end(&mut self, reason: FinishReason) {
        for item in std::mem::take(&mut self.service) {
            match item.approval {
                Some(_) => self
                    .output
                    .set(item.index, item.json(ServiceItemState::Cut)),
                None => self.service_end(&item, "the call was not run", true),
            }
        }
        let is_cut_call = self.open.as_ref().is_some_and(Item::is_call);
        if is_cut_call {
            self.abandon();
        } else {
            self.close(if reason.is_whole() {
                ItemStatus::Completed
            } else {
                ItemStatus::Incomplete
            });
        }
        self.finish = Some(reason);
    }

    fn outcome(&self, usage: ReportedUsage) -> ResponseOutcome<'static> {
        match self.finish {
            Some(FinishReason::Length) => ResponseOutcome::Incomplete("max_output_tokens", usage),
            Some(FinishReason::ContentFilter) => {
                ResponseOutcome::Incomplete("content_filter", usage)
            }
            _ => ResponseOutcome::Completed(usage),
        }
    }

    fn last(&mut self, name: &str, outcome: &ResponseOutcome<'_>) {
        self.is_done = true;
        self.lifecycle(name, outcome);
        if !self.keeps_items {
            self.output = OutputList::default();
        }
        self.out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn fail(&mut self, failure: &FailedAnswer) {
        for item in std::mem::take(&mut self.service) {
            let json = item.json(ServiceItemState::Cut);
            self.output.set(item.index, json);
        }
        self.abandon();
        let outcome = ResponseOutcome::from(failure);
        self.last(outcome.event(), &outcome);
    }
}

impl AnswerWriter for ResponsesWriter {
    fn set_id(&mut self, id: &str) {
        self.envelope.set_id(id);
    }

    fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn step(&mut self, choice: u32, step: &Step<'_>, model: &str) {
        // This API has only one choice.
        if self.is_done || (choice > 0 && !matches!(step, Step::Usage(_) | Step::Failed(_))) {
            return;
        }
        match step {
            Step::Begin => {
                self.envelope.set_model(model);
                self.lifecycle("response.created", &ResponseOutcome::InProgress);
                self.lifecycle("response.in_progress", &ResponseOutcome::InProgress);
            }
            Step::Text {
                kind: TextKind::Reasoning,
                text,
                provider,
            } => self.reasoning(text, provider.as_deref()),
            Step::Text { kind, text, .. } => self.message(*kind == TextKind::Refusal, text),
            Step::Call(call) if call.is_own => self.service(call),
            Step::Call(call) => match call.kind {
                CallStepKind::Begin => self.call(call),
                CallStepKind::Arguments => self.arguments(&call.text),
                _ => self.call_end(&call.text),
            },
            Step::Details(place, members) => self.details(*place, members),
            Step::End { reason, .. } => self.end(*reason),
            // openai-node throws an exception for unknown event types.
            Step::Extras(_) => {}
            Step::Usage(usage) => {
                let outcome = self.outcome(*usage);
                self.last(outcome.event(), &outcome);
            }
            Step::Failed(failure) => self.fail(failure),
        }
    }

    /// The items are those of the stream, because both are built from the same steps.
    fn whole(
        &mut self,
        usage: Option<&ReportedUsage>,
        failure: Option<&FailedAnswer>,
        model: &str,
    ) -> Vec<u8> {
        if self.finish.is_none() {
            self.end(FinishReason::Stop);
        }
        self.envelope.set_model(model);
        let outcome = match failure {
            Some(failure) => failure.into(),
            None => self.outcome(usage.copied().unwrap_or_default()),
        };
        let mut out = Vec::new();
        self.envelope
            .write(&outcome, &self.output.items(), &mut out);
        out
    }

    /// Comments do not reset Codex's idle timer (github.com/openai/codex/issues/31539), and
    /// openai-node supports this event.
    fn keep_alive(&mut self) {
        if !self.is_stored {
            return self.event("keepalive", |_| {});
        }
        // The event numbers of a stored response must be the same each time it is written.
        let last = self.sequence.saturating_sub(1);
        frame(&mut self.out, "keepalive", |o| {
            _ = o.int("sequence_number", last)
        });
    }

    fn snapshot(&self, status: RunningStatus) -> Option<Vec<u8>> {
        let mut output = self.output.clone();
        if self.open.as_ref().is_some_and(|item| !item.is_call()) {
            output.set(self.index, self.item_json(ItemStatus::InProgress));
        }
        for item in &self.service {
            output.set(item.index, item.json(ServiceItemState::Open));
        }
        let mut out = Vec::new();
        self.envelope
            .write(&status.into(), &output.items(), &mut out);
        Some(out)
    }
}

/// The output items by index. An open item already has its index.
#[derive(Clone, Debug, Default)]
struct OutputList {
    /// The items as JSON; empty for an item that is not done.
    places: Vec<String>,
}

impl OutputList {
    /// Reserves an index for the next item.
    fn add(&mut self) -> usize {
        self.places.push(String::new());
        self.places.len() - 1
    }

    /// Sets the item at an index.
    fn set(&mut self, place: usize, json: String) {
        self.places[place] = json;
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the finished items, separated by commas.
    fn items(&self) -> Vec<u8> {
        let items = self.places.iter().map(String::as_str);
        let done: Vec<&str> = items.filter(|json| !json.is_empty()).collect();
        done.join(",").into_bytes()
    }
}

/// Converts an index for JSON.
fn at(index: usize) -> i128 {
    i128::try_from(index).unwrap_or_default()
}

/// Adds the missing members of an annotation: xAI only sends the URL, and the AI SDK then rejects
/// the whole response. `end` is the length of the preceding text, in characters.
fn cited(mut annotation: Value, end: usize) -> Value {
    if let Some(members) = annotation.as_object_mut().filter(|members| {
        members
            .get("type")
            .is_some_and(|kind| kind == "url_citation")
    }) {
        for (name, value) in [
            ("start_index", end.into()),
            ("end_index", end.into()),
            ("title", Value::from("")),
        ] {
            if members.get(name).is_none_or(Value::is_null) {
                members.insert(name.to_owned(), value);
            }
        }
    }
    annotation
}

#[cfg(test)]
mod tests {
    use super::cited;
    use serde_json::json;

    #[test]
    fn a_citation_has_all_members_of_its_type_and_others_stay() {
        let bare = json!({"type": "url_citation", "url": "u", "title": null});
        assert_eq!(
            cited(bare, 3),
            json!({"type": "url_citation", "url": "u", "title": "", "start_index": 3, "end_index": 3})
        );
        let whole = json!({"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 2});
        assert_eq!(cited(whole.clone(), 3), whole);
        let file = json!({"type": "file_citation", "file_id": "f"});
        assert_eq!(cited(file.clone(), 3), file);
    }
}
