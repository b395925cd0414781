//! Indexes of jobs and members, and sets of members.

use iswitch_protocol::limits::{MAX_JOBS, MAX_MEMBERS};

/// Index of a job, which is the same in the tables of jobs, uplinks, flight logs and queued work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobIndex(u8);

impl JobIndex {
    /// Creates an index from `index`, which must be below [`MAX_JOBS`].
    pub(crate) const fn new(index: usize) -> Self {
        debug_assert!(index < MAX_JOBS);
        Self(index as u8)
    }

    /// Returns the first `count` indexes.
    pub(crate) fn first(count: usize) -> impl Iterator<Item = Self> {
        (0..count).map(Self::new)
    }

    pub(crate) const fn get(self) -> usize {
        self.0 as usize
    }
}

/// Id of a member in its job, which is also its index in the table of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MemberId(u8);

impl MemberId {
    /// Creates an id from `index`, which must be below [`MAX_MEMBERS`].
    pub(crate) const fn new(index: usize) -> Self {
        debug_assert!(index < MAX_MEMBERS);
        Self(index as u8)
    }

    pub(crate) const fn get(self) -> usize {
        self.0 as usize
    }

    /// Converts the number in an Ack or event to an id. Returns `None` if no member can have this id.
    pub(crate) fn from_wire(number: u16) -> Option<Self> {
        (usize::from(number) < MAX_MEMBERS).then(|| Self::new(number.into()))
    }

    /// Returns the id as the number that Acks and events contain.
    pub(crate) const fn to_wire(self) -> u16 {
        self.0 as u16
    }
}

/// Location of a member: its job, and its id in that job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberAt {
    pub(crate) job: JobIndex,
    pub(crate) member: MemberId,
}

/// A set of members of one job: bit i stands for member i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberSet(u64);

impl MemberSet {
    pub(crate) const EMPTY: Self = Self(0);

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn len(self) -> u16 {
        self.0.count_ones() as u16
    }

    pub(crate) const fn contains(self, id: MemberId) -> bool {
        self.0 >> id.0 & 1 == 1
    }

    /// Returns this set with member `id` added.
    #[must_use]
    pub(crate) const fn with(self, id: MemberId) -> Self {
        Self(self.0 | 1 << id.0)
    }

    /// Returns this set without member `id`.
    #[must_use]
    pub(crate) const fn without(self, id: MemberId) -> Self {
        Self(self.0 & !(1 << id.0))
    }

    /// Returns the members in both sets.
    #[must_use]
    pub(crate) const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the members of this set that are not in `other`.
    #[must_use]
    pub(crate) const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the members in either set.
    #[must_use]
    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the lowest id that is not in the set, or `None` if all ids are in it.
    pub(crate) fn first_absent(self) -> Option<MemberId> {
        let index = (!self.0).trailing_zeros() as usize;
        (index < MAX_MEMBERS).then(|| MemberId::new(index))
    }

    /// Iterates over the members of the set, in order of their ids.
    pub(crate) fn iter(self) -> impl Iterator<Item = MemberId> {
        (0..MAX_MEMBERS).map(MemberId::new).filter(move |id| self.contains(*id))
    }

    /// Returns the set as the bits that flight records contain.
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }
}

impl FromIterator<MemberId> for MemberSet {
    fn from_iter<I: IntoIterator<Item = MemberId>>(ids: I) -> Self {
        ids.into_iter().fold(Self::EMPTY, Self::with)
    }
}
