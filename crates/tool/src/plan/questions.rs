//! Approvals in the schedule: which calls need approval, the prompts, shown one at a time, and the
//! effect of an answer.

use super::turn::PlannedState;
use super::{Plan, PlanStep, Question};
use crate::approval::{AnswerSource, Class, PersonAnswer, Reason};
use crate::judge::{Consent, ReadyCall, denied, pending, too_many_questions};
use crate::reference::CallHash;
use crate::result::{Status, ToolAnswer};
use event::payload::Verdict;
use std::rc::Rc;

impl Plan {
    /// Handles a call of a complete turn. The call is queued if it needs no approval or has it, and
    /// answered if it was rejected. Otherwise a person is asked, or the call stays pending if
    /// nobody can be asked.
    pub(crate) fn admit(&mut self, key: u64) {
        let Some(item) = self.calls.get(&key) else {
            return;
        };
        let turn = item.turn;
        let started = item.started;
        // Do not ask about a call that a limit rejects anyway.
        if let Some(why) = self
            .history
            .over(&item.call, self.settings.max_repeats, self.now)
        {
            return self.answer(key, Rc::new(ToolAnswer::new(Status::Denied, why)));
        }
        if let Some(reason) = self.decide(key) {
            let most = self.settings.max_questions;
            let turn = self.turn(turn);
            turn.questions += 1;
            if turn.questions > most && !started {
                self.answer(key, Rc::new(too_many_questions(most)));
            } else if turn.questions > most || !self.settings.can_ask {
                self.leave_pending(key, &reason);
            } else {
                self.set(key, PlannedState::Asked);
                self.questions.push_back(key);
            }
        }
    }

    /// Returns the approval state of a call, or `None` if the call is already answered or gone.
    fn consent(&self, key: u64) -> Option<Consent> {
        let item = self.calls.get(&key)?;
        Some(
            self.judge
                .consent(&item.call, item.ready.as_deref()?, item.started),
        )
    }

    /// Carries out the decision about a call if no person is needed. Returns why a person must
    /// decide, or `None` if the call is decided.
    fn decide(&mut self, key: u64) -> Option<Reason> {
        match self.consent(key)? {
            Consent::NotNeeded => self.enqueue(key),
            Consent::Given(source) => self.approve(key, source),
            Consent::Refused(source, answer) => self.refuse(key, source, answer),
            Consent::Ran(answer) => {
                self.approval(key, Verdict::Answered, AnswerSource::Option);
                self.answer(key, Rc::new(answer));
            }
            Consent::Needed(reason) => return Some(reason),
        }
        None
    }

    /// Whether a call starts before the message that commits it: its class is `read` and it needs
    /// no approval.
    pub(crate) fn starts_early(&self, key: u64) -> bool {
        let ready = self.calls.get(&key).and_then(|item| item.ready.as_ref());
        ready.is_some_and(|ready| ready.class == Class::Read)
            && self.consent(key) == Some(Consent::NotNeeded)
    }

    /// Opens the next prompt if none is open. A call that was approved in the meantime needs no
    /// prompt.
    pub(crate) fn ask(&mut self) {
        while self.asked.is_none()
            && let Some(key) = self.questions.pop_front()
        {
            let reason = self.decide(key);
            let Some(item) = self.calls.get(&key) else {
                continue;
            };
            if let (Some(reason), Some(ready)) = (reason, item.ready.clone()) {
                self.asked = Some(key);
                self.steps.push(PlanStep::Ask(Question {
                    key,
                    call: Rc::clone(&item.call),
                    ready,
                    reason,
                }));
            } else {
                self.release(item.turn);
            }
        }
    }

