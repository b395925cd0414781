//! Resuming members: members from an earlier run of the switch, and members that were expelled.

use crate::common::*;
use iswitch_protocol::wire::control::answer_challenge;
use iswitch_protocol::wire::{
    AckRepr, Class, ControlBody, ControlPacket, ControlRepr, JoinRepr, Mode, ResumeRepr, Standing, Status,
};
use iswitch_protocol::{ElementType, ElementTypes, Round, history};
use iswitch_switch::{Departure, Event};

/// Epoch of the first job of the harness's switch.
const BOOT: u64 = 0x7b9c_fc1a_ce9e_b496;
/// Next round of the members that have all sums.
const NEXT: u32 = 7;
/// History of the members that have all sums. `BEHIND` is the history of the members that lack one sum.
const LATEST: u64 = 1000;
const BEHIND: u64 = 999;
/// First round of the resumed job: three rounds, plus a gap derived from the epoch, after the latest round that a
/// member names.
const BASE: u32 = NEXT + 3 + (BOOT % 256) as u32;
/// Round before `BASE`, in which a sum that some members lack is replayed.
const REPLAY: u32 = BASE - 1;
/// First round if the replay is given up: one round later than `BASE`, because new members may already have begun
/// `BASE`.
const ANEW: u32 = BASE + 1;

fn resuming(history: u64, previous: u64, members: u16) -> JoinRepr {
    let next = if history == LATEST { NEXT } else { NEXT - 1 };
    let (round, weight) = (Round::new(next), members);
    let resume =
        ResumeRepr { round, members, weight, threshold: 0, history, previous, behind: 0, fresh: false };
    JoinRepr { resume: Some(resume), ..join(3) }
}

/// Returns the Join of a member of a job of three in which the member states this round and these histories.
fn resuming_at(round: u32, history: u64, previous: u64) -> JoinRepr {
    let JoinRepr { resume, .. } = resuming(history, previous, 3);
    JoinRepr { resume: resume.map(|resume| ResumeRepr { round: Round::new(round), ..resume }), ..join(3) }
}

/// Content of the Ack of a Join: recipient, whether the job is complete, standing, round and history.
type Answer = (u8, bool, Standing, u32, u64);

/// Returns the control packets that the switch sends, with their recipients.
fn sent(switch: &mut Harness) -> Vec<(u8, Vec<u8>)> {
    let mut sent = Vec::new();
    while let Some(transmit) = switch.switch.poll_transmit() {
        let to = transmit.recipients().next().unwrap().peer.ip().octets()[3];
        sent.push((to, transmit.payload.to_vec()));
    }
    sent
}

fn read(sent: &[(u8, Vec<u8>)]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for (to, payload) in sent {
        let packet = ControlPacket::new_checked(payload).unwrap();
        let Ok(ControlRepr { body: ControlBody::Ack(ack), .. }) = ControlRepr::parse(&packet) else {
            panic!("expected only Acks");
        };
        let AckRepr { status, formed, standing, round, history, .. } = ack;
        assert_eq!(status, Status::Success);
        answers.push((*to, formed, standing, round.get(), history));
    }
    answers
}

fn send_join(switch: &mut Harness, host: u8, join: JoinRepr) -> Vec<Answer> {
    let mut packet = control(JOB, 1, ControlBody::Join(join));
    loop {
        let now = switch.now();
        switch.switch.handle_datagrams(now, &endpoint(host), Class::Control, &packet, packet.len());
        let sent = sent(switch);
        if !sent.iter().any(|(_, answer)| answer_challenge(&mut packet, answer)) {
            return read(&sent);
        }
    }
}

/// Returns a switch to which three members have returned: 1 and 2 hold the last sum, 3 lacks it.
fn one_behind() -> Harness {
    let mut switch = Harness::new();
    send_join(&mut switch, 1, resuming(LATEST, BEHIND, 3));
    send_join(&mut switch, 2, resuming(LATEST, BEHIND, 3));
    let reported = send_join(&mut switch, 3, resuming(BEHIND, 500, 3));
    let supplies = |host| (host, true, Standing::Supplies, REPLAY, LATEST);
    assert_eq!(reported, [supplies(1), supplies(2), (3, true, Standing::Awaits, REPLAY, LATEST)]);
    switch
}

