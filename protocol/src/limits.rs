//! Every limit of the system, with the relations that must hold between them.

/// Version of the control protocol that this crate speaks (requirement C-2).
pub const PROTOCOL_VERSION: u8 = 1;

/// ToS of control packets: DSCP 3, from the experimental/local-use pool xxxx11 of RFC 2474 section 6.
pub const DEFAULT_CONTROL_TOS: u8 = 0x0C;
/// ToS of data packets: DSCP 7, from the same pool.
pub const DEFAULT_DATA_TOS: u8 = 0x1C;
/// The DSCP bits of the ToS byte; the low two belong to ECN (RFC 3168).
pub const TOS_MASK: u8 = 0xFC;
/// UDP port of the switch.
pub const DEFAULT_PORT: u16 = 7711;

/// Bits of the segment index in Seg.
pub const INDEX_BITS: u32 = 24;
/// Bits of the round in Seg.
pub const ROUND_BITS: u32 = 24;
/// Bits of the contribution count in Seg.
pub const CONTRIBUTIONS_BITS: u32 = 16;
/// Worker gradients that a packet can hold.
pub const MAX_CONTRIBUTIONS: u16 = u16::MAX - 1;
/// Segments in a vector.
pub const MAX_SEGMENTS: u32 = 1 << INDEX_BITS;

/// Bytes of the Seg field at the start of each data packet.
pub const SEG_LEN_BYTES: usize = 8;
/// Bytes of one gradient element.
pub const FLOAT_LEN_BYTES: usize = 4;
/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER_LEN_BYTES: usize = 20;
/// Bytes of a UDP header.
pub const UDP_HEADER_LEN_BYTES: usize = 8;
/// Floats in a segment at an MTU of 1500 bytes.
pub const DEFAULT_SEGMENT_FLOATS: u16 = segment_floats_for_mtu(1500);
/// Floats in a segment at an MTU of 9000 bytes: the most that a job may ask for.
pub const MAX_SEGMENT_FLOATS: u16 = segment_floats_for_mtu(9000);
/// Bytes of the largest UDP payload that is ours.
pub const MAX_PAYLOAD_LEN_BYTES: usize = SEG_LEN_BYTES + MAX_SEGMENT_FLOATS as usize * FLOAT_LEN_BYTES;
/// Bytes of the trailer of an authenticated control packet: a counter and a tag (requirement A-1).
pub const TRAILER_LEN_BYTES: usize = 24;
/// Bytes of the tag behind the floats of a data packet, where a job asks for it (requirement A-9).
pub const DATA_TAG_LEN_BYTES: usize = 8;
/// Floats in a tagged segment at an MTU of 1500 bytes.
pub const DEFAULT_TAGGED_SEGMENT_FLOATS: u16 = tagged_segment_floats(DEFAULT_SEGMENT_FLOATS);
/// Floats in a tagged segment at an MTU of 9000 bytes: the most that a job with tags may ask for.
pub const MAX_TAGGED_SEGMENT_FLOATS: u16 = tagged_segment_floats(MAX_SEGMENT_FLOATS);
/// Bytes of the shortest key.
pub const MIN_KEY_LEN_BYTES: usize = 16;
/// Bytes of the longest key: one block of SHA-256.
pub const MAX_KEY_LEN_BYTES: usize = 64;
/// Bytes of the largest control packet before padding, trailer included.
pub const MAX_CONTROL_LEN_BYTES: usize = 232;
/// Bytes that one offloaded send or receive may carry: the largest UDP payload of one IPv4 packet.
pub const MAX_SUPERFRAME_LEN_BYTES: usize = 65_507;
/// Datagrams that the kernel accepts in one offloaded send (`UDP_MAX_SEGMENTS` before Linux 6.9).
pub const MAX_SUPERFRAME_DATAGRAMS: usize = 64;

/// Datagrams of so many bytes that one offloaded send may carry: at least one.
pub const fn superframe_datagrams(len_bytes: usize) -> usize {
    let len_bytes = if len_bytes == 0 { 1 } else { len_bytes };
    match MAX_SUPERFRAME_LEN_BYTES / len_bytes {
        0 => 1,
        fitting if fitting > MAX_SUPERFRAME_DATAGRAMS => MAX_SUPERFRAME_DATAGRAMS,
        fitting => fitting,
    }
}

