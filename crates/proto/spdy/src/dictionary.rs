//! The dictionary that header compression begins with (§2.6.10.1): names and a few values, each behind
//! its length as in a header block, then values without.

/// Bytes of the dictionary.
const LEN: usize = 1423;

/// Its Adler-32, by which a zlib stream asks for it (RFC 1950 §2.2).
pub(crate) const ADLER_32: u32 = 0xe3c6_a7c2;

#[rustfmt::skip]
const WITH_LENGTH: &[&str] = &[
    "options", "head", "post", "put", "delete", "trace", "accept", "accept-charset",
    "accept-encoding", "accept-language", "accept-ranges", "age", "allow", "authorization",
    "cache-control", "connection", "content-base", "content-encoding", "content-language",
    "content-length", "content-location", "content-md5", "content-range", "content-type", "date",
    "etag", "expect", "expires", "from", "host", "if-match", "if-modified-since", "if-none-match",
    "if-range", "if-unmodified-since", "last-modified", "location", "max-forwards", "pragma",
    "proxy-authenticate", "proxy-authorization", "range", "referer", "retry-after", "server", "te",
    "trailer", "transfer-encoding", "upgrade", "user-agent", "vary", "via", "warning",
    "www-authenticate", "method", "get", "status", "200 OK", "version", "HTTP/1.1", "url", "public",
    "set-cookie", "keep-alive", "origin",
];

#[rustfmt::skip]
const WITHOUT: &[&str] = &[
    "100", "101", "201", "202", "205", "206", "300", "302", "303", "304", "305", "306", "307",
    "402", "405", "406", "407", "408", "409", "410", "411", "412", "413", "414", "415", "416",
    "417", "502", "504", "505", "203 Non-Authoritative Information", "204 No Content",
    "301 Moved Permanently", "400 Bad Request", "401 Unauthorized", "403 Forbidden",
    "404 Not Found", "500 Internal Server Error", "501 Not Implemented", "503 Service Unavailable",
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec", " 00:00:00",
    " Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT", "chunked,text/html,image/png,image/jpg,image/gif,",
    "application/xml,application/xhtml+xml,text/plain,text/javascript,public", "private",
    "max-age=", "gzip,deflate,sdch", "charset=utf-8", "charset=iso-8859-1,utf-,*,enq=0.",
];

/// The dictionary that header compression begins with (§2.6.10.1).
pub static DICTIONARY: [u8; LEN] = assemble();

// Evaluated by the compiler, which an index beyond the end would stop.
#[allow(clippy::indexing_slicing)]
const fn assemble() -> [u8; LEN] {
    let mut bytes = [0; LEN];
    let mut end = 0;
    let mut word = 0;
    while word < WITH_LENGTH.len() {
        let text = WITH_LENGTH[word].as_bytes();
        // The lengths are below 256: three zeros, and the last byte.
        bytes[end + 3] = text.len() as u8;
        end = append(&mut bytes, end + 4, text);
        word += 1;
    }
    word = 0;
    while word < WITHOUT.len() {
        end = append(&mut bytes, end, WITHOUT[word].as_bytes());
        word += 1;
    }
    assert!(end == LEN, "the dictionary has another length");
    bytes
}

#[allow(clippy::indexing_slicing)]
const fn append(bytes: &mut [u8; LEN], at: usize, text: &[u8]) -> usize {
    let mut index = 0;
    while index < text.len() {
        bytes[at + index] = text[index];
        index += 1;
    }
    at + text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_that_spdy_streams_ask_for() {
        // RFC 1950 §8.2.
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in DICTIONARY {
            a = (a + u32::from(byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        assert_eq!(b << 16 | a, ADLER_32);
    }
}