#[test]
fn all_former_members_resume_with_new_round_numbers() {
    let mut switch = Harness::new();
    let reported = send_join(&mut switch, 1, resuming(LATEST, 0, 3));
    assert!(matches!(reported[..], [(1, false, ..)]), "{reported:?}");
    send_join(&mut switch, 2, resuming(LATEST, 0, 3));
    let reported = send_join(&mut switch, 3, resuming(LATEST, BEHIND, 3));
    assert_eq!(reported, [1, 2, 3].map(|host| (host, true, Standing::Resumed, BASE, LATEST)));
    assert!(switch.events().contains(&Event::JobResumed { job: JOB, members: 3, round: Round::new(BASE) }));
    switch.round(&[1, 2], BASE);
    assert_eq!(switch.data(3, 2, BASE, &[3.0])[0], result(1, 2, BASE, 3, &[6.0]));
    // A packet of the earlier run cannot be mistaken for a packet of this run.
    let late = switch.data(1, 2, NEXT, &[9.0]);
    assert!(matches!(late[..], [Sent::Ack { status: Status::StaleRound, round: BASE, .. }]), "{late:?}");
}

#[test]
fn members_that_hold_the_last_sum_supply_it_to_members_that_lack_it() {
    let mut switch = one_behind();
    let refused = switch.data(3, 2, REPLAY, &[5.0]);
    assert!(matches!(refused[..], [Sent::Ack { status: Status::StaleRound, .. }]), "it awaits the sum");
    let sum = weighted(2, REPLAY, 3, &[60.0]);
    let expected = [1, 2, 3].map(|to| result(to, 2, REPLAY, 3, &[60.0]));
    assert_eq!(switch.send(2, Class::Data, &sum), expected, "the first sum is the result");
    assert_eq!(switch.send(1, Class::Data, &sum), [result(1, 2, REPLAY, 3, &[60.0])]);
    // The next round is an ordinary one, in which all members participate.
    assert_eq!(switch.data(1, 2, BASE, &[1.0]), []);
    assert_eq!(switch.data(2, 2, BASE, &[2.0]), []);
    assert_eq!(switch.data(3, 2, BASE, &[3.0])[0], result(1, 2, BASE, 3, &[6.0]));
    let (before, late) = (switch.counters().contributions, weighted(2, BASE, 3, &[60.0]));
    switch.send(1, Class::Data, &late);
    assert_eq!(switch.counters().contributions, before, "only a replayed round takes a sum");
}

#[test]
fn a_sum_missing_at_one_member_is_replayed_after_a_reset() {
    let mut switch = Harness::formed(3);
    switch.round(&[1, 2, 3], 0);
    switch.control(3, 2, ControlBody::RESET);
    let start = history::begin(BOOT, JOB, Round::new(0));
    let after = history::after(start, BOOT, Round::new(0));
    // Only member 3 lacks the sum of round 0.
    send_join(&mut switch, 1, resuming_at(1, after, start));
    send_join(&mut switch, 2, resuming_at(1, after, start));
    let reported = send_join(&mut switch, 3, resuming_at(0, start, 0));
    let standings: Vec<_> =
        reported.iter().map(|(host, formed, standing, ..)| (*host, *formed, *standing)).collect();
    let supplies = |host| (host, true, Standing::Supplies);
    assert_eq!(standings, [supplies(1), supplies(2), (3, true, Standing::Awaits)]);
}

#[test]
fn if_no_member_holds_the_sum_members_that_lack_it_continue_without_it() {
    let mut switch = one_behind();
    let first = weighted(0, REPLAY, 3, &[60.0, 60.0]);
    assert_eq!(switch.send(1, Class::Data, &first).len(), 3);
    switch.control(1, 2, ControlBody::Leave);
    switch.control(2, 2, ControlBody::Leave);
    // A vector must not consist of segments of two different sums.
    let refused = switch.data(3, 1, REPLAY, &[3.0, 3.0]);
    assert!(
        matches!(refused[..], [Sent::Ack { status: Status::StaleRound, round: ANEW, .. }]),
        "{refused:?}"
    );
    assert_eq!(switch.data(3, 0, ANEW, &[3.0, 3.0]), [result(3, 0, ANEW, 1, &[3.0, 3.0])]);
    // Member 3 keeps its history, and a member that returns with the sum is out of date.
    let reported = send_join(&mut switch, 3, resuming(BEHIND, 500, 3));
    assert_eq!(reported, [(3, true, Standing::Resumed, ANEW, BEHIND)]);
    let reported = send_join(&mut switch, 1, resuming(LATEST, BEHIND, 3));
    assert!(matches!(reported[..], [(1, true, Standing::Fresh, ..)]), "{reported:?}");
}

