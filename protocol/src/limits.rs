//! All limits of the system, with compile-time checks of the relations between these limits.

/// Version of the control protocol that this crate speaks (requirement C-2).
pub const PROTOCOL_VERSION: u8 = 1;

/// Default ToS of control packets: DSCP 3, from the experimental/local-use pool xxxx11 of RFC 2474 section 6.
pub const DEFAULT_CONTROL_TOS: u8 = 0x0C;
/// Default ToS of data packets: DSCP 7, from the same pool as the ToS of control packets.
pub const DEFAULT_DATA_TOS: u8 = 0x1C;
/// Mask of the DSCP bits in the ToS byte; the two low-order bits of that byte belong to ECN (RFC 3168).
pub const TOS_MASK: u8 = 0xFC;
/// Default UDP port of the switch.
pub const DEFAULT_PORT: u16 = 7711;

/// Width of the segment index in Seg, in bits.
pub const INDEX_BITS: u32 = 24;
/// Width of the round in Seg, in bits.
pub const ROUND_BITS: u32 = 24;
/// Width of the contribution count in Seg, in bits.
pub const CONTRIBUTIONS_BITS: u32 = 16;
/// Maximum number of worker gradients whose sum one packet may carry.
pub const MAX_CONTRIBUTIONS: u16 = u16::MAX - 1;
/// Maximum number of segments in a vector.
pub const MAX_SEGMENTS: u32 = 1 << INDEX_BITS;

/// Length of the Seg field at the start of each data packet, in bytes.
pub const SEG_LEN_BYTES: usize = 8;
/// Length of one float of a vector in memory, and of one binary32 element in a packet, in bytes.
pub const FLOAT_LEN_BYTES: usize = 4;
/// Length of one element of the short types bfloat16 and binary16, in bytes.
pub const SHORT_LEN_BYTES: usize = 2;
/// Length of an IPv4 header without options, in bytes.
pub const IPV4_HEADER_LEN_BYTES: usize = 20;
/// Length of a UDP header, in bytes.
pub const UDP_HEADER_LEN_BYTES: usize = 8;
/// Default MTU for which segments are sized: the MTU of Ethernet.
pub const DEFAULT_MTU_BYTES: u16 = 1500;
/// Number of floats in a segment if the MTU is 1,500 bytes.
pub const DEFAULT_SEGMENT_FLOATS: u16 = segment_floats_for_mtu(DEFAULT_MTU_BYTES);
/// Maximum number of binary32 elements in a packet: the number that fits at an MTU of 9,000 bytes.
pub const MAX_SEGMENT_FLOATS: u16 = segment_floats_for_mtu(9000);
/// Maximum number of floats in a segment of 16-bit elements: the number that fits at an MTU of 9,000 bytes.
pub const MAX_SHORT_SEGMENT_FLOATS: u16 = MAX_SEGMENT_FLOATS * (FLOAT_LEN_BYTES / SHORT_LEN_BYTES) as u16;
/// Maximum length of the UDP payload of a data or control packet, in bytes.
pub const MAX_PAYLOAD_LEN_BYTES: usize = SEG_LEN_BYTES + MAX_SEGMENT_FLOATS as usize * FLOAT_LEN_BYTES;
/// Length of the trailer (counter and tag) of an authenticated control packet, in bytes (requirement A-1).
pub const TRAILER_LEN_BYTES: usize = 24;
/// Length of the tag after the floats of a data packet in a job with tagged data, in bytes (requirement A-9).
pub const DATA_TAG_LEN_BYTES: usize = 8;
/// Number of floats in a tagged segment at an MTU of 1,500 bytes.
pub const DEFAULT_TAGGED_SEGMENT_FLOATS: u16 = tagged_segment_floats(DEFAULT_SEGMENT_FLOATS);
/// Maximum number of floats in a tagged segment: the number that fits at an MTU of 9,000 bytes.
pub const MAX_TAGGED_SEGMENT_FLOATS: u16 = tagged_segment_floats(MAX_SEGMENT_FLOATS);
/// Minimum length of a key, in bytes.
pub const MIN_KEY_LEN_BYTES: usize = 16;
/// Maximum length of a key, in bytes: one block of SHA-256.
pub const MAX_KEY_LEN_BYTES: usize = 64;
/// Maximum length of a control packet before padding, including its trailer, in bytes.
pub const MAX_CONTROL_LEN_BYTES: usize = 232;
/// Maximum payload of one offloaded send or receive, in bytes: the largest UDP payload of one IPv4 packet.
pub const MAX_SUPERFRAME_LEN_BYTES: usize = 65_507;
/// Maximum number of datagrams that the kernel accepts in one offloaded send (`UDP_MAX_SEGMENTS` before Linux 6.9).
pub const MAX_SUPERFRAME_DATAGRAMS: usize = 64;

