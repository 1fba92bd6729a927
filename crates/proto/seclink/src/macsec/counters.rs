//! The standard's counters (IEEE 802.1AE-2018 §10.7), named as they are there.

/// Of a transmitting SecY (§10.7.18 and following).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransmitCounters {
    /// OutPktsUntagged: sent without protection.
    pub untagged: u64,
    /// OutPktsProtected: sent with integrity alone.
    pub protected: u64,
    /// OutPktsEncrypted: sent encrypted.
    pub encrypted: u64,
    /// OutOctetsProtected: bytes of user data of such frames.
    pub octets_protected: u64,
    /// OutOctetsEncrypted: bytes of user data of such frames.
    pub octets_encrypted: u64,
}

/// Of a receiving SecY (§10.7.9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    /// InPktsUntagged: without a tag, delivered.
    pub untagged: u64,
    /// InPktsNoTag: without a tag, dropped since validation is strict.
    pub no_tag: u64,
    /// InPktsBadTag: with a tag that is none, or the number 0, or too short.
    pub bad_tag: u64,
    /// InPktsNoSA: of no channel or association that is known, delivered (InPktsUnknownSCI and
    /// InPktsUnusedSA in 802.1AE-2006).
    pub no_association: u64,
    /// InPktsNoSAError: the same, dropped (InPktsNoSCI and InPktsNotUsingSA in 802.1AE-2006).
    pub no_association_error: u64,
    /// InOctetsValidated: bytes of user data whose integrity alone was checked.
    pub octets_validated: u64,
    /// InOctetsDecrypted: bytes of user data that were decrypted.
    pub octets_decrypted: u64,
}

/// Of a receiving secure channel (§10.7.9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// InPktsOK: valid, within the window.
    pub ok: u64,
    /// InPktsUnchecked: delivered, validation being disabled.
    pub unchecked: u64,
    /// InPktsDelayed: valid but late, delivered without replay protection.
    pub delayed: u64,
    /// InPktsLate: late, dropped by replay protection.
    pub late: u64,
    /// InPktsInvalid: not valid, delivered since validation only checks.
    pub invalid: u64,
    /// InPktsNotValid: not valid, dropped.
    pub not_valid: u64,
}
