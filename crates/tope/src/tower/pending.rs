//! A request that waits before it is let in or refused.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Request;

use super::after::After;
use super::layer::Sleep;
use crate::limiter::{Judgement, Judging, Patience, Place, Ticket};
use crate::observe::Observe;
use crate::policy::{Charges, Policy};
use crate::store::{Answer, Store, StoreError};

/// A request that waits: for the store, for others to be decided, or in line.
pub(super) struct Pending<T, S: Store, B> {
    turn: Turn<S>,
    /// Where it may have to wait for more than the store.
    charges: Option<Box<Charges>>,
    /// With which it was judged, where others held units that it wanted.
    ticket: Option<Ticket>,
    /// Its place in line.
    place: Option<Place>,
    pub(super) request: Option<Request<B>>,
    pub(super) inner: T,
    pub(super) policy: Arc<Policy>,
    /// It has waited for more than the store.
    pub(super) waited: bool,
}

/// What it waits for.
pub(super) enum Turn<S: Store> {
    /// The store.
    Judging(Judging<S::Charging>),
    /// Others to be decided, who hold the units that it wants: its ticket.
    Waiting,
    /// To come to the front of its line, where it waits until this moment.
    InLine { sleep: Sleep, until_us: u64 },
    /// Nothing: it was judged already.
    Judged(Option<Box<Result<Judgement, StoreError>>>),
}

impl<T, S: Store, B> Pending<T, S, B> {
    /// A request at this turn, which goes to `inner` when it may.
    pub(super) fn new(
        turn: Turn<S>,
        charges: Option<Box<Charges>>,
        place: Option<Place>,
        request: Request<B>,
        inner: T,
        policy: Arc<Policy>,
    ) -> Self {
        Self { turn, charges, ticket: None, place, request: Some(request), inner, policy, waited: false }
    }

    /// The judgement that stands.
    pub(super) fn poll<O: Observe>(
        &mut self,
        after: &mut After<S, O>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Judgement, StoreError>> {
        loop {
            let judged = match &mut self.turn {
                Turn::Judging(judging) => ready!(Pin::new(judging).poll(cx)),
                Turn::Judged(judged) => *judged.take().expect("a judgement is looked at once"),
                Turn::Waiting => {
                    ready!(Pin::new(self.ticket.as_mut().expect("who waits has a ticket")).poll(cx));
                    self.turn = self.judge(after);
                    continue;
                }
                Turn::InLine { sleep, until_us } => {
                    let place = self.place.as_ref().expect("who is in line has a place");
                    let over = sleep.as_mut().poll(cx).is_ready();
                    let called = place.poll_called(cx).is_ready();
                    if !(over || called) {
                        return Poll::Pending;
                    }
                    let until_us = *until_us;
                    self.turn =
                        if called || place.is_first() { self.judge(after) } else { self.give_up(after, until_us) };
                    continue;
                }
            };
            match self.next(after, &judged) {
                Some(turn) => self.turn = turn,
                None => return Poll::Ready(judged),
            }
            self.waited = true;
            // If its client leaves now, it was refused.
            after.judgement = judged.ok();
        }
    }

    /// Asks the store once more.
    fn judge<O: Observe>(&self, after: &After<S, O>) -> Turn<S> {
        let charges = self.charges.as_ref().expect("who waits has charges");
        let now_us = after.shared.clock.now_us();
        turn(after.shared.limiter.judge_charges(Arc::clone(&self.policy), charges, now_us))
    }

    /// The time is over, and others are still before it.
    fn give_up<O: Observe>(&mut self, after: &After<S, O>, until_us: u64) -> Turn<S> {
        let charges = self.charges.take().expect("who waits has charges");
        let now_us = after.shared.clock.now_us();
        let row = after.shared.limiter.busy(&self.policy, &charges).map_or(0, |(row, _)| row);
        let deferred = (row, now_us.saturating_sub(until_us));
        turn(after.shared.limiter.defer(Arc::clone(&self.policy), &charges, deferred, now_us))
    }

    /// What to wait for after a judgement; nothing when it stands.
    fn next<O: Observe>(&mut self, after: &After<S, O>, judged: &Result<Judgement, StoreError>) -> Option<Turn<S>> {
        let judgement = judged.as_ref().ok().filter(|_| self.charges.is_some())?;
        if judgement.allowed() {
            self.ticket.as_mut().map(Ticket::take);
            self.place.as_mut().map(Place::admit);
            return None;
        }
        if let (Some(timer), Some(turn)) = (&after.shared.timer, self.line_up(after, judgement)) {
            return Some(match turn {
                Ok((sleep_us, until_us)) => Turn::InLine { sleep: timer.sleep_us(sleep_us), until_us },
                Err(turn) => turn,
            });
        }
        let next = after.shared.limiter.queue(judgement, self.charges.as_ref()?, self.ticket.as_ref());
        // Who is refused for good lets the next one in.
        if let (Some(ticket), true) = (&mut self.ticket, next.is_some()) {
            ticket.take();
        }
        self.ticket = Some(next?);
        Some(Turn::Waiting)
    }

    /// Has it wait in line, if its limits let it: for how long before it tries again, and until when at most. Or how it is
    /// refused because too many are before it.
    fn line_up<O: Observe>(
        &mut self,
        after: &After<S, O>,
        judgement: &Judgement,
    ) -> Option<Result<(u64, u64), Turn<S>>> {
        let limiter = &after.shared.limiter;
        let (charges, arrived_us, now_us) = (self.charges.as_ref()?, after.moment.unix_us, after.shared.clock.now_us());
        let Patience { row, wait_us, until_us } = judgement.patience(arrived_us, now_us)?;
        if self.place.is_none() {
            match limiter.join(&self.policy, charges, (row, wait_us), now_us, until_us) {
                Ok(place) => self.place = Some(place),
                Err(wait_us) => {
                    // The line is too long.
                    let (policy, charges) = (Arc::clone(&self.policy), self.charges.take()?);
                    return Some(Err(turn(limiter.defer(policy, &charges, (row, wait_us), now_us))));
                }
            }
        }
        let first = self.place.as_ref().is_some_and(Place::is_first);
        let most_us = until_us.saturating_sub(now_us);
        // The first tries again when there should be room; where nobody knows when, it is called.
        Some(Ok((if first && wait_us > 0 { wait_us.min(most_us) } else { most_us }, until_us)))
    }
}

/// The turn that follows when the store was asked.
pub(super) fn turn<S: Store>(answer: Answer<Result<Judgement, StoreError>, Judging<S::Charging>>) -> Turn<S> {
    match answer {
        Answer::Ready(judged) => Turn::Judged(Some(Box::new(judged))),
        Answer::Pending(judging) => Turn::Judging(judging),
    }
}
