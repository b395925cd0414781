/* Register map of the iSwitch accelerator, version 4. Do not edit.
   Written by `cargo run --release -p hdl -- generate`. */
#ifndef ISWITCH_ACCEL_H
#define ISWITCH_ACCEL_H

/* Values of the first two registers. */
#define ISWITCH_ACCEL_ID_VALUE 0x00575369
#define ISWITCH_ACCEL_VERSION_VALUE 4

/* Offsets of the registers in bytes; r: read only, rw: read and write. IPv4 addresses, UDP ports and MAC
   addresses are in wire byte order, with the first byte in the lowest bits. */

/* r: identification of the core: 0x00575369, the letters "iSW" and a zero byte */
#define ISWITCH_ACCEL_ID 0x000

/* r: version of this register map: 4 */
#define ISWITCH_ACCEL_VERSION 0x004

/* rw: writing 1 to bit 0 clears the counters; writing 1 to bit 4 discards all sums */
#define ISWITCH_ACCEL_RESET 0x008

/* rw: reads as the complement of the value written */
#define ISWITCH_ACCEL_FLIP 0x00C

/* rw: reads as the value written */
#define ISWITCH_ACCEL_DEBUG 0x010

/* r: number of frames received */
#define ISWITCH_ACCEL_PKTIN 0x014

/* r: number of frames sent */
#define ISWITCH_ACCEL_PKTOUT 0x018

/* r: bits 7..0: H; bit 8: halted; bit 9: sums are being discarded; bit 10: segments are being finished; bit 11:
   results wait, are being sent or have been requested again; bit 12: a value outside its range has been refused
   since the counters were last cleared; bits 31..24: members that have spent their budget of repeated results (all
   of them while REPEATS is 0) */
#define ISWITCH_ACCEL_STATUS 0x01C

/* rw: bit 0: take the job's frames; bit 1: halted; bit 2: forward data packets whose sender is not a member, instead
   of dropping them; bits 15..8: rate of results in quarters of a byte per cycle (25 for 10 Gb/s), or 0 for no limit */
#define ISWITCH_ACCEL_CONTROL 0x020

/* rw: H of future rounds, 1 to 64; if bit 31 is set, the write also changes H of the open rounds */
#define ISWITCH_ACCEL_THRESHOLD 0x024

/* rw: first round of the job */
#define ISWITCH_ACCEL_BASE_ROUND 0x028

/* rw: number of segments of the vector, minus one */
#define ISWITCH_ACCEL_LAST_INDEX 0x02C

/* rw: bits 8..0: number of floats of a segment; bits 24..16: number of floats of the last segment */
#define ISWITCH_ACCEL_FLOATS 0x030

/* rw: identifier of the job */
#define ISWITCH_ACCEL_JOB 0x034

/* rw: bits 7..0: ToS of data packets; bits 15..8: ToS of control packets; bits 31..16: UDP port of the switch */
#define ISWITCH_ACCEL_FILTER 0x038

/* rw: round of the segments to finish */
#define ISWITCH_ACCEL_FINISH_ROUND 0x03C

/* rw: first segment to finish */
#define ISWITCH_ACCEL_FINISH_FIRST 0x040

/* rw: number of segments to finish, at most 1,024; a write starts the operation; if bit 31 is set, only segments
   with enough contributions are finished */
#define ISWITCH_ACCEL_FINISH_COUNT 0x044

/* rw: destination MAC address of results, first four bytes */
#define ISWITCH_ACCEL_TO_MAC 0x048

/* rw: last two bytes of the destination MAC address, and first two of the source MAC address */
#define ISWITCH_ACCEL_MACS 0x04C

/* rw: last four bytes of the source MAC address */
#define ISWITCH_ACCEL_FROM_MAC 0x050

/* rw: IPv4 address of the switch: source of results, and destination of the job's frames */
#define ISWITCH_ACCEL_FROM_ADDRESS 0x054

/* rw: destination IPv4 address */
#define ISWITCH_ACCEL_TO_ADDRESS 0x058

/* rw: UDP ports of results; bits 15..0: source; bits 31..16: destination */
#define ISWITCH_ACCEL_PORTS 0x05C

/* rw: bits 7..0: ToS of results; bits 15..8: tuser destination of control packets, to which results add the ports of
   the members; bits 31..16: one's-complement sum of the half-words of the IPv4 header that are the same in all
   results */
