//! Members that a stalled round is waiting for.

use std::fmt;

use iswitch_protocol::wire::{AbsentMember, AbsentRepr};

/// Members that a round is waiting for, as reported by the switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Absent {
    /// Number of members that the round is waiting for; zero if the switch has not answered, or if the round is not
    /// waiting for any member of this switch.
    pub count: u16,
    /// The first of these members. The list is shorter than `count` if not all members fit in one packet.
    pub members: Vec<AbsentMember>,
}

impl From<&AbsentRepr<'_>> for Absent {
    fn from(repr: &AbsentRepr<'_>) -> Self {
        Self { count: repr.count, members: repr.members().collect() }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_named = |member: &&AbsentMember| member.rank.is_some() || !member.host.is_empty();
        let mut texts: Vec<_> = self.members.iter().filter(is_named).map(describe).collect();
        match (texts.len(), usize::from(self.count).saturating_sub(texts.len())) {
            (0, 0) => texts.push("other workers".to_owned()),
            (_, 0) => {}
            (0, 1) => texts.push("a member without a name".to_owned()),
            (0, unnamed) => texts.push(format!("{unnamed} members without names")),
            (_, 1) => texts.push("another member".to_owned()),
            (_, others) => texts.push(format!("{others} other members")),
        }
        let last = texts.pop().unwrap_or_default();
        if texts.is_empty() { f.write_str(&last) } else { write!(f, "{} and {last}", texts.join(", ")) }
    }
}

fn describe(member: &AbsentMember) -> String {
    let host = member.host.as_str();
    match member.rank {
        Some(rank) if host.is_empty() => format!("rank {rank}"),
        Some(rank) => format!("rank {rank} on host {host}"),
        None => format!("a member on host {host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_described_by_rank_and_host() {
        let member = |rank, host: &str| AbsentMember { rank, host: host.parse().unwrap() };
        let text = |count, members: &[AbsentMember]| Absent { count, members: members.to_vec() }.to_string();
        let gpu7 = member(Some(2), "gpu07");
        assert_eq!(text(0, &[]), "other workers");
        assert_eq!(text(1, &[gpu7]), "rank 2 on host gpu07");
        assert_eq!(text(2, &[gpu7, member(Some(3), "")]), "rank 2 on host gpu07 and rank 3");
        let three = [gpu7, member(None, "gpu08"), member(None, "")];
        assert_eq!(text(3, &three), "rank 2 on host gpu07, a member on host gpu08 and another member");
        assert_eq!(text(5, &[gpu7]), "rank 2 on host gpu07 and 4 other members");
        assert_eq!(text(1, &[member(None, "")]), "a member without a name");
        assert_eq!(text(2, &[]), "2 members without names");
    }
}
