//! The answer so far, as its parts in order.

use crate::answer::details::{DetailMembers, DetailsPlace, merge};
use crate::answer::failure::FailedAnswer;
use crate::answer::step::{ServiceStep, Step};
use event::payload::FinishReason;
use std::collections::BTreeMap;

/// The bytes that members take, about.
fn size(members: &DetailMembers) -> usize {
    members
        .iter()
        .map(|(name, value)| name.len() + value.to_string().len())
        .sum()
}

/// The members at one place.
pub(crate) fn members_of(
    details: &BTreeMap<DetailsPlace, DetailMembers>,
    place: DetailsPlace,
) -> DetailMembers {
    details.get(&place).cloned().unwrap_or_default()
}

/// The answer so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnswerDraft {
    /// Its choices, in the order of their numbers.
    pub choices: Vec<ChoiceDraft>,
    /// Members of the answer, and the provider's counts.
    pub details: BTreeMap<DetailsPlace, DetailMembers>,
    /// What goes under the key `toolpipe`, as JSON; see [`Step::Extras`].
    pub extras: Option<String>,
    /// Why the answer failed, where its beginning is written nevertheless.
    pub failure: Option<FailedAnswer>,
    /// The bytes that are kept.
    kept: usize,
}

/// One choice of an answer so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChoiceDraft {
    /// Its number: 0, 1, 2 …
    pub number: u32,
    /// Its parts, in order. Two neighbours are never both text.
    pub blocks: Vec<AnswerBlock>,
    /// Members of the choice and of its message.
    pub details: BTreeMap<DetailsPlace, DetailMembers>,
    /// Why it ended, once it has.
    pub finish: Option<FinishReason>,
    /// The provider's word for why; see [`Step::End`].
    pub provider_finish: Option<String>,
}

/// One part of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerBlock {
    /// Reasoning.
    Reasoning {
        /// All of it.
        text: String,
        /// What must go back to the provider: JSON, by the name of the API.
        provider: Option<String>,
    },
    /// Text of the answer.
    Text(String),
    /// A refusal.
    Refusal(String),
    /// Members of the text before them, or an item of the provider's.
    Details(DetailsPlace, DetailMembers),
    /// A call.
    Call {
        /// Its id.
        id: String,
        /// The tool's name.
        name: String,
        /// Its arguments: a JSON object, once it is complete.
        arguments: String,
        /// What must go back to the provider with it: JSON, by the name of the API.
        provider: Option<String>,
        /// Whether all of its arguments have come.
        is_complete: bool,
    },
    /// A step of a call of the service; none of its pieces.
    Service(ServiceBlock),
}

/// A [`ServiceStep`] that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceBlock {
    kind: ServiceBlockKind,
    id: String,
    name: String,
    /// The arguments, or the output.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServiceBlockKind {
    Begin,
    Called,
    Result { is_error: bool },
    Pending,
}

impl ServiceBlock {
    fn of(step: ServiceStep<'_>) -> Option<ServiceBlock> {
        let (kind, id, name, text) = match step {
            ServiceStep::Begin { id, name } => (ServiceBlockKind::Begin, id, name, ""),
            // They come again with the whole call.
            ServiceStep::Arguments { .. } => return None,
            ServiceStep::Called {
                id,
                name,
                arguments,
            } => (ServiceBlockKind::Called, id, name, arguments),
            ServiceStep::Result {
                id,
                output,
                is_error,
            } => (ServiceBlockKind::Result { is_error }, id, "", output),
            ServiceStep::Pending {
                id,
                name,
                arguments,
            } => (ServiceBlockKind::Pending, id, name, arguments),
        };
        let [id, name, text] = [id, name, text].map(str::to_owned);
        Some(ServiceBlock {
            kind,
            id,
            name,
            text,
        })
    }

    /// The step.
    pub(crate) fn step(&self) -> ServiceStep<'_> {
        let ServiceBlock {
            kind,
            id,
            name,
            text,
        } = self;
        match *kind {
            ServiceBlockKind::Begin => ServiceStep::Begin { id, name },
            ServiceBlockKind::Called => ServiceStep::Called {
                id,
                name,
                arguments: text,
            },
            ServiceBlockKind::Result { is_error } => ServiceStep::Result {
                id,
                output: text,
                is_error,
            },
            ServiceBlockKind::Pending => ServiceStep::Pending {
                id,
                name,
                arguments: text,
            },
        }
    }
}