/// Members of one job: a bitmap of contributors is one 64-bit word.
pub const MAX_MEMBERS: usize = 64;
/// Levels of switches above the workers. Switches in a circle would have ever more.
pub const MAX_HEIGHT: u8 = 8;
/// Parents among which a switch may choose.
pub const MAX_PARENTS: usize = 8;
/// Segments that one Help or FBcast may name.
pub const MAX_RANGE_SEGMENTS: u32 = 1024;
/// Bytes of a bitmap with one bit for each of them.
pub const MAX_BITMAP_LEN_BYTES: usize = MAX_RANGE_SEGMENTS as usize / 8;

/// Fewest aggregates of an asynchronous job that the switch has memory for.
pub const MIN_ASYNC_GENERATIONS: usize = 8;
/// Most of them: small vectors are summed so fast that a member which lost a result needs more time.
pub const MAX_ASYNC_GENERATIONS: usize = 64;
/// Memory for more than the fewest, in bytes.
pub const ASYNC_KEPT_BYTES: usize = 4 << 20;
/// Vectors that the sender of asynchronous contributions may give up one after the other.
pub const MAX_SKIPPED_VECTORS: u32 = 64;
/// Digests of the weights that the switch remembers of a job.
pub const MAX_DIGESTS: usize = 8;

/// Jobs on one switch.
pub const MAX_JOBS: usize = 64;
/// If a switch holds keys, jobs without a key share one part in this many of its places, of its slots and of its sums.
pub const KEYLESS_SHARE: usize = 2;
/// Rows of the table of buckets for senders that are no members.
pub const STRANGER_ROWS: usize = 2;
/// Cells in each row.
pub const STRANGER_CELLS: usize = 4096;
/// Seconds of its rate that such a bucket holds.
pub const STRANGER_BURST_S: u64 = 4;
/// Control packets that one call into the switch may leave to be sent: an answer to each datagram of a
/// super-frame and a notice to each member.
pub const MAX_PENDING_CONTROL: usize = 256;
/// Ranges of segments of one job that wait because a member or the parent asked for them: to be sent again, or closed.
pub const MAX_PENDING_REQUESTS: usize = 128;
/// Vectors of one asynchronous job that wait to be added, at most one of each member.
pub const MAX_PENDING_VECTORS: usize = MAX_MEMBERS;
/// Aggregates of such a job that wait to be sent although no vector completed them. Each holds a vector, and of the
/// first one all vectors may have been added.
pub const MAX_PENDING_AGGREGATES: usize = MAX_PENDING_VECTORS + 1;
/// All ranges of segments of one job that wait.
pub const MAX_PENDING_RANGES: usize = MAX_PENDING_REQUESTS + MAX_PENDING_VECTORS + MAX_PENDING_AGGREGATES;
/// Events that wait to be logged.
pub const MAX_PENDING_EVENTS: usize = 256;
/// Records that the flight recorder keeps of the events of a job, and as many of the course of its rounds.
pub const FLIGHT_RECORDS: usize = 128;
/// Cost after which queued work of one job makes way for that of another, and all queued work for packets that arrive.
/// A unit is roughly 5 ns: all of it takes about as long as receiving a super-frame, so that a tenant with a constant
/// backlog gets about half of the time.
pub const MAX_WORK_COST: u32 = 4096;
/// Cost of examining one segment.
pub const WORK_COST_PER_SEGMENT: u32 = 3;
/// Cost of a step of queued work that does nearly nothing.
pub const MIN_STEP_COST: u32 = MAX_WORK_COST / 8;
/// Cost of sending one datagram to one member.
pub const WORK_COST_PER_DATAGRAM: u32 = 8;
/// Floats that are added or copied for one unit of cost.
pub const WORK_FLOATS_PER_COST: usize = 16;
/// Segments that each result of a job adds to the budget of repeated results of each member.
pub const REPEATS_PER_RESULT: u64 = 8;
/// The least capacity of that budget, however short the vector.
pub const MIN_REPEATS: u64 = 256;
/// Longest UDP payload on a path with an MTU of 9,000 bytes.
pub const MAX_JUMBO_PAYLOAD_BYTES: usize = 9_000 - IPV4_HEADER_LEN_BYTES - UDP_HEADER_LEN_BYTES;