#[test]
fn a_member_that_missed_an_unavailable_sum_is_fresh() {
    let mut switch = Harness::new();
    send_join(&mut switch, 1, resuming(LATEST, BEHIND, 3));
    send_join(&mut switch, 2, resuming(LATEST, 0, 3));
    send_join(&mut switch, 3, resuming(BEHIND, 500, 3));
    switch.control(1, 2, ControlBody::Leave);
    // Member 2 has the sum but cannot send it, so member 3 has missed a round.
    let reported = send_join(&mut switch, 3, resuming(BEHIND, 500, 3));
    assert_eq!(reported, [(3, true, Standing::Fresh, BASE, LATEST)]);
    switch.data(2, 2, BASE, &[2.0]);
    assert_eq!(switch.data(3, 2, BASE, &[3.0])[0], result(2, 2, BASE, 2, &[5.0]));
}

#[test]
fn the_job_continues_once_no_member_lacks_the_sum() {
    let mut switch = one_behind();
    switch.control(3, 2, ControlBody::Leave);
    switch.control(1, 2, ControlBody::Leave);
    switch.control(2, 2, ControlBody::Leave);
    assert_eq!(switch.switch.jobs().count(), 0);
    let mut switch = Harness::new();
    send_join(&mut switch, 1, resuming(LATEST, BEHIND, 3));
    send_join(&mut switch, 2, resuming(BEHIND, 0, 3));
    // Member 3 is up to date but holds no sum, so it waits until the replayed round has passed.
    let reported = send_join(&mut switch, 3, resuming(LATEST, 0, 3));
    assert_eq!(reported[2], (3, true, Standing::Resumed, BASE, LATEST));
    switch.control(1, 2, ControlBody::Leave);
    switch.control(2, 2, ControlBody::Leave);
    assert_eq!(switch.data(3, 2, BASE, &[3.0]), [result(3, 2, BASE, 1, &[3.0])]);
}

#[test]
fn a_replayed_sum_is_delivered_only_once() {
    let mut switch = one_behind();
    for (index, floats) in [(0, vec![60.0, 60.0]), (1, vec![60.0, 60.0]), (2, vec![60.0])] {
        switch.send(1, Class::Data, &weighted(index, REPLAY, 3, &floats));
    }
    // Member 3 has received the sum, and rejoins because it believes that the switch has forgotten it.
    let reported = send_join(&mut switch, 3, resuming(LATEST, BEHIND, 3));
    assert_eq!(reported, [(3, true, Standing::Resumed, BASE, LATEST)]);
    let reported = send_join(&mut switch, 3, resuming(BEHIND, 500, 3));
    assert_eq!(
        reported,
        [(3, true, Standing::Awaits, REPLAY, LATEST)],
        "member 3 should await the sum if it lacks it"
    );
}

#[test]
fn a_job_does_not_await_members_known_only_to_a_departed_member() {
    let mut switch = Harness::new();
    let unlimited = |resume| JoinRepr { workers: 0, resume, ..join(0) };
    let reported = send_join(&mut switch, 1, unlimited(resuming(LATEST, 0, 3).resume));
    assert!(matches!(reported[..], [(1, false, ..)]), "{reported:?}");
    send_join(&mut switch, 2, unlimited(None));
    switch.control(1, 2, ControlBody::Leave);
    assert_eq!(switch.switch.jobs().next().map(|job| job.formed), Some(true));
}

/// First round of a job that follows a job with rounds 0 to 19.
const NEXT_BASE: u32 = 21;

