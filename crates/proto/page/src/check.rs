//! Whether hosts and objects make a page.

use std::collections::HashMap;

use crate::error::PageError;
use crate::page::{Object, ObjectId, Page};

/// Whether these can be a page's name and its hosts' names.
pub(crate) fn names(name: &str, hosts: &[String]) -> Result<(), PageError> {
    if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
        return Err(PageError::BadName { name: short(name) });
    }
    if hosts.len() > Page::MAX_HOSTS {
        return Err(PageError::TooManyHosts { count: hosts.len() });
    }
    let mut seen = std::collections::HashSet::new();
    for host in hosts {
        if !is_host(host) {
            return Err(PageError::BadHost { host: short(host) });
        }
        if !seen.insert(host) {
            return Err(PageError::SameHost { host: host.clone() });
        }
    }
    Ok(())
}

/// A name as in RFC 1123 §2.1, in small letters: labels of letters, digits and hyphens.
fn is_host(host: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= 253 && host.split('.').all(label)
}

/// A text for a message.
pub(crate) fn short(text: &str) -> String {
    fault::excerpt(text, 60)
}

/// Whether each object is one, and all hosts are used.
pub(crate) fn objects(hosts: &[String], objects: &[Object]) -> Result<(), PageError> {
    if objects.len() > Page::MAX_OBJECTS {
        return Err(PageError::TooManyObjects { count: objects.len() });
    }
    let mut used = vec![false; hosts.len()];
    let mut urls = HashMap::new();
    let mut bytes = 0u64;
    for (at, object) in objects.iter().enumerate() {
        match used.get_mut(object.host.index()) {
            Some(used) => *used = true,
            None => return Err(PageError::UnknownHost { object: at }),
        }
        each(at, object)?;
        if let Some(other) = urls.insert((object.host, object.path.as_str()), at) {
            return Err(PageError::SameUrl { object: at, other });
        }
        bytes = bytes.saturating_add(object.body.count());
        bytes = bytes.saturating_add(object.upload.map_or(0, |upload| upload.count()));
    }
    if bytes > Page::MAX_BYTES {
        return Err(PageError::TooLarge { bytes });
    }
    match used.iter().zip(hosts).find(|(used, _)| !**used) {
        Some((_, host)) => Err(PageError::UnusedHost { host: host.clone() }),
        None => Ok(()),
    }
}

fn each(at: usize, object: &Object) -> Result<(), PageError> {
    let path = object.path.as_bytes();
    let printable = path.iter().all(|byte| matches!(byte, 0x21..=0x7e) && *byte != b'#');
    if path.first() != Some(&b'/') || path.len() > Page::MAX_PATH || !printable {
        return Err(PageError::BadPath { object: at, path: short(&object.path) });
    }
    if object.request_extra.count() > Page::MAX_REQUEST_EXTRA {
        return Err(PageError::RequestTooLarge { object: at });
    }
    if object.found.is_some_and(|found| found.delay.duration() > Page::MAX_DELAY) {
        return Err(PageError::TooLate { object: at });
    }
    Ok(())
}

/// The one object that no other tells of.
pub(crate) fn root(objects: &[Object]) -> Result<ObjectId, PageError> {
    let mut roots = objects.iter().enumerate().filter(|(_, object)| object.found.is_none());
    let Some((root, _)) = roots.next() else { return Err(PageError::NoRoot) };
    match roots.next() {
        Some((other, _)) => Err(PageError::SeveralRoots { first: root, second: other }),
        None => Ok(ObjectId(root as u32)),
    }
}

/// What each object tells of, the first first.
pub(crate) fn children(objects: &[Object]) -> Result<Vec<Vec<ObjectId>>, PageError> {
    let mut children = vec![Vec::new(); objects.len()];
    for (at, object) in objects.iter().enumerate() {
        let Some(found) = object.found else { continue };
        let Some(list) = children.get_mut(found.by.index()) else {
            return Err(PageError::UnknownParent { object: at, parent: found.by.index() });
        };
        list.push((found.after, ObjectId(at as u32)));
    }
    let in_order = |mut list: Vec<_>| {
        list.sort_unstable();
        list.into_iter().map(|(_, id)| id).collect()
    };
    Ok(children.into_iter().map(in_order).collect())
}

/// How many objects are on the longest path from `root`; each must be on one.
pub(crate) fn depth(root: ObjectId, children: &[Vec<ObjectId>]) -> Result<usize, PageError> {
    let mut reached = vec![false; children.len()];
    let mut level = vec![root];
    let mut depth = 0;
    while !level.is_empty() {
        depth += 1;
        let mut below = Vec::new();
        for id in level {
            // Each has one parent, so that no object is met twice.
            if let Some(reached) = reached.get_mut(id.index()) {
                *reached = true;
            }
            below.extend_from_slice(children.get(id.index()).map_or(&[][..], Vec::as_slice));
        }
        if depth > Page::MAX_DEPTH {
            return Err(PageError::TooDeep);
        }
        level = below;
    }
    match reached.iter().position(|reached| !reached) {
        Some(object) => Err(PageError::Cycle { object }),
        None => Ok(depth),
    }
}