#define ISWITCH_ACCEL_RESULT 0x060

/* r: number of cycles in which a burst stalled because an earlier burst with the same address was in the loop */
#define ISWITCH_ACCEL_HAZARDS 0x064

/* rw: bits 15..0: budget of each member, the number of results that it may request again; each result of the job
   restores 8 of them, and so do 2^20 clock cycles */
#define ISWITCH_ACCEL_REPEATS 0x068

/* r: number of requests for results that were discarded because the budget was spent or because too many requests
   waited */
#define ISWITCH_ACCEL_SKIPPED 0x06C

/* rw: number of a slot; a write copies the state of the slot to the four registers SLOT_STATE to SLOT_PREVIOUS */
#define ISWITCH_ACCEL_SLOT 0x070

/* rw: eight members of two words each: first the IPv4 address, then a word with bits 15..0: UDP port; bit 16: valid;
   bit 17: the member is a switch; bits 31..24: port of the board as a bit of tuser */
#define ISWITCH_ACCEL_MEMBERS 0x080
#define ISWITCH_ACCEL_MEMBERS_WORDS 16

/* r: counters, of which 18 are used, in this order: ordinary, control, summed, completed, forced, and one for each
   drop reason: unknown_member, malformed, halted, seg_out_of_range, length_mismatch, bad_weight, duplicate, late,
   stale_round, early_round, not_participant; then repeated (results that were retransmitted) and unanswered
   (requests for results that are not kept) */
#define ISWITCH_ACCEL_COUNTERS 0x100
#define ISWITCH_ACCEL_COUNTERS_WORDS 32

/* r: bit 0: the sum of the slot is open; bit 1: it is complete; bit 2: the sum of the segment that used the slot
   before is kept; bit 3: bank of the sum; bits 15..8: members in the sum; bits 31..16: number of worker gradients in
   the sum; if bits 0 and 1 are clear, the slot is empty */
#define ISWITCH_ACCEL_SLOT_STATE 0x180

/* r: round of the sum */
#define ISWITCH_ACCEL_SLOT_ROUND 0x184

/* r: index of the segment of the sum */
#define ISWITCH_ACCEL_SLOT_SEGMENT 0x188

/* r: number of worker gradients in the sum that is kept */
#define ISWITCH_ACCEL_SLOT_PREVIOUS 0x18C

/* r: next round to open */
#define ISWITCH_ACCEL_ROUND_NEXT 0x190

/* r: number of segments of the even round that are not finished */
#define ISWITCH_ACCEL_ROUND_EVEN 0x194

/* r: number of segments of the odd round that are not finished */
#define ISWITCH_ACCEL_ROUND_ODD 0x198

/* r: bits 7..0: H of the even round; bits 15..8: members that take part in it; bits 23..16 and 31..24: those of the
   odd round */
#define ISWITCH_ACCEL_ROUND_RULES 0x19C

/* Indices of the counters. */
#define ISWITCH_ACCEL_COUNTER_ORDINARY 0
#define ISWITCH_ACCEL_COUNTER_CONTROL 1
#define ISWITCH_ACCEL_COUNTER_SUMMED 2
#define ISWITCH_ACCEL_COUNTER_COMPLETED 3
#define ISWITCH_ACCEL_COUNTER_FORCED 4
#define ISWITCH_ACCEL_COUNTER_UNKNOWN_MEMBER 5
#define ISWITCH_ACCEL_COUNTER_MALFORMED 6
#define ISWITCH_ACCEL_COUNTER_HALTED 7
#define ISWITCH_ACCEL_COUNTER_SEG_OUT_OF_RANGE 8
#define ISWITCH_ACCEL_COUNTER_LENGTH_MISMATCH 9
#define ISWITCH_ACCEL_COUNTER_BAD_WEIGHT 10
#define ISWITCH_ACCEL_COUNTER_DUPLICATE 11
#define ISWITCH_ACCEL_COUNTER_LATE 12
#define ISWITCH_ACCEL_COUNTER_STALE_ROUND 13
#define ISWITCH_ACCEL_COUNTER_EARLY_ROUND 14
#define ISWITCH_ACCEL_COUNTER_NOT_PARTICIPANT 15
#define ISWITCH_ACCEL_COUNTER_REPEATED 16
#define ISWITCH_ACCEL_COUNTER_UNANSWERED 17

#endif