/// Returns a switch whose first job has ended.
fn after_a_job() -> Harness {
    let mut switch = Harness::formed(1);
    (0..20).for_each(|round| switch.round(&[1], round));
    switch.control(1, 2, ControlBody::Leave);
    switch
}

/// Returns the first round of a job of two members that rejoin with these next rounds and histories.
fn first_round_of(switch: &mut Harness, claims: [u32; 2], histories: [u64; 2]) -> u32 {
    let mut reported = Vec::new();
    for (host, (claim, history)) in [1, 2].into_iter().zip(claims.into_iter().zip(histories)) {
        let previous = if history == LATEST { BEHIND } else { 0 };
        let JoinRepr { resume, .. } = resuming_at(claim, history, previous);
        let resume = resume.map(|resume| ResumeRepr { members: 2, weight: 2, ..resume });
        reported = send_join(switch, host, JoinRepr { resume, ..join(2) });
    }
    reported.last().expect("the switch should answer").3
}

#[test]
fn no_claimed_rounds_lead_a_job_back_to_past_rounds() {
    let mut switch = after_a_job();
    // Modulo 2^24, the claims are less than half of the range apart. The second claim lies before the first round.
    let ahead = NEXT_BASE + (1 << 23) - 300;
    let behind = Round::new(NEXT_BASE).minus(301).get();
    let first = first_round_of(&mut switch, [ahead, behind], [LATEST; 2]);
    let epoch = switch.switch.epoch_of(JOB).unwrap();
    assert_eq!(first, ahead + 3 + (epoch % 256) as u32);
}

#[test]
fn sums_are_never_replayed_in_past_rounds() {
    let mut switch = after_a_job();
    // Another job has used rounds beyond those that these members claim, so the claimed rounds are in the past.
    let claim = Round::new(NEXT_BASE).minus(1000).get();
    let first = first_round_of(&mut switch, [claim, claim - 1], [LATEST, BEHIND]);
    assert_eq!(first, NEXT_BASE, "late packets may name the rounds before this one");
}

#[test]
fn a_member_with_another_history_starts_fresh() {
    let mut switch = Harness::new();
    send_join(&mut switch, 1, resuming(5, 4, 3));
    send_join(&mut switch, 2, resuming(LATEST, 0, 3));
    let reported = send_join(&mut switch, 3, resuming(LATEST, 0, 3));
    let resumed = |host| (host, true, Standing::Resumed, BASE, LATEST);
    assert_eq!(reported, [(1, true, Standing::Fresh, BASE, LATEST), resumed(2), resumed(3)]);
}

#[test]
fn a_sum_that_no_member_holds_is_not_awaited() {
    let mut switch = Harness::new();
    send_join(&mut switch, 1, resuming(LATEST, 0, 3));
    send_join(&mut switch, 2, resuming(LATEST, 0, 3));
    let reported = send_join(&mut switch, 3, resuming(BEHIND, 0, 3));
    assert_eq!(reported[2], (3, true, Standing::Fresh, BASE, LATEST));
}

#[test]
fn a_resumed_job_waits_one_lease_for_missing_members() {
    let mut switch = Harness::new();
    send_join(&mut switch, 1, resuming(LATEST, 0, 3));
    send_join(&mut switch, 2, resuming(LATEST, 0, 3));
    let heartbeat = |switch: &mut Harness, host| {
        let range = range(0, 0, 0);
        let set = iswitch_protocol::wire::control::SegmentSetRepr { range, bitmap: &[] };
        switch.control(host, 0, ControlBody::Help(set));
    };
    let mut reported = Vec::new();
    for _ in 0..8 {
        reported.extend(switch.sleep(u64::from(LEASE_MS) / 4));
        heartbeat(&mut switch, 1);
        heartbeat(&mut switch, 2);
    }
    assert_eq!(reported.len(), 2, "both members should be notified once: {reported:?}");
    switch.data(1, 2, BASE, &[1.0]);
    assert_eq!(switch.data(2, 2, BASE, &[2.0])[0], result(1, 2, BASE, 2, &[3.0]));
    // The third member returns late.
    let reported = send_join(&mut switch, 3, resuming(LATEST, 0, 3));
    let after = history::after(LATEST, BOOT, Round::new(BASE));
    assert_eq!(
        reported,
        [(3, true, Standing::Fresh, BASE + 1, after)],
        "the member should have missed a round"
    );
}

