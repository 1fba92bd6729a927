//! What servers push during a load: kept until the load has said what becomes of it, then followed.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use page::{ConnectionId, Event, ObjectId, PushId};
use tokio::sync::mpsc;
use web::{Push, What};

use crate::drive::{Told, head_of};

/// Pushes of a load that wait for its word. Dropped, a push is cancelled. The limits of each connection
/// bound how many there are.
#[derive(Clone, Default)]
pub(crate) struct Pushes(Rc<Waiting>);

#[derive(Default)]
struct Waiting {
    next: Cell<u64>,
    pushes: RefCell<HashMap<PushId, Push>>,
}

impl Pushes {
    /// Keeps one, and gives what the load is to be told.
    pub(crate) fn put(&self, push: Push, connection: ConnectionId) -> Event {
        let id = PushId(self.0.next.get());
        self.0.next.set(id.0 + 1);
        let (host, path) = (push.authority().into(), push.path().into());
        self.0.pushes.borrow_mut().insert(id, push);
        Event::Pushed { connection, push: id, host, path }
    }

    /// Gives it back.
    pub(crate) fn take(&self, id: PushId) -> Option<Push> {
        self.0.pushes.borrow_mut().remove(&id)
    }
}

/// Tells what comes of a push, as of the object that it is. Another length than the object's is a failure.
pub(crate) async fn follow(push: Push, object: ObjectId, bytes: u64, sender: &mpsc::Sender<Told>) {
    let mut exchange = push.into_exchange();
    let mut received = 0;
    while let Some(web::Event { at, what }) = exchange.next().await {
        let event = match what {
            What::Head(head) => head_of(object, &head),
            What::Data(more) => {
                received += more;
                Event::Body { object, bytes: more }
            }
            What::End if received == bytes => Event::Complete { object, reusable: true },
            // That of its connection is told by who watches it.
            What::End | What::Failed(_) => Event::Failed { object, refused: false },
            What::Sent | What::Uploaded(_) | What::Pushed(_) => continue,
        };
        if sender.send((at, event)).await.is_err() {
            return;
        }
    }
}
