//! Places for connections, by number.

/// Numbered places; one that is left is used again.
pub(crate) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// A place that nothing is in. Until something is put there the next call gives another.
    pub(crate) fn next(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        })
    }

    /// Puts something in its place.
    pub(crate) fn put(&mut self, at: usize, what: T) {
        if let Some(place) = self.places.get_mut(at) {
            *place = Some(what);
        }
    }

    /// Takes what is in a place. Unless it is put back, [`Slab::leave`] is to follow.
    pub(crate) fn take(&mut self, at: usize) -> Option<T> {
        self.places.get_mut(at).and_then(Option::take)
    }

    /// Lets a place be used again.
    pub(crate) fn leave(&mut self, at: usize) {
        debug_assert!(self.places.get(at).is_some_and(Option::is_none));
        self.free.push(at);
    }
}