/// Returns the number of datagrams of `len_bytes` that one offloaded send may carry, at least one.
pub const fn superframe_datagrams(len_bytes: usize) -> usize {
    let len_bytes = if len_bytes == 0 { 1 } else { len_bytes };
    match MAX_SUPERFRAME_LEN_BYTES / len_bytes {
        0 => 1,
        fitting if fitting > MAX_SUPERFRAME_DATAGRAMS => MAX_SUPERFRAME_DATAGRAMS,
        fitting => fitting,
    }
}

/// Maximum length of the name of a job, in bytes of UTF-8.
pub const MAX_JOB_NAME_LEN_BYTES: usize = 32;
/// Maximum length of the owner of a job, in bytes of UTF-8.
pub const MAX_OWNER_LEN_BYTES: usize = 32;
/// Maximum length of the host name of a member, in bytes of UTF-8: the length of a DNS label (RFC 1035 section 2.3.4).
pub const MAX_HOST_LEN_BYTES: usize = 63;
/// Maximum length of the list of members in an Absent, in bytes. It has room for two members whose host names have the
/// maximum length, or for ten members whose host names have 15 bytes.
pub const MAX_ABSENT_LEN_BYTES: usize = 180;
/// Maximum number of times that a member sends its Name if the switch does not answer (requirement N-3).
pub const MAX_NAME_TRIES: u8 = 8;

/// Maximum number of members in one job. A set of contributors is stored as a bitmap in a single 64-bit word.
pub const MAX_MEMBERS: usize = 64;
/// Maximum number of switch levels above the workers. The limit detects switches connected in a loop, in which the
/// number of levels would grow without bound.
pub const MAX_HEIGHT: u8 = 8;
/// Maximum number of parents that a switch may choose from.
pub const MAX_PARENTS: usize = 8;
/// Maximum number of segments that one Help, Confirm or FBcast may name.
pub const MAX_RANGE_SEGMENTS: u32 = 1024;
/// Maximum length of a segment bitmap, in bytes. The bitmap has one bit for each segment of a range.
pub const MAX_BITMAP_LEN_BYTES: usize = MAX_RANGE_SEGMENTS as usize / 8;

/// Maximum number of parts into which a vector is divided; the Ack of a Join has four bits for the number.
pub const MAX_PARTS: usize = 16;
/// Minimum number of segments in a part. A vector that is too short for this is divided into fewer parts (requirement
/// T-3).
pub const MIN_PART_SEGMENTS: u32 = 64;
/// Number of bits in which the history of a part counts the sums (requirement T-6).
pub const TURN_BITS: u32 = 24;

/// Minimum number of aggregates that the switch can store for an asynchronous job.
pub const MIN_ASYNC_GENERATIONS: usize = 8;
/// Maximum number of aggregates that the switch can store for an asynchronous job. Aggregates of small vectors follow
/// each other so quickly that the switch must keep more of them; otherwise, a member that lost a result could not catch
/// up.
pub const MAX_ASYNC_GENERATIONS: usize = 64;
/// Memory budget for the aggregates of an asynchronous job, in bytes. [`MIN_ASYNC_GENERATIONS`] aggregates are kept
/// even if they exceed the budget.
pub const ASYNC_KEPT_BYTES: usize = 4 << 20;
/// Maximum number of consecutive vectors that the sender of asynchronous contributions may skip.
pub const MAX_SKIPPED_VECTORS: u32 = 64;
/// Number of weight digests that the switch keeps per job.
pub const MAX_DIGESTS: usize = 8;