#[test]
fn a_resumed_job_needs_only_as_many_members_as_it_had_before() {
    let mut switch = Harness::new();
    send_join(&mut switch, 1, resuming(LATEST, 0, 2));
    let reported = send_join(&mut switch, 2, resuming(LATEST, 0, 2));
    assert_eq!(reported.len(), 2);
    assert!(reported.iter().all(|(_, formed, ..)| *formed));
}

#[test]
fn a_pinned_threshold_survives_a_switch_restart() {
    let mut switch = Harness::new();
    let pinned = |host| {
        let JoinRepr { resume, .. } = resuming(LATEST, 0, 3);
        let resume = ResumeRepr { threshold: 2, ..resume.unwrap() };
        (host, JoinRepr { resume: Some(resume), ..join(3) })
    };
    for (host, join) in [1, 2, 3].map(pinned) {
        send_join(&mut switch, host, join);
    }
    switch.data(1, 2, BASE, &[1.0]);
    assert_eq!(switch.data(2, 2, BASE, &[2.0])[0], result(1, 2, BASE, 2, &[3.0]));
}

#[test]
fn an_expelled_member_is_current_only_if_no_round_has_completed_since() {
    let start = history::begin(BOOT, JOB, Round::new(0));
    let rejoin = |history, round| {
        let resume = ResumeRepr {
            round: Round::new(round),
            members: 3,
            weight: 3,
            threshold: 0,
            history,
            previous: 0,
            behind: 0,
            fresh: false,
        };
        JoinRepr { resume: Some(resume), ..join(3) }
    };
    let mut switch = Harness::formed(3);
    switch.round(&[1, 2, 3], 0);
    switch.control(3, 2, ControlBody::Leave);
    let after_0 = history::after(start, BOOT, Round::new(0));
    let reported = send_join(&mut switch, 3, rejoin(after_0, 1));
    assert_eq!(reported, [(3, true, Standing::Resumed, 1, after_0)], "round 1 should not have begun");
    switch.control(3, 3, ControlBody::Leave);
    switch.round(&[1, 2], 1);
    let after_1 = history::after(after_0, BOOT, Round::new(1));
    let reported = send_join(&mut switch, 3, rejoin(after_0, 1));
    assert_eq!(reported, [(3, true, Standing::Fresh, 2, after_1)], "round 1 should be finished");
}

#[test]
fn a_member_that_rejoins_needlessly_resumes_at_its_round() {
    let mut switch = Harness::formed(2);
    switch.round(&[1, 2], 0);
    switch.data(2, 0, 1, &[2.0, 2.0]);
    let before = history::begin(BOOT, JOB, Round::new(0));
    for (history, round) in [(before, 0), (history::after(before, BOOT, Round::new(0)), 1)] {
        let resume = ResumeRepr {
            round: Round::new(round),
            members: 2,
            weight: 2,
            threshold: 0,
            history,
            previous: 0,
            behind: 0,
            fresh: false,
        };
        let reported = send_join(&mut switch, 1, JoinRepr { resume: Some(resume), ..join(2) });
        assert_eq!(reported, [(1, true, Standing::Resumed, round, history)]);
    }
    let left = |event: &Event| matches!(event, Event::Left { why: Departure::Restarted, .. });
    assert!(!switch.events().iter().any(left));
}

#[test]
fn a_query_admits_no_member() {
    let mut switch = Harness::new();
    let query = JoinRepr { query: true, ..join(2) };
    let answer = switch.control(9, 1, ControlBody::Join(query));
    assert!(matches!(answer[..], [Sent::Ack { status: Status::UnknownJob, .. }]), "{answer:?}");
    switch.join(1, join(2));
    switch.join(2, join(2));
    switch.round(&[1, 2], 0);
    let answer = switch.control(9, 1, ControlBody::Join(query));
    assert!(matches!(answer[..], [Sent::Ack { status: Status::Success, round: 1, .. }]), "{answer:?}");
    let refused = switch.control(9, 1, ControlBody::Join(JoinRepr { gradient_len: 6, ..query }));
    assert!(matches!(refused[..], [Sent::Ack { status: Status::GradientLenMismatch, expected: 5, .. }]));
    assert_eq!(switch.switch.jobs().next().unwrap().members.len(), 2);
}