impl AnswerBlock {
    /// The block that a step begins; `None` for one of a call.
    pub(crate) fn of(step: &Step<'_>) -> Option<AnswerBlock> {
        Some(match *step {
            Step::Text(text) => AnswerBlock::Text(text.to_owned()),
            Step::Refusal(text) => AnswerBlock::Refusal(text.to_owned()),
            Step::Reasoning { text, provider } => AnswerBlock::Reasoning {
                text: text.to_owned(),
                provider: provider.map(str::to_owned),
            },
            Step::Details(place, members) => AnswerBlock::Details(place, members.clone()),
            Step::Service(step) => AnswerBlock::Service(ServiceBlock::of(step)?),
            _ => return None,
        })
    }

    /// Takes a further piece of the same text, and returns its bytes; `None` if the step belongs
    /// to another block.
    pub(crate) fn join(&mut self, step: &Step<'_>) -> Option<usize> {
        match (self, step) {
            (AnswerBlock::Text(text), Step::Text(more))
            | (AnswerBlock::Refusal(text), Step::Refusal(more)) => {
                text.push_str(more);
                Some(more.len())
            }
            (
                AnswerBlock::Reasoning {
                    text,
                    provider: data @ None,
                },
                Step::Reasoning {
                    text: more,
                    provider,
                },
            ) => {
                text.push_str(more);
                *data = provider.map(str::to_owned);
                Some(more.len() + provider.map_or(0, str::len))
            }
            _ => None,
        }
    }

    /// The block in one step; `None` for a call.
    pub(crate) fn step(&self) -> Option<Step<'_>> {
        Some(match self {
            AnswerBlock::Text(text) => Step::Text(text),
            AnswerBlock::Refusal(text) => Step::Refusal(text),
            AnswerBlock::Reasoning { text, provider } => Step::Reasoning {
                text,
                provider: provider.as_deref(),
            },
            AnswerBlock::Details(place, members) => Step::Details(*place, members),
            AnswerBlock::Service(block) => Step::Service(block.step()),
            AnswerBlock::Call { .. } => return None,
        })
    }

    /// The bytes of its texts.
    pub(crate) fn bytes(&self) -> usize {
        let data = |data: &Option<String>| data.as_ref().map_or(0, String::len);
        match self {
            AnswerBlock::Reasoning { text, provider } => text.len() + data(provider),
            AnswerBlock::Text(text) | AnswerBlock::Refusal(text) => text.len(),
            AnswerBlock::Details(_, members) => size(members),
            AnswerBlock::Service(ServiceBlock { id, name, text, .. }) => {
                id.len() + name.len() + text.len()
            }
            AnswerBlock::Call {
                id,
                name,
                arguments,
                provider,
                ..
            } => id.len() + name.len() + arguments.len() + data(provider),
        }
    }

    /// The bytes that are kept of it.
    fn kept(&self) -> usize {
        size_of::<AnswerBlock>() + self.bytes()
    }
}

impl AnswerDraft {
    /// The bytes that are kept.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    /// Removes the call `id` of the choice `choice`, which was retracted.
    pub(crate) fn retract(&mut self, choice: u32, id: &str) {
        if let Some(choice) = self.choices.iter_mut().find(|c| c.number == choice) {
            let is_it = |block: &AnswerBlock| matches!(block, AnswerBlock::Call { id: own, .. } if own == id);
            let gone = choice.blocks.extract_if(.., |block| is_it(block));
            self.kept -= gone.map(|block| block.kept()).sum::<usize>();
        }
    }

    /// Ends every choice for this reason, which fits its calls.
    pub(crate) fn end(&mut self, reason: FinishReason) {
        for choice in &mut self.choices {
            let has_calls = choice
                .blocks
                .iter()
                .any(|b| matches!(b, AnswerBlock::Call { .. }));
            choice.finish = Some(match reason {
                FinishReason::Stop | FinishReason::ToolCalls if has_calls => {
                    FinishReason::ToolCalls
                }
                FinishReason::ToolCalls => FinishReason::Stop,
                other => other,
            });
        }
    }