/// IPv4 network of the group addresses of jobs. The network is part of the organization-local scope (RFC 2365 section
/// 6.2), whose MAC addresses differ from those of the groups that a bridge always floods (requirement B-2).
pub const GROUP_NETWORK: u32 = 0xefc0_0000;
/// Number of low-order bits of a group's address that differ between groups.
pub const GROUP_BITS: u32 = 18;
/// First UDP port of groups. It lies above the range from which Linux assigns ephemeral ports by default.
pub const FIRST_GROUP_PORT: u16 = 61_000;
/// Number of UDP ports that are available to groups.
pub const GROUP_PORTS: u16 = u16::MAX - FIRST_GROUP_PORT + 1;
/// Maximum number of outlets through which one job sends to its group. An outlet is a pair of a switch port and an
/// address of the switch. Members behind other outlets receive results by unicast.
pub const MAX_GROUP_OUTLETS: usize = 8;
/// Minimum number of members that one multicast copy of a result must reach. For a single member, a unicast copy costs
/// no more.
pub const MIN_GROUP_MEMBERS: u16 = 2;
/// Minimum time between two Probes of a job, in milliseconds (requirement B-4).
pub const MIN_PROBE_INTERVAL_MS: u64 = 10;
/// Interval at which the members that hear a group must confirm that the group still reaches them, in milliseconds
/// (requirement B-6).
pub const PROBE_INTERVAL_MS: u64 = 10_000;
/// Time after which the switch first repeats the offer of a group to a member that has not confirmed the group, in
/// milliseconds. The time doubles with each further offer.
pub const FIRST_OFFER_RETRY_MS: u64 = 250;
/// Maximum time between two offers of a group to a member that has not confirmed the group, in milliseconds.
pub const LAST_OFFER_RETRY_MS: u64 = 64_000;
/// Number of missed rounds, in close succession, after which the switch returns a member of a synchronous job to
/// unicast (requirement B-6). A member misses a round if it requests results of the round that were also sent to the
/// group.
pub const MAX_GROUP_MISSES: u8 = 3;

/// Maximum number of jobs on one switch.
pub const MAX_JOBS: usize = 64;
/// Divisor that limits jobs without a key: if the switch has any keys, all such jobs together may use at most `1 /
/// KEYLESS_SHARE` of its job entries, its slots and its memory for sums (requirement M-13).
pub const KEYLESS_SHARE: usize = 2;
/// Number of rows in the table of rate-limit buckets for non-members.
pub const STRANGER_ROWS: usize = 2;
/// Number of buckets in each row of the table of rate-limit buckets for non-members.
pub const STRANGER_CELLS: usize = 4096;
/// Capacity of a non-member's rate-limit bucket, expressed as the number of seconds that it takes to refill.
pub const STRANGER_BURST_S: u64 = 4;
/// Maximum number of control packets that one call into the switch may queue: at most one answer to each datagram of a
/// super-frame, and one notice to each member.
pub const MAX_PENDING_CONTROL: usize = 256;
/// Maximum number of segment ranges of one job that are queued because a member or the parent requested that they be
/// retransmitted or closed.
pub const MAX_PENDING_REQUESTS: usize = 128;
/// Maximum number of vectors of one asynchronous job that are waiting to be added to an aggregate: one vector per
/// member.
pub const MAX_PENDING_VECTORS: usize = MAX_MEMBERS;
/// Maximum number of early aggregates of an asynchronous job that are waiting to be sent. An early aggregate is one
/// that was finished before enough vectors had been admitted. Each early aggregate contains at least one vector that is
/// still queued, except possibly the first one.
pub const MAX_PENDING_AGGREGATES: usize = MAX_PENDING_VECTORS + 1;
/// Maximum number of queued segment ranges of one job: those of requests, vectors and aggregates together.
pub const MAX_PENDING_RANGES: usize = MAX_PENDING_REQUESTS + MAX_PENDING_VECTORS + MAX_PENDING_AGGREGATES;
/// Maximum number of events that are waiting to be logged.
pub const MAX_PENDING_EVENTS: usize = 256;
/// Number of flight-recorder entries that are kept for a job's events. The same number is kept for the progress of its
/// rounds.
pub const FLIGHT_RECORDS: usize = 128;
/// Cost after which the queued work of a job yields to that of the next job, and after which all queued work yields
/// to arriving packets. One unit is roughly 5 ns, so this budget takes about as long as receiving a super-frame, and
/// a tenant with a constant backlog gets about half of the processing time.
pub const MAX_WORK_COST: u32 = 4096;
/// Cost of examining one segment.
pub const WORK_COST_PER_SEGMENT: u32 = 3;
/// Minimum cost that is charged for a step of queued work.
pub const MIN_STEP_COST: u32 = MAX_WORK_COST / 8;
/// Cost of sending one datagram to one member.
pub const WORK_COST_PER_DATAGRAM: u32 = 8;
/// Number of floats that are added or copied at the cost of one unit.
pub const WORK_FLOATS_PER_COST: usize = 16;
/// Number of segments that each result of a job adds to every member's budget for repeated results (requirement F-3).
pub const REPEATS_PER_RESULT: u64 = 8;
/// Minimum capacity of a member's budget for repeated results, in segments, regardless of the length of the vector.
pub const MIN_REPEATS: u64 = 256;
/// Maximum UDP payload on a path with an MTU of 9,000 bytes, in bytes.
pub const MAX_JUMBO_PAYLOAD_BYTES: usize = 9_000 - IPV4_HEADER_LEN_BYTES - UDP_HEADER_LEN_BYTES;