#[test]
fn a_fresh_member_does_not_take_over_the_job() {
    let undeclared = |history, previous, fresh| {
        let join = resuming(history, previous, 3);
        let resume = join.resume.map(|resume| ResumeRepr { fresh, ..resume });
        JoinRepr { workers: 0, resume, ..join }
    };
    let mut switch = Harness::new();
    let sent = send_join(&mut switch, 1, undeclared(LATEST, 0, true));
    assert!(!sent[0].1, "the job should wait for two more members: {sent:?}");
    send_join(&mut switch, 2, undeclared(LATEST, BEHIND, false));
    let sent = send_join(&mut switch, 3, undeclared(LATEST, BEHIND, false));
    let standing = |host: u8| {
        sent.iter().find(|(to, ..)| *to == host).map(|(_, formed, standing, ..)| (*formed, *standing))
    };
    assert_eq!([2, 3].map(standing), [Some((true, Standing::Resumed)); 2]);
}

/// Returns a Join that declares no workers, for one of three members that rejoin with this history.
fn undeclared(history: u64, previous: u64) -> JoinRepr {
    JoinRepr { workers: 0, ..resuming(history, previous, 3) }
}

/// Returns the claim with which a member of the current job rejoins after `rounds` rounds.
fn after_rounds(switch: &Harness, rounds: u32) -> ResumeRepr {
    let job = switch.switch.jobs().next().unwrap();
    let begin = history::begin(job.boot, JOB, Round::new(0));
    let history =
        (0..rounds).fold(begin, |history, round| history::after(history, job.boot, Round::new(round)));
    let round = Round::new(rounds);
    ResumeRepr { round, members: 1, weight: 1, threshold: 0, history, previous: 0, behind: 0, fresh: false }
}

/// Returns whether the switch requests a member to rejoin.
fn is_dismissed(sent: &[Sent], host: u8) -> bool {
    sent.iter().any(|sent| match sent {
        Sent::Ack { to, request: 0, status: Status::UnknownMember, .. } => *to == host,
        _ => false,
    })
}

/// Returns a restarted switch whose first member is a newcomer that has summed two rounds alone, and the claim with
/// which that member rejoins.
fn newcomer_first() -> (Harness, ResumeRepr) {
    let mut switch = Harness::new();
    assert!(matches!(switch.join(9, join(0)), Sent::Ack { status: Status::Success, .. }));
    switch.round(&[9], 0);
    switch.round(&[9], 1);
    let resume = after_rounds(&switch, 2);
    (switch, resume)
}

#[test]
fn a_newcomer_that_joins_first_does_not_take_over_the_job() {
    let (mut switch, own) = newcomer_first();
    let sent = switch.control(1, 1, ControlBody::Join(undeclared(LATEST, BEHIND)));
    assert!(is_dismissed(&sent, 9), "{sent:?}");
    assert!(!switch.switch.jobs().next().unwrap().formed, "the job should wait for two more members");
    // The new member does not take over the job either if it has rejoined before the job is complete.
    let reported = send_join(&mut switch, 9, JoinRepr { resume: Some(own), ..join(0) });
    assert!(matches!(reported[..], [(9, false, ..)]), "{reported:?}");
    switch.events();
    let reported = send_join(&mut switch, 2, undeclared(LATEST, BEHIND));
    let standing = |host: u8| {
        let (_, formed, standing, _, history) = reported.iter().find(|(to, ..)| *to == host).unwrap();
        (*formed, *standing, *history)
    };
    assert_eq!([1, 2].map(standing), [(true, Standing::Resumed, LATEST); 2]);
    assert_eq!(standing(9), (true, Standing::Fresh, LATEST));
    let reported = send_join(&mut switch, 3, undeclared(LATEST, BEHIND));
    assert!(matches!(reported[..], [(3, true, Standing::Resumed, _, LATEST)]), "{reported:?}");
    // A member with a different history does not restart the job.
    let reported = send_join(&mut switch, 4, undeclared(500, 0));
    assert!(matches!(reported[..], [(4, true, Standing::Fresh, _, LATEST)]), "{reported:?}");
}

