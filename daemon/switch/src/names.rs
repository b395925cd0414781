//! Names of a job and of its members, by which operators recognise them. No sum depends on a name.

use iswitch_protocol::limits::MAX_MEMBERS;
use iswitch_protocol::wire::NameRepr;

use crate::ids::MemberId;

/// The names of one job and of its members. The memory for the names of all possible members is part of the job.
#[derive(Debug)]
pub(crate) struct Names {
    /// Name and owner of the job; the host and the rank are not set.
    job: NameRepr,
    /// Member that stated the name of the job, if it is still a member. Only this member can change the name.
    author: Option<MemberId>,
    /// Names of the members, without the name and the owner of the job. The entry of a departed member is kept until
    /// its id is assigned again, because the departure is reported after the removal.
    members: [Option<NameRepr>; MAX_MEMBERS],
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { job: NameRepr::UNKNOWN, author: None, members: [None; MAX_MEMBERS] }
    }

    /// Returns the names of the job and of one of its members.
    pub(crate) fn of(&self, member: Option<MemberId>) -> NameRepr {
        let own = member.and_then(|id| self.members[id.get()]).unwrap_or_default();
        NameRepr { host: own.host, rank: own.rank, ..self.job }
    }

    /// Records the names that a member has stated. The first member to state a name or an owner of the job determines
    /// both; while that member belongs to the job, no other member can change them (requirement N-4). Returns whether
    /// the member has not stated any names before.
    pub(crate) fn state(&mut self, id: MemberId, name: &NameRepr) -> bool {
        let own = NameRepr { host: name.host, rank: name.rank, ..NameRepr::UNKNOWN };
        let job = NameRepr { job: name.job, owner: name.owner, ..NameRepr::UNKNOWN };
        if job != NameRepr::UNKNOWN && self.author.is_none_or(|author| author == id) {
            (self.job, self.author) = (job, Some(id));
        }
        self.members[id.get()].replace(own).is_none()
    }

    /// Forgets the names of the departed member whose id a new member gets.
    pub(crate) fn admit(&mut self, id: MemberId) {
        self.members[id.get()] = None;
    }

    /// Records the departure of a member. The job keeps its name until another member states one.
    pub(crate) fn depart(&mut self, id: MemberId) {
        self.author.take_if(|author| *author == id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(job: &str, host: &str, rank: u16) -> NameRepr {
        let (job, host) = (job.parse().unwrap(), host.parse().unwrap());
        NameRepr { job, host, rank: Some(rank), ..NameRepr::UNKNOWN }
    }

    #[test]
    fn the_first_member_names_the_job_and_each_member_names_itself() {
        let (mut names, [one, two]) = (Names::new(), [0, 1].map(MemberId::new));
        assert_eq!(names.of(Some(one)), NameRepr::UNKNOWN);
        assert!(names.state(one, &name("", "a", 0)));
        assert!(names.state(two, &name("ppo", "b", 1)));
        assert!(!names.state(one, &name("dqn", "a", 5)), "not the first statement");
        assert_eq!(names.of(Some(one)), name("ppo", "a", 5));
        assert_eq!(names.of(Some(two)), name("ppo", "b", 1));
        names.state(two, &name("ppo2", "b", 1));
        assert_eq!(names.of(None).job.as_str(), "ppo2", "the author may change the name");
        names.state(two, &name("", "b", 1));
        assert_eq!(names.of(None).job.as_str(), "ppo2", "an unknown name does not replace a known one");
    }

    #[test]
    fn a_departed_member_keeps_its_name_until_its_id_is_assigned_again() {
        let (mut names, [one, two]) = (Names::new(), [0, 1].map(MemberId::new));
        names.state(one, &name("ppo", "a", 0));
        names.depart(one);
        assert_eq!(names.of(Some(one)), name("ppo", "a", 0));
        names.admit(one);
        assert_eq!(names.of(Some(one)), NameRepr { job: "ppo".parse().unwrap(), ..NameRepr::UNKNOWN });
        names.state(two, &name("dqn", "b", 1));
        assert_eq!(names.of(Some(two)), name("dqn", "b", 1));
    }
}