/// Returns the number of bytes that Linux charges to the receive buffer for a datagram with a UDP payload of this
/// length (`sk_buff::truesize`).
///
/// The kernel allocates an `sk_buff` (256 bytes) and a data buffer. The data buffer holds headroom (64 bytes), the
/// Ethernet, IPv4 and UDP headers (42 bytes), the payload and an `skb_shared_info` (320 bytes), and is rounded up to a
/// power of two. Small buffers come from a cache of 576-byte objects (Linux 6.3 and later). The charge for a
/// super-frame is lower than the total charge for the same datagrams received one by one.
#[inline]
pub const fn datagram_truesize(payload_len: usize) -> usize {
    const SK_BUFF: usize = 256;
    const SMALL_HEAD: usize = 576;
    let buffer = (64 + 42 + payload_len + 320).next_power_of_two();
    SK_BUFF + if buffer < SMALL_HEAD { SMALL_HEAD } else { buffer }
}

/// Returns the number of bytes in a receive buffer of this size that are available to data packets in flight.
///
/// Linux may keep charging up to a quarter of a UDP socket's buffer for datagrams that were already read
/// (`udp_rmem_release`), and control packets also need room.
pub const fn recv_room(recv_buffer_bytes: usize) -> usize {
    recv_buffer_bytes / 8 * 5
}

/// Returns the number of floats that fit in one data packet on a path with this MTU.
///
/// Returns zero if not even one float fits.
#[inline]
pub const fn segment_floats_for_mtu(mtu_bytes: u16) -> u16 {
    let overhead = (IPV4_HEADER_LEN_BYTES + UDP_HEADER_LEN_BYTES + SEG_LEN_BYTES) as u16;
    mtu_bytes.saturating_sub(overhead) / FLOAT_LEN_BYTES as u16
}

/// Returns the number of floats in a tagged segment whose packet is as long as the packet of an untagged segment of
/// `segment_floats` floats.
#[inline]
pub const fn tagged_segment_floats(segment_floats: u16) -> u16 {
    segment_floats.saturating_sub((DATA_TAG_LEN_BYTES / FLOAT_LEN_BYTES) as u16)
}

/// Returns the number of aggregates that the switch can store for an asynchronous job: the one that is being filled,
/// and the most recent finished ones, whose results are kept for members that lost them. The number is a power of two,
/// so that aggregate numbers may wrap.
pub const fn async_generations(gradient_len: u32) -> usize {
    // A vector has at least one float.
    let floats = if gradient_len == 0 { 1 } else { gradient_len as usize };
    let fitting = ASYNC_KEPT_BYTES / (floats * FLOAT_LEN_BYTES);
    if fitting < MIN_ASYNC_GENERATIONS {
        MIN_ASYNC_GENERATIONS
    } else if fitting > MAX_ASYNC_GENERATIONS {
        MAX_ASYNC_GENERATIONS
    } else {
        1 << fitting.ilog2()
    }
}

