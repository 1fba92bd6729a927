//! Frames of key agreement: Ethernet, EAPOL, parameter sets, ICV (IEEE 802.1X-2020 §11).

use wire::ethernet::{Address, EtherType, Frame, HEADER_LEN};
use wire::mka::{
    DESTINATION, EAPOL_HEADER_LEN, EAPOL_MKA, Eapol, ICV_LEN, Packet, Repr, emit_eapol,
};

use super::Rejected;
use super::keys::Keys;

/// A packet as a whole frame, with its ICV.
pub(super) fn emit(keys: &Keys, repr: &Repr<'_>) -> Option<Vec<u8>> {
    let [a, b, c, d, e, f, _, _] = repr.basic.sci.0;
    let header = wire::ethernet::Repr {
        destination: DESTINATION,
        source: Address([a, b, c, d, e, f]),
        ether_type: EtherType::EAPOL,
    };
    let body = repr.buffer_len().checked_add(ICV_LEN)?;
    let mut frame = vec![0; HEADER_LEN + EAPOL_HEADER_LEN + repr.buffer_len()];
    header.emit(&mut frame).ok()?;
    emit_eapol(frame.get_mut(HEADER_LEN..)?, EAPOL_MKA, body).ok()?;
    repr.emit(frame.get_mut(HEADER_LEN + EAPOL_HEADER_LEN..)?).ok()?;
    frame.extend(keys.icv(&frame)?);
    Some(frame)
}

/// The packet of key agreement in a frame, and the part of the frame that its ICV covers.
pub(super) fn parse(frame: &[u8]) -> Result<(Packet<'_>, &[u8]), Rejected> {
    let ethernet = Frame::new_checked(frame).map_err(Rejected::Malformed)?;
    if ethernet.ether_type() != EtherType::EAPOL {
        return Err(Rejected::NotMka);
    }
    let eapol = Eapol::new_checked(ethernet.payload()).map_err(Rejected::Malformed)?;
    if eapol.kind() != EAPOL_MKA {
        return Err(Rejected::NotMka);
    }
    let packet = Packet::new_checked(eapol.body(), ICV_LEN).map_err(Rejected::Malformed)?;
    let end = HEADER_LEN + EAPOL_HEADER_LEN + eapol.body().len().saturating_sub(ICV_LEN);
    let covered = frame.get(..end).ok_or(Rejected::NotMka)?;
    Ok((packet, covered))
}