#[test]
fn newcomers_that_outnumber_resuming_members_do_not_take_over_the_job() {
    let mut switch = Harness::new();
    for host in [7, 8, 9] {
        switch.join(host, join(0));
    }
    (0..2).for_each(|round| switch.round(&[7, 8, 9], round));
    let own = ResumeRepr { members: 3, weight: 3, ..after_rounds(&switch, 2) };
    let sent = switch.control(1, 1, ControlBody::Join(undeclared(LATEST, BEHIND)));
    assert!([7, 8, 9].into_iter().all(|host| is_dismissed(&sent, host)), "{sent:?}");
    send_join(&mut switch, 7, JoinRepr { resume: Some(own), ..join(0) });
    let reported = send_join(&mut switch, 8, JoinRepr { resume: Some(own), ..join(0) });
    let standings: Vec<_> =
        reported.iter().map(|(host, _, standing, _, history)| (*host, *standing, *history)).collect();
    let fresh = |host| (host, Standing::Fresh, LATEST);
    assert_eq!(standings, [(1, Standing::Resumed, LATEST), fresh(7), fresh(8)]);
}

#[test]
fn a_job_yields_to_a_resumed_history_once_and_only_in_its_first_lease() {
    let (mut switch, _) = newcomer_first();
    let epoch = switch.switch.epoch_of(JOB);
    // A Join changes nothing if it has no history, a known history, or a history whose sums the member does not hold.
    let known = after_rounds(&switch, 1);
    let fresh = undeclared(LATEST, BEHIND).resume.map(|resume| ResumeRepr { fresh: true, ..resume });
    for (host, resume) in [(2, None), (3, Some(known)), (4, fresh)] {
        send_join(&mut switch, host, JoinRepr { resume, ..join(0) });
    }
    // A refused Join changes nothing either.
    let sent = switch.control(5, 1, ControlBody::Join(JoinRepr { gradient_len: 6, ..undeclared(LATEST, 0) }));
    assert!(matches!(sent[..], [Sent::Ack { status: Status::GradientLenMismatch, .. }]), "{sent:?}");
    assert_eq!(switch.switch.epoch_of(JOB), epoch);
    send_join_again(&mut switch, 5, undeclared(LATEST, BEHIND));
    let second = switch.switch.epoch_of(JOB);
    assert_ne!(second, epoch);
    send_join(&mut switch, 6, undeclared(500, 0));
    assert_eq!(switch.switch.epoch_of(JOB), second, "only the first history should count");

    let (mut switch, _) = newcomer_first();
    for _ in 0..8 {
        switch.sleep(u64::from(LEASE_MS) / 4);
        switch.control(9, 0, ControlBody::HEARTBEAT);
    }
    let reported = send_join(&mut switch, 1, undeclared(LATEST, BEHIND));
    assert!(matches!(reported[..], [(1, true, Standing::Fresh, 2, _)]), "{reported:?}");
}

/// Sends a Join after which the switch requests other members to rejoin, and checks that the Join is granted.
fn send_join_again(switch: &mut Harness, host: u8, join: JoinRepr) {
    let sent = switch.control(host, 1, ControlBody::Join(join));
    let is_admitted =
        |sent: &Sent| matches!(sent, Sent::Ack { to, status: Status::Success, .. } if *to == host);
    assert!(sent.iter().any(is_admitted), "{sent:?}");
}

#[test]
fn a_job_with_declared_workers_never_yields_to_another_history() {
    let mut switch = Harness::formed(2);
    switch.round(&[1, 2], 0);
    let epoch = switch.switch.epoch_of(JOB);
    switch.control(2, 2, ControlBody::Leave);
    let JoinRepr { resume, .. } = resuming(LATEST, BEHIND, 2);
    let reported = send_join(&mut switch, 3, JoinRepr { resume, ..join(2) });
    assert!(matches!(reported[..], [(3, true, Standing::Fresh, 1, _)]), "{reported:?}");
    assert_eq!(switch.switch.epoch_of(JOB), epoch);
}

