//! Talking to the counting object from within the process.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::symbols::Symbols;

/// Whose locks a thread takes at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Side {
    /// Nobody's: not counted.
    None = 0,
    /// The server's locks.
    Server = 1,
    /// The client's locks.
    Client = 2,
}

/// What was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A reader-writer lock, to read.
    Read,
    /// A reader-writer lock, to write.
    Write,
    /// A mutex of the C library.
    Mutex,
    /// A spin lock.
    Spin,
}

impl Kind {
    fn of(number: u32) -> Option<Self> {
        [Kind::Read, Kind::Write, Kind::Mutex, Kind::Spin].get(number as usize).copied()
    }
}

/// Where locks were taken: the function that wanted one, not the library's wrappers around the C
/// library's. A function whose last act is the call (a tail call) leaves no trace: its caller stands
/// for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The function, or the object and an offset in it where there is no symbol.
    pub symbol: String,
    /// The file that it is in.
    pub object: String,
    /// What was taken.
    pub kind: Kind,
    /// How often one was taken there.
    pub count: u64,
}

/// Locks taken. An acquisition counts when it succeeds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Reader-writer locks taken to read.
    pub read: u64,
    /// Reader-writer locks taken to write.
    pub write: u64,
    /// How often a mutex was taken.
    pub mutex: u64,
    /// How often a spin lock was taken.
    pub spin: u64,
    /// Of all these, how many found the lock held and waited.
    pub contended: u64,
    /// How long those waited in all, in nanoseconds.
    pub wait_ns: u64,
    /// Acquisitions that are counted above but whose site found no more room.
    pub lost_sites: u64,
    /// Sites, the most frequent first.
    pub sites: Vec<Site>,
}

impl Counts {
    /// Acquisitions of all kinds, contended or not.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.read + self.write + self.mutex + self.spin
    }

    /// What was counted after `earlier`, which the same counter gave.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut before: HashMap<(&str, &str, Kind), u64> = HashMap::new();
        for site in &earlier.sites {
            *before.entry((&site.symbol, &site.object, site.kind)).or_default() += site.count;
        }
        let mut sites: Vec<Site> = self
            .sites
            .iter()
            .map(|site| {
                let past = before.get(&(site.symbol.as_str(), site.object.as_str(), site.kind));
                Site {
                    count: site.count.saturating_sub(past.copied().unwrap_or(0)),
                    ..site.clone()
                }
            })
            .filter(|site| site.count > 0)
            .collect();
        order(&mut sites);
        Counts {
            read: self.read.saturating_sub(earlier.read),
            write: self.write.saturating_sub(earlier.write),
            mutex: self.mutex.saturating_sub(earlier.mutex),
            spin: self.spin.saturating_sub(earlier.spin),
            contended: self.contended.saturating_sub(earlier.contended),
            wait_ns: self.wait_ns.saturating_sub(earlier.wait_ns),
            lost_sites: self.lost_sites.saturating_sub(earlier.lost_sites),
            sites,
        }
    }
}

fn order(sites: &mut [Site]) {
    sites.sort_by(|a, b| {
        b.count.cmp(&a.count).then_with(|| (&a.symbol, a.kind).cmp(&(&b.symbol, b.kind)))
    });
}

/// As `struct tally` in interpose/count.c.
#[repr(C)]
#[derive(Default)]
struct Tally {
    taken: [u64; 4],
    contended: u64,
    wait_ns: u64,
    lost_sites: u64,
}

const DEPTH: usize = 7;

/// As `struct site` there.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawSite {
    count: u64,
    kind: u32,
    depth: u32,
    frames: [u64; DEPTH],
}

/// The counting object that this process was started with.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    side: unsafe extern "C" fn(i32),
    read: unsafe extern "C" fn(i32, *mut Tally) -> i32,
    sites: unsafe extern "C" fn(i32, *mut RawSite, usize) -> usize,
}