/// Bytes of a receive buffer that Linux charges for a datagram with a UDP payload of that length (`sk_buff::truesize`).
///
/// The kernel allocates an `sk_buff` (256 bytes), and a buffer for headroom (64), Ethernet, IPv4 and UDP headers (42),
/// payload and `skb_shared_info` (320) that it rounds up to a power of two; a short one comes from a cache of 576 bytes
/// each (Linux 6.3 and later). A super-frame is charged less than its datagrams are one by one.
#[inline]
pub const fn datagram_truesize(payload_len: usize) -> usize {
    const SK_BUFF: usize = 256;
    const SMALL_HEAD: usize = 576;
    let buffer = (64 + 42 + payload_len + 320).next_power_of_two();
    SK_BUFF + if buffer < SMALL_HEAD { SMALL_HEAD } else { buffer }
}

/// Bytes of a receive buffer that data packets in flight may be charged for.
///
/// Linux counts up to a quarter of the buffer of a UDP socket for datagrams that were read (`udp_rmem_release`),
/// and requests need room too.
pub const fn recv_room(recv_buffer_bytes: usize) -> usize {
    recv_buffer_bytes / 8 * 5
}

/// Floats that fit in one data packet on a path of the given MTU.
///
/// Zero where not even one fits.
#[inline]
pub const fn segment_floats_for_mtu(mtu_bytes: u16) -> u16 {
    let overhead = (IPV4_HEADER_LEN_BYTES + UDP_HEADER_LEN_BYTES + SEG_LEN_BYTES) as u16;
    mtu_bytes.saturating_sub(overhead) / FLOAT_LEN_BYTES as u16
}

/// Floats that fit with a tag where `segment_floats` fit without.
#[inline]
pub const fn tagged_segment_floats(segment_floats: u16) -> u16 {
    segment_floats.saturating_sub((DATA_TAG_LEN_BYTES / FLOAT_LEN_BYTES) as u16)
}

/// Aggregates of an asynchronous job that the switch has memory for: the one being filled, and the last ones,
/// kept for members that lost their results. A power of two, so that their numbers may wrap.
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
    assert!(DEFAULT_SEGMENT_FLOATS == 366);
    assert!(DATA_TAG_LEN_BYTES.is_multiple_of(FLOAT_LEN_BYTES));
    assert!(MAX_PAYLOAD_LEN_BYTES <= MAX_SUPERFRAME_LEN_BYTES);
    assert!(MAX_MEMBERS <= u64::BITS as usize);
    assert!(MAX_MEMBERS <= 1 << CONTRIBUTIONS_BITS);
    assert!(MIN_ASYNC_GENERATIONS.is_power_of_two() && MAX_ASYNC_GENERATIONS.is_power_of_two());
    assert!(MIN_ASYNC_GENERATIONS >= 2 && MIN_ASYNC_GENERATIONS <= MAX_ASYNC_GENERATIONS);
    assert!(MAX_PENDING_CONTROL >= MAX_MEMBERS + 2 * MAX_SUPERFRAME_DATAGRAMS);
    // The members of a job and a super-frame of requests of one of them find a place.
    assert!(MAX_PENDING_REQUESTS >= MAX_MEMBERS + MAX_SUPERFRAME_DATAGRAMS);
    // Which jobs have queued work is one 64-bit word.
    assert!(MAX_JOBS <= u64::BITS as usize);
    // Within its share a step can examine a range that a request names, send a segment to all members, and add the
    // longest segment.
    assert!(MAX_WORK_COST >= WORK_COST_PER_SEGMENT * MAX_RANGE_SEGMENTS);
    assert!(MAX_WORK_COST >= WORK_COST_PER_DATAGRAM * MAX_MEMBERS as u32);
    assert!(MAX_WORK_COST as usize * WORK_FLOATS_PER_COST >= MAX_SEGMENT_FLOATS as usize);
    assert!(KEYLESS_SHARE > 1 && KEYLESS_SHARE < MAX_JOBS);
    // Each row needs its own bits of a 64-bit hash.
    assert!(STRANGER_CELLS as u64 <= 1 << (u64::BITS / STRANGER_ROWS as u32));
    assert!(DEFAULT_CONTROL_TOS & !TOS_MASK == 0 && DEFAULT_DATA_TOS & !TOS_MASK == 0);
    // A Help answer is an Ack with one bit for each segment of the range.
    assert!(
        crate::wire::control::ACK_LEN_BYTES
            + crate::wire::control::RANGE_LEN_BYTES
            + MAX_BITMAP_LEN_BYTES
            + TRAILER_LEN_BYTES
            <= MAX_CONTROL_LEN_BYTES
    );
};