    /// Takes a step of the choice `choice`.
    pub(crate) fn push(&mut self, choice: u32, step: &Step<'_>) {
        if let Step::Extras(json) = step {
            self.extras = Some((*json).to_owned());
            return;
        }
        if let Step::Details(place @ (DetailsPlace::Answer | DetailsPlace::Usage), more) = step {
            self.kept += size(more);
            merge(
                self.details.entry(*place).or_default(),
                (*more).clone(),
                false,
            );
            return;
        }
        let at = self.choices.partition_point(|c| c.number < choice);
        if self.choices.get(at).is_none_or(|c| c.number != choice) {
            self.choices.insert(
                at,
                ChoiceDraft {
                    number: choice,
                    ..ChoiceDraft::default()
                },
            );
            self.kept += size_of::<ChoiceDraft>();
        }
        let ChoiceDraft {
            blocks,
            details,
            finish,
            provider_finish,
            ..
        } = &mut self.choices[at];
        let before = blocks.last().map_or(0, AnswerBlock::kept);
        let count = blocks.len();
        match (step, blocks.last_mut()) {
            (Step::CallBegin { id, name, provider }, _) => blocks.push(AnswerBlock::Call {
                id: (*id).to_owned(),
                name: (*name).to_owned(),
                arguments: String::new(),
                provider: provider.map(str::to_owned),
                is_complete: false,
            }),
            (Step::CallArguments(more), Some(AnswerBlock::Call { arguments, .. })) => {
                arguments.push_str(more)
            }
            (
                Step::CallEnd {
                    arguments: all,
                    provider: data,
                },
                Some(AnswerBlock::Call {
                    arguments,
                    provider,
                    is_complete,
                    ..
                }),
            ) => {
                (*all).clone_into(arguments);
                *provider = data.map(str::to_owned);
                *is_complete = true;
            }
            (Step::Details(place @ (DetailsPlace::Choice | DetailsPlace::Message), more), _) => {
                self.kept += size(more);
                merge(
                    details.entry(*place).or_default(),
                    (*more).clone(),
                    *place == DetailsPlace::Message,
                );
            }
            (Step::End { reason, provider }, _) => {
                *finish = Some(*reason);
                *provider_finish = provider.map(str::to_owned);
            }
            (step, last) => {
                if last.and_then(|last| last.join(step)).is_none() {
                    blocks.extend(AnswerBlock::of(step));
                }
            }
        }
        self.kept += blocks.last().map_or(0, AnswerBlock::kept);
        if blocks.len() == count {
            self.kept -= before;
        }
    }

    /// Gives the steps of the choice `choice` again, each block in one piece, from `Begin` to
    /// `End`.
    pub(crate) fn replay(&self, choice: u32, take: &mut dyn FnMut(&Step<'_>)) {
        for (place, members) in &self.details {
            take(&Step::Details(*place, members));
        }
        take(&Step::Begin);
        let Some(choice) = self.choices.iter().find(|c| c.number == choice) else {
            return take(&Step::End {
                reason: FinishReason::Stop,
                provider: None,
            });
        };
        for (place, members) in &choice.details {
            take(&Step::Details(*place, members));
        }
        for block in &choice.blocks {
            match block {
                AnswerBlock::Call {
                    id,
                    name,
                    arguments,
                    provider,
                    is_complete,
                } => {
                    take(&Step::CallBegin {
                        id,
                        name,
                        provider: provider.as_deref(),
                    });
                    if !arguments.is_empty() {
                        take(&Step::CallArguments(arguments));
                    }
                    if *is_complete {
                        take(&Step::CallEnd {
                            arguments,
                            provider: provider.as_deref(),
                        });
                    }
                }
                block => block.step().iter().for_each(&mut *take),
            }
        }
        take(&Step::End {
            reason: choice.finish.unwrap_or_default(),
            provider: choice.provider_finish.as_deref(),
        });
    }
}