const _: () = {
    assert!(INDEX_BITS + ROUND_BITS + CONTRIBUTIONS_BITS == 64);
    // This ensures that the length of the first part determines the number of parts.
    assert!(MIN_PART_SEGMENTS as usize > MAX_PARTS);
    assert!(DEFAULT_SEGMENT_FLOATS == 366);
    assert!(DATA_TAG_LEN_BYTES.is_multiple_of(FLOAT_LEN_BYTES));
    assert!(MAX_PAYLOAD_LEN_BYTES <= MAX_SUPERFRAME_LEN_BYTES);
    assert!(MAX_MEMBERS <= u64::BITS as usize);
    assert!(MAX_MEMBERS <= 1 << CONTRIBUTIONS_BITS);
    assert!(MIN_ASYNC_GENERATIONS.is_power_of_two() && MAX_ASYNC_GENERATIONS.is_power_of_two());
    assert!(MIN_ASYNC_GENERATIONS >= 2 && MIN_ASYNC_GENERATIONS <= MAX_ASYNC_GENERATIONS);
    // When a job becomes complete, the switch sends each member a notice and the offer of a group.
    assert!(MAX_PENDING_CONTROL >= 2 * MAX_MEMBERS + 2 * MAX_SUPERFRAME_DATAGRAMS);
    assert!(GROUP_NETWORK & ((1 << GROUP_BITS) - 1) == 0 && 1 << GROUP_BITS > MAX_JOBS);
    assert!(MIN_PROBE_INTERVAL_MS < FIRST_OFFER_RETRY_MS && FIRST_OFFER_RETRY_MS < LAST_OFFER_RETRY_MS);
    // The queue must have room for one request from each member and for a super-frame of requests from one member.
    assert!(MAX_PENDING_REQUESTS >= MAX_MEMBERS + MAX_SUPERFRAME_DATAGRAMS);
    // The set of jobs with queued work is one 64-bit word.
    assert!(MAX_JOBS <= u64::BITS as usize);
    // Within this budget, a step can examine the longest range that a request names, send a segment to all members,
    // or add the longest segment.
    assert!(MAX_WORK_COST >= WORK_COST_PER_SEGMENT * MAX_RANGE_SEGMENTS);
    assert!(MAX_WORK_COST >= WORK_COST_PER_DATAGRAM * MAX_MEMBERS as u32);
    assert!(MAX_WORK_COST as usize * WORK_FLOATS_PER_COST >= MAX_SHORT_SEGMENT_FLOATS as usize);
    assert!(KEYLESS_SHARE > 1 && KEYLESS_SHARE < MAX_JOBS);
    // Each row uses different bits of one 64-bit hash.
    assert!(STRANGER_CELLS as u64 <= 1 << (u64::BITS / STRANGER_ROWS as u32));
    assert!(DEFAULT_CONTROL_TOS & !TOS_MASK == 0 && DEFAULT_DATA_TOS & !TOS_MASK == 0);
    // A Name with the longest permitted texts must not exceed the maximum length of a control packet.
    assert!(
        crate::wire::control::NAME_LEN_BYTES
            + MAX_JOB_NAME_LEN_BYTES
            + MAX_OWNER_LEN_BYTES
            + MAX_HOST_LEN_BYTES
            + TRAILER_LEN_BYTES
            <= MAX_CONTROL_LEN_BYTES
    );
    // The same applies to an Absent.
    assert!(
        crate::wire::control::ABSENT_LEN_BYTES + MAX_ABSENT_LEN_BYTES + TRAILER_LEN_BYTES
            <= MAX_CONTROL_LEN_BYTES
    );
    // The Ack of a Help contains one bit for each segment of the range, and must not exceed the maximum length of a
    // control packet.
    assert!(
        crate::wire::control::ACK_LEN_BYTES
            + crate::wire::control::RANGE_LEN_BYTES
            + MAX_BITMAP_LEN_BYTES
            + TRAILER_LEN_BYTES
            <= MAX_CONTROL_LEN_BYTES
    );
};