#[test]
fn an_asynchronous_job_also_yields_to_a_resumed_history() {
    let asynchronous = |resume| JoinRepr { mode: Mode::Asynchronous, instance: 100, resume, ..join(0) };
    let mut switch = Harness::new();
    switch.join(9, asynchronous(None));
    let sent = switch.control(1, 1, ControlBody::Join(asynchronous(undeclared(LATEST, 0).resume)));
    assert!(is_dismissed(&sent, 9), "{sent:?}");
    // Member 9 claims to be further ahead than all other members.
    let far =
        ResumeRepr { round: Round::new(NEXT + 1000), history: 77, ..undeclared(LATEST, 0).resume.unwrap() };
    send_join(&mut switch, 9, JoinRepr { instance: 101, ..asynchronous(Some(far)) });
    let reported = send_join(&mut switch, 2, asynchronous(undeclared(LATEST, 0).resume));
    let standing = |host: u8| {
        reported.iter().find(|(to, ..)| *to == host).map(|(.., standing, _, history)| (*standing, *history))
    };
    assert_eq!([1, 2].map(standing), [Some((Standing::Resumed, LATEST)); 2]);
    assert_eq!(standing(9), Some((Standing::Fresh, LATEST)));
}

/// The network duplicates the Join of a worker, and both incarnations of the job admit it. The worker may rely on the
/// answer from the first incarnation.
#[test]
fn a_vector_for_another_incarnation_of_the_job_enters_no_sum() {
    let asynchronous = |resume| JoinRepr { mode: Mode::Asynchronous, instance: 100, resume, ..join(0) };
    let mut switch = Harness::new();
    switch.join(9, asynchronous(None));
    let earlier = switch.first_vector(JOB, 100);
    switch.control(1, 1, ControlBody::Join(asynchronous(undeclared(LATEST, 0).resume)));
    send_join(&mut switch, 9, asynchronous(None));
    send_join(&mut switch, 2, asynchronous(undeclared(LATEST, 0).resume));
    let later = switch.first_vector(JOB, 100);
    assert_ne!(earlier, later);
    switch.control(9, 2, ControlBody::SetH { threshold: 1 });
    let results_of = |switch: &mut Harness, number| {
        let sent: Vec<_> = (0..2).flat_map(|index| switch.data(9, index, number, &[1.0; 2])).collect();
        sent.len() + switch.data(9, 2, number, &[1.0]).len()
    };
    assert_eq!(results_of(&mut switch, earlier), 0);
    assert_eq!(results_of(&mut switch, later), 9, "three members should get three segments each");
}

#[test]
fn a_supplied_sum_has_the_element_type_of_results() {
    let elements = ElementTypes::with_wide_results(ElementType::Bf16);
    let mut switch = Harness::new();
    for (host, history, previous) in [(1, LATEST, BEHIND), (2, LATEST, BEHIND), (3, BEHIND, 500)] {
        send_join(&mut switch, host, JoinRepr { elements, ..resuming(history, previous, 3) });
    }
    // bfloat16 cannot represent this sum.
    let sum = weighted(2, REPLAY, 3, &[1.000_001]);
    let expected = [1, 2, 3].map(|to| result(to, 2, REPLAY, 3, &[1.000_001]));
    assert_eq!(switch.send(2, Class::Data, &sum), expected);
    assert_eq!(switch.send(1, Class::Data, &sum), [result(1, 2, REPLAY, 3, &[1.000_001])]);
    // The following round has 16-bit contributions again.
    let refused = switch.send(1, Class::Data, &weighted(2, BASE, 1, &[1.0]));
    assert!(
        matches!(refused[..], [Sent::Ack { status: Status::LengthMismatch, expected: 10, .. }]),
        "{refused:?}"
    );
}

#[test]
fn an_overflowed_sum_can_be_replayed() {
    let mut switch = one_behind();
    let sum = [f32::INFINITY, f32::NAN];
    let sent = switch.send(1, Class::Data, &weighted(0, REPLAY, 3, &sum));
    let given = |sent: &Sent| match sent {
        Sent::Result { to: 3, index: 0, contributions, floats, .. } => Some((*contributions, floats[0])),
        _ => None,
    };
    assert_eq!(sent.iter().find_map(given), Some((3, f32::INFINITY)), "{sent:?}");
}