/// The address of an exported function of a preloaded object.
fn find(name: &std::ffi::CStr) -> Option<std::ptr::NonNull<libc::c_void>> {
    // SAFETY: the name is ended by a zero byte, and RTLD_DEFAULT needs no handle.
    std::ptr::NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

impl Counter {
    /// The counter, if [`crate::Object::Count`] is preloaded. To be looked for once.
    #[must_use]
    pub fn find() -> Option<Self> {
        let side = find(c"wiretax_locks_side")?.as_ptr();
        let read = find(c"wiretax_locks_read")?.as_ptr();
        let sites = find(c"wiretax_locks_sites")?.as_ptr();
        // SAFETY: only our object exports these names, and there they have these types.
        unsafe {
            Some(Self {
                side: std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn(i32)>(side),
                read: std::mem::transmute::<
                    *mut libc::c_void,
                    unsafe extern "C" fn(i32, *mut Tally) -> i32,
                >(read),
                sites: std::mem::transmute::<
                    *mut libc::c_void,
                    unsafe extern "C" fn(i32, *mut RawSite, usize) -> usize,
                >(sites),
            })
        }
    }

    /// From here on the calling thread's locks are counted for `side`. A call and a store.
    #[inline]
    pub fn side(self, side: Side) {
        // SAFETY: stores a number in a word of the calling thread; any number will do.
        unsafe { (self.side)(side as i32) }
    }

    /// The sums of all threads without their sites, which costs little. Exact while none counts.
    #[must_use]
    pub fn sums(self, side: Side) -> Counts {
        let mut tally = Tally::default();
        // SAFETY: the object writes one tally, of the same layout, or nothing.
        if unsafe { (self.read)(side as i32, &raw mut tally) } != 0 {
            return Counts::default();
        }
        let [read, write, mutex, spin] = tally.taken;
        Counts {
            read,
            write,
            mutex,
            spin,
            contended: tally.contended,
            wait_ns: tally.wait_ns,
            lost_sites: tally.lost_sites,
            sites: Vec::new(),
        }
    }

    /// The sums of all threads with their sites, for which the symbols of the loaded files are read
    /// (while the library is still loaded). Exact while no thread counts.
    #[must_use]
    pub fn read(self, side: Side) -> Counts {
        let mut symbols = Symbols::of_this_process();
        let mut sums: HashMap<(String, String, Kind), u64> = HashMap::new();
        for raw in self.raw_sites(side) {
            let Some(kind) = Kind::of(raw.kind) else { continue };
            let frames = raw.frames.get(..raw.depth as usize).unwrap_or(&raw.frames);
            let (symbol, object) = symbols.site(frames);
            *sums.entry((symbol, object, kind)).or_default() += raw.count;
        }
        let mut sites: Vec<Site> = sums
            .into_iter()
            .map(|((symbol, object, kind), count)| Site { symbol, object, kind, count })
            .collect();
        order(&mut sites);
        Counts { sites, ..self.sums(side) }
    }

    fn raw_sites(self, side: Side) -> Vec<RawSite> {
        // SAFETY: with no room nothing is written.
        let there = unsafe { (self.sites)(side as i32, std::ptr::null_mut(), 0) };
        // Other threads may find more meanwhile.
        let mut sites = vec![RawSite::default(); there + 64];
        // SAFETY: the object writes at most as many sites, of the same layout, as there is room.
        let found = unsafe { (self.sites)(side as i32, sites.as_mut_ptr(), sites.len()) };
        sites.truncate(found);
        sites
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(symbol: &str, count: u64) -> Site {
        Site { symbol: symbol.into(), object: "o".into(), kind: Kind::Read, count }
    }

    #[test]
    fn what_was_counted_before_is_taken_off() {
        let first = Counts { read: 3, mutex: 1, sites: vec![site("a", 3)], ..Counts::default() };
        let second = Counts {
            read: 10,
            mutex: 1,
            sites: vec![site("a", 5), site("b", 5)],
            ..Counts::default()
        };
        let between = second.since(&first);
        assert_eq!((between.read, between.mutex, between.total()), (7, 0, 7));
        assert_eq!(between.sites, [site("b", 5), site("a", 2)]);
        assert_eq!(second.since(&second), Counts::default());
    }

    #[test]
    fn counts_are_read_back_as_written() {
        let counts = Counts { write: 2, sites: vec![site("f", 2)], ..Counts::default() };
        let text = serde_json::to_string(&counts).unwrap();
        assert!(text.contains(r#""kind":"read""#), "{text}");
        assert_eq!(serde_json::from_str::<Counts>(&text).unwrap(), counts);
    }
}
