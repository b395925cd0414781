// The Seg counter's step: each contribution preserves the invariant of its slot, so it holds after all contributions.

// Names of internal signals, in the commit cycle.
wire f_accepted = commit && verdict$accept && !deciding[87];
wire f_repeated = commit && verdict$accept && deciding[87];
wire [85:0] f_old = slots$entry;
wire [85:0] f_new = slots$write_entry;
wire f_writes = slots$write;
// In the commit cycle, the round table already answers for the next request.
reg [7:0] f_participants = 0;
reg [7:0] f_needed = 0;
always @(posedge clock) begin f_participants <= rounds$participants; f_needed <= rounds$needed; end

// Fields of the records `Entry`, `Key`, `Job` and `Decision` of records.rs.
wire f_was_open = f_old[0];
wire f_was_done = f_old[1];
wire [16:0] f_old_tag = f_old[19:3];
wire [23:0] f_old_round = f_old[43:20];
wire [7:0] f_old_members = f_was_open ? f_old[51:44] : 8'h0;
wire [15:0] f_old_total = f_was_open ? f_old[67:52] : 16'h0;
wire [7:0] f_new_members = f_new[51:44];
wire [15:0] f_new_total = f_new[67:52];
wire [23:0] f_index = deciding[23:0];
wire [23:0] f_round = deciding[47:24];
wire [15:0] f_weight = deciding[63:48];
wire [15:0] f_udp_len = deciding[79:64];
wire [7:0] f_own = 8'h1 << deciding[82:80];
wire f_forced = deciding[85];
wire [23:0] f_last_index = job[47:24];
wire [8:0] f_floats = f_index == f_last_index ? job[65:57] : job[56:48];
wire [23:0] f_ahead = f_round - f_old_round;
wire f_new_bank = f_new[68];
wire f_same = f_old_round == f_round && f_old_tag == f_index[23:7];
// The slot's segment is the next one after the requested segment that uses the slot.
wire [24:0] f_slots = is_large ? 25'd256 : 25'd128;
wire f_old_is_first = is_large ? f_old_tag[16:1] == 0 : f_old_tag == 0;
wire f_next = (f_round == f_old_round && f_old_tag == {1'b0, f_index[23:7]} + f_slots[24:7])
    || (f_round + 24'd1 == f_old_round && f_old_is_first && f_index + f_slots > f_last_index);
wire [15:0] f_kept_total = f_same ? f_old[67:52] : f_old[85:70];

function [3:0] f_ones(input [7:0] bits);
    f_ones = bits[0] + bits[1] + bits[2] + bits[3] + bits[4] + bits[5] + bits[6] + bits[7];
endfunction
// Invariant of an open slot: it has members, the total fits, and each member counts as one unless it is a switch.
function f_sound(input [85:0] slot_entry, input [7:0] which_are_switches);
    f_sound = !(slot_entry[0] && slot_entry[1])
        && (!slot_entry[0] || (slot_entry[51:44] != 0 && slot_entry[67:52] <= 16'hfffe
            && ((slot_entry[51:44] & which_are_switches) != 0 || slot_entry[67:52] == f_ones(slot_entry[51:44]))));
endfunction

wire f_contributes = f_accepted && !f_forced;
wire [3:0] f_count = f_ones(f_new_members & f_participants);
always @(posedge clock) begin
    assume (f_sound(f_old, switches));

    stays_sound: assert (!f_writes || f_sound(f_new, switches));
    only_participants: assert (!f_contributes || (f_own & f_participants) != 0);
    only_known_and_well_formed: assert (!f_contributes || (deciding[83] && !deciding[84]));
    each_member_once: assert (!f_contributes || (f_old_members & f_own) == 0);
    adds_itself_to_the_members: assert (!f_contributes || f_new_members == (f_old_members | f_own));
    adds_its_weight: assert (!f_contributes || f_new_total == f_old_total + f_weight);
    a_worker_weighs_one: assert (!f_contributes || (f_own & switches) != 0 || f_weight == 1);
    total_does_not_wrap: assert (!f_contributes || {1'b0, f_old_total} + f_weight <= 17'h0fffe);
    count_in_range: assert (!f_contributes || f_count <= 8);
    done_when_enough: assert (!f_contributes || f_new[1] == (f_count >= f_needed && f_count != 0));
    open_or_done: assert (!f_accepted || f_new[0] == !f_new[1]);
    only_the_segment_that_is_open: assert (!(f_accepted && f_was_open)
        || (f_old_round == f_round && f_old_tag == f_index[23:7]));
    never_an_older_round: assert (!(f_contributes && (f_was_open || f_was_done)) || f_ahead <= 1);
    first_reads_as_zero: assert (!f_accepted || decision[3] == !f_was_open);
    last_goes_out: assert (!f_accepted || decision[4] == f_new[1]);
    only_indices_of_the_vector: assert (!f_accepted || f_index <= f_last_index);
    only_the_right_length: assert (!f_contributes || f_udp_len == 16 + 4 * f_floats);
    forced_adds_nothing: assert (!(f_accepted && f_forced)
        || (f_was_open && f_new[1] && f_new_members == f_old_members && f_new_total == f_old_total));
    first_takes_the_other_bank: assert (!(f_contributes && f_was_done) || f_new_bank == !f_old[68]);
    first_keeps_the_sum_before: assert (!(f_contributes && f_was_done)
        || (f_new[69] && f_new[85:70] == f_old[67:52]));
    nothing_is_kept_of_an_empty_slot: assert (!(f_contributes && !f_was_open && !f_was_done) || !f_new[69]);
    others_keep_the_banks: assert (!(f_accepted && f_was_open) || f_new[85:68] == f_old[85:68]);
    adds_in_the_bank_of_the_slot: assert (!f_accepted || decision[5] == f_new_bank);
    repeats_only_what_is_kept: assert (!f_repeated
        || (f_same ? f_was_done : f_next && f_old[69] && (f_was_open || f_was_done)));
    repeats_from_the_bank_of_the_sum: assert (!f_repeated || decision[5] == (f_same ? f_old[68] : !f_old[68]));
    repeats_the_total: assert (!f_repeated || result[63:48] == (f_kept_total == 0 ? 16'hffff : f_kept_total));
    repeats_the_whole_sum: assert (!f_repeated || (!decision[3] && decision[4]));
    repeating_writes_nothing: assert (!(commit && deciding[87]) || !f_writes);
    refused_writes_nothing: assert (!commit || verdict$accept || !f_writes);
end
