//! A request's receipt on its way: as it stands, or once all its ticks are final.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use joulebook_core::{Fault, receipt::Receipt};

use super::{Shared, cell::Cell};
use crate::{clock::now_ns, deadline};

/// A receipt that may get sharper.
#[derive(Clone, Debug)]
#[must_use = "a receipt is asked for with now(), settle() or .await"]
pub struct PendingReceipt {
    of: Option<(Arc<Shared>, Arc<Cell>)>,
    asked_ns: u64,
}

impl PendingReceipt {
    pub(super) fn of(of: Option<(&Arc<Shared>, &Arc<Cell>)>) -> Self {
        let of = of.map(|(shared, cell)| (Arc::clone(shared), Arc::clone(cell)));
        Self { of, asked_ns: 0 }
    }

    /// The request's number in the books; none when it is not in them.
    pub fn id(&self) -> Option<u64> {
        self.of.as_ref().map(|(_, cell)| cell.id)
    }

    /// The receipt as it stands: waits for the owner's answer alone, not for the cards.
    pub fn now(&self) -> Receipt {
        let Some((shared, cell)) = &self.of else { return Receipt::unknown(0, Fault::Absent) };
        if let Some(receipt) = cell.receipt() {
            return Receipt::clone(&receipt);
        }
        let receipt = shared.receipt(cell.id);
        receipt.unwrap_or_else(|| Receipt::unknown(cell.id, Fault::Timeout))
    }

    /// The final receipt, or the one that stands when `timeout` passes before it.
    pub fn settle(&self, timeout: Duration) -> Receipt {
        if let Some((_, cell)) = &self.of {
            cell.signal.wait(timeout, || cell.receipt().is_some());
        }
        self.now()
    }
}

impl Future for PendingReceipt {
    type Output = Receipt;

    /// Ready with the final receipt; with the one that stands, should the owner have ended.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Receipt> {
        let now = now_ns();
        if self.asked_ns == 0 {
            self.asked_ns = now;
        }
        let Some((shared, cell)) = &self.of else { return Poll::Ready(self.now()) };
        let until_ns = self.asked_ns.saturating_add(shared.longest_wait_ns);
        if cell.receipt().is_some() || now >= until_ns {
            return Poll::Ready(self.now());
        }
        cell.signal.register(context.waker());
        deadline::wake_at(until_ns, context.waker());
        if cell.receipt().is_some() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