    /// Takes the answer to the prompt for the call `key`, which was shown with the hash `shown`. If
    /// the call has changed since it was shown, the person is asked again.
    pub(crate) fn take_answer(&mut self, key: u64, shown: CallHash, answer: PersonAnswer) {
        if self.asked != Some(key) {
            return; // the question was withdrawn
        }
        self.asked = None;
        let Some(item) = self.calls.get(&key) else {
            return;
        };
        let call = Rc::clone(&item.call);
        let turn = item.turn;
        let started = item.started;
        match self.judge.look(&call, self.history.starts(&call)) {
            Err(refused) => self.answer(key, Rc::new(refused)),
            Ok(ready) if ready.hash != shown => {
                self.calls
                    .entry(key)
                    .and_modify(|item| item.ready = Some(Rc::new(ready)));
                self.questions.push_front(key);
            }
            Ok(ready) => match answer {
                PersonAnswer::Yes => self.approve(key, AnswerSource::Terminal),
                PersonAnswer::Always => {
                    self.judge.rules.always.insert(ready.definition());
                    self.approve(key, AnswerSource::Terminal);
                }
                PersonAnswer::No => self.refuse(key, AnswerSource::Terminal, denied(started, None)),
                PersonAnswer::Nothing => self.leave_unanswered(key),
            },
        }
        self.ask();
        self.release(turn);
    }

    /// Withdraws the prompt for a call, whether it is open or still queued.
    pub(crate) fn withdraw(&mut self, key: u64) {
        self.questions.retain(|waiting| *waiting != key);
        if self.asked == Some(key) {
            self.asked = None;
            self.steps.push(PlanStep::Withdraw { key });
            self.ask();
        }
    }

    /// Withdraws all prompts. The calls stay pending, so the next run asks again.
    pub(crate) fn withdraw_all(&mut self) {
        let mut all: Vec<_> = std::mem::take(&mut self.questions).into();
        if let Some(key) = self.asked.take() {
            self.steps.push(PlanStep::Withdraw { key });
            all.insert(0, key);
        }
        all.into_iter().for_each(|key| self.leave_unanswered(key));
    }

    fn approve(&mut self, key: u64, source: AnswerSource) {
        if let Some((call, ready)) = self.approval(key, Verdict::Approved, source) {
            self.judge.rules.approved.remove(&ready.reference(&call)); // it counts for one start
            self.enqueue(key);
        }
    }

    fn refuse(&mut self, key: u64, source: AnswerSource, answer: ToolAnswer) {
        self.approval(key, Verdict::Denied, source);
        self.answer(key, Rc::new(answer));
    }

    /// Emits the step that writes the `approval` event. Returns the approved call and its work.
    fn approval(
        &mut self,
        key: u64,
        verdict: Verdict,
        source: AnswerSource,
    ) -> Option<(Rc<crate::RequestedCall>, Rc<ReadyCall>)> {
        let item = self.calls.get(&key)?;
        let call = Rc::clone(&item.call);
        let ready = item.ready.clone()?;
        let mut reason = None;
        if source == AnswerSource::Option {
            let reference = ready.reference(&call);
            reason = self.judge.rules.reasons.get(&reference).cloned();
            self.used_answers.insert(reference);
        }
        self.steps.push(PlanStep::Approval {
            call: Rc::clone(&call),
            ready: Rc::clone(&ready),
            verdict,
            source,
            reason,
        });
        Some((call, ready))
    }

    /// Leaves a call pending for its current reason.
    fn leave_unanswered(&mut self, key: u64) {
        match (self.consent(key), self.calls.get(&key)) {
            (Some(Consent::Needed(reason)), _) => self.leave_pending(key, &reason),
            (Some(_), Some(item)) => {
                let class = item.ready.as_ref().map(|ready| ready.class);
                self.leave_pending(key, &Reason::Class(class.unwrap_or_default()));
            }
            _ => {}
        }
    }

    fn leave_pending(&mut self, key: u64, reason: &Reason) {
        if let Some(item) = self.calls.get(&key)
            && let Some(ready) = &item.ready
        {
            let answer = pending(reason, &ready.reference(&item.call), &self.judge.rules);
            self.answer(key, Rc::new(answer));
        }
    }
}
