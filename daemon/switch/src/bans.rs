//! Joins that are refused for a limited time because the operator has removed a job or a member.

use core::net::SocketAddrV4;

use iswitch_protocol::Instant;
use iswitch_protocol::wire::Status;

/// Maximum number of bans. If all are in use, a new ban replaces the ban that expires first.
const MOST_BANS: usize = 64;

/// Refusal of Joins until a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ban {
    /// The job's number.
    pub(crate) job: u32,
    /// Address whose Joins are refused; if `None`, all Joins of the job are refused.
    pub(crate) address: Option<SocketAddrV4>,
    pub(crate) until: Instant,
}

impl Ban {
    /// Returns the status and the `expected` value with which a Join is refused under this ban.
    pub(crate) fn refusal(&self) -> (Status, u32) {
        let cause = if self.address.is_some() { Status::MEMBER_EXPELLED } else { Status::JOB_REMOVED };
        (Status::Halted, cause)
    }
}

/// Current bans.
#[derive(Debug)]
pub(crate) struct Bans {
    bans: [Option<Ban>; MOST_BANS],
}

impl Default for Bans {
    fn default() -> Self {
        Self { bans: [None; MOST_BANS] }
    }
}

impl Bans {
    pub(crate) fn insert(&mut self, ban: Ban) {
        let earliest = self.bans.iter_mut().min_by_key(|ban| ban.map(|ban| ban.until));
        if let Some(place) = earliest {
            *place = Some(ban);
        }
    }

    /// Returns the ban that currently applies to Joins from an address to a job, or `None` if there is none.
    pub(crate) fn find(&self, now: Instant, job: u32, address: SocketAddrV4) -> Option<&Ban> {
        let is_meant = |ban: &Ban| ban.job == job && ban.address.is_none_or(|banned| banned == address);
        self.bans.iter().flatten().find(|ban| is_meant(ban) && now < ban.until)
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_ban_ends_and_the_oldest_one_gives_way() {
        let address = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let mut bans = Bans::default();
        bans.insert(Ban { job: 5, address: None, until: Instant::from_nanos(10) });
        bans.insert(Ban { job: 6, address: Some(address(1)), until: Instant::from_nanos(20) });
        let applies =
            |bans: &Bans, now, job, port| bans.find(Instant::from_nanos(now), job, address(port)).is_some();
        assert!(applies(&bans, 9, 5, 1) && applies(&bans, 9, 5, 2) && !applies(&bans, 10, 5, 1));
        assert!(applies(&bans, 19, 6, 1) && !applies(&bans, 19, 6, 2) && !applies(&bans, 9, 7, 1));
        for job in 0..MOST_BANS as u32 - 1 {
            bans.insert(Ban { job: 100 + job, address: None, until: Instant::from_nanos(50) });
        }
        assert!(!applies(&bans, 9, 5, 1), "the ban that ends first should have been replaced");
        assert!(applies(&bans, 9, 6, 1));
    }
}
