//! Ethernet frames in L2TPv3's data messages (RFC 3931 §4.1.2.1, RFC 4719), without cookie.

use wire::l2tpv3::{Data, HEADER_LEN, Repr};

use crate::{SealError, Slot};

/// Puts the header of a session, not 0, before the frame in the slot.
///
/// # Errors
/// There is no room before it, or the session is 0. It is then as it was.
pub fn push(slot: &mut Slot<'_>, session: u32) -> Result<(), SealError> {
    slot.grow_front(HEADER_LEN)?;
    if (Repr { session }).emit(slot.frame_mut()).is_err() {
        slot.shrink_front(HEADER_LEN);
        return Err(SealError::TooShort);
    }
    Ok(())
}

/// Takes the header off the message in the slot. Whether it is a data message of this session.
#[must_use]
pub fn pop(slot: &mut Slot<'_>, session: u32) -> bool {
    let is_ours = Data::new_checked(slot.frame()).is_ok_and(|message| message.session() == session);
    if is_ours {
        slot.shrink_front(HEADER_LEN);
    }
    is_ours
}
