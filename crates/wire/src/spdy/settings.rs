//! The entries of SETTINGS (§2.6.4).

use super::FORMAT;
use crate::{Error, Reader};

/// What a setting says; 24 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SettingId(pub u32);

impl SettingId {
    /// Expected upload bandwidth in kB/s.
    pub const UPLOAD_BANDWIDTH: SettingId = SettingId(1);
    /// Expected download bandwidth in kB/s.
    pub const DOWNLOAD_BANDWIDTH: SettingId = SettingId(2);
    /// Expected round-trip time in ms.
    pub const ROUND_TRIP_TIME: SettingId = SettingId(3);
    /// Streams that the receiver of the setting may have open at once.
    pub const MAX_CONCURRENT_STREAMS: SettingId = SettingId(4);
    /// TCP's congestion window.
    pub const CURRENT_CWND: SettingId = SettingId(5);
    /// Bytes retransmitted per byte sent.
    pub const DOWNLOAD_RETRANS_RATE: SettingId = SettingId(6);
    /// The window in bytes that streams begin with.
    pub const INITIAL_WINDOW_SIZE: SettingId = SettingId(7);
    /// Size of the vector of client certificates.
    pub const CLIENT_CERTIFICATE_VECTOR_SIZE: SettingId = SettingId(8);
}

/// An entry of a SETTINGS frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// What it says.
    pub id: SettingId,
    /// Its value, in the unit of the setting.
    pub value: u32,
    /// The server asks the client to persist it (FLAG_SETTINGS_PERSIST_VALUE).
    pub persist: bool,
    /// The client returns what it has persisted (FLAG_SETTINGS_PERSISTED).
    pub persisted: bool,
}

impl Setting {
    /// Bytes of an entry.
    pub const LEN: usize = 8;

    /// An entry without flags.
    #[must_use]
    pub const fn new(id: SettingId, value: u32) -> Self {
        Setting { id, value, persist: false, persisted: false }
    }

    fn parse(bytes: &[u8; Setting::LEN]) -> Self {
        let [flags, a, b, c, value @ ..] = *bytes;
        Setting {
            id: SettingId(u32::from_be_bytes([0, a, b, c])),
            value: u32::from_be_bytes(value),
            persist: flags & 1 != 0,
            persisted: flags & 2 != 0,
        }
    }

    /// The entry's bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Setting::LEN] {
        let flags = self.persist as u8 | (self.persisted as u8) << 1;
        let [_, a, b, c] = self.id.0.to_be_bytes();
        let [d, e, f, g] = self.value.to_be_bytes();
        [flags, a, b, c, d, e, f, g]
    }
}

/// The entries of a SETTINGS frame. Reserved flags are passed over, when two are compared too.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    entries: &'a [[u8; Setting::LEN]],
}

impl PartialEq for Settings<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Settings<'_> {}

impl<'a> Settings<'a> {
    /// The entries in a frame's data: their number, and as many.
    pub(super) fn new_checked(data: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, data);
        let count = reader.u32()?;
        let (entries, rest) = reader.rest().as_chunks();
        if !rest.is_empty() || u32::try_from(entries.len()) != Ok(count) {
            return Err(Error::malformed(
                FORMAT,
                "a SETTINGS of another length than its number of entries",
            ));
        }
        Ok(Settings { entries })
    }

    /// The entries in their order, duplicates included. Of several with one id only the first counts.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Setting> + 'a {
        self.entries.iter().map(Setting::parse)
    }
}
